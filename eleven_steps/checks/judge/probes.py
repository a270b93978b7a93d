"""Ask of a class what its outputs in eval mode do not show, in two tables: PROBES and RARER.

A question is asked of a class in a case and answered by a claim, or by nothing. A claim is said
once it was made again in a case of other sizes and numbers; one that was not is told as what it
is, something seen there alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from eleven_steps.checks.adapt.adapted import takes
from eleven_steps.checks.judge.dropping import DROPPING, dropout, rate_of, training
from eleven_steps.checks.judge.far import LONG, STRESSED, devices, dtypes, long_text, stressed
from eleven_steps.checks.judge.in_a_row import (
    CALLS,
    CONVERTED,
    drawn,
    gradients,
    in_any_state,
    in_turn,
    mask_learns,
    written,
)
from eleven_steps.checks.judge.say import Finding, letters, say
from eleven_steps.checks.judge.subject import Claim, Question, Subject
from eleven_steps.checks.run.cases import Case


@dataclass(frozen=True)
class Probe:
    """One row of PROBES.

    Args:
        name: of the probe; the sentence that it comes to has a name of its own.
        question: what is asked; its claim is a predicate, which can be asked again elsewhere.
        after: probes that found nothing, or else this one is not asked; "outputs" for the outputs.
        plainly: the sentence that is said where the claim is not made again.
        at: the cases that are asked in, up to a claim, and the one that holds it; the main one
            and another if there are none.
        sized: whether it is asked in those of singled-out sizes.
    """

    name: str
    question: Question
    after: frozenset[str] = frozenset({"outputs"})
    plainly: str = ""
    at: tuple[Case, ...] = ()
    sized: bool = False

    def cases(self, subject: Subject) -> list[Case]:
        """Where it is asked, and last where it is held."""
        every, first = subject.cases, subject.cases.biased
        if self.at:
            return [replace(each, variant=subject.variant) for each in self.at]
        return [*every.sized, first] if self.sized else [first, subject.other(first)]

    def holds(self, subject: Subject, claim: Claim, case: Case) -> bool:
        """Whether a claim is made again in a case from which it was not made."""
        again = self.question(subject, case)
        return again is not None and again.name == claim.name


def probed(subject: Subject, probes: Sequence[Probe]) -> Iterator[Finding]:
    """Yield what probes find in a class, each asked after those that it depends on."""
    for probe in probes:
        finding = None if probe.after & subject.found else _found(subject, probe)
        if finding is None:
            continue
        yield finding
        if finding.kind != "remark":
            subject.found.add(probe.name)


def _found(subject: Subject, probe: Probe) -> Finding | None:
    """What a probe finds, asked for again elsewhere."""
    *cases, other = probe.cases(subject)
    asked = ((each, probe.question(subject, each)) for each in cases if takes(subject.cls, each))
    case, claim = next(((each, claim) for each, claim in asked if claim), (None, None))
    finding = claim and claim.said()
    if not claim or not takes(subject.cls, other) or probe.holds(subject, claim, other):
        return finding
    if subject.found or claim.name == "half_differs":  # no news, or mere rounding
        return None
    if finding.kind == "remark":
        return finding
    where = f"b = {case.b}, {letters(case)}"
    if probe.name == "dropout":
        where += f", dropout = {rate_of(case):g}"
    return say(probe.plainly or "seen_once", finding.step, said=finding.text, where=where)


# The table

RIGHT_OUTPUTS = frozenset({"outputs"})
AT_REST = RIGHT_OUTPUTS | {"extremes", "written", "state"}
IN_TRAINING = AT_REST | {"gradients", "training"}
PROBES = (
    Probe("written", written, frozenset()),
    Probe("extremes", stressed, at=STRESSED),
    Probe("state", drawn, RIGHT_OUTPUTS | {"written"}),
    *(Probe("state", calls, RIGHT_OUTPUTS | {"written", "state"}) for calls in CALLS[1:]),
    Probe("state", in_turn, RIGHT_OUTPUTS | {"written", "state"}),
    Probe("gradients", gradients, frozenset({"state"}), "other_gradients"),
    Probe("mask", mask_learns),
    Probe("training", training, AT_REST),
    Probe("dropout", dropout, AT_REST | {"training"}, "dropout_differs"),
    Probe("dtypes", dtypes, IN_TRAINING),
    Probe("dtypes", CONVERTED, IN_TRAINING | {"dtypes"}),
    Probe("devices", devices, frozenset()),
)
RARER = (  # of a class in which nothing was found
    Probe("written", written, frozenset()),
    Probe("sizes", in_any_state, sized=True),
    Probe("dropout", dropout, RIGHT_OUTPUTS | {"sizes"}, at=DROPPING[:0:-1]),
    Probe("long", long_text, RIGHT_OUTPUTS | {"sizes"}, at=LONG),
)

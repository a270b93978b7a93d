"""Ask of a class what its outputs in eval mode do not show, in one table: PROBES.

A question is asked of a class in a case and answered by a claim, or by nothing. A claim is said
once it was made again in a case of other sizes and numbers; one that was not is told as what it
is, something seen there alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from eleven_steps.checks.adapt.adapted import takes
from eleven_steps.checks.judge.dropping import dropout, training
from eleven_steps.checks.judge.far import LONG, STRESSED, devices, dtypes, long_text, stressed
from eleven_steps.checks.judge.in_a_row import (
    CALLS,
    drawn,
    gradients,
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
        at: the case that is asked in first, and the one that holds it; the main one and another.
    """

    name: str
    question: Question
    after: frozenset[str] = frozenset({"outputs"})
    plainly: str = ""
    at: tuple[Case, Case] | None = None

    def holds(self, subject: Subject, claim: Claim, case: Case) -> bool:
        """Whether a claim is made again in a case from which it was not made."""
        again = self.question(subject, case)
        return again is not None and again.name == claim.name


def probed(subject: Subject) -> Iterator[Finding]:
    """Yield what the probes find in a class, each asked after those that it depends on."""
    for probe in PROBES:
        if probe.after & subject.found:
            continue
        case, other = probe.at or (subject.cases.biased, subject.other(subject.cases.biased))
        if subject.variant and probe.at:
            case, other = (replace(each, variant=subject.variant) for each in (case, other))
        if not takes(subject.cls, case):
            continue
        claim = probe.question(subject, case)
        if claim is None:
            continue
        finding = claim.said()
        if takes(subject.cls, other) and not probe.holds(subject, claim, other):
            if subject.found or claim.name == "half_differs":  # no news, or mere rounding
                continue
            where = f"b = {case.b}, {letters(case)}"
            plainly = say(
                probe.plainly or "seen_once", finding.step, said=finding.text, where=where
            )
            finding = plainly if finding.kind != "remark" else finding
        yield finding
        if finding.kind != "remark":
            subject.found.add(probe.name)


# The table

RIGHT_OUTPUTS = frozenset({"outputs"})
AT_REST = RIGHT_OUTPUTS | {"extremes", "written", "state"}
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
    Probe("dtypes", dtypes, AT_REST | {"gradients", "training"}),
    Probe("devices", devices, frozenset()),
    Probe("long", long_text, AT_REST | {"gradients", "mask"}, at=LONG),
)

"""Ask of a class what its outputs in eval mode do not show, in two tables: PROBES and RARER.

A question is asked of a class in a case and answered by a finding, or by nothing. A finding is said
once the question found it again in a case of other sizes and numbers; one that it did not is told
as what it is, something seen there alone.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import is_adapted, takes
from eleven_steps.checks.judge import in_a_row, training
from eleven_steps.checks.judge.other_sizes import measured
from eleven_steps.checks.judge.say import Finding, letters_of, say
from eleven_steps.checks.judge.subject import Question, Subject
from eleven_steps.checks.know.right import once_right, right_alone
from eleven_steps.checks.run.ask import FLOATS, Pass, ask, once
from eleven_steps.checks.run.cases import Case, close, seeded
from eleven_steps.checks.run.isolate import Failure

MORE = 4  # times as far off as the right class
LONG = tuple(Case(1, n, 4, 4, 1, max(n, 1200)) for n in (1100, 256, 512, 1024, 1090))
FAR_TURNED = Case(1, 500, 2, 2, 1, 1200), Case(1, 512, 2, 2, 1, 1200)
CONVERSIONS = {name: Pass(dtype=name) for name in FLOATS} | {"autocast": Pass(how="autocast")}
# In bfloat16 the last positions of these, 497 and 509, are rounded to even numbers.
AHEAD = Case(1, 498, 2, 2, 1, 1200), Case(1, 510, 2, 2, 1, 1200)
OTHER_DROPPING = training.DROPPING[2], training.DROPPING[1]  # asked in the first, held in the last
STRESSED = Case(1, 4, 4, 8, 2, 5), Case(1, 5, 5, 15, 3, 6)


@dataclass(frozen=True)
class Probe:
    """One row of PROBES, or of RARER."""

    name: str  # of the probe; the sentence that it comes to has a name of its own
    question: Question  # what is asked; it can be asked again elsewhere
    # Probes that found nothing, or else this one is not asked; "outputs" for the outputs
    after: frozenset[str] = frozenset({"outputs"})
    plainly: str = ""  # the sentence that is said where it is not found again
    at: tuple[Case, ...] = ()  # asked in up to a finding, and the one that holds it, if not usual
    sized: bool = False  # whether it is asked in those of singled-out sizes

    def cases(self, subject: Subject) -> list[Case]:
        """Where it is asked, and last where it is held."""
        every, first = subject.cases, subject.cases.biased
        if self.at:
            *usual, last = (replace(case, variant=subject.variant) for case in self.at)
            counts = {case.num_tokens for case in self.at}
            named = subject.named[1] if self.at == LONG else ()
            return [*usual, *(e for e in named if e.num_tokens not in counts), last]
        return [*every.sized, first] if self.sized else [first, subject.other(first)]


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
    *cases, other = probe.cases(subject)
    asked = ((at, probe.question(subject, at)) for at in cases if takes(subject.cls, at))
    case, finding = next((pair for pair in asked if pair[1]), (None, None))
    if not finding or not takes(subject.cls, other):
        return finding
    again = probe.question(subject, other)
    if again and again.name == finding.name:
        return finding
    if subject.found or finding.name == "half_differs":  # no news, or mere rounding
        return None
    if finding.kind == "remark":
        return finding
    where = letters_of(case, "")
    if probe.name == "dropout":
        where += f", dropout = {training.rate_of(case):g}"
    return say(probe.plainly or "seen_once", finding.step, said=finding.text, where=where)


# Numbers of another dtype, on another device


def dtypes(subject: Subject, case: Case) -> Finding | None:
    """Once it is converted, a class works on and answers in kind."""
    case = subject.plain(replace(case, qkv_bias=False))
    seen = {name: once(subject.cls, case, kind)[0] for name, kind in CONVERSIONS.items()}
    double = seen.pop("float64")
    if isinstance(double.out, Failure):
        return say("double_raises", error=double.out.told)
    if double.dtype != "torch.float64":
        return say("double_not_returned", dtype=double.dtype)
    if not close(double.out, right_alone(case, dtype="float64").out, 1e-5):
        return say("double_differs")
    halves = (_in_half(subject, case, name, reply.out, double.out) for name, reply in seen.items())
    return next(filter(None, halves), None)


def _in_half(subject: Subject, case: Case, dtype: str, half: Any, exact: Any) -> Finding | None:
    """What goes wrong in half precision: it fails, or rounds more than the right class does."""
    if isinstance(half, Failure):
        name = "half_overflows" if "without overflow" in half.text else "half_raises"
        return say(name, dtype=dtype, error=half.told)
    kind = CONVERSIONS[dtype]
    right = right_alone(case, dtype=kind.dtype, how=kind.how).out
    mine, wanted = ((rounded - exact).abs().mean() for rounded in (half, right))
    if mine <= MORE * wanted:  # NaN is far off
        return None
    step = 6 if subject.leaks(case, dtype=kind.dtype, how=kind.how) else None
    return say("half_differs", step, dtype=dtype)


def turned_in_half(subject: Subject, case: Case) -> Finding | None:
    """In half precision positions of a long text turn as they do in a short one."""
    handed = getattr(getattr(subject.cls, "call", None), "turns", ())  # by us, in its dtype
    if handed or "rope" not in subject.variant:
        return None
    wide = round(2 / subject.variant.rope[1])  # one pair, which turns by 1 at any base
    case = replace(case, d_in=wide, d_out=wide)
    if not takes(subject.cls, case):
        return None
    names = "float64", "bfloat16"
    exact, half = (once(subject.cls, case, CONVERSIONS[name])[0].out for name in names)
    if any(isinstance(out, Failure) for out in (exact, half)):
        return None
    off = _in_half(subject, case, names[1], half, exact)
    return off and say("positions_in_half", dtype=names[1], num_tokens=case.num_tokens)


def future_in_half(subject: Subject, case: Case) -> Finding | None:
    """In half precision a mask made from positions may end a token later in a long text."""
    sees = subject.leaks(case, dtype="bfloat16") and subject.leaks(case) is False
    return say("future_in_half", dtype="bfloat16", num_tokens=case.num_tokens) if sees else None


def devices(subject: Subject, case: Case) -> Finding | None:
    """Everything follows `.to(device)`.

    One rule for whatever is kept, as an attribute or moved to a fixed device: it would fail on a
    GPU. What forward makes anew on the default device is only remarked upon.
    """
    case = subject.plain(case)
    here = once(subject.cls, case, Pass(moved="here"))[0]
    raised = isinstance(here.out, Failure) and "expected device" in here.out.text
    if not here.met and not raised:
        return None
    made = once(subject.cls, case, Pass(moved="made"))[0]
    if not made.met and not isinstance(made.out, Failure):
        return say("made_on_cpu")
    kept = subject.built.biased.mask == "attribute"
    return say("mask_not_registered" if kept else "stays_on_cpu")


# Long texts, and scores that lie far apart


def long_text(subject: Subject, case: Case) -> Finding | None:
    """Compare where a text is long: a mask or a window may end."""
    tokens, mine = {"num_tokens": case.num_tokens}, subject.outs(case, Pass())[0]
    right = right_alone(subject.plain(case)).out
    if close(mine, right):
        return None
    if isinstance(mine, Failure):
        if is_adapted(subject.cls):  # from elsewhere, where its length may be fixed
            return None
        return say("forward_raises", error=mine.told, where=letters_of(case))
    if subject.leaks(case):
        return say("long_future_seen", **tokens)
    return say("long_differs", **tokens)


def beyond(subject: Subject, case: Case) -> Finding | None:
    """A text longer than a class is told that texts are raises, or comes out right."""
    if "context_length" not in getattr(subject.cls, "asked", ["context_length"]):
        return None
    longer = replace(case, b=2, num_tokens=2 * case.context_length + 2)
    fitting = subject.plain(replace(longer, context_length=longer.num_tokens))
    mine, right = subject.outs(longer, Pass())[0], right_alone(fitting).out
    if isinstance(mine, Failure) or close(mine, right):
        return None
    told = "differs_beyond"
    if subject.leaks(longer):
        told = "future_beyond"
    elif is_adapted(subject.cls) and "rope" in subject.variant:
        bases = [measured(subject.cls, n) for n in (4, longer.num_tokens)]
        told = "turned_beyond" if all(bases) and bases[0] != bases[1] else told
    return say(told, num_tokens=longer.num_tokens, context_length=case.context_length)


def stressed(subject: Subject, case: Case) -> Finding | None:
    """Compare where scores lie far apart, and where a row of x is 0; say the first that differs.

    In the first even an exp without a maximum taken off keeps its numbers. In the second some rows
    have far lower scores than others, and hidden ones higher.
    """
    if subject.variant:
        return None
    late, passes = "mask_after_softmax_renormalised", _stresses(case)
    case = subject.plain(case)
    # A module for each: it keeps the weights of a pass, and may keep more.
    mine = [subject.outs(case, asked)[0] for asked in passes]
    right = _right_stressed(case)
    at = next((i for i in range(3) if not close(mine[i], right[i])), None)
    if at is None or at < 2 and _rounds(subject, case, passes[at]):
        return None
    if at == 2:
        return say("blank_row")
    if isinstance(mine[at], Failure):
        return say("stress_raises", error=mine[at].told)
    if mine[at].shape != right[at].shape:
        return say("other_where_far")
    if close(mine[at], once_right(case, passes[at], mistakes=(late,))[0].out):
        ops = getattr(ask(subject.cls, "trace", case), "ops", ())
        return say(late if any("softmax" in op.name for op in ops) else "exp_before_mask")
    unknown = mine[at].isnan()
    if unknown.any() and close(mine[at][~unknown], right[at][~unknown]):
        return say("exp_overflows" if at else "exp_vanishes")
    ahead = torch.eye(case.num_tokens)[None]
    ahead[:, -1] += 1
    moved = subject.outs(case, replace(passes[at], x=ahead))[0]
    if not close(moved[:, 0], mine[at][:, 0]):
        return say("future_outweighs")
    first = close(mine[at][:, 0], right[at][:, 0])  # it sees itself alone, whatever the scores
    return say("scores_changed" if first else "other_where_far")


def _rounds(subject: Subject, case: Case, asked: Pass) -> bool:
    """Whether what is another in float32 is right in float64: large numbers were taken apart."""
    exact = replace(asked, dtype="float64")
    mine = subject.outs(case, exact)[0], once_right(case, exact)[0].out
    return close(*mine) and not any(out.isnan().any() for out in subject.outs(case, asked))


@functools.cache
def _right_stressed(case: Case) -> list[torch.Tensor]:
    return [once_right(case, asked)[0].out for asked in _stresses(case)]


def _stresses(case: Case) -> tuple[Pass, ...]:
    """All scores low and hidden ones high; some rows low, some high; a row of x that is 0."""
    low = torch.full((case.num_tokens, 1), -300.0)
    low[2] = 200
    blank = torch.eye(case.num_tokens)[None]
    blank[:, 1] = 0
    return _stress(case, -60.0, 75.0), _stress(case, low, 0.0), Pass(blank)


def _stress(case: Case, allowed: torch.Tensor | float, future: float) -> Pass:
    """A pass in which scaled scores are about allowed, and future above the diagonal."""
    tokens = case.num_tokens
    scores = torch.full((tokens, tokens), future).triu(1)
    scores += (allowed + seeded("stress", (tokens, tokens))).tril()
    scores *= case.head_dim**0.5
    eye = torch.eye(tokens)
    weights = {"W_query.weight": scores.T.repeat(case.num_heads, 1)}
    return Pass(eye[None], weights=weights | {"W_key.weight": eye.repeat(case.num_heads, 1)})


# The table

RIGHT_OUTPUTS = frozenset({"outputs"})
AT_REST = RIGHT_OUTPUTS | {"extremes", "written", "state"}
IN_TRAINING = AT_REST | {"gradients", "training"}
PROBES = (
    Probe("written", in_a_row.writes_over, frozenset()),
    Probe("extremes", stressed, at=STRESSED),
    Probe("state", in_a_row.draws, RIGHT_OUTPUTS | {"written"}),
    *(Probe("state", calls, RIGHT_OUTPUTS | {"written", "state"}) for calls in in_a_row.CALLS[1:]),
    Probe("gradients", training.gradients, frozenset({"state"}), "other_gradients"),
    Probe("mask", training.mask_learns),
    Probe("training", training.training, AT_REST),
    Probe("dropout", training.dropout, AT_REST | {"training"}, "dropout_differs"),
    Probe("dtypes", dtypes, IN_TRAINING),
    Probe("dtypes", in_a_row.CONVERTED, IN_TRAINING | {"dtypes"}),
    Probe("devices", devices, frozenset()),
)
RARER = (  # of a class in which nothing was found
    Probe("written", in_a_row.writes_over, frozenset()),
    Probe("sizes", in_a_row.in_any_state, sized=True),
    Probe("in_use", in_a_row.unlike_itself, RIGHT_OUTPUTS | {"sizes"}),
    Probe("dropout", training.dropout, RIGHT_OUTPUTS | {"sizes"}, at=OTHER_DROPPING),
    Probe("dtypes", turned_in_half, RIGHT_OUTPUTS | {"sizes"}, at=FAR_TURNED),
    Probe("dtypes", future_in_half, RIGHT_OUTPUTS | {"sizes"}, at=AHEAD),
    Probe("long", long_text, RIGHT_OUTPUTS | {"sizes"}, at=LONG),
    Probe("long", beyond, RIGHT_OUTPUTS | {"sizes", "in_use", "long"}),
)

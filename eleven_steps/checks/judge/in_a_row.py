"""What several calls of one module show, and what gradients do: what is kept, written, cut off."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from eleven_steps.checks.adapt.calls import begins
from eleven_steps.checks.judge.say import Finding, letters_of, say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.judge.training import gradients, same_gradients, training
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, Seen, once
from eleven_steps.checks.run.cases import LAYERS, SAME, Case, close, known
from eleven_steps.checks.run.isolate import Failure

# Calls in a row


class Calls(NamedTuple):
    """Passes of one module, each of which has to give what it gives in the right class."""

    name: str  # of the sentence
    passes: Callable[[Case], list[Pass]]  # of a case
    same: bool = False  # whether the last of them has to give the very numbers of the first

    def __call__(self, subject: Subject, case: Case) -> Finding | None:
        """Compare the passes in a case; the first one that is another is told."""
        passes = self.passes(case)
        mine = subject.outs(case, *passes)
        right = right_seen(subject.plain(case), self.passes)
        trios = zip(passes, mine, right, strict=True)  # what training gives is another question
        wrong = ((i, o) for i, (p, o, r) in enumerate(trios) if not (p.train or close(o, r.out)))
        at, other = next(wrong, (0, None))
        if other is None and (not self.same or close(mine[0], mine[-1], SAME)):
            return None
        raises = isinstance(other, Failure)
        if raises and self.name == "other_where_expanded":  # which is not contiguous either
            return None
        if raises and self.name == "other_where_strided":
            return say("raises_where_strided", error=other.told)
        what = wording("raises_error", error=other.told) if raises else wording("differs_there")
        name = "kept_of_longer" if (self.name, at) == ("something_kept", 2) else self.name
        return say(name, what=what)


@functools.cache
def right_seen(case: Case, passes: Callable[[Case], list[Pass]]) -> list[Seen]:
    """What the right class gives in passes of a case: of one x and its weights it is asked once."""
    asked: list[Pass] = []
    for way in sorted(every := passes(case), key=lambda way: not way.gradients):
        if not any(_alike_asked(way, other) for other in asked):
            asked.append(replace(way, how="", dtype="", in_turn=False))
    seen = [*zip(asked, once_right(case, *asked), strict=True)]
    given = [next(s for other, s in seen if _alike_asked(way, other)) for way in every]
    pairs = zip(every, given, strict=True)
    return [Seen(s.out, gradients=s.gradients if pair.gradients else None) for pair, s in pairs]


def _alike_asked(one: Pass, other: Pass) -> bool:
    """Whether two passes have the same x and weights, so that what is right is the same."""
    if (one.x is None) is not (other.x is None) or one.weights.keys() != other.weights.keys():
        return False
    both = [(weight, other.weights[name]) for name, weight in one.weights.items()]
    both += [] if one.x is None else [(one.x, other.x)]
    return all(map(torch.equal, *zip(*both, strict=True))) if both else True


def _x(case: Case, **options: Any) -> Pass:
    return Pass(known("other x", case.x.shape), **options)


def _one_text(case: Case) -> Pass:
    return Pass(case.x[:1].repeat(case.b, 1, 1), how="expanded")


def _shorter(case: Case) -> Pass:
    return Pass(case.x[:1, : max(case.num_tokens - 2, 1)] + 1)


def _weights(case: Case, **options: Any) -> Pass:
    own = play(case).module.named_parameters()
    shapes = {n: p.shape for n, p in own if n.startswith(LAYERS) and n.endswith("weight")}
    other = replace(case, seed=case.seed + 1)
    return Pass(weights={n: other.weight(n, s) for n, s in shapes.items()}, **options)


# In the order in which they are asked.
CALLS = (
    Calls("random_in_eval", lambda case: [Pass(seed=1), Pass(seed=2)], same=True),
    Calls("kept_of_same_shape", lambda case: [Pass(), _x(case), Pass(), _x(case)]),
    Calls("something_kept", lambda case: [_shorter(case), Pass(), _shorter(case), Pass()]),
    Calls("something_kept", lambda case: [Pass(case.x[:, :1]), Pass()]),
    Calls("kept_in_training", lambda case: [Pass(), *2 * [Pass(train=True)], Pass()], same=True),
    Calls("kept_with_grad", lambda case: [Pass(how="grad"), _x(case, how="grad"), Pass()]),
    Calls("other_in_inference", lambda case: 2 * [Pass(how="inference")]),
    Calls("kept_weights", lambda case: [Pass(), _weights(case)]),
    Calls("copy_follows", lambda case: [Pass(), _weights(case, how="copied")]),
    Calls("other_where_strided", lambda case: [Pass(how="strided")]),
    Calls("other_where_expanded", lambda case: [_one_text(case)]),
    Calls("kept_for_all_texts", lambda case: [Pass(in_turn=True)]),
    Calls("other_where_frozen", lambda case: [Pass(), Pass(how="frozen")]),
)
CONVERTED = Calls("kept_in_float32", lambda _: [Pass(), Pass(dtype="float64", how="copied")])


def row(case: Case) -> list[Pass]:
    """A pass of each state, for one module; weights that are changed stay so."""
    return [
        *(Pass(), _x(case), _shorter(case), Pass(how="strided"), _x(case, how="inference")),
        *(
            _one_text(case),
            Pass(in_turn=True),
            Pass(gradients=True),
            _x(case, gradients=True, train=True),
        ),
        *(_weights(case, dtype="float64", how="copied"), _weights(case)),
        _weights(case, how="frozen"),
    ]


def in_any_state(subject: Subject, case: Case) -> Finding | None:
    """Ask in a row what else is asked apart; where something is another, ask apart what."""
    case = subject.plain(case)
    passes = row(case)
    pairs = [*zip(once(subject.cls, case, *passes), right_seen(case, row), strict=True)]
    for way, (mine, right) in zip(passes, pairs, strict=True):
        told = way.how in ("strided", "expanded") or way.gradients and begins(subject.cls)
        told = told and isinstance(mine.out, Failure)  # at one size, for all, or as a remark
        if not told and not close(mine.out, right.out):
            return _of_state(subject, case, way, mine, right)
    learns = all(
        same_gradients(subject, case, mine, right)
        for mine, right in pairs
        if right.gradients and mine.gradients
    )
    raised = (mine.out.told for mine, right in pairs if right.gradients and not mine.gradients)
    if error := next(raised, ""):
        return replace(say("backward_once", error=error), kind="remark")
    return None if learns else gradients(subject, case) or gradients(subject, case, train=True)


def _of_state(subject: Subject, case: Case, wrong: Pass, mine: Seen, right: Seen) -> Finding | None:
    """Ask what state makes a pass in a row another one; none does if it is so by itself."""
    by_itself = not close(subject.outs(case, wrong)[0], right.out)
    if by_itself and not wrong.train and wrong.how in ("", "copied"):
        return say("other_output", where=f"b = {case.b}, {letters_of(case)}")
    if wrong.gradients and isinstance(mine.out, Failure) and not by_itself:
        return say("backward_once", error=mine.out.told)
    claims = (question(subject, case) for question in (draws, *CALLS[1:], CONVERTED, training))
    some = (claim for claim in claims if claim and claim.kind != "remark")
    return next(some, say("kept_of_same"))


def draws(subject: Subject, case: Case) -> Finding | None:
    """Whether what differs the second time is drawn: with the same draws it does not."""
    finding = CALLS[0](subject, case)
    if finding is None:
        return None
    one, two = subject.outs(case, Pass(seed=1), Pass(seed=1))
    return finding if close(one, two, SAME) else say("kept_of_same")


def written(subject: Subject, case: Case) -> Finding | None:
    """Whether forward writes into x, the weights, or what an earlier forward returned."""
    subject.seen(case)
    again = once(subject.cls, subject.plain(case), Pass(), _x(case))
    changed = {name for seen in (*subject.seen_in.values(), *again) for name in seen.changed}
    names = {"x": "input_changed", "weights": "weights_changed", "out": "output_changed"}
    return next((say(said) for name, said in names.items() if name in changed), None)

"""What several calls of one module show, and what gradients do: what is kept, written, cut off."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from eleven_steps.checks.judge.subject import Claim, Subject
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import LAYERS, LOOSE, SAME, Case, close, known
from eleven_steps.checks.run.facts import Pass
from eleven_steps.checks.run.isolate import Failure

# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    LAYERS: "no_grad",
}


# Calls in a row


class Calls(NamedTuple):
    """Passes of one module, each of which has to give what it gives in the right class.

    Args:
        name: of the sentence.
        passes: of a case.
        same: whether the last of them has to give the very numbers of the first.
    """

    name: str
    passes: Callable[[Case], list[Pass]]
    same: bool = False

    def __call__(self, subject: Subject, case: Case) -> Claim | None:
        """Compare the passes in a case; the first one that is another is told."""
        passes = self.passes(case)
        mine = subject.outs(case, *passes)
        right = _right_outs(subject.plain(case), self)
        trios = zip(passes, mine, right, strict=True)  # what training gives is another question
        other = next((o for p, o, wanted in trios if not p.train and not close(o, wanted)), None)
        if other is None and (not self.same or close(mine[0], mine[-1], SAME)):
            return None
        raises = isinstance(other, Failure)
        what = wording("raises_error", error=other.told) if raises else wording("differs_there")
        return Claim(self.name, values={"what": what})


@functools.cache
def _right_outs(case: Case, calls: Calls) -> list[torch.Tensor]:
    return [each.out for each in once_right(case, *calls.passes(case))]


def _x(case: Case, **options: Any) -> Pass:
    """A pass of another x of the same shape."""
    return Pass(known("other x", case.x.shape), **options)


def _shorter(case: Case) -> Pass:
    return Pass(case.x[:1, :-2] + 1)


def _weights(case: Case, **options: Any) -> Pass:
    """A pass with other weights in all four layers."""
    own = play(case).module.named_parameters()
    shapes = {n: p.shape for n, p in own if n.startswith(LAYERS) and n.endswith("weight")}
    return Pass(weights={n: known(f"new {n}", s) / 2 for n, s in shapes.items()}, **options)


# In the order in which they are asked.
CALLS = (
    Calls("random_in_eval", lambda case: [Pass(seed=1), Pass(seed=2)], same=True),
    Calls("kept_of_same_shape", lambda case: [Pass(), _x(case), Pass(), _x(case)]),
    Calls("something_kept", lambda case: [_shorter(case), Pass(), _shorter(case), Pass()]),
    Calls("kept_in_training", lambda case: [Pass(), *2 * [Pass(train=True)], Pass()], same=True),
    Calls("kept_with_grad", lambda case: [Pass(how="grad"), _x(case, how="grad"), Pass()]),
    Calls("other_in_inference", lambda case: 2 * [Pass(how="inference")]),
    Calls("kept_weights", lambda case: [Pass(), _weights(case)]),
    Calls("copy_follows", lambda case: [Pass(), _weights(case, how="copied")]),
    Calls("other_where_strided", lambda case: [Pass(how="strided")]),
)


def drawn(subject: Subject, case: Case) -> Claim | None:
    """Whether what differs the second time is drawn: with the same draws it does not."""
    claim = CALLS[0](subject, case)
    if claim is None:
        return None
    one, two = subject.outs(case, Pass(seed=1), Pass(seed=1))
    return claim if close(one, two, SAME) else Claim("kept_of_same", values=claim.values)


def written(subject: Subject, case: Case) -> Claim | None:
    """Whether forward writes into x, the weights, or what an earlier forward returned."""
    seen = [subject.seen(each) for each in (case, *subject.cases.every)]
    seen += once(subject.cls, subject.plain(case), Pass(), _x(case))
    changed = {name for each in seen for name in each.changed}
    names = {"x": "input_changed", "weights": "weights_changed", "out": "output_changed"}
    return next((Claim(said) for name, said in names.items() if name in changed), None)


def in_turn(subject: Subject, case: Case) -> Claim | None:
    """Whether two texts that are read in turn, each with its own past, change each other."""
    if "cache" not in subject.changes:
        return None
    alone, in_turn = (subject.outs(case, each)[0] for each in (Pass(), Pass(in_turn=True)))
    return None if close(alone, in_turn) else Claim("kept_for_all_texts")


# Gradients


def gradients(subject: Subject, case: Case) -> Claim | None:
    """Every weight that changes the output must learn, and as fast as the right one."""
    case, wrong = subject.plain(case), "outputs" in subject.found
    seen = once(subject.cls, case, Pass(gradients=True))[0]
    mine = seen.gradients if isinstance(seen.gradients, dict) else seen.out
    right = _right_gradients(case)
    if isinstance(mine, Failure):
        step = 7 if "Softmax" in mine.text else 2
        return None if wrong else Claim("backward_raises", step, {"error": mine.told})
    frozen = subject.built[True].frozen
    asked = [n for n, each in right.items() if each is not None]  # a choice has no gradient
    names = [n for n in asked if n in mine and n not in case.without and n not in frozen]
    cut = [
        name
        for name in names
        if (mine[name] is None or not wrong and not mine[name].any())
        and right[name].abs().max() > 1e-4
        and _counts(subject, case, name)
    ]
    if cut:
        return _cut(cut, case, seen.cut)
    learns = [name for name in names if mine[name] is not None]  # others change no output
    off = not wrong and not all(close(mine[n], right[n], LOOSE) for n in learns)
    return Claim("other_gradients") if off else None


@functools.cache
def _right_gradients(case: Case) -> dict[str, torch.Tensor | None]:
    return once_right(case, Pass(gradients=True))[0].gradients


def _counts(subject: Subject, case: Case, name: str) -> bool:
    """Whether a parameter, or x, changes the output."""
    other = _x(case)
    if name != "x":
        shape = play(case).module.get_parameter(name).shape
        other = Pass(weights={name: known(f"other {name}", shape)})
    return not close(*subject.outs(case, Pass(), other))


def _cut(cut: list[str], case: Case, tensor: torch.Tensor | None) -> Claim:
    """Say which weights get no gradient, and at which step the first tensor is cut off."""
    those = {"cut": ", ".join(cut)}
    name = DETACHED.get(tuple(each for each in LAYERS if f"{each}.weight" in cut), "")
    steps = enumerate(play(case).steps.values(), start=1) if tensor is not None else ()
    made = (n for n, step in steps if any(_is(tensor, each) for each in step.values()))
    step = next(made, None)
    if not name or step not in MISTAKES[name].steps:
        return Claim("no_gradient", step or name and MISTAKES[name].step, those)
    return Claim("detached", step, those | {"fault": MISTAKES[name].sentence}, mistake=name)


def _is(tensor: torch.Tensor, right: Any) -> bool:
    """Whether a tensor holds the numbers of another one, however they are laid out."""
    if not isinstance(right, torch.Tensor) or right.numel() != tensor.numel():
        return False
    return close(*(each.flatten().sort().values for each in (tensor, right)))


def mask_learns(subject: Subject, case: Case) -> Claim | None:
    """Whether the mask is a parameter, which an optimizer would change."""
    if subject.built[True].mask != "trained":
        return None
    moved = once(subject.cls, subject.plain(case), Pass(gradients=True))[0].gradients
    learns = isinstance(moved, dict) and moved.get("mask") is not None and moved["mask"].any()
    return Claim("mask_learns" if learns else "mask_trained")

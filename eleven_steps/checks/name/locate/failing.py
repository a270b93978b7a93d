"""Where a forward that raises goes wrong: how far it was right, and what it tried next."""

import re
from dataclasses import dataclass

import torch

from eleven_steps.checks.name.locate.follow import scored
from eleven_steps.checks.name.locate.recording import NAMES, Recording, arranged, place
from eleven_steps.checks.run.isolate import Failure

# Words of a line, by the step that they speak of.
WORDS = (
    (7, ("softmax", "drop", "sqrt", "** 0.5", "**0.5", "** -0.5", "**-0.5", "scale")),
    (6, ("mask", "triu", "tril", "inf", "causal")),
    (11, ("out_proj",)),
    (2, ("W_query", "W_key", "W_value")),
    (10, ("contiguous",)),
    (5, ("score",)),
)
# Parts of the names of torch's functions, with the steps that they may be at.
VIEWING = "view", "reshape", "flatten", "split", "chunk"
MOVING = "transpose", "permute", "swap", "movedim"
PRODUCT = "matmul", "einsum", "bmm", "mul"
DOES = (
    (("mask",), (6,)),
    (("softmax",), (7,)),
    (VIEWING, (3, 10)),
    (MOVING, (4, 9)),
    (PRODUCT, (5, 8)),
    (("linear",), (2, 11)),
)
# By the last step whose tensors are there: those that may be next, the likeliest first.
NEXT = {2: (3, 4, 5, 6, 7, 1), 5: (6, 7, 8), 7: (8, 7), 8: (9, 10, 11)}


@dataclass(frozen=True)
class Attempt:
    """What forward tried when it raised: a function of torch, and what that was given."""

    name: str
    tensors: tuple[torch.Tensor, ...]
    numbers: tuple[int, ...]
    worded: int | None  # the step that the words of the line speak of

    def does(self, *words: str) -> bool:
        """Whether the function is one of these, by parts of names."""
        return any(word in self.name for word in words)


def worded_step(failure: Failure) -> int | None:
    """The step that the words of a failing line speak of, if any."""
    line = f"{failure.line} {failure.words}"
    return next((step for step, words in WORDS if any(each in line for each in words)), None)


def failing_step(recording: Recording, failure: Failure) -> int:
    """The step at which forward raises: the next one that what it tried, or the line, speaks of."""
    named = re.match(r"\w+: (\w+)\(\)", failure.text)  # by torch, where it was never called
    unseen = named[1] if named else "", (), ()
    tried = Attempt(*(recording.record.failing or unseen), worded_step(failure))
    done = _done(recording, tried)
    if done == 1:  # nothing was begun, or a mask or a scale is made beforehand
        begun = tried.name or tried.worded or any(held.made_of for held in recording.held)
        return tried.worded if tried.worded in (6, 7) else 2 if begun else 1
    if done == 2 and recording.scores and (early := scored(recording)):
        return early.step
    spoken = [n for words, steps in DOES if tried.does(*words) for n in steps]
    if done == 8 and tried.name:
        spoken.append(11)  # whatever else is done to the output
    step = next((n for n in (*spoken, tried.worded) if n in NEXT[done]), NEXT[done][0])
    return _at_size(recording, tried, step)


def _done(recording: Recording, tried: Attempt) -> int:
    """The last step whose tensors are there; of the projections one will do, if it is handed on."""
    rights = [recording.right["project"][name] for name in NAMES.values()]
    handed = any(place(tensor, right) for tensor in tried.tensors for right in rights)
    if not (handed or tried.does(*VIEWING) or all(map(recording.made, NAMES.values()))):
        return 1
    there = recording.there("softmax", "weights"), recording.there("context", "context")
    stages = (5, recording.scores_there), (7, there[0]), (8, there[1])
    done = 2
    for number, reached in stages:
        if not reached:
            break
        done = number
    return done


def _at_size(recording: Recording, tried: Attempt, step: int) -> int:
    """The step, or one before it, where what it is given has other sizes or another order."""
    case, first = recording.case, next(iter(tried.tensors), torch.empty(0))
    if step < 6 and any(t.dim() == 4 and t.shape[0] == case.num_tokens for t in tried.tensors):
        return 1
    if step == 3 and tried.numbers:
        wanted = sorted((case.b, case.num_tokens, case.num_heads, case.head_dim))
        begun = tried.numbers[:2] == (case.b, case.num_tokens) or -1 in tried.numbers
        return 3 if begun or sorted(tried.numbers[-4:]) == wanted else 1
    if step == 4 and first.dim() == 3:
        return 3
    if step == 11 and tried.does("linear") and first.shape[-1] != case.d_out:
        return 10
    return _product(recording, tried, step) if step in (5, 8) else step


def raises_at(recording: Recording | None, failure: Failure) -> int | None:
    """The step at which a forward in progress raises, where a function of torch raised."""
    if not recording or not recording.record.failing:
        return None
    step, case = failing_step(recording, failure), recording.case
    begun = recording.record.failing[2][:2] == (case.b, case.num_tokens)
    return 3 if step == 1 and begun else step  # these two are right, what comes after them is not


def _product(recording: Recording, tried: Attempt, step: int) -> int:
    """The step at which what a product was given went wrong; the product's own if it is right."""
    b, num_heads, num_tokens, head_dim = recording.right["transpose"]["queries"].shape
    grouped = (b, num_heads, num_tokens, head_dim), (b, num_heads, head_dim, num_tokens)
    for tensor in (each for each in tried.tensors if each.dim() == 4 and each.shape not in grouped):
        for name in NAMES.values():
            origin = place(tensor, recording.right["project"][name], recording.factors)
            if origin is None:
                continue
            if recording.reached("transpose", name) and step == 5:
                return step
            if arranged(origin[0], recording.case) != "right":
                return 4 if recording.reached("view", name) else 3
    return step

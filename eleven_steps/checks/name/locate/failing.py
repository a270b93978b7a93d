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
# Parts of the names of torch's functions.
VIEWING = "view", "reshape", "flatten", "split", "chunk"
MOVING = "transpose", "permute", "swap", "movedim"
PRODUCT = "matmul", "einsum", "bmm"


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
    """The step at which forward raises: the first whose tensors it did not come to."""
    named = re.match(r"\w+: (\w+)\(\)", failure.text)  # by torch, where it was never called
    unseen = named[1] if named else "", (), ()
    tried = Attempt(*(recording.record.failing or unseen), worded_step(failure))
    if not _past_projections(recording, tried):
        return _to_projections(recording, tried)
    if not recording.scores_there:
        early = scored(recording) if recording.scores else None
        return early.step if early else _to_scores(recording, tried)
    if not recording.there("softmax", "weights"):
        return _to_weights(recording, tried)
    if not recording.there("context", "context"):
        if tried.worded == 7 and not tried.does(*PRODUCT):  # what is done to the weights
            return 7
        return _product(recording, tried, 8)
    return _to_out(recording, tried)


def raises_at(recording: Recording | None, failure: Failure) -> int | None:
    """The step at which a forward in progress raises, where a function of torch raised."""
    if not recording or not recording.record.failing:
        return None
    step, case = failing_step(recording, failure), recording.case
    begun = recording.record.failing[2][:2] == (case.b, case.num_tokens)
    return 3 if step == 1 and begun else step  # these two are right, what comes after them is not


def _past_projections(recording: Recording, tried: Attempt) -> bool:
    """Whether all three are there, or one of them is what was handed on."""
    if tried.does(*VIEWING) or all(map(recording.made, NAMES.values())):
        return True
    rights = [recording.right["project"][name] for name in NAMES.values()]
    return any(place(tensor, right) for tensor in tried.tensors for right in rights)


def _to_projections(recording: Recording, tried: Attempt) -> int:
    """Step 1 where nothing was begun, else 2, or that of a mask or a scale made beforehand."""
    if tried.worded in (6, 7):
        return tried.worded
    begun = any(held.made_of for held in recording.held)
    return 2 if tried.name or begun or tried.worded else 1


def _to_scores(recording: Recording, tried: Attempt) -> int:
    """The step, 1 or 3 to 7, at which forward raises between the projections and the scores."""
    case, tensors, numbers = recording.case, tried.tensors, tried.numbers
    if any(each.dim() == 4 and each.shape[0] == case.num_tokens for each in tensors):
        return 1
    if tried.does(*VIEWING):
        wanted = sorted((case.b, case.num_tokens, case.num_heads, case.head_dim))
        begun = numbers[:2] == (case.b, case.num_tokens)
        return 3 if begun or -1 in numbers or sorted(numbers[-4:]) == wanted else 1
    if tried.does(*MOVING):
        return 3 if tensors and tensors[0].dim() == 3 else 4
    if tried.does(*PRODUCT) or tried.name in ("mul", "__mul__"):
        return _product(recording, tried, 5)
    square = any(t.dim() > 2 and t.shape[-2:] == (case.num_tokens,) * 2 for t in tensors)
    if square and (tried.worded in (6, 7) or tried.does("mask")):
        return 6
    return tried.worded or (5 if recording.reached("transpose", "queries") else 3)


def _to_weights(recording: Recording, tried: Attempt) -> int:
    """The step, 6 to 8, at which forward raises between the scores and the weights."""
    if tried.does("mask") or tried.worded == 6:
        return 6
    if tried.does("softmax") or tried.worded == 7:
        return 7
    return _product(recording, tried, 8) if tried.does(*PRODUCT) else 6


def _to_out(recording: Recording, tried: Attempt) -> int:
    """The step, 9 to 11, at which forward raises once the context is there."""
    if not tried.name:
        return tried.worded if tried.worded in (10, 11) else 9
    if tried.does("linear"):
        return 10 if tried.tensors and tried.tensors[0].shape[-1] != recording.case.d_out else 11
    if tried.does(*MOVING):
        return 9
    return 10 if tried.does(*VIEWING) else 11


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

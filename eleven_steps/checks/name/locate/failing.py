"""Where a forward that raises goes wrong: how far it was right, and what it tried next."""

import re

import torch

from eleven_steps.checks.name.locate.follow import scored, scores_there
from eleven_steps.checks.name.locate.places import arranged, place
from eleven_steps.checks.name.locate.recording import NAMES, Followed
from eleven_steps.checks.run.isolate import Failure

WORDS = (
    (7, ("softmax", "drop", "sqrt", "** 0.5", "**0.5", "** -0.5", "**-0.5", "scale")),
    (6, ("mask", "triu", "tril", "inf", "causal")),
    (11, ("out_proj",)),
    (2, ("W_query", "W_key", "W_value")),
    (10, ("contiguous",)),
    (5, ("score",)),
)
VIEWING = "view", "reshape", "flatten", "split", "chunk"
MOVING = "transpose", "permute", "swap", "movedim"
PRODUCT = "matmul", "einsum", "bmm"


def worded_step(failure: Failure) -> int | None:
    """The step that the words of a failing line speak of, if any."""
    line = f"{failure.line} {failure.words}"
    return next((step for step, words in WORDS if any(each in line for each in words)), None)


def failing_step(way: Followed, failure: Failure) -> int:
    """The step at which forward raises: the first whose tensors it did not come to."""
    case, worded = way.case, worded_step(failure)
    told = re.match(r"\w+: (\w+)\(\)", failure.text)  # of torch, where it was never called
    name, tensors, numbers = way.record.failing or (told[1] if told else "", (), ())
    handled = any(place(each, way.project(part)) for each in tensors for part in NAMES.values())
    if not all(map(way.made, NAMES.values())) and not handled and not _does(name, VIEWING):
        begun = name or any(held.made_of for call in way.record.calls for held in call.gave)
        return worded if worded in (6, 7) else 2 if begun or worded else 1
    if not scores_there(way):
        if way.scores and (found := scored(way)):
            return found.step
        return _to_scores(way, name, tensors, numbers, worded)
    if not way.there("softmax", "weights"):
        if "mask" in name or worded == 6 or "softmax" in name or worded == 7:
            return 6 if "mask" in name or worded == 6 else 7
        return _product(way, tensors, 8) if _does(name, PRODUCT) else 6
    if not way.there("context", "context"):
        return _product(way, tensors, 8)
    if not name:
        return worded if worded in (10, 11) else 9
    if "linear" in name:
        return 10 if tensors and tensors[0].shape[-1] != case.d_out else 11
    if _does(name, MOVING):
        return 9
    return 10 if _does(name, VIEWING) else 11


def _to_scores(way: Followed, name: str, tensors, numbers, worded: int | None) -> int:
    """The step, 1 or 3 to 7, at which forward raises between the projections and the scores."""
    case = way.case
    if any(each.dim() == 4 and each.shape[0] == case.num_tokens for each in tensors):
        return 1
    if _does(name, VIEWING):
        wanted = sorted((case.b, case.num_tokens, case.num_heads, case.head_dim))
        return 3 if -1 in numbers or sorted(numbers[-4:]) == wanted else 1
    if _does(name, MOVING):
        return 3 if tensors and tensors[0].dim() == 3 else 4
    if _does(name, PRODUCT) or name in ("mul", "__mul__"):
        return _product(way, tensors, 5)
    square = any(t.dim() > 2 and t.shape[-2:] == (case.num_tokens,) * 2 for t in tensors)
    if square and (worded in (6, 7) or "mask" in name):
        return 6
    return worded or (5 if way.reached("transpose", "queries") else 3)


def _product(way: Followed, tensors: tuple[torch.Tensor, ...], step: int) -> int:
    """The step at which what a product was given went wrong; the product's own if it is right."""
    shape = way.right["transpose"]["queries"].shape
    for each in tensors:
        for name in ("queries", "keys", "values"):
            found = place(each, way.project(name), way.factors) if each.dim() == 4 else None
            if found is None or each.shape in (shape, shape[:2] + (shape[3], shape[2])):
                continue
            if way.reached("transpose", name) and step == 5:
                return step
            viewed = way.reached("view", name)
            if arranged(found[0], way.case) != "right":
                return 4 if viewed else 3
    return step


def _does(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name for word in words)

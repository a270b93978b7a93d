"""Where in forward a class goes wrong, from the numbers it computes on its way.

The right queries, keys, values, scores, weights, context and out are looked for among everything
a forward computes, in whatever shape or order: the first that is missing bounds the wrong step. It
serves classes that raise, or whose gradient is cut, where outputs tell nothing.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import nn

from helpers.attention import MultiHeadAttention
from helpers.checks.guard import Failure
from helpers.checks.looks import Call, Sizes, build, recorded
from helpers.trace import trace

# What is right if this is: the steps up to the number are done when the name is found.
MILESTONES = {"out": 11, "context": 8, "weights": 7, "scores": 5, "values": 2, "keys": 2}
MILESTONES |= {"queries": 2}

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


def worded_step(failure: Failure) -> int | None:
    """The step that the words of a failing line speak of, if any."""
    line = f"{failure.line} {failure.words}"
    return next((step for step, words in WORDS if any(each in line for each in words)), None)


def right_values(sizes: Sizes) -> dict[str, torch.Tensor]:
    """What the right class computes at sizes, by the names of MILESTONES, and x."""
    module = build(MultiHeadAttention, sizes)
    steps = {step.name: step.tensors for step in trace(module, sizes.input())}
    found = {"x": steps["shape"]["x"], **steps["project"]}
    return found | {
        "scores": steps["scores"]["scores"],
        "weights": steps["softmax"]["weights"],
        "context": steps["context"]["context"],
        "out": steps["out_proj"]["out"],
    }


def contained(values: torch.Tensor, pool: torch.Tensor) -> bool:
    """Whether every one of values is among the sorted numbers of pool."""
    values = values.flatten()
    if not len(pool):
        return False
    place = torch.searchsorted(pool, values).clamp(1, max(1, len(pool) - 1))
    after, before = pool[place.clamp(max=len(pool) - 1)], pool[place - 1]
    nearest = torch.minimum((after - values).abs(), (before - values).abs())
    return bool((nearest <= 1e-5 * (1 + values.abs())).all())


def _pool(results: Iterable[torch.Tensor | None]) -> torch.Tensor:
    numbers = [
        each.detach().to(torch.float32).flatten()
        for each in results
        if each is not None and (each.is_floating_point())
    ]
    return torch.cat(numbers).sort().values if numbers else torch.empty(0)


def done(calls: list[Call], sizes: Sizes) -> int:
    """The last step whose right numbers the calls hold: 0, 2, 5, 7, 8 or 11."""
    pool, right = _pool(call.result for call in calls), right_values(sizes)
    scale = sizes.head_dim**-0.5
    variants = {
        name: [right[name], right[name] * scale, right[name] * scale**0.5]
        if name in ("queries", "keys", "scores")
        else [right[name]]
        for name in MILESTONES
    }
    found = {name: any(contained(each, pool) for each in some) for name, some in variants.items()}
    for name in ("out", "context", "weights", "scores"):
        if found[name]:
            return MILESTONES[name]
    return 2 if found["queries"] and found["keys"] and found["values"] else 0


def failing_call(calls: list[Call]) -> Call | None:
    """The call that raised, if the exception came out of torch."""
    return calls[-1] if calls and calls[-1].failed else None


def failure_key(calls: list[Call]) -> tuple | None:
    """Shapes and numbers of the call that raised: alike in classes that are wrong alike."""
    call = failing_call(calls)
    return call and (tuple(sorted(call.shapes)), call.numbers[-4:])


def locate_failure(module: nn.Module, sizes: Sizes, failure: Failure) -> int:
    """The step at which forward raises."""
    calls = recorded(module, sizes.input())
    after, worded = done(calls, sizes), worded_step(failure)
    call = failing_call(calls)
    if call is None:
        return worded if worded and worded >= after else max(2, min(after + 1, 11))
    if after == 0:
        return worded if worded in (6, 7) else 2
    if after == 2:
        return _step_of_scores(call, calls, worded, sizes)
    if after < 8:
        masking = "mask" in call.name or worded == 6
        if after == 5 and (masking or "softmax" in call.name or worded == 7):
            return 7 if worded == 7 and not masking else 6
        return 8 if _grouped("values", calls, sizes) or "einsum" in call.name else 4
    if "linear" in call.name:
        return 10 if call.shapes[0][-1] != sizes.d_out else 11
    if _does(call, MOVING):
        return 9
    return 10 if _does(call, VIEWING) else 11


def _step_of_scores(call: Call, calls: list[Call], worded: int | None, sizes: Sizes) -> int:
    """The step, 1 or 3 to 6, at which forward raises between the projections and the weights."""
    tokens, heads = sizes.num_tokens, sizes.num_heads
    if any(len(shape) == 4 and shape[0] == tokens != sizes.b for shape in call.shapes):
        return 1
    if _does(call, VIEWING):
        wanted = sorted((sizes.b, tokens, heads, sizes.head_dim))
        return 3 if -1 in call.numbers or sorted(call.numbers[-4:]) == wanted else 1
    if _does(call, MOVING):
        return 4
    if "einsum" in call.name:
        return 4 if any(shape[1:2] == (tokens,) for shape in call.shapes) else 5
    if not _grouped("queries", calls, sizes) or not _grouped("keys", calls, sizes):
        return 4
    square = any(len(shape) > 2 and shape[-2:] == (tokens, tokens) for shape in call.shapes)
    return 6 if square and (worded in (6, 7) or "mask" in call.name) else 5


def _does(call: Call, words: tuple[str, ...]) -> bool:
    return any(word in call.name for word in words)


def _grouped(name: str, calls: list[Call], sizes: Sizes) -> bool:
    """Whether a call gave the right queries, keys or values grouped by head, scaled or not."""
    shape = sizes.b, sizes.num_tokens, sizes.num_heads, sizes.head_dim
    wanted = right_values(sizes)[name].view(shape).transpose(1, 2).flatten()
    for call in calls:
        if call.result is not None and call.result.numel() == wanted.numel():
            given = call.result.to(torch.float32).flatten()
            factor = (given @ wanted) / (wanted @ wanted)
            if factor > 0 and (given - factor * wanted).abs().max() < 1e-4 * wanted.abs().max():
                return True
    return False


def locate_detached(module: nn.Module, sizes: Sizes) -> int | None:
    """The step whose result is cut out of the gradient, if a torch function cuts it."""
    right = right_values(sizes)
    layers = {"W_query": 2, "W_key": 2, "W_value": 2, "out_proj": 11}
    steps = {"x": 2} | {name: step for name, step in reversed(MILESTONES.items())}
    found = []
    for call in recorded(module, sizes.input().requires_grad_(), gradients=True):
        if not call.detaches or call.result is None:
            continue
        pool = _pool([call.result])
        for layer, step in layers.items():
            weight: Any = getattr(module, layer).weight.detach()
            if contained(weight, pool):
                found.append(step)
        for name, step in steps.items():
            factors = (1, sizes.head_dim**-0.5) if name in ("queries", "keys", "scores") else (1,)
            if any(contained(factor * right[name], pool) for factor in factors):
                found.append(step)
                break
        else:
            computed = "new" not in call.name and "like" not in call.name
            if computed and call.result.min() < -1e8:
                found.append(6)
    return min(found, default=None)

"""What a call at fault may have made: guesses that are tried in numbers before they are told."""

from collections.abc import Iterator

import torch

from eleven_steps.checks.judge.causes import applied
from eleven_steps.checks.judge.difference import Difference
from eleven_steps.checks.judge.path import Walk, same
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.syntax import MEET
from eleven_steps.checks.run.cases import LAYERS, close
from eleven_steps.checks.run.recording import Op


def projected_otherwise(walked: Walk, number: int, op: Op) -> Difference | None:
    """Whether a call made x times a weight as it is stored, or something of x before step 2."""
    made = [walked.trace.tensors[index] for index in op.gave]
    x, module = walked.right.scene["shape"]["x"], walked.right.scene.module
    if not made or walked.right.case.variant:
        return None
    for name in LAYERS[:3]:
        weight, bias = (getattr(getattr(module, name), part) for part in ("weight", "bias"))
        stored = [x @ weight.detach()] if x.shape[-1] == len(weight) else []
        stored += [] if bias is None else [each + bias.detach() for each in stored]
        if any(same(made[0], each, 1e-7) for each in stored):
            return Difference(2, "stored", number, op.place, values={"layer": name})
    code = applied(made[:1], x, "x")
    values = {"code": code}
    return Difference(2, "before", number, op.place, values=values) if code else None


def in_blocks(walked: Walk, number: int, op: Op, width: int) -> Difference | None:
    """What is wrong where the scores are made in blocks of keys; None where some are missing."""
    scores = walked.right.scene["scores"]["scores"]
    products = [each for each in walked.trace.ops if kind(each) in MEET and each.gave]
    made = [walked.readings[each.gave[0]].family == "scores" for each in products]
    sizes = (walked.trace.tensors[each.gave[0]].numel() for each in products)
    if (
        walked.trace.stop
        or sum(size for size, is_score in zip(sizes, made, strict=True) if is_score)
        < scores.numel()
    ):
        return None
    out = next((walked.trace.tensors[i] for i in walked.trace.returned if i is not None), None)
    guesses = () if out is None else _not_rescaled(walked, width)
    what = next((what for what, each in guesses if close(out, each)), "")
    values = {"width": width, "sums": what}
    return Difference(8, "rescaled" if what else "blocks", number, op.place, values=values)


def _not_rescaled(walked: Walk, width: int) -> Iterator[tuple[str, torch.Tensor]]:
    """The output of a softmax in blocks whose sums stay as they are when the maximum grows."""
    scene, case = walked.right.scene, walked.right.case
    scores = scene["scores"]["scores"].masked_fill(walked.right.hidden, -torch.inf)
    blocks = (scores / case.head_dim**0.5).split(width, dim=-1)
    values = scene["transpose"]["values"].split(width, dim=2)
    for what in ("sum of values", "sum of the exponentials", "two sums"):
        top, total, context = -torch.inf, 0.0, 0.0
        for block, value in zip(blocks, values, strict=True):
            new = block.amax(-1, keepdim=True).clamp(min=top)
            scale, share = (top - new).exp(), (block - new).exp()
            total = total * (1 if what != "sum of values" else scale) + share.sum(-1, True)
            context = context * (scale if "expo" in what else 1) + share @ value
            top = new
        with torch.no_grad():
            context = (context / total).transpose(1, 2).flatten(2)
            yield what, scene.module.out_proj(context)

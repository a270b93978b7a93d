"""What a call at fault may have made: guesses that are tried in numbers before they are told."""

from collections.abc import Iterator

import torch

from eleven_steps.checks.judge.path import Difference, Walk, same
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.syntax import MEET
from eleven_steps.checks.know.exercises.tasks import in_blocks as blockwise
from eleven_steps.checks.run.cases import LAYERS, close
from eleven_steps.checks.run.recording import Op


def projected_otherwise(walked: Walk, number: int, op: Op) -> Difference | None:
    """Whether a call made x times a weight as it is stored, or something of x alone."""
    made = [walked.trace.tensors[index] for index in op.gave]
    x, module = walked.right.scene["shape"]["x"], walked.right.scene.module
    if not made:
        return None
    for name in LAYERS[:3]:
        weight, bias = (getattr(getattr(module, name), part) for part in ("weight", "bias"))
        stored = [x @ weight.detach()] if x.shape[-1] == len(weight) else []
        stored += [] if bias is None else [each + bias.detach() for each in stored]
        if any(same(made[0], each, 1e-7) for each in stored):
            return Difference(2, "stored", number, op.place, values={"layer": name})
    if op.place and {walked.readings[index].family for index in op.given} - {"const"} == {"x"}:
        values = {"code": op.place.expression}
        return Difference(2, "before", number, op.place, values=values)
    return None


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
    scene = walked.right.scene
    masked = scene["scores"]["scores"].masked_fill(walked.right.hidden, -torch.inf)
    scaled, values = masked / walked.right.case.head_dim**0.5, scene["transpose"]["values"]
    one, other = {"context": _as_it_was}, {"total": _as_it_was}
    guesses = {"sum of values": one, "sum of the exponentials": other, "two sums": one | other}
    with torch.no_grad():
        for what, kept in guesses.items():
            context = blockwise(scaled, values, width, **kept)
            yield what, scene.module.out_proj(context.transpose(1, 2).flatten(2))


def _as_it_was(kept: torch.Tensor, shrink: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """What is kept, not measured from the largest score now, with what a block adds."""
    return kept + new

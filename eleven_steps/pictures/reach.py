"""Which numbers of the eleven steps depend on one another, worked out from the steps alone."""

from collections.abc import Mapping, Sequence

import torch

from eleven_steps.pictures.tensors import TracedStep

# The matrices of steps 2 and 11, (features in, features out), for those who follow them too.
MATRICES = {
    "queries": "W.W_query",
    "keys": "W.W_key",
    "values": "W.W_value",
    "out": "weight.out_proj.weight.T",
}


def reach_all(trace: Sequence[TracedStep]) -> torch.Tensor:
    """Say of all numbers which depend on which.

    That follows from the steps, not from the values: a dot product depends on all of its row and
    column, a masked score on nothing, a weight on its row's scores up to its own token (the first
    row has one score, so its weight is always 1), and the context on no later value, whose weight
    is 0. Dropout is left out: it is off outside training.

    Args:
        trace: the eleven steps of a trace, of n numbers in all; the matrices W_query, W_key and
            W_value (d_in, d_out) may stand before step 2 as a step called W, that of out_proj
            (d_out, d_out) before step 11 as one called weight.

    Returns:
        Booleans (n, n), the numbers in the order of the steps: row i is True at all numbers that
        number i comes from, and at itself.
    """
    with torch.inference_mode(False), torch.enable_grad():
        nudges = no_nudges(trace)
        for nudge in nudges.values():
            nudge.requires_grad_()
        rows, paths = [], count_paths(nudges)
        for counted in (paths[each] for each in nudges):
            one_each = torch.eye(counted.numel(), dtype=torch.float64).view(-1, *counted.shape)
            found = torch.autograd.grad(
                counted,
                nudges.values(),
                one_each,
                retain_graph=True,
                is_grads_batched=True,
                allow_unused=True,
            )
            blank = (torch.zeros(len(one_each), each.numel()) for each in nudges.values())
            whole = [b if f is None else f.flatten(1) for f, b in zip(found, blank, strict=True)]
            rows.append(torch.cat(whole, dim=1) > 0)
        return torch.cat(rows)


def no_nudges(trace: Sequence[TracedStep]) -> dict[str, torch.Tensor]:
    """Return zeros in the shape of every tensor, by "step.tensor" in the order of the steps."""
    return {
        f"{step.name}.{each}": torch.zeros(tensor.shape, dtype=torch.float64)
        for step in trace
        for each, tensor in step.tensors.items()
    }


def count_paths(nudges: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Count for every number the ways in which it depends on the nudged ones.

    Every step is a sum here, so a count is above 0 where the number would change, and the gradient
    of a count is above 0 where the number comes from.
    """
    paths = {"shape.x": nudges["shape.x"]}

    def step(key: str, counted: torch.Tensor) -> torch.Tensor:
        paths[key] = nudges[key] + counted
        return paths[key]

    def multiply(key: str, rows: torch.Tensor) -> torch.Tensor:
        made, matrix = rows.sum(-1, keepdim=True), MATRICES[key.partition(".")[2]]
        if matrix in nudges:
            paths[matrix] = nudges[matrix]
            made = made + nudges[matrix].sum(0)  # a column makes one feature of every token
        return step(key, made)

    b, num_tokens, num_heads, head_dim = nudges["view.queries"].shape
    heads = {}
    for name in ("queries", "keys", "values"):
        wide = multiply(f"project.{name}", paths["shape.x"])
        split = step(f"view.{name}", wide.reshape(b, num_tokens, num_heads, head_dim))
        heads[name] = step(f"transpose.{name}", split.transpose(1, 2))
    past = torch.ones(num_tokens, num_tokens, dtype=torch.float64).tril()
    scores = step(
        "scores.scores", heads["queries"].sum(-1)[..., None] + heads["keys"].sum(-1)[..., None, :]
    )
    masked = step("mask.masked", scores * past)
    chosen = past * (torch.arange(num_tokens) > 0)[:, None]  # one score alone decides nothing
    weights = step("softmax.weights", (masked * past).sum(-1, keepdim=True) * chosen)
    context = step("context.context", weights.sum(-1, keepdim=True) + past @ heads["values"])
    by_token = step("reformat.context", context.transpose(1, 2))
    joined = step("combine.context", by_token.reshape(b, num_tokens, num_heads * head_dim))
    multiply("out_proj.out", joined)
    return paths

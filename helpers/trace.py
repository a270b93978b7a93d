"""Record the tensors of each of the eleven steps of a forward pass."""

import inspect
from dataclasses import dataclass

import torch

from .attention import MultiHeadAttention

SHAPES = {
    "shape": "(b, num_tokens, d_in)",
    "project": "(b, num_tokens, d_out)",
    "view": "(b, num_tokens, num_heads, head_dim)",
    "transpose": "(b, num_heads, num_tokens, head_dim)",
    "scores": "(b, num_heads, num_tokens, num_tokens)",
    "mask": "(b, num_heads, num_tokens, num_tokens)",
    "softmax": "(b, num_heads, num_tokens, num_tokens)",
    "context": "(b, num_heads, num_tokens, head_dim)",
    "reformat": "(b, num_tokens, num_heads, head_dim)",
    "combine": "(b, num_tokens, d_out)",
    "out_proj": "(b, num_tokens, d_out)",
}

STEPS = tuple(SHAPES)


@dataclass(frozen=True)
class Step:
    """Hold one step of a forward pass: its number from 1 to 11, its name, its tensors by name."""

    number: int
    name: str
    tensors: dict[str, torch.Tensor]

    @property
    def letters(self) -> str:
        """Return the axes of the step's tensors in letters, such as "(b, num_tokens, d_out)"."""
        return SHAPES[self.name]


def trace(mha: MultiHeadAttention, x: torch.Tensor) -> list[Step]:
    """Run mha on x and return its eleven steps in order.

    Args:
        mha: a module whose forward takes a record, as MultiHeadAttention does.
        x: (b, num_tokens, d_in).

    Returns:
        Eleven Steps. Their tensors are detached copies, strides kept, named x | queries, keys,
        values (steps 2 to 4) | scores | masked | weights | context (8 to 10) | out.

    Raises:
        TypeError, ValueError: as mha does for an x that does not fit.
    """
    steps: list[Step] = []

    def record(name: str, **tensors: torch.Tensor) -> None:
        copies = {key: tensor.detach().clone() for key, tensor in tensors.items()}
        steps.append(Step(len(steps) + 1, name, copies))

    with torch.no_grad():
        mha(x, record=record)
    return steps


def step_source(name: str) -> str:
    """Return the lines of MultiHeadAttention.forward that are one step, without its record.

    Raises:
        ValueError: name is not one of the eleven steps.
    """
    if name not in STEPS:
        raise ValueError(f"no step is called {name!r}: expected one of {', '.join(STEPS)}")
    forward = inspect.getsource(MultiHeadAttention.forward)
    lines = forward.partition(f" {name}\n")[2].partition("\n\n")[0].splitlines()
    kept = [line.strip() for line in lines if not line.strip().startswith(("record(", "return"))]
    return "\n".join(kept)

"""What is asked of a class, and what is seen of it: plain data, which may travel."""

from dataclasses import dataclass, field
from typing import Any

import torch

from eleven_steps.checks.run.isolate import Failure

ATTRIBUTES = ("d_out", "num_heads", "head_dim")
FLOATS = {"float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}

Shapes = dict[str, tuple[int, ...]]


@dataclass(frozen=True)
class Pass:
    """One forward of a module that was built for a case."""

    x: torch.Tensor | None = None  # what is fed; the case's x if None
    train: bool = False
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # set first, by name
    gradients: bool = False  # of a known sum of the output
    dtype: str = ""  # that the module and x are converted to first: a name in FLOATS
    moved: str = ""  # "here" or "made": see reply._moved
    in_turn: bool = False  # whether a second text is read between the pieces of x
    seed: int = 0  # of the random numbers that forward draws
    stored: dict[str, Any] = field(default_factory=dict)  # attributes that are set first
    how: str = ""  # grad, inference, autocast; strided: x lies otherwise; copied: the module is


@dataclass(frozen=True)
class Seen:
    """What came of a Pass."""

    out: torch.Tensor | Failure  # in float32; what was raised, or came instead of a tensor
    dtype: str = ""  # the output's own
    kind: str = "tensor"  # or tuple, none, open (an ellipsis), other
    parts: tuple[Any, ...] = ()  # all that was returned
    gradients: dict[str, torch.Tensor | None] | Failure | None = None  # of x and the parameters
    changed: tuple[str, ...] = ()  # what forward wrote into: "x", "weights"
    met: bool = False  # whether tensors of two devices met
    cut: torch.Tensor | None = None  # the first one that was cut out of the gradient


@dataclass(frozen=True)
class Facts:
    """What a constructor makes of MAIN's sizes."""

    shapes: Shapes  # of the parameters of the lecture's names
    parameters: tuple[str, ...]  # the names of all of them
    tied: tuple[str, ...]  # those of the lecture's layers that share a weight
    listed: bool  # whether layers stand in a plain list
    mask: str  # parameter, trained (one that wants gradients), buffer, attribute or ""
    dropout: str  # the type of self.dropout, or ""
    sizes: dict[str, Any]  # d_out, num_heads and head_dim as they are stored, where they are
    kept: dict[str, str] = field(default_factory=dict)  # type of each attribute, or buffer
    unkept: tuple[str, ...] = ()  # names that the constructor makes, and that are no attributes
    alone: bool = True  # whether no two of the lecture's layers are one and the same
    zero: tuple[str, ...] = ()  # layers of these names whose weight begins as 0
    frozen: tuple[str, ...] = ()  # parameters of the lecture's names that want no gradient


Built = dict[bool | None, Facts]  # by qkv_bias; None where it is left out

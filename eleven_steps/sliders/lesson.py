"""The lesson's module at any size, run step by step: what most films show."""

from collections.abc import Callable, Iterable
from typing import Any

import torch

from eleven_steps.pictures import Picture, Shown
from eleven_steps.sliders.film import Film, film
from helpers.attention import MultiHeadAttention
from helpers.examples import load_whiteboard
from helpers.trace import SHAPES, Step, trace

WIDTHS = (2, 4, 6, 8, 12)

START = {"b": 1, "num_tokens": 3, "d_out": 6, "num_heads": 2}
EACH_HEAD = {"num_heads": (1, 2, 3, 6), "head": lambda num_heads: range(num_heads)}

Run = tuple[MultiHeadAttention, dict[str, dict[str, torch.Tensor]]]


def run(d_out: int = 6, num_heads: int = 2, num_tokens: int = 3) -> Run:
    """Build the lesson's module at these sizes and return it with the tensors of each step.

    At the sizes of the whiteboard its numbers are those of the notebooks (seed 123).
    """
    mha, every = traced(d_out, num_heads, num_tokens)
    return mha, {step.name: step.tensors for step in every}


def traced(
    d_out: int = 6, num_heads: int = 2, num_tokens: int = 3
) -> tuple[MultiHeadAttention, list[Step]]:
    """Build the lesson's module as run does, and return it with its trace."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        mha = MultiHeadAttention(6, d_out, 6, 0.0, num_heads)
    return mha, trace(mha, tokens(num_tokens))


def tokens(num_tokens: int = 3) -> torch.Tensor:
    """Return x (1, num_tokens, 6): the whiteboard's three tokens, then up to three made-up ones."""
    more = torch.rand(1, 3, 6, generator=torch.Generator().manual_seed(123))
    return torch.cat([load_whiteboard(), more], dim=1)[:, :num_tokens]


def at_steps(run: Run, *which: str) -> list[Shown]:
    """Name tensors of a run as "step.tensor" and get them ready to draw."""
    mha, steps = run
    shown = []
    for step, name in (one.split(".") for one in which):
        letters = SHAPES[step].strip("()").replace(",", "")
        by_head = mha.num_heads if step in ("project", "combine") else None
        shown.append(Shown(steps[step][name], name, letters, by_head, shade=step == "softmax"))
    return shown


def divisors(d_out: int, **before: Any) -> list[int]:
    """Return the numbers of heads that d_out can be split into."""
    return [n for n in range(1, d_out + 1) if d_out % n == 0]


def over_heads(draw: Callable[..., Picture], widths: Iterable[int] = WIDTHS) -> Film:
    """Put sliders for d_out and num_heads over draw(d_out, num_heads)."""
    return film(draw, START, d_out=widths, num_heads=divisors)


def split(d_out: int, num_heads: int) -> str:
    """Write num_heads times head_dim in words."""
    return f"{count(num_heads, 'head')} of {count(d_out // num_heads, 'feature')}"


def count(number: int, noun: str) -> str:
    """Write a number and a noun, in the plural unless there is one."""
    return f"{number} {noun}" + ("" if number == 1 else "s")

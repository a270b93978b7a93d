"""The lesson's module at any size, run step by step: what films and the stage show."""

import torch

from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.examples import load_whiteboard
from eleven_steps.helpers.trace import SHAPES, trace
from eleven_steps.pictures import Shown

Run = tuple[MultiHeadAttention, dict[str, dict[str, torch.Tensor]]]


def run(d_out: int = 6, num_heads: int = 2, num_tokens: int = 3) -> Run:
    """Build the lesson's module at these sizes and return it with the tensors of each step.

    At the sizes of the whiteboard its numbers are those of the notebooks (seed 123).
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        mha = MultiHeadAttention(6, d_out, 6, 0.0, num_heads)
    return mha, {step.name: step.tensors for step in trace(mha, tokens(num_tokens))}


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
        by_head = mha.num_heads if step == "combine" else None  # before the cut there is none
        shown.append(Shown(steps[step][name], name, letters, by_head, shade=step == "softmax"))
    return shown

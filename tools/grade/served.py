"""Answer, in the sandbox, the questions that the judge sends.

A learner's test gets classes that it can build and run here. Their constructors are all right. A
forward pass sends its input and parameters to the judge and gets the output back, so that nothing
in this process reveals whether a class is right.
"""

import builtins
import functools
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import torch
from torch import nn
from wire import decode, encode, encode_tensor

from eleven_steps.checks.asking import failures
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt, clock_paused
from eleven_steps.checks.asking.questions import QUESTIONS, defined

NAME = "MultiHeadAttention"
MOST = 1_000_000  # the most numbers of a tensor that is sent
Consult = Callable[[dict], Any]  # sends a request as plain data, and returns the reply
# A message must not present a line of this folder as the learner's.
failures.OUR_FILES += (f"{Path(__file__).parent}/",)


def reply(answer: Any, question: dict, consult: Consult | None = None) -> dict:
    """Answer a question that came from another process, as plain data.

    The question is a name with encoded arguments. A learner's test gets classes that use consult.
    """
    arguments = decode(question["arguments"])
    if question["question"] == "verdicts":
        numbers = count()
        arguments.append(lambda lines: served(next(numbers), lines, consult))
    return {"reply": encode(attempt(QUESTIONS[question["question"]], answer, *arguments))}


def served(number: int, lines: Sequence[str], consult: Consult) -> type:
    """Return a class with this constructor, whose forward is computed by the judge."""
    base = defined(lines)

    @functools.wraps(base.__init__)
    def make(self: nn.Module, *sizes: Any, **named: Any) -> None:
        base.__init__(self, *sizes, **named)
        self.built_with = list(sizes), dict(named)

    def forward(self: nn.Module, x: torch.Tensor) -> torch.Tensor:
        wanted = {"class": number, "sizes": self.built_with[0], "named": self.built_with[1]}
        wanted["names"] = [name for name, _ in self.named_parameters()]
        wanted["training"] = [self.training, getattr(self.dropout, "training", False)]
        wanted["dropout"] = getattr(self.dropout, "p", 0.0)
        return _Elsewhere.apply(consult, wanted, x, *self.parameters())

    own = {"__init__": make, "forward": forward, "__module__": base.__module__}
    return type(NAME, (base,), own)


class _Elsewhere(torch.autograd.Function):
    """Compute a forward and its gradients in the judge's process."""

    @staticmethod
    def forward(ctx, consult, wanted, *tensors):
        ctx.consult, ctx.wanted = consult, wanted | {"random": _plain(torch.get_rng_state())}
        ctx.save_for_backward(*tensors)
        out, random = _come(consult, ctx.wanted, tensors)
        torch.set_rng_state(random)
        return out

    @staticmethod
    def backward(ctx, gradient):
        wanted = ctx.wanted | {"gradient": _plain(gradient)}
        return None, None, *_come(ctx.consult, wanted, ctx.saved_tensors)


def _come(consult: Consult, wanted: dict, tensors: Sequence[torch.Tensor]) -> Any:
    with clock_paused():
        came = consult(wanted | {"tensors": list(map(_plain, tensors))})
        came = decode(came)
    if isinstance(came, Failure):
        name, _, text = came.text.partition(": ")
        kind = getattr(builtins, name, None)
        raise (kind if isinstance(kind, type) and issubclass(kind, Exception) else RuntimeError)(
            text
        )
    return came


def _plain(tensor: Any) -> Any:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"forward takes a tensor x, not {type(tensor).__name__}")
    if tensor.numel() > MOST:
        raise ValueError(f"a tensor has {tensor.numel():,} numbers, and {MOST:,} can travel")
    return encode_tensor(tensor.detach(), MOST)

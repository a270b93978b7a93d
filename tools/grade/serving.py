"""Run the forward of the classes that a learner's test is tried on, for the sandbox that asks."""

from collections.abc import Sequence
from typing import Any

import torch
from served import MOST
from wire import decode, encode_tensor

from eleven_steps.checks.run.ask import defined
from eleven_steps.checks.run.isolate import Failure, attempt

WIDEST = 4096  # size of a class that is built


def constructor_of(lines: Sequence[str]) -> list[str]:
    """Return the lines of a class without its forward: they are right in all of them."""
    first = next(i for i, line in enumerate(lines) if line.startswith("    def forward("))
    following = [i for i in range(first + 1, len(lines)) if lines[i][:1].strip()]
    return [*lines[:first], *lines[following[0] if following else len(lines) :]]


def serve(sources: Sequence[Sequence[str]], wanted: Any) -> Any:
    """Return as plain data what comes out of one of the classes, or its gradients.

    Args:
        sources: the lines of each class, by its number.
        wanted: what `served` asks; it may be forged.

    Raises:
        Exception: of any kind, where it is.
    """
    sizes, named = wanted["sizes"], wanted["named"]
    for size in (*sizes, *named.values()):
        if not isinstance(size, int | float) or not size <= WIDEST:
            return _plain(Failure(f"ValueError: sizes up to {WIDEST} can be served"))
    mha = defined(sources[wanted["class"]])(*sizes, **named)
    x, *parameters = map(decode, wanted["tensors"])
    mha.to(parameters[0].dtype)
    with torch.no_grad():
        for name, numbers in zip(wanted["names"], parameters, strict=True):
            mha.get_parameter(name).copy_(numbers)
    mha.training, mha.dropout.training = wanted["training"]
    mha.dropout.p = float(wanted["dropout"])
    with torch.random.fork_rng(devices=[]), torch.set_grad_enabled("gradient" in wanted):
        torch.set_rng_state(decode(wanted["random"]))
        inputs = x.requires_grad_("gradient" in wanted), *mha.parameters()
        out = attempt(mha, x)
        if isinstance(out, Failure):
            return _plain(out)
        if "gradient" not in wanted:
            return _plain((out, torch.get_rng_state()))
        given, zeros = decode(wanted["gradient"]), {"allow_unused": True, "materialize_grads": True}
        return _plain(torch.autograd.grad(out, inputs, given, **zeros))


def _plain(came: Any) -> Any:
    if isinstance(came, Failure):
        return {"failure": came.text, "line": "", "number": 0}
    return {"tuple": [encode_tensor(tensor, MOST) for tensor in came]}

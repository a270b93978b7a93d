"""Run the right class in a case, and each mistake of the catalogue."""

import functools
from dataclasses import dataclass
from typing import Any

import torch

from eleven_steps.checks.asking.cases import Case, build
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt, clock_paused
from eleven_steps.checks.changes import call_changed, changed_class
from eleven_steps.checks.mistakes import wrong_class
from eleven_steps.helpers.attention import MultiHeadAttention

Parts = tuple[Any, ...]


@dataclass(frozen=True)
class Scene:
    """Hold a recorded forward pass: scene["scores"]["scores"] is what step 5 recorded."""

    case: Case
    module: MultiHeadAttention | Failure  # the module that ran, or why it was not built
    steps: dict[str, dict[str, torch.Tensor]]  # tensors of the steps that were reached
    failure: Failure | None = None  # the error that ended the pass, if any

    def __getitem__(self, step: str) -> dict[str, torch.Tensor]:
        return self.steps[step]

    def at(self, step: str) -> Parts:
        """Return the tensors of a step, or the Failure that ended the pass before it."""
        return tuple(self.steps[step].values()) if step in self.steps else (self.failure,)


@functools.cache
def run_reference(case: Case, *mistakes: str) -> Scene:
    """Record a pass of a case's right class, or with mistakes, until it ends or raises.

    The scene is kept: nobody may write into its tensors.
    """
    steps: dict[str, dict[str, torch.Tensor]] = {}

    def record(name: str, **tensors: torch.Tensor) -> None:
        if name == "shape":  # with a cache x comes in pieces, and the last one is kept
            steps.clear()
        steps[name] = {key: tensor.detach().clone() for key, tensor in tensors.items()}

    with clock_paused(), torch.random.fork_rng(devices=[]), torch.no_grad():
        module = attempt(build, with_mistakes(case.change, *mistakes), case)
        if isinstance(module, Failure):
            return Scene(case, module, steps, module)
        out = attempt(call_changed, module, case, record)
    failure = out if isinstance(out, Failure) else None
    return Scene(case, module, steps, failure)


@functools.cache
def with_mistakes(change: str, *mistakes: str) -> type[MultiHeadAttention]:
    """Return the right class of a variant, or that class with mistakes."""
    if mistakes:
        return wrong_class(*mistakes)
    return changed_class(change) if change else MultiHeadAttention

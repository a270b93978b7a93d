"""What is right in a case, and what each mistake of the catalogue gives instead."""

import functools
from dataclasses import dataclass
from typing import Any

import torch

from eleven_steps.beyond import variants
from eleven_steps.checks.know.catalogue import class_of, edited_source, fitted
from eleven_steps.checks.run.ask import Pass, Seen, run
from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.isolate import Failure, attempt, clock_paused
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.variant import LECTURE, Variant
from eleven_steps.helpers.attention import MultiHeadAttention

Parts = tuple[Any, ...]


@dataclass(frozen=True)
class Scene:
    """One recorded forward pass of ours: scene["scores"]["scores"] is what step 5 recorded."""

    case: Case
    module: MultiHeadAttention | Failure  # what ran, or why it was not built
    steps: dict[str, dict[str, torch.Tensor]]  # those that were reached
    failure: Failure | None = None  # what stopped the pass

    def __getitem__(self, step: str) -> dict[str, torch.Tensor]:
        return self.steps[step]

    def at(self, step: str) -> Parts:
        """The tensors of a step, or what stopped the pass before."""
        return tuple(self.steps[step].values()) if step in self.steps else (self.failure,)

    @property
    def out(self) -> torch.Tensor | Failure:
        """The output, or what stopped the pass."""
        return self.failure or self.steps["out_proj"]["out"]


@functools.cache
def play(case: Case, *mistakes: str, dtype: torch.dtype = torch.float32) -> Scene:
    """Run the right class of a case, or that with mistakes of the catalogue, as far as it comes.

    The scene is kept: nobody may write into its tensors.
    """
    steps: dict[str, dict[str, torch.Tensor]] = {}

    def record(name: str, **tensors: torch.Tensor) -> None:
        if name == "shape":  # with a cache x comes in pieces, and the last one is kept
            steps.clear()
        steps[name] = {key: tensor.detach().clone() for key, tensor in tensors.items()}

    def made() -> MultiHeadAttention:
        return build(planted(*mistakes, variant=case.variant), case).to(dtype)

    with clock_paused(), torch.random.fork_rng(devices=[]), torch.no_grad():
        module = attempt(made) if mistakes else made()  # a mistake may raise, two may collide
        if isinstance(module, Failure):
            return Scene(case, module, steps, module)
        out = attempt(called, module, case, case.x.to(dtype), record=record)
    if isinstance(out, Failure):
        return Scene(case, module, steps, out)
    if "out_proj" in steps and isinstance(out, torch.Tensor):
        steps["out_proj"] = {"out": out.detach().clone()}
    return Scene(case, module, steps)


@functools.cache
def planted(*mistakes: str, variant: Variant = LECTURE) -> type[MultiHeadAttention]:
    """The class of a variant with the mistakes, built once."""
    if mistakes:
        return class_of(edited_source(*mistakes, variant=variant), variant)
    return fitted(vars(variants), variant) if variant else MultiHeadAttention


@functools.cache
def right_alone(case: Case, **how: Any) -> Seen:
    """What the right class of a case gives in one Pass, asked once."""
    return once_right(case, Pass(**how))[0]


def once_right(case: Case, *passes: Pass, mistakes: tuple[str, ...] = ()) -> list[Seen]:
    """The same of the right class, or of one with mistakes planted."""
    with clock_paused():
        return run(planted(*mistakes, variant=case.variant), case, 0.0, passes)

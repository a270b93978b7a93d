"""Forward passes to ask about: the right class, or one with a mistake planted, on known inputs."""

import functools
from dataclasses import dataclass

import torch

from helpers.attention import MultiHeadAttention
from helpers.checks.guard import Failure, attempt
from helpers.checks.mistakes import wrong_class
from helpers.examples import load_whiteboard


@dataclass(frozen=True)
class Sizes:
    """The sizes of one forward pass, how a message calls it, and the seed of its numbers."""

    where: str
    b: int
    num_tokens: int
    d_in: int
    d_out: int
    num_heads: int
    qkv_bias: bool = False
    whiteboard: bool = False
    seed: int = 7

    @property
    def head_dim(self) -> int:
        """Features of a head."""
        return self.d_out // self.num_heads

    @property
    def constructor(self) -> tuple[int, int, int, float, int]:
        """What a class is built with: d_in, d_out, context_length, dropout, num_heads."""
        return self.d_in, self.d_out, self.num_tokens + 3, 0.0, self.num_heads


def fresh(b: int, num_tokens: int, d_in: int, d_out: int, num_heads: int, seed: int = 7) -> Sizes:
    """Return sizes, with qkv_bias, that messages call by their letters."""
    where = f"with b = {b}, num_tokens = {num_tokens}, d_in = {d_in}, d_out = {d_out}, "
    where += f"num_heads = {num_heads}"
    return Sizes(where, b, num_tokens, d_in, d_out, num_heads, qkv_bias=True, seed=seed)


# The whiteboard comes first, since a learner has it before them; the others tell the usual wrong
# versions apart and leave nothing to be gained by writing the whiteboard's numbers down.
PLACES = (
    Sizes("on the whiteboard", 1, 3, 6, 6, 2, whiteboard=True, seed=123),
    Sizes("with other numbers of the same sizes", 1, 3, 6, 6, 2),
    fresh(2, 7, 5, 12, 3),
    fresh(3, 4, 8, 8, 2),
)


@dataclass(frozen=True)
class Scene:
    """One recorded forward pass: scene["scores"]["scores"] is what step 5 recorded.

    Args:
        sizes: of the pass.
        module: what ran, or the Failure of its constructor.
        steps: the tensors of each step that was reached.
        failure: what stopped the pass, or None.
    """

    sizes: Sizes
    module: MultiHeadAttention | Failure
    steps: dict[str, dict[str, torch.Tensor]]
    failure: Failure | None

    def __getitem__(self, step: str) -> dict[str, torch.Tensor]:
        return self.steps[step]


@functools.cache
def play(sizes: Sizes, *mistakes: str) -> Scene:
    """Run MultiHeadAttention, or the class with these mistakes planted, as far as it comes.

    The scene is kept: nobody may write into its tensors.

    Args:
        sizes: equal ones, of which the seed is part, get equal weights and an equal x.
        mistakes: identifiers of the catalogue.
    """
    cls = wrong_class(*mistakes) if mistakes else MultiHeadAttention
    steps: dict[str, dict[str, torch.Tensor]] = {}

    def record(name: str, **tensors: torch.Tensor) -> None:
        steps[name] = {key: tensor.detach().clone() for key, tensor in tensors.items()}

    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(sizes.seed)
        module = attempt(cls, *sizes.constructor, qkv_bias=sizes.qkv_bias)
        if isinstance(module, Failure):
            return Scene(sizes, module, steps, module)
        x = 3 * torch.randn(sizes.b, sizes.num_tokens, sizes.d_in)
        out = attempt(module, load_whiteboard() if sizes.whiteboard else x, record=record)
    return Scene(sizes, module, steps, out if isinstance(out, Failure) else None)

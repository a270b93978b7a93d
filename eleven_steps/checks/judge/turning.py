"""At which base positions turn queries and keys, and how many features of a head: measured."""

from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.run.cases import Case, numbers_of
from eleven_steps.checks.run.contract import changes_of
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.places import numbers_in

HEADS, FEATURES = 3, 80  # of which usual shares are even
USUAL_TURN = 1e4, 1.0
NEAR, SLOW = 1e-3, 1e-6


def turns_unsaid(variant: str) -> bool:
    """Whether queries and keys turn, and it is not said at which base."""
    return "rope" in changes_of(variant) and not numbers_of(variant, "rope")


def measured(reading: type[Adapted]) -> tuple[float, float] | None:
    """The base of the angles, and the share of a head's features that turn; None if neither shows.

    Sequence f has queries of feature f alone, and one key of it: its score at query n goes as
    cos(n w + c), whatever is turned, and of three in a row the outer ones sum to 2 cos(w) times
    the middle one. Where the key has all features, the score moves with w even where w is small.
    """
    size = HEADS * FEATURES
    case = Case(FEATURES, 4, size, size, HEADS, 8, variant=reading.variant)
    module = attempt(build, reading, case)
    if isinstance(module, Failure) or module.W_key.in_features < size:  # it reads a latent
        return None
    same, every = torch.eye(FEATURES), torch.ones(FEATURES, FEATURES)
    some = [_scores(module.double(), keys) for keys in (same, every)]
    if any(number is None for number in some):
        return None
    (one, two, three), all_of_it = some
    turn = ((one + three) / two / 2).clamp(-1, 1).arccos()  # of each feature, from token to token
    moving = (all_of_it - all_of_it[0]).abs().amax(0)
    moves = moving > SLOW * moving[0]
    again = moves & ((turn - 1).abs() < NEAR)  # the first pair turns by 1
    if not again[0] or again.sum() != 2:
        return None
    step = int(again[1:].int().argmax()) + 1  # from a feature to the one that turns with it
    ratio = float(turn[2] if step == 1 else turn[1])
    many = 2 * step if step > 1 else int(moves.sum())
    if step == 1 and ratio ** (many / 2) < SLOW:  # the others turn too slowly to be seen
        many = FEATURES
    base = ratio ** (-many / 2) if 0 < ratio < 1 else 0.0
    near = float(f"{base:.1e}")  # a number as one chooses it
    return (near if abs(base / near - 1) < NEAR else base, many / FEATURES) if base > 1 else None


def _scores(module: Adapted, keys: torch.Tensor) -> torch.Tensor | None:
    """Scores of queries 1, 2 and 3 with the key of token 1, (3, FEATURES); None where none show.

    Args:
        module: in double precision; where other keys are 0, weights tell scores.
        keys: (FEATURES, FEATURES), in column f that of sequence f.
    """
    x = torch.zeros(FEATURES, 4, HEADS * FEATURES).double()
    x[:, :, :FEATURES] = torch.eye(FEATURES)[:, None]  # feature f in sequence f
    x[:, :, FEATURES : FEATURES + 4] = torch.eye(4)  # and which token it is
    x[:, 1, FEATURES + 4 : 2 * FEATURES + 4] = torch.eye(FEATURES)
    spread = 0.05 if "cap" in module.variant else 3.0  # small where a cap would bend the scores
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.startswith("called."):
                parameter.fill_(float("norm" in name))
        module.W_query.weight[:FEATURES, :FEATURES] = spread * torch.eye(FEATURES)
        module.W_key.weight[:FEATURES, FEATURES + 4 : 2 * FEATURES + 4] = spread * keys
        module.W_value.weight[:4, FEATURES : FEATURES + 4] = torch.eye(4)
        module.out_proj.weight.copy_(torch.eye(HEADS * FEATURES))
        out = attempt(module, x)
    if not isinstance(out, torch.Tensor) or out.shape != x.shape:
        return None
    logs = out[..., :4].log()
    return torch.stack([logs[:, n, 1] - logs[:, n, 0 if n == 1 else n] for n in (1, 2, 3)])


def slips(base: float, module: Any) -> bool:
    """Whether nobody chooses such a base: a root was taken, or a power.

    One below the usual is chosen where the code of the module, or what it keeps, says it, and does
    not say its square.
    """
    kept = (getattr(thing, "__dict__", {}) for thing in (module, getattr(module, "config", None)))
    said = numbers_in(module, *kept) if isinstance(module, nn.Module) else set()
    chosen = base >= USUAL_TURN[0] or base in said and base**2 not in said
    return base != float(f"{base:.1e}") or not chosen

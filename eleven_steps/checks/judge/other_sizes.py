"""What a class from elsewhere does with sizes besides the lecture's: a base, a window, a width.

At which base positions turn queries and keys, and how many features of a head, is measured.
"""

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.adapt.built import fields_of
from eleven_steps.checks.adapt.vocabulary import SIZE_OF
from eleven_steps.checks.judge.callee import Callee, unlike
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, once
from eleven_steps.checks.run.cases import Case, cases_of, close
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.places import numbers_in

NUM_HEADS, FEATURES = 3, 80  # of which usual shares are even
USUAL_TURN = 1e4, 1.0
EQUAL, SLOW = 1e-3, 1e-6
OTHER_BASE = 5e5
OTHER_WINDOW, UNMET = 2, (11, 13)  # lengths of texts that were not asked about before


def measured(wrapper: type[Adapted], num_tokens: int = 4) -> tuple[float, float] | None:
    """The base of the angles, and the share of a head's features that turn; None if neither shows.

    In a text of so many tokens it is measured at the first four.

    Sequence f has queries of feature f alone, and one key of it: its score at query n goes as
    cos(n w + c), whatever is turned, and of three in a row the outer ones sum to 2 cos(w) times
    the middle one. Where the key has all features, the score moves with w even where w is small.
    """
    size = NUM_HEADS * FEATURES
    case = Case(FEATURES, 4, size, size, NUM_HEADS, 8, variant=wrapper.variant)
    module = attempt(build, wrapper, case)
    if isinstance(module, Failure) or module.W_key.in_features < size:  # it reads a latent
        return None
    same, every = torch.eye(FEATURES), torch.ones(FEATURES, FEATURES)
    some = [_scores(module.double(), keys, num_tokens) for keys in (same, every)]
    if any(number is None for number in some):
        return None
    (one, two, three), all_of_it = some
    turn = ((one + three) / two / 2).clamp(-1, 1).arccos()  # of each feature, from token to token
    moving = (all_of_it - all_of_it[0]).abs().amax(0)
    moves = moving > SLOW * moving[0]
    again = moves & ((turn - 1).abs() < EQUAL)  # the first pair turns by 1
    if not again[0] or again.sum() != 2:
        return None
    step = int(again[1:].int().argmax()) + 1  # from a feature to the one that turns with it
    ratio = float(turn[2] if step == 1 else turn[1])
    many = 2 * step if step > 1 else int(moves.sum())
    if step == 1 and ratio ** (many / 2) < SLOW:  # the others turn too slowly to be seen
        many = FEATURES
    base = ratio ** (-many / 2) if 0 < ratio < 1 else 0.0
    near = float(f"{base:.1e}")  # a number as one chooses it
    return (near if abs(base / near - 1) < EQUAL else base, many / FEATURES) if base > 1 else None


def _scores(module: Adapted, keys: torch.Tensor, num_tokens: int) -> torch.Tensor | None:
    """Scores of queries 1, 2 and 3 with the key of token 1, (3, FEATURES); None where none show.

    Where other keys are 0, weights tell scores. Keys have in column f that of sequence f.
    """
    x = torch.zeros(FEATURES, num_tokens, NUM_HEADS * FEATURES).double()
    x[:, :4, :FEATURES] = torch.eye(FEATURES)[:, None]  # feature f in sequence f
    x[:, :4, FEATURES : FEATURES + 4] = torch.eye(4)  # and which token it is
    x[:, 1, FEATURES + 4 : 2 * FEATURES + 4] = torch.eye(FEATURES)
    spread = 0.05 if "cap" in module.variant else 3.0  # small where a cap would bend the scores
    with torch.no_grad():
        for name, parameter in module.named_parameters():
            if not name.startswith("called."):
                parameter.fill_(float("norm" in name))
        module.W_query.weight[:FEATURES, :FEATURES] = spread * torch.eye(FEATURES)
        module.W_key.weight[:FEATURES, FEATURES + 4 : 2 * FEATURES + 4] = spread * keys
        module.W_value.weight[:4, FEATURES : FEATURES + 4] = torch.eye(4)
        module.out_proj.weight.copy_(torch.eye(NUM_HEADS * FEATURES))
        out = attempt(module, x)
    if not isinstance(out, torch.Tensor) or out.shape != x.shape:
        return None
    logs = out[..., :4].log()
    return torch.stack([logs[:, n, 1] - logs[:, n, 0 if n == 1 else n] for n in (1, 2, 3)])


def odd_base(base: float, module: Any) -> bool:
    """Whether nobody chooses such a base: a root was taken, or a power.

    One below the usual is chosen where the code of the module, or what it keeps, says it, and does
    not say its square.
    """
    kept = (getattr(thing, "__dict__", {}) for thing in (module, getattr(module, "config", None)))
    said = numbers_in(module, *kept) if isinstance(module, nn.Module) else set()
    chosen = base >= USUAL_TURN[0] or base in said and base**2 not in said
    return base != float(f"{base:.1e}") or not chosen


# What a constructor is told: another base, another window, wider heads


def another_base(callee: Callee) -> Iterator[Finding | None]:
    """Positions turn at the base that a module is told, and so they do in a copy of it."""
    wrapper, variant = callee.wrapper, callee.wrapper.variant
    told_by = base_of(wrapper)
    if wrapper.call.turns or "rope" not in variant or not told_by:
        return
    other, told = _told(wrapper, **{told_by: OTHER_BASE}), {"base": OTHER_BASE}
    one, two = (seen.out for seen in once(other, callee.case, Pass(), Pass(how="copied")))
    yield unlike(two, one, "copy_of_base", **told)
    first = measured(wrapper)
    if first and measured(other) == first:
        yield say("another_base", first=first[0], **told)
    turned = f"rope:{OTHER_BASE:.0f}:{variant.rope[1]}"
    if not isinstance(one, Failure):
        right = play(replace(callee.case, variant=variant.but(rope=turned))).out
        yield unlike(one, right, "base_in_part", **told)


def base_of(wrapper: type[Adapted]) -> str:
    """By what a constructor is told the base of its angles: our name, or that of its parameter."""
    if told_as(wrapper, "base"):
        return "base"
    usual, signature = wrapper.variant.rope[0], attempt(inspect.signature, wrapper.build)
    every = () if isinstance(signature, Failure) else signature.parameters.values()
    return next((e.name for e in every if e.name not in SIZE_OF and e.default == usual), "")


def base_unused(wrapper: type[Adapted]) -> str:
    """Say that a class which is right without positions is told a base for nothing."""
    name, main = told_as(wrapper, "base"), cases_of(wrapper.variant).main
    if not name or "rope" in wrapper.variant:
        return ""
    other = _told(wrapper, base=OTHER_BASE)
    one, two = (once(asked, main, Pass())[0].out for asked in (wrapper, other))
    same = close(one, two) and close(one, play(main).out)
    return wording("base_unused", name=name) if same else ""


def wider_heads(callee: Callee) -> Iterator[Finding | None]:
    """Heads may be wider than d_out / num_heads where a constructor is told how wide."""
    if not {"head_dim", "d_out", "num_heads"} <= callee.wrapper.asked:
        return
    case, wide = callee.case, replace(callee.case, d_out=2 * callee.case.d_out)
    mine = attempt(build, callee.wrapper.but(widened=2), case)
    if isinstance(mine, Failure):
        return
    with torch.no_grad():
        right = build(planted(variant=callee.variant), wide)
        right.out_proj = mine.out_proj  # back to d_out
        out, wanted = attempt(called, mine, case, case.x), called(right, wide, case.x)
    if not isinstance(out, Failure):
        sizes = {"head_dim": wide.head_dim, "usual": case.head_dim}
        yield unlike(out, wanted, "wider_heads", **sizes)


def another_window(callee: Callee) -> Iterator[Finding | None]:
    """Another module, of another window, that was called with as long a text, changes nothing."""
    if not told_as(callee.wrapper, "window"):
        return
    after, alone = (replace(callee.case, num_tokens=n, context_length=1200) for n in UNMET)
    other = once(_told(callee.wrapper, window=OTHER_WINDOW), after, Pass())[0].out
    if isinstance(other, Failure) or close(other, play(after).out):  # whatever its window
        return
    one, two = (once(callee.wrapper, case, Pass())[0].out for case in (after, alone))
    if close(two, play(alone).out):
        yield unlike(one, play(after).out, "another_window")


def told_as(wrapper: type[Adapted], size: str) -> str:
    """The parameter of a constructor, or the field of its config, that is told a size; or ""."""
    signature = attempt(inspect.signature, wrapper.build)
    names = [] if isinstance(signature, Failure) else [*signature.parameters]
    names += sorted(fields_of(wrapper.build))
    return next((name for name in names if SIZE_OF.get(name) == size), "")


def _told(wrapper: type[Adapted], **sizes: float) -> type[Adapted]:
    return wrapper.but(choice=wrapper.choice | sizes)

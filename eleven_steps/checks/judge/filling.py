"""A class that is right as it is called: is it right as well where it is told what is filling?"""

from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch

from eleven_steps.checks.adapt.calls import (
    FILLED,
    INTEGERS,
    KINDS,
    MASKS,
    OF_EACH,
    PADS,
    InPieces,
    Padded,
)
from eleven_steps.checks.judge.again import Again
from eleven_steps.checks.judge.say import Finding
from eleven_steps.checks.know.right import planted
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import cases_of, close
from eleven_steps.checks.run.contract import combined
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build


class Filling(NamedTuple):
    """What a class gives that is told what is filling, in one of two modules or in both."""

    # With a mask that hides nothing; with one that hides a token in the middle of a text and the
    # last of another; with that again, by the module that got the first. Empty if it cannot be told
    right: list[bool] = []
    same: bool = True  # whether both masks give the same
    wrote: bool = False  # whether x is another then


def padded(again: Again) -> Iterator[Finding | None]:
    """Each parameter that may say what is filling does, also where a text comes in pieces."""
    for name in [each for each in again.left if PADS.fullmatch(each) or each in MASKS[:-1]]:
        way = yield from _padded(again, name)
        if way is None:
            continue
        if again.pieces:
            told = {"name": name, "past": again.pieces.past}
            both = _with_filling(again, replace(again.pieces, way=way))
            yield _said(all(both.right), "wrong_padded_in_pieces", **told)
        again.known.add(name)
        again.notes.append(wording("right_padded", name=name, kind=way.kind))


def _padded(again: Again, name: str) -> Generator[Finding | None, None, Padded | None]:
    """Say what is wrong with a parameter, and return the way to use it with which it is right.

    Nothing is said of a class with which no form of it runs.
    """
    wrong = ""
    for way in Padded.of(again.reading.call, [name]):
        good, same, wrote = _with_filling(again, way)
        if not good or not PADS.fullmatch(name) and same:
            continue  # it may be of another kind: only its name would say that it pads
        if all(good):
            text = wording("input_changed_there", call=f"`{name}`")
            yield Finding(1, text) if wrote else None
            yield _of_integers(again, way)
            return way
        told = "wrong_padded_filling" if good[0] else "wrong_padded_nothing"
        told = "mask_kept" if all(good[:2]) else told
        wrong = min(wrong, told) if wrong else told
    yield _said(not wrong, wrong, name=name)
    return None


def each_text(again: Again) -> Iterator[Finding | None]:
    """A mask that is right if it hides the same in all texts may differ in them.

    It is asked in each shape in which it is right while it hides nothing more.
    """
    call = again.reading.call
    way = getattr(call, "way", call)
    if not getattr(way, "mask", "") or way.kind not in KINDS:
        return
    bare = replace(way, mask="", kind="", shape="")
    bare = bare if way is call else replace(call, way=bare)
    for shape in OF_EACH:
        ways = [Padded(bare, way.mask, kind, shape) for kind in KINDS]
        seen = [_with_filling(again, each) for each in ways]
        good = next((w for w, each in zip(ways, seen, strict=True) if _right(each)), None)
        if good is None:
            kept = any(each.right and all(each.right[:2]) for each in seen)
            other = any(each.right and each.right[0] and not each.same for each in seen)
            name = "mask_kept" if kept else "wrong_of_each"
            yield _said(not other, name, name=way.mask, mask=way.mask, shape=shape)
            continue
        if shape in FILLED:
            yield _of_integers(again, good)
        if (shape, way.shape) == ("(b, num_tokens)", "(num_tokens, num_tokens)"):
            both = _with_filling(again, good, as_many=True)
            yield _said(all(both.right), "mask_of_either", mask=way.mask)


def _right(seen: Filling) -> bool:
    return bool(seen.right) and all(seen.right)


def _of_integers(again: Again, way: Padded) -> Finding | None:
    """What is wrong where a mask of True and False is right, and 1 and 0, as tokenizers return."""
    if way.kind not in INTEGERS:
        return None
    right = _with_filling(again, replace(way, integers=True)).right
    return _said(all(right), "wrong_of_integers", name=way.filled)


def _said(right: bool, name: str, /, **values: Any) -> Finding | None:
    return None if right else Finding(6, wording(name, **values))


def _with_filling(again: Again, way: Padded | InPieces, as_many: bool = False) -> Filling:
    """Ask a class that is told in some way what is filling; as_many texts as tokens, if wanted."""
    variant = attempt(combined, f"{again.variant},padding")
    if isinstance(variant, Failure):
        return Filling()
    case = cases_of(variant).main
    case = replace(case, b=case.num_tokens) if as_many else case
    nothing = torch.zeros(case.b, case.num_tokens, dtype=torch.bool)
    some = nothing.clone()
    some[0, case.num_tokens // 2] = some[-1, -1] = True
    with torch.no_grad():
        right, x = build(planted(variant=variant), case), case.x
        wanted = [right(x, each) for each in (nothing, some)]
        one, two = (attempt(build, again.called(way), case) for _ in range(2))
        outs = [attempt(one, case.x, nothing), attempt(two, x, some)]
        late = attempt(one, case.x, some)
    if any(getattr(each, "shape", None) != wanted[0].shape for each in outs):
        return Filling()
    trios = zip(outs, wanted, (nothing, some), strict=True)
    good = [close(out[~f], w[~f]) for out, w, f in trios]
    good.append(not good[1] or close(late, outs[1]))
    return Filling(good, close(*outs), not torch.equal(x, case.x))

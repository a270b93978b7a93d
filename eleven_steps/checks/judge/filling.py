"""A class that is right as it is called: is it right as well where it is told what is filling?"""

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.calls import (
    FILLED,
    INTEGERS,
    KINDS,
    LENGTH,
    OF_EACH,
    SAID_ADDED,
    SHAPES,
    SUMS,
    InPieces,
    Padded,
    Way,
    kinds_of,
    said_of,
    shaped,
    shapes_said,
)
from eleven_steps.checks.adapt.vocabulary import MASKS, NAMED
from eleven_steps.checks.judge.callee import Callee, Handing, seen_of, unlike, written
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.know.right import planted
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import cases_of, close
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build

# What is wrong of a class that is told what is filling, by how far it is right
SHORT_OF = "", "wrong_padded_nothing", "wrong_padded_filling", "mask_kept", "wrong_of_expanded"


def unused(callee: Callee) -> Iterator[Finding | None]:
    """What forward offers as a mask changes something, in some form in which it runs, and stays.

    Where none runs nothing is known, and it is said that it was not tried.
    """
    x, n = callee.case.x, callee.case.num_tokens
    nothing = torch.zeros(n, n, dtype=torch.bool)
    some = nothing | (torch.arange(n) == n // 2)
    bare, own = callee.bare
    for name in filter(None, (own, *callee.left)):
        if not (name in MASKS or NAMED["pads"].fullmatch(name)):
            continue
        other = {_of_other(callee, name): nn.functional.pad(x, (0, callee.width - x.shape[2]))}
        other.pop("", None)
        ran, acting, plain = False, {}, callee.out(bare)  # a mask by its kind, and without one
        for kind, shape in itertools.product(KINDS, SHAPES | FILLED):
            if kind in acting:
                continue
            masks = [_mask(hidden, x, kind, shape) for hidden in (nothing, some)]
            handed = [mask.clone() for mask in masks]
            one, two = (callee.out(Handing(bare, {name: mask} | other)) for mask in handed)
            both = one is not None and two is not None
            # That one is there may say no more than that later tokens are hidden.
            ran = ran or both and (plain is None or close(one, plain))
            if (one is None) is not (two is None) or one is not None and not close(one, two):
                acting[kind] = masks[1]
            same = all(map(torch.equal, masks, handed))
            yield None if same else written(6, name, f"`{name}`")
        yield say("ignored", mask=name) if ran and not acting else None
        yield _said(_gone_after(callee, bare, name, acting.values()), "mask_stays", mask=name)


def _of_other(callee: Callee, name: str) -> str:
    """The parameter of another sequence that a mask is named after, which no call gives; or ""."""
    other = name.removesuffix("_mask")
    return other if other != name and other in callee.left else ""


def _gone_after(callee: Callee, bare: Any, name: str, masks: Iterable[torch.Tensor]) -> bool:
    """Whether a call without a mask gives the same after one with it, on one module."""
    run = callee.one_module(bare)
    first = run()
    outs = [(run(**{name: mask}), run())[1] for mask in masks]
    return isinstance(first, Failure) or all(close(out, first) for out in outs)


def _mask(hidden: torch.Tensor, x: torch.Tensor, kind: str, shape: str) -> torch.Tensor:
    """A mask in which all texts hide the same, and of filling all queries."""
    if shape in FILLED:
        hidden = FILLED[shape](hidden, hidden[0].expand(len(x), -1))
        return KINDS[kind](hidden, x)
    return shaped(KINDS[kind](hidden, x), shape, len(x))


def padded(callee: Callee) -> Iterator[Finding | None]:
    """Each parameter that may say what is filling does, also where a text comes in pieces."""
    for name in callee.left:
        # Of another kind only its name would say that it pads.
        sure = bool(NAMED["pads"].fullmatch(name)) and not _of_other(callee, name)
        lengths = bool(NAMED["lengths"].fullmatch(name))
        if not (sure or lengths or name in MASKS and name != "bias"):
            continue
        kinds = (LENGTH, ["(b,)"]) if lengths else (kinds_of(callee.inner, name), FILLED)
        ways = (Padded(callee.wrapper.call, name, *each) for each in itertools.product(*kinds))
        way, wrote, wrong = _form(callee, ways, sure)
        if lengths:
            as_lengths = {"wrong_padded_filling": "wrong_lengths", "wrong_padded_nothing": ""}
            wrong = as_lengths.get(wrong, wrong)
        plain = callee.out(callee.wrapper.call) if wrong else None
        if plain is not None and not close(plain, callee.right):
            wrong = "wrong_after_filling"
        yield _said(not wrong, wrong, name=name)
        if way is None:
            continue
        yield written(1, name, "its input x") if wrote else None
        yield _of_integers(callee, way)
        if callee.pieces and not lengths:
            pieces = replace(callee.pieces, way=way)
            both = _with_filling(callee, pieces)[0]
            both = both or _with_filling(callee, replace(pieces, single=True))[0]
            past = callee.pieces.past
            yield _said(all(both), "wrong_padded_in_pieces", name=name, past=past)
            callee.apart += [] if both else [f"{name} and {past}"]
        callee.settled.add(name)
        callee.notes.append(wording("right_padded", name=name, kind=way.kind))


def each_text(callee: Callee, alone: Callee | None = None) -> Iterator[Finding | None]:
    """A mask that is right if it hides the same in all texts may differ in them.

    It is asked in each shape in which it is right while it hides nothing more: one of filling
    beside what is hidden where the class is called alone.
    """
    way, (bare, mask), right = callee.wrapper.call.way, callee.bare, 0
    if not mask or callee.inner is None:
        return
    for shape in OF_EACH:
        asked = alone if alone and shape in FILLED else callee
        ways = [Padded(bare, mask, kind, shape) for kind in kinds_of(callee.inner, mask)]
        good, _, wrong = _form(asked, ways, False)
        if good is None:
            of_each = {"wrong_padded_filling": "wrong_of_each", "wrong_padded_nothing": ""}
            wrong = of_each.get(wrong, wrong)
            if not wrong and shape in shapes_said(said_of(callee.inner, mask)):
                wrong = "shape_raises" if _runs_by_chance(asked, ways) else ""
            yield _said(not wrong, wrong, name=mask, mask=mask, shape=shape)
            continue
        right += 1
        if shape in FILLED:
            yield _of_integers(asked, good)
        if (shape, way.shape) == ("(b, num_tokens)", "(num_tokens, num_tokens)"):
            both, *_ = _with_filling(asked, good, as_many=True)
            yield _said(all(both), "mask_of_either", mask=mask)
    callee.apart += [] if right else [f"{mask} that hides more in some texts"]


def _runs_by_chance(callee: Callee, ways: list[Padded]) -> bool:
    """Whether a mask runs with as many texts as heads, or as tokens, and with no other number."""
    case = replace(callee.case, variant=callee.variant.beside("padding") or callee.variant)
    counts = case.b, case.num_heads, case.num_tokens
    some = ([seen_of(callee.calling(e), replace(case, b=b), None) for e in ways] for b in counts)
    usual, *others = map(any, some)
    return not usual and any(others)


def mask_sums(callee: Callee) -> Iterator[Finding | None]:
    """What a mask of 0 and -inf is added to may get other numbers: some hide, others count."""
    way, case, changes = callee.wrapper.call, callee.case, callee.variant.names
    if not isinstance(way, Way) or way.kind not in KINDS or {"cap", "linear"} & {*changes}:
        return
    kinds = "-inf where a key is hidden", "1 where a key is hidden", *SUMS
    outs = [callee.out(replace(way, kind=kind)) for kind in kinds]
    same = [out is not None and close(out, callee.right) for out in outs]
    added = SAID_ADDED.search(said_of(callee.inner, way.mask))
    yield _said(not added or outs[0] is None or same[0], "not_added", mask=way.mask)
    if not same[0] or same[1] and not added:  # what holds truths is no sum
        return
    divisor = 1 if "unscaled" in changes else case.head_dim**0.5
    sums = SUMS[kinds[-1]](torch.zeros(2 * [case.num_tokens]), case.x) * divisor

    def record(name: str, **tensors: torch.Tensor) -> None:
        if name == "mask":  # which the softmax divides
            tensors["masked"] += sums

    yield _said(outs[2] is None or same[2], "wrong_finite", mask=way.mask)
    if outs[3] is not None:
        wanted = callee.right_with(record, callee.variant)
        yield unlike(outs[3], wanted, "wrong_added", mask=way.mask)


def _form(callee: Callee, ways: Iterable[Padded], sure: bool) -> tuple[Padded | None, bool, str]:
    """The first way with which a class is right, whether it writes into x, or else what is wrong.

    Nothing is said of a class with which no form of it runs; nor, unless it is sure that filling is
    told so, where it makes no difference.
    """
    far = 0
    for way in ways:
        good, same, wrote = _with_filling(callee, way)
        if not good or same and not sure:
            continue
        if all(good):
            dropping = 0.5 * ("dropout" in callee.wrapper.asked)
            in_eval = all(_with_filling(callee, way, dropout=dropping)[0])
            return (way, wrote, "") if in_eval else (None, False, "drops_with_mask")
        far = max(far, 1 + good.index(False))
    return None, False, SHORT_OF[far]


def _of_integers(callee: Callee, way: Padded) -> Finding | None:
    """What is wrong where a mask of True and False is right, and 1 and 0, as tokenizers return."""
    if way.kind not in INTEGERS or SAID_ADDED.search(said_of(callee.inner, way.filled)):
        return None
    right, *_ = _with_filling(callee, replace(way, integers=True))
    return _said(all(right), "wrong_of_integers", name=way.filled)


def _said(right: bool, name: str, /, **values: Any) -> Finding | None:
    return None if right else say(name, **values)


def _with_filling(
    callee: Callee, way: Padded | InPieces, as_many: bool = False, dropout: float = 0.0
) -> tuple[list[bool], bool, bool]:
    """Ask a class that is told in some way what is filling; as_many texts as tokens, if wanted.

    Returns:
        Where it is right: with a mask that hides nothing; with one that hides a token in the middle
        of a text and the last of another; with that again, by the module that got the first; where
        x is one text that is given as many. Empty if it cannot be told so. Then whether both masks
        give the same, and whether x is another one afterwards. It is noted where filling gets NaN.
    """
    variant = callee.variant.beside("padding")
    if variant is None:
        return [], True, False
    case = cases_of(variant).main
    case = replace(case, b=case.num_tokens) if as_many else case
    way = replace(way, num_heads=case.num_heads) if isinstance(way, Padded) else way
    nothing = torch.zeros(case.b, case.num_tokens, dtype=torch.bool)
    some = nothing.clone()
    ends = way.shape == "(b,)"  # filling can only stand at one end
    some[0, case.num_tokens // 2 :: 1 if ends else case.num_tokens] = some[-1, -1] = True
    some[1, 0] = not ends  # this token sees none
    some = some.flip(1) if way.kind == LENGTH[1] else some
    with torch.no_grad():
        right, x = build(planted(variant=variant), case), case.x
        alike = x[:1].expand_as(x)
        wanted = [right(*given) for given in ((x, nothing), (x, some), (alike, some))]
    one, two = (attempt(build, callee.calling(way), case, dropout) for _ in range(2))
    asked = (one, case.x, nothing), (two, x, some), (one, case.x, some), (two, alike, some)
    outs = [attempt(torch.no_grad()(module), *more) for module, *more in asked]
    outs.append(attempt(two, case.x, some))  # with gradients
    if any(getattr(out, "shape", None) != wanted[0].shape for out in outs[:2]):
        return [], True, False
    good = [close(outs[0], wanted[0])]
    seen = [out for out in (outs[1], outs[4]) if not isinstance(out, Failure)]
    good.append(all(close(out[~some], wanted[1][~some]) for out in seen))
    good.append(not good[1] or close(outs[2], outs[1]))
    good.append(isinstance(outs[3], Failure) or close(outs[3][~some], wanted[2][~some]))
    nan = wording("filling_nan")
    if all(good) and outs[1].isnan().any() and "-inf" not in way.kind and nan not in callee.notes:
        callee.notes.append(nan)
    return good, close(*outs[:2]), not torch.equal(x, case.x)

"""A class that is right as it is called: is it right as well in the other ways to call it?

First with a mask and without one, then row by row of ROWS: each row is a question that yields, one
after the other, what is wrong or None, and comes to its next line only if nothing is.
"""

import functools
import itertools
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted, takes
from eleven_steps.checks.adapt.built import flags_left, sizes_given
from eleven_steps.checks.adapt.calls import (
    BY_MODULE,
    KINDS,
    Given,
    InPieces,
    Way,
    ends_in,
    output,
    resets,
)
from eleven_steps.checks.adapt.vocabulary import FLAGS, NAMED
from eleven_steps.checks.judge.callee import Callee, Handing, seen_of, unlike, x_written
from eleven_steps.checks.judge.filling import each_text, mask_sums, padded, unused
from eleven_steps.checks.judge.foreign import Asked, best, every_wrapper, fitting
from eleven_steps.checks.judge.other_sizes import another_base, another_window, told_as, wider_heads
from eleven_steps.checks.judge.say import Finding, Outcome, say, together
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, once
from eleven_steps.checks.run.cases import Case, cases_of, close, seeded
from eleven_steps.checks.run.copies import tensors_in
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.variant import Variant

LONG_TEXTS = 1100, 1024, 512, 128, 32  # of texts in pieces, the first that runs
MASKED = 4  # ways to hand a mask over that are judged where none is right
Said = Iterator[Finding | Outcome | None]


def called_otherwise(
    asked: Asked, cached: bool, wrapper: type[Adapted], verdict: Outcome
) -> tuple[type[Adapted], Outcome]:
    """Judge a right class once more, as it may be called besides; all must be right.

    wrapper is the one with which it is right; if cached, it must be right in pieces. The wrapper
    that was judged last comes back, and the verdict, which says what was tried and what not.
    """
    if asked.call:
        return wrapper, verdict
    callee = Callee(wrapper)
    own = masked_or_not(callee, asked), constructed_otherwise(callee, asked)
    rows = unused(callee), *own, *(row(callee) for row in ROWS)
    said = next((finding for finding in itertools.chain(*rows) if finding is not None), None)
    if said is not None:
        if isinstance(said, Finding):
            said = Outcome("", "value", said.text, said.step, claims=(said.claim,))
        return callee.judged, said
    if cached and not callee.pieces:
        return wrapper, say("unread", why=wording("unread_past")).outcome("")
    own = [e.name + (" (None)" if e.default is e.empty else "") for e in callee.options]
    left = callee.left + own
    left += flags_left(wrapper.build, sizes_given(callee.case) | wrapper.choice)
    more = {"right_weights": callee.shown, "left_alone": left, "not_together": callee.apart}
    notes = callee.notes + [wording(n, names=", ".join(e)) for n, e in more.items() if e]
    first = wording("tokens_first") if wrapper.call.first else ""
    note = together(*notes, verdict.note)
    return wrapper, replace(verdict, message=together(first, verdict.message), note=note)


# With a mask, or without one


def masked_or_not(callee: Callee, asked: Asked) -> Said:
    """What is right without a mask is right with one as well, and the other way round."""
    for mask, wrappers in _masked_or_not(asked, callee.wrapper).items():
        other, said = best(wrappers)
        callee.judged, beside = other, Callee(other)
        beside.notes, beside.apart = callee.notes, callee.apart
        if not said.passed:
            calls = {"right": callee.wrapper.call.told, "wrong": other.call.told}
            same = calls["right"] == calls["wrong"]  # but for what the mask hides
            text = wording("wrong_hidden" if same else "right_otherwise", **calls)
            yield replace(said, message=together(text, said.message))
        yield from itertools.chain(each_text(beside, callee), mask_sums(beside))
        name, unmasked = "right_masked" if mask else "right_alone", other.variant.beside("full")
        # Where a mask that hides nothing shows the future, a class's own mask is left out.
        nothing = beside.out(Handing(other.call, hides=torch.zeros_like)) if mask else None
        if callee.wrapper.causal and nothing is not None and unmasked is not None:
            open_to_all = play(replace(beside.case, variant=unmasked)).out
            name = "right_masked_instead" if close(nothing, open_to_all) else name
        alone = other.call.kind in KINDS and not _hides_more(beside)  # and it is not known which
        name = "right_besides" if alone or other.call.kind == "flag" else name
        callee.notes.append(wording(name, mask=mask, name=mask, kind=other.call.kind))
        callee.tried.append(other.call)
        callee.judged = callee.wrapper


def constructed_otherwise(callee: Callee, asked: Asked) -> Said:
    """A flag of the constructor that names a path or a bias changes nothing, whichever way it is.

    Of any other it is asked whether it does: where it does, it is said that it was left as it is.
    A class that is told to hide nothing hides nothing, and that is all.
    """
    wrapper, case = callee.wrapper, callee.case
    for option in callee.options:
        if type(option.default) is not bool:
            continue
        choice, flag = {option.name: not option.default}, f"{option.name}={not option.default}"
        told = replace(asked, choice=asked.choice | choice, call=wrapper.call)
        other = fitting(told)
        callee.settled |= {option.name} if other else set()
        if not other and any(NAMED[what].fullmatch(option.name) for what in ("path", "bias")):
            some = attempt(lambda told=told: [*itertools.islice(every_wrapper(told), MASKED)])
            every = () if isinstance(some, Failure) else some
            whole = (e for e in every if not attempt(lambda e=e: [*build(e, case).unlent()]))
            other = next(whole, None)
        for where in filter(functools.partial(takes, other), cases_of(asked.variant).every):
            out = once(other, where, Pass())[0].out if other else Failure("")
            if not isinstance(out, Failure):
                yield unlike(out, play(where).out, "path_switched", name=flag)
    unmasked = asked.variant.beside("full")
    name = told_as(wrapper, "causal") if wrapper.causal and not wrapper.call.mask else ""
    if name and unmasked is not None:
        choice, case = wrapper.choice | {"causal": False}, replace(case, variant=unmasked)
        told = wrapper.but(choice=choice, causal=False, variant=unmasked)
        out = once(told, case, Pass())[0].out
        if not isinstance(out, Failure):
            yield unlike(out, play(case).out, "not_open", name=name)


def _masked_or_not(asked: Asked, wrapper: type[Adapted]) -> dict[str, list[type[Adapted]]]:
    """What is to be right beside a way to call: with each mask as well, or without one.

    A class without a mask of its own is right alone if it hides nothing: as in an encoder; and one
    that hides nothing hides what a mask says.
    """
    masked = wrapper.causal and bool(wrapper.call.mask)
    variant = asked.variant.beside("full") if masked else asked.variant.but(full="")
    if variant is None or "other" in variant:
        return {}
    runs: dict[str, list[type[Adapted]]] = {}
    right: dict[str, list[type[Adapted]]] = {}
    sure: set[str] = set()
    for other in every_wrapper(replace(asked, variant=variant)):
        alike = other.kept == wrapper.kept and other.paired == wrapper.paired
        first, mask = other.call.first == wrapper.call.first, other.call.mask
        if not alike or not first or bool(mask) is masked or mask in sure:
            continue
        beside = Callee(other)
        out = beside.out(other.call)
        if out is not None and close(out, beside.right):
            sure |= {mask} if _hides_more(beside) else set()
            right[mask] = [other] if mask in sure else right.get(mask, [other])
        elif out is not None:
            runs[mask] = [*runs.get(mask, []), other][:MASKED]
    return runs | right


def _hides_more(callee: Callee) -> bool:
    """Whether a class is right as well where its mask hides the first token from all others."""
    call, n = callee.wrapper.call, callee.case.num_tokens
    more = torch.zeros(n, n, dtype=torch.bool)
    more[1:, 0] = True

    def record(name: str, **tensors: torch.Tensor) -> None:
        if name == "mask":
            tensors["masked"].masked_fill_(more, -torch.inf)

    if call.way.kind not in KINDS:
        return True
    out = callee.out(Handing(call, hides=lambda hidden: hidden | more))
    return out is not None and close(out, callee.right_with(record, callee.variant))


# In pieces, by name


def in_pieces(callee: Callee) -> Said:
    """A text may come in pieces, each with what was kept, and go on in two ways."""
    call, runs = callee.wrapper.call, []
    if callee.inner is None or not callee.wrapper.causal or call.way.kind == "flag":
        return
    for way in InPieces.of(callee.inner, call, callee.case.d_out):
        anew = resets(callee.inner) if way.gets == "flag" else [""]
        xs = [None, callee.case.x.flip(0)][: 1 + bool(anew)]
        some = [xs, xs[:1]][: 1 + (anew != [""])]
        tries = itertools.product((way, replace(way, single=True)), some)
        way, every = next(((w, e) for w, xs in tries if (e := callee.seen(w, *xs))), (way, []))
        if not every:
            continue
        one, two = every[0].out, every[1].out.flip(0) if every[1:] else None
        if way.gets in BY_MODULE and not _goes_on(callee, way, one):
            continue
        right = close(one, callee.right)
        if right and way.gets == "flag" and anew and (two is None or not close(two, one)):
            yield say("wrong_anew", past=way.past, reset=anew[0])
        if not right or two is not None and not close(two, one):
            runs.append((way, one))
            continue
        callee.pieces = way
        forks = callee.out(replace(way, forks=way.gets not in ("dict", *BY_MODULE)))
        yield unlike(one if forks is None else forks, callee.right, "wrong_in_forks", past=way.past)
        yield x_written(every, way.past)
        other = attempt(build, callee.wrapper, callee.case), callee.case.x.flip(0)
        between = callee.out(replace(way, between=functools.partial(attempt, *other)))
        yield unlike(one if between is None else between, callee.right, "another_in_pieces")

        def at_once_after(*given: Any, way: InPieces = way) -> Any:
            way(*given)
            return call(*given)

        after = callee.out(Given(function=at_once_after, first=call.first))
        after = Failure("") if after is None else after
        yield unlike(after, callee.right, "after_pieces", past=way.past)
        most = yield from _out_to_the_end(callee, way)
        callee.notes.append(wording("right_in_pieces", past=way.past, kept=_kept(way), most=most))
        callee.tried.append(way)
        callee.settled.add(way.past)
        return
    for way, out in runs:
        yield _not_in_pieces(way, out, callee.right)
    if starts := [*filter(NAMED["start"].fullmatch, getattr(call, "plain", ()))]:
        callee.notes.append(wording("not_in_pieces", name=starts[0]))


def _out_to_the_end(callee: Callee, way: InPieces) -> Generator[Finding | None, None, int]:
    """How long a text may be whose last tokens come one by one; what is forgotten is wrong."""
    for n in LONG_TEXTS:
        case = replace(callee.case, b=1, num_tokens=n, context_length=n)
        late = replace(way, begin=n - 2)
        every = [seen_of(callee.calling(e), case, None) for e in (late, callee.wrapper.call)]
        if all(every):
            out, whole = (seen[0].out for seen in every)
            yield None if close(out, whole) else _not_in_pieces(way, out, whole)
            return n
    return callee.case.num_tokens


def _not_in_pieces(way: InPieces, out: torch.Tensor, right: torch.Tensor) -> Finding:
    off = (out - right).abs().amax((0, 2))
    values = {"token": int((off > 1e-4).int().argmax()), "num_tokens": len(off)}
    values |= {"apart": float(off.max()), "kept": _kept(way)}
    return say("wrong_in_pieces", past=way.past, **values)


def _kept(way: InPieces) -> str:
    names = {"dict": "gets_dict", "count": "gets_count", "flag": "gets_true"}
    return wording(names.get(way.gets, "gets_returned"))


def _goes_on(callee: Callee, way: InPieces, out: torch.Tensor) -> bool:
    """Whether what comes later depends on what came before: a start may only say the positions."""
    other, late = callee.case.x, callee.case.num_tokens - 1
    other[:, 0] += 1
    seen = callee.seen(way, other)
    return bool(seen) and not close(seen[0].out[:, late:], out[:, late:])


def by_name(callee: Callee) -> Said:
    """What x gives by place it gives by name."""
    every, way = callee.parameters, callee.wrapper.call
    if not every or every[0].kind is every[0].POSITIONAL_ONLY or way.names:
        return
    name = every[0].name if every[0].kind is every[0].POSITIONAL_OR_KEYWORD else "x"

    def named(module: Any, x: torch.Tensor, *more: Any) -> Any:
        return way(lambda x, *rest, **given: module(*rest, **given, **{name: x}), x, *more)

    if (out := callee.out(Given(function=named, first=way.first))) is not None:
        yield unlike(out, callee.right, "wrong_by_name", name=name)


def three_inputs(callee: Callee) -> Said:
    """Keys and values may be made of an input each, in this order, or both of another sequence."""
    names, way, case = [p.name for p in callee.parameters], callee.wrapper.call, callee.case
    of_each = NAMED["keys_of"], NAMED["values_of"]
    key, value = (next(filter(pattern.fullmatch, names), "") for pattern in of_each)
    both = filter(NAMED["keys_and_values_of"].fullmatch, callee.left)
    if other := "" if key and value else next(both, ""):
        key = value = other
    if not (key and value and isinstance(way, Way)):
        return
    xs = {"keys": seeded("keys", case.x.shape)}
    xs["values"] = xs["keys"] if other else seeded("values", case.x.shape)
    wide = [nn.functional.pad(tensor, (0, callee.width - case.d_in)) for tensor in xs.values()]
    given = [tensor.transpose(0, 1) if way.first else tensor for tensor in wide]
    alone = replace(way, names=tuple(n for n in way.names if n not in (key, value)))
    out = callee.out(Handing(alone, dict(zip((key, value), given, strict=True))))
    if out is None:
        return
    right = build(planted(variant=callee.variant), case)
    layers = {"keys": right.W_key, "values": right.W_value}
    variants = callee.variant, callee.variant.beside("full")

    def made(variant: Variant, *those: str) -> torch.Tensor:
        def record(name: str, **tensors: torch.Tensor) -> None:
            for role in those if name == "project" else ():
                tensors[role].copy_(layers[role](xs[role]))

        return callee.right_with(record, variant)

    def gives(*those: str, out: torch.Tensor = out) -> bool:
        return any(close(out, made(e, *those)) for e in variants if e is not None)

    named, both = {"key": key, "value": value}, gives(*xs)
    if other:
        yield say("half_of_other", name=other) if any(map(gives, xs)) else None
        if not both:  # it may be of another kind
            return
        twice = {other: torch.cat(2 * given[:1], dim=0 if way.first else 1)}
        longer = callee.out(Handing(alone, twice))  # each token weighs as once, if none is hidden
        if variants[1] is not None and longer is not None:
            seen = made(variants[1], *xs)
            alike = close(out, seen) is close(longer, seen)
            yield None if alike else say("other_context", name=other)
        callee.notes.append(wording("right_besides", name=other))
    elif not both:
        yield say("wrong_of_three", **named)
    else:  # the keys of the very x, and other values
        of_x = tuple(dict.fromkeys(n for n in (names[0], *way.names, key) if n != value))
        apart = callee.out(Handing(replace(way, names=of_x), {value: given[1]}))
        good = apart is None or gives("values", out=apart)
        yield None if good else say("values_of_query", **named)
    places = [p.name for p in callee.parameters if p.kind is not p.KEYWORD_ONLY]
    if {key, value} <= {*places} and 0 < places.index(value) < places.index(key):
        yield say("order_of_three", **named)
    yield from _other_kept(callee, alone, (key, value), given, out)
    callee.settled |= {key, value}


def _other_kept(
    callee: Callee, alone: Way, names: tuple[str, str], given: list[torch.Tensor], out: torch.Tensor
) -> Said:
    """What one call gets beside x has no part in the next, nor where x comes alone again."""
    run, turned = callee.one_module(alone), [tensor.flip(-1) for tensor in given]
    in_a_row = [(turned, None), (given, out)]
    in_a_row += [([], callee.right)] if names[0] not in callee.wrapper.call.names else []
    for texts, wanted in in_a_row:
        again = run(**dict(zip(names, texts, strict=False)))
        yield None if wanted is None else unlike(again, wanted, "kept_other", name=names[0])


def heads_masked(callee: Callee) -> Said:
    """What says which heads take part multiplies their weights."""
    case = callee.case
    one = torch.ones(case.num_heads)
    one[0] = 0

    def record(name: str, **tensors: torch.Tensor) -> None:
        if name == "softmax":
            tensors["weights"][:, 0] = 0

    for name in filter(NAMED["head_mask"].fullmatch, callee.left):
        for keep in (one, one[:, None, None], one[:, None, None].expand(case.b, -1, 1, 1)):
            out = callee.out(Handing(callee.wrapper.call, {name: keep}))
            if out is not None:
                right = callee.right_with(record, callee.variant)
                yield unlike(out, right, "heads_masked", name=name)
                callee.settled.add(name)
                callee.notes.append(wording("right_besides", name=name))
                break


def without_batch(callee: Callee) -> Said:
    """A forward that asks how many axes there are may get one text without its batch axis."""
    way, case = callee.wrapper.call, replace(callee.case, b=1)
    code = getattr(type(callee.inner).forward, "__code__", None)
    asks = {"dim", "ndim"} & {*getattr(code, "co_names", ())}
    if not (asks and isinstance(way, Way)) or way.first:
        return

    def alone(module: Any, x: torch.Tensor, *more: Any) -> Any:
        returned = way(lambda x, *rest, **given: module(x[0], *rest, **given), x, *more)
        return output(returned, case.d_out)[None]

    for seen in seen_of(callee.calling(Given(function=alone)), case, None):
        yield unlike(seen.out, play(case).out, "wrong_alone")


def by_ids(callee: Callee) -> Said:
    """Each text has the positions that are its own, and each document is as if it were alone."""
    case = callee.case
    tokens = torch.arange(case.num_tokens) + torch.arange(case.b)[:, None]
    rows = {"positions": (tokens + 1) % case.num_tokens, "documents": tokens // 3 % 3 + 1}
    wrong = {"positions": "wrong_positions", "documents": "wrong_documents"}
    for name, what in itertools.product(callee.left, rows):
        if not NAMED[what].fullmatch(name):
            continue
        whole, parts, plain = _with_ids(callee, name, rows[what], what == "positions")
        if whole is not None and not close(whole, plain):  # else it may be of another kind
            yield unlike(whole, parts, wrong[what], name=name)
            if what == "positions" and "rope" in callee.variant:
                later = torch.arange(1, case.num_tokens + 1).expand(case.b, -1)
                moved, *_ = _with_ids(callee, name, later, True)
                yield unlike(moved, plain, "wrong_shifted", name=name)
            callee.settled.add(name)
        elif whole is not None and name == "position_ids" and "rope" in callee.variant:
            yield None if getattr(callee.wrapper.call, "turns", ()) else say("unused_ids")


def _with_ids(
    callee: Callee, name: str, ids: torch.Tensor, each_row: bool
) -> tuple[torch.Tensor | None, ...]:
    """Outputs with ids (b, num_tokens), of each text or document alone, and without ids.

    Each text alone gets its own ids; each document gets none.
    """
    case, run = callee.case, callee.one_module(callee.wrapper.call)
    plain, _, whole = run(), run(**{name: ids.flip(0)}), run(**{name: ids})
    if getattr(plain, "shape", 0) != getattr(whole, "shape", None):
        return None, None, None
    parts = torch.zeros_like(plain)
    for i, x, own in zip(range(case.b), case.x, ids, strict=True):
        for those in [own >= 0] if each_row else [own == number for number in own.unique()]:
            part = run(x[None, those], **({name: own[None]} if each_row else {}))
            parts[i, those] = torch.nan if isinstance(part, Failure) else part[0]
    return whole, parts, plain


def flags(callee: Callee) -> Said:
    """A flag that says what else is returned or kept changes no output, whichever way it stands.

    Of weights that are returned it is said that they are right; of what is kept the next call is
    to be asked, too.
    """
    case, way, unmasked = callee.case, callee.wrapper.call, callee.variant.beside("full")
    alone = isinstance(way, Way) and way.kind not in KINDS and callee.wrapper.causal
    own = {*FLAGS} & {parameter.name for parameter in callee.parameters}
    for name in own if alone and unmasked is not None else ():
        opened = Handing(replace(way, mask="", kind=""), {name: False})
        if (out := callee.out(opened)) is not None:
            open_to_all = play(replace(case, variant=unmasked)).out
            yield unlike(out, open_to_all, "not_open", name=name)
    for parameter in callee.parameters:
        flag, value = parameter.name, not parameter.default
        keeps, table = (NAMED[what].fullmatch(flag) for what in ("flag_kept", "table"))
        if type(parameter.default) is not bool or not (keeps or table):
            continue
        handing = Handing(way, {flag: value})
        seen = callee.seen(handing)
        if keeps and value and (name := _kept_in_default(callee)):
            yield say("kept_in_default", flag=flag, name=name)
        masked = isinstance(way, Way) and way.kind in KINDS
        if masked and seen and not close(seen[0].out, callee.right):
            # A path of its own may take a mask that is added alone.
            added_alone = replace(way, kind="-inf where a key is hidden")
            seen = callee.seen(replace(handing, way=added_alone))
        if not handing.returned or not seen:
            continue
        call = f"{flag}={value}"
        yield unlike(seen[0].out, callee.right, "other_with_flag", flag=call)
        yield x_written(seen, call)
        if table and not value:
            callee.seen(handing := Handing(way))
        sure = not NAMED["table_of_scores"].fullmatch(flag)
        shown = _shown(handing.returned[-1], case, sure) if table else None
        if shown is not None:
            yield None if shown else say("other_weights_returned", flag=flag)
            callee.shown.append(flag)
        callee.settled |= {flag} if table else set()


def tables(callee: Callee) -> Said:
    """What a usual call returns beside the output is told: right weights, or not looked at."""
    handing, case = Handing(callee.wrapper.call), callee.case
    if callee.shown or not callee.seen(handing):
        return
    out = output(handing.returned[-1], case.d_out)
    rest = [tensor for tensor in tensors_in([handing.returned[-1]]) if tensor is not out]
    shown = _shown(rest, case, False)
    if shown is not None:
        yield None if shown else say("other_table_returned")
        callee.notes.append(wording("right_table"))
    elif rest and not (callee.pieces and callee.pieces.gets != "dict"):
        shapes = ", ".join(f"{tuple(tensor.shape)}" for tensor in rest)
        callee.notes.append(wording("returned_besides", shapes=shapes))


def _kept_in_default(callee: Callee) -> str:
    """The parameter whose default, which all calls share, a call with a flag wrote into."""
    defaults = {parameter.name: parameter.default for parameter in callee.parameters}
    kept = {n: e for n, e in defaults.items() if type(e) in (dict, list) and [*tensors_in([e])]}
    for default in kept.values():
        default.clear()
    return next(iter(kept), "")


def _shown(returned: Any, case: Case, sure: bool) -> bool | None:
    """Whether weights, or their mean over heads, are in a table that is returned; None for none."""
    some = [tensor for tensor in tensors_in([returned]) if ends_in(tensor, 2 * (case.num_tokens,))]
    ones = "sinks" not in case.variant  # which take a part of each row
    some = [e for e in some if sure or ones and close(e.sum(-1), torch.ones(e.shape[:-1]))]
    weights = play(case)["softmax"]["weights"]
    right = weights, weights.transpose(0, 1), weights.mean(1)
    same = [e.numel() == w.numel() and close(e.reshape(w.shape), w) for e in some for w in right]
    return any(same) if same else None


ROWS = (
    *(each_text, mask_sums, three_inputs, heads_masked, flags),
    *(another_base, wider_heads, another_window),
    *(in_pieces, tables, by_name, without_batch, padded, by_ids),
)

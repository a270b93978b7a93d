"""Judge a class as it stands elsewhere: find out how it is built, filled and called, and say so."""

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, product
from types import FunctionType
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted, adapted, norms, refusal
from eleven_steps.checks.adapt.beside import gives_tensor, ways_beside
from eleven_steps.checks.adapt.built import built, not_ours, sizes_given
from eleven_steps.checks.adapt.calls import PADS, Padded
from eleven_steps.checks.adapt.layers import ROLES, all_places, each_of, weights_found
from eleven_steps.checks.judge.again import hides_by_itself, mixes
from eleven_steps.checks.judge.classes import judged
from eleven_steps.checks.judge.constructor import in_other_order
from eleven_steps.checks.judge.differ import blamed
from eleven_steps.checks.judge.in_use import base_unused
from eleven_steps.checks.judge.instead import Unread, as_options, in_turn
from eleven_steps.checks.judge.other_calls import called_otherwise
from eleven_steps.checks.judge.read import THREE
from eleven_steps.checks.judge.say import Outcome, honestly, say, together
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, ask, is_remote, kind_of, once
from eleven_steps.checks.run.cases import LAYERS, Case, cases_of, close
from eleven_steps.checks.run.contract import changes_of, combined, sizes_besides
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, isolated

READ_WITHIN = 60.0  # for all ways to read a class together; packages load much when first called
WAYS = 4  # ways to read a wrong class that are judged, of those that get it equally far
Named = dict[str, str]  # by role


@dataclass(frozen=True)
class Asked:
    """What check_attention is given besides the class: how to build it, where to look."""

    build: Callable[..., Any]
    variant: str
    layers: dict[str, str | None] | None
    call: Callable[..., Any] | None
    choice: dict[str, Any] = field(default_factory=dict)  # what the constructor is told besides

    @property
    def guided(self) -> bool:
        """Whether it is said where to look."""
        return self.layers is not None or self.call is not None


def check_attention(
    cls: Any,
    variant: str = "",
    *,
    layers: dict[str, str | None] | None = None,
    call: Callable[..., Any] | None = None,
    causal: bool = True,
) -> Outcome:
    """Find out whether a class is multi-head attention, and if not, what is wrong.

    Its forward is recorded and followed from step to step beside MultiHeadAttention's under the
    same weights; its outputs are held against those of the catalogue's mistakes, alone and in
    pairs; gradients, dropout, state, dtypes and devices are looked at besides.

        check_attention(MyAttention)
        check_attention(MyGrouped, variant="gqa")
        check_attention(lambda d_out, num_heads: Attention(d_out, num_heads), causal=False)

    Args:
        cls: a subclass of nn.Module, built as cls(d_in, d_out, context_length, dropout, num_heads,
            qkv_bias=False) with layers W_query, W_key, W_value and out_proj; its forward takes
            x (b, num_tokens, d_in) and returns (b, num_tokens, d_out). Or any other class, or a
            function that builds a module from those of d_in, d_out, context_length, dropout,
            num_heads, head_dim and qkv_bias that it has parameters for: it is read first, and
            the note says how. Without d_in x is filled up to d_out with zeros.
        variant: the change since the lecture that cls has, by its name in checks.run.contract.
        layers: where the weights are, if that cannot be told: names of layers or parameters by
            "W_query", "W_key", "W_value", "out_proj", "qkv" or "kv", the order of axes behind a
            colon: "c_attn: h 3 d i". None for an out_proj that it lacks.
        call: call(module, x, hidden) returns the output, if a usual call does not; hidden
            (num_tokens, num_tokens) is True where a key must not be seen.
        causal: whether later tokens are hidden; False means variant "full".

    Returns:
        An Outcome. Nothing that cls does is raised, printed or left behind, and a class that takes
        too long is stopped. Its kind is "unread" where cls cannot be read.

    Raises:
        ValueError: there is no such variant, or no such layer of ours.
    """
    asked = Asked(cls, combined(variant if causal else f"{variant},full"), layers, call)
    if unknown := set(layers or {}) - ROLES.keys():
        raise ValueError(f"layers names {min(unknown)!r}: one of {', '.join(ROLES)} is expected")
    if not asked.guided and not _elsewhere(cls):
        verdict = honestly("", _judged_alone, asked)
        return _by_name(asked, verdict) if in_other_order(cls) else verdict
    return honestly("", in_turn, _judged_elsewhere, _every, asked)


def _elsewhere(cls: Any) -> bool:
    """Whether a class is not written after the lecture's, as far as its constructor's code says."""
    if is_remote(cls):
        return False
    if type(cls) is FunctionType:
        return True
    if kind_of(cls)[0] != "module class":
        return False
    return attempt(_of_another_form, cls) is True


def _of_another_form(cls: type) -> bool:
    own = filter(inspect.isfunction, (vars(each).get("__init__") for each in cls.__mro__))
    names = inspect.signature(cls)
    alone = [each for each in names.parameters.values() if each.kind is each.KEYWORD_ONLY]
    called = attempt(names.bind, *range(5), **{each.name: None for each in alone})
    if isinstance(called, Failure) and not {"d_in", "d_out"} <= names.parameters.keys():
        return True
    codes = [each.__code__ for each in own]
    said = [*(code.co_names for code in codes), *(code.co_consts for code in codes)]
    said += [each for consts in said for each in consts if isinstance(each, tuple)]
    return not {*chain(*said)} & {*LAYERS[:3]}


def _judged_alone(asked: Asked) -> Outcome:
    """Say of a class that is built and called as the lecture's is whether it is right."""
    cls, verdict = asked.build, judged(asked.build, asked.variant)
    function = attempt(lambda: vars(cls).get("forward")) if verdict.passed else None
    if not inspect.isfunction(function) or "cache" in asked.variant:
        return verdict
    every = inspect.signature(function).parameters.values()
    # A function by default, such as one that listens to the steps, is no input.
    inputs = (e for e in every if e.default is not e.empty and not callable(e.default))
    names = ", ".join(each.name for each in inputs)
    if not names:
        return verdict
    try:
        with isolated(READ_WITHIN):
            reading, *_ = _readings(asked)
            return called_otherwise(asked, False, _every, _best, reading, verdict)[1]
    except (TimeUp, Unread):
        return replace(verdict, note=wording("left_alone", names=names))


def _by_name(asked: Asked, verdict: Outcome) -> Outcome:
    """Say of a class whose constructor has another order what it is besides."""
    other = honestly("", in_turn, _judged_elsewhere, _every, asked)
    if other.kind in ("unread", "failed"):
        return verdict
    more = wording("right_by_name") if other.passed else other.message
    other = verdict if other.passed else other
    return replace(other, message=together(verdict.message, more))


def _judged_elsewhere(asked: Asked) -> Outcome:
    """Say of a class that is built and called in its own way whether it is right."""
    cached = "cache" in changes_of(asked.variant)
    # In pieces, of which the lecture's class knows only positions
    whole = asked.variant.replace("cache", "" if ":" in asked.variant else "rope")
    asked = replace(asked, variant=combined(whole))
    try:
        with isolated(READ_WITHIN):
            readings = _readings(asked)
        reading, verdict = _best(readings, asked.variant)
        if verdict.passed:
            with isolated(READ_WITHIN):
                reading, verdict = called_otherwise(asked, cached, _every, _best, reading, verdict)
    except TimeUp:
        return say("too_slow", seconds=READ_WITHIN).outcome("")
    except Unread as error:
        return _of_unread(asked, error)
    first = wording("takes_first") if _tokens_first(reading) and not verdict.passed else ""
    message = together(first, verdict.message)
    return replace(verdict, message=message, note=together(verdict.note, _note(reading, verdict)))


def _of_unread(asked: Asked, error: Unread) -> Outcome:
    """Why a class cannot be read; of one after the lecture's what is not written yet, or wrong."""
    if not _of_the_lecture(asked):
        return say("unread", why=str(error)).outcome("")
    verdict = judged(asked.build, asked.variant)
    told = "" if verdict.kind == "unfinished" else wording("unread_not_told")
    return replace(verdict, message=together(verdict.message, told))


def _of_the_lecture(asked: Asked) -> bool:
    """Whether a class is built as the lecture's, and no more is said of it."""
    names = ask(asked.build, "parameters")
    return not (asked.guided or isinstance(names, Failure)) and {"d_in", "d_out"} <= {*names}


def _best(readings: list[type[Adapted]], variant: str) -> tuple[type[Adapted], Outcome]:
    """The one of several ways to read a class with which it passes, or that explains most."""
    verdicts = []
    for reading in readings:
        verdicts.append((reading, judged(reading, variant, READ_WITHIN)))
        if verdicts[-1][1].passed:
            break
    return max(verdicts, key=lambda each: _worth(each[1]))


def _worth(verdict: Outcome) -> tuple[bool, bool, int, int]:
    """How much a verdict explains: of two at one step the one with fewer mistakes."""
    known = len(verdict.mistakes)
    return verdict.passed, bool(known), verdict.step or 0, -known


# Ways to read a class


def _readings(asked: Asked) -> list[type[Adapted]]:
    """The way to read a class with which it is right; else those that get it farthest."""
    main, hides = cases_of(asked.variant).main, None
    every, right = [], play(main).out
    for reading in _every(asked, main):
        masked = getattr(reading.call, "mask", "")
        if masked and hides:  # a mask of ours would stand in for its own
            continue
        out = once(reading, main, Pass())[0].out
        if close(out, right):
            return [reading]
        if hides is None and not (masked or isinstance(out, Failure)):
            hides = hides_by_itself(reading, main)
        tensors = (other for _, other in every if isinstance(other, torch.Tensor))
        if isinstance(out, Failure) or not any(torch.equal(out, e) for e in tensors):
            every.append((reading, out))
    if not every:
        told = "" if asked.layers else wording("unread_not_told")
        raise Unread(together(wording("unread_layout", of=asked.variant or "the lecture"), told))
    runs = [reading for reading, out in every if not isinstance(out, Failure)]
    raised = [reading for reading, out in every if isinstance(out, Failure) and out.number]
    if not runs and raised and _of_the_lecture(asked):
        return raised[:1]
    if not runs:
        raise Unread(wording("unread_call", error=every[0][1].told))
    runs = [each for each in runs if not mixes(each, main)] or runs
    reached = {reading: _reached(reading, main) for reading in runs}
    most = max(reached.values())
    farthest = [each for each in runs if reached[each] == most]
    farthest = [each for each in farthest if not _tokens_first(each)] or farthest
    # A mask that can be handed over is; without it nothing of what is done with it is seen.
    masked = [each for each in farthest if getattr(each.call, "mask", "")] or farthest
    if most == 0 and not (asked.layers and asked.call):
        raise Unread(wording("unread_projections"))
    return masked[:WAYS]


def _tokens_first(reading: type[Adapted]) -> bool:
    return getattr(reading.call, "first", False)


def _every(asked: Asked, main: Case) -> Iterator[type[Adapted]]:
    """Yield every way to read a class: where its weights are, and how it is called."""
    changes = changes_of(asked.variant)
    causal = "full" not in changes
    told = sizes_given(main) | asked.choice
    made = attempt(built, asked.build, told)
    if isinstance(made, Failure):
        why = wording("unread_build", error=made.text)
        raise Unread(together(why, _besides(asked, told, main)))
    module, names = made
    width, calls, weights, layouts = _what_is_read(asked, module, names, main)
    letters = {"3": 3, "2": 2, "d": main.head_dim, "i": width, "o": main.d_out}
    kv_heads = sizes_besides(main).get("num_kv_heads", main.num_heads)
    heads = {role: kv_heads for role in ("kv", "W_key", "W_value")}
    of_role = {role: letters | {"h": heads.get(role, main.num_heads)} for role in weights}
    if "qkv" in weights and kv_heads != main.num_heads:  # heads of all three, side by side
        of_role["qkv"] |= {"3": 1, "h": main.num_heads + 2 * kv_heads}
    turning = "rope" in changes
    pairings = (False, True) if turning else (False,)
    arounds = (False, True) if norms(module, width) else (False,)
    for around, where in product(arounds, all_places(module, weights, of_role, layouts)):
        biased = {name for place in where if place.bias for name in ROLES[place.role]}
        for paired, call in product(pairings, calls):
            yield adapted(
                type(module).__name__,
                build=asked.build,
                choice=asked.choice,
                places=where,
                call=call,
                asked=names,
                lacks=frozenset(f"{name}.bias" for name in LAYERS[:3] if name not in biased),
                causal=causal,
                variant=asked.variant,
                paired=paired,
                around=around,
                told=_read_as(where, call, *["paired"] * paired, *["around"] * around),
            )


def _what_is_read(
    asked: Asked, module: Any, names: set[str], main: Case
) -> tuple[int, list[Any], Named, Named]:
    """How wide x is, every way to call a module, the name of each role's weight, and layouts."""
    if not isinstance(module, nn.Module):
        raise Unread(wording("unread_module", name=type(module).__name__))
    width = main.d_in if "d_in" in names else main.d_out
    calls = [asked.call] if asked.call else _calls(asked, module, main, width)
    try:
        return width, calls, *_by_role(module, asked.layers)
    except Unread as error:
        padded = "padding" in changes_of(asked.variant)
        if padded or any(gives_tensor(each, module, width) for each in calls):
            raise
        raise Unread(together(str(error), wording("unread_either"))) from None


def _besides(asked: Asked, told: dict[str, Any], main: Case) -> str:
    """What else cannot be read of a class that a guess builds: a width, then heads; "" if all."""
    guess = dict(zip(not_ours(asked.build, told), (main.d_out, main.num_heads), strict=False))
    made = attempt(built, asked.build, told | guess)
    try:
        if not isinstance(made, Failure):
            _what_is_read(asked, *made, main)
    except Unread as error:
        return wording("unread_besides", what=error)
    return ""


def _calls(asked: Asked, module: nn.Module, main: Case, width: int) -> list[Any]:
    """Every way to call a module that its parameters allow, with what a variant has besides."""
    changes, first = changes_of(asked.variant), asked.choice.get("first")
    turning, causal = "rope" in changes, "full" not in changes
    calls = [*ways_beside(module, causal, turning, width, main.head_dim)]
    if first is not None:  # the order that its constructor was told
        calls = [each for each in calls if each.first is not first]
    if "other" in changes:
        calls = [each for each in calls if len(each.names) > 1]
    if "padding" in changes:
        names = [*filter(PADS.fullmatch, inspect.signature(module.forward).parameters)]
        calls = [pad for each in calls for pad in Padded.of(each, names)]
    if not calls:
        raise Unread(wording("unread_beside", what=as_options(asked.variant)))
    return calls


def _by_role(module: nn.Module, layers: dict[str, str | None] | None) -> tuple[Named, Named]:
    """The name of each role's weight, and the layouts that are told."""
    parameters, layouts = dict(module.named_parameters()), {}
    taken = {name for role in layers or () for name in ROLES[role]}
    guessed = {role: w for role, w in weights_found(module).items() if not taken & {*ROLES[role]}}
    for role, told in (layers or {}).items():
        name, _, layout = (each.strip() for each in (told or "").partition(":"))
        for weight in (name, f"{name}.weight", f"{name}_weight") if told else ():
            if each_of(weight, parameters):
                guessed[role] = [weight]
        if told and role not in guessed:
            raise Unread(wording("unread_name", name=name, found=", ".join(parameters) or "none"))
        layouts |= {role: layout} if layout else {}
    roles = [name for role, names in guessed.items() for _ in names for name in ROLES[role]]
    without_out = layers is not None and layers.get("out_proj", "") is None
    if not layers and sorted(roles) == sorted(LAYERS[:3]):  # and nothing else that could be it
        read = {*chain(*(each_of(each, parameters) for each in chain(*guessed.values())))}
        left = (each for name, each in parameters.items() if name not in read)
        without_out = all(each.squeeze().dim() < 2 for each in left)
    wanted = LAYERS[:3] if without_out else LAYERS
    if unclear := [name for name in wanted if roles.count(name) != 1]:
        those = " and ".join(filter(None, (", ".join(unclear[:-1]), unclear[-1])))
        every = ", ".join(parameters) or "none"
        raise Unread(wording("unread_layers", unclear=those, found=every))
    return {role: name for role, (name,) in guessed.items()}, layouts


def _reached(reading: type[Adapted], main: Case) -> int:
    """How much of the right way is among what a forward computes."""
    blame = blamed(reading, main)
    if blame is None:
        return 0
    read = [each for each in blame.walked.readings if each.axes]
    three = {*chain(*(e.who.split(" and ") for e in read if e.family == "projected"))}
    families = {e.family for e in read if e.right} & {"scores", "context"}
    weights = any(e.state and e.state.grown for e in read)
    return len(three & {*THREE}) + (len(families) + weights if len(three) == 3 else 0)


# What is said of it


def _read_as(where: list, call: Any, *more: str) -> str:
    layers = "; ".join([*(place.told for place in where), *map(wording, more)])
    return wording("read_as", layers=layers, call=getattr(call, "told", "call"))


def _note(reading: type[Adapted], verdict: Outcome) -> str:
    cases = cases_of(reading.variant)
    without = [] if "dropout" in reading.asked else ["dropout"]
    without += sorted(reading.lacks)
    without += [] if "d_in" in reading.asked else [wording("one_width")]
    refused: dict[str, dict[str, None]] = {}
    for case in cases.every:
        if why := refusal(reading, case):
            heads = f"d_out = {case.d_out}, num_heads = {case.num_heads}"
            refused.setdefault(why, {})[heads] = None
    without += [f"{' and '.join(those)} ({why})" for why, those in refused.items()]
    note = wording("not_tried", those="; ".join(without)) if without else ""
    ends = {place.role for place in reading.places}
    early = wording("no_out_proj") if verdict.passed and "out_proj" not in ends else ""
    told = reading.told, _left_aside(reading, cases.main), note
    return together(base_unused(reading), early, *told)


def _left_aside(reading: type[Adapted], case: Case) -> str:
    """Which dropout is not judged, in a sentence; "" if all is."""
    if "dropout" not in reading.asked:
        return ""
    first = case.d_in, case.d_out, case.context_length, 0.5, case.num_heads
    names = getattr(attempt(reading, *first, **sizes_besides(case)), "set_aside", ())
    return wording("left_aside", names=", ".join(names)) if names else ""

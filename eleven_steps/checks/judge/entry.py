"""Judge a class as it stands elsewhere: find out how it is built, filled and called, and say so."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from itertools import chain
from types import FunctionType
from typing import Any

from eleven_steps.checks.adapt.adapted import Adapted, named_as, refusal
from eleven_steps.checks.adapt.built import (
    CHOICES,
    CONFIGS,
    SIGNS,
    left_as_is,
    names_in_code,
    sizes_given,
)
from eleven_steps.checks.adapt.calls import Given
from eleven_steps.checks.adapt.layers import ROLES
from eleven_steps.checks.adapt.vocabulary import NAMED, SIZE_OF
from eleven_steps.checks.judge import foreign
from eleven_steps.checks.judge.classes import judged
from eleven_steps.checks.judge.constructor import ORDER
from eleven_steps.checks.judge.other_calls import called_otherwise
from eleven_steps.checks.judge.other_sizes import base_unused
from eleven_steps.checks.judge.right_as import each_way
from eleven_steps.checks.judge.say import Outcome, honestly, outcome_of, say, together
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import is_remote, kind_of
from eleven_steps.checks.run.cases import LAYERS, Case, cases_of
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, isolated
from eleven_steps.checks.run.making import construct
from eleven_steps.checks.run.reached import left_by
from eleven_steps.checks.run.variant import Variant


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
        variant: the change since the lecture that cls has, by its name in checks.run.variant.
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
    changed = Variant.of(variant if causal else f"{variant},full")
    asked = foreign.Asked(cls, changed, layers, call and Given(function=call))
    if unknown := set(layers or {}) - ROLES.keys():
        raise ValueError(f"layers names {min(unknown)!r}: one of {', '.join(ROLES)} is expected")
    alone = not asked.guided and not _elsewhere(cls, changed)
    how = (_judged_alone,) if alone else (each_way, _judged_elsewhere)
    verdict, left = left_by(honestly, "", *how, asked)
    named = {name: ", ".join([*some[:3], "…"][: len(some)]) for name, some in left.items() if some}
    notes = (wording(name, names=those) for name, those in named.items())
    return replace(verdict, note=together(verdict.note, *notes)) if verdict.passed else verdict


def _elsewhere(cls: Any, variant: Variant) -> bool:
    """Whether a class is not written after the lecture's, as far as its constructor's code says."""
    if is_remote(cls):
        return False
    if type(cls) is FunctionType:
        return True
    if kind_of(cls)[0] != "module class":
        return False
    return any(attempt(*ask) is True for ask in ((_signed, cls, variant), (_of_another_form, cls)))


def _of_another_form(cls: type) -> bool:
    """Whether a constructor takes other things than the lecture's, or makes none of its layers.

    By its names: one that has d_in and d_out is meant to be the lecture's, in whatever order.
    """
    own = filter(inspect.isfunction, (vars(base).get("__init__") for base in cls.__mro__))
    names = inspect.signature(cls)
    alone = [p for p in names.parameters.values() if p.kind is p.KEYWORD_ONLY]
    called = attempt(names.bind, *range(5), **{parameter.name: None for parameter in alone})
    some = [e for e in names.parameters.values() if e.kind is e.POSITIONAL_OR_KEYWORD]
    read = [SIZE_OF.get(parameter.name, "") for parameter in some]
    elsewhere = any(size and size != ours for size, ours in zip(read, ORDER, strict=False))
    elsewhere = elsewhere or any(parameter.name in CONFIGS for parameter in some)
    other = isinstance(called, Failure) or elsewhere
    if other and not {"d_in", "d_out"} <= names.parameters.keys():
        return True
    codes = [function.__code__ for function in own]
    said = [*(code.co_names for code in codes), *(code.co_consts for code in codes)]
    said += [constant for consts in said for constant in consts if isinstance(constant, tuple)]
    chosen = any(SIZE_OF.get(name) in CHOICES for name in names.parameters)  # each is tried
    return chosen or not {*chain(*said)} & {*LAYERS[:3]}


def _signed(cls: type, variant: Variant) -> bool:
    """Whether a class shows a change that it is not asked about, or has its own names for one."""
    sizes, code = {SIZE_OF.get(n): n for n in inspect.signature(cls).parameters}, names_in_code(cls)
    if not variant:
        signs = {*SIGNS, "num_kv_heads"} & {*sizes}
        return bool(signs) or any(map(NAMED["changed"].fullmatch, code))
    layers = {*variant.layers} - code
    renamed = any(sizes.get(size, size) != size for size in variant.sizes)
    return renamed or any(named_as(layer, name) for layer in layers for name in code)


def _judged_alone(asked: foreign.Asked) -> Outcome:
    """Say of a class that is built and called as the lecture's is whether it is right."""
    cls, verdict = asked.build, judged(asked.build, asked.variant)
    function = attempt(lambda: cls.forward) if verdict.passed else None
    if not inspect.isfunction(function) or "cache" in asked.variant:
        return verdict
    every = inspect.signature(function).parameters.values()
    # A function by default, such as one that listens to the steps, is no input.
    inputs = (e for e in every if e.default is not e.empty and not callable(e.default))
    options = left_as_is(cls, sizes_given(asked.main))
    names = ", ".join(parameter.name for parameter in (*inputs, *options))
    if not names:
        return verdict
    try:
        with isolated(foreign.READ_WITHIN):
            wrapper, *_ = foreign.wrappers_of(asked)
            return called_otherwise(asked, False, wrapper, verdict)[1]
    except (TimeUp, foreign.Unread):
        return replace(verdict, note=wording("left_alone", names=names))


def _judged_elsewhere(asked: foreign.Asked) -> Outcome:
    """Say of a class that is built and called in its own way whether it is right."""
    cached = "cache" in asked.variant
    try:
        with isolated(foreign.READ_WITHIN):
            asked = replace(asked, variant=_at_once(asked))
            wrappers = foreign.wrappers_of(asked)
        wrapper, verdict = foreign.best(wrappers)
        if verdict.passed:
            with isolated(foreign.READ_WITHIN):
                wrapper, verdict = called_otherwise(asked, cached, wrapper, verdict)
    except TimeUp:
        return say("too_slow", seconds=foreign.READ_WITHIN).outcome("")
    except foreign.Unread as error:
        return _of_unread(asked, error)
    first = wording("takes_first") if wrapper.call.first and not verdict.passed else ""
    message = together(first, verdict.message)
    return replace(verdict, message=message, note=together(verdict.note, _note(wrapper, verdict)))


def _at_once(asked: foreign.Asked) -> Variant:
    """What a class with a cache is right as at once: the course's turns, one from elsewhere may."""
    plain = asked.variant.but(cache="")
    if plain == asked.variant or "rope" in plain:
        return plain
    turning = asked.variant.but(cache="rope")
    shows = NAMED["changed"].fullmatch
    turns = attempt(lambda: any(map(shows, names_in_code(asked.build)))) is True
    ways = (turning, plain) if turns else (plain, turning)
    return next((way for way in ways if foreign.fitting(replace(asked, variant=way))), ways[0])


def _of_unread(asked: foreign.Asked, error: foreign.Unread) -> Outcome:
    """Why a class cannot be read; of one after the lecture's what is not written yet, or wrong."""
    if not foreign.of_the_lecture(asked):
        return say("unread", why=str(error)).outcome("")
    if error.misfit:
        return outcome_of([error.misfit])
    verdict = judged(asked.build, asked.variant)
    lost = "lost" in verdict.claims and verdict.kind != "unfinished"
    told = wording("unread_not_told") if lost else ""
    return replace(verdict, message=together(verdict.message, told))


def _note(wrapper: type[Adapted], verdict: Outcome) -> str:
    cases = cases_of(wrapper.variant)
    without = [] if "dropout" in wrapper.asked else ["dropout"]
    without += sorted(wrapper.lacks)
    without += [] if "d_in" in wrapper.asked else [wording("one_width")]
    refused: dict[str, dict[str, None]] = {}
    for case in cases.every:
        if why := refusal(wrapper, case):
            heads = f"d_out = {case.d_out}, num_heads = {case.num_heads}"
            refused.setdefault(why, {})[heads] = None
    without += [f"{' and '.join(those)} ({why})" for why, those in refused.items()]
    note = wording("not_tried", those="; ".join(without)) if without else ""
    ends = {place.role for place in wrapper.kept}
    early = wording("no_out_proj") if verdict.passed and "out_proj" not in ends else ""
    told = wrapper.told, _left_aside(wrapper, cases.main), note
    return together(base_unused(wrapper), early, *told)


def _left_aside(wrapper: type[Adapted], case: Case) -> str:
    """Which dropout is not judged, in a sentence; "" if all is."""
    if "dropout" not in wrapper.asked:
        return ""
    names = getattr(attempt(construct, wrapper, case, None, 0.5), "set_aside", ())
    return wording("left_aside", names=", ".join(names)) if names else ""

"""Judge a finished class: right, or which clause of the contract it breaks, where, and why."""

import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from eleven_steps.beyond import variants
from eleven_steps.checks.asking.cases import BIASED, MAIN, construct
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import TimeUp, attempt, isolated
from eleven_steps.checks.asking.questions import is_remote, kind_of
from eleven_steps.checks.blame import Blame, Search
from eleven_steps.checks.contract import (
    NOT_TRIED,
    OUTPUT,
    Broken,
    Clause,
    asked,
    broken_clauses,
    equal,
    expected,
)
from eleven_steps.checks.declared import Undeclared, against, case_of, is_declared
from eleven_steps.checks.match_mistakes import named_mistake
from eleven_steps.checks.mistakes import Mistake
from eleven_steps.checks.place import MOST_TOKENS, find, placed, search_class
from eleven_steps.checks.propose import is_lectures, proposal
from eleven_steps.checks.sentences import wording
from eleven_steps.checks.verdict import Verdict, described, honestly, say, say_mistake, together
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import STEPS

SECONDS = 5.0  # of processor time for an answer, for all questions together


class Unmasked(variants.VariantAttention):
    """Our class without a mask, as in an encoder."""

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        sizes = d_in, d_out, context_length, dropout, num_heads, qkv_bias
        super().__init__(*sizes, parts=[variants.Full()])


def check_attention(
    cls: Any, *, causal: bool = True, reference: Callable[..., Any] | None = None
) -> Verdict:
    """Say whether a class is right and, if not, which mistake it makes, and where.

    Args:
        cls: a class with the constructor and the layers of MultiHeadAttention, or what declare
            returns for any other class.
        causal: whether later tokens are hidden; False for an encoder.
        reference: the class to be equal to, in place of ours, with parameters of the same names. If
            its forward takes record, as VariantAttention's does, the verdict names a step.

    Returns:
        A Verdict. Nothing that cls does is raised, printed or left behind, and a class that takes
        more than 5 seconds is stopped. Its kind is "unread" where cls cannot be judged.

    Raises:
        ValueError: causal is not a bool, or is False with a reference.
    """
    if causal not in (True, False) or (reference and not causal):
        raise ValueError(f"causal is {causal!r}: expected True, or False without a reference")
    ours = MultiHeadAttention if causal else Unmasked
    return honestly(judge_class, cls, reference or ours, reference is None and causal)


def judge_class(cls: Any, reference: Any, causal: bool = True) -> Verdict:
    """Judge a finished class against a reference, within the time limit."""
    with isolated(SECONDS):
        try:
            if (verdict := _not_judged(cls, reference)) is not None:
                return verdict
            cls = against(cls, reference)
            right = expected(reference, Clause(OUTPUT, "output", case_of(cls, MAIN)))
            if right.raised:  # Nothing could be compared, and any class would pass.
                return say("no_reference", error=right.value.text)
            broken = next(broken_clauses(cls, reference, partial(case_of, cls)), None)
            note = _asked_at(cls)
            if broken is None:
                note = together(note, NOT_TRIED)
                return replace(say("class_right"), note=note, reached=len(STEPS))
            if (verdict := _misdeclared(broken)) is not None:
                return verdict
            ours = reference in (MultiHeadAttention, Unmasked)
            name = named_mistake(cls, causal, reference) if ours else (None, False)
        except TimeUp:
            return say("too_slow", seconds=SECONDS)
        return replace(_verdict(broken, *name, _place_of(cls, broken, reference)), note=note)


def _not_judged(cls: Any, reference: Any) -> Verdict | None:
    """Say why a class cannot be judged; return None if it can."""
    sort, name = kind_of(cls)
    if sort == "open":
        return say("open")
    if sort == "module":
        return say("built_already")
    if sort not in ("module class", "callable"):
        return say("no_class", name=name)
    if asked(cls, Clause(OUTPUT, "output", MAIN)).value is ...:
        return say("open")
    ours = reference in (MultiHeadAttention, Unmasked)
    if ours and not is_remote(cls) and not is_declared(cls) and not is_lectures(cls):
        return Verdict("unread", f"{wording('undeclared')}\n{proposal(cls)}")
    return None


def _asked_at(cls: Any) -> str:
    """Say which sizes of the contract a declared class does not have."""
    case = case_of(cls, MAIN), case_of(cls, BIASED)
    width = case[0].d_in != MAIN.d_in and wording("one_width")
    bias = case[0] == case[1] and wording("biased" if case[0].qkv_bias else "unbiased")
    return together(width or "", bias or "")


def _misdeclared(broken: Broken) -> Verdict | None:
    """Say what does not fit in a declaration; return None if nothing is wrong with it."""
    value = broken.reply.value
    if isinstance(value, Failure) and value.kind == Undeclared.__name__:
        return say("misdeclared", why=value.text.partition(": ")[2])
    return None


def _place_of(cls: Any, broken: Broken, reference: Any) -> tuple[Blame, Search] | None:
    """Find where the output goes wrong; return None if no place is found."""
    short = broken.clause.case.num_tokens <= MOST_TOKENS
    if is_remote(cls) or broken.clause.promise != OUTPUT or not short or not records(reference):
        return None
    return find(lambda: search_class(cls, broken.clause.case, reference))


def records(reference: Any) -> bool:
    """Say whether a reference's forward takes record, so that each step's tensors are known."""
    module = attempt(construct, reference, MAIN)
    return attempt(lambda: "record" in inspect.signature(module.forward).parameters) is True


def _verdict(
    broken: Broken, mistake: Mistake | None, sure: bool, place: tuple[Blame, Search] | None
) -> Verdict:
    """Put together the clause, the name of the mistake and the place."""
    found = place and place[0]
    known = mistake and found and found.step in mistake.steps
    if mistake and not sure and found and not known:
        mistake = None
    if known and found.misnamed:  # a wrong name is used, and the mistake's sentence would not help
        named = (mistake.identifier,)
        verdict = replace(placed(Verdict("mistake", step=found.step), *place), mistakes=named)
    elif mistake:
        step = found.step if known else mistake.step
        verdict = say_mistake(mistake.sentence, mistake.identifier, step)
        verdict = placed(verdict, *place) if known else verdict
    elif found:
        kind = "error" if broken.reply.raised else "value"
        verdict = placed(Verdict(kind, step=found.step), *place)
    else:
        verdict = of_clause(broken)
    return replace(verdict, reached=max((verdict.step or 1) - 1, 0))


def of_clause(broken: Broken) -> Verdict:
    """Say which promise is broken, and how the reply differs from the right one."""
    clause, value = broken.clause, broken.reply.value
    gets, expected = differences(value, broken.right)
    expected = expected if broken.right is not None else ""
    wrong = wording("clause", promise=clause.promise, where=clause.case.where)
    kind = "error" if isinstance(value, Failure) else "value"
    verdict = Verdict(kind, wrong=wrong, gets=gets, expected=expected, step=clause.step)
    if isinstance(value, Failure) and value.line:
        return replace(verdict, line=value.number, code=value.line)
    return verdict


def differences(value: Any, right: Any) -> tuple[str, str]:
    """Compare a reply with the right one: return what you get, and what is expected."""
    if isinstance(value, Failure):
        return f"an error: {value.text}.", ""
    if isinstance(value, dict) and isinstance(right, dict):
        for name in right | value:
            if not equal(value.get(name), right.get(name)):
                one, other = differences(value.get(name), right.get(name))
                return f"`{name}`: {one}", other
    if isinstance(value, torch.Tensor) and isinstance(right, torch.Tensor):
        if value.shape != right.shape:
            return f"{tuple(value.shape)}.", f"{tuple(right.shape)}."
        if value.dtype != right.dtype:
            return f"{value.dtype}.", f"{right.dtype}."
        if value.is_meta:
            return "no numbers.", "numbers."
        off = (~torch.isclose(value, right, 1e-4, 1e-5, equal_nan=True)).nonzero()
        at = tuple(off[0].tolist()) if len(off) else (0,) * value.dim()
        return f"{value[at].item():.4f} at {list(at)}.", f"{right[at].item():.4f}."
    return f"{_named(value)}.", f"{_named(right)}."


def _named(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, torch.Tensor):
        return f"a tensor {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_named, value))})"
    return str(value) if isinstance(value, str | bool | int | float) else described(value)

"""Judge a class of somebody else's in each way it can be built, and find what it is right as."""

import contextlib
import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted, is_norm, named_as
from eleven_steps.checks.adapt.beside import turned_by
from eleven_steps.checks.adapt.built import CHOICES, SIGNS, built, choices, sizes_given
from eleven_steps.checks.adapt.layers import role_of
from eleven_steps.checks.adapt.vocabulary import NAMED, WORDS
from eleven_steps.checks.judge.callee import joins
from eleven_steps.checks.judge.differ import blamed
from eleven_steps.checks.judge.foreign import (
    READ_WITHIN,
    SEARCHING,
    SECOND_LOOKS,
    Asked,
    Unread,
    as_options,
    every_wrapper,
    fitting,
)
from eleven_steps.checks.judge.other_sizes import USUAL_TURN, measured, odd_base
from eleven_steps.checks.judge.say import Outcome, outcome_of, say, together
from eleven_steps.checks.judge.syntax import op_name
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, ask, once
from eleven_steps.checks.run.cases import close, seeded
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, isolated, silenced
from eleven_steps.checks.run.making import build
from eleven_steps.checks.run.recording import Trace
from eleven_steps.checks.run.variant import ADDED, LECTURE, Variant

SHOWN = {name: WORDS[name].split()[0] for name in CHOICES}
SHOWN |= {"relative": "relative positions", "factor": "a factor of"}
# What is tried where a class is not right as it is asked about: changes that need no sign of them.
UNSIGNED = ("full", "rope", "rope,full")
NORMS = "rms_norm", "layer_norm", "normalize"
MOST_READ, MEASURED = 1000, 24  # ways to read: to look for some that turn, and to measure
Judge = Callable[[Asked], Outcome]


def each_way(judge: Judge, asked: Asked) -> Outcome:
    """Judge a class in each way that it can be built, silently, and say what may be meant."""
    with silenced():
        verdict = _each_way(judge, asked)
    meant = "no_mask" in verdict.mistakes and "right as" not in verdict.claims
    return replace(verdict, note=together(verdict.note, wording("meant_so") if meant else ""))


def _each_way(judge: Judge, asked: Asked) -> Outcome:
    """Judge a class in each way that it can be built; say of a wrong one what it is right as."""
    try:
        module, sized = _module_and_sizes(asked)
    except TimeUp:
        return say("too_slow", seconds=READ_WITHIN).outcome("")
    if turned := _flag_turned(asked, sized):
        return outcome_of([say("some_biases_always", those=", ".join(turned))])
    some = list(choices(sized))
    ways = [replace(asked, choice=choice) for choice in some]
    turning = _turning(ways[0])
    if turning:
        ways = [replace(option, variant=turning) for option in ways]
    verdict = _of_all(judge, ways, some)
    if turning:
        if verdict.passed and odd_base(base := turning.rope[0], module):
            verdict = replace(outcome_of([say("other_base", base=base)]), note=verdict.note)
        elif verdict.passed:
            text = wording("right_turning", how=_changes(turning))
            verdict = replace(verdict, message=together(text, verdict.message))
    if verdict.passed:
        return _with_few_heads(judge, ways[0], verdict, module, sized)
    way = ways[-1 if verdict.kind == "unread" else 0]  # the first may not run
    others = _candidates(asked, module, sized)
    late = verdict.mistakes and (verdict.step or 0) > 6  # a mask may be a call's to hand over
    here = "beyond" in verdict.claims or late and fitting(way)
    instead = None if here else _instead(judge, way, verdict, others)
    if instead is not None:
        return instead
    return verdict if verdict.kind in ("unread", "failed") else _beyond(ways[0], verdict)


def _flag_turned(asked: Asked, sized: set[str]) -> list[str]:
    """The biases that are there without qkv_bias and not with it, * for any number."""
    told = ({"qkv_bias": bias} for bias in (False, True) if "qkv_bias" in sized)
    made = [attempt(built, asked.build, sizes_given(asked.main) | more) for more in told]
    names = [{n for n, _ in e[0].named_parameters()} for e in made if not isinstance(e, Failure)]
    odd = sorted(names[0] - names[1]) if len(names) == 2 else ()
    return [*dict.fromkeys(re.sub(r"\.\d+\.", ".*.", n) for n in odd if n.endswith("bias"))]


def _beyond(asked: Asked, verdict: Outcome) -> Outcome:
    """What is said of a wrong class: that it is not judged, where more than an Asked takes part."""
    named = _taking_part(asked)
    unsure = not named or named[0] == "normed"
    if unsure and verdict.claims == ("made",) and not _compares(asked):
        named = "no_table", []
    if not named or verdict.mistakes and named[0] in ("constant", "positions", "normed"):
        return verdict
    text, names = named
    why = wording(text, names=", ".join(names), asked=asked.variant or "the lecture") + "."
    why = together(why, _right_without(asked, names) if text == "takes_part" else "")
    return replace(say("unread", why=why).outcome(""), note=verdict.note)


def _module_and_sizes(asked: Asked) -> tuple[Any, set[str]]:
    """A module, and which of our sizes it asks for; None where it cannot be built."""
    with isolated(READ_WITHIN):
        made = attempt(built, asked.build, sizes_given(asked.main))
    return (None, set()) if isinstance(made, Failure) else made


def _of_all(judge: Judge, ways: list[Any], some: list[dict]) -> Outcome:
    """The verdict on all ways in which a class can be built: right only where all are."""
    verdicts = [judge(ways[0])]
    for way in ways[1:]:
        verdicts.append(judge(way) if bool(fitting(way)) != verdicts[0].passed else verdicts[0])
    return _worst(verdicts, some)


def _worst(verdicts: list[Outcome], some: list[dict]) -> Outcome:
    if not some[0]:
        return verdicts[0]
    order = sorted(verdicts, key=lambda verdict: (verdict.kind == "unread", verdict.passed))
    worst, told = order[0], [_in_words(choice) for choice in some]
    at = verdicts.index(worst)
    others = [name for index, name in enumerate(told) if index != at]
    right = [told[i] for i, verdict in enumerate(verdicts) if verdict.passed]
    if worst.passed and others:
        note = wording("built_same", choice=told[at], others=" or ".join(others))
    elif right and not worst.passed:
        note = wording("built_other", choice=told[at], others=" or ".join(right))
    else:
        note = wording("built_so", choice=told[at])
    return replace(worst, note=together(worst.note, note))


def _in_words(choice: dict[str, Any]) -> str:
    shown = {SHOWN[name]: "last" if value == -1 else value for name, value in choice.items()}
    return ", ".join(f"{name} {value}" for name, value in shown.items())


# What it is right as


def _candidates(asked: Asked, module: Any, sized: set[str]) -> Iterator[Variant]:
    """Yield the variants that a class might be right as, those of few changes first."""
    own = asked.variant.names
    module = module if isinstance(module, nn.Module) else nn.Module()
    parameters = dict(module.named_parameters())

    def has(layer: str) -> bool:
        return any(named_as(layer, name) for name in parameters)

    main = asked.main
    must = [e for e in ("norm", "sinks", "gate", "latent") if all(map(has, ADDED[e]))]
    queries = (e for name, e in parameters.items() if role_of(name) == "W_query")
    must += ["gate"] if any(len(e) == 2 * main.d_out for e in queries) else []
    whole = any(named_as("query_norm", n) and len(e) == main.d_out for n, e in parameters.items())
    few = any(named_as("W_gate", n) and len(e) == main.num_heads for n, e in parameters.items())
    ones = {"norm": whole, "gate": few}
    must = [f"{change}:1" if ones.get(change) else change for change in must]
    if any((m := named_as("query_norm", name)) and m[1] == ".bias" for name in parameters):
        must = ["norm:2" if change == "norm" else change for change in must]
    bare = (n for n, e in module.named_modules() if is_norm(e) and not [*e.parameters()])
    must += ["norm:0"] if any(named_as("query_norm", name) for name in bare) else []
    if any(NAMED["value_norm"].fullmatch(name) for name, _ in module.named_modules()):
        must.append("vnorm")
    one = {main.head_dim, main.head_dim * (main.num_heads + 2)}  # rows of keys, or of all three
    if any(len(e) in one for e in parameters.values() if e.dim() > 1):
        must.append("gqa:1")
    signs = [change for size, change in SIGNS.items() if size in sized]
    more = [",".join(e) for n in range(len(signs) + 1) for e in itertools.combinations(signs, n)]
    for scale, base, sign in itertools.product(("", "unscaled"), ("", *UNSIGNED), more):
        variant = LECTURE.beside(*own, *must, scale, base, sign)
        if variant not in (None, asked.variant):
            yield variant


def _instead(
    judge: Judge, asked: Asked, verdict: Outcome, variants: Iterable[Variant]
) -> Outcome | None:
    """The verdict on a class that gives what is right with another variant; None if none is.

    Where it is wrong in other cases as that, it may be right with a sign of it besides.
    """
    nearest = None
    for variant in variants:
        if nearest and not nearest[0] < {*variant.names}:
            continue
        other = replace(asked, variant=variant)
        if turning := _turning(other):
            odd = odd_base(turning.rope[0], _module_and_sizes(asked)[0])
            variant = LECTURE if odd else turning
            other = replace(asked, variant=variant)
        if variant and fitting(other):
            said, how = judge(other), as_options(variant)
            if said.passed and not verdict.mistakes and _drops(asked, other):
                return verdict  # what it makes is right, and is not used
            if said.passed:
                text = wording("right_as", changes=_changes(variant, asked.variant), how=how)
                if verdict.mistake is None and _masks(asked, other):
                    return Outcome("", "value", wording("wrong_hidden"), 6, note=verdict.note)
                alone = verdict.mistakes == ("no_scale",) and _scales_by_1(asked)
                if verdict.mistake is None or alone:  # it differs first where the change begins
                    return replace(verdict, message=text, step=None, mistakes=())
                both = text, verdict.message
                if "unscaled" in variant:  # a scale is forgotten oftener than left out
                    both = both[::-1]
                return replace(verdict, message=together(*both), claims=("right as",))
            sure = said.mistake or not verdict.mistake or "ignored" in said.claims
            if said.kind != "unread" and sure:
                text = together(wording("asked_as", how=how), said.message)
                nearest = {*variant.names}, other, replace(said, message=text)
    return _beyond(*nearest[1:]) if nearest else None


def _scales_by_1(asked: Any) -> bool:
    """Whether a class says that nothing divides its scores: what it calls its scale is 1."""
    module = _module_and_sizes(asked)[0]
    some = [vars(e) for e in module.modules()] if isinstance(module, nn.Module) else []
    said = [held.get(name) for held in some for name in ("scale", "scaling")]
    return any(type(factor) in (int, float) and factor == 1 for factor in said)


def _masks(asked: Asked, other: Asked) -> bool:
    """Whether a class that is right with no token hidden does something with what a call hides."""
    wrapper = fitting(other) if asked.call else None
    if wrapper is None or wrapper.causal or "full" in asked.variant:
        return False
    hiding = wrapper.but(causal=True)
    main = other.main
    one, two = (once(way, main, Pass())[0].out for way in (wrapper, hiding))
    return not close(one, two)


def _drops(asked: Asked, other: Asked) -> bool:
    """Whether a class that is right as something else makes what is right as asked, in vain."""
    wrapper = fitting(other)
    if wrapper is None:
        return False
    causal = "full" not in asked.variant
    own = wrapper.but(causal=causal, variant=asked.variant)
    blame = blamed(own, asked.main)
    return bool(blame and blame.found and blame.found.reason == "idle")


def _turning(asked: Asked) -> Variant | None:
    """The variant with the base and the share at which it turns, if that is not the usual."""
    found = None
    told = "rope" not in asked.variant.changes or asked.variant.numbers("rope")
    if told or fitting(asked):
        return None
    with contextlib.suppress(TimeUp, Unread), isolated(SEARCHING):
        every = [e for e in itertools.islice(every_wrapper(asked), MOST_READ) if not e.paired]
        every = [e for e in every if not getattr(e.call, "mask", "")] or every
        found = next(filter(None, map(measured, every[:MEASURED])), None)
    if not found or found == USUAL_TURN:
        return None
    base, share = found
    rope = f"rope:{base:.{0 if base == round(base) else 3}f}"
    rope += f":{share:g}" if share < 1 else ""
    return asked.variant.but(rope=rope)


def _changes(variant: Variant, own: Variant = LECTURE) -> str:
    more = Variant(tuple(change for change in variant.given if change not in own.given)).names
    (base, share), rope = variant.rope, "RoPE"
    rope += f" at base {base:,.0f}" if base != 1e4 else ""
    rope += f" of {share:.4g} of a head's features" if share < 1 else ""
    heads = "MQA" if variant.numbers("gqa") else "GQA"
    names = {"full": "no token hidden", "rope": rope, "gqa": heads, "alibi": "ALiBi"}
    of_norms = {(1,): " over all heads", (0,): " without weights", (2,): " that are LayerNorms"}
    norms = "norms of queries and keys" + of_norms.get(variant.numbers("norm"), "")
    names |= {"norm": norms, "cap": "a cap on scores", "unscaled": "scores that are not divided"}
    names |= {"vnorm": "norms of values", "latent": "keys and values made from a latent"}
    of_gate = " of one number for each head" if variant.numbers("gate") else ""
    names |= {"window": "a window", "gate": f"a gate{of_gate}"}
    return " and ".join(names.get(change, change) for change in more)


# What was not tried, and what takes part


def _with_few_heads(
    judge: Judge, asked: Asked, verdict: Outcome, module: nn.Module, sized: set[str]
) -> Outcome:
    """Judge a right class with fewer heads of keys, where it can have them; say what was not."""
    note, turning = "", asked.variant.beside("rope")
    if turned_by(module) and {"rope", "latent"}.isdisjoint(asked.variant.names):
        note = "" if turning is None else wording("turning", how=as_options(turning))
    grouped = asked.variant.beside("gqa")
    if "num_kv_heads" in sized and grouped is not None:
        other, how = replace(asked, variant=grouped), as_options(grouped)
        if fitting(other):
            note = together(wording("few_heads", how=how), note)
        elif (said := judge(other)).kind in ("unread", "failed"):
            note = together(wording("few_heads_not"), note)
        elif not said.passed:
            text = wording("few_heads_wrong", how=how)
            return replace(said, message=together(text, said.message))
    return replace(verdict, note=together(verdict.note, note, _begins(asked)))


def _begins(asked: Asked) -> str:
    """Say which parameters beside our layers take part in a right class, as they begin."""
    wrapper = fitting(asked)
    if wrapper is None:
        return ""
    main = asked.main
    module = build(wrapper, main)
    names = _moving(module.unlent(), module(main.x))
    return wording("begins", names=", ".join(names)) if names else ""


def _taking_part(asked: Asked) -> tuple[str, list[str]] | None:
    """What takes part that an Asked does not have: the name of its sentence, and names in it.

    These are parameters beside those of our layers, norms that have none, positions in a way of
    their own, and a second sequence whose keys stand beside those of x; or x takes no part.
    """
    main, own = asked.main, asked.variant.numbers("norm") == (0,)  # norms that have no weights
    with contextlib.suppress(TimeUp, Unread), isolated(SEARCHING):  # it may not be written yet
        for wrapper in itertools.islice(every_wrapper(asked), SECOND_LOOKS):
            module = attempt(build, wrapper, main)
            if isinstance(module, Failure):
                continue
            left, norms = module.unlent(), [] if own else _norms_called(module)
            with torch.no_grad():  # some begin as what changes nothing, or as whatever memory holds
                for name, parameter in left.items():
                    parameter.copy_(seeded(name, parameter.shape))
            out = attempt(module, main.x)
            if isinstance(out, torch.Tensor) and out.requires_grad:
                if names := [*_moving(left, out), *norms]:
                    return "takes_part", names
                if names := [] if own else _norms_in(wrapper, asked):
                    return "normed", names
                if close(out, out[:1, :1].expand_as(out)):
                    return "constant", []
                if _stands(wrapper, asked):
                    return "positions", []
                return ("joined", [*wrapper.call.names[1:]]) if joins(wrapper, main) else None
    return None


def _compares(asked: Asked) -> bool:
    """Whether a forward makes a number for each query and key, at once or some in each call."""
    main = asked.main
    if "cache" in asked.variant:  # in pieces, none can
        return True
    n, rows = main.num_tokens, main.b * main.num_heads
    with contextlib.suppress(TimeUp, Unread), isolated(SEARCHING):
        for wrapper in itertools.islice(every_wrapper(asked), SECOND_LOOKS):
            trace = ask(wrapper, "trace", main, False)
            if isinstance(trace, Trace) and trace.stop is None:
                made = Counter()  # numbers, by call
                for op in trace.ops:
                    made[op.place, op.name] += sum(trace.tensors[e].numel() for e in op.gave)
                pairs = {rows * n * n, rows * n * (n + 1) // 2}  # all, or those not hidden
                pairs.add(rows * n * main.num_heads)  # of heads, where tokens stand before them
                shapes = [[*e.shape] for e in trace.tensors if e.is_floating_point()]
                at_once = any(shape.count(n) > 1 for shape in shapes)
                return at_once or not pairs.isdisjoint(made.values())
    return True


def _stands(wrapper: type[Adapted], asked: Asked) -> bool:
    """Whether a class that speaks of positions weighs by them, and not as RoPE does.

    All queries are the same, and all keys: what the last token sees then weighs the same without
    positions, in any order. Where a base can be measured it is RoPE, and something else is wrong.
    """
    case = asked.main
    module, x = build(wrapper, case), case.x
    own = dir(module.called.inner)
    if "rope" in case.variant or not any(map(NAMED["of_positions"].fullmatch, own)):
        return False
    x[..., 0] = 1
    with torch.no_grad():
        for layer in (module.W_query, module.W_key):
            layer.weight[:, 1:] = 0
        outs = [attempt(called, module, case, given) for given in (x, x.flip(1))]
    same = attempt(lambda: close(*(out[:, -1] for out in outs)))
    turning = wrapper.but(variant=Variant(("rope",)))
    return same is False and not measured(turning)


def _norms_called(module: Adapted) -> list[str]:
    """The names of norms without parameters, put down while the module is called."""
    called: list[str] = []
    for name, layer in module.called.inner.named_modules():
        if is_norm(layer) and not [*layer.parameters()]:
            keep = called.append
            layer.register_forward_hook(lambda *_, name=name, keep=keep: keep(name))
    return called


def _norms_in(wrapper: type[Adapted], asked: Asked) -> list[str]:
    """The functions of torch that a forward calls as norms of features, without parameters."""
    trace, main = ask(wrapper, "trace", asked.main, True), asked.main
    ops = trace.ops if isinstance(trace, Trace) else ()
    bare = (op for op in ops if op_name(op) in NORMS and len(op.given) == 1)
    wide = main.head_dim, main.d_out, main.d_in
    of_features = (op for op in bare if trace.tensors[op.gave[0]].shape[-1] in wide)
    return [*dict.fromkeys(f"`{op_name(op)}`" for op in of_features)]


def _right_without(asked: Asked, names: list[str]) -> str:
    """Say as what a class gives what is right once parameters are left aside; "" if as nothing."""
    for variant in (asked.variant, asked.variant.beside("full")):
        if variant is not None and fitting(replace(asked, variant=variant, aside=tuple(names))):
            how = f", as with {as_options(variant)}" if variant else ""
            return wording("right_without", how=how)
    return ""


def _moving(left: dict[str, nn.Parameter], out: torch.Tensor) -> list[str]:
    """Those on which what comes out depends."""
    if not left:
        return []
    some = (out + 1).square().sum()  # a gain of 0 is moved by it, too
    grads = torch.autograd.grad(some, [*left.values()], allow_unused=True)
    return [name for name, grad in zip(left, grads, strict=True) if grad is not None and grad.any()]

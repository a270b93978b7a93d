"""A class of somebody else's: every way to read it, and those with which it is right or nearest."""

import contextlib
import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, product
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted, adapted, norms
from eleven_steps.checks.adapt.beside import ways_beside
from eleven_steps.checks.adapt.built import built, sizes_given
from eleven_steps.checks.adapt.calls import Padded, Way
from eleven_steps.checks.adapt.layers import ROLES, all_kept, each_of, misfits, weights_found
from eleven_steps.checks.adapt.vocabulary import NAMED
from eleven_steps.checks.judge.callee import hides_by_itself, mixes
from eleven_steps.checks.judge.classes import judged
from eleven_steps.checks.judge.differ import blamed
from eleven_steps.checks.judge.read import THREE
from eleven_steps.checks.judge.say import Finding, Outcome, letters_of, listed, say, together
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import OPTIONS, wording
from eleven_steps.checks.run.ask import Pass, ask, once
from eleven_steps.checks.run.cases import LAYERS, Case, cases_of, close
from eleven_steps.checks.run.contract import sizes_besides
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, isolated
from eleven_steps.checks.run.variant import Variant

READ_WITHIN = 60.0  # for all ways to read a class together; packages load much when first called
SEARCHING = 8.0  # to find what else a class is right as
SECOND_LOOKS = 40  # ways to read that are looked at where each wants a second look
WAYS = 4  # ways to read a wrong class that are judged, of those that get it equally far
Named = dict[str, str]  # by role


class Unread(Exception):
    """A class cannot be read: built, filled or called."""

    misfit: Finding | None = None  # of its weights


@dataclass(frozen=True)
class Asked:
    """What check_attention is given besides the class: how to build it, where to look."""

    build: Callable[..., Any]
    variant: Variant
    layers: dict[str, str | None] | None
    call: Way | None
    choice: dict[str, Any] = field(default_factory=dict)  # what the constructor is told besides
    aside: tuple[str, ...] = ()  # parameters that are left aside

    @property
    def main(self) -> Case:
        """The case in which it is read."""
        return cases_of(self.variant).main

    @property
    def guided(self) -> bool:
        """Whether it is said where to look."""
        return self.layers is not None or self.call is not None


def wrappers_of(asked: Asked) -> list[type[Adapted]]:
    """The way to read a class with which it is right; else those that get it farthest."""
    main, hides = asked.main, None
    every, told, right = [], [], play(main).out  # told: whose error is one of its own lines
    for wrapper in every_wrapper(asked):
        masked = wrapper.call.mask
        if masked and hides:  # a mask of ours would stand in for its own
            continue
        seen = once(wrapper, main, Pass())[0]
        out = seen.out
        if close(out, right):
            return [wrapper]
        if isinstance(out, Failure) and (out.number or seen.kind == "none"):
            told.append(wrapper)
        if hides is None and not (masked or isinstance(out, Failure)):
            hides = hides_by_itself(wrapper, main)
        tensors = (other for _, other in every if isinstance(other, torch.Tensor))
        if isinstance(out, Failure) or not any(torch.equal(out, e) for e in tensors):
            every.append((wrapper, out))
    if not every:
        raise Unread(_unread_layout(asked))
    runs = [wrapper for wrapper, out in every if not isinstance(out, Failure)]
    if not runs and told and of_the_lecture(asked):
        return told[:1]
    if not runs:
        raise Unread(wording("unread_call", error=every[0][1].told))
    runs = [run for run in runs if not mixes(run, main)] or runs
    reached = {wrapper: _reached(wrapper, main) for wrapper in runs}
    most = max(reached.values())
    farthest = [run for run in runs if reached[run] == most]
    farthest = [wrapper for wrapper in farthest if not wrapper.call.first] or farthest
    # Where a mask can be handed over, it is: otherwise what a class does with it is never seen.
    masked = [wrapper for wrapper in farthest if wrapper.call.mask] or farthest
    if most == 0 and not (asked.layers and asked.call):
        raise Unread(wording("unread_projections"))
    return masked[:WAYS]


def fitting(asked: Asked) -> type[Adapted] | None:
    """How a class is read that gives what is right in the main case; None if in no way."""
    main, failed = asked.main, []
    with contextlib.suppress(TimeUp, Unread), isolated(SEARCHING):
        right = play(main).out
        for wrapper in islice(every_wrapper(asked), SECOND_LOOKS if asked.aside else None):
            if wrapper.call in failed:  # whatever the layout
                continue
            out = once(wrapper, main, Pass())[0].out
            if close(out, right):
                return wrapper
            if isinstance(out, Failure):
                failed.append(wrapper.call)
    return None


def best(wrappers: list[type[Adapted]]) -> tuple[type[Adapted], Outcome]:
    """The one of several ways to read a class with which it passes, or that explains most."""
    verdicts = []
    for wrapper in wrappers:
        verdicts.append((wrapper, judged(wrapper, wrapper.variant, READ_WITHIN)))
        if verdicts[-1][1].passed:
            break

    def worth(verdict: Outcome) -> tuple[bool, bool, int, int]:
        known = len(verdict.mistakes)  # of two at one step the one with fewer
        return verdict.passed, bool(known) or verdict.step == 1, verdict.step or 0, -known

    return max(verdicts, key=lambda pair: worth(pair[1]))


def of_the_lecture(asked: Asked) -> bool:
    """Whether a class is built as the lecture's, and no more is said of it."""
    names = ask(asked.build, "parameters")
    return not (asked.guided or isinstance(names, Failure)) and {"d_in", "d_out"} <= {*names}


def every_wrapper(asked: Asked) -> Iterator[type[Adapted]]:
    """Yield every way to read a class: where its weights are, and how it is called."""
    main, changes = asked.main, asked.variant.changes
    told = sizes_given(main) | asked.choice
    made = attempt(built, asked.build, told)
    if isinstance(made, Failure):
        raise Unread(wording("unread_build", error=made.text))
    module, names = made
    if not isinstance(module, nn.Module):
        raise Unread(wording("unread_module", name=type(module).__name__))
    width = main.d_in if "d_in" in names else main.d_out
    calls = [asked.call] if asked.call else _calls(asked, module, width)
    weights, layouts = _by_role(module, asked.layers)
    rows = {name: len(e) for name, e in module.named_parameters() if e.dim()}
    if "gate" in changes and rows.get(weights.get("W_query")) == 2 * main.d_out:
        weights["q_gate"] = weights.pop("W_query")
    of_role = _sizes_of_roles(main, width, weights)
    if (odd := _misfit(asked, weights)) and not layouts:
        error = Unread(_unread_layout(asked))
        error.misfit = odd
        raise error
    turning = not {"rope", "latent"}.isdisjoint(changes)
    pairings = (False, True) if turning else (False,)
    arounds = (False, True) if norms(module, width) else (False,)
    same = {"build": asked.build, "choice": asked.choice, "aside": asked.aside, "asked": names}
    same |= {"variant": asked.variant, "causal": "full" not in changes}
    for around, where in product(arounds, all_kept(module, weights, of_role, layouts)):
        biased = {name for place in where if place.bias for name in ROLES[place.role]}
        lacks = frozenset(f"{name}.bias" for name in LAYERS[:3] if name not in biased)
        for paired, call in product(pairings, calls):
            more = {"paired": paired, "around": around}
            layers = [*(place.told for place in where), *(wording(n) for n in more if more[n])]
            own = {"lacks": lacks, "kept": where, "call": call, **more}
            own["told"] = wording("read_as", layers="; ".join(layers), call=call.told)
            yield adapted(type(module).__name__, **same, **own)


def _sizes_of_roles(case: Case, width: int, roles: Iterable[str]) -> dict[str, dict[str, int]]:
    """What each letter of a layout stands for in a case, by role; x is so wide."""
    letters = {"3": 3, "2": 2, "d": case.head_dim, "i": width, "o": case.d_out}
    kv_heads = sizes_besides(case).get("num_kv_heads", case.num_heads)
    heads = {role: kv_heads for role in ("kv", "W_key", "W_value")}
    of_role = {role: letters | {"h": heads.get(role, case.num_heads)} for role in roles}
    if "qkv" in of_role and kv_heads != case.num_heads:  # heads of all three, side by side
        of_role["qkv"] |= {"3": 1, "h": case.num_heads + 2 * kv_heads}
    if latent := sizes_besides(case).get("latent_dim"):
        of_role = {r: e | {"i": width if r == "W_query" else latent} for r, e in of_role.items()}
        of_role.get("W_query", {})["d"] = case.head_dim + sizes_besides(case)["rope_dim"]
    return of_role


def _misfit(asked: Asked, weights: Named) -> Finding | None:
    """The first weight whose shape, or number of heads, is none of the lecture's; or None."""
    others = cases_of(asked.variant).every if of_the_lecture(asked) else ()
    for case in (asked.main, *others):
        made = attempt(built, asked.build, sizes_given(case) | asked.choice)
        if isinstance(made, Failure):
            continue
        width = case.d_in if "d_in" in made[1] else case.d_out
        odd = misfits(made[0], weights, _sizes_of_roles(case, width, weights))
        for role, name, shape, right in sorted(odd, key=lambda e: e[0] == "out_proj"):
            step, values = 11 if role == "out_proj" else 2, {"where": letters_of(case)}
            if len(shape) == 1:
                values |= {"count": shape[0], "right": right[0]}
                return say("heads_counted", step, name=name, **values)
            return say("layer_shape", step, name=name, shape=shape, right=right, **values)
    return None


def _unread_layout(asked: Asked) -> str:
    told = "" if asked.layers else wording("unread_not_told")
    return together(wording("unread_layout", of=asked.variant or "the lecture"), told)


def _calls(asked: Asked, module: nn.Module, width: int) -> list[Any]:
    """Every way to call a module that its parameters allow, with what a variant has besides."""
    changes, first = asked.variant.changes, asked.choice.get("first")
    turning, causal = not {"rope", "latent"}.isdisjoint(changes), "full" not in changes
    turned = sizes_besides(asked.main).get("rope_dim", asked.main.head_dim)
    calls = [*ways_beside(module, causal, turning, width, turned)]
    if first is not None:  # the order that its constructor was told
        calls = [call for call in calls if call.first is not first]
    if "other" in changes:
        calls = [call for call in calls if len(call.names) > 1]
    if "padding" in changes:
        names = [*filter(NAMED["pads"].fullmatch, inspect.signature(module.forward).parameters)]
        calls = [pad for call in calls for pad in Padded.of(call, names)]
    if not calls:
        raise Unread(wording("unread_beside", what=as_options(asked.variant)))
    return calls


def _by_role(module: nn.Module, layers: dict[str, str | None] | None) -> tuple[Named, Named]:
    """The name of each role's weight, and the layouts that are told."""
    parameters, layouts = dict(module.named_parameters()), {}
    taken = {name for role in layers or () for name in ROLES[role]}
    guessed = {role: w for role, w in weights_found(module).items() if not taken & {*ROLES[role]}}
    for role, told in (layers or {}).items():
        name, _, layout = (part.strip() for part in (told or "").partition(":"))
        for weight in (name, f"{name}.weight", f"{name}_weight") if told else ():
            if each_of(weight, parameters):
                guessed[role] = [weight]
        if told and role not in guessed:
            raise Unread(wording("unread_name", name=name, found=", ".join(parameters) or "none"))
        layouts |= {role: layout} if layout else {}
    roles = [name for role, names in guessed.items() for _ in names for name in ROLES[role]]
    without_out = layers is not None and layers.get("out_proj", "") is None
    if not layers and sorted(roles) == sorted(LAYERS[:3]):  # and nothing else that could be it
        read = {*chain(*(each_of(parameter, parameters) for parameter in chain(*guessed.values())))}
        left = (parameter for name, parameter in parameters.items() if name not in read)
        without_out = all(parameter.squeeze().dim() < 2 for parameter in left)
    wanted = LAYERS[:3] if without_out else LAYERS
    if unclear := [name for name in wanted if roles.count(name) != 1]:
        found = ", ".join(parameters) or "none"
        raise Unread(wording("unread_layers", unclear=listed(unclear, quote=""), found=found))
    return {role: name for role, (name,) in guessed.items()}, layouts


def _reached(wrapper: type[Adapted], main: Case) -> int:
    """How much of the right way is among what a forward computes."""
    blame = blamed(wrapper, main)
    if blame is None:
        return 0
    read = [reading for reading in blame.walked.readings if reading.axes]
    three = {*chain(*(e.who.split(" and ") for e in read if e.family == "projected"))}
    families = {e.family for e in read if e.stage} & {"scores", "context"}
    weights = any(e.state and e.state.grown for e in read)
    return len(three & {*THREE}) + (len(families) + weights if len(three) == 3 else 0)


def as_options(variant: Variant) -> str:
    """A variant as it is asked for, in code."""
    named = variant.but(full="")
    options = [OPTIONS["variant"].format(named) if named else ""]
    options += [OPTIONS["full"]] if "full" in variant else []
    return f"`{OPTIONS['between'].join(filter(None, options))}`"

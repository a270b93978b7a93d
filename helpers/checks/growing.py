"""Say how far a class comes that is filled in step by step, and what is wrong with it.

Its forward returns whatever its last line so far computes. That is looked up among what the eleven
steps of the right class record, and then among what the classes of the catalogue record.
"""

from typing import Any

import torch
from torch import nn

from helpers.checks.compare import call, same, type_name
from helpers.checks.guard import Failure
from helpers.checks.mistakes import MISTAKES
from helpers.checks.scenes import PLACES, Scene, play
from helpers.checks.tasks import Parts, catalogued
from helpers.trace import SHAPES, STEPS

Verdict = tuple[str, str, str | None]
LAYERS = "W_query", "W_key", "W_value", "out_proj"


def how_far(cls: Any) -> Verdict:
    """Return the kind of outcome, its message and the mistake's identifier, if it is a known one.

    Args:
        cls: a subclass of nn.Module with the lecture's constructor, its forward as far as it goes.
    """
    if not isinstance(cls, type) or not issubclass(cls, nn.Module):
        return "type", "a class built on `nn.Module` is expected: hand over its name.", None
    scenes = [play(sizes) for sizes in PLACES]
    modules = [call(cls, *s.sizes.constructor, qkv_bias=s.sizes.qkv_bias) for s in scenes]
    for scene, module in zip(scenes, modules, strict=True):
        if found := constructor_fault(scene, module):
            return found
    returned = [as_parts(*each) for each in zip(scenes, modules, strict=True)]
    both = list(zip(scenes, returned, strict=True))
    if returned[0][0] is ... or returned[0][0] is None:
        return reached(1)
    for number, step in reversed(list(enumerate(STEPS[1:], start=2))):
        if all(same(*each) for each in zip(returned, recorded(scenes, step), strict=True)):
            return reached(number)
    known = [any(same(parts, *recorded([scene], step)) for step in STEPS) for scene, parts in both]
    place = known.index(False) if False in known else 0
    return known_mistake(returned) or unknown_mistake(*both[place])


def reached(number: int) -> Verdict:
    """Say that the steps up to number are right, and what comes next."""
    if number == len(STEPS):
        return "right", "all eleven steps are right; `check_attention` looks at the rest.", None
    so_far = f"steps 1 to {number} are right" if number > 1 else "the constructor is right"
    name = STEPS[number]
    return "so far", f"{so_far}. Next is step {number + 1}, {name}: {SHAPES[name]}.", None


def layers(module: nn.Module) -> dict[str, nn.Parameter]:
    """Return the weights and biases of the lecture's layers, as far as module has them."""
    every = module.named_parameters(remove_duplicate=False)
    return {name: each for name, each in every if name.partition(".")[0] in LAYERS}


def shapes(module: nn.Module, only: set[str]) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights and biases of some layers."""
    every = layers(module).items()
    return {name: tuple(each.shape) for name, each in every if name.partition(".")[0] in only}


def constructor_fault(scene: Scene, module: nn.Module | Failure) -> Verdict | None:
    """Return what is wrong with the layers, or None after giving them the right class's weights."""
    where = scene.sizes.where
    if isinstance(module, Failure):
        if "before Module.__init__() call" in module.text:
            return named("no_super_init")
        return "error", f"the constructor raises {module.text} {where}.", None
    own = layers(module)
    have = {name.partition(".")[0] for name in own}
    if not have:
        return "unfinished", "not answered yet.", None
    if lacking := [name for name in LAYERS[:3] if name not in have]:
        return "so far", f"the constructor has no layer {' and no '.join(lacking)} yet.", None
    if len({id(each) for each in own.values()}) < len(own):
        return named("weights_tied")
    built, right = shapes(module, have), shapes(scene.module, have)
    if built != right:
        for identifier in MISTAKES:
            wrong = play(scene.sizes, identifier).module
            if not isinstance(wrong, Failure) and shapes(wrong, have) == built:
                return named(identifier)
        name = next(name for name in built | right if built.get(name) != right.get(name))
        came, expected = (each.get(name, "not there") for each in (built, right))
        return "shape", f"`{name}` is {came} {where}: {expected} is expected.", None
    with torch.no_grad():
        for name, each in own.items():
            each.copy_(layers(scene.module)[name])
    return None


def as_parts(scene: Scene, module: nn.Module) -> Parts:
    """Return what forward returns, or its failure, as a tuple."""
    out = call(module, scene["shape"]["x"])
    return tuple(out) if type(out) in (list, tuple) and out else (out,)


def recorded(scenes: list[Scene], step: str) -> list[Parts]:
    """Return what a step recorded in each scene; what stopped it, where it was not reached."""
    return [tuple(s[step].values()) if step in s.steps else (s.failure,) for s in scenes]


def known_mistake(returned: list[Parts]) -> Verdict | None:
    """Return the first mistake whose class records, at some step, what was returned everywhere."""
    found = []
    for identifier in MISTAKES:
        scenes = [play(sizes, identifier) for sizes in PLACES]
        for step in STEPS:
            if all(same(*each) for each in zip(returned, recorded(scenes, step), strict=True)):
                found.append(identifier)
                break
    # Several mistakes may raise the same error; equal numbers are no such accident.
    raised = any(isinstance(parts[0], Failure) for parts in returned)
    return named(found[0]) if len(found) == 1 or found and not raised else None


def named(identifier: str) -> Verdict:
    """Return the outcome that names a mistake of the catalogue, with its step."""
    said = f"step {MISTAKES[identifier].step}: {catalogued(identifier).sentence}"
    return "mistake", said, identifier


def unknown_mistake(scene: Scene, parts: Parts) -> Verdict:
    """Describe what was returned where no class of the catalogue returns it."""
    where = scene.sizes.where
    if isinstance(failure := parts[0], Failure):
        line = f", in the line `{failure.line}`" if failure.line else ""
        return "error", f"your forward raises {failure.text} {where}{line}.", None
    if not all(isinstance(part, torch.Tensor) for part in parts):
        came = ", ".join(map(type_name, parts))
        return "type", f"your forward returns {came}: the tensors of a step are expected.", None
    came = [tuple(part.shape) for part in parts]
    alike = [
        f"{number} ({step})"
        for number, step in enumerate(STEPS, start=1)
        if came == [tuple(tensor.shape) for tensor in scene[step].values()]
    ]
    said = f"your forward returns {', '.join(map(str, came))} {where}"
    if not alike:
        said += ", and no step does. Steps 2 to 4 end with `return queries, keys, values`, the "
        return "shape", said + "later ones with one tensor.", None
    if any(part.isnan().any() for part in parts):
        return "nan", f"what your forward returns holds NaN {where}.", None
    said += f", as step {' or '.join(alike)} does, but other numbers. Return an earlier step's "
    return "value", said + "tensors to see how far they are right.", None

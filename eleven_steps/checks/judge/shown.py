"""Show beside a verdict what an answer printed, and the lines that make what it speaks of."""

from typing import Any

import torch

from eleven_steps.checks.judge.say import Finding
from eleven_steps.checks.know.exercises.kinds import Catch, Grow, Write
from eleven_steps.checks.know.exercises.questions import RIGHT, source_of
from eleven_steps.checks.know.right import Scene, play
from eleven_steps.checks.run.ask import Pass, ask, is_remote
from eleven_steps.checks.run.cases import LAYERS, TASK_CASES, Case
from eleven_steps.helpers.trace import STEPS


def shown_with(task: Any, answer: Any, finding: Finding) -> dict[str, str]:
    """What an Outcome shows besides its message: printed and cell, where there is any of it.

    Of an answer that lives elsewhere nothing: nobody reads it there.
    """
    if is_remote(answer):
        return {}
    if isinstance(task, Write):
        scene = play(finding.case or task.cases[0])
        asked = "call", [task.gets(scene)]
    elif isinstance(task, Grow):
        scene = play(finding.case or TASK_CASES[0])
        asked = "run", scene.case, 0.0, [Pass()]
    elif isinstance(task, Catch):
        asked = "verdicts", [source_of(next(iter(RIGHT)))]
    else:
        return {}
    said = ask(answer, "printed", *asked)
    if type(said) is not tuple or len(said) != 2 or {type(each) for each in said} != {str}:
        return {}
    name, printed = said
    if finding.case is None or finding.case.example == "whiteboard" or not name.isidentifier():
        return {"printed": printed}
    lines = made(scene.case, name) if isinstance(task, Grow) else call_lines(task, scene, name)
    return {"printed": printed, "cell": "\n".join(lines)}


def call_lines(task: Write, scene: Scene, name: str) -> list[str]:
    """The lines that call a function with what it gets in a scene; none where none make that."""
    arguments = [_written(each, scene) for each in task.gets(scene)]
    call = f"{name}({', '.join(arguments)})"
    if not all(arguments):
        return []
    if "steps[" in call:
        traced = ["from helpers.trace import trace", "steps = trace(mha, x)", call]
        return [traced[0], *made(scene.case), *traced[1:]]
    lines = made(scene.case) if "mha" in call or "x" in arguments else []
    if "mha" not in call and scene.case.example == "second":  # which needs no class
        lines = [lines[0], lines[-1]] if lines else []
    return [*lines, call]


def made(case: Case, name: str = "") -> list[str]:
    """The lines that make mha and x of a case that has an example, or call a class of that name."""
    bias = ", qkv_bias=True" if case.qkv_bias else ""
    sizes = f"{case.d_in}, {case.d_out}, {case.context_length}, 0.0, {case.num_heads}{bias}"
    second = case.example == "second"
    shape = f"{case.b}, {case.num_tokens}, {case.d_in}"
    return [
        *(["from helpers.examples import load_second"] if second else []),
        *([] if name else ["from helpers.attention import MultiHeadAttention"]),
        f"torch.manual_seed({case.seed})",
        f"mha = {name or 'MultiHeadAttention'}({sizes})",
        "x = load_second()" if second else f"x = 3 * torch.randn({shape})",
        *(["mha(x)"] if name else []),
    ]


def _written(argument: Any, scene: Scene) -> str:
    """An argument as code; "" where it has none."""
    if type(argument) is int:
        return str(argument)
    if scene.case.example:
        if argument is scene["shape"]["x"]:
            return "x"
        for name in (*LAYERS, "mask"):
            if argument is getattr(scene.module, name):
                return f"mha.{name}"
        for index, step in enumerate(STEPS):
            for name, tensor in scene[step].items():
                if argument is tensor:
                    return f'steps[{index}].tensors["{name}"]'
    floats = isinstance(argument, torch.Tensor) and argument.is_floating_point()
    return f"torch.randn{tuple(argument.shape)}" if floats else ""

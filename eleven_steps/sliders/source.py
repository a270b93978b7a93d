"""The code of forward and its map, linked: each line says what it reads and what it makes."""

import ast
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import STEPS, trace
from eleven_steps.pictures import draw_map, draw_source, page_of_source, steps_of
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.live import SEEN, Answers

OWN = "border-color:var(--hold);outline:2px solid var(--hold)"
FROM, TO = "border-color:var(--ink)", "border:2px dashed var(--ink)"
HERE = "box-shadow:inset 4px 0 var(--hold)"


@dataclass(frozen=True)
class LineRun:
    """Hold what a line of code read and made when it ran."""

    step: int  # that it belongs to
    reads: dict[str, str]  # names, each with what stands there in words
    makes: dict[str, str]
    origins: dict[str, int]  # of what it reads the line that made it; 0 made x
    returns: bool  # whether it ends the forward


def explore_source() -> Answers:
    """Point at a line of forward or at a step of its map: both light up, and shapes are told."""
    (mha, _), x, code = run(), tokens(), shown_code()
    every, steps = tell(run_by_line(code, mha, x)), trace(mha, x)
    page = page_of_source(code, steps, {name: told["words"] for name, told in every.items()})
    says = f"{len(every) - len(STEPS)} lines of code and {len(STEPS)} steps to point at"
    parts = {f'[data-told="{name}"]': told for name, told in every.items()}
    lit = {f".part{part}": lights(part, told) for part, told in parts.items()}
    return Answers(draw_map(steps), page, lit, says, draw_source(code).html)


def lights(part: str, told: dict[str, Any]) -> dict[str, str]:
    """Return what changes while a part is pointed at: frames, a bar beside a line, words."""
    ways = (([told["step"]], OWN), (told["from"], FROM), (told["to"], TO))
    frames = {
        ",".join(f'.row>[data-step="{step}"]' for step in steps): look
        for steps, look in ways
        if steps
    }
    return frames | {f".line{part}": HERE, f".told>{part}": SEEN}


def shown_code() -> str:
    """Return the code of forward as a lesson shows it, without its docstring."""
    code = draw_source(MultiHeadAttention.forward).code
    docstring = body_of(code)[0]
    lines = code.splitlines()
    return "\n".join(lines[: docstring.lineno - 1] + lines[docstring.end_lineno :])


def body_of(code: str) -> list[ast.stmt]:
    """Return the statements of a function."""
    return ast.parse(code).body[0].body


def run_by_line(code: str, mha: MultiHeadAttention, x: torch.Tensor) -> dict[int, LineRun]:
    """Run a forward on x (b, num_tokens, d_in) line by line; keep what each reads and makes."""
    steps, lines = steps_of(code), {}
    space, names = dict(MultiHeadAttention.forward.__globals__), {"self": mha, "x": x}
    origins = {"x": 0}
    for statement in body_of(code):
        read = names_in(statement, names)
        reads = {name: written(name, eval(name, space, names)) for name in read}
        from_lines = {name: origins[name] for name in read if name in origins}
        returns, makes = isinstance(statement, ast.Return), {"": "what forward returns"}
        if not returns:
            with torch.no_grad():
                exec(compile(ast.Module([statement], []), "forward", "exec"), space, names)
            made = names_in(statement, names, ast.Store)
            makes = {name: written(name, names[name]) for name in made}
        at = statement.lineno
        origins |= dict.fromkeys(makes, at)
        lines[at] = LineRun(steps[at], reads, makes, from_lines, returns)
    return lines


def names_in(statement: ast.stmt, known: Collection[str], way: type = ast.Load) -> list[str]:
    """Return the variables that a statement reads or binds, and what it reads of self, in order."""
    found = {}
    for node in ast.walk(statement):
        match node:
            case ast.Attribute(value=ast.Name("self"), attr=attribute) if way is ast.Load:
                found[node.lineno, node.col_offset] = f"self.{attribute}"
            case ast.Name(name, ctx=context) if isinstance(context, way) and name in known:
                found.setdefault((node.lineno, node.col_offset), name)
    return list(dict.fromkeys(found[at] for at in sorted(found) if found[at] not in ("self", "_")))


def written(name: str, value: Any) -> str:
    """Write what stands under a name: a tensor's shape, a layer's, a size as it is."""
    if isinstance(value, torch.Tensor):
        return f"{name} {tuple(value.shape)}"
    if isinstance(value, nn.Linear):
        return f"{name}.weight {tuple(value.weight.shape)}"
    if isinstance(value, nn.Dropout):
        return f"{name}.p = {value.p:g}"
    return f"{name} = {value}"


def tell(lines: dict[int, LineRun]) -> dict[str, dict[str, Any]]:
    """Say of each line and of each step what comes in and what goes out, and from where to where.

    Returns:
        By "line 9" or "step 2": the step, those it comes from and goes to, and two lines of words.
    """
    told = {f"line {at}": told_of({at}, line.makes, lines) for at, line in lines.items()}
    for step in range(1, len(STEPS) + 1):
        inside = {at for at, line in lines.items() if line.step == step}
        handed_on = {
            name: lines[origin].makes[name]
            for line in lines.values()
            for name, origin in line.origins.items()
            if origin in inside and (line.step != step or line.returns)
        }
        told[f"step {step}"] = told_of(inside | {0} if step == 1 else inside, handed_on, lines)
    return told


def told_of(inside: set[int], makes: dict[str, str], lines: dict[int, LineRun]) -> dict[str, Any]:
    """Say what some lines of one step read of others, what they make, and for which steps."""
    some = [line for at, line in lines.items() if at in inside]
    step = some[0].step
    step_at = {0: 1} | {at: line.step for at, line in lines.items()}
    came = {step_at[origin] for line in some for origin in line.origins.values()}
    goes = {line.step for line in lines.values() if inside & {*line.origins.values()}}
    reads = {
        name: words
        for line in some
        for name, words in line.reads.items()
        if line.origins.get(name) not in inside - {0}
    }
    came, goes = sorted(came - {step}), sorted(goes - {step})
    return {
        "step": step,
        "from": came,
        "to": goes,
        "words": [
            sentence(step, came, goes),
            f"{', '.join(reads.values())} → {', '.join(makes.values()) or 'nothing new'}",
        ],
    }


def sentence(step: int, came: Sequence[int], goes: Sequence[int]) -> str:
    """Say from where to where a step's numbers go."""
    ways = [f"{way} {listed(steps)}" for way, steps in (("from", came), ("on to", goes)) if steps]
    return f"Step {step}, {STEPS[step - 1]}" + (": " if ways else "") + ", ".join(ways) + "."


def listed(steps: Iterable[int]) -> str:
    """Write steps as "step 4" or "steps 4 and 7"."""
    *first, last = map(str, steps)
    return f"steps {', '.join(first)} and {last}" if first else f"step {last}"

"""What a call at fault may have made: guesses that are tried in numbers before they are told."""

import ast
import itertools
from collections.abc import Iterator, Sequence

import torch

from eleven_steps.checks.judge.path import Difference, Walk, op_name, same_numbers
from eleven_steps.checks.judge.read import HIDDEN
from eleven_steps.checks.judge.syntax import MEET, around, call_name, of_self, parsed, set_in
from eleven_steps.checks.know.exercises.tasks import blockwise
from eleven_steps.checks.run.cases import LAYERS, close
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op


def projected_otherwise(walked: Walk, number: int, op: Op) -> Difference | None:
    """Whether a call made x times a weight as it is stored, or something of x alone."""
    made = [walked.tensors[index] for index in op.gave]
    x, module = walked.right.scene["shape"]["x"], walked.right.scene.module
    if not made:
        return None
    for name in LAYERS[:3]:
        weight, bias = (getattr(getattr(module, name), part) for part in ("weight", "bias"))
        stored = [x @ weight.detach()] if weight.shape == 2 * x.shape[-1:] else []
        stored += [] if bias is None else [tensor + bias.detach() for tensor in stored]
        if any(same_numbers(made[0], tensor, 1e-7) for tensor in stored):
            return walked.differs(number, 2, "stored", layer=name)
    of_x = op.place and op_name(op) not in MEET | {"linear"}
    if of_x and {walked.readings[index].family for index in op.given} - {"const"} == {"x"}:
        return walked.differs(number, 2, "before", code=op.place.expression)
    return None


def in_blocks(walked: Walk) -> Difference | None:
    """What is wrong where the scores are made in blocks of keys, or where some keys are missing."""
    products = [n for n, e in enumerate(walked.ops) if op_name(e) in MEET and e.gave]
    made = {n: walked.ops[n].gave[0] for n in products}
    made = {n: i for n, i in made.items() if walked.readings[i].family == "scores"}
    parts = [n for n, index in made.items() if lacks_keys(walked, index)]
    met = {pair for index in made.values() for pair in itertools.product(*_pairs(walked, index))}
    last = len(walked.ops) - 1
    if parts and walked.ops[last].failed:  # before the last block
        return walked.differs(last, walked.steps[last], "torch")
    if walked.stop or not parts:
        return None
    if not met >= {*_seen(walked)}:
        return walked.differs(parts[0], 5, "pairs", made[parts[0]])
    width = max(len(_pairs(walked, made[n])[1]) for n in parts)
    out = next((walked.tensors[i] for i in walked.trace.returned if i is not None), None)
    guesses = () if out is None else _not_rescaled(walked, width)
    what = next((what for what, guess in guesses if close(out, guess)), "")
    reason = what if what == "undivided" else "rescaled" if what else "blocks"
    step = 7 if what == reason else 8
    return walked.differs(parts[0], step, reason, width=width, sums=what)


def lacks_keys(walked: Walk, index: int) -> bool:
    """Whether some scores lack keys that their queries see."""
    rows, keys = _pairs(walked, index)
    return any(i in rows and j not in keys for i, j in _seen(walked))


def _pairs(walked: Walk, index: int) -> tuple[Sequence[int], Sequence[int]]:
    """The tokens whose queries and whose keys some scores are of."""
    reading, every = walked.readings[index], range(walked.case.num_tokens)
    some = {letter: (place,) for letter, place in reading.fixed} | dict(reading.tokens)
    return some.get("i", every), some.get("j", every)


def _seen(walked: Walk) -> list[tuple[int, ...]]:
    """Query and key wherever the right class does not hide the score."""
    hidden = walked.right.hidden.flatten(0, -3).all(0)
    return [tuple(place) for place in (~hidden).nonzero().tolist()]


def _not_rescaled(walked: Walk, width: int) -> Iterator[tuple[str, torch.Tensor]]:
    """The output of a softmax in blocks whose sums stay as they are when the maximum grows."""
    scene = walked.right.scene
    masked = scene["scores"]["scores"].masked_fill(walked.right.hidden, -torch.inf)
    scaled, values = masked / walked.case.head_dim**0.5, scene["transpose"]["values"]
    one, other = {"context": _as_it_was}, {"total": _as_it_was}
    guesses = {"sum of values": one, "sum of the exponentials": other, "two sums": one | other}
    guesses["undivided"] = {"over": lambda context, total, new: context}
    with torch.no_grad():
        for what, kept in guesses.items():
            context = blockwise(scaled, values, width, **kept)
            yield what, scene.module.out_proj(context.transpose(1, 2).flatten(2))


def _as_it_was(kept: torch.Tensor, shrink: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
    """What is kept, not measured from the largest score now, with what a block adds."""
    return kept + new


def capped_late(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Whether a tanh caps scores that were masked before."""
    for at, call in enumerate(walked.ops):
        read = [i for i in call.given if walked.readings[i].family == "scores"]
        if op_name(call) == "tanh" and read and (walked.tensors[read[0]] < HIDDEN).any():
            return walked.differs(at, 6, "capped")
    return None


# A size that is none of the case, or not the one that is needed where it is used


def wrong_size(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """A size that is none of the case, or that is read off x and is not one that is needed."""
    nodes = around(op.place)
    if not nodes:
        return _typed(walked, number, op)
    case, stop = walked.case, walked.stop
    sizes, known = case.letters, stop.numbers if stop else {}
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    four = {b, n, h, d, case.d_out, b * h}
    needed = {3: four, 4: four, 6: {n}, 9: four, 10: four}.get(step, {*sizes.values()})
    todo, seen, tensors = [nodes[-1]], set(), stop.tensors if stop else {}
    tree, at = parsed(walked.trace.source), op.place.line - walked.trace.first + 1
    while todo:
        for node in ast.walk(todo.pop()):
            if found := _stored(walked, node):
                values = {"name": f"self.{node.attr}", "size": found, "for_step": step}
                place = _set_at(walked, values["name"]) or op.place
                return Difference(1, "size", number, place, values=values)
            if not isinstance(node, ast.Name) or node.id in {*seen, *tensors}:
                continue
            seen.add(node.id)
            for line, value in set_in(tree, at).get(node.id, ()):
                read = any(call_name(part) in ("shape", "size") for part in ast.walk(value))
                size = known.get(node.id, 0)
                if node.id in known and read and step != 5 and size not in needed and op.failed:
                    text = ast.unparse(value)
                    place = Place(line + walked.trace.first - 1, text, text)
                    values = {"name": node.id, "size": size, "for_step": step}
                    fitting = {n for n in known if known[n] in needed - {*op.numbers}}
                    if _another_meant(tree, value, fitting):
                        return walked.differs(number, step, "size", **values)
                    return Difference(1, "size", number, place, values=values)
                if not read and (node.id in known or isinstance(value, ast.Tuple)):
                    todo.append(value)
    return None


def _another_meant(tree: ast.AST, value: ast.AST, fitting: set[str]) -> bool:
    """Whether another size that was read with this one fits, and is used somewhere."""
    siblings = {
        name.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and node.value is value
        for name in ast.walk(node.targets[0])
        if isinstance(name, ast.Name) and name.id in fitting
    }
    loads = (n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load))
    return any(name.id in siblings for name in loads)


def _stored(walked: Walk, node: ast.AST) -> int:
    """The size that an attribute of self stores, where nothing of the case has it; else 0."""
    size, case = walked.trace.sizes.get(of_self(node), 0), walked.case
    fused = any(t.shape[:1] == (3 * case.d_out,) for t in walked.tensors[:9])
    usual = {0, 1, *case.letters.values(), case.b * case.num_heads, 3 * case.d_out * fused}
    return 0 if size in usual else size


def _typed(walked: Walk, number: int, op: Op) -> Difference | None:
    """The same of a view that raises, where there is no source: a size that nothing here has."""
    case = walked.case
    there = {case.b, case.num_tokens, case.num_heads, case.head_dim, case.d_out, -1}
    odd = [n for n in op.numbers if type(n) is int and n not in there]
    if not op.failed or not odd or op_name(op) not in ("view", "reshape"):
        return None
    values = {"name": str(odd[0]), "size": odd[0], "for_step": 3}
    return Difference(1, "size", number, values=values)


def _set_at(walked: Walk, text: str) -> Place | None:
    for node in ast.walk(parsed(walked.trace.source)):
        if isinstance(node, ast.Assign):
            targets = [ast.unparse(e) for t in node.targets for e in getattr(t, "elts", [t])]
            if text in targets:
                line = ast.unparse(node)
                return Place(node.lineno + walked.trace.first - 1, line, line, line)
    return None


GUESSES = capped_late, wrong_size

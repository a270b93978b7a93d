"""A size that is none of the case, or not the one that is needed where it is used."""

import ast
import functools
import textwrap

from eleven_steps.checks.judge.difference import Difference
from eleven_steps.checks.judge.path import Walk
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.source import around, named
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op


def wrong_size(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """A size that is none of the case, or that is read off x and is not one that is needed."""
    nodes = around(op.place)
    if not nodes:
        return _typed(walked, number, op)
    case, stop = walked.right.case, walked.trace.stop
    sizes, known = case.letters, stop.numbers if stop else {}
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    four = {b, n, h, d, case.d_out, b * h}
    needed = {3: four, 4: four, 6: {n}, 9: four, 10: four}.get(step, {*sizes.values()})
    kept = walked.trace.sizes
    todo, seen, tensors = [nodes[-1]], set(), stop.tensors if stop else {}
    tree = parsed(walked.trace.source)
    while todo:
        for node in ast.walk(todo.pop()):
            own = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
            if own and node.value.id == "self" and node.attr in kept:
                size = kept[node.attr]
                usual = {*sizes.values(), 2 * size if size in (0, 1) else -1}
                fused = any(t.shape[:1] == (3 * case.d_out,) for t in walked.trace.tensors[:9])
                usual |= {b * h, 3 * case.d_out if fused else b * h}
                if size not in usual and size > 1:
                    text = f"self.{node.attr}"
                    return Difference(
                        1,
                        "size",
                        number,
                        _set_at(walked, text) or op.place,
                        None,
                        None,
                        {"name": text, "size": size, "for_step": step},
                    )
            if not isinstance(node, ast.Name) or node.id in {*seen, *tensors}:
                continue
            seen.add(node.id)
            for line, value in set_in(tree, node.id):
                read = any(named(each) in ("shape", "size") for each in ast.walk(value))
                size = known.get(node.id, 0)
                if node.id in known and read and step != 5 and size not in needed and op.failed:
                    place = Place(
                        line + walked.trace.first - 1, ast.unparse(value), ast.unparse(value)
                    )
                    return Difference(
                        1,
                        "size",
                        number,
                        place,
                        None,
                        None,
                        {"name": node.id, "size": size, "for_step": step},
                    )
                if not read and (node.id in known or isinstance(value, ast.Tuple)):
                    todo.append(value)
    return None


def _typed(walked: Walk, number: int, op: Op) -> Difference | None:
    """The same of a view that raises, where there is no source: a size that nothing here has."""
    case = walked.right.case
    there = {case.b, case.num_tokens, case.num_heads, case.head_dim, case.d_out, -1}
    odd = [n for n in op.numbers if type(n) is int and n not in there]
    if not op.failed or not odd or kind(op) not in ("view", "reshape"):
        return None
    return Difference(1, "size", number, None, None, None, {"name": str(odd[0]), "size": odd[0]})


@functools.lru_cache(64)
def parsed(source: str) -> ast.AST:
    """The tree of a source, which may be indented; an empty one where it is none."""
    try:
        return ast.parse(textwrap.dedent(source))
    except SyntaxError:
        return ast.Module([], [])


def set_in(tree: ast.AST, name: str):
    """The lines at which a name is set, and what it is set to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(
            isinstance(each, ast.Name) and each.id == name for each in ast.walk(node.targets[0])
        ):
            yield node.lineno, node.value


def _set_at(walked: Walk, text: str) -> Place | None:
    """Where an attribute is set."""
    for node in ast.walk(parsed(walked.trace.source)):
        if isinstance(node, ast.Assign):
            targets = [ast.unparse(e) for t in node.targets for e in getattr(t, "elts", [t])]
            if text in targets:
                line = ast.unparse(node)
                return Place(node.lineno + walked.trace.first - 1, line, line, line)
    return None

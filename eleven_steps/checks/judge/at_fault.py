"""What is wrong at the call that is at fault: questions in an order, the first that finds it.

Each is asked of a call whose inputs are right, or what it takes, and whose output is not, and says
what is established, in numbers where it is a guess; sentences are made elsewhere.
"""

import ast
import itertools
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import torch

from eleven_steps.checks.judge.meeting import MEETINGS, of_another
from eleven_steps.checks.judge.path import Difference, Walk, makes_nan, same_numbers, stage_of
from eleven_steps.checks.judge.read import FAMILIES, HIDDEN, State
from eleven_steps.checks.judge.syntax import (
    CUT,
    MASK,
    MEET,
    NORM,
    REGROUPS,
    SCALE,
    WHOLE,
    around,
    call_name,
    of_self,
    op_name,
    parsed,
    place_of,
    set_in,
)
from eleven_steps.checks.know.exercises.tasks import blockwise
from eleven_steps.checks.run.cases import LAYERS, close
from eleven_steps.checks.run.contract import sizes_besides
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op

# The family that each step takes.
NEEDED = {2: "x", **dict.fromkeys((3, 4, 5), "projected"), 6: "scores", 7: "scores"}
NEEDED |= dict.fromkeys((9, 10, 11), "context")
# Parts of a softmax in blocks, as blockwise names them, that may be wrong.
NOT_RESCALED = ("context",), ("total",), ("context", "total")
UNDIVIDED = ("over",)


def at_fault(walked: Walk, number: int) -> Difference:
    """Say what is wrong at a call on the way to what came, as much as can be established."""
    op, step = walked.ops[number], walked.steps[number]
    answers = (question(walked, number, op, step) for question in AT_FAULT)
    return next(filter(None, answers), None) or _made_otherwise(walked, number, op, step)


def _made_otherwise(walked: Walk, number: int, op: Op, step: int) -> Difference:
    """The call itself, of which no more is known than that it raises, or what it makes."""
    gave = next((i for i in op.gave if not walked.sound(i)), next(iter(op.gave), None))
    if gave is not None and walked.inside(number):  # what torch takes together is told as one call
        last = next(n for n in range(number, len(walked.steps)) if not walked.inside(n))
        meets = any(op_name(e) in MEET for e in walked.ops[number : last + 1])
        step = max(step, 5) if meets else step
        gave = walked.ops[last].gave[0]
    right = [walked.on_the_way(i) for i in op.given if walked.readings[i].family in FAMILIES[1:]]
    masked = op.failed and op_name(op) == "scaled_dot_product_attention"
    if op.failed and op_name(op) == "baddbmm":
        one, other = (walked.tensors[i].shape for i in op.given[-2:])
        masked = one[-1] == other[-2]
    if masked and all(right):
        step = 6 if len(op.given) > len(right) else step  # what is left is the mask
    first = next((e for e in walked.of(op) if e.family == "projected"), None)
    scaled = any(_scales(walked, n) for n, phase in enumerate(walked.phases) if phase > 2)
    if step == 7 and first and scaled and op_name(op) in SCALE and walked.phases[number] < 3:
        step = 5
    return walked.differs(number, step, "torch" if op.failed else "made", gave)


def never_filled(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """What is made without numbers, and not all of it was written."""
    index = next((i for i in (*op.given, *op.gave) if i in walked.trace.unfilled), None)
    if index is None:
        return None
    while op_name(walked.ops[made := walked.makers[index][0]]) == "setitem":
        index = walked.ops[made].given[0]
    first = next((n for n, e in enumerate(walked.ops) if index in e.given), number)
    given = walked.ops[first].given[-1]
    scores = walked.readings[given].family == "scores"  # whose stage tells more than a setitem
    step = stage_of(walked.readings[given], walked) if scores else walked.steps[first]
    counts = {"count": walked.trace.unfilled[index], "all": walked.tensors[index].numel()}
    return walked.differs(made, step, "unfilled", index, **counts)


# Scores on their way to weights


def _scores_given(walked: Walk, op: Op) -> tuple[int | None, State | None]:
    """The first scores that a call is given, and how far they have come."""
    index = next((i for i in op.given if walked.readings[i].family == "scores"), None)
    return index, None if index is None else walked.readings[index].state


def some_keys_alone(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """A softmax, or what else works on scores, that lacks some keys: in blocks, or for good.

    In blocks rows are divided by their sums at the end, and a softmax takes a whole row.
    """
    index, state = _scores_given(walked, op)
    if index is None:
        return None
    before, softmax = walked.readings[index], "softmax" in op_name(op)
    lost = softmax and "j" in (before.axes or ()) and lacks_keys(walked, index)
    unread = not op.failed and op.gave and not walked.readings[op.gave[0]].state
    own = op_name(op) in MASK or softmax  # wrong by itself, whatever comes later
    unread = unread and not own and (before.tokens or not state)
    return in_blocks(walked) if lost or unread else None


def not_grown(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Scores, or logarithms of weights, that stand where their exponentials belong."""
    index, state = _scores_given(walked, op)
    if state is None or state.grown or op_name(op) == "exp":
        return None
    logs = (walked.tensors[index].exp().sum(-1) - 1).abs().max() < 1e-6
    over_sums = op_name(op) in SCALE and any(reading.part for reading in walked.of(op)[1:])
    return walked.differs(number, 7, "ungrown", index) if logs or over_sums else None


def not_weights_yet(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Scores that meet the values before they are weights, or whose rows do not sum to 1."""
    index, state = _scores_given(walked, op)
    if step != 8 or op_name(op) not in MEET or not state:
        return None
    if not state.grown:
        masked = state.hidden == "right" or not walked.reference.hidden.any()
        return walked.differs(number, 7 if masked else 6, "skipped", index, for_step=8)
    return None if state.whole or op.failed else walked.differs(number, 7, "rows", index)


def left_the_way(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Scores that a call scales, hides or grows otherwise than on their way to weights."""
    index, before = _scores_given(walked, op)
    if index is None and _scales(walked, number):  # queries or keys, before they meet
        states = [reading.state for reading in walked.readings if reading.state]
        grown = next((state for state in states if state.grown), None)
        if grown and abs(grown.scale / walked.case.head_dim**-0.5 - 1) > 1e-3:
            return walked.differs(number, 7, "scale", op.gave[0], factor=grown.scale, before=False)
    if before is None or op.failed or not op.gave or step == 8 and op_name(op) in MEET:
        return None
    after, hides = walked.readings[op.gave[0]], bool(walked.reference.hidden.any())
    root, state = walked.case.head_dim**-0.5, after.state
    if state is None and step == 6 and _mask_seen(walked, number):
        return walked.differs(number, 6, "hidden", op.gave[0], crossed=False)
    if state is None:
        unscaled = not before.grown and (before.hidden == "none" or not hides)
        plain = op_name(op) not in NORM | SCALE | MASK | {"pow"} and step == 7
        return walked.differs(number, 5, "made", op.gave[0]) if unscaled and plain else None
    if state.hidden == "none" and hides and state.grown:
        return walked.differs(number, 6, "skipped", index, for_step=7)
    if state.hidden == "other":
        crossed = bool(after.axes) and [a for a in after.axes if a][-2:] == ["j", "i"]
        return walked.differs(number, 5 if crossed else 6, "hidden", op.gave[0], crossed=crossed)
    if abs(state.scale / root - 1) > 1e-3 and (state.grown or abs(state.scale - 1) > 1e-3):
        return _scaled_otherwise(walked, number)
    return None


def _scaled_otherwise(walked: Walk, number: int) -> Difference | None:
    """By what scores are scaled in all, at the last of the calls that do it on their way."""
    index, scales = walked.ops[number].gave[0], [n for n in range(number + 1) if _scales(walked, n)]
    later = [] if walked.readings[index].state.grown else enumerate(walked.ops)
    for n, op in later:
        if n > number and index in op.given and op.gave and op_name(op) not in NORM | MEET:
            index = op.gave[0]
            scales += [n] * (op_name(op) in SCALE | WHOLE)
    last = max(scales, default=number)
    state = walked.readings[walked.ops[max(last, number)].gave[0]].state
    if state is None:  # the last makes no scores
        return _made_otherwise(walked, last, walked.ops[last], 7)
    if abs(state.scale / walked.case.head_dim**-0.5 - 1) < 1e-3:  # and what follows it is wrong
        return None
    values = {"factor": state.scale, "before": not scales}
    return walked.differs(last, 7, "scale", walked.ops[max(last, number)].gave[0], **values)


def _mask_seen(walked: Walk, number: int) -> bool:
    """Whether what a call hides is wrong, and nothing after it hides what is right."""
    told = []
    for index in (i for op in walked.ops[number:] for i in op.gave):
        reading = walked.readings[index]
        scores = reading.axes and reading.family == "scores" and not reading.part
        if laid := scores and walked.reference.aligned(walked.tensors[index], reading):
            told.append(not laid[0].isnan().any() and torch.equal(laid[0] < HIDDEN, laid[2]))
    weighed = any("softmax" in op_name(op) for op in walked.ops[:number])
    return bool(told) and not any(told) and not weighed and makes_nan(walked) != number


def _scales(walked: Walk, number: int) -> bool:
    """Whether a call multiplies or divides queries, keys or scores, and no sums of a softmax."""
    op = walked.ops[number]
    real = [reading for reading in walked.of(op) if reading.family in FAMILIES[1:]]
    return op_name(op) in SCALE and walked.steps[number] == 7 and len(real) == 1


def of_another_family(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """An operand of another family than the step takes."""
    if op_name(op) == "setitem" or step == 11 and op_name(op) != "linear":
        return None
    if step == 2 and op_name(op) != "linear":  # what is made of a projection is what is wrong
        return None
    if step == 7 and op_name(op) in SCALE and walked.phases[number] < 3:  # before they meet
        return None
    met = {reading.family for reading in walked.of(op)} if op_name(op) in MEET else ()
    if step == 8 and met == {"scores"} and not walked.inside(number):
        return walked.differs(number, 8, "family", op.given[-1], needs="values")
    for index in op.given:
        reading = walked.readings[index]
        if reading.family in ("const", "layer") or reading.part:
            continue
        done = walked.on_the_way(index) and stage_of(reading, walked) >= step
        if done and op_name(op) not in MEET | {"linear"}:  # made already, and changed
            continue
        if op_name(op) in CUT and step < 9:  # pieces of what comes later are laid out as well
            continue
        wanted = NEEDED.get(step)
        if wanted and reading.family != wanted:
            beside = [reading.state for reading in walked.of(op) if reading.state]
            if step == 7 and beside:  # scores are there: what they meet is no mask
                masks = op_name(op) == "add" and beside[0].hidden == "none"
                return walked.differs(number, 6, "family", index, needs="mask") if masks else None
            before = [walked.readings[i].state for e in walked.ops[:number] for i in e.gave]
            grown = {state.whole for state in before if state and state.grown}
            wanted = "exponentials" if step == 7 and grown == {False} else wanted
            return walked.differs(number, step, "family", index, needs=wanted)
    return None


def projected_otherwise(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Whether a call made x times a weight as it is stored, or something of x alone."""
    made = [walked.tensors[index] for index in op.gave]
    x, module = walked.reference.scene["shape"]["x"], walked.reference.scene.module
    if not made or step != 2:
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
    wrong = next((wrong for wrong, guess in guesses if close(out, guess)), ())
    if wrong == UNDIVIDED:
        return walked.differs(parts[0], 7, "undivided", width=width)
    return walked.differs(parts[0], 8, "rescaled" if wrong else "blocks", width=width, sums=wrong)


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
    hidden = walked.reference.hidden.flatten(0, -3).all(0)
    return [tuple(place) for place in (~hidden).nonzero().tolist()]


def _not_rescaled(walked: Walk, width: int) -> Iterator[tuple[tuple[str, ...], torch.Tensor]]:
    """The output of a softmax in blocks whose sums stay as they are when the maximum grows."""
    scene = walked.reference.scene
    masked = scene["scores"]["scores"].masked_fill(walked.reference.hidden, -torch.inf)
    scaled, values = masked / walked.case.head_dim**0.5, scene["transpose"]["values"]

    def as_it_was(kept: torch.Tensor, shrink: torch.Tensor, new: torch.Tensor) -> torch.Tensor:
        return kept + new  # kept is not measured from the largest score now

    guesses = {sums: dict.fromkeys(sums, as_it_was) for sums in NOT_RESCALED}
    guesses[UNDIVIDED] = {"over": lambda context, total, new: context}
    with torch.no_grad():
        for wrong, parts in guesses.items():
            context = blockwise(scaled, values, width, **parts)
            yield wrong, scene.module.out_proj(context.transpose(1, 2).flatten(2))


def capped_late(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """Whether a tanh caps scores that were masked before."""
    for at, call in enumerate(walked.ops):
        index, _ = _scores_given(walked, call) if op_name(call) == "tanh" else (None, None)
        if index is not None and (walked.tensors[index] < HIDDEN).any():
            return walked.differs(at, 6, "capped")
    return None


# A size that is none of the case, or not the one that is needed where it is used


def wrong_size(walked: Walk, number: int, op: Op, step: int) -> Difference | None:
    """A size that is none of the case, or that is read off x and is not one that is needed."""
    case, stop, raised = walked.case, walked.stop, op.failed
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    if not around(op.place):  # of a view that raises the numbers tell
        odd = [e for e in op.numbers if type(e) is int and e not in (b, n, h, d, case.d_out, -1)]
        view = raised and odd and op_name(op) in ("view", "reshape")
        return Difference(1, "size", number, values=_size(str(odd[0]), odd[0])) if view else None
    four = {b, n, h, d} if len(op.numbers) == 4 else {b, n, h, d, case.d_out, b * h}
    needed = {3: four, 4: four, 6: {n}, 9: four, 10: four}.get(step, {*case.letters.values()})
    known, tensors = (stop.numbers, stop.tensors) if stop else ({}, {})
    if raised and step == 6 and (cut := _made_for(walked, op)):
        (number, known), tensors = cut, {}
        op = walked.ops[number]
    source, first = walked.source_at(op.place)
    tree, at = parsed(source), op.place.line - first + 1
    own = set_in(tree, at)
    masks = [i for i in (*op.given, *op.gave) if walked.readings[i].family == "const"]
    sizes = {size for i in masks for size in walked.tensors[i].shape}
    for node in _sizes_behind(around(op.place)[0 if raised else -1], own, known, tensors):
        name = kept_name(node, own)
        if size := _stored(walked, name):
            place = set_at(walked, name) or op.place
            return Difference(1, "size", number, place, values=_size(name, size))
        name = getattr(node, "id", "")
        if not raised or step == 5 or name not in known or known[name] in needed:
            continue
        if step == 6 and masks and known[name] not in sizes:  # of something else in its line
            continue
        reads = [e for e in own.get(name, ()) if _is_read(e) and e.lineno <= at][-1:]
        values = _size(name, known[name], step)
        if op.calls and name not in own:
            return _handed(walked, number, step, values)
        text = op.place.expression  # what stands in it as well was read with it, in its place
        fitting = {n for n in known if known[n] in needed - {*op.numbers}}
        fitting = {n for n in fitting if not re.search(rf"\b{n}\b", text)}
        # x has no other size that fits, or this one fits its name, or where it was used before
        there = step in (3, 10) and {b, n} <= {*op.numbers} or case.letters.get(name) == known[name]
        uses = (e.place for e in walked.ops[:number] if e.place and op_name(e) in REGROUPS | SCALE)
        uses = (e for e in uses if re.search(rf"(?<!\.)\b{name}\b", e.expression))
        there |= step == 6 and any(set_in(tree, e.line - first + 1) == own for e in uses)
        if reads and (there or _another_meant(tree, own, reads[0], fitting)):
            return walked.differs(number, step, "size", **values)
        if reads:
            return Difference(1, "size", number, place_of(reads[0], first), values=values)
    return None


def _size(name: str, size: int, step: int = 0) -> dict[str, Any]:
    """What is told of a wrong size; that of a mask is known to be num_tokens."""
    return {"name": name, "size": size, "needs": "num_tokens" if step == 6 else ""}


def _sizes_behind(
    start: ast.AST, own: dict[str, list], known: Collection[str], tensors: Collection[str]
) -> Iterator[ast.AST]:
    """The parts of an expression, and of what the sizes in it were set to, each name once."""
    todo, seen = [start], {*tensors}
    while todo:
        for node in ast.walk(todo.pop()):
            if isinstance(node, ast.Name):
                if node.id in seen:
                    continue
                seen.add(node.id)
                values = (e for e in own.get(node.id, ()) if not _is_read(e))
                todo += (e for e in values if node.id in known or isinstance(e, ast.Tuple))
            yield node


def _is_read(value: ast.AST) -> bool:
    """Whether a size is read off a tensor."""
    return any(call_name(part) in ("shape", "size", "len") for part in ast.walk(value))


def _made_for(walked: Walk, op: Op) -> tuple[int, dict[str, int]] | None:
    """The call that made a mask for another size than num_tokens, and that size, by its name."""
    known = walked.stop.numbers
    for index in op.given:
        size = walked.tensors[index].shape[-1:].numel()
        if walked.readings[index].family != "const" or size in (1, walked.case.num_tokens):
            continue
        for made in walked.ancestry(index):
            cut, here = walked.ops[made], walked.ops[made].calls == op.calls
            nodes = [getattr(node, "slice", node) for node in around(cut.place)[:1]]
            names = {e.id for node in nodes for e in ast.walk(node) if isinstance(e, ast.Name)}
            named = {name for name in names if not here or known.get(name) == size}
            if len(named) == 1 and size in cut.numbers and (here or op_name(cut) == "getitem"):
                return made, {named.pop(): size}
    return None


def _handed(walked: Walk, number: int, step: int, values: dict[str, Any]) -> Difference:
    """A wrong size that a helper was handed: at the call, or where it was read for that."""
    call, name = walked.ops[number].calls[0], values["name"]
    source, first = walked.source_at(call)
    own = set_in(parsed(source), call.line - first + 1)
    arguments = [argument for node in around(call)[:1] for argument in getattr(node, "args", ())]
    handed = any(getattr(argument, "id", "") == name for argument in arguments)
    for value in own.get(name, ()) if handed else ():
        if call_name(value) == "shape":
            return Difference(1, "size", number, place_of(value, first), values=values)
    return Difference(step, "size", number, call, values=values)


def _another_meant(tree: ast.AST, own: dict[str, list], value: ast.AST, fitting: set[str]) -> bool:
    """Whether another size that was read with this one fits, and its function uses it."""
    siblings = {name for name in fitting if value in own.get(name, ())}
    names = (e for e in ast.walk(tree) if isinstance(e, ast.Name) and e.id in siblings)
    return any(isinstance(e.ctx, ast.Load) and set_in(tree, e.lineno) == own for e in names)


def kept_name(node: ast.AST, own: dict[str, list]) -> str:
    """The text of a node; from self on, where a name stands for something that self keeps."""
    text = ast.unparse(node) if isinstance(node, ast.Attribute | ast.Subscript) else ""
    first, *rest = re.split(r"\b(?=\W)", text, maxsplit=1)
    held = (f"self.{of_self(e)}" for e in own.get(first, ()) if of_self(e))
    return next(held, first) + "".join(rest)


def _stored(walked: Walk, name: str) -> int:
    """The size that a module keeps under a name, where nothing of the case has it; else 0."""
    size, case = walked.trace.sizes.get(name.removeprefix("self."), 0), walked.case
    fused = any(t.shape[:1] == (3 * case.d_out,) for t in walked.tensors[:9])
    besides = {e for e in sizes_besides(case).values() if type(e) is int}
    besides |= {case.num_heads // e for e in besides}  # as heads of queries for one of keys
    usual = {0, 1, *case.letters.values(), case.b * case.num_heads, 3 * case.d_out * fused}
    return 0 if size in usual | besides else size


def set_at(walked: Walk, text: str) -> Place | None:
    """The line of the class that sets a name or an attribute; None where its source has none."""
    text = re.match(r"(?:self\.)?\w*", text)[0]
    for node in ast.walk(parsed(walked.trace.source)):
        targets = node.targets if isinstance(node, ast.Assign) else ()
        if text in [ast.unparse(e) for t in targets for e in getattr(t, "elts", [t])]:
            line = walked.trace.source.splitlines()[node.lineno - 1].strip()
            return Place(node.lineno + walked.trace.first - 1, line, line, line)
    return None


# The first that finds something is told. Few calls answer two: a tensor that is another one than
# its step takes is told before how far it has come, the axes that an einsum makes before what they
# lead to, and a cap that comes late before the scale that it leaves.
AT_FAULT = (
    never_filled,
    of_another,
    *MEETINGS,
    capped_late,
    wrong_size,
    some_keys_alone,
    not_grown,
    not_weights_yet,
    left_the_way,
    of_another_family,
    projected_otherwise,
)

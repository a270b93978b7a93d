"""Find the first thing that is not right on the way to what came, and whose step it is.

The way is walked back from what is returned, or from the call that raised, to tensors that are
right. The first call on it whose inputs are right and whose output is not is where to look: it got
what another step makes, or skipped one, or makes something else of what its step takes. It is found
in one case, and asked for again in another, of other sizes and numbers.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.judge.at_fault import at_fault, set_at
from eleven_steps.checks.judge.path import Difference, Walk, stage_of, walk
from eleven_steps.checks.judge.read import FAMILIES, Reading, Reference, reference_of
from eleven_steps.checks.judge.syntax import (
    CUT,
    KEEP,
    MASK,
    MEET,
    NORM,
    SCALE,
    TURN,
    around,
    call_name,
    dropped_call,
    of_self,
    op_name,
    parsed,
    place_of,
    returning_nothing,
    set_in,
    step_for,
)
from eleven_steps.checks.know.catalogue import mistake_named
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op, Stop, Trace
from eleven_steps.helpers.trace import STEPS

OF_A_STEP = TURN | CUT | MEET | MASK | NORM | SCALE | KEEP
USED_AT = {"Linear": 2, "Dropout": 7, "Softmax": 7, "float": 1, "method": 1}
NUMBERS = "float", "int", "index"  # one number of a tensor
TELL_LEAST = "getitem", *NUMBERS
BEFORE_BLOCKS = "hidden", "scale", "skipped"  # wrong in a block, whatever comes of it


@dataclass(frozen=True)
class Blame:
    """A difference with the walk it was found on."""

    walked: Walk
    found: Difference | None

    @property
    def raised(self) -> bool:
        """Whether the run was stopped by an error."""
        return self.walked.stop is not None

    def step_of(self, name: str) -> int:
        """The step of a mistake, or an earlier one of its steps where it is made here."""
        mistake = mistake_named(name)
        step = self.found.step if self.found else mistake.step
        here = step in mistake.steps and not self.walked.reached(STEPS[step - 1])
        return min(step, mistake.step) if here else mistake.step

    def unspoilt(self, name: str) -> bool:
        """Whether what a mistake would have spoilt is there, and right, and the fault elsewhere."""
        number, case = mistake_named(name).step, self.walked.case
        if self.found and self.found.step == number:
            return False
        step = STEPS[number - 1]
        wrong, right = play(case, name).steps.get(step, {}), play(case)[step]
        spoilt = [n for n, t in right.items() if n not in wrong or not close(wrong[n], t)]
        ours = self.walked.reference.scene[step]
        own = {e.who for e in self.walked.readings if number == 2 and e.stage}  # all three in one
        return bool(spoilt) and all(
            name in own or self.walked.own(ours[name]) is not None for name in spoilt
        )


def blamed(cls: Any, case: Case, out: torch.Tensor | Failure | None = None) -> Blame | None:
    """Trace a class in a case and find its first difference; None where it cannot be traced.

    In double precision it must do the same as out, what it gives there in float32. What it makes
    in float32 all the same, such as angles, is right there alone: then what is later there counts.
    """
    first = None
    for double in (True, False):
        does = isinstance(out, Failure) if double and out is not None else None
        blame = followed(ask(cls, "trace", case, double), reference_of(case, double), does)
        found = [one and one.found and one.found.op for one in (first, blame)]
        first = first if first and (found[1] or 0) <= (found[0] or 0) else blame
        if first and not (first.found and first.found.reason in ("made", "family")):
            break
    return first


def followed(trace: Any, reference: Reference, raises: bool | None) -> Blame | None:
    """Find the first difference of a trace; None where there is no trace, or it ends otherwise.

    Raises says whether it must end in an error; None where it may.
    """
    if not isinstance(trace, Trace) or raises is (trace.stop is None):
        return None
    with clock_paused():
        walked = walk(trace, reference)
        return Blame(walked, differ(walked))


def plainly(blame: Blame) -> Blame:
    """The same as the line that raised has it, whatever step it is for."""
    ops, stop = blame.walked.ops, blame.walked.stop
    last = len(ops) - 1
    if ops and ops[-1].failed:
        found = blame.walked.differs(last, blame.walked.steps[last], "torch")
    else:
        found = Difference(1, "name", None, stop.place if stop else None)
    return replace(blame, found=found)


def differ(walked: Walk) -> Difference | None:
    """Return the first difference of a trace from the right one; None where none is found."""
    trace = walked.trace
    if found := _nameless(walked) or _uncalled(walked):
        return found
    if trace.stop and not (trace.ops and trace.ops[-1].failed):
        return _unreached(walked)
    last, start = len(trace.ops) - 1, walked.came
    if trace.stop and op_name(trace.ops[last]) in NUMBERS:  # and there are several
        return walked.differs(last, _stands(walked, trace.ops[last].place), "number", start[0])
    if not start and not trace.stop:
        return None
    if not trace.stop and walked.on_the_way(start[0]) and walked.readings[start[0]].family == "out":
        came, right = trace.tensors[start[0]], walked.reference.scene.out
        if came.shape == right.shape:
            return None
        number = walked.makers[start[0]][0]
        return walked.differs(number, 11, "shape", start[0])
    wrong = [i for i in start if not walked.on_the_way(i) or walked.readings[i].tokens]
    visited = walked.back(wrong, stop_at_right=True) | ({last} if trace.stop else set())
    if found := _idle(walked, start, last if trace.stop else None):
        return found
    return _left(walked, visited, start) if visited else _early(walked, start[0])


def _left(walked: Walk, visited: set[int], start: list[int]) -> Difference:
    """What is wrong at the first call of some that leaves the right way to what start holds."""
    trace = walked.trace

    def deviates(op: Op) -> bool:
        made = op.failed or not all(map(walked.sound, op.gave))
        return made and op_name(op) != "written" and all(map(walked.sound, op.given))

    every = [n for n in sorted(visited) if deviates(trace.ops[n])] or [max(visited)]
    first = at_fault(walked, every[0])
    surer = BEFORE_BLOCKS if first.reason == "blocks" else ()
    if trace.unfilled and first.reason in ("made", "skipped"):  # which it explains
        surer = ("unfilled",)
        every += (n for n in walked.back(start) if trace.unfilled.keys() & {*trace.ops[n].gave})
    later = (at_fault(walked, number) for number in every[1:] if surer)
    return next((difference for difference in later if difference.reason in surer), first)


def _early(walked: Walk, index: int) -> Difference:
    """What is right, and comes back before it is out."""
    stage, number = stage_of(walked.readings[index], walked), walked.makers.get(index, [None])[-1]
    place = None if number is None else walked.ops[number].place
    return Difference(min(stage + 1, 11), "early", number, place, index)


def _idle(walked: Walk, start: list[int], last: int | None) -> Difference | None:
    """Scores, weights, context or out that are right, and that nothing uses."""
    ours = any(walked.readings[index].family in FAMILIES[1:] for index in start)
    if last is not None and (not ours or walked.steps[last] == 2):  # a mask, or x projected late
        return None
    trace, full = walked.trace, walked.back(start)
    used = {index for number in full for index in trace.ops[number].given} | {*start}
    full |= set() if last is None else {last}

    def progress(index: int) -> int:
        reading = walked.readings[index]
        some = reading.tokens or "i" in dict(reading.fixed)  # of a loop, which may use others
        fits = walked.on_the_way(index) and reading.family in FAMILIES[3:] and not some
        return stage_of(reading, walked) if fits else 0

    reached = max(map(progress, used), default=0)
    places = {trace.ops[n].place for i in used for n in walked.makers.get(i, ())}
    idle = (i for i in sorted(walked.makers) if i not in used)
    made = [i for i in idle if not _piece(walked, i, places)]
    best = max(made, key=lambda index: (progress(index), index), default=None)
    if best is None or progress(best) <= reached:
        return None
    maker, step = walked.makers[best][0], progress(best)
    op = trace.ops[maker]
    if dropped := next(filter(dropped_call, (op.place, *op.calls)), None):
        return Difference(step, "idle", maker, dropped, None, best)
    for number in sorted(n for n in full if n > maker):
        op, written = trace.ops[number], op_name(trace.ops[number]) == "setitem"
        if walked.steps[number] < step and not written:
            continue
        real = [i for i in op.given if walked.readings[i].family in FAMILIES[1:]]
        came = min(real, key=lambda i: walked.readings[i].who == "values", default=None)
        if came is not None:
            others = [i for i in op.given if walked.readings[i].family == "const"]
            if op_name(op) in MEET and others and walked.readings[came].who == "values":
                came = others[0]  # what they meet is nothing of x
                while made := [n for n in walked.makers.get(came, ()) if maker < n < number]:
                    number, op = made[-1], trace.ops[made[-1]]
                    came = next(iter(op.given), came)
            # The step that the line is for, were it given what is right.
            given = [walked.readings[best if i == came else i] for i in op.given]
            for_step = step_for(op, given, walked.phases[number], step > 6)
            step = step + 1 if written else for_step  # what is to be written is made of it
            return walked.differs(number, step, "idle", came, best)
    return Difference(step, "idle", maker, None, None, best)  # the last line names something else


def _piece(walked: Walk, index: int, places: set[Place | None]) -> bool:
    """Whether a tensor is one head's of several, and those of other heads are used."""
    reading = walked.readings[index]
    one = {*dict(reading.fixed)} - {"w"}
    return bool(one) and walked.ops[walked.makers[index][0]].place in places


# A line that raised before any torch call: its step is what the line was to do


def _unreached(walked: Walk) -> Difference:
    """A line that raised by itself: the step is what the line was to do."""
    stop = walked.stop
    if stop.place is None or stop.place.text.startswith("raise "):  # no line of a step
        todo = (n for n, name in enumerate(STEPS, start=1) if not walked.reached(name))
        return Difference(next(todo, len(STEPS)), "name", None, stop.place)
    read = stop.place.statement.rpartition(" = ")[2].removesuffix(".shape")
    index = stop.tensors.get(read) if "to unpack" in stop.failure.text else None
    asserted = stop.place.text.startswith("assert ")
    asked = re.findall(r"\w+", stop.place.text) if asserted else [read] * (index is not None)
    given = [stop.tensors[name] for name in asked if name in stop.tensors]
    wrong = [i for i in given if not walked.on_the_way(i)]
    if made := walked.back(wrong, stop_at_right=True):
        return _left(walked, made, wrong)
    if found := _of_several(walked):
        return found
    stage = None if index is None else stage_of(walked.readings[index], walked)
    if stage == 2:  # heads are awaited
        return Difference(3, "skipped", None, stop.place, index, values={"for_step": 4})
    step = 1 if stage == 1 else _stands(walked, stop.place)  # of x its sizes are
    step = walked.steps[-1] if asserted and walked.steps else step  # it looks at what was made
    return Difference(step, "name", None, stop.place)


def _of_several(walked: Walk) -> Difference | None:
    """A tuple or list of tensors that stands where one belongs: where the last of them was made."""
    stop, nodes = walked.stop, around(walked.stop.place)[:1]
    kind = re.search("'(tuple|list)'( object| and|$)|, not (tuple|list)", stop.failure.text)
    named = [(n, e) for n, e in stop.several.items() for node in nodes if n in _names(node)]
    line = stop.place.line  # where a helper may return it
    inner = (op.gave for op in walked.ops if any(call.line == line for call in op.calls))
    made = [gave for gave in inner if gave and walked.readings[gave[0]].family != "const"]
    name, last = (named or [("return", e) for e in made[-1:]] or [("", [None])])[0]
    if not kind or not (numbers := walked.makers.get(last[-1])):
        return None
    op, many = walked.ops[numbers[0]], len(last) > 1
    joins = many and walked.readings[last[-1]].family == "context"
    step = 10 if joins else walked.steps[numbers[0]]
    here = len(op.gave) > 1 or op.place and op.place.statement.startswith(name)
    reason = "several" if many else "single"
    found = walked.differs(numbers[0], step, reason, kind=kind[1] or kind[3])
    own = set_in(parsed(stop.source), line - stop.first + 1).get(name, ())
    for value in own if not many else ():  # in eval mode dropout hands on what it was given
        at, text = value.lineno + stop.first - 1, f"{name} = {ast.unparse(value)}"
        found = replace(found, place=Place(at, text, text, text)) if at < line else found
    return found if here else Difference(step, "name", None, stop.place)


def _nameless(walked: Walk) -> Difference | None:
    """What is right, and no name was given to, where None, or what it was, stands in its stead."""
    lost = walked.stop and re.search("NoneType|to unpack", walked.stop.failure.text)
    for number, op in enumerate(walked.ops if lost else ()):
        if dropped_call(op.place) and op.gave and walked.on_the_way(op.gave[0]):
            return walked.differs(number, walked.steps[number], "idle", None, op.gave[0])
    return None


def _uncalled(walked: Walk) -> Difference | None:
    """What the line that raised takes, and is a method, a layer or a float: where it was set."""
    stop, parts = walked.stop, walked.trace.parts
    if not stop or not stop.place:
        return None
    made = call_name(next(iter(around(stop.place)), None))
    if walked.ops and walked.ops[-1].failed and hasattr(torch.nn, made):  # a layer, of a tensor
        return _odd(USED_AT.get(made, 2), stop.place, stop.place.expression, made)
    own = set_in(parsed(stop.source), stop.place.line - stop.first + 1)
    for name in filter(stop.odd.get, re.findall(r"(?:self\.)?\b\w+\b(?!\()", stop.place.statement)):
        kind, place, text = stop.odd[name], next(iter(stop.calls), stop.place), ""
        for value in own.get(name, ()):
            line, text = value.lineno + stop.first - 1, ast.unparse(value)
            place = Place(line, f"{name} = {text}", f"{name} = {text}()", f"{text}()")
        read = {of_self(e) for node in around(place)[-1:] for e in ast.walk(node)}
        read -= {"", *walked.trace.sizes}
        held = (n for n in read if kind == stop.odd.get(f"self.{n}", parts.get(n, "method")))
        name = next((f"self.{n}" for n in held), name)
        size = text.endswith((".size", ".dim"))
        step = 1 if size else USED_AT.get(kind) or _stands(walked, place)
        place = kind == "float" and set_at(walked, name) or place
        return _odd(11 if name == "self.out_proj" else step, place, name, kind)
    return None


def _odd(step: int, place: Place, name: str, kind: str) -> Difference:
    reason = "float" if kind == "float" else "layer" if kind[0].isupper() else "method"
    return Difference(step, reason, None, place, values={"name": name, "kind": kind})


def _stands(walked: Walk, place: Place, depth: int = 0) -> int:
    """The step of a place in the source where no torch call was reached."""
    stop, trace = walked.stop, walked.trace
    lines = [[e.line for e in (op.place, *op.calls) if e] for op in trace.ops]
    here = [n for n, own in enumerate(lines) if place.line in own]  # or in a helper that is called
    if here and "to unpack" in stop.failure.text:
        return min(walked.steps[n] for n in here)
    if "NoneType" in stop.failure.text and (lost := _lost(walked)):
        return lost
    fused = r"scaled_dot.* argument '(?:(dropout|scale)|.*(mask|ca))"
    if said := re.search(fused, stop.failure.text):
        return 7 if said[1] else 6
    path = list(around(place))
    names = _names(path[0]) if path else ()
    if kind := trace.parts.get(ast.unparse(path[0]) if path else ""):  # without self
        return 11 if "out_proj" in names else USED_AT.get(kind, 2)
    if not path:
        return 1
    readings = {name: walked.readings[i] for name, i in stop.tensors.items()}
    made = {walked.ops[n].place.expression: walked.ops[n].gave for n in here if walked.ops[n].place}
    readings |= {text: walked.readings[gave[0]] for text, gave in made.items() if gave}
    families = [walked.readings[index].family for op in trace.ops for index in op.gave]
    phases = (FAMILIES.index(family) for family in families if family in FAMILIES)
    phase = max([1, *walked.phases[-1:], *phases])
    if of_own := _call_of_own(walked, path, readings, phase):
        return of_own
    nodes = [e for e in (*path, *ast.walk(path[-1])) if not _of_sizes(e, stop)]
    nodes = [e for e in nodes if ast.unparse(e) not in made]  # which ran
    for node in sorted(nodes, key=lambda e: call_name(e) in TELL_LEAST):
        if (step := _node_step(walked, node, path, readings, phase)) is not None:
            return step
    return walked.steps[here[-1]] if here else _used_later(walked, path, place, depth)


def _of_sizes(node: ast.AST, stop: Stop) -> bool:
    """Whether a node calculates with numbers alone, as `d_out // num_heads` does."""
    inside = {ast.unparse(e) for e in ast.walk(node) if isinstance(e, ast.Name | ast.Attribute)}
    return isinstance(node, ast.BinOp) and inside.isdisjoint(stop.tensors)


def _names(node: ast.AST) -> set[str]:
    return {e.id for e in ast.walk(node) if isinstance(e, ast.Name)}


def _lost(walked: Walk) -> int:
    """The step of what a function of the class's own makes last and does not return, or 0."""
    first, steps = walked.trace.first - 1, [0]
    for function in returning_nothing(walked.trace.source):
        lines = range(function.lineno + first, function.end_lineno + first + 1)
        made = (n for n, op in enumerate(walked.ops) if op.place and op.place.line in lines)
        steps += [] if function.name == "forward" else [walked.steps[n] for n in made]
    return steps[-1]


def _call_of_own(walked: Walk, path: list, readings: dict, phase: int) -> int:
    """The step after those of what a function of the learner's own is given, and not as it takes.

    0 where it is no such call, or what it is given tells nothing.
    """
    text, node = walked.stop.failure.text, path[0]
    wrong = re.match(r"TypeError: [\w.]+\(\) (takes|missing|got) ", text)
    lost = getattr(next(iter(path[1:]), None), "func", None) is node  # it is not found
    if lost:
        wrong, node = text.startswith(("NameError", "AttributeError")), path[1]
    kind = walked.trace.parts.get(of_self(getattr(node, "func", None)), "")
    if not wrong or not isinstance(node, ast.Call) or hasattr(torch.nn, kind or call_name(node)):
        return 0
    by_name = lost or isinstance(node.func, ast.Attribute)
    if not kind and call_name(node) in OF_A_STEP and by_name:
        return 0
    given = [stage_of(readings[text], walked) for text in _outside_calls(node, readings)]
    given += [_node_step(walked, e, path, readings, phase) or 0 for e in node.args]
    return min(max(given, default=-1) + 1, 11)


def _node_step(walked, node, path, readings, phase) -> int | None:
    """The step that a node of the source is for, if it tells."""
    trace = walked.trace
    name = _call_named(node, trace)
    if name == "getitem" and isinstance(node.ctx, ast.Store):
        name, node = "setitem", path[-1]
    arithmetic = {"mul", "div", "add", "sub", "pow", "mult"}
    if not name or name not in OF_A_STEP | arithmetic | {"linear"}:
        return None
    given = [readings[part] for part in _outside_calls(node, readings)]
    scored = name == "add" and given and given[0].family == "scores"
    if scored and walked.stop.lost in map(of_self, ast.walk(node)) and walked.stop.lost:
        given.append(Reading("const"))  # what is added to scores hides some
    if name in ("mul", "div") and not given and (isinstance(path[0], ast.Name) or phase > 2):
        return 7
    if name in arithmetic | KEEP | {"getitem"} and not given:  # of sizes alone
        return None
    place = Place(0, "", ast.unparse(path[-1]), ast.unparse(node))
    return step_for(Op(name, (), (), place), given, phase, phase > 3)


def _outside_calls(node: ast.AST, readings: dict) -> Iterator[str]:
    """The texts of what is in a node, but for what stands in other calls that have not run."""
    for child in ast.iter_child_nodes(node):
        if (text := ast.unparse(child)) in readings:
            yield text
        elif not isinstance(child, ast.Call) and call_name(child) != "shape":
            yield from _outside_calls(child, readings)


def _call_named(node: ast.AST, trace) -> str:
    """The call that a node stands for: of a module of the answer's own, what it is."""
    if part := trace.parts.get(of_self(getattr(node, "func", None))):
        known = {"Linear": "linear", "Dropout": "dropout", "Softmax": "softmax"}
        return known.get(part, "linear")
    name = call_name(node)
    return "reshape" if name == "rearrange" else name


def _used_later(walked: Walk, path: list, place: Place, depth: int) -> int:
    """The step that a size is used for which the line was to make; step 1 where it is not clear."""
    last = path[-1]
    sized = any(call_name(part) in ("shape", "size") for part in ast.walk(last))
    sized = sized and not walked.ops  # behind a call a size is read for what comes next
    single = isinstance(last, ast.Assign) and not isinstance(last.targets[0], ast.Tuple)
    if not single or sized or depth > 2:
        return 1
    names = _names(last.targets[0])
    tree, first = parsed(walked.trace.source), walked.trace.first
    lines = (e for e in ast.walk(tree) if isinstance(e, ast.stmt) and not hasattr(e, "body"))
    for node in sorted(lines, key=lambda line: line.lineno):
        own = (e.id for e in ast.walk(node) if isinstance(e, ast.Name) and e.id in names)
        if (name := next(own, "")) and node.lineno + first - 1 > place.line:
            return _stands(walked, place_of(node, first, name), depth + 1)
    return 1

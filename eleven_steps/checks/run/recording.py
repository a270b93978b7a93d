"""Write down what a learner's code does: every torch call of its own lines, and what stopped it."""

import ast
import contextlib
import inspect
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import Any

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map_only

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.checks.run import places
from eleven_steps.checks.run.copies import (
    attention_apart,
    copy_of,
    flat,
    held_by,
    memory_of,
    tensors_in,
    version_of,
)
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, clock_paused
from eleven_steps.checks.run.making import learners

CHECKS = f"{Path(__file__).parents[1]}{os.sep}"
MOST_WATCHED = 1_000_000  # numbers of a tensor of which it is noted whether each is written
MOST_CALLS = 4000  # of one run; a loop over single numbers stops being written down there


@dataclass(frozen=True)
class Op:
    """One call: its name, the tensors it was given and gave, as their numbers in the trace."""

    name: str
    given: tuple[int, ...]
    gave: tuple[int, ...]
    place: places.Place | None = None
    numbers: tuple[Any, ...] = ()  # and texts, that it was given
    failed: bool = False
    calls: tuple[places.Place, ...] = ()  # that led to it, where it stands in a helper, inner first


@dataclass(frozen=True)
class Stop:
    """What stopped a run: the error, where it was raised, what the names there stood for."""

    failure: Failure
    place: places.Place | None = None
    tensors: dict[str, int] = field(default_factory=dict)  # by name or attribute, in the trace
    numbers: dict[str, int] = field(default_factory=dict)  # whole numbers, by name or attribute
    several: dict[str, tuple[int, ...]] = field(default_factory=dict)  # tuples of tensors, by name
    odd: dict[str, str] = field(default_factory=dict)  # types, by name, that the error names
    calls: tuple[places.Place, ...] = ()  # as of an Op
    source: str = ""  # of the function that it was raised in
    first: int = 1  # the number of its first line
    lost: str = ""  # the name, key or keyword that is not known there
    known: tuple[str, ...] = ()  # and those that are


@dataclass(frozen=True)
class Trace:
    """One run of an answer; tensors are copies, each as it was when it was made."""

    tensors: tuple[torch.Tensor, ...]
    ops: tuple[Op, ...]
    layers: dict[int, str]  # parameters among the tensors, by name
    inputs: tuple[int, ...]  # what was handed in
    returned: tuple[int | None, ...]  # what came back; None for what is no tensor
    stop: Stop | None = None
    source: str = ""  # of the answer's functions, with its own line numbers
    first: int = 1  # the number of its first line
    sizes: dict[str, int] = field(default_factory=dict)  # whole numbers the module keeps
    parts: dict[str, str] = field(default_factory=dict)  # modules within, and their types
    names: dict[int, str] = field(default_factory=dict)  # of tensors, where they were first seen
    # Tensors that were made without numbers and never filled whole, as each version of them: how
    # many of their numbers were not written
    unfilled: dict[int, int] = field(default_factory=dict)
    # Parameters whose tensors the call has changed, and their shapes before and after.
    changed: dict[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)


def traced(
    function: Callable[..., Any],
    arguments: Iterable[Any],
    module: nn.Module | None = None,
    answer: Any = None,
) -> tuple[Trace, Any]:
    """Run a learner's function, or a way to call a module, and write down its torch calls.

    Parameters, buffers and sizes of the module are known by name, and the source of the answer goes
    with it.

    Returns:
        The trace, and what came back: a Failure where it raised.
    """
    arguments = list(arguments)
    recorder = Recorder(
        module, [argument for argument in arguments if isinstance(argument, torch.Tensor)]
    )
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # what is fused is taken apart

    def body() -> Any:
        try:
            with torch.no_grad(), recorder:
                return function(*arguments)
        except TimeUp:
            raise
        except BaseException as error:  # a SystemExit too
            with clock_paused():
                recorder.note(error)
            raise

    called = getattr(getattr(function, "__code__", None), "co_varnames", ())
    laid = _laid(called, arguments)
    came = attempt(body)
    torch.backends.mha.set_fastpath_enabled(fast)
    trace, names, after = _whole(recorder, came, answer), {}, _laid(called, arguments)
    changed = {name: (old[0], after[name][0]) for name, old in laid.items() if after[name] != old}
    ours = ((n, e) for n, e in zip(called, arguments, strict=False) if isinstance(e, torch.Tensor))
    for (name, tensor), (number, version) in zip(ours, recorder.given, strict=False):
        names[number], before = name, trace.tensors[number].shape
        if version_of(tensor) != version or tensor.shape != before:
            changed[name] = tuple(before), tuple(tensor.shape)
    names |= {number: name for number, (_, name) in recorder.names.items()}
    return replace(trace, names=names, changed=changed), came


def _laid(names: Iterable[str], given: list[Any]) -> dict[str, tuple]:
    """How the parameters of the layers that are given lie in memory, first their shapes."""
    layers = ((n, each) for n, each in zip(names, given, strict=False) if type(each) is nn.Linear)
    every = ((f"{n}.{of}", t) for n, each in layers for of, t in each.named_parameters())
    return {name: (tuple(t.shape), t.stride(), version_of(t), id(t)) for name, t in every}


def _whole(recorder: "Recorder", came: Any, answer: Any) -> Trace:
    parts = came if isinstance(came, tuple | list) else (came,)
    # A tensor that no call was given or gave may come back: it gets a number too.
    back = [recorder.number(p) if isinstance(p, torch.Tensor) else None for p in parts[:99]]
    stop = None
    if isinstance(came, Failure):
        stop = replace(recorder.stop or Stop(came), failure=came)
    source, first = places.source_around(answer)
    placed = any(op.place for op in recorder.ops) or stop and stop.place
    source = source if placed or not recorder.ops else ""
    ran = tuple(recorder.tensors), tuple(recorder.ops), recorder.layers, tuple(recorder.inputs)
    kept = {"sizes": recorder.sizes, "parts": recorder.parts, "unfilled": recorder.unfilled()}
    return Trace(*ran, tuple(back), stop, source, first, **kept)


def _named(names: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """What names stand for, and what is in a list, a dictionary or a plain object of that name."""
    for name, value in names.items():
        yield name, value
        for key, inner in inside(value).items() if name != "self" else ():
            plain = type(value) in (list, tuple, dict)
            yield f"{name}[{key!r}]" if plain else f"{name}.{key}", inner


def inside(value: Any) -> dict[Any, Any]:
    """What is in a list, a dictionary or a plain object, by its number or name."""
    if type(value) in (list, tuple):
        return dict(enumerate(value[:9]))
    if names := getattr(value, "_fields", ()) if isinstance(value, tuple) else ():
        return dict(zip(names, value, strict=False))
    known = value if type(value) is dict else getattr(value, "__dict__", None)
    own = type(known) is dict and not isinstance(value, torch.Tensor | nn.Module | type)
    return dict(known) if own and not inspect.ismodule(value) else {}


def _lost(
    error: BaseException, frame: FrameType, names: dict[str, Any], place: places.Place
) -> tuple[str, tuple[str, ...]]:
    """The name, key or keyword that an error does not find, and those that are to be had there."""
    if isinstance(error, NameError):
        return re.search(r"'(\w+)'", str(error))[1], tuple(frame.f_locals)
    if isinstance(error, AttributeError):
        plain = type(error.obj).__module__ == "builtins"
        every = () if plain and not inspect.ismodule(error.obj) else dir(error.obj)
        return error.name, tuple(name for name in every if not name.startswith("_"))
    if isinstance(error, KeyError):
        dicts = (e for n, e in names.items() if type(e) is dict and f"{n}[" in place.statement)
        return str(error.args[0]), tuple(map(str, next(dicts)))
    call = ast.parse(place.expression, mode="eval").body
    first, *path = ast.unparse(call.func).split(".")
    function = (frame.f_globals | frame.f_locals).get(first, torch.Tensor)
    for name in path if function is not torch.Tensor else path[-1:]:
        function = getattr(function, name)
    function = getattr(function, "forward", function)
    try:
        takes = [*inspect.signature(function).parameters]
    except ValueError:  # torch's own, which say it in words
        takes = re.findall(r"\w+", function.__doc__.partition("(")[2].partition(")")[0])
    odd = [keyword.arg for keyword in call.keywords if keyword.arg not in takes]
    return odd[0], tuple(name for name in takes if name != "None")


def _reads(place: places.Place, name: str) -> bool:
    """Whether a name stands at a place, and not as a part of a longer one."""
    return re.search(rf"\b{name}\b", place.expression) is not None


class Recorder(TorchFunctionMode):
    """Write down every torch call, whose it is, and copies of its tensors."""

    def __init__(self, module: nn.Module | None, inputs: list[torch.Tensor]):
        super().__init__()
        self.tensors: list[torch.Tensor] = []
        self.ops: list[Op] = []
        self.stop: Stop | None = None
        self.names: dict[int, tuple[int, str]] = {}  # and how deep in helpers
        self.known: dict[int, tuple[int, int, torch.Tensor]] = {}  # by id: number, version, itself
        # What was made without numbers: itself, what was written, how often
        self.blank: dict[int, list] = {}
        self.module = module
        weights = module.named_parameters(remove_duplicate=False) if module is not None else ()
        self.layers = {self.number(t): name for name, t in weights if "mask" not in name}
        self.inputs = [self.number(tensor) for tensor in inputs]
        self.given = [self.known[id(tensor)][:2] for tensor in inputs]  # number and version
        own = learners(module)
        kept, parts = (vars(own), own.named_modules()) if own is not None else ({}, ())
        self.sizes = {name: value for name, value in _named(kept) if type(value) is int}
        self.parts = {name: type(part).__name__ for name, part in parts if name}

    def number(self, tensor: torch.Tensor, made: bool = False) -> int:
        """The number of a tensor; one that was written into since is another tensor."""
        version = version_of(tensor)
        number, before, _ = self.known.get(id(tensor), (-1, -1, None))
        if number >= 0 and before == version and not made:
            return number
        self.tensors.append(copy_of(tensor))
        latest = len(self.tensors) - 1
        self.known[id(tensor)] = latest, version, tensor
        if number >= 0 and not made:  # through a view of it
            self.ops.append(Op("written", (number, *self._written(tensor)), (latest,)))
        return latest

    def unfilled(self) -> dict[int, int]:
        """Trace.unfilled, of what was written by index alone."""
        found: dict[int, int] = {}
        for tensor, written, versions in self.blank.values():
            if versions != version_of(tensor) or written.all():
                continue
            number = self.known[id(tensor)][0]
            found[number] = int((~written).sum())
            for op in reversed(self.ops):
                if number in op.gave and op.name == "__setitem__":
                    number = op.given[0]
                    found[number] = int((~written).sum())
        return found

    def _written(self, tensor: torch.Tensor) -> tuple[int, ...]:
        """The tensors of the same memory, which carry what was written."""
        memory = memory_of(tensor)
        others = (entry for entry in self.known.values() if entry[2] is not tensor)
        return tuple(n for n, _, other in others if memory_of(other) == memory != 0)

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function, and write down the call if it is one with tensors."""
        kwargs = kwargs or {}
        if function is nn.functional.multi_head_attention_forward:
            return self._taken_apart(function, args, kwargs)
        if len(self.ops) > MOST_CALLS:
            return function(*args, **kwargs)
        name = getattr(function, "__name__", str(function))
        if name == "__get__":  # an attribute, as .T
            name = getattr(getattr(function, "__self__", None), "__name__", name)
        with clock_paused():
            frame, *outer = [*self._own(sys._getframe(1))] or [None]
            calls = tuple(map(self.place, outer))
            self._named(frame, *outer)
            given = tuple(self.number(tensor) for tensor in tensors_in((args, kwargs)))
            numbers = tuple(e for e in flat((args, kwargs)) if type(e) in (int, float, str, bool))
        try:
            result = function(*args, **kwargs)
            if name.startswith(("empty", "new_empty")):  # whatever memory held tells nothing
                result.zero_()
                if result.numel() < MOST_WATCHED:
                    blank = torch.zeros(result.shape, dtype=torch.bool, device="cpu")
                    self.blank[id(result)] = [result, blank, version_of(result)]
            if name == "__setitem__" and (filled := self.blank.get(id(args[0]))):
                with contextlib.suppress(Exception):
                    filled[1][args[1]] = True
                    filled[2] += 1
        except Exception:
            with clock_paused():
                self.ops.append(Op(name, given, (), self.place(frame), numbers, True, calls))
            raise
        with clock_paused():
            gave = list(tensors_in([result]))
            if name == "__setitem__":
                gave = [args[0]]
            if not gave or name in ("__set__", "requires_grad_"):
                return result
            if name == "scaled_dot_product_attention":
                with contextlib.suppress(Exception), self:
                    last = attention_apart(*args, **kwargs)
                    self.known[id(result)] = (*self.known[id(last)][:2], result)
                    return result
            same = {id(tensor) for tensor in tensors_in((args, kwargs))}
            new = (id(t) not in same or version_of(t) != self.known[id(t)][1] for t in gave)
            made = tuple(map(self.number, gave, new))
            self.ops.append(Op(name, given, made, self.place(frame), numbers, False, calls))
        return result

    def _named(self, *frames: FrameType | None) -> None:
        """Note what tensors are called here: where a helper was called rather than in it."""
        for depth, frame in enumerate(reversed(frames)):
            for called, tensor in _named(frame.f_locals) if frame else ():
                number, _, known = self.known.get(id(tensor), (0, 0, self))
                if known is tensor and depth < self.names.get(number, (9, ""))[0]:
                    self.names[number] = depth, called

    def _taken_apart(self, function: Callable[..., Any], args: tuple, kwargs: dict) -> Any:
        """Run a function of torch that is written in Python, and write down its own calls."""
        names = vars(nn.functional)
        ask, names["has_torch_function"] = names["has_torch_function"], lambda _: False
        try:
            with self:
                return function(*args, **kwargs)
        finally:
            names["has_torch_function"] = ask

    # Where it stands

    def _own(self, frame: FrameType | None) -> Iterator[FrameType]:
        """The frames of the learner's, nearest first; of a package's where there is no other."""
        packaged, own = None, False
        while frame:
            name = frame.f_code.co_filename
            if name.startswith(CHECKS if packaged else f"{CHECKS}adapt/"):  # behind it is who asked
                break
            if places.is_theirs(name):
                if not name.startswith(places.PACKAGES):
                    own = True
                    yield frame
                packaged = packaged or frame
            frame = frame.f_back
        if packaged and not own:
            yield packaged

    def place(self, frame: FrameType | None, lasti: int | None = None) -> places.Place | None:
        """Where in its source a frame is."""
        if frame is None:
            return None
        positions = places.positions_of(frame.f_code)
        index = (frame.f_lasti if lasti is None else lasti) // 2
        return places.placed(frame.f_code.co_filename, positions[min(index, len(positions) - 1)])

    def note(self, error: BaseException) -> None:
        """Keep where an error was raised, and what the names there stood for."""
        every = ((traceback.tb_frame, traceback) for traceback in places.tracebacks(error))
        steps = [(f, pair) for f, pair in every if places.is_theirs(f.f_code.co_filename)]
        if not steps:
            return
        own = [s for s in steps if not s[0].f_code.co_filename.startswith(places.PACKAGES)]
        frame, at = (own or steps)[-1]
        place = self.place(frame, at.tb_lasti)
        unbound = isinstance(error, NameError)
        lost = re.search(r"(?:variable|name) '(\w+)'", str(error)) if unbound else None
        name = lost[1] if lost else ""
        if name and place and not _reads(place, name):  # 3.11 can tell the line before
            after = self.place(frame, at.tb_lasti + 2)
            place = after if after and _reads(after, name) else place
        every = dict(_named(frame.f_locals))
        if (this := every.pop("self", None)) is not None:
            every |= {f"self.{n}": tensor for n, tensor in held_by(this)}
        kept = vars(this) if isinstance(this, nn.Module) else {}
        kept = {n: value for n, value in kept.items() if not n.startswith("_")}
        every |= {f"self.{n}": value for n, value in _named(kept)}
        tensors = {n: self.number(t) for n, t in every.items() if isinstance(t, torch.Tensor)}
        numbers = {n: value for n, value in every.items() if type(value) is int}
        lists = {n: e for n, e in every.items() if type(e) in (tuple, list) and e}
        lists = {n: e for n, e in lists.items() if isinstance(e[0], torch.Tensor)}
        several = {n: tuple(map(self.number, e)) for n, e in lists.items()}
        said = str(error).replace("__index__ method", "'builtin_function_or_method'")
        sizes = "int" in said  # which the error asks for
        parts = ((n, part) for n, e in every.items() for part in (e if type(e) is tuple else [e]))
        kinds = {n: type(e).__name__ for n, e in parts if callable(e) or sizes and type(e) is float}
        odd = {n: kind for n, kind in kinds.items() if re.search(rf"('|got |not ){kind}\b", said)}
        calls = tuple(self.place(f, traceback.tb_lasti) for f, traceback in (own or steps)[-2::-1])
        source = places.source_of(frame.f_code)
        lost = "", ()
        with contextlib.suppress(Exception):  # a learner's object may raise as well
            lost = _lost(error, frame, every, place)
        self.stop = Stop(Failure(""), place, tensors, numbers, several, odd, calls, *source, *lost)


# Where tensors are cut out of the gradient, and where those of two devices meet

# Operations that may be given both.
COPYING = ("_to_copy", "copy_", "index", "index_put", "index_put_", "_index_put_impl_")


class Watch(TorchFunctionMode):
    """Remember the first tensor that is cut out of the gradient.

    It is where what it is made of has a gradient, and it has none.
    """

    cut: torch.Tensor | None = None

    def __torch_function__(self, function, types, args=(), kwargs=None):
        """Call function and look at what it returns."""
        result = function(*args, **(kwargs or {}))
        tracked = any(tensor.requires_grad for tensor in tensors_in((args, kwargs)))
        floating = isinstance(result, torch.Tensor) and result.is_floating_point()
        if tracked and self.cut is None and floating and not result.requires_grad:
            self.cut = result.detach().clone()
        return result


class DeviceWatch(DispatchMode):
    """Notice where tensors of two devices meet, as on a GPU they must not; single numbers may.

    The second device is torch's "meta", of whose tensors there is only the shape. What an operation
    makes of shapes is found with zeros on the CPU: torch's own way loads a compiler first.
    """

    def __init__(self):
        super().__init__()
        self.met = False

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Run the operation after a look at the devices of its tensors."""
        kwargs = kwargs or {}
        tensors = list(tensors_in((args, kwargs)))
        devices = {tensor.device.type for tensor in tensors if tensor.dim()}
        name = operation._schema.name.removeprefix("aten::")
        self.met |= name not in COPYING and len(devices) > 1
        to = torch.device(kwargs.get("device") or "cpu").type
        if "meta" in {to, *(tensor.device.type for tensor in tensors)}:
            return _with_zeros(operation, args, kwargs)
        return operation(*args, **kwargs)


def _with_zeros(operation: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    """Run an operation with zeros for all without numbers; what it returns is without them again.

    But what it is told to put on the CPU stays there.
    """
    given = [tensor for tensor in tensors_in((args, kwargs)) if tensor.device.type == "meta"]
    zeros = {}  # on the CPU, that lie as the given do
    for tensor in given:
        last = sum((n - 1) * by for n, by in zip(tensor.shape, tensor.stride(), strict=True))
        flat = torch.zeros(max(last + 1, 0), dtype=tensor.dtype, device="cpu")
        zeros[id(tensor)] = flat.as_strided(tensor.shape, tensor.stride())
    returned = {id(zeros[id(tensor)]): tensor for tensor in given}  # by what works in place

    def without_numbers(result: torch.Tensor) -> torch.Tensor:
        shape, strides = result.shape, result.stride()
        return torch.empty_strided(shape, strides, dtype=result.dtype, device="meta")

    on_cpu = kwargs.get("device") == torch.device("cpu")
    if kwargs.get("device") is not None:
        kwargs = kwargs | {"device": torch.device("cpu")}
    args, kwargs = tree_map_only(
        Tensor, lambda tensor: zeros.get(id(tensor), tensor), (args, kwargs)
    )
    result = operation(*args, **kwargs)
    if on_cpu:
        return result
    return tree_map_only(Tensor, lambda e: returned.get(id(e), without_numbers(e)), result)

"""The questions that may be asked of an answer; they run where it lives."""

import contextlib
import copy
import inspect
import io
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.overrides import TorchFunctionMode

from eleven_steps.checks.run.cases import LAYERS, Case, cases_of, fill, known, lecture_parameters
from eleven_steps.checks.run.contract import Alone, called, sizes
from eleven_steps.checks.run.facts import ATTRIBUTES, FLOATS, Facts, Pass, Record, Seen
from eleven_steps.checks.run.isolate import Failure, attempt, clock_paused, type_name
from eleven_steps.checks.run.outside import readings, with_constants
from eleven_steps.checks.run.plain import plain
from eleven_steps.checks.run.recorder import DeviceWatch, Recorder, Watch, marked
from helpers import attention

MOST_PRINTED = 1000  # characters
MOST_SHAPES = 900
TESTED = f"{attention.__file__} as it is tested"  # in a traceback these lines count as ours

# The questions


def kind(answer: Any) -> tuple[str, str]:
    """What sort of thing was handed over, and the name of its type, or its own if it is a class."""
    if answer is ... or answer is None:
        return "open", ""
    if isinstance(answer, type):
        name = type.__dict__["__name__"].__get__(answer)
        return "module class" if issubclass(answer, nn.Module) else "class", name
    if issubclass(type(answer), nn.Module):
        return "module", type_name(answer)
    return "callable" if callable(answer) else "other", type_name(answer)


def value(answer: Any) -> Any:
    """What was handed over: a number, a text, a dictionary, a module of ours."""
    return plain(answer)


def call(
    function: Any, arguments: Sequence[Sequence[Any]], constants: dict[int, int] | None = None
) -> list[Any]:
    """What a function returns or raises for copies of each of several sets of arguments.

    The constants in its code are replaced, where there are any, by others.
    """
    if constants:
        function = with_constants(function, constants)
    return [attempt(_returned, function, each) for each in arguments]


def shapes(function: Any, arguments: Sequence[Sequence[Any]]) -> list[list[tuple[int, ...]]]:
    """The shapes of all that torch makes while a function is called, for each set of arguments."""
    made = []
    for each in arguments:
        with Shapes() as shapes:
            attempt(_returned, function, each)
        made.append(shapes.made)
    return made


class Shapes(TorchFunctionMode):
    """Write down the shape of every tensor that a torch function makes."""

    def __init__(self) -> None:
        super().__init__()
        self.made: list[tuple[int, ...]] = []

    def __torch_function__(self, function, types, arguments=(), options=None):
        """Call the function, and look at what comes back."""
        came = function(*arguments, **(options or {}))
        several = came if type(came) in (list, tuple) else (came,)
        if len(self.made) < MOST_SHAPES:
            self.made += [tuple(each.shape) for each in several if isinstance(each, torch.Tensor)]
        return came


def parameters(cls: Any) -> list[str]:
    """The names of a constructor's parameters, in order."""
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


def facts(cls: Any, bias: bool | None, variant: str = "") -> Facts:
    """What the constructor makes, with qkv_bias as given, or left out where it is None."""
    case = cases_of(variant).main
    module = construct(cls, case, bias)
    everything = dict(module.named_parameters(remove_duplicate=False))
    own = lecture_parameters(module, variant)
    held = [each for each in vars(module).values() if isinstance(each, list | tuple)]
    weights = [id(own[f"{name}.weight"]) for name in LAYERS if f"{name}.weight" in own]
    stored = {name: getattr(module, name) for name in ATTRIBUTES if hasattr(module, name)}
    stored["dropout"] = getattr(getattr(module, "dropout", None), "p", None)
    dropout = type_name(module.dropout) if hasattr(module, "dropout") else ""
    kept = {*vars(module), *module._modules, *module._parameters, *module._buffers}
    code = attempt(lambda: cls.__init__.__code__)
    made = () if isinstance(code, Failure) else code.co_varnames[code.co_argcount :]
    return Facts(
        {name: tuple(each.shape) for name, each in own.items()},
        tuple(everything),
        len(set(weights)) < len(weights),
        any(isinstance(each, nn.Module) for some in held for each in some),
        _mask(module, case.context_length),
        dropout,
        {name: each for name, each in stored.items() if isinstance(each, int | float)},
        tuple(name for name in kept if not name.startswith("_")),
        tuple(name for name in made if name not in kept),
    )


def run(cls: Any, case: Case, dropout: float, passes: Sequence[Pass]) -> list[Seen]:
    """Build a module for a case and run it, once or several times in a row.

    What a forward raises is part of what is seen.
    """
    module = build(cls, case, dropout)
    seen = [attempt(_forward, module, case, each) for each in passes]
    return [Seen(each) if isinstance(each, Failure) else each for each in seen]


def record(cls: Any, case: Case) -> Record:
    """Record one forward, and measure what each of its tensors is made of.

    The same forward runs again with each of the four layers changed: the tensors that change with
    a layer are made of it.
    """
    base, *others = (_recorded(build(cls, case), case, name) for name in ("", *LAYERS))
    calls = marked(base[0].calls, {n: o[0].calls for n, o in zip(LAYERS, others, strict=True)})
    return Record(tuple(calls), base[1], base[2])


def built(lines: Sequence[str]) -> type:
    """Return the MultiHeadAttention that these lines define."""
    with clock_paused():
        namespace = vars(attention) | {"__name__": "tested"}
        exec(compile("\n".join(lines), TESTED, "exec"), namespace)
    return namespace["MultiHeadAttention"]


def verdicts(
    test: Any, sources: Sequence[Sequence[str]], build: Callable[[Sequence[str]], type] = built
) -> list[Any]:
    """Call a learner's test for each of several classes, which are handed over as lines.

    Returns:
        For each class whether the test accepts it: it returns None or something true; a Failure
        where it raises; an ellipsis where it returns one.
    """
    return [attempt(_accepts, test, build(lines)) for lines in sources]


def printed(answer: Any, question: str, *arguments: Any) -> tuple[str, str]:
    """The name of an answer, and what it prints while it is asked something else."""
    page, name = Page(), attempt(lambda: answer.__name__)
    with contextlib.redirect_stdout(page):
        attempt(QUESTIONS[question], answer, *arguments)
    return name if type(name) is str else "", page.getvalue()


class Page(io.StringIO):
    """What takes MOST_PRINTED characters and forgets all others."""

    def write(self, text: str) -> int:
        """Write as much of a text as there is room for."""
        super().write(text[: max(0, MOST_PRINTED - self.tell())])
        return len(text)


QUESTIONS: dict[str, Callable[..., Any]] = {
    "kind": kind,
    "value": value,
    "call": call,
    "shapes": shapes,
    "readings": readings,
    "verdicts": verdicts,
    "parameters": parameters,
    "facts": facts,
    "run": run,
    "record": record,
    "printed": printed,
}


# How they are answered


def construct(cls: Any, case: Case, bias: bool | None, dropout: float = 0.0) -> nn.Module:
    """Call a constructor as the lecture does; qkv_bias is left out where bias is None."""
    first = case.d_in, case.d_out, case.context_length, dropout, case.num_heads
    more = sizes(case)
    if bias is None:
        return cls(*first, **more)
    try:
        return cls(*first, qkv_bias=bias, **more)
    except TypeError as error:
        if "qkv_bias" not in str(error):
            raise
        return cls(*first, bias, **more)


def build(cls: Any, case: Case, dropout: float = 0.0) -> nn.Module:
    """Construct cls for a case with known weights, in eval mode."""
    torch.default_generator.manual_seed(0)  # what it draws besides is the same each time
    module = construct(cls, case, case.qkv_bias, dropout)
    fill(module, case)
    return module.eval()


def _forward(module: nn.Module, case: Case, wanted: Pass) -> Seen:
    x = (case.x if wanted.x is None else wanted.x).clone()
    own = lecture_parameters(module, case.variant)
    with torch.no_grad():
        for name in own.keys() & wanted.weights.keys():
            own[name].copy_(wanted.weights[name])
    module.train(wanted.train)
    torch.default_generator.manual_seed(wanted.seed)
    if wanted.moved:
        return _moved(module, case, x, wanted.moved)
    if wanted.gradients:
        return _back(module, case, x, own)
    if wanted.dtype:
        module, x = module.to(FLOATS[wanted.dtype]), x.to(FLOATS[wanted.dtype])
    before, given = {name: each.detach().clone() for name, each in own.items()}, x.clone()
    with torch.no_grad():
        returned = called(module, case, x, in_turn=wanted.in_turn)
    written = {
        "x": not torch.equal(x, given),
        "weights": any(not torch.equal(own[name], each) for name, each in before.items()),
    }
    return look(returned, tuple(name for name, was in written.items() if was))


def look(returned: Any, changed: tuple[str, ...] = ()) -> Seen:
    """Describe what a forward returned."""
    returned = tuple(returned) if inspect.isgenerator(returned) else returned
    several = isinstance(returned, tuple | list)
    parts = tuple(returned) if several else (returned,)
    if parts and isinstance(parts[0], torch.Tensor):
        parts = tuple(p.detach().clone() if isinstance(p, torch.Tensor) else p for p in parts)
        out, kind = parts[0].to(torch.float32).clone(), "tuple" if several else "tensor"
        return Seen(out, str(parts[0].dtype), kind, parts, None, changed)
    name, wanted = type_name(returned), "tensor"
    kind = "none" if returned is None else "open" if parts and parts[0] is ... else "other"
    if isinstance(returned, Alone):
        name, wanted, kind = returned.name, "pair", "single"
    shown = tuple(p if isinstance(p, torch.Tensor) or p is ... else type_name(p) for p in parts)
    text = f"forward returns {name}, not a {wanted}"
    return Seen(Failure(text), name, kind, shown, None, changed)


def _back(module: nn.Module, case: Case, x: torch.Tensor, own: dict[str, nn.Parameter]) -> Seen:
    x.requires_grad_()
    watch = Watch()
    with watch:
        returned = called(module, case, x * 1)
    out = returned[0] if isinstance(returned, tuple | list) else returned
    if out.requires_grad:
        (out * known("direction", out.shape)).sum().backward()
    gradients = {name: each.grad for name, each in own.items()} | {"x": x.grad}
    mask = next((p for n, p in module.named_parameters() if n.split(".")[-1] == "mask"), None)
    gradients |= {} if mask is None else {"mask": mask.grad}
    return Seen(out.detach(), gradients=gradients, cut=watch.cut)


def _moved(module: nn.Module, case: Case, x: torch.Tensor, moved: str) -> Seen:
    """Run on a device made of shapes alone; "made": what forward makes is made there too."""
    watch = DeviceWatch()
    with torch.no_grad(), torch.device("meta" if moved == "made" else "cpu"), watch:
        called(module.to("meta"), case, x.to("meta"))
    return Seen(torch.empty(0), met=watch.met)


def _recorded(module: nn.Module, case: Case, changed: str) -> tuple[Recorder, Seen, Any]:
    with torch.no_grad():
        for name, each in lecture_parameters(module, case.variant).items():
            if changed and name.startswith(f"{changed}."):
                each.copy_(known(f"other {name}", each.shape, float(each.std() or 1)))
    recorder, watch, x = Recorder(), Watch(), case.x
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # what is fused is taken apart

    def body() -> Seen:
        with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), watch, recorder:
            returned = called(module, case, x)
        return look(returned)

    seen = attempt(body)
    torch.backends.mha.set_fastpath_enabled(fast)
    return recorder, seen if isinstance(seen, Seen) else Seen(seen), watch.failing


def _accepts(test: Any, cls: type) -> Any:
    torch.default_generator.manual_seed(0)  # a test draws the same for each class
    verdict = test(cls)
    return verdict if verdict is ... else verdict is None or bool(verdict)


def _returned(function: Any, arguments: Sequence[Any]) -> Any:
    with torch.no_grad():  # as in the notebooks
        return plain(function(*copy.deepcopy(tuple(arguments))))


def _mask(module: nn.Module, context_length: int) -> str:
    """How a mask is kept: whatever is (..., context_length, context_length)."""
    square = (context_length, context_length)
    for name, each in module.named_parameters():
        if each.shape[-2:] == square and not name.startswith(LAYERS):
            return "trained" if each.requires_grad else "parameter"
    if any(each.shape[-2:] == square for each in module.buffers()):
        return "buffer"
    plain = [each for each in vars(module).values() if isinstance(each, torch.Tensor)]
    return "attribute" if any(each.shape[-2:] == square for each in plain) else ""

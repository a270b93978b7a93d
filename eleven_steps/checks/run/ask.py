"""Ask an answer, in this process or wherever it lives: the judge cannot tell the two apart.

An answer that lives elsewhere is an object with a method `ask(question, *arguments)`: it returns
what QUESTIONS[question] would return there, or a Failure; what it returns may be forged.
"""

import contextlib
import copy
import inspect
import io
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.run.cases import Case, lecture_parameters, seeded
from eleven_steps.checks.run.contract import Alone, called
from eleven_steps.checks.run.copies import as_data
from eleven_steps.checks.run.isolate import Failure, attempt, clock_paused, type_name
from eleven_steps.checks.run.making import build, facts, learners, statement
from eleven_steps.checks.run.places import names_read, with_constants
from eleven_steps.checks.run.recording import DeviceWatch, Trace, Watch, traced
from eleven_steps.helpers import attention

FLOATS = {"float64": torch.float64, "bfloat16": torch.bfloat16, "float16": torch.float16}
MOST_PRINTED = 1000  # characters
TESTED = f"{attention.__file__} as it is tested"  # in a traceback these lines count as ours
MODES = {
    "grad": torch.enable_grad,
    "frozen": torch.enable_grad,
    "inference": torch.inference_mode,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}


@dataclass(frozen=True)
class Pass:
    """One forward of a module that was built for a case."""

    x: torch.Tensor | None = None  # what is fed; the case's x if None
    train: bool = False
    weights: dict[str, torch.Tensor] = field(default_factory=dict)  # set first, by name
    gradients: bool = False  # of a known sum of the output
    dtype: str = ""  # that the module and x are converted to first: a name in FLOATS
    moved: str = ""  # "here" or "made": see _moved
    in_turn: bool = False  # whether a second text is read between the pieces of x
    seed: int = 0  # of the random numbers that forward draws
    stored: dict[str, Any] = field(default_factory=dict)  # attributes that are set first
    # grad, inference, autocast; strided: x lies otherwise; expanded: x is one text, given as many;
    # copied: the module is; frozen: no parameter wants a gradient
    how: str = ""


@dataclass(frozen=True)
class Seen:
    """What came of a Pass."""

    out: torch.Tensor | Failure  # in float32; what was raised, or came instead of a tensor
    dtype: str = ""  # the output's own
    kind: str = "tensor"  # or tuple, none, open (an ellipsis), other
    parts: tuple[Any, ...] = ()  # all that was returned
    gradients: dict[str, torch.Tensor | None] | Failure | None = None  # of x and the parameters
    changed: tuple[str, ...] = ()  # what forward wrote into: "x", "weights"
    met: bool = False  # whether tensors of two devices met
    cut: torch.Tensor | None = None  # the first one that was cut out of the gradient


def ask(answer: Any, question: str, *arguments: Any) -> Any:
    """Put a question to an answer, wherever it lives; what comes back may be a Failure."""
    if is_remote(answer):
        return answer.ask(question, *arguments)
    return attempt(QUESTIONS[question], answer, *arguments)


def is_remote(answer: Any) -> bool:
    """Whether an answer lives in another process."""
    return attempt(lambda: callable(getattr(type(answer), "ask", None))) is True


def once(cls: Any, case: Case, *passes: Pass, dropout: float = 0.0) -> list[Seen]:
    """What is seen of a class in several passes in a row; why it is not built, in each."""
    seen = ask(cls, "run", case, dropout, list(passes))
    return [Seen(seen)] * len(passes) if isinstance(seen, Failure) else seen


def used_by(answer: Any) -> dict[str, list]:
    """What names_read says of an answer; nothing where it cannot be read."""
    used = ask(answer, "names_read")
    parts = "names", "constants", "called"
    return {name: [] for name in parts} | (used if type(used) is dict else {})


def kind_of(answer: Any) -> tuple[str, str]:
    """What sort of thing an answer is, wherever it lives, and its name; see kind."""
    kind = ask(answer, "kind")
    fits = type(kind) is tuple and len(kind) == 2 and all(type(text) is str for text in kind)
    return kind if fits else ("other", "object")


# The questions; they run where the answer lives


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
    return as_data(answer)


def call(
    function: Any, arguments: Sequence[Sequence[Any]], constants: dict[int, int] | None = None
) -> list[Any]:
    """What a function returns or raises for copies of each of several sets of arguments.

    The constants in its code are replaced, where there are any, by others.
    """
    if constants:
        function = with_constants(function, constants)
    return [attempt(_returned, function, argument) for argument in arguments]


def parameters(cls: Any) -> list[str]:
    """The names of a constructor's parameters, in order."""
    return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]


def run(cls: Any, case: Case, dropout: float, passes: Sequence[Pass]) -> list[Seen]:
    """Build a module for a case and run it, once or several times; what it raises is seen."""
    module, outs = build(cls, case, dropout), {}
    seen = [attempt(_outs_of, module, case, asked, (outs, i)) for i, asked in enumerate(passes)]
    for i, out in outs.items():  # as a later forward left it
        if not torch.equal(out.to(torch.float32).nan_to_num(), seen[i].out.nan_to_num()):
            seen[i] = replace(seen[i], changed=(*seen[i].changed, "out"))
    return [Seen(reply) if isinstance(reply, Failure) else reply for reply in seen]


def trace(cls: Any, case: Case, double: bool = True) -> Trace:
    """Write down one forward, in double precision unless it is to be otherwise."""
    module = build(cls, case)
    inner = learners(module)
    x = case.x.double() if double else case.x
    module = module.double() if double else module

    def forward(x: torch.Tensor) -> Any:
        return called(module, case, x)

    return traced(forward, [x], module, cls if inner is module else type(inner))[0]


def traced_call(function: Any, arguments: Sequence[Any]) -> Trace:
    """Write down one call of a function."""
    return traced(function, copy.deepcopy(tuple(arguments)), None, function)[0]


def defined(lines: Sequence[str]) -> type:
    """Return the MultiHeadAttention that these lines define."""
    with clock_paused():
        namespace = vars(attention) | {"__name__": "tested"}
        exec(compile("\n".join(lines), TESTED, "exec"), namespace)
    return namespace["MultiHeadAttention"]


def verdicts(
    test: Any, sources: Sequence[Sequence[str]], build: Callable[[Sequence[str]], type] = defined
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
    question.__name__: question
    for question in (
        *(kind, value, call, names_read, verdicts, parameters, facts, statement),
        *(run, trace, traced_call, printed),
    )
}


# How they are answered


def _outs_of(module: nn.Module, case: Case, wanted: Pass, at: tuple[dict, int]) -> Seen:
    """Run a module as a pass wants it; outs, i = at: outs[i] is the very tensor it returned."""
    x = (case.x if wanted.x is None else wanted.x).clone()
    if wanted.how == "copied":
        other = attempt(copy.deepcopy, module)
        if isinstance(other, Failure):  # what cannot be copied is not asked about
            other, wanted = module, replace(wanted, dtype="")
        module = other
    own = lecture_parameters(module, case.variant)
    with torch.no_grad():
        for name in own.keys() & wanted.weights.keys():
            own[name].copy_(wanted.weights[name])
    for name, stored in wanted.stored.items():
        *path, last = re.findall(r"\w+", name)
        kept = vars(learners(module))
        for part in path:
            kept = kept[part] if type(kept[part]) is dict else vars(kept[part])
        kept[last] = stored
    module.train(wanted.train)
    torch.default_generator.manual_seed(wanted.seed)
    if wanted.moved:
        return _on_no_device(module, case, x, wanted.moved)
    if wanted.gradients:
        return _back(module, case, x, own)
    if wanted.dtype:
        dtype, x = FLOATS[wanted.dtype], x.to(FLOATS[wanted.dtype])
        # As `.double()` and `.half()`, which leave complex numbers whole.
        module._apply(lambda tensor: tensor.to(dtype) if tensor.is_floating_point() else tensor)
    before, given = {name: tensor.detach().clone() for name, tensor in own.items()}, x.clone()
    if wanted.how == "strided":  # a part of something larger that lies transposed
        x = nn.functional.pad(x, (1, 1, 1, 1)).mT.contiguous().mT[:, 1:-1, 1:-1]
    if wanted.how == "expanded":  # all texts are the first
        x = x[:1].expand_as(x)
    if wanted.how == "frozen":
        module.requires_grad_(False)
    with MODES.get(wanted.how, torch.no_grad)():
        returned = called(module, case, x, in_turn=wanted.in_turn)
    written = {
        "x": not torch.equal(x, given),
        "weights": any(not torch.equal(own[name], tensor) for name, tensor in before.items()),
    }
    if isinstance(returned, torch.Tensor):
        at[0][at[1]] = returned
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
    module.zero_grad()
    watch = Watch()
    with watch:
        returned = called(module, case, x * 1)
    out = returned[0] if isinstance(returned, tuple | list) else returned
    if out.requires_grad:
        (out * seeded("direction", out.shape)).sum().backward()
    gradients = {name: tensor.grad for name, tensor in own.items()} | {"x": x.grad}
    mask = next((p for n, p in module.named_parameters() if n.split(".")[-1] == "mask"), None)
    gradients |= {} if mask is None else {"mask": mask.grad}
    return Seen(out.detach(), gradients=gradients, cut=watch.cut)


def _on_no_device(module: nn.Module, case: Case, x: torch.Tensor, moved: str) -> Seen:
    """Run on a device made of shapes alone; "made": what forward makes is made there too."""
    watch = DeviceWatch()
    swap = torch.__future__.set_swap_module_params_on_conversion
    swap(True)  # parameters stay the same objects, as on the way to a GPU
    try:
        module.to("meta")
    finally:
        swap(False)
    with torch.no_grad(), torch.device("meta" if moved == "made" else "cpu"), watch:
        called(module, case, x.to("meta"))
    return Seen(torch.empty(0), met=watch.met)


def _accepts(test: Any, cls: type) -> Any:
    torch.default_generator.manual_seed(0)  # a test draws the same for each class
    verdict = test(cls)
    return verdict if verdict is ... else verdict is None or bool(verdict)


def _returned(function: Any, arguments: Sequence[Any]) -> Any:
    with torch.no_grad():  # as in the notebooks
        return as_data(function(*copy.deepcopy(tuple(arguments))))

"""A class whose outputs are right: in eval() again, with its own state, with flags."""

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.adapt.built import SIZE_OF, fields_of
from eleven_steps.checks.adapt.calls import FLAG_KEPT, KINDS, Way, output
from eleven_steps.checks.adapt.layers import ROLES, role_of
from eleven_steps.checks.judge.say import Finding, Outcome, say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.judge.turning import measured
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, is_remote, once
from eleven_steps.checks.run.cases import Case, cases_of, close, known, split
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.copies import tensors_in
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build, construct

OTHER_BASE = 5e5
OTHER_WINDOW, UNMET = 2, (11, 13)  # lengths of texts that were not asked about before
PATHS = re.compile("checkpoint|flash|sdpa|fused|fast|xformers|efficient|eager")
TABLES = re.compile(r"(return|output|need|with|get)_?(the_)?(attn|attention|weight|prob|head)\w*")
Run = Callable[[torch.Tensor], Any]


def unlike_itself(subject: Subject, case: Case) -> Finding | None:
    """What changes a module's output though its parameters stay as they are."""
    if is_remote(subject.cls):
        return None
    changing = attempt(_changing, subject.cls, case, subject.other(case))
    return None if isinstance(changing, Failure) else changing


def _changing(cls: Any, case: Case, other: Case) -> Finding | None:
    """Say after which change the output of a module is another one, though it should not be.

    It is filled anew, also with what the lecture does not have, such as an update of low rank.
    """
    with torch.random.fork_rng(devices=[]):
        made, module, run = _made(cls, case)
        with torch.no_grad():
            for name, each in module.named_parameters():
                each.copy_(known(name, each.shape, 0.5))
        module.train().eval()
        first = run(case.x)
        longer = known("longer", (1, 2 * case.context_length, case.d_in))  # it may be refused
        if not isinstance(first, torch.Tensor):
            return None
        changes = {
            "kept_of_same": lambda: None,
            "eval_again": module.eval,
            "train_and_eval": lambda: module.train().eval(),
            "state_loaded": lambda: module.load_state_dict(_state(module)),
            "longer_read": lambda: attempt(run, longer),
            "another_made": lambda: attempt(lambda: _made(cls, other)[-1](other.x)),
        }
        for name, change in changes.items():
            change()
            if not close(run(case.x), first):
                return say(name)
        if name := _switched(module, run, case.x, first):
            return say("path_switched", name=name)
        if not _learns_of_first(module, run, case.x):
            return say("gradients_of_second")
        for assigned, name in (False, "state_elsewhere"), (True, "parameter_replaced"):
            torch.default_generator.manual_seed(1)  # what it draws besides is another
            _, fresh, run = _made(cls, case)
            fresh.eval().load_state_dict(_state(module), assign=assigned)
            if not close(run(case.x), first):
                return say(name)
        name = _hooked(made, module)
        return say(name) if name else None


def _state(module: nn.Module) -> dict[str, Any]:
    state = module.state_dict()
    return {n: e.clone() if isinstance(e, torch.Tensor) else e for n, e in state.items()}


def _made(cls: Any, case: Case) -> tuple[nn.Module, nn.Module, Run]:
    """A module as its owner builds it, within what adapts it, and a call of it with an x."""
    made = construct(cls, case, case.qkv_bias)
    if not isinstance(made, Adapted):
        return made, made, lambda x: attempt(called, made, case, x)

    def run(x: torch.Tensor) -> Any:
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        hidden = hidden.triu(1) if made.causal else hidden & False
        x = nn.functional.pad(x, (0, made.width - case.d_in))
        x = x.transpose(0, 1) if getattr(made.called.call, "first", False) else x
        return output(attempt(made.called, x, hidden), case.d_out)

    return made, made.called.inner, run


def _switched(module: nn.Module, run: Run, x: torch.Tensor, first: torch.Tensor) -> str:
    """The attribute that chooses a path, by its name, on which the output is another one."""
    switches = ((m, n) for m in module.modules() for n in [*vars(m)] if PATHS.search(n))
    for owner, name in switches:
        if type(was := getattr(owner, name)) is bool:
            setattr(owner, name, not was)
            outs = [run(x) for mode in (True, False) if module.train(mode)]
            setattr(owner, name, was)
            if any(not isinstance(e, Failure) and not close(e, first) for e in outs):
                return f"{name} = {not was}"
    return ""


def _learns_of_first(module: nn.Module, run: Run, x: torch.Tensor) -> bool:
    """Whether a second forward leaves the gradients of the first as they are."""
    every = [each for each in module.parameters() if each.requires_grad]
    found = []
    for second in (), (known("other x", x.shape),):
        out = run(x)
        for each in second:
            run(each)
        found.append(attempt(torch.autograd.grad, out.square().sum(), every, allow_unused=True))
    if isinstance(found[0], Failure):  # told elsewhere
        return True
    return not isinstance(found[1], Failure) and all(
        one is other or close(one, other) for one, other in zip(*found, strict=True)
    )


# A load hook


class _Renamed(dict):
    """A state that has weights and biases under whatever name it is asked for, and notes which."""

    def __init__(self, made: nn.Module, width: int):
        super().__init__()
        self.parts, self.asked, pad = {}, set(), nn.functional.pad
        for role, names in ROLES.items():
            layers = [getattr(made, name) for name in names]
            more = 0 if role == "out_proj" else width - made.W_query.in_features
            self.parts[role, False] = torch.cat([pad(e.weight, (0, more)) for e in layers]).detach()
            if all(e.bias is not None for e in layers):
                self.parts[role, True] = torch.cat([e.bias for e in layers]).detach()

    def _part(self, name: str) -> torch.Tensor | None:
        self.asked.add(name)
        stem = re.sub(r"[._]?(weight|bias)$", "", name)
        return self.parts.get((role_of(stem), name.endswith("bias")))

    def __iter__(self) -> Iterator[str]:
        self.asked.add("any weight")
        return super().__iter__()

    def keys(self) -> Any:
        return list(self)

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or self._part(str(name)) is not None

    def __missing__(self, name: str) -> torch.Tensor:
        if (part := self._part(name)) is None:
            raise KeyError(name)
        return part

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401, that is this function

    def pop(self, name: str, *default: Any) -> Any:
        found = self[name] if name in self or not default else default[0]
        super().pop(name, None)
        return found


def _hooked(made: nn.Module, module: nn.Module) -> str:
    """What a load hook of a class's own does to weights under other names; "" for nothing wrong."""
    own = type(module)._load_from_state_dict is not nn.Module._load_from_state_dict
    if not own and not module._load_state_dict_pre_hooks:
        return ""
    if _turns_by_shape(module):
        return "square_not_turned"
    ours = isinstance(made, Adapted) and made.lent() or dict(made.named_parameters())
    kept = {name.removeprefix("inner."): each for name, each in ours.items()}
    state = _Renamed(made, getattr(made, "width", made.W_query.in_features))
    attempt(module._load_from_state_dict, state, "", {}, False, [], [], [])
    others = [n for n in state.asked if n.endswith(("weight", "bias")) and n not in kept]
    loaded = {name: each for name, each in state.items() if name in kept}
    if not any("weight" in name for name in loaded):
        return "hook_not_tried" if others else ""
    same = (each.shape == kept[n].shape and close(each, kept[n]) for n, each in loaded.items())
    return "" if all(same) else "weights_renamed"


def _turns_by_shape(module: nn.Module) -> bool:
    """Whether a load hook turns a weight that comes as (in, out), but for a square one."""
    for name, each in module.named_parameters():
        turned, n = [], len(each) if each.dim() else 0
        for rows in (n + 1, n) if tuple(each.shape) == (n, n) else ():
            weight = known(name, (rows, n))
            state = _state(module) | {name: weight}
            attempt(module._load_from_state_dict, state, "", {}, False, [], [], [])
            turned.append(torch.equal(state.get(name, weight), weight.mT))
        if turned == [True, False]:
            return True
    return False


# Another base, another window, wider heads


def of_wider_heads(reading: type[Adapted], variant: str) -> Outcome | None:
    """What is wrong where a constructor is told heads wider than d_out / num_heads."""
    case = cases_of(variant).main
    wide = replace(case, d_out=2 * case.d_out)
    mine = attempt(build, type("Wide", (reading,), {"widened": 2}), case)
    if isinstance(mine, Failure) or not {"head_dim", "d_out", "num_heads"} <= reading.asked:
        return None
    with torch.no_grad():
        right = build(planted(variant=variant), wide)
        right.out_proj = mine.out_proj  # back to d_out
        out, wanted = attempt(called, mine, case, case.x), called(right, wide, case.x)
    if isinstance(out, Failure) or close(out, wanted):
        return None
    sizes = {"head_dim": wide.head_dim, "usual": case.head_dim}
    return Outcome("", "value", wording("wider_heads", **sizes), 7)


def at_another_base(reading: type[Adapted]) -> Outcome | None:
    """What is wrong where positions turn at one base, whatever base a second module is told."""
    if getattr(reading.call, "turns", ()) or "rope" not in split(reading.variant):
        return None
    if not _told_as(reading, "base"):
        return None
    other, passes = _told(reading, base=OTHER_BASE), (Pass(), Pass(how="copied"))
    if not close(*(each.out for each in once(other, cases_of(reading.variant).main, *passes))):
        return Outcome("", "value", wording("copy_of_base", base=OTHER_BASE), 5)
    first = measured(reading)
    if not first or measured(other) != first:
        return None
    values = {"base": OTHER_BASE, "first": first[0]}
    return Outcome("", "value", wording("another_base", **values), 5)


def base_unused(reading: type[Adapted]) -> str:
    """Say that a class which is right without positions is told a base for nothing."""
    name, main = _told_as(reading, "base"), cases_of(reading.variant).main
    if not name or "rope" in split(reading.variant):
        return ""
    other = _told(reading, base=OTHER_BASE)
    one, two = (once(each, main, Pass())[0].out for each in (reading, other))
    same = close(one, two) and close(one, play(main).out)
    return wording("base_unused", name=name) if same else ""


def beside_another_window(reading: type[Adapted], variant: str) -> Outcome | None:
    """What is wrong where another module, of another window, was called with as long a text."""
    if not _told_as(reading, "window"):
        return None
    main = cases_of(variant).main
    after, alone = (replace(main, num_tokens=n, context_length=1200) for n in UNMET)
    other = once(_told(reading, window=OTHER_WINDOW), after, Pass())[0].out
    if isinstance(other, Failure) or close(other, play(after).out):  # whatever its window
        return None
    one, two = (close(once(reading, e, Pass())[0].out, play(e).out) for e in (after, alone))
    return Outcome("", "value", wording("another_window"), 6) if two and not one else None


def _told_as(reading: type[Adapted], size: str) -> str:
    """The parameter of a constructor, or the field of its config, that is told a size; or ""."""
    signature = attempt(inspect.signature, reading.build)
    names = [] if isinstance(signature, Failure) else [*signature.parameters]
    names += sorted(fields_of(reading.build))
    return next((name for name in names if SIZE_OF.get(name) == size), "")


def _told(reading: type[Adapted], **sizes: float) -> type[Adapted]:
    return type("Other", (reading,), {"choice": reading.choice | sizes})


# Flags


def called_as(reading: type[Adapted], call: Any) -> type[Adapted]:
    """The same reading of a class, called in another way."""
    return type(reading.__name__, (reading,), {"call": staticmethod(call)})


def flagged(reading: type[Adapted], variant: str) -> tuple[dict[str, bool], Outcome | None]:
    """What a right class does where a flag is not as it is by default.

    Returns:
        The flags with which it is right as well, each with whether it then returns the weights
        that it used; and what is wrong with another.
    """
    case, right = cases_of(variant).main, {}
    inner = build(reading, case).called.inner
    every = inspect.signature(inner.forward).parameters.values()
    for flag, value in ((each.name, not each.default) for each in every if _is_flag(each)):
        keeps = value and FLAG_KEPT.fullmatch(flag)
        if keeps and (name := _kept_in_default(reading, case, flag, every)):
            text = wording("kept_in_default", flag=flag, name=name)
            return right, Outcome("", "value", text)
        x, told = case.x, f"{flag}={value}"
        out, _, returned, *_ = _with_flag(reading, case, x, flag, value)
        if isinstance(out, Failure):
            continue
        if not close(out, play(case).out) and (added := _added(reading)):
            # A path of its own may take a mask that is added alone.
            out, _, returned, *_ = _with_flag(added, case, x, flag, value)
        if not close(out, play(case).out):
            return right, Outcome("", "value", wording("other_with_flag", flag=told))
        if not torch.equal(x, case.x):
            text = wording("input_changed_there", call=f"`{told}`")
            return right, Outcome("", "value", text, 1)
        table = _table(returned, case) if TABLES.fullmatch(flag) else None
        weights = play(case)["softmax"]["weights"]
        if table is not None and not close(table, weights if table.dim() == 4 else weights.mean(1)):
            text = wording("other_weights_returned", flag=flag)
            return right, Outcome("", "value", text, 7)
        if TABLES.fullmatch(flag):  # of what is kept the next call is to be asked, too
            right[flag] = table is not None
    return right, None


def _added(reading: type[Adapted]) -> type[Adapted] | None:
    """The same reading with a mask that is added to the scores; None where none is handed over."""
    call = reading.call
    if not isinstance(call, Way) or call.kind not in KINDS:
        return None
    return called_as(reading, replace(call, kind="-inf where a key is hidden"))


def _is_flag(parameter: inspect.Parameter) -> bool:
    """Whether a parameter says, by its name, what else is returned or kept."""
    named = FLAG_KEPT.fullmatch(parameter.name) or TABLES.fullmatch(parameter.name)
    return type(parameter.default) is bool and bool(named)


def _with_flag(
    reading: type[Adapted], case: Case, x: torch.Tensor, flag: str, value: bool
) -> list[Any]:
    """The outputs of a module in two calls with a flag, then whatever it returns; or a Failure."""
    returned = []

    def call(module: Any, x: torch.Tensor, *more: Any) -> Any:
        returned.append(reading.call(functools.partial(module, **{flag: value}), x, *more))
        return returned[-1]

    call.first = getattr(reading.call, "first", False)
    module = build(called_as(reading, call), case)
    with torch.no_grad():
        outs = [attempt(called, module, case, x) for _ in range(2)]
    return [*outs, *returned, None]


def _kept_in_default(
    reading: type[Adapted], case: Case, flag: str, every: Iterable[inspect.Parameter]
) -> str:
    """The parameter whose default, which all calls share, a call with a flag writes into."""
    _with_flag(reading, case, case.x, flag, True)
    kept = [e for e in every if isinstance(e.default, dict | list) and [*tensors_in([e.default])]]
    for each in kept:
        each.default.clear()
    return kept[0].name if kept else ""


def _table(returned: Any, case: Case) -> torch.Tensor | None:
    """The weights among what is returned, of each head or their mean; None where none are seen."""
    square = (case.num_tokens, case.num_tokens)
    shapes = (case.b, case.num_heads, *square), (case.b, *square)
    for each in tensors_in([returned]):
        if tuple(each.shape) in shapes and close(each.sum(-1), torch.ones(each.shape[:-1])):
            return each.detach()
    return None

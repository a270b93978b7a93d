"""A class whose outputs are right, as its owner uses it: in eval() again, with its own state."""

import inspect
import re
from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.adapt.built import SIZE_OF, fields_of
from eleven_steps.checks.adapt.calls import begins, output
from eleven_steps.checks.adapt.layers import ROLES, role_of
from eleven_steps.checks.judge.callee import Callee, unlike
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.judge.turning import measured
from eleven_steps.checks.know.right import planted, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, is_remote, once
from eleven_steps.checks.run.cases import Case, cases_of, close, known, split, turning_of
from eleven_steps.checks.run.contract import called
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import build, construct

OTHER_BASE = 5e5
OTHER_WINDOW, UNMET = 2, (11, 13)  # lengths of texts that were not asked about before
PATHS = re.compile("checkpoint|flash|sdpa|fused|fast|xformers|efficient|eager")
Run = Callable[[torch.Tensor], Any]


def unlike_itself(subject: Subject, case: Case) -> Finding | None:
    """What changes a module's output though its parameters stay as they are."""
    remote = is_remote(subject.cls)
    changing = None if remote else attempt(_changing, subject.cls, case, subject.other(case))
    return None if isinstance(changing, Failure) else changing


def _changing(cls: Any, case: Case, other: Case) -> Finding | None:
    """Say after which change the output of a module is another one, though it should not be.

    It is filled anew, also with what the lecture does not have, such as an update of low rank.
    """
    with torch.random.fork_rng(devices=[]):
        made, module, run = _made(cls, case)
        with torch.no_grad():
            for name, parameter in module.named_parameters():
                parameter.copy_(known(name, parameter.shape, 0.5))
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
        if not (begins(cls) or _learns_of_first(module, run, case.x)):
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
        x = x.transpose(0, 1) if made.called.call.first else x
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
    every = [parameter for parameter in module.parameters() if parameter.requires_grad]
    found = []
    for second in (), (known("other x", x.shape),):
        out = run(x)
        for way in second:
            run(way)
        found.append(attempt(torch.autograd.grad, out.square().sum(), every, allow_unused=True))
    if isinstance(found[0], Failure):  # told elsewhere
        return True
    return not isinstance(found[1], Failure) and all(
        one is other or close(one, other) for one, other in zip(*found, strict=True)
    )


# A load hook


class _Renamed(UserDict):
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

    def __contains__(self, name: object) -> bool:
        return name in self.data or self._part(str(name)) is not None

    def __missing__(self, name: str) -> torch.Tensor:
        if (part := self._part(name)) is None:
            raise KeyError(name)
        return part

    def __delitem__(self, name: str) -> None:
        self.data.pop(name, None)


def _hooked(made: nn.Module, module: nn.Module) -> str:
    """What a load hook of a class's own does to weights under other names; "" for nothing wrong."""
    own = type(module)._load_from_state_dict is not nn.Module._load_from_state_dict
    if not own and not module._load_state_dict_pre_hooks:
        return ""
    if _turns_by_shape(module):
        return "square_not_turned"
    ours = isinstance(made, Adapted) and made.lent() or dict(made.named_parameters())
    kept = {name.removeprefix("inner."): parameter for name, parameter in ours.items()}
    state = _Renamed(made, getattr(made, "width", made.W_query.in_features))
    attempt(module._load_from_state_dict, state, "", {}, False, [], [], [])
    others = [n for n in state.asked if n.endswith(("weight", "bias")) and n not in kept]
    loaded = {name: tensor for name, tensor in state.items() if name in kept}
    if not any("weight" in name for name in loaded):
        return "hook_not_tried" if others else ""
    same = (
        tensor.shape == kept[n].shape and close(tensor, kept[n]) for n, tensor in loaded.items()
    )
    return "" if all(same) else "weights_renamed"


def _turns_by_shape(module: nn.Module) -> bool:
    """Whether a load hook turns a weight that comes as (in, out), but for a square one."""
    for name, parameter in module.named_parameters():
        turned, n = [], len(parameter) if parameter.dim() else 0
        for rows in (n + 1, n) if tuple(parameter.shape) == (n, n) else ():
            weight = known(name, (rows, n))
            state = _state(module) | {name: weight}
            attempt(module._load_from_state_dict, state, "", {}, False, [], [], [])
            turned.append(torch.equal(state.get(name, weight), weight.mT))
        if turned == [True, False]:
            return True
    return False


# Another base, another window, wider heads


def another_base(callee: Callee) -> Iterator[Finding | None]:
    """Positions turn at the base that a module is told, and so they do in a copy of it."""
    reading, variant = callee.reading, callee.reading.variant
    told_by = base_of(reading)
    if reading.call.turns or "rope" not in split(variant) or not told_by:
        return
    other, told = _told(reading, **{told_by: OTHER_BASE}), {"base": OTHER_BASE}
    one, two = (seen.out for seen in once(other, callee.case, Pass(), Pass(how="copied")))
    yield unlike(two, one, "copy_of_base", 5, **told)
    first = measured(reading)
    if first and measured(other) == first:
        yield Finding(5, wording("another_base", first=first[0], **told))
    turned = f"rope:{OTHER_BASE:.0f}:{turning_of(variant)[1]}"
    changes = (turned if split(change) == ("rope",) else change for change in variant.split(","))
    if not isinstance(one, Failure):
        right = play(replace(callee.case, variant=",".join(changes))).out
        yield unlike(one, right, "base_in_part", 5, **told)


def base_of(reading: type[Adapted]) -> str:
    """By what a constructor is told the base of its angles: our name, or that of its parameter."""
    if _told_as(reading, "base"):
        return "base"
    usual, signature = turning_of(reading.variant)[0], attempt(inspect.signature, reading.build)
    every = () if isinstance(signature, Failure) else signature.parameters.values()
    return next((e.name for e in every if e.name not in SIZE_OF and e.default == usual), "")


def base_unused(reading: type[Adapted]) -> str:
    """Say that a class which is right without positions is told a base for nothing."""
    name, main = _told_as(reading, "base"), cases_of(reading.variant).main
    if not name or "rope" in split(reading.variant):
        return ""
    other = _told(reading, base=OTHER_BASE)
    one, two = (once(asked, main, Pass())[0].out for asked in (reading, other))
    same = close(one, two) and close(one, play(main).out)
    return wording("base_unused", name=name) if same else ""


def wider_heads(callee: Callee) -> Iterator[Finding | None]:
    """Heads may be wider than d_out / num_heads where a constructor is told how wide."""
    if not {"head_dim", "d_out", "num_heads"} <= callee.reading.asked:
        return
    case, wide = callee.case, replace(callee.case, d_out=2 * callee.case.d_out)
    mine = attempt(build, type("Wide", (callee.reading,), {"widened": 2}), case)
    if isinstance(mine, Failure):
        return
    with torch.no_grad():
        right = build(planted(variant=callee.variant), wide)
        right.out_proj = mine.out_proj  # back to d_out
        out, wanted = attempt(called, mine, case, case.x), called(right, wide, case.x)
    if not isinstance(out, Failure):
        sizes = {"head_dim": wide.head_dim, "usual": case.head_dim}
        yield unlike(out, wanted, "wider_heads", 7, **sizes)


def another_window(callee: Callee) -> Iterator[Finding | None]:
    """Another module, of another window, that was called with as long a text, changes nothing."""
    if not _told_as(callee.reading, "window"):
        return
    after, alone = (replace(callee.case, num_tokens=n, context_length=1200) for n in UNMET)
    other = once(_told(callee.reading, window=OTHER_WINDOW), after, Pass())[0].out
    if isinstance(other, Failure) or close(other, play(after).out):  # whatever its window
        return
    one, two = (once(callee.reading, case, Pass())[0].out for case in (after, alone))
    if close(two, play(alone).out):
        yield unlike(one, play(after).out, "another_window", 6)


def _told_as(reading: type[Adapted], size: str) -> str:
    """The parameter of a constructor, or the field of its config, that is told a size; or ""."""
    signature = attempt(inspect.signature, reading.build)
    names = [] if isinstance(signature, Failure) else [*signature.parameters]
    names += sorted(fields_of(reading.build))
    return next((name for name in names if SIZE_OF.get(name) == size), "")


def _told(reading: type[Adapted], **sizes: float) -> type[Adapted]:
    return type("Other", (reading,), {"choice": reading.choice | sizes})

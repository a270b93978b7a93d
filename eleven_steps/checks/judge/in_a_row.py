"""What one module keeps: calls in a row, in any state, and as its owner uses it besides.

What is right in one call is known before; here the same is asked of a module that has done
something. What training shows has a file of its own.
"""

import functools
import re
from collections import UserDict
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import nn

from eleven_steps.checks.adapt.adapted import Adapted
from eleven_steps.checks.adapt.calls import begins, output
from eleven_steps.checks.adapt.layers import ROLES, role_of
from eleven_steps.checks.adapt.vocabulary import NAMED
from eleven_steps.checks.judge.say import Finding, letters_of, say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.judge.training import gradients, same_gradients, training
from eleven_steps.checks.know.right import once_right, play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.ask import Pass, Seen, is_remote, once
from eleven_steps.checks.run.cases import LAYERS, SAME, Case, close, seeded
from eleven_steps.checks.run.contract import beside_x, called
from eleven_steps.checks.run.isolate import Failure, attempt
from eleven_steps.checks.run.making import construct

Run = Callable[..., Any]  # of a text, and perhaps what stands beside it
OFTEN = 128  # calls, after which one more has to be right


# Calls in a row


class Calls(NamedTuple):
    """Passes of one module, each of which has to give what it gives in the right class."""

    name: str  # of the sentence
    passes: Callable[[Case], list[Pass]]  # of a case
    same: bool = False  # whether the last of them has to give the very numbers of the first
    raises: str | None = ""  # the sentence where one raises, if another; None where none is said
    third: str = ""  # the sentence where the third is the first that differs, if another

    def __call__(self, subject: Subject, case: Case) -> Finding | None:
        """Compare the passes in a case; the first one that is another is told."""
        passes = self.passes(case)
        mine = subject.outs(case, *passes)
        right = right_seen(subject.plain(case), self.passes)
        trios = zip(passes, mine, right, strict=True)  # what training gives is another question
        wrong = ((i, o) for i, (p, o, r) in enumerate(trios) if not (p.train or close(o, r.out)))
        at, other = next(wrong, (0, None))
        if other is None and (not self.same or close(mine[0], mine[-1], SAME)):
            return None
        name = self.third if at == 2 and self.third else self.name
        if not isinstance(other, Failure):
            return say(name, what=wording("differs_there"))
        error = {"error": other.told, "what": wording("raises_error", error=other.told)}
        return None if self.raises is None else say(self.raises or name, **error)


@functools.cache
def right_seen(case: Case, passes: Callable[[Case], list[Pass]]) -> list[Seen]:
    """What the right class gives in passes of a case: of one x and its weights it is asked once."""
    asked: list[Pass] = []
    for way in sorted(every := passes(case), key=lambda way: not way.gradients):
        if not any(_alike_asked(way, other) for other in asked):
            asked.append(replace(way, how="", dtype="", in_turn=False))
    seen = [*zip(asked, once_right(case, *asked), strict=True)]
    given = [next(s for other, s in seen if _alike_asked(way, other)) for way in every]
    pairs = zip(every, given, strict=True)
    return [Seen(s.out, gradients=s.gradients if pair.gradients else None) for pair, s in pairs]


def _alike_asked(one: Pass, other: Pass) -> bool:
    """Whether two passes have the same x and weights, so that what is right is the same."""
    if (one.x is None) is not (other.x is None) or one.weights.keys() != other.weights.keys():
        return False
    both = [(weight, other.weights[name]) for name, weight in one.weights.items()]
    both += [] if one.x is None else [(one.x, other.x)]
    return all(map(torch.equal, *zip(*both, strict=True))) if both else True


def _x(case: Case, **options: Any) -> Pass:
    return Pass(seeded("other x", case.x.shape), **options)


def _one_text(case: Case) -> Pass:
    return Pass(case.x[:1].repeat(case.b, 1, 1), how="expanded")


def _shorter(case: Case) -> Pass:
    return Pass(case.x[:1, : max(case.num_tokens - 2, 1)] + 1)


def _weights(case: Case, **options: Any) -> Pass:
    own = play(case).module.named_parameters()
    shapes = {n: p.shape for n, p in own if n.startswith(LAYERS) and n.endswith("weight")}
    other = replace(case, seed=case.seed + 1)
    return Pass(weights={n: other.weight(n, s) for n, s in shapes.items()}, **options)


# In the order in which they are asked.
CALLS = (
    Calls("random_in_eval", lambda case: [Pass(seed=1), Pass(seed=2)], same=True),
    Calls("kept_of_same_shape", lambda case: [Pass(), _x(case), Pass(), _x(case)]),
    Calls("something_kept", lambda e: 2 * [_shorter(e), Pass()], third="kept_of_longer"),
    Calls("something_kept", lambda case: [Pass(case.x[:, :1]), Pass()]),
    Calls("kept_in_training", lambda case: [Pass(), *2 * [Pass(train=True)], Pass()], same=True),
    Calls("kept_with_grad", lambda case: [Pass(how="grad"), _x(case, how="grad"), Pass()]),
    Calls("other_in_inference", lambda case: 2 * [Pass(how="inference")]),
    Calls("kept_weights", lambda case: [Pass(), _weights(case)]),
    Calls("copy_follows", lambda case: [Pass(), _weights(case, how="copied")]),
    Calls("other_where_strided", lambda _: [Pass(how="strided")], raises="raises_where_strided"),
    # Where x is expanded it is not contiguous either.
    Calls("other_where_expanded", lambda case: [_one_text(case)], raises=None),
    Calls("kept_for_all_texts", lambda case: [Pass(in_turn=True)]),
    Calls("other_where_frozen", lambda case: [Pass(), Pass(how="frozen")]),
)
CONVERTED = Calls("kept_in_float32", lambda _: [Pass(), Pass(dtype="float64", how="copied")])


def row(case: Case) -> list[Pass]:
    """A pass of each state, for one module; weights that are changed stay so."""
    return [
        *(Pass(), _x(case), _shorter(case), Pass(how="strided"), _x(case, how="inference")),
        *(_one_text(case), Pass(in_turn=True), Pass(gradients=True)),
        _x(case, gradients=True, train=True),
        *(_weights(case, dtype="float64", how="copied"), _weights(case)),
        _weights(case, how="frozen"),
    ]


def in_any_state(subject: Subject, case: Case) -> Finding | None:
    """Ask in a row what else is asked apart; where something is another, ask apart what."""
    case = subject.plain(case)
    passes = row(case)
    pairs = [*zip(once(subject.cls, case, *passes), right_seen(case, row), strict=True)]
    for way, (mine, right) in zip(passes, pairs, strict=True):
        told = way.how in ("strided", "expanded") or way.gradients and begins(subject.cls)
        told = told and isinstance(mine.out, Failure)  # at one size, for all, or as a remark
        if not told and not close(mine.out, right.out):
            return _of_state(subject, case, way, mine, right)
    back = [pair for pair in pairs if pair[1].gradients]
    learns = all(same_gradients(subject, case, *pair) for pair in back if pair[0].gradients)
    if error := next((mine.out.told for mine, _ in back if not mine.gradients), ""):
        return replace(say("backward_once", error=error), kind="remark")
    return None if learns else gradients(subject, case) or gradients(subject, case, train=True)


def _of_state(subject: Subject, case: Case, wrong: Pass, mine: Seen, right: Seen) -> Finding | None:
    """Ask what state makes a pass in a row another one; none does if it is so by itself."""
    by_itself = not close(subject.outs(case, wrong)[0], right.out)
    if by_itself and not wrong.train and wrong.how in ("", "copied"):
        return say("other_output", where=letters_of(case, ""))
    if wrong.gradients and isinstance(mine.out, Failure) and not by_itself:
        return say("backward_once", error=mine.out.told)
    claims = (question(subject, case) for question in (draws, *CALLS[1:], CONVERTED, training))
    some = (claim for claim in claims if claim and claim.kind != "remark")
    return next(some, say("kept_of_same"))


def draws(subject: Subject, case: Case) -> Finding | None:
    """Whether what differs the second time is drawn: with the same draws it does not."""
    finding = CALLS[0](subject, case)
    if finding is None:
        return None
    one, two = subject.outs(case, Pass(seed=1), Pass(seed=1))
    return finding if close(one, two, SAME) else say("kept_of_same")


def writes_over(subject: Subject, case: Case) -> Finding | None:
    """Whether forward writes into x, the weights, or what an earlier forward returned."""
    subject.seen(case)
    again = once(subject.cls, subject.plain(case), Pass(), _x(case))
    changed = {name for seen in (*subject.seen_in.values(), *again) for name in seen.changed}
    names = {"x": "input_changed", "weights": "weights_changed", "out": "output_changed"}
    return next((say(said) for name, said in names.items() if name in changed), None)


# A module as its owner uses it: in eval() again, with its own state, beside another


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
                parameter.copy_(seeded(name, parameter.shape, 0.5))
        module.train().eval()
        first = run(case.x)
        longer = seeded("longer", (1, 2 * case.context_length, case.d_in))  # it may be refused
        if not isinstance(first, torch.Tensor):
            return None
        acts = {
            "kept_of_same": lambda: None,
            "eval_again": module.eval,
            "train_and_eval": lambda: module.train().eval(),
            "state_loaded": lambda: module.load_state_dict(_state(module)),
            "longer_read": lambda: attempt(run, longer),
            "another_made": lambda: attempt(lambda: _made(cls, other)[-1](other.x)),
            "called_often": lambda: [run(case.x[:1]) for _ in range(OFTEN)],
        }
        for name, act in acts.items():
            act()
            if not close(run(case.x), first):
                return say(name, times=OFTEN)
        width = made.width if isinstance(made, Adapted) else case.d_in
        wide = nn.functional.pad(case.x, (0, width - case.d_in))
        run(over := wide + 1)
        if not close(run(over.copy_(wide)), first):
            return say("kept_of_memory")
        if name := _switched(module, run, case.x, first):
            return say("path_switched", name=name)
        if not begins(cls) and (name := _learns_otherwise(module, run, case.x)):
            return say(name)
        lengths = {*range(1, case.context_length + 1)} - {case.num_tokens}
        beside = _beside(made, case)
        fresh_ones = {  # whether parameters are replaced, what is read before that, and after
            "state_elsewhere": (False, [], []),
            "parameter_replaced": (True, [], []),
            "kept_weights": (False, [(case.x,)], []),
            "lengths_read": (False, [], [(longer[:, :length],) for length in lengths]),
            "other_read": (False, [], [(case.x, *beside)] if beside else []),
            "read_in_half": (False, [(case.x,)], []),
        }
        for name, (assigned, before, after) in fresh_ones.items():
            torch.default_generator.manual_seed(1)  # what it draws besides is another
            _, fresh, run = _made(cls, case)
            run = torch.no_grad()(run) if before else run  # where more may be kept
            fresh.eval()
            if name == "read_in_half":
                _converted(fresh, torch.bfloat16, run, *before.pop())
            for texts in before:
                run(*texts)
            fresh.load_state_dict(_state(module), assign=assigned)
            for texts in after:
                run(*texts)
            if not close(run(case.x), first):
                return say(name, what=wording("differs_there"))
        name = _hooked(made, module)
        return say(name) if name else None


def _converted(module: nn.Module, dtype: torch.dtype, run: Run, *texts: torch.Tensor) -> None:
    """Call a module in another dtype, and put back what it had been made with, unrounded."""
    buffers = {part: {**part._buffers} for part in module.modules()}
    was = texts[0].dtype
    module.to(dtype)
    run(*(text.to(dtype) for text in texts))
    module.to(was)
    for part, own in buffers.items():
        shapes = {n: getattr(e, "shape", None) for n, e in part._buffers.items()}  # None may stand
        same = (n for n, e in own.items() if e is not None and e.shape == shapes.get(n))
        part._buffers.update({n: own[n] for n in same})


def _state(module: nn.Module) -> dict[str, Any]:
    state = module.state_dict()
    return {n: e.clone() if isinstance(e, torch.Tensor) else e for n, e in state.items()}


def _made(cls: Any, case: Case) -> tuple[nn.Module, nn.Module, Run]:
    """A module as its owner builds it, within what adapts it, and a call of it with an x."""
    made = construct(cls, case, case.qkv_bias)

    def plainly(x: torch.Tensor, *beside: torch.Tensor) -> Any:
        return attempt(made, x, *beside) if beside else attempt(called, made, case, x)

    def adapted(*texts: torch.Tensor) -> Any:
        x = texts[0]
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool)
        hidden = hidden.triu(1) if made.causal else hidden & False
        if x.shape[-1] < made.width:
            texts = [nn.functional.pad(e, (0, made.width - case.d_in)) for e in texts]
        x, *beside = (e.transpose(0, 1) if made.called.call.first else e for e in texts)
        return output(attempt(made.called, x, hidden, *beside), case.d_out)

    if isinstance(made, Adapted):
        return made, made.called.inner, adapted
    return made, made, plainly


def _beside(made: nn.Module, case: Case) -> tuple[torch.Tensor, ...]:
    """What forward may get beside x, another second text; nothing where it takes none."""
    if isinstance(made, Adapted):
        names = getattr(made.called.call, "names", ())
        return (seeded("second text", case.x.shape),) if len(names) > 1 else ()
    if "other" not in case.variant:
        return ()
    other, *more = beside_x(case, case.x)
    return seeded("second text", other.shape), *more


def _switched(module: nn.Module, run: Run, x: torch.Tensor, first: torch.Tensor) -> str:
    """The attribute that chooses a path, by its name, on which the output is another one."""
    switches = ((m, n) for m in module.modules() for n in [*vars(m)] if NAMED["path"].fullmatch(n))
    for owner, name in switches:
        if type(was := getattr(owner, name)) is bool:
            setattr(owner, name, not was)
            outs = [run(x) for mode in (True, False) if module.train(mode)]
            setattr(owner, name, was)
            if any(not isinstance(e, Failure) and not close(e, first) for e in outs):
                return f"{name} = {not was}"
    return ""


def _learns_otherwise(module: nn.Module, run: Run, x: torch.Tensor) -> str:
    """What makes the gradients of a forward others: a second forward, or an x that wants none."""
    every = [parameter for parameter in module.parameters() if parameter.requires_grad]
    learning, other = x.clone().requires_grad_(), seeded("other x", x.shape)
    texts = {"": [learning], "gradients_of_second": [learning, other], "gradients_of_input": [x]}
    found: dict[str, Any] = {}
    for name, some in texts.items():
        out, *_ = [run(text) for text in some]
        grads = attempt(torch.autograd.grad, out.square().sum(), every, materialize_grads=True)
        found[name] = () if isinstance(grads, Failure) else grads
    usual = found.pop("")  # where there is none it is told elsewhere
    other = (n for n, e in found.items() if not (e and all(map(close, usual, e))))
    return next(other, "") if usual else ""


class _Renamed(UserDict):
    """A state that has weights and biases under whatever name it is asked for, and notes which."""

    def __init__(self, made: nn.Module, width: int):
        super().__init__()
        self.parts, self.asked, pad = {}, set(), nn.functional.pad
        for role, names in ROLES.items():
            layers = [getattr(made, name) for name in names if hasattr(made, name)]
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
    same = (t.shape == kept[n].shape and close(t, kept[n]) for n, t in loaded.items())
    return "" if all(same) else "weights_renamed"


def _turns_by_shape(module: nn.Module) -> bool:
    """Whether a load hook turns a weight that comes as (in, out), but for a square one."""
    for name, parameter in module.named_parameters():
        turned, n = [], len(parameter) if parameter.dim() else 0
        for rows in (n + 1, n) if tuple(parameter.shape) == (n, n) else ():
            weight = seeded(name, (rows, n))
            state = _state(module) | {name: weight}
            attempt(module._load_from_state_dict, state, "", {}, False, [], [], [])
            turned.append(torch.equal(state.get(name, weight), weight.mT))
        if turned == [True, False]:
            return True
    return False

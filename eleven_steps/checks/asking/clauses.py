"""Run the clauses of the contract: a class is right if each gives what it gives for ours.

A clause gets a module in eval mode, with the weights of a case, and the case. It returns tensors,
texts or dictionaries of these. checks/contract.py lists the clauses, and
what counts as equal.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.asking.cases import Case, build, construct, fill, seeded
from eleven_steps.checks.asking.copies import as_data
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt

DRAWS = 2000  # equal texts, each with its own dropout


@dataclass(frozen=True)
class Reply:
    """Hold what a class gave in a clause, or the Failure that it raised."""

    value: Any
    building: bool = False  # whether the constructor raised

    @property
    def raised(self) -> bool:
        """Say whether the class raised."""
        return isinstance(self.value, Failure)


def run_clause(cls: Any, name: str, case: Case, dropout: float = 0.0, new: bool = False) -> Reply:
    """Build a module of a class and ask it one clause.

    Args:
        cls: a class, or a function that builds a module from the sizes of the lecture.
        name: of the clause, a name in CLAUSES.
        case: sizes, weights and x.
        dropout: the share of weights to drop in training.
        new: whether the module is asked as the constructor leaves it.
    """
    with torch.random.fork_rng(devices=[]):
        module = attempt(construct if new else build, cls, case, dropout)
        if isinstance(module, Failure):
            return Reply(module, building=True)
        if not isinstance(module, nn.Module):
            return Reply(as_data(module), building=True)
        torch.default_generator.manual_seed(5)
        return Reply(attempt(_asked, CLAUSES[name], module, case))


def _asked(clause: Callable[[nn.Module, Case], Any], module: nn.Module, case: Case) -> Any:
    return as_data(clause(module, case))


def _call(module: nn.Module, x: torch.Tensor) -> Any:
    with torch.no_grad():
        return module(x)


def output(module: nn.Module, case: Case) -> Any:
    """Return the output."""
    return _call(module, case.x)


def past_output(module: nn.Module, case: Case) -> Any:
    """Return the output at all tokens but the last, once the last token is replaced."""
    x = case.x
    x[:, -1] += 1
    return _call(module, x)[:, :-1]


def second_text(module: nn.Module, case: Case) -> Any:
    """Return the outputs of two texts in the same memory, and of the first text again."""
    x, other = case.x, case.x.flip(0) + 1
    kept = _call(module, x)
    second = _call(module, other)
    x.copy_(other)
    return torch.stack([kept, second, _call(module, x), _call(module, case.x)])


def other_lengths(module: nn.Module, case: Case) -> Any:
    """Return the outputs of texts of every length, each read twice."""
    for _ in range(2):
        for n in range(1, case.num_tokens + 1):
            last = _call(module, case.x[:, :n])
    return last


def after_training(module: nn.Module, case: Case) -> Any:
    """Return the output in eval mode after two calls in training mode."""
    module.train()(case.x + 1), module(case.x - 1)
    return _call(module.eval(), case.x)


def in_training(module: nn.Module, case: Case) -> Any:
    """Return the output in training mode with dropout 0."""
    return _call(module.train(), case.x)


def loaded(module: nn.Module, case: Case) -> Any:
    """Return the output of a module that loads another module's state after a first call."""
    state = {name: tensor.clone() for name, tensor in module.state_dict().items()}
    fill(module, replace(case, seed=case.seed + 1))
    _call(module, case.x)
    module.load_state_dict(state)
    return _call(module, case.x)


def given_x(module: nn.Module, case: Case) -> Any:
    """Return x after the call."""
    x = case.x
    _call(module, x)
    return x


def parameters(module: nn.Module, case: Case) -> Any:
    """Return the shapes of parameters by name, and the tensors that torch cannot find."""
    known = {id(one) for one in (*module.modules(), *module.parameters(), *module.buffers())}
    every = module.named_parameters(remove_duplicate=False)
    learns = {n: tuple(p.shape) for n, p in every if p.requires_grad}
    held = {name: v if isinstance(v, list | tuple) else [v] for name, v in vars(module).items()}
    loose = [
        name
        for name, some in held.items()
        if any(isinstance(e, nn.Module | nn.Parameter) and id(e) not in known for e in some)
    ]
    return learns | dict.fromkeys(loose, "not registered")


def first_weights(module: nn.Module, case: Case) -> Any:
    """Return whether a new module can learn; it cannot if W_query and W_key are 0."""
    drawn = {name: bool(p.any()) for name, p in module.named_parameters() if p.dim() > 1}
    return {name: drawn.get(name, True) for name in ("W_query.weight", "W_key.weight")}


def gradients(module: nn.Module, case: Case) -> Any:
    """Return the gradients of one sum of the output, after two backward passes."""
    x = case.x.requires_grad_()
    for _ in range(2):
        out = module(x)
        (out * seeded("direction", out.shape)).sum().backward()
    return {"x": x.grad} | {n: p.grad for n, p in module.named_parameters() if p.requires_grad}


def training_gradients(module: nn.Module, case: Case) -> Any:
    """Return the gradients in training mode with dropout 0."""
    return gradients(module.train(), case)


def dropped(module: nn.Module, case: Case) -> Any:
    """Return mean and spread of the output in training mode, over many equal texts."""
    return _spread(module.train(), case)


def dropped_when_new(module: nn.Module, case: Case) -> Any:
    """Return mean and spread of a new module's output, which starts in training mode."""
    fill(module, case)
    return _spread(module, case)


def _spread(module: nn.Module, case: Case) -> dict[str, torch.Tensor]:
    out = _call(module, case.x[:1].repeat(DRAWS, 1, 1))
    return {"mean": out.mean(0), "spread": out.std(0)}


def in_double(module: nn.Module, case: Case) -> Any:
    """Return the output in float64, after a call in float32."""
    _call(module, case.x)
    return _call(module.double(), case.x.double())


def on_second_device(module: nn.Module, case: Case) -> Any:
    """Return the output's shape on the meta device, set as the default device."""
    with torch.device("meta"):
        return tuple(_call(module.to("meta"), case.x.to("meta")).shape)


CLAUSES: dict[str, Callable[[nn.Module, Case], Any]] = {
    clause.__name__: clause
    for clause in (
        *(output, past_output, second_text, other_lengths, after_training, in_training, loaded),
        *(given_x, parameters, first_weights, gradients, training_gradients),
        *(dropped, dropped_when_new, in_double, on_second_device),
    )
}

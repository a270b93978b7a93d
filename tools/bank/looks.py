"""Turn what a class has computed into the texts that questions show: tables, shapes, sums."""

import re
from collections.abc import Sequence

import torch

from eleven_steps.checks.asking.cases import LAYERS, close
from eleven_steps.checks.reference import Scene, run_reference


def look(show: str, case, names: Sequence[str]) -> str:
    """Run the class with some mistakes, and return what `show` names as text.

    Args:
        show: the name of a function of this module, then its arguments, "table scores.scores 1".
        case: the sizes and numbers to run with.
        names: mistakes of the catalogue; none for the right class.
    """
    what, *at = show.split()
    scene = run_reference(case, *names)
    needed = at[0].partition(".")[0] if at else NEEDS.get(what)
    if scene.module is scene.failure or needed and needed not in scene.steps:
        return scene.failure.text
    return LOOKS[what](scene, *at)


def tensor_of(scene: Scene, at: str) -> torch.Tensor:
    """Return a recorded tensor, "scores.scores", or a parameter, "W_key.weight"."""
    step, name = at.split(".")
    if name in ("weight", "bias"):
        return scene.module.get_parameter(at).detach()
    return scene[step][name]


def shape(scene: Scene, at: str) -> str:
    return str(tuple(tensor_of(scene, at).shape))


def last(scene: Scene, at: str) -> str:
    return str(tensor_of(scene, at).shape[-1])


def grid(scene: Scene, at: str, head: str = "0") -> torch.Tensor:
    """Return the rows of one head in the first sequence, or of a tensor without heads."""
    tensor = tensor_of(scene, at)
    if tensor.dim() == 4:
        return tensor[0, min(int(head), tensor.shape[1] - 1)]
    return tensor[0] if tensor.dim() == 3 else torch.atleast_2d(tensor)


def table(scene: Scene, at: str, head: str = "0") -> str:
    """Return rows of numbers, whole ones without decimals."""
    rows = grid(scene, at, head)
    finite = rows[rows.isfinite()]
    whole = bool((finite == finite.round()).all())
    written = [[number(value, whole) for value in row] for row in rows.tolist()]
    width = max(len(text) for row in written for text in row)
    return "\n".join("  ".join(text.rjust(width) for text in row) for row in written)


def number(value: float, whole: bool = False) -> str:
    return re.sub(r"^-(0\.?0*)$", r"\1", f"{value:.0f}" if whole else f"{value:.2f}")


def cell(scene: Scene, at: str, row: str = "") -> str:
    """Return the first number of a row, which is the case's own row unless given."""
    value = grid(scene, at)[int(row or scene.case.row), 0]
    return number(value.item(), bool(value.isfinite() and value == value.round()))


def sums(scene: Scene) -> str:
    """Return the sums of the rows of the weights of head 0."""
    return ", ".join(number(total) for total in grid(scene, "softmax.weights").sum(-1).tolist())


def sees(scene: Scene) -> str:
    """Return for each token the keys to which head 0 gives a weight that is not 0."""
    rows = grid(scene, "softmax.weights").tolist()
    seen = [", ".join(str(key) for key, weight in enumerate(row) if weight) for row in rows]
    texts = [
        "NaN" if row[0] != row[0] else keys or "none" for row, keys in zip(rows, seen, strict=True)
    ]
    return "\n".join(f"token {token}: {keys}" for token, keys in enumerate(texts))


def changed(scene: Scene) -> str:
    """Return the tokens whose output changes when one token of x changes."""
    case = scene.case
    with torch.no_grad():
        before, after = scene.module(case.x), scene.module(case.changed_x)
    tokens = [i for i in range(case.num_tokens) if not close(before[0, i], after[0, i])]
    return ", ".join(map(str, tokens)) or "none"


def parameters(scene: Scene) -> str:
    return f"{sum(parameter.numel() for parameter in scene.module.parameters()):,}"


def stored(scene: Scene) -> str:
    return f"{sum(tensor.numel() for tensor in scene.module.state_dict().values()):,}"


def learns(scene: Scene) -> str:
    """Return the layers that get a gradient from out."""
    module = scene.module
    module.zero_grad()
    with torch.enable_grad():
        out = module(scene.case.x)
    if out.requires_grad:
        out.square().sum().backward()
    return ", ".join(n for n in LAYERS if getattr(module, n).weight.grad is not None) or "none"


_EVERY = shape, last, table, cell, sums, sees, changed, parameters, stored, learns
LOOKS = {function.__name__: function for function in _EVERY}
NEEDS = {"sums": "softmax", "sees": "softmax", "changed": "out_proj", "learns": "out_proj"}

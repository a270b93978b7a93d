"""What a learner's code could change outside itself, as it was before."""

import builtins
import contextlib
import copy
import gc
import io
import logging
import os
import random
import sys
import types
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.modules import module as hooks

from helpers import attention, trace

# Modules and classes of which somebody's code may replace a function.
SHARED = (
    *(builtins, torch, torch.Tensor, nn, nn.functional, nn.init, attention, trace),
    *(nn.Module, nn.Linear, nn.Dropout, nn.Softmax, nn.Parameter, nn.ModuleList),
    *(attention.MultiHeadAttention, attention.MultiHeadAttention.__base__),
)
GLOBAL_HOOKS = [each for name, each in vars(hooks).items() if name.startswith("_global_")]
HOOKS = [each for each in GLOBAL_HOOKS if isinstance(each, dict)]
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (torch.get_deterministic_debug_mode, torch.set_deterministic_debug_mode),
    (torch.is_anomaly_enabled, torch.autograd.set_detect_anomaly),
    (torch.get_default_device, torch.set_default_device),
    (sys.getrecursionlimit, sys.setrecursionlimit),
    (gc.isenabled, lambda on: gc.enable() if on else gc.disable()),
    (lambda: logging.root.manager.disable, logging.disable),
    (torch._C._get_mkldnn_enabled, torch._C._set_mkldnn_enabled),
)
PLAIN = list, dict, set


class World:
    """A picture of the world; put_back makes the world like it again.

    Args:
        owners: classes of the learner's whose attributes, and what their plain containers hold,
            belong to the picture.
    """

    def __init__(self, owners: Iterable[type] = ()):
        self.owners = [(each, _attributes(each)) for each in (*SHARED, *owners)]
        self.held = [
            (value, copy.copy(value))
            for owner in owners
            for value in _attributes(owner).values()
            if type(value) in PLAIN
        ]
        self.held += [(each, copy.copy(each)) for each in HOOKS]
        self.held += [(vars(torch._tensor_str.PRINT_OPTS), {**vars(torch._tensor_str.PRINT_OPTS)})]
        self.settings = [(read(), write, read) for read, write in SETTINGS]
        self.environment, self.folder = dict(os.environ), _folder()

    def put_back(self) -> None:
        """Undo what was changed since."""
        for value, write, read in self.settings:
            if read() != value:
                write(value)
        for owner, before in self.owners:
            now = _attributes(owner)
            if not _alike(now, before):
                _restore(owner, now, before)
        for value, content in self.held:
            if not _alike(value, content):
                value.clear()
                (value.extend if isinstance(value, list) else value.update)(content)
        if dict(os.environ) != self.environment:
            os.environ.clear()
            os.environ.update(self.environment)
        if self.folder and _folder() != self.folder:
            os.chdir(self.folder)


@contextlib.contextmanager
def silenced(owners: Iterable[type] = ()) -> Iterator[World]:
    """Run the body without a sound, on one thread, in float32, with gradients; then put all back.

    The streams of random numbers go on afterwards as if nothing had been drawn.

    Args:
        owners: as for World.

    Yields:
        The world as it is in the body.
    """
    before, states, stdin = World(owners), (random.getstate(), np.random.get_state()), sys.stdin
    with (
        torch.random.fork_rng(devices=[]),
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore")
        sys.stdin = io.StringIO()
        try:
            torch.set_default_dtype(torch.float32)
            torch.set_num_threads(1)
            torch.set_grad_enabled(True)
            yield World(owners)
        finally:
            sys.stdin = stdin
            before.put_back()
            random.setstate(states[0])
            np.random.set_state(states[1])


def _attributes(owner: Any) -> dict[str, Any]:
    """The attributes of a module or a class, without asking its metaclass."""
    if issubclass(type(owner), types.ModuleType):
        return dict(vars(owner))
    is_class = issubclass(type(owner), type)
    return dict(type.__dict__["__dict__"].__get__(owner)) if is_class else {}


def _alike(now: Any, before: Any) -> bool:
    """Whether two containers hold the very same things."""
    if len(now) != len(before):
        return False
    if isinstance(now, dict):
        return all(now.get(name, now) is value for name, value in before.items())
    if isinstance(now, set):
        return now == before
    return all(one is other for one, other in zip(now, before, strict=True))


def _restore(owner: Any, now: dict[str, Any], before: dict[str, Any]) -> None:
    """Give a module or class its attributes back."""
    is_module = issubclass(type(owner), types.ModuleType)
    write, delete = (setattr, delattr) if is_module else (type.__setattr__, type.__delattr__)
    for name in now.keys() - before.keys():
        if not isinstance(now[name], types.ModuleType):  # torch imports parts of itself late
            delete(owner, name)
    for name, value in before.items():
        if now.get(name) is not value:
            with contextlib.suppress(AttributeError, TypeError):  # Python's own slots
                write(owner, name, value)


def _folder() -> str:
    try:
        return os.getcwd()
    except OSError:
        return ""

"""What a learner's code changes outside itself by accident, as it was before."""

import contextlib
import io
import random
import sys
import warnings
from collections.abc import Iterator

import numpy as np
import torch
from torch._tensor_str import get_printoptions  # torch shows these nowhere else

# How each setting is read and written.
SETTINGS = (
    (torch.get_default_dtype, torch.set_default_dtype),
    (torch.get_default_device, torch.set_default_device),
    (torch.is_grad_enabled, torch.set_grad_enabled),
    (torch.get_num_threads, torch.set_num_threads),
    (get_printoptions, lambda options: torch.set_printoptions(**options)),
)


class World:
    """The settings as they are now; put_back makes them so again."""

    def __init__(self) -> None:
        self.values = [read() for read, _ in SETTINGS]

    def put_back(self) -> None:
        """Undo what was set since."""
        for (read, write), value in zip(SETTINGS, self.values, strict=True):
            if read() != value:
                write(value)


@contextlib.contextmanager
def silenced() -> Iterator[World]:
    """Run the body without a sound, on one thread, in float32, with gradients; then put all back.

    The streams of random numbers go on afterwards as if nothing had been drawn.

    Yields:
        The world as it is in the body.
    """
    before, states, stdin = World(), (random.getstate(), np.random.get_state()), sys.stdin
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
            yield World()
        finally:
            sys.stdin = stdin
            before.put_back()
            random.setstate(states[0])
            np.random.set_state(states[1])

"""Whatever a class does, the checks answer, leave everything as it was, and time it alone."""

import os
import random
import signal
import sys
import threading
import time
import warnings
from importlib import import_module
from itertools import repeat

import numpy as np
import pytest
import torch
from attention_variants import Base
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch._tensor_str import get_printoptions

from eleven_steps.checks import check, check_attention, wrong_class
from eleven_steps.checks.asking import isolation
from eleven_steps.checks.verdict import Verdict

every = pytest.mark.parametrize


def state():
    """Everything global that a class could change."""
    return (
        torch.get_rng_state().tolist(),
        random.getstate(),
        np.random.get_state()[1].tolist(),
        torch.get_default_dtype(),
        torch.get_default_device(),
        torch.get_num_threads(),
        torch.is_grad_enabled(),
        get_printoptions(),
        sys.stdout,
        sys.stderr,
        sys.stdin,
        list(warnings.filters),
        signal.getsignal(signal.SIGALRM),
        signal.getsignal(signal.SIGINT),
        signal.getitimer(signal.ITIMER_REAL),
    )


class Rude(Exception):
    def __str__(self):
        raise ValueError("no text")


def raising(error):
    def act(*args, **options):
        raise error

    return act


def returning(value):
    return lambda module, x: value


def recurse(module, x):
    return recurse(module, x)


def spoil(module, x):
    torch.set_default_dtype(torch.float64)
    torch.set_grad_enabled(False)
    torch.set_num_threads(2)
    warnings.simplefilter("error")
    random.seed(1)
    np.random.seed(1)
    torch.set_printoptions(precision=1, sci_mode=True)
    torch.manual_seed(1)
    sys.stdout = sys.stderr = None
    return Base.forward(module, x)


def empty(module, x):
    for name in list(vars(module)):
        delattr(module, name)
    return x


ACTS = [
    Base.forward,
    spoil,
    empty,
    recurse,
    *map(raising, [ValueError("x" * 5000), KeyError(3), Rude(), SystemExit(2), GeneratorExit()]),
    *map(raising, [KeyboardInterrupt(), MemoryError(), StopIteration(), AssertionError()]),
    *map(returning, [None, 0, "out", (), [None], {}, nn.Linear(2, 2), torch.tensor(1.0)]),
    *map(returning, [torch.empty(0), torch.tensor(True), torch.ones(2, dtype=torch.bool)]),
    lambda module, x: x.fill_(torch.nan),
    lambda module, x: Base.forward(module, x).mul_(torch.inf),
    lambda module, x: Base.forward(module, x).to(torch.complex64),
    lambda module, x: Base.forward(module, x).to("meta"),
    lambda module, x: torch.rand(*x.shape[:2], module.n_embd),
    lambda module, x: print("noise") or input("more? "),
    lambda module, x: os.fspath(x),
    lambda module, x: module.W_query.weight.data.zero_() + Base.forward(module, x).sum(),
    lambda module, x: setattr(module, "W_key", None),
]


PLACES = ["forward", "__init__", "hide", "parameters", "eval", "__getattr__"]


@every("examples", [6, pytest.param(60, marks=pytest.mark.nightly)])
def test_no_exception_comes_out(examples):
    acts, places, turns = st.sampled_from(ACTS), st.sampled_from(PLACES), st.integers(0, 12)
    often = settings(max_examples=examples, deadline=None, derandomize=True)
    often(given(acts, acts, turns, places)(nothing_comes_out))()


def nothing_comes_out(first, later, turn, where):
    calls = []

    def act(self, *args, **options):
        calls.append(where)
        x = args[0] if args and isinstance(args[0], torch.Tensor) else torch.ones(1, 2, 5)
        if where == "__init__":
            Base.__init__(self, *args, **options)
        return (first if len(calls) <= turn else later)(self, x)

    before = state()
    verdict = check_attention(acting(where, act))
    assert state() == before
    assert isinstance(verdict, Verdict)
    assert verdict.message and str(verdict) and verdict.display
    assert verdict.step is None or 1 <= verdict.step <= 11


def stop_after(seconds, monkeypatch):
    for room in ("attention", "answers"):
        monkeypatch.setattr(f"eleven_steps.checks.{room}.SECONDS", seconds)
    monkeypatch.setattr(isolation, "IDLE_SECONDS", seconds)


def forever(*args, **options):
    while True:
        pass


def sleep(module, x):
    time.sleep(30)


def call_itself(module, x):
    return module.forward(x)


def acting(where, act):
    """A class that does something else in one place."""
    return type("Acting", (Base,), {where: act})


@every(
    ("where", "act"),
    [
        ("forward", forever),
        ("forward", sleep),
        ("forward", call_itself),
        ("__getattribute__", forever),
        ("__init__", forever),
    ],
)
def test_what_does_not_end_is_stopped(where, act, monkeypatch):
    stop_after(0.1, monkeypatch)
    before, cls = state(), acting(where, act)
    verdict, said = check_attention(cls), check("your_class.1", cls, record=False)
    assert not verdict.passed and not said.passed and state() == before
    if act is not call_itself:
        assert "0.1 seconds" in verdict.message and "0.1 seconds" in said.message
    if act is forever:
        for name in ("scores.1", "the_test.1"):
            assert check(name, act, record=False).kind == "error"


def test_what_does_not_end_is_stopped_in_another_thread(monkeypatch):
    stop_after(0.1, monkeypatch)
    verdicts = []
    cls = acting("forward", forever)
    thread = threading.Thread(target=lambda: verdicts.append(check_attention(cls)))
    thread.start()
    thread.join()
    assert "0.1 seconds" in verdicts[0].message


def test_the_person_at_the_keyboard_gets_through():
    before = state()
    with pytest.raises(KeyboardInterrupt):
        check_attention(acting("forward", lambda module, x: signal.raise_signal(signal.SIGINT)))
    assert state() == before


def loud(module, x):
    print("here I am")
    print("and here", file=sys.stderr)
    warnings.warn("beware", stacklevel=1)
    return Base.forward(module, x)


def test_nothing_is_printed_and_the_default_dtype_does_not_matter(capfd):
    torch.set_default_dtype(torch.float64)
    try:
        assert check_attention(acting("forward", loud)).passed
        assert capfd.readouterr() == ("", "")
        assert torch.get_default_dtype() == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


@every("error", [isolation.TimeUp, isolation.UserInterrupt, KeyboardInterrupt, SystemExit])
@every("where", ["__init__", "forward"])
def test_an_exception_of_ours_that_the_class_raises_stays_inside(error, where):
    cls = acting(where, raising(error))
    verdict = check_attention(cls)
    assert not verdict.passed and verdict.gets.startswith("an error"), verdict
    assert check("your_class.1", cls, record=False).kind == "error"
    assert check("scores.1", raising(error), record=False).kind == "error"


def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def slowed(function, seconds):
    """The function, its calls one after the other longer by these seconds of processor time."""

    def slow(*args, **options):
        work(next(seconds, 0))
        return function(*args, **options)

    return slow


WRONG = wrong_class("scores_transposed")


@every("place", ["attention.named_mistake", "attention.find", "contract.expected"])
def test_our_own_work_takes_none_of_the_learners_time(place, monkeypatch):
    right = check_attention(WRONG)
    room, name = f"eleven_steps.checks.{place}".rsplit(".", 1)
    monkeypatch.setattr(f"{room}.{name}", slowed(getattr(import_module(room), name), iter([1.5])))
    stop_after(1, monkeypatch)
    assert check_attention(WRONG) == right


def test_work_of_the_class_itself_is_stopped(monkeypatch):
    stop_after(0.5, monkeypatch)
    verdict = check_attention(acting("forward", slowed(Base.forward, repeat(0.2))))
    assert not verdict.passed and "within 0.5 seconds of processor time" in verdict.message

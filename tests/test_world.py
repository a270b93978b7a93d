"""What an answer does to the world does not outlive its check, and the clock runs for it alone."""

import os
import time
from importlib import import_module

import pytest
import torch
from attention_variants import Base, carrier
from torch import nn
from torch.nn import functional as F
from torch.nn.modules import module as hooks

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run import isolate
from helpers import attention, trace

every = pytest.mark.parametrize
NOTHING = object()


def replace(owner, name):
    return lambda: setattr(owner, name, lambda *args, **options: None)


def add(owner, name):
    return lambda: setattr(owner, name, NOTHING)


# What an answer does, and how to see it.
DEEDS = {
    "torch.softmax": (replace(torch, "softmax"), lambda: torch.softmax),
    "functional": (replace(F, "linear"), lambda: F.linear),
    "a method": (replace(torch.Tensor, "masked_fill"), lambda: torch.Tensor.masked_fill),
    "Linear": (replace(nn.Linear, "forward"), lambda: nn.Linear.forward),
    "a new name": (add(nn.Module, "novel"), lambda: hasattr(nn.Module, "novel")),
    "our class": (
        replace(attention.MultiHeadAttention, "forward"),
        lambda: attention.MultiHeadAttention.forward,
    ),
    "our module": (replace(attention, "MultiHeadAttention"), lambda: attention.MultiHeadAttention),
    "our trace": (replace(trace, "trace"), lambda: trace.trace),
    "hooks": (
        lambda: hooks.register_module_forward_hook(lambda module, args, out: out * 0),
        lambda: dict(hooks._global_forward_hooks),
    ),
    "deterministic": (
        lambda: torch.use_deterministic_algorithms(True),
        torch.are_deterministic_algorithms_enabled,
    ),
    "anomaly": (lambda: torch.autograd.set_detect_anomaly(True), torch.is_anomaly_enabled),
    "print options": (
        lambda: torch.set_printoptions(precision=1, sci_mode=True),
        lambda: str(torch.tensor(1 / 3)),
    ),
    "environment": (lambda: os.environ.update(HOME="gone", NEW="1"), lambda: dict(os.environ)),
    "emptied": (os.environ.clear, lambda: dict(os.environ)),
    "folder": (lambda: os.chdir("/"), os.getcwd),
    "device": (lambda: torch.set_default_device("meta"), torch.get_default_device),
}


@every("deed", DEEDS)
def test_the_world_is_as_before(deed):
    act, look = DEEDS[deed]

    class Acting(Base):
        def forward(self, x):
            out = super().forward(x)
            act()
            return out

    def answer(queries, keys):
        scores = queries @ keys.transpose(2, 3)
        act()
        return scores

    before = look()
    verdict = check_attention(Acting)
    assert look() == before
    assert verdict.passed, verdict
    assert check("scores.1", answer, record=False).passed
    assert look() == before


class NeverAnswers(Base):
    def __getattribute__(self, name):
        while True:
            pass


class NeverBuilt(Base):
    def __init__(self, *args, **options):
        while True:
            pass


@every("cls", [NeverAnswers, NeverBuilt])
def test_whatever_does_not_end_is_stopped(cls, monkeypatch):
    monkeypatch.setattr("eleven_steps.checks.name.classes.SECONDS", 0.3)
    monkeypatch.setattr("eleven_steps.checks.name.answers.SECONDS", 0.3)
    assert "does not end" in check_attention(cls).message
    assert "no end" in check("your_class.1", cls, record=False).message


@every("error", [isolate.TimeUp, isolate.Stopped, KeyboardInterrupt, SystemExit])
@every("where", ["__init__", "forward"])
def test_an_exception_of_ours_that_the_class_raises_stays_inside(error, where):
    def raising(*args, **options):
        raise error

    cls = type("Raises", (Base,), {where: raising})
    verdict = check_attention(cls)
    assert not verdict.passed and "raises" in verdict.message, verdict
    assert check("your_class.1", cls, record=False).kind == "error"
    assert check("scores.1", raising, record=False).kind == "error"


# The clock


def work(seconds):
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def slowed(function, seconds):
    def slow(*args, **options):
        work(seconds)
        return function(*args, **options)

    return slow


@every(
    ("cls", "places", "seconds"),
    [
        (Base, ["name.match.play"], 0.1),  # asked for every case
        (
            carrier("functional", "scores_transposed"),
            ["name.match.follow", "name.classes.made"],
            0.7,
        ),
        (carrier("functional", "scores_transposed"), ["run.recorder._held"], 0.005),
    ],
    ids=["right", "wrong", "while it runs"],
)
def test_our_own_work_takes_none_of_the_learners_time(cls, places, seconds, monkeypatch):
    expected = check_attention(cls)
    monkeypatch.setattr("eleven_steps.checks.name.classes.SECONDS", 1.0)
    for place in places:
        module, _, name = place.rpartition(".")
        owner = import_module(f"eleven_steps.checks.{module}")
        monkeypatch.setattr(owner, name, slowed(getattr(owner, name), seconds))
    began = time.process_time()
    assert check_attention(cls) == expected
    assert time.process_time() - began > 1.0


def test_our_own_work_takes_none_of_the_time_of_a_function(monkeypatch):
    monkeypatch.setattr("eleven_steps.checks.name.answers.SECONDS", 0.3)
    monkeypatch.setattr("eleven_steps.checks.name.functions.play", slowed(play, 0.15))
    assert check("scores.1", lambda q, k: q @ k.transpose(2, 3), record=False).passed


def test_work_of_the_class_itself_is_stopped(monkeypatch):
    class Slow(Base):
        def forward(self, x):
            work(0.2)
            return super().forward(x)

    monkeypatch.setattr("eleven_steps.checks.name.classes.SECONDS", 0.5)
    verdict = check_attention(Slow)
    assert not verdict.passed and "within 0.5 seconds of its own" in verdict.message

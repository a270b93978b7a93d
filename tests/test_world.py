"""What an answer does to the world does not outlive its check, and the clock runs for it alone."""

import time
from importlib import import_module

import pytest
from attention_variants import Base, carrier

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run import isolate

every = pytest.mark.parametrize


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
    monkeypatch.setattr("eleven_steps.checks.judge.classes.SECONDS", 0.3)
    monkeypatch.setattr("eleven_steps.checks.judge.answers.SECONDS", 0.3)
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
    ("cls", "places", "seconds", "limit"),
    [
        (Base, ["judge.match.play"], 0.2, 2),  # asked for every case
        (
            carrier("functional", "scores_transposed"),
            ["judge.blame.walk", "judge.blame.differ"],
            0.35,
            0.5,
        ),
        (carrier("functional", "scores_transposed"), ["run.recording.copy_of"], 0.02, 0.5),
    ],
    ids=["right", "wrong", "while it runs"],
)
def test_our_own_work_takes_none_of_the_learners_time(cls, places, seconds, limit, monkeypatch):
    expected = check_attention(cls)
    monkeypatch.setattr("eleven_steps.checks.judge.classes.SECONDS", limit)
    for place in places:
        module, _, name = place.rpartition(".")
        owner = import_module(f"eleven_steps.checks.{module}")
        monkeypatch.setattr(owner, name, slowed(getattr(owner, name), seconds))
    began = time.process_time()
    assert check_attention(cls) == expected
    assert time.process_time() - began > limit


def test_our_own_work_takes_none_of_the_time_of_a_function(monkeypatch):
    monkeypatch.setattr("eleven_steps.checks.judge.answers.SECONDS", 0.3)
    monkeypatch.setattr("eleven_steps.checks.judge.functions.play", slowed(play, 0.15))
    assert check("scores.1", lambda q, k: q @ k.transpose(2, 3), record=False).passed


def test_work_of_the_class_itself_is_stopped(monkeypatch):
    class Slow(Base):
        def forward(self, x):
            work(0.2)
            return super().forward(x)

    monkeypatch.setattr("eleven_steps.checks.judge.classes.SECONDS", 0.5)
    verdict = check_attention(Slow)
    assert not verdict.passed and "within 0.5 seconds of its own" in verdict.message


@every(("act", "seconds"), [(lambda: time.sleep(0.6), 0.6), (lambda: work(0.2), 0.2)])
def test_the_clock_counts_work_and_idling(act, seconds):
    with isolate.timed(9) as clock:
        isolate.attempt(act)
    assert seconds * 0.8 <= clock.passed < seconds + 0.3


def test_waiting_for_a_processor_does_not_count(monkeypatch):
    wall = time.monotonic  # as if this process had a quarter of a processor, or less
    monkeypatch.setattr(isolate.time, "monotonic", lambda: 4 * wall())
    with isolate.timed(9) as clock:
        isolate.attempt(work, 0.5)
    assert 0.4 < clock.passed < 0.7

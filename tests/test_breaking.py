"""Lines to break by hand: every choice is planted, judged by three lamps, and stored in words."""

import pytest
import torch

from eleven_steps import sliders
from eleven_steps.checks import wrong_lines
from eleven_steps.checks.know.catalogue import wrong_class
from eleven_steps.checks.know.lines import BROKEN
from helpers.examples import load_whiteboard

every_step = pytest.mark.parametrize("step", BROKEN)


@pytest.fixture(scope="module")
def broken(one_thread):
    """The lines of every step, and what the lamps say to each choice of them."""
    return {step: (lines := wrong_lines(step), sliders.break_step(lines).data) for step in BROKEN}


def said(broken, step, *changes):
    """What the three lamps notice where the class has these lines, and what they say."""
    lines, data = broken[step]
    chosen = [
        next((k for k, text in enumerate(line.texts) if text in changes), 0) for line in lines.lines
    ]
    assert sum(map(bool, chosen)) == len(changes), "no such line"
    state = next(each for each in data["states"] if each["chosen"] == chosen)
    return state["notices"], state["says"]


@every_step
def test_every_choice_is_there_once_and_the_right_one_first(broken, step):
    lines, data = broken[step]
    chosen = [tuple(state["chosen"]) for state in data["states"]]
    assert 4 <= len(chosen) <= 40 and len(set(chosen)) == len(chosen)
    assert data["states"][0]["notices"] == [False] * 3 and not any(chosen[0])
    assert data["states"][0]["says"][2] == "Bert, probability 0.99"
    for line, shown in zip(lines.lines, data["lines"], strict=True):
        whole = [shown["before"] + text + shown["after"] for text in shown["texts"]]
        assert len(set(whole)) == len(line.texts), "two choices look alike"


@every_step
def test_a_choice_is_the_class_of_the_catalogue(step):
    right, *states = wrong_lines(step).states()
    x, outs = load_whiteboard(), []
    for name in BROKEN[step].split()[2:]:
        torch.manual_seed(123)
        planted = outcome(wrong_class(name), x)
        found = [state for state in states if same(outcome(state.cls, x), planted)]
        assert any(state.why for state in found), name
        outs.append(planted)
    assert not all(same(each, outcome(right.cls, x)) for each in outs)


def outcome(cls, x):
    torch.manual_seed(123)
    try:
        return cls(6, 6, 6, 0.0, 2)(x)
    except RuntimeError as error:
        return str(error)


def same(one, other):
    if isinstance(one, str) or isinstance(other, str):
        return one == other
    return one.shape == other.shape and torch.allclose(one, other, atol=1e-6, equal_nan=True)


def test_what_each_lamp_sees(broken):
    half = "scaled = masked.div_(self.d_out**0.5)"
    assert said(broken, "softmax", half)[0] == [False, True, False]
    lucky = "scaled = masked.div_(num_tokens**0.5)"  # 3, as head_dim is
    assert said(broken, "softmax", lucky)[0] == [False] * 3
    assert said(broken, "mask", "masked = scores")[0] == [False, True, True]
    notices, says = said(broken, "combine", "context = context.view(b, num_tokens, self.d_out)")
    assert notices == [True, None, True] and says[0].startswith("torch stops: view size")
    straight = "split = (b, self.num_heads, num_tokens, self.head_dim)"
    assert said(broken, "view", straight, "queries = queries.contiguous()")[0][0] is False

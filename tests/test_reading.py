"""What a notebook shows besides pictures: source code, short errors, tables."""

import json
import sys
import types

import torch
from torch import nn

from eleven_steps import errors
from eleven_steps.checks import check_attention
from eleven_steps.pictures import draw_source
from helpers.attention import MultiHeadAttention


def test_source_that_is_shown_still_runs():
    space = {"torch": torch, "check_input": lambda *_: None}
    exec(draw_source(MultiHeadAttention.forward).code, space)
    mha, x = MultiHeadAttention(4, 6, 5, 0.0, 2), torch.rand(2, 3, 4)
    assert torch.equal(space["forward"](mha, x), mha(x))


def frames(work):
    try:
        work()
    except Exception as error:
        shown = errors.shortened(error.__traceback__)
        found = []
        while shown:
            found.append(shown.tb_frame.f_code.co_filename)
            shown = shown.tb_next
        return found
    raise AssertionError("nothing was raised")


def test_errors_of_torch_and_of_the_course_end_at_the_line_that_caused_them():
    mha = MultiHeadAttention(4, 6, 5, 0.0, 2)
    for work in (lambda: mha(torch.rand(1, 7, 4)), lambda: nn.Linear(3, 4)(torch.rand(2, 5))):
        assert set(frames(work)) == {__file__}
    assert len(frames(lambda: json.loads("{"))) > 2, "others keep their frames"


def test_showing_errors_short_needs_a_notebook(monkeypatch):
    errors.show_short()  # outside of one nothing happens
    shell = types.SimpleNamespace(set_custom_exc=lambda kinds, show: calls.append((kinds, show)))
    calls = []
    monkeypatch.setattr(errors, "get_ipython", lambda: shell)
    errors.show_short()
    assert calls == [((Exception,), errors.show)]
    shell.showtraceback = lambda shown, tb_offset: calls.append(shown)
    try:
        torch.zeros(2) @ nn.Linear(3, 4)(torch.rand(2, 5))
    except RuntimeError as error:
        errors.show(shell, *sys.exc_info())
        assert calls[-1][1] is error


def test_a_class_in_which_nothing_is_written_is_not_called_wrong():
    class Untouched(nn.Module):
        def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
            super().__init__()
            ...

        def forward(self, x):
            return ...

    outcome = check_attention(Untouched)
    assert outcome.kind == "unfinished" and not outcome.passed
    assert "✗" not in outcome.display and "warn" not in outcome.display

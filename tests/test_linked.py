"""Code and map, linked: each line says what it reads and makes, and the page holds both."""

import pytest
import torch
from sizes import TELLING, build

from eleven_steps.pictures import steps_of
from eleven_steps.sliders.source import run_by_line, shown_code, tell
from helpers.attention import MultiHeadAttention
from helpers.trace import STEPS, trace

CODE = shown_code()
LINES = CODE.splitlines()
FROM = {3: [1, 2], 4: [3], 5: [4], 6: [1, 5], 7: [6], 8: [4, 7], 9: [8], 10: [1, 9], 11: [10]}


def told_at(size=(1, 3, 6, 6, 2)):
    return tell(run_by_line(CODE, *build(size)))


def said_of(told, start):
    (number,) = [number for number, line in enumerate(LINES, 1) if line.strip().startswith(start)]
    return told[f"line {number}"]


def test_the_code_that_is_shown_still_runs_and_has_no_docstring():
    assert '"""' not in CODE and CODE.startswith("def forward(self, x: torch.Tensor)")
    space = dict(MultiHeadAttention.forward.__globals__)
    exec(CODE, space)
    mha, x = build(TELLING)
    assert torch.equal(space["forward"](mha, x), mha(x))


def test_every_line_belongs_to_the_step_whose_number_stands_above_it():
    steps = steps_of(CODE)
    assert list(steps) == list(range(1, len(LINES) + 1))
    assert list(dict.fromkeys(steps.values())) == list(range(12))
    for step, name in enumerate(STEPS, 1):
        first = min(number for number, at in steps.items() if at == step)
        assert LINES[first - 1].strip() == f"# {step} {name}"


@pytest.mark.parametrize("size", [(1, 3, 6, 6, 2), TELLING], ids=str)
def test_a_step_makes_what_the_trace_holds(size):
    told = told_at(size)
    for step in trace(*build(size))[1:]:
        made = told[f"step {step.number}"]["words"][1].split(" → ")[1]
        held = [f"{name} {tuple(tensor.shape)}" for name, tensor in step.tensors.items()]
        assert made == ", ".join(held)
    b, num_tokens, *_ = size
    assert told["step 1"]["words"][1].endswith(f" → b = {b}, num_tokens = {num_tokens}")


def test_a_step_comes_from_those_whose_names_it_reads():
    told = told_at()
    assert {step: told[f"step {step}"]["from"] for step in FROM} == FROM
    assert told["step 1"]["from"] == [] and told["step 2"]["from"] == [1]
    for step in range(1, 12):
        goes = [other for other in range(1, 12) if step in told[f"step {other}"]["from"]]
        assert told[f"step {step}"]["to"] == goes


def test_a_line_says_what_it_reads_and_makes():
    told = told_at(TELLING)  # (b, num_tokens, d_in, d_out, num_heads) = (2, 7, 5, 12, 3)
    for start, words in {
        "scores =": [
            "Step 5, scores: from step 4, on to step 6.",
            "queries (2, 3, 7, 4), keys (2, 3, 7, 4) → scores (2, 3, 7, 7)",
        ],
        "values = values.transpose": [
            "Step 4, transpose: from step 3, on to step 8.",
            "values (2, 7, 3, 4) → values (2, 3, 7, 4)",
        ],
        "keys = self.W_key": [
            "Step 2, project: from step 1, on to step 3.",
            "self.W_key.weight (12, 5), x (2, 7, 5) → keys (2, 7, 12)",
        ],
        "split": [
            "Step 3, view: from step 1.",
            "b = 2, num_tokens = 7, self.num_heads = 3, self.head_dim = 4 → split = (2, 7, 3, 4)",
        ],
        "weights = self.dropout": [
            "Step 7, softmax: on to step 8.",
            "self.dropout.p = 0, weights (2, 3, 7, 7) → weights (2, 3, 7, 7)",
        ],
        "b, num_tokens": [
            "Step 1, shape: on to steps 3, 6 and 10.",
            "x (2, 7, 5) → b = 2, num_tokens = 7",
        ],
        "return": ["Step 11, out_proj.", "out (2, 7, 12) → what forward returns"],
    }.items():
        assert said_of(told, start)["words"] == words
    assert said_of(told, "check_input")["words"][1].endswith("→ nothing new")


def test_running_line_by_line_leaves_the_module_as_it_was():
    mha, x = build(TELLING)
    before = {name: each.clone() for name, each in mha.state_dict().items()}, x.clone()
    run_by_line(CODE, mha, x)
    assert all(torch.equal(before[0][name], each) for name, each in mha.state_dict().items())
    assert torch.equal(before[1], x)

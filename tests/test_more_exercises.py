"""Exercises of other kinds: to choose, to foresee, to put in order, to write a test."""

import re

import pytest
import renew
import torch
from test_exercises import tried
from torch import nn

from eleven_steps.checks import check_attention
from eleven_steps.checks.answers import check
from eleven_steps.checks.asking.cases import BIASED, TASK_CASES, close
from eleven_steps.checks.asking.questions import defined
from eleven_steps.checks.exercises import QUIZZES, RIGHT_CLASSES, source_of
from eleven_steps.checks.reference import run_reference
from helpers.attention import MultiHeadAttention

every = pytest.mark.parametrize
ORDER = "IGMDBPKOLAF"
FORWARD = QUIZZES["the_order.1"]


def test_the_numbers_are_true_and_what_is_usually_said_instead_is_a_slip():
    hidden, mha = MultiHeadAttention(6, 6, 6, 0.0, 1).mask, MultiHeadAttention(6, 8, 6, 0.0, 4)
    still = [h for h in (1, 2, 3, 4, 6, 12) if swapped(12, h).is_contiguous()]
    mixed = torch.softmax(torch.tensor([3.0, 1.0]).log(), 0) @ torch.tensor([[4.0, 0], [0, 8]])
    x, t = torch.zeros(2, 7, 5), torch.arange(12).view(3, 4)
    u, r, scores = t.transpose(0, 1), t.view(4, 3), torch.zeros(2, 3, 7, 7)
    said = {  # what is right, and what is usually said instead
        "foresee.1": [(~hidden).sum(), 36, hidden.sum()],
        "foresee.2": still,
        "foresee.3": [mha.out_proj.weight[0].numel(), mha.head_dim],
        "why.1": [mixed],
        "tensors.1": [each.shape for each in (
            x[:, None].sum(2), x[:, None], x[:, None].sum(1), x[:, None].sum(3), x.sum(1),
            x[None].sum(2))],
        "tensors.2": [(2, 3)],
        "tensors.3": [t / t.amax(-1, keepdim=True), t / t.max(), t / t.amax(0),
                      t / t.sum(1, keepdim=True)],
        "tensors.4": [(u[1, 2], *u.stride()), (t[1, 2], *u.stride()), (r[1, 2], *u.stride()),
                      (r[1, 2], *r.stride()), (t[1, 2], *t.stride())],
        "tensors.5": [scores.numel() / 49, scores.numel(), 49, *scores.shape[:2]],
    }  # fmt: skip
    assert {n for n in QUIZZES if n.startswith("tensors.")} <= said.keys()
    assert {check(name).kind for name in QUIZZES} == {"unfinished"}
    for name, (right, *wrong) in said.items():
        assert tried(name, right).passed, name
        assert {tried(name, answer).kind for answer in wrong} <= {"mistake"}, name


def swapped(d_out, num_heads):
    return torch.empty(1, num_heads, 3, d_out // num_heads).transpose(1, 2)


def asked_about(identifier):
    """The Markdown above an exercise: its numbers as texts, and its lines by letter."""

    for path in renew.COURSE.values():
        notebook = renew.read(path).cells
        for place, cell in enumerate(notebook):
            if f'check("{identifier}",' in cell.source:
                texts = [c.source for c in notebook[:place] if c.cell_type == "markdown"]
                text = texts[-1]
                numbers = re.search(r"```text\n(.+?)```", text, re.S)[1]
                return numbers, dict(re.findall(r"^- ([A-D]): `(.+)`$", text, re.M))
    raise AssertionError(identifier)


def test_what_is_to_be_explained_comes_of_one_line_alone():
    shown, lines = asked_about("find.1")
    numbers = torch.tensor([list(map(float, line.split())) for line in shown.strip().splitlines()])
    scope = {
        "torch": torch,
        "head_dim": 3,
        "masked": run_reference(TASK_CASES[0])["mask"]["masked"][0, 0],
    }
    made = {letter: eval(line, scope) for letter, line in lines.items()}
    alike = [letter for letter, each in made.items() if torch.allclose(each, numbers, atol=5e-4)]
    assert alike == [QUIZZES["find.1"].answer]
    shown, lines = asked_about("find.2")  # digits: head, token, feature
    heads, tokens, features = torch.arange(2), torch.arange(3), torch.arange(4)
    context = 100 * heads[:, None, None] + 10 * tokens[:, None] + features
    scope = {"context": context[None], "b": 1, "num_tokens": 3, "d_out": 8}
    made = {letter: eval(line, scope)[0, 0].tolist() for letter, line in lines.items()}
    alike = [letter for letter, row in made.items() if row == [*map(int, shown.split())]]
    assert alike == [QUIZZES["find.2"].answer] and len({*map(tuple, made.values())}) == 4


def forward(letters):
    """Run these lines as a forward on a scene's module and x."""
    body = "\n".join(f"    {FORWARD.lines[letter].code}" for letter in letters)
    exec(f"def forward(self, x):\n{body}", scope := {"torch": torch})
    return scope["forward"]


def test_every_wrong_line_is_its_mistake():
    for letter, line in FORWARD.lines.items():
        if line.mistake:
            order = [letter if FORWARD.lines[each].step == line.step else each for each in ORDER]
            if line.mistake == "view_straight":  # one line for steps 3 and 4
                order.remove("D")
            outcome = tried("the_order.1", "".join(order))
            assert outcome.mistake == line.mistake and line.code in outcome.message
            assert f"Place {line.step}, {letter}" in outcome.message
            if line.mistake == "not_contiguous":
                with pytest.raises(RuntimeError):
                    forward(order)(run_reference(BIASED).module, BIASED.x)
            else:
                wrong = run_reference(BIASED, line.mistake)["out_proj"]["out"]
                with torch.no_grad():
                    assert close(forward(order)(run_reference(BIASED).module, BIASED.x), wrong)


def test_the_notebook_shows_the_lines_that_are_judged():
    texts = [c.source for c in renew.read(renew.NOTEBOOKS / "12_the_class.ipynb").cells]
    lines = [f"{letter}  {line.code}" for letter, line in FORWARD.lines.items()]
    assert any("\n".join(lines) in text for text in texts)


def compare(cls):
    """Compare with torch's own function, on the class's own layers."""
    torch.manual_seed(123)
    mha, x = cls(5, 12, 9, 0.5, 3).eval(), torch.randn(2, 7, 5)
    layers = mha.W_query, mha.W_key, mha.W_value
    heads = [layer(x).unflatten(-1, (3, 4)).transpose(1, 2) for layer in layers]
    context = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
    expected = mha.out_proj(context.transpose(1, 2).flatten(2))
    return torch.allclose(mha(x), expected, atol=1e-5)


def shape_alone(cls):
    assert cls(5, 12, 9, 0.0, 3)(torch.randn(2, 7, 5)).shape == (2, 7, 12)


def future(cls):
    mha, x = cls(6, 6, 3, 0.0, 2), torch.randn(1, 3, 6)
    later = x.clone()
    later[0, 2] += 1
    assert torch.allclose(mha(later)[:, :2], mha(x)[:, :2], atol=1e-6)


def needs_a_mask(cls):
    assert compare(cls) and hasattr(cls(6, 6, 3, 0.0, 2), "mask")


@every("name", RIGHT_CLASSES)
def test_the_right_classes_are_right(name):
    assert check_attention(defined(source_of(name))).passed


def same_seed(cls):
    """Compare with the course's class, both drawn from one seed."""
    made = []
    for each in (cls, MultiHeadAttention):
        torch.manual_seed(1)
        made.append(each(5, 12, 9, 0.0, 3)(torch.ones(2, 7, 5)))
    return close(*made)


def test_the_classes_come_in_an_order_that_is_drawn_each_time():
    orders = []
    for _ in range(2):
        order = []
        tried("the_test.1", lambda cls, order=order: order.append(cls.forward.__code__.co_code))
        orders.append(order)
    assert orders[0] != orders[1] and sorted(orders[0]) == sorted(orders[1])

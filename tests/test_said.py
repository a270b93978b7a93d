"""What the check says to answers as learners type them, whole, and that nothing of it is false."""

# ruff: noqa: F401 - an answer may name what is imported
import itertools
import math
import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from said import answers, typed
from sampled import whole
from test_exercises import WRITE, Hostile, cells, run, tried
from test_more_exercises import compare, future, same_seed, shape_alone
from torch import nn
from torch.nn.functional import dropout
from torch.nn.functional import scaled_dot_product_attention as sdpa

from eleven_steps.beyond import variants
from eleven_steps.checks import check_attention, wrong_class
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import BIASED, MAIN, TASK_CASES
from eleven_steps.checks.run.copies import as_data
from helpers.attention import MultiHeadAttention

every = pytest.mark.parametrize
inf = math.inf

# What the answers may name; of a notebook's, so much is said: they are none of the function's own.
queries, head_dim, mha = torch.ones(1, 2, 3, 3), 3, MultiHeadAttention(6, 6, 6, 0.0, 2)

CLASS = """
class Mine(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.d_out = d_out
        self.num_heads, self.head_dim = num_heads, d_out // num_heads
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        b, num_tokens, d_in = x.shape
        # 1: ...
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        # 2: queries, keys, values
        split = b, num_tokens, self.num_heads, self.head_dim
        queries, keys, values = queries.view(split), keys.view(split), values.view(split)
        # 3: [queries, keys, values]
        queries, keys, values = (t.transpose(1, 2) for t in (queries, keys, values))
        # 4: queries, keys, values
        scores = queries @ keys.transpose(2, 3)
        # 5: scores
        masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)
        # 6: masked
        weights = self.dropout(torch.softmax(masked / self.head_dim**0.5, dim=-1))
        # 7: weights
        context = weights @ values
        # 8: context
        context = context.transpose(1, 2)
        # 9: context
        context = context.reshape(b, num_tokens, -1)
        # 10: context
        return self.out_proj(context)
"""


def edited(source, edits):
    for old, new in edits.items():
        assert old in source, old
        source = source.replace(old, new)
    return source


def grown(upto, edits=()):
    """A class that goes up to a step, with edits of its source."""
    source = re.sub(rf"# {upto}: (.*)\n[^$]*", r"return \1", CLASS)
    typed(edited(source, dict(edits)), scope := {"nn": nn, "torch": torch})
    return scope["Mine"]


def solved(edits):
    """The solution of fast.1 with edits of its source."""
    return run(edited(cells("fast.1")[1].source, edits))


def in_blocks(queries, keys, values, cut):
    token = torch.arange(queries.shape[-2])
    largest, total, context = torch.full_like(queries[..., :1], -inf), 0, 0
    for key in cut(token):
        scaled = queries @ keys[..., key, :].mT / keys.shape[-1] ** 0.5
        scaled = scaled.masked_fill(key > token[:, None], -inf)
        before, largest = largest, torch.maximum(largest, scaled.amax(-1, keepdim=True))
        shrink, powers = torch.exp(before - largest), torch.exp(scaled - largest)
        total = total * shrink + powers.sum(-1, keepdim=True)
        context = context * shrink + powers @ values[..., key, :]
    return context / total


def parts(contexts, out_proj):
    columns = out_proj.weight.chunk(len(contexts), dim=1)
    return [c @ each.T for c, each in zip(contexts, columns, strict=True)]


def logs(one, two):
    """The logarithm of the total of both blocks."""
    return torch.logaddexp(one[0] + one[1].log(), two[0] + two[1].log())


def merged(one, two):
    largest = torch.maximum(one[0], two[0])
    above = sum(c * torch.exp(m - largest) for m, _, c in (one, two))
    return above / sum(t * torch.exp(m - largest) for m, t, _ in (one, two))


def sunk(scaled, sinks):
    """Weights with the sinks' column."""
    column = sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
    return torch.cat([scaled, column], -1).softmax(-1)


def faded(table, decays):
    return table * torch.exp(-decays).view(-1, 1, 1)


def freed(hidden):
    return hidden & ~hidden.all(-1, keepdim=True)


def cut(mask, scores):
    return mask[: scores.shape[2], : scores.shape[3]]


def upper(scores, diagonal):
    return torch.ones_like(scores[0, 0]).triu(diagonal) > 0


def only(scores, mask, where):
    scores = scores.clone()
    scores[where] = scores[where].masked_fill(cut(mask, scores), -inf)
    return scores


def joined(context):
    return context.transpose(1, 2).flatten(2)


def window(num_tokens, size):
    far = np.arange(num_tokens)[:, None] - np.arange(num_tokens)
    return (far < 0) | (far >= size)


class Scores(nn.Module):
    """A function by another name."""

    def forward(self, queries, keys):
        return queries @ keys.mT


SCOPE = {**globals()}


def said(answer):
    identifier, _, source = answer.partition(" ")
    scope = dict(SCOPE)
    thing = typed(source, scope, "exec" if source.startswith("def ") else "eval")
    outcome = tried(identifier, scope["answer"] if source.startswith("def ") else thing)
    reached = f" after {outcome.reached}" * bool(outcome.reached)  # steps of a class
    return f"{outcome.mistake or outcome.kind}{reached}: {outcome.message}"


test_what_is_said_is_what_was_read = whole("answers", said, each=6)


@every("case", [MAIN, BIASED])
def test_the_sizes_of_a_message_can_be_told_apart(case):
    sizes = list(case.letters.values())
    assert len(set(sizes)) == len(sizes)
    assert not {1, 2, 3, 6} & {*sizes, case.d_in}
    assert case.d_in not in [a * b for a, b in itertools.combinations(sizes, 2)]


def sizes_of(given, name):
    """Every whole number that can be read off what a function gets or returns."""
    if isinstance(given, torch.Tensor):
        return {f"{name}, axis {axis}": size for axis, size in enumerate(given.shape)}
    if isinstance(given, list | tuple) and name.startswith("returned"):
        return {}
    if isinstance(given, list):
        return {f"how many {name}": len(given)} | sizes_of(given[0], name)
    if isinstance(given, tuple):
        return sizes_of(given[-1], name)
    return sizes_of(given.weight, name) if isinstance(given, nn.Module) else {name: given}


PAIRS = {"since.3"}  # where features go in pairs, which are always two


@every("identifier", WRITE)
def test_each_size_that_could_be_typed_differs_between_cases(identifier):
    task, found = TASKS[identifier], []
    for case in task.cases:
        scene = play(case)
        shown = [(f"argument {i}", each) for i, each in enumerate(task.gets(scene))]
        shown += [(f"returned {i}", each) for i, each in enumerate(task.answer(scene))]
        found.append({k: v for name, each in shown for k, v in sizes_of(each, name).items()})
    for name in found[0]:
        assert len({sizes[name] for sizes in found}) > 1 or found[0][name] == 1, name
    for one, other in itertools.permutations(found[0], 2):
        if identifier not in PAIRS and all(sizes[other] for sizes in found):
            shares = {sizes[one] / sizes[other] for sizes in found}
            assert len(shares) > 1 or max(shares) <= 1, f"{one} by {other}"


class Broken(nn.Module):
    def __init__(self, *sizes, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(*sizes[:2])


def slipping(*arguments, **options):
    raise RuntimeError("a slip of ours")


PLACES_OF_SLIPS = {
    "functions._spoken_of": lambda: tried("scores.1", lambda q, k: q),
    "written.judge_value": lambda: tried("scores.2", 43),
    "written._judge_paper": lambda: tried("by_hand.2", {}),
    "in_progress._first_finding": lambda: tried("your_class.1", Broken),
    "constructor._lost": lambda: check_attention(Broken),
    "classes.outcome_of": lambda: check_attention(wrong_class("no_mask")),
}


@every("place", PLACES_OF_SLIPS)
def test_a_slip_of_ours_is_no_verdict(place, monkeypatch):
    judged = PLACES_OF_SLIPS[place]
    monkeypatch.setattr(f"eleven_steps.checks.judge.{place}", slipping)
    with pytest.raises(RuntimeError, match="a slip of ours"):
        judged()
    monkeypatch.delenv("ELEVEN_STEPS_STRICT")
    outcome = judged()
    seen = outcome.kind, outcome.passed, outcome.mistakes, outcome.step
    assert seen == ("failed", False, (), None)
    assert outcome.message == (
        "the check itself failed, with RuntimeError: a slip of ours. That says nothing of your "
        "answer."
    )


def test_what_an_answer_prints_is_shown_and_is_short():
    def scores_of(queries, keys):
        print("<b>", queries.shape, "x" * 5000)
        return queries @ keys.mT

    outcome = tried("scores.1", scores_of)
    assert outcome.passed and outcome.printed.startswith("<b> torch.Size([1, 2, 3, 3])")
    assert len(outcome.printed) == 1000 and "It printed:" in str(outcome)
    assert "&lt;b&gt;" in outcome.display and "<b>" not in outcome.display


def test_the_lines_beside_a_message_make_what_it_speaks_of():
    def scores_of(queries, keys):
        return queries @ keys[0].mT

    outcome = tried("scores.1", scores_of)
    *before, last = outcome.cell.splitlines()
    exec("\n".join(before), scope := {"torch": torch, "scores_of": scores_of})
    number = eval(last, scope)[1, 0, 0, 0]
    assert f"scores[1, 0, 0, 0] is {number:.4f}, and" in outcome.message
    assert "right on the whiteboard, but not everywhere" in outcome.message


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        raise AssertionError("it was asked")


def test_what_comes_back_is_a_plain_copy():
    tensor = torch.tensor([1.0, torch.nan], requires_grad=True)
    kept = as_data({"a": [tensor, (np.int64(3), ...)], "b": np.ones(2)})
    assert type(kept["a"][0]) is torch.Tensor and not kept["a"][0].requires_grad
    assert kept["a"][0].data_ptr() != tensor.data_ptr() and kept["a"][1] == (3, ...)
    assert kept["b"].tolist() == [1.0, 1.0]
    conjugate = as_data(torch.tensor([1j]).conj())
    assert not conjugate.is_conj() and conjugate.item() == -1j
    assert as_data(torch.zeros(2, 3).T).stride() == (1, 3)
    huge = as_data(torch.zeros(1).expand(10**12))
    assert huge.is_meta and huge.shape == (10**12,)
    deep = []
    for _ in range(30):
        deep = [deep]
    assert str(as_data(deep)).count("[") <= 10


def test_of_what_is_not_plain_the_name_is_kept():
    for value, name in (
        (torch.zeros(2).as_subclass(Liar), "Liar"),
        (type("Many", (int,), {})(3), "Many"),
        (type("Rows", (list,), {})([1]), "Rows"),
        ({1, 2}, "set"),
        (np.array([object()]), "ndarray"),
        (torch.zeros(2).to_sparse(), "torch.sparse_coo tensor on cpu"),
        (torch.zeros(2, device="meta"), "torch.strided tensor on meta"),
        ([[0]] * 2000, "list"),
    ):
        kept = as_data(value)
        assert type(kept).__name__ == name and not vars(kept)

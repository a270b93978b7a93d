"""What the exercises once took for right and was wrong is refused, and the other way round."""

import itertools
import json
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
import torch
from torch import nn

from eleven_steps.checks import check
from eleven_steps.checks.know.exercises.kinds import Write
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import TASK_CASES
from eleven_steps.checks.run.plain import plain
from helpers.attention import MultiHeadAttention

WRITE = [name for name, task in TASKS.items() if isinstance(task, Write)]
every, sdpa = pytest.mark.parametrize, nn.functional.scaled_dot_product_attention


def in_blocks(queries, keys, values, cut):
    token = torch.arange(queries.shape[-2])
    largest, total, context = torch.full_like(queries[..., :1], -torch.inf), 0, 0
    for key in cut(token):
        scaled = queries @ keys[..., key, :].mT / keys.shape[-1] ** 0.5
        scaled = scaled.masked_fill(key > token[:, None], -torch.inf)
        before, largest = largest, torch.maximum(largest, scaled.amax(-1, keepdim=True))
        shrink, powers = torch.exp(before - largest), torch.exp(scaled - largest)
        total = total * shrink + powers.sum(-1, keepdim=True)
        context = context * shrink + powers @ values[..., key, :]
    return context / total


def best(rates, future, top_keys):
    found = rates.masked_fill(future, -torch.inf).topk(min(3, rates.shape[-1]), -1).indices
    return future | torch.ones_like(rates, dtype=torch.bool).scatter(-1, found, False)


def window(num_tokens, size):
    far = np.arange(num_tokens)[:, None] - np.arange(num_tokens)
    return (far < 0) | (far >= size)


def after(table, query, key, value, decays):
    return table * torch.exp(-decays).view(-1, 1, 1) + key.mT @ value


TEXT = "this is a text: a number stands without quotation marks."
THREE = "`return queries, keys, values`, all of them, is expected."
BOTH = "`return table, context`, all of them, is expected."
SIZE = (
    "The context is right, but `size` has no part in how it is made. Read the keys in blocks of "
    "`size`, as `token.split(size)` cuts them."
)
NINE = (
    "right at 6 tokens and 4 heads of 4 features, but not everywhere: `keys` has shape "
    "(3, 6, 11, 4) with b = 3, num_tokens = 11, d_in = 8, d_out = 36, num_heads = 9: "
    "(b, num_heads, num_tokens, head_dim) = (3, 9, 11, 4) is expected...."
)
LARGE = "with b = 4, num_tokens = 17, d_in = 20, d_out = 72, num_heads = 12"

# Where the rest of a message is the judge's own, its beginning stands here, up to "...".
REFUSED = [
    ("shape.2", "64", f"one number is expected; {TEXT}"),
    ("shape.2", "64 features", f"one number is expected; {TEXT}"),
    ("combine.2", "123456", f"a row of 6 numbers is expected; {TEXT}"),
    (
        "project.1",
        lambda x, *layers: (layer(x) for layer in layers),
        f"your function returns one thing of type generator: {THREE}",
    ),
    (
        "project.1",
        lambda x, *layers: torch.stack([layer(x) for layer in layers]),
        f"your function returns one tensor (3, 1, 3, 6): {THREE}",
    ),
    (
        "transpose.1",
        lambda q: q.numpy().transpose(0, 2, 1, 3),
        "`queries` is of type ndarray: a tensor (b, num_heads, num_tokens, head_dim) is expected.",
    ),
    (
        "scores.1",
        lambda q, k: (q @ k.mT).tolist(),
        "`scores` is a list with a list in it: a tensor (b, num_heads, num_tokens, num_tokens) "
        "is expected.",
    ),
    (
        "since.6",
        window,
        "`mask` is of type ndarray: a tensor (num_tokens, num_tokens) is expected.",
    ),
    ("fast.1", lambda q, k, v, size: sdpa(q, k, v, is_causal=True), SIZE),
    ("fast.1", lambda q, k, v, size: in_blocks(q, k, v, lambda token: token.split(2)), SIZE),
    ("fast.1", lambda q, k, v, size: in_blocks(q, k, v, lambda token: token.chunk(3)), SIZE),
    ("since.1", lambda k, h: k.repeat_interleave(2, dim=1), NINE),
    ("since.1", lambda k, h: k[:, :, None].expand(-1, -1, 2, -1, -1).flatten(1, 2), NINE),
    (
        "since.1",
        lambda k, h: torch.repeat_interleave(k, h // k.shape[1], dim=1),
        "The keys are right. Now make them without `repeat_interleave`: give the keys a new axis "
        "with `keys[:, :, None]`, stretch it with `expand`, and join it with the heads.",
    ),
    ("since.13", best, "right at 6 tokens and 4 heads of 4 features, but not everywhere: ..."),
    (
        "transpose.1",
        lambda q: torch.stack([q[:, :, h] for h in range(min(3, q.shape[2]))], 1),
        f"right on the whiteboard, but not everywhere: `queries` has shape (4, 3, 17, 6) {LARGE}: "
        "(b, num_heads, num_tokens, head_dim) = (4, 12, 17, 6) is expected....",
    ),
    (
        "scores.1",
        lambda q, k: q[:, :, :8] @ k[:, :, :8].mT,
        f"right on the whiteboard, but not everywhere: `scores` has shape (4, 12, 8, 8) {LARGE}: "
        "(b, num_heads, num_tokens, num_tokens) = (4, 12, 17, 17) is expected....",
    ),
    (
        "combine.1",
        lambda c: torch.cat([c[:, :, h] for h in range(min(3, c.shape[2]))], -1),
        f"right on the whiteboard, but not everywhere: `context` has shape (4, 17, 18) {LARGE}: "
        "(b, num_tokens, d_out) = (4, 17, 72) is expected....",
    ),
    (
        "since.14",
        lambda *a: a[1] @ after(*a),
        f"your function returns one tensor (2, 4, 1, 4): {BOTH}",
    ),
    ("since.14", after, f"your function returns one tensor (2, 4, 4, 4): {BOTH}"),
    (
        "by_hand.1",
        {"W_q": "d d", "Q": ("B", "n", "d")},
        'right: W_q. `Q`: a shape in letters, such as "B n d", is expected; this is a tuple with '
        "a str in it.",
    ),
]  # fmt: skip


class Billion(MultiHeadAttention):
    """It hides with a number, as mask.1 does not let pass."""

    def forward(self, x):
        b, num_tokens, _ = x.shape
        heads = b, num_tokens, self.num_heads, self.head_dim
        layers = self.W_query, self.W_key, self.W_value
        queries, keys, values = (layer(x).view(heads).transpose(1, 2) for layer in layers)
        masked = (queries @ keys.mT).masked_fill(self.mask[:num_tokens, :num_tokens], -1e9)
        weights = self.dropout(torch.softmax(masked / self.head_dim**0.5, dim=-1))
        return self.out_proj((weights @ values).transpose(1, 2).flatten(2))


def test_a_number_that_hides_is_refused_in_a_function_and_in_a_class():
    finite = (
        "`-inf` hides whatever the scores and the dtype are; a number such as -1e9 hides only "
        "where every score is far above it."
    )
    said = check("your_class.1", Billion, record=False)
    assert (said.kind, said.step, said.reached) == ("value", 6, 5)
    assert said.message == f"step 6: Hidden scores hold -1e+09. {finite}"
    said = check("mask.1", lambda s, m: s.masked_fill(m[: len(s[0, 0]), : len(s[0, 0])], -1e9))
    assert said.message == (
        "`masked` holds other numbers on the whiteboard: masked[0, 0, 0, 1] is -1000000000.0000, "
        f"and -inf is expected. Only hidden scores differ: they hold -1e+09. {finite}"
    )


@every(("identifier", "answer", "message"), REFUSED)
def test_what_is_wrong_is_refused(identifier, answer, message):
    said = check(identifier, answer, record=False)
    beginning = len(message) - 3 if message.endswith("...") else None
    assert not said.passed and said.message[:beginning] == message[:beginning]


class Scores(nn.Module):
    """A function by another name."""

    def forward(self, queries, keys):
        return queries @ keys.mT


@every(
    ("identifier", "answer"),
    [
        ("foresee.3", Fraction(8)),
        ("foresee.3", Decimal(8)),
        ("softmax.2", Fraction(768, 96)),
        ("tensors.4", (9, (1, 4))),
        ("scores.1", Scores()),
        ("fast.1", lambda q, k, v, size: in_blocks(q, k, v, lambda token: token.split(size))),
        ("by_hand.1", {"Q": "Bnd"}),
    ],
)
def test_what_is_right_passes(identifier, answer):
    assert check(identifier, answer, record=False).kind in ("right", "so far")


# The rule: what an answer could have typed is another number elsewhere


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
        every = [(f"argument {i}", each) for i, each in enumerate(task.gets(scene))]
        every += [(f"returned {i}", each) for i, each in enumerate(task.answer(scene))]
        found.append({k: v for name, each in every for k, v in sizes_of(each, name).items()})
    for name in found[0]:
        assert len({sizes[name] for sizes in found}) > 1 or found[0][name] == 1, name
    for one, other in itertools.permutations(found[0], 2):
        if identifier not in PAIRS and all(sizes[other] for sizes in found):
            shares = {sizes[one] / sizes[other] for sizes in found}
            assert len(shares) > 1 or max(shares) <= 1, f"{one} by {other}"


def test_one_case_is_larger_than_every_example():
    *shown, last = (case.letters for case in TASK_CASES)
    assert all(last[name] > max(case[name] for case in shown) for name in last)


# What comes back is looked at without running any of it


class Liar(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        raise AssertionError("it was asked")


def test_what_comes_back_is_a_plain_copy():
    tensor = torch.tensor([1.0, torch.nan], requires_grad=True)
    kept = plain({"a": [tensor, (np.int64(3), ...)], "b": np.ones(2)})
    assert type(kept["a"][0]) is torch.Tensor and not kept["a"][0].requires_grad
    assert kept["a"][0].data_ptr() != tensor.data_ptr() and kept["a"][1] == (3, ...)
    assert kept["b"].tolist() == [1.0, 1.0]
    conjugate = plain(torch.tensor([1j]).conj())
    assert not conjugate.is_conj() and conjugate.item() == -1j
    strided = plain(torch.zeros(2, 3).T)
    assert strided.stride() == (1, 3)


@every(
    ("value", "name"),
    [
        (torch.zeros(2).as_subclass(Liar), "Liar"),
        (type("Many", (int,), {})(3), "Many"),
        (type("Rows", (list,), {})([1]), "Rows"),
        ({1, 2}, "set"),
        (np.array([object()]), "ndarray"),
        (torch.zeros(2).to_sparse(), "torch.sparse_coo tensor on cpu"),
        (torch.zeros(2, device="meta"), "torch.strided tensor on meta"),
        ([[0]] * 2000, "list"),
    ],
)
def test_of_what_is_not_plain_the_name_is_kept(value, name):
    kept = plain(value)
    assert type(kept).__name__ == name and not vars(kept)


def test_a_huge_tensor_is_its_shape():
    kept = plain(torch.zeros(1).expand(10**12))
    assert kept.is_meta and kept.shape == (10**12,)
    deep = []
    for _ in range(30):
        deep = [deep]
    assert json.dumps(str(plain(deep))).count("[") <= 10

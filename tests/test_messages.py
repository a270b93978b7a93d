"""No message says what was not established; what was is said in one sentence."""

import itertools
import linecache
import math
import re

import pytest
import torch
from test_exercises import CLASS, EXPLAIN, Hostile, cut, grown, tried
from torch import nn
from torch.nn.functional import dropout

from eleven_steps.checks import check, check_attention
from eleven_steps.checks.know.exercises.paper import papers
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.checks.run.cases import BIASED, MAIN
from helpers.attention import MultiHeadAttention

every = pytest.mark.parametrize
INF = math.inf  # a name of the notebook that is no size
NOTHING = "returns nothing: end it with `return`"
HEADS = "self.num_heads, self.head_dim = num_heads, d_out // num_heads"
MASK = 'self.register_buffer("mask", '


@every("identifier", ["shape.1", "scores.1", "transpose.3", "since.7"])
def test_a_function_without_return_returns_nothing(identifier):
    outcome = tried(identifier, lambda *arguments: None)
    assert outcome.message == f"your function {NOTHING}."


def test_a_class_without_return_returns_nothing():
    outcome = grown(11, ("return self.out_proj(context)", "self.out_proj(context)"))
    assert outcome.kind == "type"
    assert outcome.message.startswith(f"your forward {NOTHING}.")
    assert "right up to step 11" in outcome.message


@every(
    ("old", "new", "said"),
    [
        ("self.out_proj = nn.Linear(d_out, d_out)", "", "out_proj"),
        (re.search(r"self\.register_buffer.*", CLASS)[0], "", "mask"),
        ("self.dropout = nn.Dropout(dropout)", "", "dropout"),
        (HEADS, "self.num_heads = num_heads", "head_dim"),
        ("self.d_out = d_out", "", "d_out"),
        (HEADS, HEADS.replace("//", "/"), "a float"),
        (HEADS, HEADS.replace("d_out //", "d_in //"), "head_dim"),
        (HEADS, HEADS.replace("d_out // num_heads", "d_out"), "head_dim"),
        (MASK, "self.mask = (", "register_buffer"),
        (MASK, "self.mask = (lambda m: nn.Parameter(m.float()))(", "parameter"),
        ("self.dropout = nn.Dropout(dropout)", "self.dropout = dropout", "is a number"),
        (
            "self.dropout = nn.Dropout(dropout)",
            "self.dropout = nn.Dropout",
            "a class that is never",
        ),
    ],
)
def test_a_constructor_is_right_when_nothing_is_missing_and_nothing_is_wrong(old, new, said):
    outcome = grown(1, (old, new))
    assert "constructor is right" not in outcome.message and "Next is" not in outcome.message
    assert said in outcome.message and not outcome.passed, outcome


@every("upto", [7, 8, 11])
@every(
    ("new", "mistake"),
    [
        ("torch.softmax(masked / self.head_dim**0.5, dim=-1)", "dropout_missing"),
        ("torch.softmax(self.dropout(masked) / self.head_dim**0.5, dim=-1)", "dropout_on_scores"),
    ],
)
def test_step_7_is_not_right_without_its_dropout(upto, new, mistake):
    old = "self.dropout(torch.softmax(masked / self.head_dim**0.5, dim=-1))"
    outcome = grown(upto, (old, new))
    assert "are right" not in outcome.message and not outcome.passed, outcome
    assert outcome.mistake == mistake or upto == 8, outcome


@every(
    ("old", "new", "step"),
    [
        ("context = context.reshape(b, num_tokens, -1)", "context.view(b, num_tokens, -1)", 10),
        ("scores = queries @", "values = keys.view(split); scores = queries @", 3),
    ],
)
def test_a_view_that_raises_is_of_the_step_of_its_line(old, new, step):
    outcome = grown(11, (old, new))
    assert outcome.step == step, outcome
    assert (outcome.mistake == "not_contiguous") == (step == 10), outcome


def test_b_and_num_tokens_that_have_changed_places_are_said_so():
    outcome = grown(11, ("b, num_tokens, d_in = x", "num_tokens, b, d_in = x"))
    assert outcome.mistake == "sizes_swapped" and outcome.step == 1, outcome


def d_in_for_head_dim(x, d_out, num_heads):
    b, num_tokens, head_dim = x.shape
    return b, num_tokens, head_dim


def half_of_head_dim(masked, head_dim):
    return torch.softmax(masked / head_dim**1 / 2, dim=-1)


def topk_of_more(rates, future, top_keys):
    best = rates.masked_fill(future, -INF).topk(top_keys, dim=-1).indices
    return future | torch.ones_like(rates, dtype=torch.bool).scatter(-1, best, False)


def faded(table, decays):
    return table * torch.exp(-decays).view(-1, 1, 1)


def asks(query, table):
    return query @ table, table


def typed_heads(queries, num_heads):
    b, num_tokens, d_out = queries.shape
    return queries.view(b, num_tokens, 2, -1)


def dropped(queries, num_heads):
    queries.view(*queries.shape[:2], num_heads, -1)
    return queries


def features_with_features(queries, keys):
    return queries.transpose(2, 3) @ keys


def keys_of_queries(queries, keys, values):
    return queries.transpose(1, 2), queries, values.transpose(1, 2)


def half_biased(x, W_query, W_key, W_value):
    return W_query(x), x @ W_key.weight.T, W_value(x)


def forgotten(context, out_proj):
    out_proj(context)
    return context


FALSE = [
    ("shape.1", d_in_for_head_dim, "d_in where head_dim belongs", "constructor"),
    ("softmax.1", lambda m, d: (m / 3**0.5).softmax(-1), "3 is typed in", "root of num_heads"),
    ("softmax.1", lambda m, d: dropout((m / d**0.5).softmax(-1)), "by chance", "sums to"),
    ("project.1", lambda x, q, *kv: (nn.Linear(*q.weight.T.shape)(x), *kv), "by chance", "shape"),
    ("since.11", lambda past, tokens: torch.ones(tokens, past + tokens), "torch.bool", "input"),
    (
        "context.1",
        lambda w, v: v,
        "`context` is the `values` that your function was given",
        "transposed",
    ),
    ("transpose.3", keys_of_queries, "`keys` is the `queries` that your", "comes back"),
    ("softmax.1", lambda m, d: (m // d**0.5).softmax(-1), "`//` and `%` do", "dim"),
    ("softmax.1", lambda m, d: (m * d**0.5).softmax(1), "along dim=1", "//"),
    ("project.3", lambda x, k: k(x).mT, "after `.permute(0, 2, 1)`", "W_key.weight @"),
    ("since.13", topk_of_more, "take `min(top_keys, num_tokens)`", "on the whiteboard"),
    (
        "since.14",
        lambda t, q, k, v, d: asks(q, faded(t, d) + k.mT @ v),
        "in another order",
        "shape",
    ),
    ("project.1", half_biased, "`keys` holds", "No bias is added"),
    ("project.1", half_biased, "Every row is off by the same numbers, as by a bias", "queries"),
    ("project.3", lambda x, k: x @ k.weight.T, "No bias is added", "W_query"),
    ("out_proj.3", lambda c, o: o(c) + o.bias, "The bias is added twice", "never"),
    ("out_proj.3", forgotten, "The result of `out_proj` is dropped", "never applied"),
    ("mask.1", lambda s, m: s.masked_fill(cut(m, s), -INF).softmax(-1), "sum to 1", "hidden"),
    ("many.1", lambda k, o: 5, "takes 2 positional arguments but 4 were given", "Here"),
    ("mask.1", lambda s, m: (s,), "a tuple with one tensor in it", "type tuple"),
    ("view.1", lambda q, h: q.chunk(h, -1), "is a tuple of 2 tensors of shape (1, 3, 3):", "axes"),
    ("combine.1", lambda c: c.unbind(2), "is a tuple of 2 tensors of shape (1, 3, 3):", "permute"),
    ("mask.1", lambda s, m: s.to("meta"), "torch.strided tensor on meta", "shape"),
    ("mask.1", lambda s, m: s.to_sparse(), "torch.sparse_coo tensor on cpu", "shape"),
    ("mask.1", lambda s, m: [Hostile(), s], "a list with a Hostile in it", "raises"),
    ("view.1", lambda q, h: iter(int, 1), "of type callable_iterator", "no end"),
    ("softmax.1", half_of_head_dim, "head_dim", "num_heads"),
    ("view.1", typed_heads, "2 is typed in where num_heads", "raises"),
    ("view.3", lambda v, h: v.view(*v.shape[:2], 3, -1), "", "still does what it did"),
    (
        "scores.1",
        lambda q, k: q @ k.contiguous().view(*k.shape[:2], k.shape[3], k.shape[2]),
        "view",
        "as they are",
    ),
    ("scores.1", features_with_features, "features meet features", "square root"),
    ("transpose.1", lambda q: q.transpose(1, 3), "dims 1 and 3", "other numbers"),
    (
        "mask.1",
        lambda s, m: s.masked_fill(m[: s.shape[2], : s.shape[2]], -1e9),
        "-1e+09",
        "softmax",
    ),
    ("reformat.1", lambda c: c.reshape(c.shape[0], c.shape[2], c.shape[1], -1), "`view`", "raises"),
    ("view.1", dropped, "The result of `view` is dropped", "constructor"),
    (
        "mask.1",
        lambda s, m: s.masked_fill(m[-s.shape[2] :, : s.shape[2]], -INF),
        "last rows",
        "INF",
    ),
    ("context.1", lambda w, v: w * v, "element by element", "other numbers"),
]


@every(
    ("identifier", "answer", "said"),
    [
        ("tensors.4", ((9, 1, 4),) * 2, "this is a tuple with a tuple in it."),
        ("tensors.4", [9, "1", 4], "this is a list with a str in it."),
        ("tensors.4", [9, 1], "this is a row of 2 numbers."),
        ("tensors.4", [9], "this is a row of 1 number."),
        ("scores.2", torch.zeros(2, 3), "one number is expected; this is a 2 x 3 matrix."),
        (
            "by_hand.3",
            {"Q": [[4, 0], [1]]},
            "2 x 2 matrix is expected; this is a list of rows of 2 and 1 numbers.",
        ),
        ("by_hand.3", {"Q": [[4, 0], [1, None]]}, "not answered yet."),
        ("by_hand.3", {"Q": [4, 0, 1, 1]}, "this is a row of 4 numbers."),
        ("by_hand.3", {"Q": [[[4, 0], [1, 1]]] * 2}, "this is of shape (2, 2, 2)."),
        ("by_hand.7", {"mha": [1]}, "a MultiHeadAttention is expected; this is a list."),
        ("find.1", ["B", 2], "one letter is expected; this is a list with a str in it."),
        ("the_order.1", "I, G M ? D", "place 4, ?: there is no such line; they are A to Q."),
        ("the_order.1", "I_G", "place 2, _: there is no such line"),
    ],
)
def test_what_came_is_said_beside_what_is_expected(identifier, answer, said):
    outcome = tried(identifier, answer)
    assert not outcome.passed and said in outcome.message, outcome


@every(("identifier", "answer", "said", "unsaid"), FALSE)
def test_the_message_says_what_is_so(identifier, answer, said, unsaid):
    outcome = tried(identifier, answer)
    assert not outcome.passed
    assert said in outcome.message and unsaid not in outcome.message, outcome


def test_scores_of_viewed_keys_are_named_where_the_view_raises():
    outcome = tried("scores.1", lambda q, k: q @ k.view(*k.shape[:2], k.shape[3], k.shape[2]))
    assert not outcome.passed and "as they are" not in outcome.message, outcome


NOTEBOOK = {
    "torch": torch,
    "queries": torch.ones(1, 2, 3, 3),
    "mha": MultiHeadAttention(6, 6, 6, 0.0, 2),
    "head_dim": 3,
}


@every(
    ("identifier", "name", "source"),
    [
        ("scores.1", "queries", "lambda q, keys: queries @ keys.transpose(2, 3)"),
        ("project.3", "mha", "lambda x, W_key: mha.W_key(x)"),
        ("softmax.1", "head_dim", "lambda masked, d: (masked / head_dim**0.5).softmax(-1)"),
    ],
)
def test_a_name_of_the_notebook_is_named(identifier, name, source):
    linecache.cache[name] = len(source), None, [source], name  # as IPython keeps a cell
    outcome = tried(identifier, eval(compile(source, name, "eval"), dict(NOTEBOOK)))
    assert f"`{name}` of the notebook" in outcome.message, outcome
    assert "other numbers" not in outcome.message


def test_several_results_come_in_a_tuple_or_a_list():
    assert tried("shape.1", lambda x, d, h: torch.Size([*x.shape[:2], d // h])).passed
    assert tried("transpose.3", lambda *three: [each.transpose(1, 2) for each in three]).passed


@every("identifier", EXPLAIN)
def test_a_number_is_not_answered_with_advice_on_code(identifier):
    task = TASKS[identifier]
    for number in (*task.slips, -1):
        told = tried(identifier, number).message
        assert not re.search(r"[Ll]ook at the|`return|`out_proj|the line before", told), told


@every("case", [MAIN, BIASED])
def test_the_sizes_of_a_message_can_be_told_apart(case):
    sizes = list(case.letters.values())
    assert len(set(sizes)) == len(sizes)
    assert not {1, 2, 3, 6} & {*sizes, case.d_in}
    assert case.d_in not in [a * b for a, b in itertools.combinations(sizes, 2)]


def given(identifier):
    return {name: each.double() for name, each in papers()[identifier].given.items()}


def one_head(q_k=lambda q, k: q @ k.mT, values=lambda v: v, last=lambda w: w):
    """by_hand.3 with one slip made everywhere."""
    made, right = given("by_hand.3"), papers()["by_hand.3"].right
    right = {name: each.double() for name, each in right.items()}
    scores = q_k(right["Q"], right["K"])
    scaled = scores / 2**0.5
    weights = scaled.softmax(-1)
    H = weights @ values(right["V"])
    return {name: right[name] for name in "QKV"} | {
        "scores": scores,
        "scaled": scaled,
        "weights": weights,
        "H": H,
        "Y": H @ last(made["W_o"]),
        "score": q_k(made["Q2"], made["K2"])[0, 1],
        "y": (made["weights2"] @ values(made["V2"]) @ last(made["W_o2"]))[0, 1],
    }


def turned(matrix):
    return matrix.mT


@every(
    "slip",
    [
        {"q_k": lambda q, k: q @ k},
        {"q_k": lambda q, k: k @ q.mT},
        {"values": turned},
        {"last": turned},
        {"values": turned, "last": turned},
    ],
)
def test_a_slip_that_the_sheets_own_matrices_hide_is_found(slip):
    assert tried("by_hand.3", {n: float(v) if v.dim() == 0 else v for n, v in one_head().items()})
    outcome = check("by_hand.3", one_head(**slip), record=False)
    assert not outcome.passed and outcome.kind == "mistake", outcome


def test_a_turned_W_o_is_found_in_two_heads_too():
    made, right = given("by_hand.5"), dict(papers()["by_hand.5"].right)
    H = torch.hstack([made["H0"], made["H1"]])
    for W_o, W_o2, passed in (
        (made["W_o"], made["W_o2"], True),
        (made["W_o"].T, made["W_o2"].T, False),
    ):
        answer = right | {"Y": H @ W_o, "y": (H @ W_o2)[0, 3]}
        assert tried("by_hand.5", answer).passed is passed


@every(
    ("meant", "typed"),
    [
        ("scores.1", "score.1"),
        ("softmax.2", "Softmax.2"),
        ("by_hand.3", "byhand3"),
        ("practice.shapes.1", "practice.shapes"),
        ("practice.multi_head.1", "practice.multi-head.x"),
    ],
)
def test_the_nearest_exercise_is_suggested(meant, typed):
    outcome = check(typed, 1)
    assert outcome.kind == "unknown" and f"Do you mean '{meant}'?" in outcome.message
    assert len(outcome.message) < 100


# A slip of ours


class Broken(nn.Module):
    def __init__(self, *sizes, qkv_bias=False):
        super().__init__()
        self.W_query = nn.Linear(*sizes[:2])


def slipping(*arguments, **options):
    raise RuntimeError("a slip of ours")


PLACES_OF_SLIPS = [
    ("eleven_steps.checks.judge.functions._spoken_of", lambda: tried("scores.1", lambda q, k: q)),
    ("eleven_steps.checks.judge.written.judge_value", lambda: tried("scores.2", 43)),
    ("eleven_steps.checks.judge.written._judge_paper", lambda: tried("by_hand.2", {})),
    ("eleven_steps.checks.judge.growing.constructed", lambda: tried("your_class.1", Broken)),
    ("eleven_steps.checks.judge.constructor._lost", lambda: check_attention(Broken)),
    ("eleven_steps.checks.judge.classes.verdict", lambda: check_attention(MultiHeadAttention)),
]


@every(("place", "judged"), PLACES_OF_SLIPS, ids=[place for place, _ in PLACES_OF_SLIPS])
def test_a_slip_of_ours_is_no_verdict(place, judged, monkeypatch):
    monkeypatch.setattr(place, slipping)
    with pytest.raises(RuntimeError, match="a slip of ours"):
        judged()
    monkeypatch.delenv("ELEVEN_STEPS_STRICT")
    outcome = judged()
    assert (outcome.kind, outcome.passed, outcome.mistakes, outcome.step) == (
        "failed",
        False,
        (),
        None,
    )
    assert outcome.message == (
        "the check itself failed, with RuntimeError: a slip of ours. That says nothing of your "
        "answer."
    )


# What is shown beside a message


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
    scope = {"torch": torch, "scores_of": scores_of}
    *before, last = outcome.cell.splitlines()
    exec("\n".join(before), scope)
    number = eval(last, scope)[1, 0, 0, 0]
    assert f"scores[1, 0, 0, 0] is {number:.4f}, and" in outcome.message
    assert "right on the whiteboard, but not everywhere" in outcome.message


def test_a_test_that_asks_the_check_is_no_test():
    def test(cls):
        from eleven_steps.checks import check_attention

        return check_attention(cls)

    assert "find out by itself" in tried("the_test.1", test).message


@every(
    ("identifier", "answer", "said"),
    [
        ("context.1", lambda w, v: (w @ v) * w.shape[-1], "Every number is 3 times"),
        ("softmax.1", lambda m, d: (m / d**0.5).softmax(-1).round(decimals=3), "rounded to 3"),
        ("scores.1", lambda q, k: 2 * q @ q.mT, "`keys` plays no part in it"),
        ("scores.1", lambda q, k: k.mT @ q, "It is `keys.transpose(-2, -1) @ queries`"),
        ("combine.1", lambda c: c.flatten(1), "only the shape is another"),
        ("transpose.1", lambda q: q.T, "(head_dim, num_heads, num_tokens, b)"),
        ("out_proj.1", lambda c, o: o(c), "The heads are not side by side yet"),
        ("project.3", lambda x, k: k(x.mT), "the weight is transposed"),
        ("project.3", lambda x, k: k(x[..., :3]), "side has 3 (num_heads) numbers, the other 5"),
        ("softmax.1", lambda m, d: m / m.sum(-1), "with `keepdim=True` it stays"),
        ("out_proj.1", lambda c, o: o(c.mT.flatten(2)), "num_tokens * head_dim numbers in a row"),
        ("scores.1", lambda q, k: q @ k.view(*k.shape[:2], *q.mT.shape[2:]), "swaps no axes"),
        ("since.6", lambda n, size: torch.ones(n, n).triu(0) > 0, "Of 21 places that are to"),
        ("mask.1", lambda s, m: s.masked_fill(cut(m, s), -1e4), "only where every score is far"),
        ("context.1", lambda w, v: v @ w.mT, "the left have 4 (head_dim) numbers, the columns on"),
    ],
)
def test_a_cause_is_said_of_the_case_that_the_message_speaks_of(identifier, answer, said):
    assert said in tried(identifier, answer).message

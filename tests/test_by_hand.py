"""The sheet's numbers are right, every slip gets its sentence, fresh problems are fair."""

# ruff: noqa: F403, F405 - the papers

import functools

import pytest
import torch
from said import answers, as_read, typed
from torch import nn

from eleven_steps.checks import check
from eleven_steps.checks.answers import wrong_tries
from eleven_steps.checks.paper import *
from helpers.attention import MultiHeadAttention
from helpers.examples import load_example

PAPERS = papers()
SINGLE, MULTI = load_example("by_hand_single"), load_example("by_hand_multi")
FRESH = [practice(kind, 1) for kind in PRACTISED]  # for what asks the checks
PROBLEMS = [*PAPERS.values(), *FRESH]

every_problem = pytest.mark.parametrize("paper", PROBLEMS, ids=lambda paper: paper.identifier)
every = pytest.mark.parametrize


@functools.cache
def many():
    """Fresh problems of each kind: they take seconds, which collecting need not."""
    return [practice(kind, seed) for kind in PRACTISED for seed in range(12)]


def tried(paper, answer):
    return check(getattr(paper, "identifier", paper), answer, record=False)


def mha(**changes):
    sizes = {"d_in": 768, "d_out": 768, "context_length": 1024, "dropout": 0.0, "num_heads": 12}
    with torch.device("meta"):
        return MultiHeadAttention(**(sizes | changes))


def solved(paper):
    """What is right, part by part."""
    return {
        name: mha() if isinstance(part, Construct) else part.answer
        for name, part in paper.parts.items()
    }


def value(part):
    return torch.tensor(part.answer, dtype=torch.float64)


def test_the_sheet_has_seven_exercises_with_their_published_numbers():
    assert list(PAPERS) == [f"by_hand.{number}" for number in range(1, 8)]
    single = {name: SINGLE[name].tolist() for name in ("Q", "K", "V", "H", "Y")}
    single |= {"weights": SINGLE["weights_rounded"].tolist()}
    assert check("by_hand.3", single, record=False).kind == "so far"
    single |= {"scores": (SINGLE["Q"] @ SINGLE["K"].T).tolist()}
    single |= {"scaled": [[8.49, 2.83], [2.83, 2.83]], "score": 8, "y": 5}
    assert tried("by_hand.3", single).passed
    assert tried("by_hand.3", single | {"weights": SINGLE["weights"]}).passed
    multi = {name: MULTI[name] for name in ("Q0", "Q1", "K0", "K1", "V0", "V1", "H", "Y")}
    multi |= {"y": 5}
    assert tried("by_hand.5", multi).passed


@every_problem
def test_the_exact_answer_passes_and_each_part_counts(paper):
    right = solved(paper)
    assert tried(paper, right).passed
    for name in right:
        left = {key: number for key, number in right.items() if key != name}
        outcome = tried(paper, left)
        assert outcome.kind == "so far" and f"Next is {name}." in outcome.message
        assert not tried(paper, right | {name: ...}).passed
    first = next(iter(right))
    assert tried(paper, dict.fromkeys(right, ...)).kind == "unfinished"
    assert f"right so far: {first}." in tried(paper, {first: right[first]}).message


def shapes(B, n, d, d_k, d_v):
    """Of real tensors, by the names of the sheet; a weight as in y = x W."""
    X, W_q, W_k, W_v = torch.ones(B, n, d), *(nn.Linear(d, width) for width in (d_k, d_k, d_v))
    Q, K, V, W_o = W_q(X), W_k(X), W_v(X), nn.Linear(d_v, d)
    H = nn.functional.scaled_dot_product_attention(Q, K, V)
    made = {"W_q": W_q.weight.T, "W_k": W_k.weight.T, "W_v": W_v.weight.T, "W_o": W_o.weight.T}
    made |= {"Q": Q, "K": K, "scores": Q @ K.mT, "weights": Q @ K.mT, "H": H, "Y": W_o(H)}
    return {name: tuple(each.shape) for name, each in made.items()}


@every(("general", "k", "v", "asked"), [("", 12, 12, 7), ("general ", 5, 3, 5)])
def test_the_shapes_are_those_of_real_tensors(general, k, v, asked):
    sizes, parts = {"B": 2, "n": 7, "d": 12, "d_k": 5, "d_v": 3}, PAPERS["by_hand.1"].parts
    real = {n: shape for n, shape in shapes(2, 7, 12, k, v).items() if general + n in parts}
    told = {name: parts[general + name].answer.split() for name in real}
    assert len(real) == asked
    assert {name: tuple(map(sizes.get, letters)) for name, letters in told.items()} == real


@every("paper", [p for p in PROBLEMS if "W_q" in p.given], ids=lambda paper: paper.identifier)
def test_a_head_by_hand_is_what_torch_computes(paper):
    X, W_q, W_k, W_v, W_o = (paper.given[n].double() for n in ("X", "W_q", "W_k", "W_v", "W_o"))
    H = nn.functional.scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)
    torch.testing.assert_close(value(paper.parts["H"]), H)
    torch.testing.assert_close(value(paper.parts["Y"]), H @ W_o)


@every("paper", [p for p in PROBLEMS if "H0" in p.given], ids=lambda paper: paper.identifier)
def test_pieces_are_the_columns_that_the_class_gives_its_heads(paper):
    for name in "QKV":
        wide = paper.given[name].double()
        heads = wide.view(1, 2, 2, 2).transpose(1, 2)[0]  # steps 3 and 4
        for head in (0, 1):
            assert torch.equal(value(paper.parts[f"{name}{head}"]), heads[head])
    given = {name: paper.given[name].double() for name in ("H0", "H1", "W_o")}
    together = torch.stack([given["H0"], given["H1"]])[None].transpose(1, 2).reshape(2, 4)
    assert torch.equal(value(paper.parts["Y"]), together @ given["W_o"])


@every("places", [2, 4])
def test_rounding_on_the_way_is_right(places):
    for paper in (p for p in PROBLEMS if "W_q" in p.given):
        right = {name: value(part).round(decimals=places) for name, part in paper.parts.items()}
        assert tried(paper, right).passed
        V, W_o = right["V"], paper.given["W_o"].double()
        H = (right["weights"] @ V).round(decimals=places)
        assert tried(paper, right | {"H": H, "Y": H @ W_o}).passed
        assert tried(paper, right | {"scaled": right["scores"] / 1.41}).passed


def test_cut_off_is_not_rounded_and_fewer_digits_are_no_excuse():
    right = solved(PAPERS["by_hand.3"])
    assert CUT_SAID in tried("by_hand.3", right | {"weights": [[0.99, 0.00], [0.5, 0.5]]}).message
    unscaled = right | {"weights": [[0.9997, 0.0003], [0.5, 0.5]]}
    assert "The scale is missing" in tried("by_hand.3", unscaled).message
    for weights in ([[0.98, 0.02], [0.5, 0.5]], [[1, 0], [1, 0]], [[0.9, 0.1], [0.5, 0.5]]):
        assert not tried("by_hand.3", right | {"weights": weights}).passed


HEAD, HEADS = practice("single_head", 1), practice("multi_head", 1)  # the sheet hides some slips
X, W_q, W_k, W_v, W_o = (HEAD.given[name].float() for name in ("X", "W_q", "W_k", "W_v", "W_o"))
Q, K, V = X @ W_q, X @ W_k, X @ W_v
FUTURE = torch.ones(2, 2).triu(1).bool()
SCALED = Q @ K.T / 2**0.5
CAUSAL = SCALED.masked_fill(FUTURE, -torch.inf).softmax(-1)
THREE, WIDE, FIVE = (
    {name: made.double() for name, made in PAPERS[f"by_hand.{number}"].given.items()}
    for number in (3, 4, 5)
)


def linear(weight):
    layer = nn.Linear(2, 2, bias=False)
    layer.weight = nn.Parameter(weight)
    return layer(X).detach()


def said(answer):
    identifier, _, source = answer.partition(" ")
    wrong_tries[identifier] += 1  # so that the hint is whole
    return str(tried(identifier, typed(source, {**globals()}, "eval")))


def test_a_slip_made_with_other_code_is_named():
    told = {answer: said(answer) for answer in answers("by_hand")}
    assert told == as_read("by_hand", told)


@every("kind", PRACTISED)
def test_the_same_seed_gives_the_same_problem_and_draws_nothing_else(kind):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, same, other = (practice(kind, seed) for seed in (-1, -1, 10**30))
    assert torch.equal(torch.rand(3), expected)
    assert repr(one) == repr(same) and one.parts == same.parts
    assert one.parts != other.parts and one.sizes == same.sizes
    assert all(torch.equal(one.given[name], same.given[name]) for name in one.given)

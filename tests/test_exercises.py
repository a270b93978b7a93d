"""Every solution passes, every planted wrong answer gets its sentence, nothing is ever raised."""

import functools
import math
import re
from itertools import combinations

import numpy as np
import pytest
import renew
import torch
from hypothesis import given
from hypothesis import strategies as st
from said import as_read
from sizes import steady
from torch import nn

from eleven_steps.beyond import processes, variants
from eleven_steps.checks import check
from eleven_steps.checks.judge.related import same_everywhere
from eleven_steps.checks.know.catalogue import MISTAKES
from eleven_steps.checks.know.exercises.kinds import Explain, Write
from eleven_steps.checks.know.exercises.tasks import TASKS
from eleven_steps.checks.know.right import play
from helpers.attention import MultiHeadAttention
from helpers.examples import load_example
from helpers.trace import SHAPES, STEPS

pytestmark = pytest.mark.usefixtures("one_thread")

WRITE = [name for name, task in TASKS.items() if isinstance(task, Write)]
EXPLAIN = [name for name, task in TASKS.items() if isinstance(task, Explain)]
REPAIR = [name for name in WRITE if TASKS[name].planted]
MASKS = ["since.6", "since.7", "since.11", "since.13"]  # of booleans, which know no NaN
# Where every way to be wrong is tried: one tensor, several, repaired, a change, booleans, flat.
EVERY_WAY = ["scores.1", "project.1", "softmax.3", "since.3", "since.7", "learn.1", "many.1"]
inf = torch.inf
sdpa = nn.functional.scaled_dot_product_attention

every = pytest.mark.parametrize


def tried(identifier, answer):
    return check(identifier, answer, record=False)


@functools.cache
def asking():
    """Every cell of a notebook that asks for a check, by the exercise it is for."""
    found = {}
    for path in renew.COURSE.values():
        for cell in renew.read(path).cells:
            named = re.search(r'check\("([\w.]+)",', cell.source)
            if cell.cell_type == "code" and named:
                found.setdefault(named[1], []).append(cell)
    return found


def cells(identifier):
    """The learner's cell of an exercise and the cell of its solution."""
    found = asking().get(identifier, [])
    solutions = ["solution" in cell.metadata.get("tags", []) for cell in found]
    assert solutions == [False, True], (
        f"{identifier} needs two cells in a notebook, and has {len(found)}: one that asks with "
        f'check("{identifier}", ...), and below it, tagged "solution", one that proves itself'
    )
    return found


def run(source):
    """Run a cell of a notebook and return what it hands to check."""
    scope = {"torch": torch, "check": tried, "check_attention": None}
    exec(re.sub(r"(?m)^(assert )?check.*\n?", "", source), scope)
    return eval(re.search(r'check\("[\w.]+", (.+?)(, record=False)?\)$', source, re.M)[1], scope)


# The notebooks


@every("identifier", TASKS)
def test_every_exercise_ships_open_and_its_solution_proves_itself(identifier):
    asked, solved = cells(identifier)
    (output,) = asked.outputs
    assert output.data["text/plain"].startswith(f"○ {identifier}: not ")
    assert f'assert check("{identifier}", ' in solved.source and "record=False)" in solved.source
    assert solved.source.startswith("# ") and not solved.outputs
    if identifier != "your_class.1":  # that cell's own run in the notebook is proof enough
        assert tried(identifier, run(solved.source)).passed


def test_each_step_asks_to_write_to_explain_and_to_repair():
    for step in STEPS:
        own = [task for name, task in TASKS.items() if name.startswith(f"{step}.")]
        assert [task.identifier for task in own] == [f"{step}.{n + 1}" for n in range(len(own))]
        write, explain, repair, *_ = own  # a step may have more
        assert (type(write), type(explain), type(repair)) == (Write, Explain, Write), step
        assert not write.planted and repair.planted, step


@every("identifier", REPAIR)
def test_what_is_to_be_repaired_is_not_named(identifier):
    outcome = tried(identifier, run(cells(identifier)[0].source))
    assert outcome.kind == "unfinished" and outcome.mistake is None
    assert str(outcome) == f"○ {identifier}: not repaired yet, it still does what it did."
    # The function is wrong only through what it was planted with.
    task = TASKS[identifier]
    scenes = [play(case) for case in task.cases]
    slip = task.slips[0]
    assert any(not alike(task.slipped(slip, s), task.answer(s)) for s in scenes)


def alike(parts, others):
    return repr(parts) == repr(others)


# Numbers


def count(d_in=768, d_out=768, heads=12, **bias):
    mha = MultiHeadAttention(d_in, d_out, 1024, 0.0, heads, **bias)
    return {
        name: sum(p.numel() for p in layer.parameters()) for name, layer in mha.named_children()
    }


def test_the_numbers_to_explain_are_true():
    layers = count()
    truth = {
        "shape.2": MultiHeadAttention(768, 768, 4, 0.0, 12).head_dim,
        "project.2": layers["W_query"] + layers["W_key"] + layers["W_value"],
        "view.2": torch.arange(12).view(3, 4)[1, 2],
        "transpose.2": torch.empty(2, 7, 3, 4).transpose(1, 2).stride(2),
        "scores.2": load_example("intuition")["scores"][1, 0],
        "mask.2": MultiHeadAttention(2, 2, 5, 0.0, 1).mask.sum(),
        "softmax.2": math.sqrt(768 / 12),
        "context.2": [0.25 * 4, 0.75 * 4],
        "reformat.2": apart(torch.empty(2, 3, 7, 4).transpose(1, 2)),
        "combine.2": torch.arange(1, 7),
        "out_proj.2": sum(layers.values()),
        "since.12": 60 * kept(variants.LatentCache(), 8, 1024, variants.Latent(512, 64)) // 1000,
        "many.3": 48 * processes.bytes_sent(processes.bytes_of_heads(1, 1024, 1600), 5),
        "many.4": round_the_ring(place=2, num_processes=4),
    }
    for identifier in EXPLAIN:
        assert identifier in truth, f"{identifier}: say in truth, above, how to work out its answer"
    assert truth.keys() == set(EXPLAIN), "truth, above, works out what is no exercise"
    assert all(tried(identifier, number).passed for identifier, number in truth.items())


def kept(cache, heads, width, *parts):
    """Bytes that one layer keeps of 1,000 tokens, in numbers of 2 bytes."""
    with torch.device("meta"):
        mha = variants.VariantAttention(8, width, 1000, 0.0, heads, parts=parts).bfloat16()
        mha.plus(cache)(torch.empty(1, 1000, 8, dtype=torch.bfloat16))
    return cache.nbytes


def round_the_ring(place, num_processes):
    """Whose block a process has, before the first turn and after each."""
    blocks, met = list(range(num_processes)), []
    for _ in range(num_processes):
        met.append(blocks[place])
        blocks = [blocks[before - 1] for before in range(num_processes)]
    return met


def apart(context):
    """Places in storage from the last feature of head 0 to the first of head 1, of one token."""
    return context[0, 0, 1].storage_offset() - context[0, 0, 0, -1].storage_offset()


def test_the_wrong_numbers_come_of_their_slips():
    wrong = TASKS["project.2"].slips | TASKS["out_proj.2"].slips
    biased = count(qkv_bias=True)
    plain = count()
    assert {plain["W_key"], plain["out_proj"], sum(biased.values())} <= set(wrong)
    assert biased["W_key"] * 3 in wrong and plain["W_key"] * 3 * 12 in wrong
    q, k = load_example("intuition")["Q"], load_example("intuition")["K"]
    scores = {(q @ k).T.T[1, 0].item(): "keys_not_flipped", (k @ q.T)[1, 0].item(): ""}
    assert 39 in scores and scores.keys() <= TASKS["scores.2"].slips.keys()
    for diagonal, number in ((0, 15), (2, 6)):
        assert torch.ones(5, 5).triu(diagonal).sum() == number
        assert number in TASKS["mask.2"].slips


@every("identifier", EXPLAIN)
def test_numbers_are_taken_in_any_form_that_is_meant(identifier):
    answer = TASKS[identifier].answer
    row = isinstance(answer, tuple)
    forms = [torch.tensor(answer), np.array(answer), np.float64(answer), torch.tensor(answer) * 1.0]
    forms += [list(answer), [float(each) for each in answer]] if row else [float(answer), answer]
    forms += [[answer]]
    assert all(tried(identifier, form).passed for form in forms)


@every("identifier", EXPLAIN)
def test_wrong_numbers_get_their_own_sentence_and_never_the_answer(identifier):
    task = TASKS[identifier]
    for number, said in task.slips.items():
        outcome = tried(identifier, number)
        sentence, mistake = (said, None) if isinstance(said, str) else said
        assert outcome.kind == "mistake" and outcome.mistake == mistake
        assert mistake is None or mistake in MISTAKES
        assert sentence in outcome.message
    scalar = not isinstance(task.answer, tuple)
    kinds = {
        "value": [-1, 10**5000, -math.inf] if scalar else [(0,) * len(task.answer)],
        "shape": [[task.answer] * 2, torch.ones(2, 2)] if scalar else [1, [[1, 3]] * 2, []],
        "type": ["many", str(task.answer), True, 1j, {1}, {}, print, [int], object(), b"8"],
        "nan": [math.nan, np.nan, torch.tensor(math.nan)] if scalar else [[math.nan, 1]],
        "unfinished": [..., None] if scalar else [..., None, (1, ...), [None, 2]],
    }
    shown = re.compile(rf"(?<!\d){re.escape(str(task.answer))}(?!\d)")
    messages = {}
    for kind, answers in kinds.items():
        outcomes = [tried(identifier, answer) for answer in answers]
        assert {outcome.kind for outcome in outcomes} == {kind}, outcomes
        messages[kind] = outcomes[0].message
        assert not any(shown.search(outcome.message) for outcome in outcomes)
    assert len(set(messages.values())) == len(kinds)
    assert messages["unfinished"] == "not answered yet."


# Functions


@every("identifier", EVERY_WAY)
def test_each_way_to_be_wrong_gets_its_own_sentence(identifier):
    right, several = run(cells(identifier)[1].source), len(TASKS[identifier].names) > 1

    def returning(change):
        def answer(*arguments):
            parts = right(*arguments)
            return tuple(map(change, parts)) if several else change(parts)

        return answer

    def replacing(value):
        return lambda *arguments: value

    tensor = torch.tensor
    answers = {
        "unfinished": [..., None, replacing((..., 1, 2) if several else ...)],
        "error": [lambda: 1, returning(lambda t: 1 / 0), returning(lambda t: t @ torch.ones(99))],
        "type": [
            3,
            tensor(1.0),
            "right",
            replacing(None),
            replacing("x"),
            returning(torch.Tensor.half),
            returning(lambda t: t.to(torch.complex64)),
        ],
        "shape": [
            returning(lambda t: t.sum()),
            returning(lambda t: t.flatten()[:1]),
            returning(lambda t: t[..., :1]),
            returning(lambda t: t[None]),
            returning(lambda t: t.flatten()),
            returning(lambda t: t[:0]),
        ],
        "nan": [returning(lambda t: t * math.nan), returning(lambda t: spoiled(t, math.nan))],
        "value": [
            returning(torch.zeros_like),
            returning(lambda t: torch.full_like(t, 0.25)),
            returning(lambda t: spoiled(t, 7.0)),
        ],
    }
    if identifier == "learn.1":
        del answers["shape"][4], answers["value"][0]  # it is flat as it is; zeros are a slip
    if identifier in MASKS:
        del answers["nan"]
        answers["value"] = [returning(torch.ones_like)]  # where nothing is hidden is a slip
    messages = {}
    for kind, wrong in answers.items():
        outcomes = [tried(identifier, answer) for answer in wrong]
        assert {outcome.kind for outcome in outcomes} == {kind}, outcomes
        messages[kind] = outcomes[0].message
    assert len(set(messages.values())) == len(answers)
    for form in [torch.clone] if identifier in MASKS else [torch.clone, torch.Tensor.double]:
        assert tried(identifier, returning(form)).passed
    for form in torch.Tensor.tolist, torch.Tensor.numpy:
        assert tried(identifier, returning(form)).kind == "type"


def spoiled(tensor, number):
    tensor = tensor.detach().clone()
    tensor[(-1,) * tensor.dim()] = number
    return tensor


@every("identifier", WRITE)
def test_an_answer_for_the_whiteboard_alone_fails(identifier):
    right = run(cells(identifier)[1].source)
    first = TASKS[identifier].cases[0]
    noted = right(*TASKS[identifier].gets(play(first)))
    outcome = tried(identifier, lambda *arguments: noted)
    assert not outcome.passed
    if outcome.kind != "mistake":
        assert outcome.message.startswith(f"right {first.called}, but not everywhere: ")


DIMS = {4: 4, 6: 8, 9: 4}  # head_dim where there are so many heads

# Real code with the usual slips, as learners write them.
PLANTED = [
    ("project.1", "keys_from_W_query", lambda x, q, k, v: (q(x), q(x), v(x))),
    ("project.1", "queries_from_W_key", lambda x, q, k, v: (k(x), k(x), v(x))),
    ("project.1", "queries_from_W_value", lambda x, q, k, v: (v(x), k(x), v(x))),
    ("project.1", "keys_from_W_value", lambda x, q, k, v: (q(x), v(x), v(x))),
    ("project.1", "queries_and_values_swapped", lambda x, q, k, v: (v(x), k(x), q(x))),
    ("project.1", "keys_and_values_swapped", lambda x, q, k, v: (q(x), v(x), k(x))),
    (
        "project.1",
        "weights_not_transposed",
        lambda x, q, k, v: (x @ q.weight, x @ k.weight, x @ v.weight),
    ),
    (
        "project.1",
        "bias_not_added",
        lambda x, q, k, v: (x @ q.weight.T, x @ k.weight.T, x @ v.weight.T),
    ),
    ("project.3", "bias_not_added", lambda x, k: x @ k.weight.T),
    ("view.1", "view_straight", lambda q, h: q.view(q.shape[0], h, q.shape[1], -1)),
    ("view.1", "view_tokens_last", lambda q, h: q.view(q.shape[0], h, -1, q.shape[1])),
    ("view.1", "view_mixes_batch", lambda q, h: q.view(q.shape[1], q.shape[0], h, -1)),
    ("view.1", "heads_and_head_dim_swapped", lambda q, h: q.view(*q.shape[:2], -1, h)),
    ("view.3", "view_straight", lambda q, h: q.view(q.shape[0], h, q.shape[1], -1)),
    ("transpose.1", "no_transpose", lambda q: q),
    ("transpose.1", "features_before_tokens", lambda q: q.transpose(1, 3)),
    ("transpose.1", "heads_last", lambda q: q.transpose(2, 3)),
    ("transpose.3", "no_transpose", lambda q, k, v: (q, k, v)),
    (
        "transpose.3",
        "queries_not_transposed",
        lambda q, k, v: (q, k.transpose(1, 2), v.transpose(1, 2)),
    ),
    (
        "transpose.3",
        "values_not_transposed",
        lambda q, k, v: (q.transpose(1, 2), k.transpose(1, 2), v),
    ),
    ("scores.1", "scores_transposed", lambda q, k: k @ q.transpose(2, 3)),
    ("scores.1", "keys_not_flipped", lambda q, k: q @ k),
    ("scores.1", "keys_viewed", lambda q, k: q @ k.reshape(*k.shape[:2], k.shape[3], k.shape[2])),
    ("scores.1", "products_not_summed", lambda q, k: q * k),
    ("scores.1", "scores_summed_over_heads", lambda q, k: (q @ k.mT).sum(1, keepdim=True)),
    ("scores.1", "scores_of_first_head", lambda q, k: q[:, :1] @ k[:, :1].mT),
    ("scores.1", "scores_as_cosines", lambda q, k: nn.functional.normalize(q, dim=-1)
     @ nn.functional.normalize(k, dim=-1).mT),
    ("scores.3", "keys_not_flipped", lambda q, k: q @ k),
    ("mask.1", "no_mask", lambda s, m: s),
    ("mask.1", "mask_inverted", lambda s, m: s.masked_fill(~cut(m, s), -inf)),
    ("mask.1", "past_masked", lambda s, m: s.masked_fill(cut(m, s).T, -inf)),
    ("mask.1", "diagonal_masked", lambda s, m: s.masked_fill(upper(s, 0), -inf)),
    ("mask.1", "mask_off_by_one", lambda s, m: s.masked_fill(upper(s, 2), -inf)),
    ("mask.1", "mask_zero", lambda s, m: s.masked_fill(cut(m, s), 0)),
    ("mask.1", "times the past", lambda s, m: s * ~cut(m, s)),
    ("mask.1", "mask_too_weak", lambda s, m: s.masked_fill(cut(m, s), -10)),
    ("mask.1", "mask_plus_inf", lambda s, m: s.masked_fill(cut(m, s), inf)),
    ("mask.1", "mask_times_inf", lambda s, m: s + cut(m, s) * -inf),
    ("mask.1", "mask_added", lambda s, m: s + cut(m, s)),
    ("mask.1", "mask_not_cut", lambda s, m: s.masked_fill(m, -inf)),
    ("mask.1", "mask_on_first_head", lambda s, m: only(s, m, (slice(None), 0))),
    ("mask.1", "mask_on_first_item", lambda s, m: only(s, m, 0)),
    ("mask.3", "mask_not_cut", lambda s, m: s.masked_fill_(m, -inf)),
    ("softmax.1", "no_scale", lambda s, d: s.softmax(-1)),
    ("softmax.1", "scale_head_dim", lambda s, d: (s / d).softmax(-1)),
    ("softmax.1", "scale_sqrt_num_heads", lambda s, d: (s / s.shape[1] ** 0.5).softmax(-1)),
    ("softmax.1", "scale_sqrt_num_tokens", lambda s, d: (s / s.shape[2] ** 0.5).softmax(-1)),
    ("softmax.1", "scale_multiplied", lambda s, d: (s * d**0.5).softmax(-1)),
    ("softmax.1", "scaled_after_softmax", lambda s, d: s.softmax(-1) / d**0.5),
    ("softmax.1", "sigmoid_for_softmax", lambda s, d: torch.sigmoid(s / d**0.5)),
    ("softmax.1", "softmax_twice", lambda s, d: (s / d**0.5).softmax(-1).softmax(-1)),
    ("softmax.1", "softmax_over_queries", lambda s, d: (s / d**0.5).softmax(-2)),
    ("softmax.1", "softmax_over_heads", lambda s, d: (s / d**0.5).softmax(1)),
    ("softmax.1", "softmax_over_batch", lambda s, d: (s / d**0.5).softmax(0)),
    ("softmax.1", "softmax_over_all_pairs",
     lambda s, d: (s / d**0.5).flatten(2).softmax(-1).view_as(s)),
    ("softmax.3", "scale_head_dim", lambda s, d, h: (s / (d // h)).softmax(-1)),
    ("softmax.3", "scale_sqrt_num_heads", lambda s, d, h: (s / h**0.5).softmax(-1)),
    ("context.1", "weights_transposed", lambda w, v: w.mT @ v),
    ("context.1", "values_added", lambda w, v: w @ v + v),
    ("context.3", "values_added", lambda w, v: w @ v + v),
    ("context.3", "softmax_twice", lambda w, v: w.softmax(-1) @ v),
    ("combine.1", "no_transpose_back", lambda c: c.transpose(1, 2).reshape(*c.shape[:2], -1)),
    ("reformat.1", "That is the last head", lambda c: c[:, -1]),
    ("reformat.1", "That is the first token", lambda c: c[:, :, 0]),
    ("reformat.3", "no_transpose_back", lambda c: c),
    ("reformat.3", "features_swapped_back", lambda c: c.transpose(1, 3)),
    ("reformat.3", "last_dims_swapped_back", lambda c: c.transpose(2, 3)),
    ("combine.1", "not_contiguous", lambda c: c.view(*c.shape[:2], c.shape[2] * c.shape[3])),
    ("combine.1", "heads_interleaved", lambda c: c.transpose(2, 3).flatten(2)),
    ("combine.1", "heads_averaged", lambda c: c.mean(2)),
    ("combine.1", "heads_summed", lambda c: c.sum(2)),
    ("combine.3", "not_contiguous",
     lambda c: c.transpose(1, 2).view(c.shape[0], c.shape[2], c.shape[1] * c.shape[3])),
    ("combine.3", "heads_averaged", lambda c: c.mean(1)),
    ("out_proj.1", "out_proj_missing", lambda c, o: joined(c)),
    ("out_proj.1", "out_proj_twice", lambda c, o: o(o(joined(c)))),
    ("out_proj.1", "out_proj_transposed", lambda c, o: joined(c) @ o.weight + o.bias),
    ("out_proj.1", "out_proj_bias_not_added", lambda c, o: joined(c) @ o.weight.T),
    ("out_proj.1", "context_added", lambda c, o: o(joined(c)) + joined(c)),
    ("out_proj.1", "no_transpose_back",
     lambda c, o: o(c.reshape(c.shape[0], c.shape[2], c.shape[1] * c.shape[3]))),
    ("out_proj.1", "not_contiguous",
     lambda c, o: o(c.transpose(1, 2).view(c.shape[0], c.shape[2], c.shape[1] * c.shape[3]))),
    ("out_proj.1", "heads_interleaved", lambda c, o: o(c.permute(0, 2, 3, 1).flatten(2))),
    ("since.1", "kv_heads_tiled",
     lambda k, h: k.repeat(1, h // k.shape[1], 1, 1)),
    ("since.1", "new axis in front",
     lambda k, h: k[:, None].expand(-1, h // k.shape[1], -1, -1, -1).flatten(1, 2)),
    ("since.7", "padding_polarity", lambda f, p: freed(f | ~p[:, None, None])),
    ("since.7", "padding_nan", lambda f, p: f | p[:, None, None]),
    ("since.9", "sinks_left_out", lambda s, k: s.softmax(-1)),
    ("since.9", "sinks added to scores", lambda s, k: (s + k.view(-1, 1, 1)).softmax(-1)),
    ("since.9", "sinks_divided", lambda s, k: sunk(s, k / DIMS[len(k)] ** 0.5)[..., :-1]),
    ("since.9", "sinks_dropped_first", lambda s, k: sunk(s, k)[..., 1:]),
    ("since.10", "gate_without_sigmoid", lambda c, x, g: c * g(x)),
    ("since.10", "gate_added", lambda c, x, g: c + g(x).sigmoid()),
    ("context.1", "softmax_twice", lambda w, v: w.softmax(-1) @ v),
    ("context.1", "sums of their columns", lambda w, v: w / w.sum(2, keepdim=True) @ v),
    ("combine.1", "in the other order", lambda c: torch.cat([c[:, :, 1], c[:, :, 0]], -1)),
    ("since.2", "divided by the weight", lambda q, w: nn.functional.rms_norm(q, w.shape) / w),
    ("since.10", "taken of x", lambda c, x, g: c * g(x.sigmoid())),
    ("since.11", "so the diagonal is past + 1",
     lambda p, n: torch.ones(n, p + n, dtype=torch.bool).triu(1)),
    ("since.14", "linear_asked_first", lambda t, q, k, v, d: (
        t * torch.exp(-d).view(-1, 1, 1) + k.mT @ v, q @ (t * torch.exp(-d).view(-1, 1, 1)))),
    ("many.2", "laid side by side", lambda c, o: torch.cat(parts(c, o), -1) + o.bias),
    ("fast.1", "no_mask", lambda q, k, v, size: sdpa(q, k, v)),
    ("fast.1", "no_scale", lambda q, k, v, size: sdpa(q, k, v, is_causal=True, scale=1.0)),
    ("out_proj.3", "out_proj_missing", lambda c, o: c),
    ("out_proj.3", "out_proj_bias_not_added", lambda c, o: c @ o.weight.T),
]  # fmt: skip


def parts(contexts, out_proj):
    columns = out_proj.weight.chunk(len(contexts), dim=1)
    return [c @ each.T for c, each in zip(contexts, columns, strict=True)]


def logs(one, two):
    """The logarithm of the total of both blocks."""
    return torch.logaddexp(one[0] + one[1].log(), two[0] + two[1].log())


def merged(one, two, total=torch.exp, context=torch.exp, rest=0):
    largest = torch.maximum(one[0], two[0])
    above = sum(c * context(m - largest) for m, _, c in (one, two))
    return above / (sum(t * total(m - largest) for m, t, _ in (one, two)) + rest)


def sunk(scaled, sinks):
    """Weights with the sinks' column."""
    column = sinks.view(-1, 1, 1).expand(*scaled.shape[:-1], 1)
    return torch.cat([scaled, column], -1).softmax(-1)


def asked(query, table):
    return table, query @ table


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


def test_a_usual_slip_is_named():
    said = {}
    for identifier, slip, answer in PLANTED:
        outcome = tried(identifier, answer)
        assert outcome.kind == "mistake", (slip, outcome)
        assert " " in slip or outcome.mistake == slip, outcome
        assert f"{identifier} {slip}" not in said, "two answers have one name"
        said[f"{identifier} {slip}"] = outcome.message
    assert said == as_read("slips", said)


SUBTRACTED = "torch.exp(scaled - largest)"
IN_BLOCKS = [  # the slip, and what is exchanged in the solution of fast.1
    ("The total is not rescaled", {"total * shrink": "total"}),
    ("The context is not rescaled", {"context * shrink": "context"}),
    ("Nothing is rescaled", {"before, largest = largest, ": "before = largest = "}),
    ("The largest is that of the block", {"torch.maximum(largest, scaled": "(scaled"}),
    ("The new block is measured", {SUBTRACTED: "torch.exp(scaled - scaled.amax(-1, True))"}),
    ("each row has its own", {"scaled.amax(dim=-1, keepdim=True)": "scaled.max()"}),
    ("exp overflows above 88", {SUBTRACTED: "scaled.exp()", "torch.exp(before - largest)": "1"}),
    ("begin at -inf", {":1], -torch.inf": ":1], 0.0"}),
    ("where it is shorter", {"token.split": "token[: len(token) // size * size].split"}),
    ("the sum of the last block", {"total * shrink + ": ""}),
    ("Divide by the total", {"context / total": "context"}),
    ("after every block", {"    return": "        context = context / total\n    return"}),
    ("the loop ends in its first round", {"    return": "        return"}),
    (
        "right, everywhere",
        {
            "total = total": "kept = total * shrink; total = total",
            "context * shrink + powers": "context * (kept / total) + powers / total",
            "context / total": "context",
        },
    ),
]


def test_each_slip_in_a_softmax_in_blocks_is_named():
    solution = cells("fast.1")[1].source
    found = {}
    for slip, edits in IN_BLOCKS:
        source = solution
        for old, new in edits.items():
            assert source.count(old) == 1, old
            source = source.replace(old, new)
        found[slip] = tried("fast.1", run(source)).message
    assert found == as_read("blocks", found)


def test_each_slip_of_the_catalogue_is_tried_with_real_code():
    listed = {
        (identifier, slip.mistake)
        for identifier in WRITE
        for slip in TASKS[identifier].slips
        if not TASKS[identifier].planted and not slip.returns
    }
    real = {(identifier, slip) for identifier, slip, _ in PLANTED}
    assert not listed - real, "PLANTED, above, has no code that makes these slips"


@every("identifier", WRITE)
def test_no_slip_is_right_or_hides_behind_another(identifier):
    task = TASKS[identifier]
    scenes = [play(case) for case in task.cases]
    made = [(slip, [task.slipped(slip, scene) for scene in scenes]) for slip in task.slips]
    for slip, parts in made:
        assert not same_everywhere(parts, map(task.answer, scenes)), slip.sentence
    for (one, parts), (other, others) in combinations(made, 2):
        assert one.sentence == other.sentence or not same_everywhere(others, parts), one.sentence


@every(
    ("identifier", "answer"),
    [
        ("view.1", lambda q, h: q.unflatten(-1, (h, -1))),
        ("view.1", lambda q, h: torch.stack(q.chunk(h, -1), dim=2)),
        ("transpose.1", lambda q: q.permute(0, 2, 1, 3).contiguous()),
        ("transpose.3", lambda q, k, v: [t.swapaxes(1, 2) for t in (q, k, v)]),
        ("scores.1", lambda q, k: torch.einsum("bhqd,bhkd->bhqk", q, k)),
        ("scores.1", lambda q, k: (q[:, :, :, None] * k[:, :, None]).sum(-1)),
        ("mask.1", lambda s, m: s.masked_fill_(cut(m, s), -inf)),
        ("mask.1", lambda s, m: torch.where(cut(m, s), -inf, s)),
        ("mask.1", lambda s, m: s + torch.full_like(s[0, 0], -inf).triu(1)),
        ("softmax.1", lambda s, d: nn.functional.softmax(s * d**-0.5, dim=3)),
        ("softmax.1", lambda s, d: s.div_(np.sqrt(d)).softmax(-1)),
        ("since.1", lambda k, h: torch.cat([k[:, [i * k.shape[1] // h]] for i in range(h)], 1)),
        ("since.2", lambda q, w: nn.functional.rms_norm(q, w.shape, w)),
        (
            "since.3",
            lambda q, c, s: (
                q * c.repeat_interleave(2, -1)
                + torch.stack([-q[..., 1::2], q[..., ::2]], -1).flatten(-2)
                * s.repeat_interleave(2, -1)
            ),
        ),
        ("since.4", lambda s, n: torch.ones(n, n).tril(-1).cumsum(0) * s),
        (
            "since.4",
            lambda s, n: (s * variants.distances(n, n)).masked_fill(
                variants.distances(n, n) < 0, inf
            ),
        ),
        ("since.5", lambda s, c, d: torch.tanh(s / d**0.5 / c) * c * math.sqrt(d)),
        ("since.6", lambda n, w: ~(torch.ones(n, n).tril().triu(1 - w) > 0)),
        ("since.7", lambda f, p: freed(torch.maximum(f[None, None], p[:, None, None]))),
        (
            "since.9",
            lambda s, k: (s - torch.logaddexp(s.logsumexp(-1, True), k.view(-1, 1, 1))).exp(),
        ),
        ("since.10", lambda c, x, g: c / (1 + (-g(x)).exp())),
        ("since.11", lambda p, n: torch.arange(p + n) > torch.arange(p, p + n)[:, None]),
        ("since.13", lambda r, f, k: f | (r < r.where(~f, -inf).sort(-1)[0][..., -k:][..., :1])),
        (
            "since.14",
            lambda t, q, k, v, d: asked(q, t / d.exp()[:, None, None] + k[..., 0, :, None] * v),
        ),
        (
            "since.16",
            lambda o, r, n: torch.stack(
                [
                    (r[:, i : i + n].softmax(1) * o[:, i : i + n]).sum(1)
                    for i in range(0, o.shape[1] - n + 1, n)
                ],
                dim=1,
            ),
        ),
        ("since.17", lambda t, k, v, s: t - s * k.mT @ (k @ t) + s * k.mT @ v),
        ("shape.1", lambda x, d, h: [torch.tensor(x.shape[0]), np.int64(x.shape[1]), d // h]),
        ("learn.1", lambda w: w[:, :, 1:, :-1].diagonal(dim1=2, dim2=3).mean(-1).mean(0)),
        (
            "learn.1",
            lambda w: torch.stack([w[:, :, i, i - 1] for i in range(1, w.shape[2])]).mean((0, 1)),
        ),
        (
            "many.1",
            lambda k, o, place, p: (
                k.weight.unflatten(0, (p, -1))[place],
                o.weight.T.unflatten(0, (p, -1))[place].T,
            ),
        ),
        ("many.2", lambda c, o: o(torch.cat(c, dim=-1))),
        ("many.2", lambda c, o: sum(part + o.bias / len(c) for part in parts(c, o))),
        ("many.2", lambda c, o: torch.stack([*parts(c, o)[1:], parts(c, o)[0] + o.bias]).sum(0)),
        ("many.5", lambda one, two: merged(one, two)),
        ("many.5", lambda one, two: merged(two, one)),
        (
            "many.5",
            lambda one, two: (
                one[2] / one[1] * (one[0] + one[1].log() - logs(one, two)).exp()
                + two[2] / two[1] * (two[0] + two[1].log() - logs(one, two)).exp()
            ),
        ),
        (
            "mask.1",
            lambda s, m: s.masked_fill(
                torch.full_like(m, True).triu(1)[: s.shape[2], : s.shape[3]], -inf
            ),
        ),
        ("combine.1", lambda c: torch.cat(c.unbind(2), dim=-1)),
        ("out_proj.1", lambda c, o: nn.functional.linear(joined(c), o.weight, o.bias)),
    ],
)
def test_other_right_ways_pass(identifier, answer):
    assert tried(identifier, answer).passed


# What else an answer may do


def looping(*arguments):
    while True:
        pass


def recursing(*arguments):
    return recursing(*arguments)


def printing(queries, keys):
    print("here", queries)
    return queries @ keys.transpose(2, 3)


def overwriting(queries, keys):
    scores = queries @ keys.transpose(2, 3)
    queries.zero_(), keys.zero_()
    torch.manual_seed(1)
    torch.set_default_dtype(torch.float64)
    return scores


def leaving(*arguments):
    raise SystemExit("gone")


def interrupting(*arguments):
    raise KeyboardInterrupt


def test_what_an_answer_does_stays_inside(capsys):
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    assert tried("scores.1", printing).passed
    assert tried("scores.1", overwriting).passed
    assert torch.equal(torch.rand(3), expected)
    assert torch.get_default_dtype() == torch.float32
    assert capsys.readouterr() == ("", "")


@every("answer", [looping, recursing, leaving, interrupting])
def test_what_does_not_come_back_is_an_error(answer, monkeypatch):
    monkeypatch.setattr("eleven_steps.checks.judge.answers.SECONDS", 0.3)
    assert tried("scores.1", answer).kind == "error"


class Hostile:
    """An object whose every question is answered by an exception."""

    def refuse(self, *arguments, **options):
        raise RuntimeError("no")

    __eq__ = __ne__ = __repr__ = __str__ = __bool__ = __len__ = __iter__ = __hash__ = refuse
    __getattr__ = __array__ = __float__ = __int__ = __index__ = __contains__ = refuse
    __class__ = property(refuse)


class Liar(torch.Tensor):
    """A tensor that agrees with everything."""

    @classmethod
    def __torch_function__(cls, function, types, arguments=(), options=None):
        return torch.tensor(True)


@every("identifier", [*EVERY_WAY, "shape.1", "scores.2", "many.4", "your_class.1"])
def test_hostile_answers_fail_quietly(identifier):
    liar = torch.zeros(1).as_subclass(Liar)
    for answer in (Hostile(), Hostile, liar, lambda *a: Hostile(), lambda *a: liar, {}.get):
        outcome = tried(identifier, answer)
        assert not outcome.passed
        assert all(isinstance(text, str) for text in outcome._repr_mimebundle_().values())


anything = st.recursive(
    st.none()
    | st.just(...)
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.sampled_from([print, nn.Linear, torch.ones, torch.Tensor])
    | st.builds(Hostile)
    | st.builds(
        torch.full,
        st.lists(st.integers(0, 3), max_size=4),
        st.floats(width=32) | st.integers(-9, 9) | st.booleans(),
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner, inner)
        | st.dictionaries(st.text(max_size=2), inner, max_size=2)
    ),
    max_leaves=6,
)


@steady
@given(st.sampled_from(list(TASKS)), anything)
def test_no_answer_ever_raises(identifier, value):
    for answer in (value, lambda *arguments: value, [value], type("C", (nn.Module,), {"x": value})):
        outcome = tried(identifier, answer)
        assert isinstance(str(outcome), str)
        assert not outcome.passed or isinstance(TASKS[identifier], Explain)


def test_an_unknown_exercise_is_said_to_be_unknown():
    for identifier in ("scores.9", "", "scores", 3, ["scores.1"], Hostile()):
        outcome = check(identifier, 1)
        said = "Do you mean 'scores." if type(identifier) is str and identifier else "scores.1"
        assert outcome.kind == "unknown" and said in outcome.message


def test_the_display_says_it_without_colour_and_escapes_what_came():
    outcome = tried("scores.2", b"8")
    shown = outcome._repr_mimebundle_()
    assert shown["text/plain"] == "✗ scores.2: one number is expected; this is of type bytes."
    assert "✗ <strong>scores.2:</strong>" in shown["text/html"]

    def wrong(*arguments):
        raise ValueError("<script>alert(1)</script>")

    assert "<script>" not in tried("scores.1", wrong)._repr_mimebundle_()["text/html"]
    assert bool(tried("scores.2", 43)) and not tried("scores.2", 44)


# The class that grows

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
        if upto == 1: return ...
        queries, keys, values = self.W_query(x), self.W_key(x), self.W_value(x)
        if upto == 2: return queries, keys, values
        split = b, num_tokens, self.num_heads, self.head_dim
        queries, keys, values = queries.view(split), keys.view(split), values.view(split)
        if upto == 3: return [queries, keys, values]
        queries, keys, values = (t.transpose(1, 2) for t in (queries, keys, values))
        if upto == 4: return queries, keys, values
        scores = queries @ keys.transpose(2, 3)
        if upto == 5: return scores
        masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)
        if upto == 6: return masked
        weights = self.dropout(torch.softmax(masked / self.head_dim**0.5, dim=-1))
        if upto == 7: return weights
        context = weights @ values
        if upto == 8: return context
        context = context.transpose(1, 2)
        if upto == 9: return context
        context = context.reshape(b, num_tokens, -1)
        if upto == 10: return context
        return self.out_proj(context)
"""


def grown(upto, *edits):
    """What check says of a class that goes up to a step, with edits of its source."""
    source = CLASS
    for old, new in edits:
        assert old in source
        source = source.replace(old, new)
    scope = {"nn": nn, "torch": torch}
    exec(source.replace("upto", str(upto)), scope)
    return tried("your_class.1", scope["Mine"])


def test_a_class_is_right_as_far_as_it_goes():
    for number, step in enumerate(STEPS[1:], start=1):
        outcome = grown(number)
        assert outcome.kind == "so far"
        assert f"Next is step {number + 1}, {step}: {SHAPES[step]}." in outcome.message
        assert number == 1 or outcome.message.startswith(f"steps 1 to {number} are right.")
    assert grown(11).passed


@every(
    ("upto", "mistake", "old", "new"),
    [
        (1, "no_super_init", "super().__init__()", "pass"),
        (1, "bias_missing", "W_key = nn.Linear(d_in, d_out, bias=qkv_bias)", None),
        (1, "weights_tied", "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)", None),
        (1, "projected_to_d_in", "nn.Linear(d_in, d_out,", "nn.Linear(d_in, d_in,"),
        (1, "d_in_and_d_out_swapped", "nn.Linear(d_in, d_out,", "nn.Linear(d_out, d_in,"),
        (1, "bias_always", "bias=qkv_bias)", "bias=True)"),
        (2, "keys_from_W_query", "self.W_key(x)", "self.W_query(x)"),
        (5, "keys_from_W_query", "self.W_key(x)", "self.W_query(x)"),
        (3, "head_dim_before_heads", "self.num_heads, self.head_dim\n        queries", None),
        (4, "view_straight", "t.transpose(1, 2)", "t.reshape(b, self.num_heads, num_tokens, -1)"),
        (5, "scores_transposed", "queries @ keys.", "keys @ queries."),
        (8, "scores_transposed", "queries @ keys.", "keys @ queries."),
        (6, "mask_zero", "-torch.inf", "0"),
        (7, "scale_sqrt_d_out", "self.head_dim**0.5", "(self.head_dim * self.num_heads) ** 0.5"),
        (11, "scale_sqrt_d_out", "self.head_dim**0.5", "(self.head_dim * self.num_heads) ** 0.5"),
        (7, "softmax_over_queries", "dim=-1", "dim=-2"),
        (8, "weights_transposed", "weights @ values", "weights.mT @ values"),
        (9, "last_dims_swapped_back", "context.transpose(1, 2)", "context.transpose(2, 3)"),
        (10, "no_transpose_back", "context = context.transpose(1, 2)", "pass"),
        (10, "not_contiguous", "reshape(b, num_tokens, -1)", "view(b, num_tokens, d_out)"),
        (11, "out_proj_twice", "self.out_proj(context)", "self.out_proj(self.out_proj(context))"),
    ],
)
def test_a_mistake_in_a_growing_class_is_named(upto, mistake, old, new):
    new = {
        "bias_missing": "W_key = nn.Linear(d_in, d_out, bias=False)",
        "weights_tied": "self.W_key = self.W_query",
        "head_dim_before_heads": "self.head_dim, self.num_heads\n        queries",
    }.get(mistake, new)
    edits = [(old, new)]
    if mistake == "bias_missing":
        edits = [("bias=qkv_bias)", "bias=False)")]
    if mistake == "not_contiguous":
        edits.append(("d_in = x.shape", "d_in = x.shape; d_out = self.num_heads * self.head_dim"))
    outcome = grown(upto, *edits)
    assert outcome.mistake == mistake, outcome
    assert outcome.message.startswith(
        f"step {MISTAKES[mistake].step}: {MISTAKES[mistake].sentence}"
    )


@every(
    ("kind", "upto", "old", "new", "said"),
    [
        (
            "so far",
            1,
            "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)",
            "",
            "no layer W_key yet",
        ),
        (
            "shape",
            1,
            "W_key = nn.Linear(d_in, d_out,",
            "W_key = nn.Linear(d_in, 1,",
            "`W_key.weight`",
        ),
        ("error", 1, "self.dropout =", "self.dropout = 1 / 0 or", "ZeroDivisionError"),
        ("error", 3, "b, num_tokens, d_in = x.shape", "b = x.size", "raises"),
        (
            "value",
            3,
            "num_tokens, d_in = x.shape",
            "num_tokens, d_in = x.shape; return x[0]",
            "this makes `x[0]`. Step 2 applies W_query, W_key and W_value to x itself.",
        ),
        ("type", 4, "b, num_tokens, d_in = x.shape", "return 'x'", "str"),
        (
            "value",
            5,
            "queries @ keys",
            "torch.nan * queries @ keys",
            "What comes out, (2, 3, 7, 4), holds NaN.",
        ),
        ("value", 7, "head_dim**0.5", "head_dim**0.4", "divided by 1.741; it should be"),
        (
            "value",
            5,
            "queries @",
            "(queries + b - 1) @",
            "(2, 3, 7, 4), has other numbers than step 5, scores, makes.",
        ),
        (
            "mistake",
            11,
            "self.W_value(x)",
            "self.W_key(x)",
            "step 2: The weights are multiplied with the keys",
        ),
    ],
)
def test_other_faults_of_a_growing_class_are_described(kind, upto, old, new, said):
    outcome = grown(upto, (old, new))
    assert outcome.kind == kind and said in outcome.message, outcome


@every("answer", [3, "Mine", nn.Linear(2, 2), int, lambda *arguments: nn.Linear(2, 2)])
def test_only_a_module_class_can_grow(answer):
    assert tried("your_class.1", answer).kind == "type"

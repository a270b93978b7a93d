"""The real sentence beside the whiteboard, and the second example: what the lessons say is true."""

import re

import pytest
import torch

from eleven_steps.beyond.grammar import MEETINGS, NAMES, read
from eleven_steps.beyond.moments import MEETING, load_moments, load_sentence
from eleven_steps.beyond.tiny import trace_layers
from eleven_steps.pictures import draw_words
from helpers.examples import load_second

SIX = ["Anna", "met", "Bert", ".", "Anna", "met"]


@pytest.fixture(scope="module")
def real():
    return load_sentence()


def tensor(real, number, name):
    return real.steps[number - 1].tensors[name]


def test_it_is_the_second_layer_of_the_trained_model(real):
    model = load_moments()[-1].model
    assert real.words == SIX
    assert tensor(real, 4, "queries").shape == (1, 2, 6, 21)
    ours, again = trace_layers(model, read(MEETING))[1], real.steps
    for one, other in zip(ours, again, strict=True):
        assert all(torch.equal(one.tensors[name], other.tensors[name]) for name in one.tensors)
    with torch.no_grad():
        assert torch.equal(real.layer(tensor(real, 1, "x")), tensor(real, 11, "out"))


def test_what_a_layer_adds_raises_the_score_of_a_word_by_that_much(real):
    model, x, out = load_moments()[-1].model, tensor(real, 1, "x"), tensor(real, 11, "out")
    with torch.no_grad():
        difference = model.unembedding(x + out) - model.unembedding(x)  # (1, 6, words)
    raised = real.raises(out, "Bert saw .")
    assert raised.shape == (1, 6, 3)
    assert torch.allclose(raised, difference[..., read("Bert saw .")[0]], atol=1e-4)


def test_the_head_that_completes_is_found_on_other_sentences_too():
    assert load_sentence("Cleo saw Dora . the dogs run . Cleo saw").head == load_sentence().head


def test_two_heads_ask_two_questions(real):
    weights, scores = tensor(real, 7, "weights")[0], tensor(real, 5, "scores")[0]
    assert real.head == 1  # the lessons call it head 1
    same_word, completes = weights[0, -1], weights[1, -1]
    assert same_word[[1, 5]].min() > 0.2 and same_word[[1, 5]].sum() > 0.9  # both "met"
    assert completes[2] > 0.95  # "Bert"
    assert [SIX[int(row.argmax())] for row in scores[0]] == SIX


def test_both_met_fit_bert_best_and_the_first_must_not_see_it(real):
    scores, masked = tensor(real, 5, "scores")[0, 1], tensor(real, 6, "masked")[0, 1]
    for row in scores[[1, 5]]:
        best, next_best = row.topk(2)
        assert best[0] > 2 * best[1] and next_best[0] == 2  # "Bert", by far
    assert masked[1, 2] == -torch.inf and masked[5, 2] == scores[5, 2]
    assert (masked[1, :2] < 0).all()
    assert tensor(real, 7, "weights")[0, 1, 1, :2].min() > 0.3  # shared by "Anna" and "met"


def test_one_matrix_for_queries_and_keys_would_find_met(real):
    queries, keys = tensor(real, 4, "queries")[0, 1], tensor(real, 4, "keys")[0, 1]
    assert int((queries[-1] @ keys.T).argmax()) == 2
    assert set((queries[-1] @ queries.T).topk(2).indices.tolist()) == {1, 5}


def test_the_context_of_met_is_the_value_of_bert_but_for_a_little(real):
    values, context = tensor(real, 4, "values")[0, 1], tensor(real, 8, "context")[0, 1, -1]
    assert (context - values[2]).norm() < 0.05 * values[2].norm()
    assert (values[5] - values[2]).norm() > 0.5 * values[2].norm()
    assert tensor(real, 7, "weights")[0, 1, -1, 5] < 0.01


def test_out_proj_adds_up_what_two_heads_say(real):
    context, layer = tensor(real, 10, "context")[0, -1], real.layer
    matrix = layer.out_proj.weight.detach().T
    parts = context[:21] @ matrix[:21], context[21:] @ matrix[21:]
    names, verbs = [each for each in NAMES if each != "Bert"], MEETINGS
    first, second, out = (
        {word: real.raises(part, word).item() for word in (*NAMES, *MEETINGS)}
        for part in (*parts, tensor(real, 11, "out")[0, -1])
    )
    assert min(first[name] for name in NAMES) > 0 > max(first[verb] for verb in verbs)
    assert second["Bert"] > 2 and max(second[name] for name in names) < 0
    assert out["Bert"] > 2 * max(out[word] for word in (*names, *verbs))


# The picture


def test_words_stand_at_rows_and_columns():
    table = torch.tensor([[1.5, -torch.inf], [-3.0, 12.25]])
    drawn = draw_words(table, ["Anna", "met"], "A title", head=1)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.svg)
    assert texts == ["A title", "Anna", "met", "Anna", "met", "1.50", "-∞", "-3.00", "12.2"]
    assert drawn.svg.count('stroke-width="3"') == 1  # the last row's largest number
    assert "(num_tokens, num_tokens) = (2, 2)" in drawn.description
    assert drawn.description.endswith("Anna at Anna 1.50, met at met 12.25.")


# The second example


def test_all_sizes_of_the_second_example_differ():
    x = load_second()
    sizes = [*x.shape, 12, 3, 12 // 3]
    assert tuple(x.shape) == (2, 7, 5) and x.dtype == torch.float32
    assert len(set(sizes)) == len(sizes)

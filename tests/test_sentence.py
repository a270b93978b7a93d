"""The real sentence beside the whiteboard, and the second example: what the lessons say is true."""

import re

import pytest
import renew
import torch

from helpers.attention import MultiHeadAttention
from helpers.checks.mistakes import MISTAKES, wrong_class
from helpers.examples import load_second
from helpers.moments import MEETING, load_moments, load_sentence
from helpers.pictures import draw_words
from helpers.sentences import read
from helpers.tiny import trace_layers

SIX = ["Anna", "met", "Bert", ".", "Anna", "met"]


@pytest.fixture(scope="module")
def real():
    return load_sentence()


def tensor(real, number, name):
    return real.steps[number - 1].tensors[name]


def prose(notebook):
    cells = renew.read(renew.NOTEBOOKS / f"{notebook}.ipynb").cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


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
    with pytest.raises(ValueError, match="does not know Zoe"):
        load_sentence("Zoe met Anna")


def test_two_heads_ask_two_questions(real):
    weights = tensor(real, 7, "weights")[0]
    assert real.head == 1  # the lessons call it head 1
    same_word, completes = weights[0, -1], weights[1, -1]
    assert same_word[[1, 5]].sum() > 0.9  # both "met"
    assert completes[2] > 0.95  # "Bert"
    masked = tensor(real, 6, "masked")[0, 0]
    assert [SIX[int(row.argmax())] for row in masked] == SIX


def test_both_met_fit_bert_best_and_the_first_must_not_see_it(real):
    scores, masked = tensor(real, 5, "scores")[0, 1], tensor(real, 6, "masked")[0, 1]
    for row in scores[[1, 5]]:
        assert row.topk(2).indices.tolist() == [2, 3]  # "Bert", then the full stop behind it
    assert masked[1, 2] == -torch.inf and masked[5, 2] == scores[5, 2]
    assert (masked[1, :2] < 0).all()
    weights = tensor(real, 7, "weights")[0, 1, -1]
    assert [round(w, 2) for w in weights[2:4].tolist()] == [0.96, 0.04]
    assert f"{scores[1, 2]:.1f}" in prose("06_mask")
    assert f"{scores[5, 2]:.1f}" in prose("07_softmax")


def test_one_matrix_for_queries_and_keys_would_find_met(real):
    queries, keys = tensor(real, 4, "queries")[0, 1], tensor(real, 4, "keys")[0, 1]
    assert int((queries[-1] @ keys.T).argmax()) == 2
    assert set((queries[-1] @ queries.T).topk(2).indices.tolist()) == {1, 5}


def test_the_context_of_met_is_the_value_of_bert_but_for_a_little(real):
    values, context = tensor(real, 4, "values")[0, 1], tensor(real, 8, "context")[0, 1, -1]
    assert torch.allclose(context, 0.96 * values[2] + 0.04 * values[3], atol=0.05)


def test_out_proj_says_what_no_head_says_alone(real):
    context, layer = tensor(real, 10, "context")[0, -1], real.layer
    matrix = layer.out_proj.weight.detach().T
    parts = context[:21] @ matrix[:21], context[21:] @ matrix[21:]
    words = ("Bert", "Dora", "saw", ".")
    first, second, out = (
        dict(zip(words, real.raises(part, " ".join(words)).tolist(), strict=True))
        for part in (*parts, tensor(real, 11, "out")[0, -1])
    )
    assert first["saw"] < 0 < first["Bert"] < first["."] and first["Dora"] > 0
    assert second["Dora"] < 0.5 and second["."] < 0 and 0 < second["Bert"] - second["saw"] < 1
    assert out["Bert"] > 2 * max(out[word] for word in words[1:])


# The picture


def test_words_stand_at_rows_and_columns():
    table = torch.tensor([[1.5, -torch.inf], [-3.0, 12.25]])
    drawn = draw_words(table, ["Anna", "met"], "A title", head=1)
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn.svg)
    assert texts == ["A title", "Anna", "met", "Anna", "met", "1.50", "-∞", "-3.00", "12.2"]
    assert drawn.svg.count('stroke-width="3"') == 1  # the last row's largest number
    assert "(num_tokens, num_tokens) = (2, 2)" in drawn.description
    assert drawn.description.endswith("Anna at Anna 1.50, met at met 12.25.")


def test_tables_that_do_not_fit_their_words_are_refused():
    with pytest.raises(ValueError, match=r"shape \(3, 3\), but there are 2 words"):
        draw_words(torch.zeros(3, 3), ["a", "b"], "A title")
    with pytest.raises(ValueError, match="13 words: at most 12"):
        draw_words(torch.zeros(13, 13), ["a"] * 13, "A title")


# The second example


def test_all_sizes_of_the_second_example_differ():
    x = load_second()
    sizes = [*x.shape, 12, 3, 12 // 3]
    assert tuple(x.shape) == (2, 7, 5) and x.dtype == torch.float32
    assert len(set(sizes)) == len(sizes)


def same(mistake, num_heads):
    """Say whether a class with a mistake gives the right numbers for the second example."""

    def built(kind):
        torch.manual_seed(0)
        return kind(5, 12, 9, 0.0, num_heads)

    try:
        return torch.allclose(
            built(wrong_class(mistake))(load_second()),
            built(MultiHeadAttention)(load_second()),
            atol=1e-6,
        )
    except (RuntimeError, ValueError, TypeError, AttributeError):
        return False


def test_what_one_head_hides_is_what_step_4_lists():
    hidden = {name for name in MISTAKES if same(name, 1) and not same(name, 3)}
    assert hidden == {
        *("d_out_per_head", "head_dim_not_divided"),
        *("view_straight", "head_dim_before_heads"),
        *("scores_of_first_head", "scores_summed_over_heads"),
        *("mask_on_first_head", "scale_sqrt_d_out"),
        *("no_transpose_back", "not_contiguous"),
        *("heads_interleaved", "heads_averaged", "heads_summed"),
    }
    rows = re.search(r"What a single head hides\n(.*?)Test with", prose("04_transpose"), re.S)[1]
    steps = [int(number) for number in re.findall(r"^\| (\d+) \|", rows, re.M)]
    assert steps == [1, 3, 5, 6, 7, 9, 10]

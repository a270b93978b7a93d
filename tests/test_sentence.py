"""The numbers that the evening's prose states for "Anna met Bert . Anna met" are the model's."""

import contextlib
import math

import renew
import torch

from eleven_steps.beyond import checkpoints, tiny
from eleven_steps.beyond.grammar import NAMES, read

MODEL, MEETING = checkpoints.load_trained(), checkpoints.MEETING
TWO_NAMES = f"{MEETING} Lena . Anna met"


def prose(name):
    """Return the Markdown of a notebook's evening, its line breaks as spaces."""
    cells = renew.read(renew.COURSE[name]).cells
    fold = next(i for i, cell in enumerate(cells) if cell.source.startswith("## Deeper"))
    texts = (cell.source for cell in cells[:fold] if cell.cell_type == "markdown")
    return " ".join(" ".join(texts).split())


def chances(text, *off):
    """Return the probability of each next word, with some heads (layer, head) switched off."""
    with torch.no_grad(), contextlib.ExitStack() as heads:
        for layer, head in off:
            heads.enter_context(tiny.without_head(MODEL, layer, head))
        return torch.softmax(MODEL(read(text))[0, -1], dim=-1)


def chance(word, text, *off):
    return chances(text, *off)[read(word)[0, 0]].item()


def of_met(text, *off, step=6, layer=1, head=1):
    """Return the last token's row of scores (step 4) or weights (step 6), counted from 0."""
    with torch.no_grad(), contextlib.ExitStack() as heads:
        for each in off:
            heads.enter_context(tiny.without_head(MODEL, *each))
        *_, row = tiny.trace_layers(MODEL, read(text))[layer][step].tensors.values()
    return row[0, head, -1]


@contextlib.contextmanager
def undivided(layer, head):
    """Leave the division by sqrt(head_dim) out of one head."""
    attention = MODEL.layers[layer]
    rows = attention.W_query.weight.data.view(-1, attention.head_dim, attention.d_in)[head]
    rows *= math.sqrt(attention.head_dim)
    try:
        yield
    finally:
        rows /= math.sqrt(attention.head_dim)


def stated():
    """Return what each notebook states, with the numbers as they are measured here."""
    whole, second = chance("Bert", MEETING), [(0, 2)]
    both = [(0, 2), (0, 0)]
    yield "00_start_here", f"with a probability of {whole:.2f}"
    yield "00_start_here", f"than {math.ceil(100 * chances(MEETING, (1, 1)).max()) / 100}"
    yield "00_why_attention", f"from {whole:.2f} to {chance('Bert', MEETING, (1, 1)):.2f}"
    yield "00_why_attention", f"only {of_met(MEETING, *second)[2]:.2f} of its weight"
    yield "00_why_attention", f"falls to {chance('Bert', MEETING, *second):.2f}"
    yield "00_why_attention", f'"Bert" falls to {chance("Bert", MEETING, *both):.2f}'
    best, second_best = of_met(MEETING, step=4).topk(2).values
    yield "05_scores", f'with "Bert" is {best:.1f} and its next best {second_best:.1f}'
    scores = checkpoints.load_sentence(MEETING).steps[4].tensors["scores"][0, 1, 1]
    yield "06_mask", f"{torch.softmax(scores / math.sqrt(21), dim=-1)[2]:.3f} of its weight"
    for name in "07_softmax", "08_context":
        yield name, f"{of_met(MEETING)[2]:.3f}"
    yield "07_softmax", f'predicts "Bert" with {chance("Bert", TWO_NAMES):.2f}'
    with undivided(1, 1):
        yield "07_softmax", f"it would say {chance('Bert', TWO_NAMES):.2f}"
    names = {name: chance(name, "Cleo met Dora . Anna met Bert . Anna met") for name in NAMES}
    yield "13_your_own_class", f'"Dora" gets {names["Dora"]:.2f} and "Bert" {names["Bert"]:.2f}'
    real = checkpoints.load_sentence(MEETING)
    row, matrix = real.steps[9].tensors["context"][0, -1], real.layer.out_proj.weight.detach().T
    raised = [real.raises(row[p] @ matrix[p], " ".join(NAMES)) for p in (slice(21), slice(21, 42))]
    yield "11_out_proj", f"all names by {raised[0].min():.1f} to {raised[0].max():.1f}"
    yield "11_out_proj", f'raises "Bert" by {raised[1].max():.1f} and lowers every other name'
    assert (raised[1] < 0).sum() == len(NAMES) - 1


def test_the_prose_states_what_is_measured():
    assert [(name, words) for name, words in stated() if words not in prose(name)] == []


def test_the_note_is_where_the_three_acts_say():
    with torch.no_grad():
        layer_0 = tiny.trace_layers(MODEL, read(MEETING))[0][6].tensors["weights"][0]
    assert layer_0[:, 2].argmax(dim=-1).tolist() == [1, 1, 1]  # "Bert" attends to "met"
    assert of_met(MEETING).argmax() == 2  # the last "met" to "Bert"
    assert of_met(MEETING, (0, 2), (0, 0)).argmax() == 3  # without the note, to the full stop

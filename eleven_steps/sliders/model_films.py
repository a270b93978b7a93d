"""Films of a whole model: real ones, checkpoints of training, a cache that grows."""

import torch

from eleven_steps.beyond.checkpoints import Checkpoint, load_checkpoints
from eleven_steps.beyond.grammar import read, write
from eleven_steps.beyond.sizes import load_models
from eleven_steps.beyond.tiny import patterns
from eleven_steps.beyond.variants import Cache, VariantAttention
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import trace
from eleven_steps.pictures import Picture, Shown, draw_map, draw_patterns, draw_tensors
from eleven_steps.sliders.film import Film, film


def explore_models() -> Film:
    """Move over real models, and see all eleven shapes of one layer at its context_length."""
    return film(model_at, model=[model.name for model in load_models()])


def model_at(model: str) -> Picture:
    """Draw the map of one layer of a model of data/models.json, one sequence as long as allowed."""
    size = next(size for size in load_models() if size.name == model)
    with torch.device("meta"):  # shapes without numbers: nothing is computed or stored
        mha = MultiHeadAttention(size.d_out, size.d_out, size.context_length, 0.0, size.num_heads)
        x = torch.empty(1, size.context_length, size.d_out)
    return draw_map(trace(mha, x))


def explore_checkpoints(sentence: str) -> Film:
    """Draw the weights of each head for a sentence, checkpoint by checkpoint."""
    checkpoints = {checkpoint.step: checkpoint for checkpoint in load_checkpoints()}
    end = {"step": max(checkpoints)}  # at the start all rows are even
    return film(lambda step: heads_at(checkpoints[step], sentence), end, step=checkpoints)


def heads_at(checkpoint: Checkpoint, sentence: str) -> Picture:
    """Draw every head at one checkpoint; below its name, where the last word looks."""
    tokens = read(sentence)
    words = write(tokens[0])
    layers = [weights[0] for weights in patterns(checkpoint.model, tokens)]
    notes = [
        [f"{words[-1]} > {words[int(w[-1].argmax())]} {w[-1].max():.2f}" for w in layer]
        for layer in layers
    ]
    title = f"After {checkpoint.step} steps: loss on names {checkpoint.loss:.2f}"
    return draw_patterns(layers, words, notes, title)


def explore_cache(mha: VariantAttention, x: torch.Tensor) -> Film:
    """Move through x (1, num_tokens, d_in) by token: what was kept, what the new one adds."""
    start = {"token": x.shape[1] // 2}
    return film(lambda token: arriving(mha, x, token), start, token=range(x.shape[1]))


def arriving(mha: VariantAttention, x: torch.Tensor, token: int) -> Picture:
    """Draw the arrival of one token of x (1, num_tokens, d_in): its key and its row framed."""
    cached = mha.plus(Cache())
    rows = torch.zeros(1, mha.num_heads, token + 1, token + 1)
    for place in range(token + 1):
        steps = trace(cached, x[:, place : place + 1])
        rows[:, :, place, : place + 1] = steps[6].tensors["weights"][:, :, 0]
    keys = cached.part(Cache).kept[0]  # (1, num_kv_heads, token + 1, head_dim)
    new = [(0, head, token, j) for head in range(keys.shape[1]) for j in range(keys.shape[3])]
    row = [(0, head, token, j) for head in range(mha.num_heads) for j in range(token + 1)]
    shown = [
        Shown(keys, "keys kept", "b num_kv_heads num_tokens head_dim", marked=new),
        Shown(rows, "weights", "b num_heads num_tokens num_tokens", marked=row, shade=True),
    ]
    scores = f"{token + 1} of {(token + 1) ** 2} scores in each head"
    title = f"Token {token} brings one row: {scores}"
    return draw_tensors(shown, title, ["one new row, framed; the rows above were done before"])

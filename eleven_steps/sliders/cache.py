"""A slider over tokens that arrive one by one, with what is kept of those before."""

import torch

from eleven_steps.beyond.variants import Cache, VariantAttention
from eleven_steps.pictures import Picture, Shown, draw_tensors
from eleven_steps.sliders.film import Film, film
from helpers.trace import trace


def explore_cache(mha: VariantAttention, x: torch.Tensor) -> Film:
    """Move through x, token by token: keys and values kept before, and what the new one adds."""
    start = {"token": x.shape[1] // 2}
    return film(lambda token: arriving(mha, x, token), start, token=range(x.shape[1]))


def arriving(mha: VariantAttention, x: torch.Tensor, token: int) -> Picture:
    """Draw one token's arrival: all keys with the new one framed, all weights with its row."""
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

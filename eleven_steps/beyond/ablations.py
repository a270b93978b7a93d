"""Cut paths between heads of the tiny model, and measure what it can still do.

with without_path(model, [2], reads="keys"): ...     layer 1's keys without layer 0's head 2
measure_all(model, stories, seed)                    every measurement for one of the ten seeds
"""

import contextlib
import random
from collections.abc import Iterator, Sequence

import torch

from eleven_steps.beyond.grammar import MEETINGS, NAMES, NUMBERS, WORDS, Stories
from eleven_steps.beyond.tiny import (
    Report,
    TinyModel,
    check_head,
    measure,
    patterns,
    prefix_matching,
    without_head,
)
from eleven_steps.helpers.examples import load_example

READERS = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
TWICE = 20  # number of random words in a text that then repeats them

# The measurements that data/seeds.json holds for each seed: name, and meaning.
MEASUREMENTS = load_example("seeds").meanings


@contextlib.contextmanager
def without_path(model: TinyModel, heads: Sequence[int], reads: str) -> Iterator[None]:
    """Hide the output of some heads of layer 0 from the queries, keys or values of layer 1.

    Everything else still reads the whole residual stream. reads is "queries", "keys" or "values".
    """
    if reads not in READERS:
        raise ValueError(f"reads is {reads!r}: one of {', '.join(READERS)} is expected")
    for head in heads:
        check_head(model, 0, head)
    first, second = model.layers
    contexts: list[torch.Tensor] = []  # (b, num_tokens, d_out) of each call

    def store(_, inputs: tuple[torch.Tensor]) -> None:
        contexts.append(inputs[0])

    def cut(_, inputs: tuple[torch.Tensor]) -> torch.Tensor:
        (x,) = inputs
        for head in heads:
            part = slice(head * first.head_dim, (head + 1) * first.head_dim)
            x = x - contexts[-1][..., part] @ first.out_proj.weight[:, part].T
        return x

    with (
        first.out_proj.register_forward_pre_hook(store),
        getattr(second, READERS[reads]).register_forward_pre_hook(cut),
    ):
        yield


def prefix_on_random(model: TinyModel, seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Measure layer 1's prefix matching on repeated random words, which are not stories.

    Returns:
        Two tensors (num_heads,): over all repeated words, and over the repeated verbs of meeting
        that are followed by a name, as in stories.
    """
    draw = torch.Generator().manual_seed(seed)
    once = torch.stack([torch.randperm(len(WORDS), generator=draw)[:TWICE] for _ in range(400)])
    tokens = once.repeat(1, 2)  # (b, 2 * TWICE)
    with torch.no_grad():
        weights = patterns(model, tokens)[1]
    again = torch.zeros_like(tokens, dtype=torch.bool)
    again[:, TWICE:-1] = True
    after = tokens.roll(-1, dims=1)
    meeting, name = (torch.tensor([NUMBERS[w] for w in words]) for words in (MEETINGS, NAMES))
    as_told = again & torch.isin(tokens, meeting) & torch.isin(after, name)
    return prefix_matching(weights, tokens, again), prefix_matching(weights, tokens, as_told)


def measure_all(model: TinyModel, stories: Stories, seed: int) -> dict[str, float]:
    """Take all MEASUREMENTS except the control, which is a different model.

    The seed draws the head that is removed for comparison.
    """
    report = measure(model, stories)
    layer, head = report.best
    backs = report.looking_back
    rest = {(i, j) for i, row in enumerate(report.prefix) for j in range(len(row))}
    rest -= {(0, back) for back in backs} | {report.best}
    another = random.Random(seed).choice(sorted(rest))
    random_words, names_after_verbs = prefix_on_random(model, seed)

    def measured_without(cut: contextlib.AbstractContextManager) -> Report:
        with cut:
            return measure(model, stories)

    heads = range(model.layers[1].num_heads)
    verbs_without = [measured_without(without_head(model, 1, one)).agreement for one in heads]
    return {
        "whole": report.names,
        "without_another": measured_without(without_head(model, *another)).names,
        "without_completing": measured_without(without_head(model, layer, head)).names,
        "without_looking_back": measured_without(without_head(model, 0, backs[0])).names,
        **{
            f"{way}_cut": measured_without(without_path(model, backs, way)).names for way in READERS
        },
        "verbs": report.agreement,
        "verbs_without_one": torch.tensor(verbs_without).min().item(),  # NaN stays NaN
        "prefix": report.prefix[layer][head],
        "prefix_random": random_words[head].item(),
        "prefix_random_names": names_after_verbs[head].item(),
    }

"""Time pieces of code against each other, in turns, so that load on the machine affects all."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from time import perf_counter

from torch import Tensor, nn

from eleven_steps.helpers.attention import check_sizes


def time_in_turns(works: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Run every function once in each round; return the shortest time of each in milliseconds."""
    check_sizes(rounds=rounds)
    shortest = dict.fromkeys(works, float("inf"))
    for _ in range(rounds):
        for name, work in works.items():
            start = perf_counter()
            work()
            shortest[name] = min(shortest[name], (perf_counter() - start) * 1000)
    return shortest


def time_steps(module: nn.Module, x: Tensor, rounds: int) -> dict[str, float]:
    """Run module(x) in each round, and return the shortest time of each step in milliseconds.

    The module's forward takes a record, as MultiHeadAttention's does; x is (b, num_tokens, d_in).
    """
    check_sizes(rounds=rounds)
    shortest: dict[str, float] = {}
    for _ in range(rounds):
        stamps = [("", perf_counter())]
        module(x, record=lambda name, stamps=stamps, **_: stamps.append((name, perf_counter())))
        for (_, start), (name, end) in pairwise(stamps):
            shortest[name] = min(shortest.get(name, float("inf")), (end - start) * 1000)
    return shortest

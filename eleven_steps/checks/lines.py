"""List the lines of a step, and what the catalogue's mistakes make of each line."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from eleven_steps.checks.mistakes import LINES, MISTAKES, class_of, edited_source, with_edits
from eleven_steps.helpers.attention import MultiHeadAttention

# For each step: the step and tensor whose numbers show a mistake, then what Break it offers.
BROKEN = {
    "view": "transpose queries view_straight view_tokens_last head_dim_before_heads "
    "view_mixes_batch heads_last",
    "scores": "scores scores scores_transposed keys_not_flipped keys_viewed products_not_summed "
    "scores_summed_over_heads keys_from_W_query keys_from_W_value",
    "mask": "mask masked mask_off_by_one diagonal_masked past_masked no_mask mask_zero "
    "mask_too_weak mask_plus_inf mask_inverted mask_added",
    "softmax": "softmax weights scale_sqrt_d_out scale_head_dim scale_sqrt_num_tokens "
    "scale_sqrt_num_heads scale_multiplied no_scale softmax_over_queries softmax_over_heads "
    "softmax_twice sigmoid_for_softmax",
    "reformat": "combine context no_transpose_back features_swapped_back last_dims_swapped_back",
    "combine": "combine context not_contiguous heads_interleaved heads_averaged heads_summed",
}
TOGETHER = {"swap_keys": "swap_queries", "swap_values": "swap_queries"}  # edited together


@dataclass(frozen=True)
class Choices:
    """Hold one line of the class, and the wrong ways to write it."""

    texts: tuple[str, ...]  # the line, the right one first
    # The edits that make each text, by the names of lines; none make the right one
    edits: tuple[Mapping[str, str], ...]


@dataclass(frozen=True)
class Chosen:
    """Hold one choice of lines."""

    chosen: tuple[int, ...]  # index of the text of each line
    cls: type[MultiHeadAttention]
    why: tuple[str, ...]  # why it matters, for each catalogued mistake in it


@dataclass(frozen=True)
class WrongLines:
    """Hold what can be changed in the lines of a step."""

    step: str
    shown: tuple[str, str]  # step and tensor in whose numbers a change shows
    lines: tuple[Choices, ...]  # the lines that can be changed, in the order of the class

    def states(self) -> Iterator[Chosen]:
        """Yield every choice, the right lines first."""
        for chosen in itertools.product(*(range(len(line.texts)) for line in self.lines)):
            chosen_edits = [line.edits[k] for line, k in zip(self.lines, chosen, strict=True)]
            edits = {LINES[name]: new for own in chosen_edits for name, new in own.items()}
            source = with_edits(edited_source(), {self.step: edits})
            yield Chosen(chosen, class_of(source), reasons(chosen_edits))


def wrong_lines(step: str) -> WrongLines:
    """Return the lines of a step and their wrong versions, for sliders.break_step.

    Args:
        step: "view", "scores", "mask", "softmax", "reformat" or "combine".

    Raises:
        ValueError: it is another step.
    """
    if step not in BROKEN:
        raise ValueError(f"step is {step!r}: one of {', '.join(BROKEN)} is expected")
    at, tensor, *names = BROKEN[step].split()
    made: dict[str, list[Mapping[str, str]]] = {}  # by line, in the order they are named
    for name in names:
        by_line: dict[str, dict[str, str]] = {}  # lines of q, k and v are joined
        for line, new in MISTAKES[name].edits.items():
            by_line.setdefault(TOGETHER.get(line, line), {})[line] = new
        for line, edits in by_line.items():
            every = made.setdefault(line, [{}])
            if edits not in every:
                every.append(edits)
    rows = ((line, LINES[line], made[line]) for line in LINES if line in made)
    lines = (Choices(tuple(e.get(line, text) for e in own), tuple(own)) for line, text, own in rows)
    return WrongLines(step, (at, tensor), tuple(lines))


def reasons(changes: list[Mapping[str, str]]) -> tuple[str, ...]:
    """Return why a choice matters: the reason of its mistake, or of each of its lines."""
    known = {frozenset(mistake.edits.items()): mistake.why for mistake in MISTAKES.values()}
    every = [frozenset(edits.items()) for edits in changes]
    whole = known.get(frozenset(itertools.chain(*every)))
    return (whole,) if whole else tuple(known[edits] for edits in every if edits in known)

"""Sliders over films: every picture is drawn when the cell runs, the slider only chooses one."""

import hashlib
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any

import ipywidgets as widgets
import torch

from helpers.attention import MultiHeadAttention
from helpers.examples import load_example, load_whiteboard
from helpers.pictures import (
    Arrow,
    Picture,
    Shown,
    draw_attention,
    draw_follow,
    draw_map,
    draw_matrices,
    draw_memory,
    draw_product,
    draw_running,
    draw_tensor,
    draw_tensors,
    draw_vectors,
    storage,
)
from helpers.pictures.memory import pieces, read_by
from helpers.sizes import load_models
from helpers.trace import SHAPES, Step, trace

MOST = 40

LABELS = {
    "b": "sequences (b)",
    "num_tokens": "tokens (num_tokens)",
    "d_in": "input features (d_in)",
    "d_out": "output features (d_out)",
    "num_heads": "number of heads (num_heads)",
    "context_length": "context_length",
    "head": "head",
    "query": "query token",
    "key": "key token",
    "token": "token",
    "feature": "feature",
    "place": "number to follow",
    "sentence": "sentence",
    "words_read": "other words read",
    "temperature": "temperature",
    "angle": "angle in degrees",
    "length": "length of the key",
    "model": "model",
    "size": "keys in a block",
    "block": "block read last",
}

# ipywidgets ties no label to a slider's handle, announces an index instead of the value, and lets
# letters typed on the handle reach JupyterLab as commands: this makes all three right. It also
# gives a value that is a text the room it needs.
NAME_SLIDERS = """<style onload="
const film = this.closest('.film');
const name = () => film.querySelectorAll('.widget-slider').forEach(slider => {
  const handle = slider.querySelector('[role=slider]');
  handle.setAttribute('aria-label', slider.querySelector('label').textContent);
  handle.setAttribute('aria-valuetext', slider.querySelector('.widget-readout').textContent);
  handle.dataset.lmSuppressShortcuts = true;
});
new MutationObserver(name).observe(film, {childList: true, subtree: true, characterData: true});
name();
">.film .widget-readout { flex: none; }</style>"""

# What the sliders over one number of a tensor are called.
AXES = {
    "num_tokens": "token",
    "num_heads": "head",
    "head_dim": "feature",
    "d_in": "feature",
    "d_out": "feature",
}

Choices = Iterable[Any] | Callable[..., Iterable[Any]]


class Film(widgets.VBox):
    """Show one picture of many, chosen by sliders; it needs no kernel once it stands.

    Attributes:
        pictures: every picture by its slider values, in the order of the sliders.
        names: what the sliders are for, in the same order.
        start: the slider values shown first.
    """

    def __init__(
        self,
        controls: widgets.Widget,
        pictures: Mapping[tuple, Picture],
        names: tuple[str, ...],
        start: tuple,
    ):
        naming = widgets.HTML(NAME_SLIDERS, layout={"display": "none"})
        super().__init__([controls, naming], _dom_classes=("film",))
        self.pictures = pictures
        self.names = names
        self.start = start

    def __repr__(self) -> str:
        start = self.pictures[self.start]
        every = "".join(picture.svg for picture in self.pictures.values())
        places = ", ".join(" ".join(map(str, position)) for position in self.pictures)
        return (
            f"{start.title} {start.description}\n"
            f"{len(self.pictures)} positions ({', '.join(self.names)}): {places}\n"
            f"hash over all pictures: {hashlib.sha256(every.encode()).hexdigest()[:16]}"
        )

    def _repr_mimebundle_(self, **kwargs) -> dict[str, Any]:
        view = super()._repr_mimebundle_(**kwargs)
        still = self.pictures[self.start]._repr_mimebundle_()
        return {**view, **still, "text/plain": repr(self)}


def film(
    draw: Callable[..., Picture], start: Mapping[str, Any] | None = None, **positions: Choices
) -> Film:
    """Draw a picture for every legal position of some sliders, and put the sliders over them.

    Args:
        draw: takes the slider values by name and returns a Picture.
        start: the value each slider begins with; the first one where it says nothing.
        positions: the values of each slider in order, or a function that takes the values of the
            sliders before it by name and returns them: only legal positions exist.

    Raises:
        ValueError: a slider has no value, or there are more than 40 positions.
    """
    names, table = tuple(positions), list(legal(positions))
    if not table or len(table) > MOST:
        raise ValueError(
            f"{', '.join(names)} have {len(table)} positions: from 1 to {MOST} make a film"
        )
    pictures = {position: draw(**dict(zip(names, position, strict=True))) for position in table}
    width = max(picture.width for picture in pictures.values())
    height = max(picture.height for picture in pictures.values())
    pictures = {position: p.padded(width, height) for position, p in pictures.items()}

    first = table[0]
    for i, name in enumerate(names):
        wanted = [p for p in table if p[: i + 1] == (*first[:i], (start or {}).get(name))]
        first = (wanted or [first])[0]
    return Film(controls(names, pictures, start or {}, {}), pictures, names, first)


def legal(positions: Mapping[str, Choices], **chosen: Any) -> Iterable[tuple]:
    """Yield every combination of slider values that the choices allow, in order."""
    if len(chosen) == len(positions):
        yield tuple(chosen.values())
        return
    name = list(positions)[len(chosen)]
    choices = positions[name]
    for value in choices(**chosen) if callable(choices) else choices:
        yield from legal(positions, **chosen, **{name: value})


def controls(
    names: tuple[str, ...],
    pictures: Mapping[tuple, Picture],
    start: Mapping[str, Any],
    twins: dict[tuple, widgets.SelectionSlider],
) -> widgets.Widget:
    """Return a slider over a Stack of the next sliders, and the pictures under the last one."""
    if not names:
        return widgets.HTML(pictures[()].svg)
    name, *rest = names
    values = tuple(dict.fromkeys(position[0] for position in pictures))
    below = [
        controls(
            tuple(rest), {p[1:]: one for p, one in pictures.items() if p[0] == v}, start, twins
        )
        for v in values
    ]
    if len(values) == 1:
        return widgets.VBox([widgets.Label(f"{LABELS.get(name, name)}: {values[0]}"), *below])
    slider = widgets.SelectionSlider(
        options=values,
        value=start[name] if start.get(name) in values else values[0],
        description=LABELS.get(name, name),
        style={"description_width": "230px"},
        layout={"width": "480px"},
    )
    stack = widgets.Stack(below, selected_index=slider.index)
    widgets.jslink((slider, "index"), (stack, "selected_index"))
    # The same slider stands once under each position of the one before it: they move as one.
    twin = twins.setdefault((name, values), slider)
    if twin is not slider:
        widgets.jslink((twin, "index"), (slider, "index"))
    return widgets.VBox([slider, stack])


def divisors(d_out: int, **before: Any) -> list[int]:
    """Return the numbers of heads that d_out can be split into."""
    return [n for n in range(1, d_out + 1) if d_out % n == 0]


WIDTHS = (2, 4, 6, 8, 12)
START = {"b": 1, "num_tokens": 3, "d_out": 6, "num_heads": 2}


def explore_map() -> Film:
    """Move num_tokens, d_out and num_heads over the map of the whole block."""
    return film(map_at, START, num_tokens=(2, 3, 4), d_out=(4, 6, 12), num_heads=divisors)


# A journey through all kinds of numbers, and two that end on the way: a future token's score,
# and the one score of the first token, whose weight is 1 whatever it is.
FOLLOWED = (
    "x[0, 0, 1]",
    "x[0, 2, 0]",
    "queries[0, 1, 5]",
    "queries[0, 2, 0]",
    "keys[0, 0, 1]",
    "keys[0, 2, 4]",
    "values[0, 1, 1]",
    "values[0, 2, 5]",
    "scores[0, 0, 2, 1]",
    "scores[0, 0, 0, 2]",
    "scores[0, 0, 0, 0]",
    "masked[0, 1, 2, 0]",
    "weights[0, 0, 2, 1]",
    "context[0, 1, 2]",
    "context[0, 2, 3]",
    "out[0, 0, 0]",
    "out[0, 2, 5]",
)


def explore_follow() -> Film:
    """Move over telling numbers of the whole block, and see where each comes from and goes."""
    return film(follow_at, place=FOLLOWED)


def explore_neighbours(name: str, *steps: str) -> Film:
    """Move over all numbers of a tensor, as "view.queries", and follow each through some steps.

    Raises:
        KeyError: there is no such tensor.
        ValueError: as draw_follow does.
    """
    step, _, tensor = name.partition(".")
    shape = run()[1][step][tensor].shape[1:]
    letters = SHAPES[step].strip("()").split(", ")[1:]
    names = [AXES[letter] for letter in letters]
    if names[-2:] == ["token", "token"]:
        names[-2:] = ["query", "key"]
    choices = dict(zip(names, map(range, shape), strict=True))
    return film(partial(neighbours_at, which=(name, steps)), **choices)


def explore_storage(*which: str) -> Film:
    """Move num_heads and the head whose places are framed in storage, as "transpose.queries"."""
    draw = partial(storage_at, which=which)
    return film(draw, START, num_heads=(1, 2, 3, 6), head=lambda num_heads: range(num_heads))


# The sentences of the first notebook, by the words that tell which bank is meant.
SENTENCES = {
    "credit card": "he went to the bank for his credit card",
    "ducks": "the ducks were swimming near the bank",
}


def explore_meaning() -> Film:
    """Move over two sentences and the words read so far, and see the vector of "bank" move."""
    return film(
        meaning_at,
        {"words_read": 8},
        sentence=SENTENCES,
        words_read=lambda sentence: range(len(SENTENCES[sentence].split())),
    )


def explore_search() -> Film:
    """Move the temperature of a search: at 0 the best key takes all, above that keys share."""
    return film(search_at, {"temperature": 1}, temperature=(0, 0.25, 0.5, 1, 2, 4, 16))


def explore_angle() -> Film:
    """Move the angle between a query and a key, and the key's length, and see the dot product."""
    return film(angle_at, {"angle": 60, "length": 2}, angle=range(0, 181, 15), length=(1, 2))


def explore_shape() -> Film:
    """Move the sequences and tokens of the input x (b, num_tokens, d_in)."""
    return film(shape_at, START, b=(1, 2, 3), num_tokens=range(1, 7))


def explore_heads() -> Film:
    """Move d_out and num_heads, and see which features each head gets."""
    return film(heads_at, START, d_out=WIDTHS, num_heads=divisors)


def explore_project() -> Film:
    """Move d_out and num_heads of one projection, with each head's share of W_query."""
    return film(project_at, START, d_out=WIDTHS[:4], num_heads=divisors)


def explore_view() -> Film:
    """Move d_out and num_heads over the queries before and after step 3."""
    return film(view_at, START, d_out=WIDTHS, num_heads=divisors)


def explore_transpose() -> Film:
    """Move d_out and num_heads over the queries before and after step 4."""
    return film(transpose_at, START, d_out=WIDTHS, num_heads=divisors)


def explore_scores() -> Film:
    """Move d_out and num_heads over the queries, the keys and their scores."""
    return film(scores_at, START, d_out=WIDTHS[:3], num_heads=divisors)


def explore_scores_tokens() -> Film:
    """Move num_tokens over the scores of two heads: they grow with its square."""
    return film(scores_grow_at, START, num_tokens=range(1, 7))


def explore_mask() -> Film:
    """Move num_tokens and num_heads over the scores before and after the mask."""
    return film(mask_at, START, num_tokens=range(1, 7), num_heads=(1, 2))


def explore_softmax() -> Film:
    """Move num_tokens and num_heads over the masked scores and their weights."""
    return film(softmax_at, START, num_tokens=range(1, 7), num_heads=(1, 2))


def explore_attention() -> Film:
    """Move the head and the query token over one row of attention, from score to context."""
    return film(attention_at, {"query": 2}, head=range(2), query=range(6))


def explore_context() -> Film:
    """Move d_out and num_heads over the weights, the values and the context."""
    return film(context_at, START, d_out=WIDTHS[:3], num_heads=divisors)


def explore_context_product() -> Film:
    """Move the head, the query token and the feature over one number of the context."""
    return film(context_product_at, {"query": 1}, head=range(2), query=range(3), feature=range(3))


def explore_running(scaled: torch.Tensor, values: torch.Tensor) -> Film:
    """Move the size of the blocks and the block read last, for scores (num_tokens,) and values."""
    choices = {"size": range(1, len(scaled) + 1)}
    choices["block"] = lambda size: range(math.ceil(len(scaled) / size))
    return film(partial(draw_running, scaled, values), {"size": 2}, **choices)


def explore_reformat() -> Film:
    """Move d_out and num_heads over the context before and after step 9."""
    return film(reformat_at, START, d_out=WIDTHS, num_heads=divisors)


def explore_combine() -> Film:
    """Move d_out and num_heads over the context before and after step 10."""
    return film(combine_at, START, d_out=WIDTHS, num_heads=divisors)


def explore_out_proj() -> Film:
    """Move d_out and num_heads over the last matrix product."""
    return film(out_proj_at, START, d_out=WIDTHS[:4], num_heads=divisors)


def explore_blocks() -> Film:
    """Move num_heads and the head whose block of W_query makes that head's queries."""
    choices = {"num_heads": (1, 2, 3, 6), "head": lambda num_heads: range(num_heads)}
    return film(block_at, START, **choices)


def explore_models() -> Film:
    """Move over real models, and see all eleven shapes of one layer at its context_length."""
    return film(model_at, model=[model.name for model in load_models()])


def explore_memory(before: str, after: str) -> Film:
    """Move d_out and num_heads over the storage of two tensors, as "project.queries"."""
    draw = partial(memory_at, which=(before, after))
    return film(draw, START, d_out=WIDTHS, num_heads=divisors)


def map_at(num_tokens: int, d_out: int, num_heads: int) -> Picture:
    """Draw the map of the whole block."""
    return draw_map(traced(d_out, num_heads, num_tokens)[1])


def follow_at(place: str) -> Picture:
    """Draw the whole block with one number followed, named as "scores[0, 0, 2, 1]"."""
    name, index = place.strip("]").split("[")
    return draw_follow(traced()[1], name, list(map(int, index.split(","))))


def neighbours_at(which: tuple[str, tuple[str, ...]], **index: int) -> Picture:
    """Draw some steps with the number followed that stands at an index of a tensor."""
    name, steps = which
    return draw_follow(traced()[1], name, (0, *index.values()), steps)


def meaning_at(sentence: str, words_read: int) -> Picture:
    """Draw "bank" alone and in the context of itself and the first other words of a sentence."""
    table, words = load_example("words"), SENTENCES[sentence].split()
    place = words.index("bank")
    read = [i for i in range(len(words)) if i == place or i - (i > place) < words_read]
    names = [words[i] for i in read]
    x = table["embedding"][[table.rows["embedding"].index(name) for name in names]]
    # Attention without a mask: over the values it gives the context, over ones the weights.
    query, keys = x[names.index("bank")][None], x  # W_query and W_key change nothing here
    attend = torch.nn.functional.scaled_dot_product_attention
    bank = (query + attend(query, keys, x @ table["W_value"]))[0].tolist()
    weights = attend(query, keys, torch.eye(len(x)))[0].tolist()
    arrows = [
        Arrow(name if max(vector) > 1 else "", vector)
        for name, vector in zip(names, x.tolist(), strict=True)
        if name != "bank"
    ]
    arrows += [Arrow("bank alone", query[0].tolist(), "dashed")]
    arrows += [Arrow("bank in context", bank, "strong")]
    degrees = math.degrees(math.atan2(bank[1], bank[0]))
    unread = [name if i in read else "..." for i, name in enumerate(words)]
    return draw_vectors(
        arrows,
        f"{' '.join(unread)}: {degrees:.0f} degrees",
        ("nature", "money"),
        ((0, 0), (4, 4)),
        list(zip(names, weights, strict=True)),
    )


def search_at(temperature: float) -> Picture:
    """Draw what a query about nature finds among six words at a temperature."""
    table = load_example("words")
    names = ["ducks", "swimming", "near", "bank", "card", "credit"]
    keys = table["embedding"][[table.rows["embedding"].index(name) for name in names]]
    scores = keys @ torch.tensor([1.0, 0.0])
    weights = torch.zeros_like(scores)
    weights[scores.argmax()] = 1
    if temperature:
        weights = torch.softmax(scores / temperature, dim=-1)
    answer = ", ".join(f"{feature:.2f}" for feature in (weights @ keys).tolist())
    return draw_matrices(
        {"scores": scores[None], "weights": weights[None], "values.T": keys.T},
        f"Temperature {temperature}: ducks get {weights[0]:.2f}, the answer is ({answer})",
        columns=names,
        shade="weights",
    )


def angle_at(angle: int, length: int) -> Picture:
    """Draw a query of length 3 and a key at an angle, with their dot product."""
    turned = math.radians(angle)
    key = length * math.cos(turned), length * math.sin(turned)
    return draw_vectors(
        [Arrow("query", (3, 0), "strong"), Arrow("key", key, "strong")],
        f"query . key = 3 x {length} x cos({angle}) = {3 * key[0] + 0.0:.2f}",
        corners=((-2, 0), (3, 2)),
        angle=(0, 1),
    )


def shape_at(b: int, num_tokens: int) -> Picture:
    """Draw x for b equal sequences of num_tokens tokens."""
    shown = Shown(tokens(num_tokens).expand(b, -1, -1), "x", "b num_tokens d_in")
    return draw_tensor(shown, f"{count(b, 'sequence')} of {count(num_tokens, 'token')}")


def heads_at(d_out: int, num_heads: int) -> Picture:
    """Draw the numbers of d_out features, one colour per head."""
    shown = Shown(torch.arange(d_out)[None], "features", "num_tokens d_out", num_heads)
    return draw_tensor(shown, f"d_out = {d_out}: {split(d_out, num_heads)}")


def project_at(d_out: int, num_heads: int) -> Picture:
    """Draw queries = x @ W_query, each column in the colour of the head that will own it."""
    mha, steps = run(d_out, num_heads)
    return draw_product(
        Shown(tokens()[0], "x", "num_tokens d_in"),
        Shown(mha.W_query.weight.detach().T, "W_query", "d_in d_out", num_heads),
        Shown(steps["project"]["queries"][0], "queries", "num_tokens d_out", num_heads),
        row=1,
        column=d_out - 1,
    )


def view_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries before and after step 3."""
    shown = at_steps(run(d_out, num_heads), "project.queries", "view.queries")
    return draw_tensors(shown, f"Each token keeps {split(d_out, num_heads)}", ["view"])


def transpose_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries before and after step 4."""
    shown = at_steps(run(d_out, num_heads), "view.queries", "transpose.queries")
    title = f"{count(num_heads, 'head')}, each with all {START['num_tokens']} tokens"
    return draw_tensors(shown, title, ["transpose(1, 2)"])


def scores_at(d_out: int, num_heads: int) -> Picture:
    """Draw the queries, the keys and the scores of every head."""
    which = "transpose.queries", "transpose.keys", "scores.scores"
    shown = at_steps(run(d_out, num_heads), *which)
    title = f"{count(num_heads, 'table')} of scores, however wide d_out = {d_out} is"
    return draw_tensors(shown, title, ["and", "queries @ keys.transpose(2, 3)"])


def scores_grow_at(num_tokens: int) -> Picture:
    """Draw the scores of num_tokens tokens in two heads."""
    (shown,) = at_steps(run(num_tokens=num_tokens), "scores.scores")
    return draw_tensor(shown, f"{count(num_tokens, 'token')}: {num_tokens**2} scores in each head")


def mask_at(num_tokens: int, num_heads: int) -> Picture:
    """Draw the scores before and after step 6."""
    shown = at_steps(run(6, num_heads, num_tokens), "scores.scores", "mask.masked")
    future = num_tokens * (num_tokens - 1) // 2
    title = f"{count(num_tokens, 'token')}: {future} of {num_tokens**2} scores per head are future"
    return draw_tensors(shown, title, ["masked_fill(future, -inf)"])


def softmax_at(num_tokens: int, num_heads: int) -> Picture:
    """Draw the masked scores and the weights that step 7 makes of them."""
    shown = at_steps(run(6, num_heads, num_tokens), "mask.masked", "softmax.weights")
    title = f"{count(num_tokens * num_heads, 'row')} of weights, each adds up to 1"
    return draw_tensors(shown, title, [f"softmax(masked / {6 // num_heads}**0.5)"])


def attention_at(head: int, query: int) -> Picture:
    """Draw one row of attention, of six tokens."""
    return draw_attention(traced(num_tokens=6)[1], head, query)


def context_at(d_out: int, num_heads: int) -> Picture:
    """Draw the weights, the values and the context that step 8 makes of them."""
    which = "softmax.weights", "transpose.values", "context.context"
    shown = at_steps(run(d_out, num_heads), *which)
    return draw_tensors(shown, "Weights mix the values of one head", ["and", "weights @ values"])


def context_product_at(head: int, query: int, feature: int) -> Picture:
    """Draw context = weights @ values of one head, following the query's feature."""
    _, steps = run()
    left, right, product = (
        Shown(steps[step][name][0, head], name, letters, only_head=head)
        for step, name, letters in (
            ("softmax", "weights", "num_tokens num_tokens"),
            ("transpose", "values", "num_tokens head_dim"),
            ("context", "context", "num_tokens head_dim"),
        )
    )
    return draw_product(left, right, product, row=query, column=feature)


def reformat_at(d_out: int, num_heads: int) -> Picture:
    """Draw the context before and after step 9."""
    shown = at_steps(run(d_out, num_heads), "context.context", "reformat.context")
    title = f"Each token gets its {count(num_heads, 'head')} back"
    return draw_tensors(shown, title, ["transpose(1, 2)"])


def combine_at(d_out: int, num_heads: int) -> Picture:
    """Draw the context before and after step 10."""
    shown = at_steps(run(d_out, num_heads), "reformat.context", "combine.context")
    title = f"{split(d_out, num_heads)}, side by side: d_out = {d_out}"
    return draw_tensors(shown, title, ["contiguous().view(b, num_tokens, d_out)"])


def out_proj_at(d_out: int, num_heads: int) -> Picture:
    """Draw out = context @ weight + bias, the context in the colours of its heads."""
    mha, steps = run(d_out, num_heads)
    out = steps["out_proj"]["out"][0] - mha.out_proj.bias.detach()
    return draw_product(
        Shown(steps["combine"]["context"][0], "context", "num_tokens d_out", num_heads),
        Shown(mha.out_proj.weight.detach().T, "out_proj.weight.T", "d_out d_out"),
        Shown(out, "out - bias", "num_tokens d_out"),
        row=1,
        column=d_out - 1,
    )


def block_at(num_heads: int, head: int) -> Picture:
    """Draw one head's queries = x @ its columns of W_query."""
    mha, steps = run(6, num_heads)
    block = mha.W_query.weight.detach().chunk(num_heads)[head].T
    return draw_product(
        Shown(tokens()[0], "x", "num_tokens d_in"),
        Shown(block, f"block {head} of W_query", "d_in head_dim", only_head=head),
        Shown(
            steps["transpose"]["queries"][0, head],
            f"queries of head {head}",
            "num_tokens head_dim",
            only_head=head,
        ),
        row=1,
        column=0,
    )


def model_at(model: str) -> Picture:
    """Draw the map of one layer of a model of data/models.json, one sequence as long as allowed."""
    size = next(each for each in load_models() if each.name == model)
    with torch.device("meta"):  # shapes without numbers: nothing is computed or stored
        mha = MultiHeadAttention(size.d_out, size.d_out, size.context_length, 0.0, size.num_heads)
        x = torch.empty(1, size.context_length, size.d_out)
    return draw_map(trace(mha, x))


def memory_at(d_out: int, num_heads: int, which: tuple[str, str]) -> Picture:
    """Draw the storage of a tensor before and after a step, as "view.queries"."""
    before, after = at_steps(run(d_out, num_heads), *which)
    moved = not torch.equal(storage(before.tensor), storage(after.tensor))
    title = "The numbers are copied into a new order" if moved else "No number moves in memory"
    return draw_memory([before, after], title, [which[1].split(".")[0]])


def storage_at(num_heads: int, head: int, which: tuple[str, ...]) -> Picture:
    """Draw the storage of tensors with the places framed that one head reads."""
    shown = at_steps(run(6, num_heads), *which)
    found = [
        count(len(pieces(i for i, heads in read_by(one).items() if head in heads)), "piece")
        for one in shown
    ]
    title = f"Head {head} of {num_heads} reads {', '.join(found)}"
    return draw_memory(shown, title, head=head)


Run = tuple[MultiHeadAttention, dict[str, dict[str, torch.Tensor]]]


def run(d_out: int = 6, num_heads: int = 2, num_tokens: int = 3) -> Run:
    """Build the lesson's module at these sizes and return it with the tensors of each step.

    At the sizes of the whiteboard its numbers are those of the notebooks (seed 123).
    """
    mha, every = traced(d_out, num_heads, num_tokens)
    return mha, {step.name: step.tensors for step in every}


def traced(
    d_out: int = 6, num_heads: int = 2, num_tokens: int = 3
) -> tuple[MultiHeadAttention, list[Step]]:
    """Build the lesson's module as run does, and return it with its trace."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(123)
        mha = MultiHeadAttention(6, d_out, 6, 0.0, num_heads)
    return mha, trace(mha, tokens(num_tokens))


def tokens(num_tokens: int = 3) -> torch.Tensor:
    """Return x (1, num_tokens, 6): the whiteboard's three tokens, then up to three made-up ones."""
    more = torch.rand(1, 3, 6, generator=torch.Generator().manual_seed(123))
    return torch.cat([load_whiteboard(), more], dim=1)[:, :num_tokens]


def at_steps(run: Run, *which: str) -> list[Shown]:
    """Name tensors of a run as "step.tensor" and get them ready to draw."""
    mha, steps = run
    shown = []
    for step, name in (one.split(".") for one in which):
        letters = SHAPES[step].strip("()").replace(",", "")
        by_head = mha.num_heads if step in ("project", "combine") else None
        shown.append(Shown(steps[step][name], name, letters, by_head, shade=step == "softmax"))
    return shown


def split(d_out: int, num_heads: int) -> str:
    """Write num_heads times head_dim in words."""
    return f"{count(num_heads, 'head')} of {count(d_out // num_heads, 'feature')}"


def count(number: int, noun: str) -> str:
    """Write a number and a noun, in the plural unless there is one."""
    return f"{number} {noun}" + ("" if number == 1 else "s")

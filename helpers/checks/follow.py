"""Follow one recorded forward from step to step and say at which one it leaves the right way.

The right tensors of each step are looked for among those that were recorded. Where they meet, in
the product of queries and keys, in that of weights and values, and in out_proj, it is seen what
was handed on; the first thing that is not right there is where to look.
"""

from dataclasses import dataclass
from functools import cached_property

import torch

from helpers.checks.cases import LAYERS, LOOSE, Case, close
from helpers.checks.observe import Record
from helpers.checks.outcome import Finding
from helpers.checks.places import arranged, contained, exact, joined, place
from helpers.checks.recorder import Call, Held
from helpers.checks.right import Scene, play
from helpers.checks.weigh import HIDDEN, weigh

PRODUCTS = ("mm", "bmm", "mul", "mul_", "addmm", "baddbmm", "addbmm", "dot", "mv", "_trilinear")
NAMES = {"W_query": "queries", "W_key": "keys", "W_value": "values"}


@dataclass(frozen=True)
class Meeting:
    """A product of two tensors that are made of x: what was handed on to it."""

    left: Held
    right: Held
    call: Call


class Followed:
    """A recorded forward beside the right one: what was found of each step, looked up once."""

    def __init__(self, record: Record, case: Case):
        self.record, self.case = record, case
        self.right: Scene = play(case)
        self.factors = (1.0, case.head_dim**-0.5, case.head_dim**-0.25)

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Every tensor that was recorded, in order."""
        return [held.tensor for call in self.record.calls for held in call.gave]

    def project(self, name: str) -> torch.Tensor:
        """The right queries, keys or values (b, num_tokens, d_out)."""
        return self.right["project"][name]

    def made(self, name: str) -> bool:
        """Whether the right queries, keys or values of step 2 are there."""
        wanted = self.project(name)
        return exact(self.tensors, wanted, False) or contained(wanted, self.tensors, self.factors)

    def reached(self, step: str, name: str) -> bool:
        """Whether the right tensor of a step is there, in its shape."""
        return exact(self.tensors, self.right[step][name])

    def there(self, step: str, name: str) -> bool:
        """Whether the right numbers of a step are there, in whatever pieces and order."""
        wanted = self.right[step][name]
        scaled = self.factors if step == "scores" else (1.0,)
        return exact(self.tensors, wanted, False) or contained(wanted, self.tensors, scaled)

    @cached_property
    def meetings(self) -> list[Meeting]:
        """Every product of two tensors that are made of x, layers aside."""
        found = []
        for call in self.record.calls:
            given = [h for h in call.given if h.made_of and not self.is_layer(h.tensor)]
            if call.name in PRODUCTS and len(given) == 2:
                found.append(Meeting(*given, call))
        return found

    def is_layer(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a layer's weight or bias, or a piece of it."""
        weights = torch.cat([each.detach().flatten() for each in self.right.module.parameters()])
        return tensor.numel() <= len(weights) and place(tensor, weights) is not None

    @cached_property
    def scores(self) -> list[Meeting]:
        """The products that make scores: of tensors, none of which is made of scores."""
        if not self.meetings or self._mixed(self.meetings[0]):
            return []
        first = self.meetings[0].left.made_of | self.meetings[0].right.made_of
        return [m for m in self.meetings if not any(h.made_of >= first for h in (m.left, m.right))]

    @staticmethod
    def _mixed(meeting: Meeting) -> bool:
        """Whether one side is made of queries and keys already, without a product."""
        return {"W_query", "W_key"} in (meeting.left.made_of, meeting.right.made_of)

    @cached_property
    def gathers(self) -> list[Meeting]:
        """The products of weights and values, the weights on the left."""
        met = frozenset().union(*(m.left.made_of | m.right.made_of for m in self.scores))
        first = met or frozenset(("W_query", "W_key"))
        found = []
        for m in self.meetings:
            sides = [h.made_of >= first for h in (m.left, m.right)]
            if sides == [True, False]:
                found.append(m)
            elif sides == [False, True]:
                found.append(Meeting(m.right, m.left, m.call))
        return found

    def in_order(self, pieces: list[torch.Tensor]) -> torch.Tensor | None:
        """The weights (b * num_heads, num_tokens, num_tokens), head by head of each sequence.

        They may come in pieces, and in the order in which a class folds or loops: the scores that
        were made before, piece by piece, say which is which.
        """
        square = self.case.num_tokens, self.case.num_tokens
        made = [m.call.gave[0].tensor for m in self.scores]
        if not pieces or any(each.shape[-2:] != square for each in (*made, *pieces)):
            return None
        matrices = torch.cat([each.reshape(-1, *square) for each in pieces])
        if len(matrices) != self.case.b * self.case.num_heads:
            return None
        scores = [place(each, self.right["scores"]["scores"], self.factors) for each in made]
        if None in scores:
            return matrices
        order = torch.cat([found.reshape(-1, *square)[:, 0, 0] for found, _ in scores])
        order = order // (square[0] * square[1])
        in_order = torch.empty_like(matrices)
        if len(order.unique()) == len(matrices):
            in_order[order] = matrices
            return in_order
        return matrices

    @cached_property
    def last(self) -> list[torch.Tensor]:
        """What is handed to out_proj, in one piece or several."""
        found = []
        for call in self.record.calls:
            layer = [h for h in call.given if h.made_of == {"out_proj"}]
            context = [h for h in call.given if h.made_of and "out_proj" not in h.made_of]
            if layer and context and call.name in PRODUCTS:
                found.append(context[0].tensor)
        return found


def follow(way: Followed) -> Finding | None:
    """Name the first step that is not right, or return None where all of them are."""
    for question in (_projected, scored, _weighed, _valued, _gathered, _combined):
        if found := question(way):
            return found
    return _returned(way)


def _projected(way: Followed) -> Finding | None:
    """Step 2: the three projections are there, and each of them counts."""
    for layer, name in NAMES.items():
        if not way.made(name):
            return Finding(
                2,
                f"`{layer}(x)` is not among what forward computes. Look at the projections: each "
                f"is the plain layer, applied to the plain x.",
            )
    return None


def scored(way: Followed) -> Finding | None:
    """Steps 2 to 5: the scores are there, or what was multiplied says why not."""
    if scores_there(way):
        return None
    flipped = exact(way.tensors, way.right["scores"]["scores"].mT, False)
    for meeting in way.scores:
        found = [
            _handed_on(way, side, layer, turned)
            for side, turned in ((meeting.left, False), (meeting.right, True))
            for layer in ("W_query", "W_key")
            if side.made_of == {layer}
        ]
        strange = [side.made_of for side in (meeting.left, meeting.right) if len(side.made_of) > 1]
        others = meeting.left.made_of | meeting.right.made_of
        if strange or others != {"W_query", "W_key"}:
            used = frozenset().union(*(m.left.made_of | m.right.made_of for m in way.meetings))
            return Finding(
                2 if strange or used >= NAMES.keys() else 5,
                f"{_and(others)} meet in the scores: these are queries from W_query times keys "
                f"from W_key. Look at where the projections are made and cut apart.",
            )
        if any(found):
            return min(filter(None, found), key=lambda each: each.step)
    if not way.scores:
        early = [_never_apart(way, name) for name in ("queries", "keys")]
        if any(early):
            return next(filter(None, early))
    if flipped:
        return Finding(
            5,
            "Queries and keys have changed places in the scores. Look at the product: it is "
            "`queries @ keys.transpose(2, 3)`.",
        )
    return Finding(
        5,
        "The queries and keys are right, and their products are not. Look at the scores: "
        "`queries @ keys.transpose(2, 3)`, one dot product for each pair, and nothing else.",
    )


def scores_there(way: Followed) -> bool:
    """Whether the right scores are there: in one tensor, or in pieces whose rows run over keys."""
    wanted = way.right["scores"]["scores"]
    if exact(way.tensors, wanted, False):
        return True
    if not way.there("scores", "scores") or not way.scores:
        return False
    if way.scores[0].call.name.startswith("mul"):
        return True
    for meeting in way.scores:
        found = place(meeting.call.gave[0].tensor, wanted, way.factors)
        if (
            found is None
            or (found[0] % way.case.num_tokens != torch.arange(found[0].shape[-1])).any()
        ):
            return False
    return True


def _handed_on(way: Followed, held: Held, layer: str, turned: bool) -> Finding | None:
    """What is wrong with queries, keys or values as they are handed to a product, if anything.

    Args:
        way: the forward.
        held: what was handed on, (..., tokens, features).
        layer: what made it.
        turned: whether its last two axes are the other way round.
    """
    name = NAMES[layer]
    product = 8 if layer == "W_value" else 5
    found = place(held.tensor, way.project(name), way.factors)
    viewed, grouped = way.reached("view", name), way.reached("transpose", name)
    if found is None:
        step = product if grouped else 2
        after = " after step 4" if grouped else ""
        return Finding(
            step,
            f"Something is applied to the {name}{after}: they are the plain projection of x, cut "
            f"into heads. Look at what happens to them between `{layer}(x)` and the product.",
        )
    if held.tensor.dim() < 2 or way.scores and way.scores[0].call.name.startswith("mul"):
        return None
    kind = arranged(found[0].mT if turned else found[0], way.case)
    return _misplaced(kind, name, product, viewed, grouped)


def _misplaced(kind: str, name: str, product: int, viewed: bool, grouped: bool) -> Finding | None:
    """What the layout of queries, keys or values says, in the words of places.arranged."""
    if kind == "right":
        return None
    if kind == "heads joined":
        return Finding(
            product if viewed else 3,
            f"All heads of the {name} go into one product: each head keeps its own head_dim "
            f"features. Look at the view, and at the product, which is made head by head.",
        )
    if kind == "part":
        return Finding(
            product,
            f"Not all features of the {name} count in the product. Look at it: it takes all "
            f"head_dim features of a head.",
        )
    if kind == "order" and not grouped:
        return Finding(
            2, f"The {name} of the tokens have changed places. Look at how they are made."
        )
    if kind == "sequences" and not viewed:
        return Finding(
            1,
            "Tokens at the same place in different sequences meet: b and num_tokens have changed "
            "places. Look at where they are read off x, and at every transpose of x.",
        )
    if kind == "repeated":
        return Finding(
            3,
            f"Some features of the {name} are used by several heads and others by none. Look at "
            f"how the features are shared out: head_dim neighbouring ones for each head.",
        )
    if grouped:
        return Finding(
            product,
            f"The {name} are grouped by head, and then mixed up before the product. Look at the "
            f"line of the product: only the last two dims of keys are swapped, with "
            f"`transpose(2, 3)`, which a view or reshape does not do.",
        )
    if viewed:
        return Finding(
            4,
            f"The {name} are not grouped by head: before the product they are (b, num_heads, "
            f"num_tokens, head_dim). Look at the transpose: it swaps dims 1 and 2.",
        )
    return Finding(
        3,
        f"The heads of the {name} are not made of neighbouring features of one token: head 0 has "
        f"the first head_dim features, head 1 the next. Look at the view, (b, num_tokens, "
        f"num_heads, head_dim), and the transpose after it.",
    )


def _never_apart(way: Followed, name: str) -> Finding | None:
    """Where nothing is multiplied that could be looked at: how far queries or keys came."""
    if way.reached("transpose", name) or way.reached("view", name):
        return None
    return _misplaced("mixed", name, 5, False, False)


def _weighed(way: Followed) -> Finding | None:
    """Steps 5 to 8: from the scores to the weights that are handed to the context."""
    case, weights = way.case, way.right["softmax"]["weights"]
    square = case.num_tokens, case.num_tokens
    last = [t for t in _of_scores(way) if t.shape[-2:] == square][-1:]
    if way.gathers or any((each < HIDDEN).any() for each in last):
        last = []  # nothing gathers yet, and what is there is no mask's doing
    used = way.in_order([m.left.tensor for m in way.gathers] or last)
    if used is None:
        return None if way.there("softmax", "weights") else _unread(way)
    right = weights.reshape(-1, *square)
    if close(used, right, LOOSE):
        return None
    if exact(way.tensors, weights, False):
        same = place(used, weights)
        if same is not None and abs(same[1] - 1) < LOOSE:
            return Finding(
                8,
                "The weights are right, and then other rows, columns or heads of them gather the "
                "values. Look at the context: it is `weights @ values`, head by head.",
            )
    pieces = [t.reshape(-1, *square) for t in _of_scores(way) if t.shape[-2:] == square]
    return weigh(used, way.right["scores"]["scores"].reshape(-1, *square), right, pieces)


def _of_scores(way: Followed) -> list[torch.Tensor]:
    """Every tensor that is made of queries and keys and not of values."""
    kinds = {"W_query", "W_key"}
    return [h.tensor for call in way.record.calls for h in call.gave if h.made_of == kinds]


def _unread(way: Followed) -> Finding:
    """The weights are not there, and what took their place cannot be laid beside them."""
    masked = any((each < HIDDEN).any() for each in _of_scores(way))
    if not masked:
        return Finding(
            6,
            "The scores are right, none of them is masked, and the right weights never come. Look "
            "at the mask: future scores are -inf before the softmax.",
        )
    return Finding(
        7,
        "The scores are right and masked, and the right weights never come. Look at the softmax: "
        "`torch.softmax(masked / head_dim**0.5, dim=-1)`.",
    )


def _valued(way: Followed) -> Finding | None:
    """Steps 2 to 4 of the values, as they are handed to the context."""
    for meeting in way.gathers:
        made_of = meeting.right.made_of
        if made_of != {"W_value"}:
            return Finding(
                8 if len(made_of) == 1 else 2,
                f"What the weights gather comes from {_and(made_of)}: the values are `W_value(x)`. "
                f"Look at the projections and at the context.",
            )
        if found := _handed_on(way, meeting.right, "W_value", False):
            return found
    return None


def _gathered(way: Followed) -> Finding | None:
    """Step 8: the context is there."""
    if way.there("context", "context"):
        return None
    return Finding(
        8,
        "The weights and the values are right, and the context is not. Look at it: it is "
        "`weights @ values` alone.",
    )


def _combined(way: Followed) -> Finding | None:
    """Steps 8 to 10: what is handed to out_proj."""
    out, context = way.record.seen.out, way.right["context"]["context"]
    if not way.last:
        found = place(out, context) if isinstance(out, torch.Tensor) and out.dim() else None
        return (
            _laid(found[0], way.case)
            if found and _laid(found[0], way.case)
            else Finding(
                11,
                "The context never goes through out_proj. Look at the last line: return "
                "`out_proj(context)`.",
            )
        )
    if len(way.last) > 1:  # head by head, each with its columns of the weight
        pieces = [place(each, context) for each in way.last]
        whole = sum(each.numel() for each in way.last) == context.numel()
        return None if None not in pieces and whole else _returned(way)
    (handed,) = way.last
    found = place(handed, context)
    if found is None or abs(found[1] - 1) > LOOSE:
        later = way.tensors[_first_exact(way, context) :]
        smaller = any(each.numel() < context.numel() for each in later)
        if handed.numel() == context.numel() and not smaller:
            return Finding(
                8,
                "Something is applied to the context: it is plain sums of values. Look at what "
                "happens between `weights @ values` and `out_proj`.",
            )
        return _merged()
    return _laid(found[0], way.case)


def _laid(places: torch.Tensor, case: Case) -> Finding | None:
    """Steps 9 and 10, from where each number of the combined context comes from."""
    kind = joined(places, case)
    if kind == "tokens":
        return Finding(
            9,
            "The rows that out_proj gets hold the context of several tokens. Look at the step "
            "after the context: swap tokens and heads back, `context.transpose(1, 2)`, before the "
            "view.",
        )
    return _merged() if kind == "features" else None


def _first_exact(way: Followed, wanted: torch.Tensor) -> int:
    return next((i for i, t in enumerate(way.tensors) if exact([t], wanted, False)), 0)


def _merged() -> Finding:
    return Finding(
        10,
        "The heads are not laid side by side: head 0's head_dim features come first, then head "
        "1's. Look at the view or reshape to (b, num_tokens, d_out).",
    )


def _returned(way: Followed) -> Finding | None:
    """Step 11: what out_proj gives is what is returned."""
    out = way.record.seen.out
    if isinstance(out, torch.Tensor) and close(out, way.right["out_proj"]["out"]):
        return None
    made = exact(way.tensors, way.right["out_proj"]["out"], False)
    made_of = way.record.calls[-1].gave[0].made_of if way.record.calls[-1].gave else LAYERS
    if lost := [layer for layer in NAMES if layer not in made_of]:
        said = f"{_and(frozenset(lost))} does not change the output."
        return Finding(2, f"{said} Look at where the projections are made and used.")
    text = (
        "The right output is computed, and something is done to it before it is returned."
        if made
        else "out_proj gets the right context, and what comes of it is not right."
    )
    return Finding(11, f"{text} Look at the last lines: return `out_proj(context)` alone.")


def _and(names: frozenset[str]) -> str:
    ordered = [name for name in LAYERS if name in names]
    return " and ".join(filter(None, [", ".join(ordered[:-1]), *ordered[-1:]]))

"""Follow one recorded forward from step to step and say at which one it leaves the right way.

The right tensors of each step are looked for among those that were recorded. Where they meet, in
the product of queries and keys, in that of weights and values, and in out_proj, it is seen what
was handed on; the first thing that is not right there is where to look.
"""

from collections.abc import Iterable

import torch

from eleven_steps.checks.name.locate.by_weights import HIDDEN, weigh
from eleven_steps.checks.name.locate.places import arranged, exact, joined, place
from eleven_steps.checks.name.locate.recording import NAMES, Followed
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.cases import LAYERS, LOOSE, Case, close
from eleven_steps.checks.run.recorder import Held
from helpers.trace import STEPS


def follow(way: Followed) -> Finding | None:
    """Name the first step that is not right, or return None where all of them are.

    The questions know the lecture's steps alone; of a class with a change it is said how far it is
    right.
    """
    if way.case.variant:
        return _as_far(way)
    for question in (_projected, scored, _weighed, _gathered, _combined):
        if found := question(way):
            return found
    return _returned(way)


def _as_far(way: Followed) -> Finding | None:
    """The step after the last whose tensors are there, whatever their shape."""

    def present(wanted: torch.Tensor, name: str) -> bool:
        if name in ("scores", "mask"):  # which may be scaled before step 7
            return exact(way.tensors, wanted, False)
        alike = (each.flatten() for each in way.tensors if each.numel() == wanted.numel())
        return any(close(each, wanted.flatten()) for each in alike)

    steps = enumerate(STEPS, start=1)
    there = [n for n, name in steps if all(present(t, name) for t in way.right[name].values())]
    number = max(there, default=1)
    if number == len(STEPS):
        return say("out_changed")
    name, what = STEPS[number - 1 : number + 1]
    return say("right_as_far", number + 1, number=number, name=name, next=number + 1, what=what)


def _projected(way: Followed) -> Finding | None:
    """Step 2: the three projections are there."""
    lost = (layer for layer, name in NAMES.items() if not way.made(name))
    return next((say("projection_absent", layer=layer) for layer in lost), None)


def scored(way: Followed) -> Finding | None:
    """Steps 2 to 5: the scores are there, or what was multiplied says why not."""
    if scores_there(way):
        return None
    for meeting in way.scores:
        strange = any(len(side.made_of) > 1 for side in (meeting.left, meeting.right))
        layers = meeting.left.made_of | meeting.right.made_of
        if strange or layers != {"W_query", "W_key"}:
            used = frozenset().union(*(m.left.made_of | m.right.made_of for m in way.meetings))
            step = 2 if strange or used >= NAMES.keys() else 5
            return say("others_meet", step, layers=_and(layers))
        (left,), (right,) = meeting.left.made_of, meeting.right.made_of
        found = [
            _handed_on(way, meeting.left, left, False),
            _handed_on(way, meeting.right, right, True),
        ]
        if any(found):
            return min(filter(None, found), key=lambda each: each.step)
    if way.scores and (some := len(_heads(way))) < way.case.num_heads:
        return say("heads_left_out", some=some, num_heads=way.case.num_heads)
    for name in () if way.scores else ("queries", "keys"):
        if not way.reached("transpose", name) and not way.reached("view", name):
            return say("heads_not_neighbours", name=name)
    flipped = exact(way.tensors, way.right["scores"]["scores"].mT, False)
    return say("scores_transposed" if flipped else "products_not_right")


def _heads(way: Followed) -> set[int]:
    """The heads that meet in the scores, where all that is handed on is in order."""
    met: set[int] = set()
    for meeting in way.scores:
        (layer,) = meeting.left.made_of
        places, _ = place(meeting.left.tensor, way.project(NAMES[layer]), way.factors)
        met.update((places % way.case.d_out // way.case.head_dim).flatten().tolist())
    return met


def scores_there(way: Followed) -> bool:
    """Whether the right scores are there: in one tensor, or in pieces whose rows run over keys."""
    wanted, tokens = way.right["scores"]["scores"], way.case.num_tokens
    if exact(way.tensors, wanted, False):
        return True
    if not way.there("scores", "scores") or not way.scores:
        return False
    if way.by_element:
        return True
    pieces = [place(meeting.call.gave[0].tensor, wanted, way.factors) for meeting in way.scores]
    return all(
        found and (found[0] % tokens == torch.arange(found[0].shape[-1])).all() for found in pieces
    )


def _handed_on(way: Followed, held: Held, layer: str, turned: bool) -> Finding | None:
    """What is wrong with queries, keys or values as they are handed to a product, if anything.

    Args:
        way: the forward.
        held: what was handed on, (..., tokens, features).
        layer: what made it.
        turned: whether its last two axes are the other way round.
    """
    name, product = NAMES[layer], 8 if layer == "W_value" else 5
    viewed, grouped = way.reached("view", name), way.reached("transpose", name)
    found = place(held.tensor, way.project(name), way.factors)
    if found is None or layer == "W_value" and abs(found[1] - 1) > LOOSE:
        step, after = (product, " after step 4") if grouped else (2, "")
        return say("changed_on_the_way", step, name=name, after=after, layer=layer)
    if held.tensor.dim() < 2 or way.by_element:
        return None
    kind = arranged(found[0].mT if turned else found[0], way.case)
    if kind == "right":
        return None
    if kind == "heads joined":
        return say("heads_joined", product if viewed else 3, name=name)
    if kind == "part":
        return say("features_left_out", product, name=name)
    if kind == "order" and not grouped:
        return say("tokens_moved", name=name)
    if kind == "sequences" and not viewed:
        return say("sequences_meet")
    if kind == "repeated":
        return say("features_shared", name=name)
    if grouped:
        return say("mixed_before_product", product, name=name)
    return say("not_grouped" if viewed else "heads_not_neighbours", name=name)


def _weighed(way: Followed) -> Finding | None:
    """Steps 5 to 8: from the scores to the weights that are handed to the context."""
    square, weights = (way.case.num_tokens,) * 2, way.right["softmax"]["weights"]
    matrices = [each for each in way.of_scores if each.shape[-2:] == square]
    last = matrices[-1:]
    if way.gathers or any((each < 0).any() for each in last):
        last = []  # what is there are scores still, masked ones perhaps
    used = way.in_order([m.left.tensor for m in way.gathers] or last)
    if used is None:  # they cannot be laid beside the right ones
        masked = any((each < HIDDEN).any() for each in way.of_scores)
        lost = say("never_softmaxed" if masked else "never_masked")
        return None if way.there("softmax", "weights") else lost
    right = weights.reshape(-1, *square)
    if close(used, right, LOOSE):
        return None
    if exact(way.tensors, weights, False):
        same = place(used, weights)
        if same is not None and abs(same[1] - 1) < LOOSE:
            return say("other_weights_gather")
    scores = way.right["scores"]["scores"].reshape(-1, *square)
    return weigh(used, scores, right, [each.reshape(-1, *square) for each in matrices])


def _gathered(way: Followed) -> Finding | None:
    """Steps 2 to 4 of the values, as they are handed to the context; and step 8, the context."""
    for values in (meeting.right for meeting in way.gathers):
        if values.made_of != {"W_value"}:
            step = 8 if len(values.made_of) == 1 else 2
            return say("others_gathered", step, layers=_and(values.made_of))
        if found := _handed_on(way, values, "W_value", False):
            return found
    return None if way.there("context", "context") else say("context_not_right")


def _combined(way: Followed) -> Finding | None:
    """Steps 8 to 10: what is handed to out_proj."""
    out, context = way.record.seen.out, way.right["context"]["context"]
    if not way.last:
        found = place(out, context) if isinstance(out, torch.Tensor) and out.dim() else None
        return (found and _laid(found[0], way.case)) or say("out_proj_missing")
    if len(way.last) > 1:  # head by head, each with its columns of the weight
        placed = all(place(each, context) for each in way.last)
        whole = sum(each.numel() for each in way.last) == context.numel()
        return None if placed and whole else _returned(way)
    (handed,) = way.last
    found = place(handed, context)
    if found is not None and abs(found[1] - 1) <= LOOSE:
        return _laid(found[0], way.case)
    first = next((i for i, t in enumerate(way.tensors) if exact([t], context, False)), 0)
    smaller = any(each.numel() < context.numel() for each in way.tensors[first:])
    plain = handed.numel() == context.numel() and not smaller
    return say("context_changed" if plain else "heads_not_beside")


def _laid(places: torch.Tensor, case: Case) -> Finding | None:
    """Steps 9 and 10, from where each number of the combined context comes from."""
    said = {"tokens": "tokens_mixed", "features": "heads_not_beside"}.get(joined(places, case))
    return say(said) if said else None


def _returned(way: Followed) -> Finding | None:
    """Step 11: what out_proj gives is what is returned."""
    out, right = way.record.seen.out, way.right["out_proj"]["out"]
    if isinstance(out, torch.Tensor) and close(out, right):
        return None
    gave = way.record.calls[-1].gave
    if gave and (idle := NAMES.keys() - gave[0].made_of):
        return say("layers_idle", layers=_and(idle))
    return say("out_changed" if exact(way.tensors, right, False) else "out_not_right")


def _and(names: Iterable[str]) -> str:
    ordered = [name for name in LAYERS if name in names]
    return " and ".join(filter(None, [", ".join(ordered[:-1]), *ordered[-1:]]))

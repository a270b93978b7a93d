"""Follow one recorded forward from step to step and say at which one it leaves the right way.

The right tensors of each step are looked for among those that were recorded. Where they meet, in
the product of queries and keys, in that of weights and values, and in out_proj, it is seen what
was handed on; the first thing that is not right there is where to look.
"""

from collections.abc import Iterable

import torch

from eleven_steps.checks.name.locate.by_weights import HIDDEN, weigh
from eleven_steps.checks.name.locate.recording import (
    NAMES,
    Recording,
    arranged,
    exact,
    joined,
    place,
)
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.cases import LAYERS, LOOSE, Case, close
from eleven_steps.checks.run.recorder import Held
from helpers.trace import STEPS


def follow(recording: Recording) -> Finding | None:
    """Name the first step that is not right, or return None where all of them are.

    The questions know the lecture's steps alone; of a class with a change it is said how far it is
    right.
    """
    if recording.case.variant:
        return _as_far(recording)
    for question in (_projected, scored, _weighed, _gathered, _combined):
        if finding := question(recording):
            return finding
    return _returned(recording)


def _as_far(recording: Recording) -> Finding | None:
    """The step after the last whose tensors are there, whatever their shape."""

    def present(wanted: torch.Tensor, name: str) -> bool:
        if name in ("scores", "mask"):  # which may be scaled before step 7
            return exact(recording.tensors, wanted, False)
        same_size = (each for each in recording.tensors if each.numel() == wanted.numel())
        return any(close(each.flatten(), wanted.flatten()) for each in same_size)

    steps = enumerate(STEPS, start=1)
    there = [
        n for n, name in steps if all(present(t, name) for t in recording.right[name].values())
    ]
    number = max(there, default=1)
    if number == len(STEPS):
        return say("out_changed")
    name, what = STEPS[number - 1 : number + 1]
    return say("right_as_far", number + 1, number=number, name=name, next=number + 1, what=what)


def _projected(recording: Recording) -> Finding | None:
    """Step 2: the three projections are there."""
    lost = (layer for layer, name in NAMES.items() if not recording.made(name))
    return next((say("projection_absent", layer=layer) for layer in lost), None)


def scored(recording: Recording) -> Finding | None:
    """Steps 2 to 5: the scores are there, or what was multiplied says why not."""
    if recording.scores_there:
        return None
    for product in recording.scores:
        mixed = any(len(side.made_of) > 1 for side in (product.left, product.right))
        if mixed or product.layers != {"W_query", "W_key"}:
            used = frozenset().union(*(each.layers for each in recording.products))
            step = 2 if mixed or used >= NAMES.keys() else 5
            return say("others_meet", step, layers=_and(product.layers))
        findings = [
            _handed_on(recording, product.left, False),
            _handed_on(recording, product.right, True),
        ]
        if any(findings):
            return min(filter(None, findings), key=lambda each: each.step)
    if recording.scores and (some := len(_heads(recording))) < recording.case.num_heads:
        return say("heads_left_out", some=some, num_heads=recording.case.num_heads)
    for name in () if recording.scores else ("queries", "keys"):
        if not recording.reached("transpose", name) and not recording.reached("view", name):
            return say("heads_not_neighbours", name=name)
    flipped = exact(recording.tensors, recording.right["scores"]["scores"].mT, False)
    return say("scores_transposed" if flipped else "products_not_right")


def _heads(recording: Recording) -> set[int]:
    """The heads that meet in the scores, where all that is handed on is in order."""
    case, heads = recording.case, set()
    for product in recording.scores:
        (layer,) = product.left.made_of
        right = recording.right["project"][NAMES[layer]]
        places, _ = place(product.left.tensor, right, recording.factors)
        heads.update((places % case.d_out // case.head_dim).flatten().tolist())
    return heads


def _handed_on(recording: Recording, held: Held, turned: bool) -> Finding | None:
    """What is wrong with queries, keys or values as they are handed to a product, if anything."""
    (layer,) = held.made_of
    name, product = NAMES[layer], 8 if layer == "W_value" else 5
    viewed, grouped = recording.reached("view", name), recording.reached("transpose", name)
    origin = place(held.tensor, recording.right["project"][name], recording.factors)
    if origin is None or layer == "W_value" and abs(origin[1] - 1) > LOOSE:
        step, after = (product, " after step 4") if grouped else (2, "")
        return say("changed_on_the_way", step, name=name, after=after, layer=layer)
    if held.tensor.dim() < 2 or recording.by_element:
        return None
    kind = arranged(origin[0].mT if turned else origin[0], recording.case)
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


def _weighed(recording: Recording) -> Finding | None:
    """Steps 5 to 8: from the scores to the weights that are handed to the context."""
    square, right = (recording.case.num_tokens,) * 2, recording.right["softmax"]["weights"]
    matrices = [each for each in recording.of_scores if each.shape[-2:] == square]
    last = matrices[-1:]
    if recording.gathers or any((each < 0).any() for each in last):
        last = []  # what is there are scores still, masked ones perhaps
    used = recording.in_order([product.left.tensor for product in recording.gathers] or last)
    if used is None:  # they cannot be laid beside the right ones
        if recording.there("softmax", "weights"):
            return None
        masked = any((each < HIDDEN).any() for each in recording.of_scores)
        return say("never_softmaxed" if masked else "never_masked")
    weights = right.reshape(-1, *square)
    if close(used, weights, LOOSE):
        return None
    same = place(used, right) if exact(recording.tensors, right, False) else None
    if same is not None and abs(same[1] - 1) < LOOSE:
        return say("other_weights_gather")
    scores = recording.right["scores"]["scores"].reshape(-1, *square)
    return weigh(used, scores, weights, [each.reshape(-1, *square) for each in matrices])


def _gathered(recording: Recording) -> Finding | None:
    """Steps 2 to 4 of the values, as they are handed to the context; and step 8, the context."""
    for values in (product.right for product in recording.gathers):
        if values.made_of != {"W_value"}:
            step = 8 if len(values.made_of) == 1 else 2
            return say("others_gathered", step, layers=_and(values.made_of))
        if finding := _handed_on(recording, values, False):
            return finding
    return None if recording.there("context", "context") else say("context_not_right")


def _combined(recording: Recording) -> Finding | None:
    """Steps 8 to 10: what is handed to out_proj."""
    out, context = recording.record.seen.out, recording.right["context"]["context"]
    if not recording.last:
        origin = place(out, context) if isinstance(out, torch.Tensor) and out.dim() else None
        return (origin and _laid(origin[0], recording.case)) or say("out_proj_missing")
    if len(recording.last) > 1:  # head by head, each with its columns of the weight
        placed = all(place(each, context) for each in recording.last)
        whole = sum(each.numel() for each in recording.last) == context.numel()
        return None if placed and whole else _returned(recording)
    (handed,) = recording.last
    origin = place(handed, context)
    if origin is not None and abs(origin[1] - 1) <= LOOSE:
        return _laid(origin[0], recording.case)
    first = next((i for i, t in enumerate(recording.tensors) if exact([t], context, False)), 0)
    smaller = any(each.numel() < context.numel() for each in recording.tensors[first:])
    plain = handed.numel() == context.numel() and not smaller
    return say("context_changed" if plain else "heads_not_beside")


def _laid(places: torch.Tensor, case: Case) -> Finding | None:
    """Steps 9 and 10, from where each number of the combined context comes from."""
    name = {"tokens": "tokens_mixed", "features": "heads_not_beside"}.get(joined(places, case))
    return say(name) if name else None


def _returned(recording: Recording) -> Finding | None:
    """Step 11: what out_proj gives is what is returned."""
    out, right = recording.record.seen.out, recording.right["out_proj"]["out"]
    if isinstance(out, torch.Tensor) and close(out, right):
        return None
    gave = recording.record.calls[-1].gave
    if gave and (idle := NAMES.keys() - gave[0].made_of):
        return say("layers_idle", layers=_and(idle))
    return say("out_changed" if exact(recording.tensors, right, False) else "out_not_right")


def _and(names: Iterable[str]) -> str:
    ordered = [name for name in LAYERS if name in names]
    return " and ".join(filter(None, [", ".join(ordered[:-1]), *ordered[-1:]]))

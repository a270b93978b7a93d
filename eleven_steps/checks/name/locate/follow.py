"""Follow one recorded forward from step to step and say at which one it leaves the right way.

The right tensors of each step are looked for among those that were recorded. Where they meet, in
the product of queries and keys, in that of weights and values, and in out_proj, it is seen what
was handed on; the first thing that is not right there is where to look.
"""

from collections.abc import Iterable
from dataclasses import replace

import torch

from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.causes import applied
from eleven_steps.checks.name.locate.by_weights import HIDDEN, weigh
from eleven_steps.checks.name.locate.made import rounded, with_cause
from eleven_steps.checks.name.locate.recording import (
    NAMES,
    NEAR,
    Recording,
    arranged,
    exact,
    heads_of,
    joined,
    place,
)
from eleven_steps.checks.name.related import likeness
from eleven_steps.checks.name.say import Finding, say, together
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
    for question in (rounded, _projected, scored, _weighed, _gathered, _combined):
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
    layer = next(lost, "")
    finding = say("projection_absent", layer=layer)
    return with_cause(recording, finding, "x", recording.case.x) if layer else None


def scored(recording: Recording) -> Finding | None:
    """Steps 2 to 5: the scores are there, or what was multiplied says why not."""
    if recording.scores_there:
        sides = [s for each in recording.scores for s in ((each.left, False), (each.right, True))]
        moved = (_handed_on(recording, *side) for side in sides if len(side[0].made_of) == 1)
        return next((each for each in moved if each and each.name == "tokens_moved"), None)
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
        if finding := _crossed(recording, product.left, product.right):
            return finding
    if recording.scores and (some := len(_heads(recording))) < recording.case.num_heads:
        return say("heads_left_out", some=some, num_heads=recording.case.num_heads)
    for product in () if recording.scores else recording.products[:1]:
        if all(len(side.made_of) > 1 for side in (product.left, product.right)):
            return say("others_meet", layers=_and(product.layers & NAMES.keys()))
    wanted = recording.right["scores"]["scores"]
    made = [each.call.gave[0].tensor for each in recording.scores]
    pieces = [place(each, wanted, recording.factors) for each in made]
    if pieces and None not in pieces and not recording.by_element:
        return say("pairs_left_out")
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


def _crossed(recording: Recording, left: Held, right: Held) -> Finding | None:
    """Whether heads of one meet other heads of the other; the values are on the right, or keys."""
    case, orders = recording.case, []
    for side in (left, right):
        (layer,) = side.made_of
        right_ones = recording.right["project"][NAMES[layer]]
        places = place(side.tensor, right_ones, recording.factors)
        turned = layer != "W_value" and side is right
        if places is None or side.tensor.dim() < 3:
            return None
        orders.append(heads_of(places[0].mT if turned else places[0], case))
        names = [NAMES[layer] for each in (left, right) for layer in each.made_of]
    if len(orders[0]) != len(orders[1]) or torch.equal(*orders):
        return None
    return say("heads_crossed", 8 if "values" in names else 5, one=names[0], other=names[1])


def _handed_on(recording: Recording, held: Held, turned: bool) -> Finding | None:
    """What is wrong with queries, keys or values as they are handed to a product, if anything."""
    (layer,) = held.made_of
    name, product = NAMES[layer], 8 if layer == "W_value" else 5
    viewed, grouped = recording.reached("view", name), recording.reached("transpose", name)
    origin = place(held.tensor, recording.right["project"][name], recording.factors)
    if origin is None or layer == "W_value" and abs(origin[1] - 1) > LOOSE:
        step, after = (product, " after step 4") if grouped else (2, "")
        finding = say("changed_on_the_way", step, name=name, after=after, layer=layer)
        rights = [recording.right[each][name] for each in ("project", "transpose")]
        return with_cause(recording, finding, name, *rights)
    if held.tensor.dim() < 2 or recording.by_element:
        return None
    kind = arranged(origin[0].mT if turned else origin[0], recording.case)
    if kind == "right":
        return None
    if kind == "heads joined":
        return say("heads_joined", product if viewed else 3, name=name)
    if kind == "part":
        return say("features_left_out", product, name=name)
    if kind == "order":
        return say("tokens_moved", product if grouped else 2, name=name)
    if kind == "shared":
        return say("sequences_shared", product if grouped else 2, name=name)
    if kind == "sequences" and not viewed:
        return say("sequences_meet")
    if kind == "mingled":
        return say("tokens_mingled", product if grouped else 3, name=name)
    if kind == "repeated":
        return say("features_shared", name=name)
    if grouped:
        line = "weights_by_values" if product == 8 else "queries_by_keys"
        finding = say("mixed_before_product", product, name=name, line=wording(line))
        return with_cause(recording, finding, name, recording.right["transpose"][name])
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
    if close(used, weights, NEAR):
        return None
    made = exact(recording.tensors, right, False)
    same = place(used, right) if made else None
    if same is not None and abs(same[1] - 1) < LOOSE and len(same[0].unique()) == right.numel():
        return say("other_weights_gather")
    scores = recording.right["scores"]["scores"].reshape(-1, *square)
    finding = weigh(used, scores, weights, [each.reshape(-1, *square) for each in matrices])
    idle = made and recording.gathers and recording.case.head_dim > 1
    if idle and finding.name != "row_sums":
        return with_cause(recording, say("weights_not_used"), "weights", right)
    return finding


def _gathered(recording: Recording) -> Finding | None:
    """Steps 2 to 4 of the values, as they are handed to the context; and step 8, the context."""
    for values in (product.right for product in recording.gathers):
        if values.made_of != {"W_value"}:
            step = 8 if len(values.made_of) == 1 else 2
            return say("others_gathered", step, layers=_and(values.made_of))
        if finding := _handed_on(recording, values, False):
            return finding
    if len(recording.gathers) == len(recording.scores):
        both = zip(recording.scores, recording.gathers, strict=True)
        crossed = (_crossed(recording, one.left, other.right) for one, other in both)
        if finding := next(filter(None, crossed), None):
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
    return _changed(recording, handed)


def _laid(places: torch.Tensor, case: Case) -> Finding | None:
    """Steps 9 and 10, from where each number of the combined context comes from."""
    kind = joined(places, case)
    if kind[0].isdigit():
        return say("heads_in_order", order=kind)
    names = {"sequences": "sequences_mixed", "order": "rows_moved", "tokens": "tokens_mixed"}
    return None if kind == "right" else say(names.get(kind, "heads_not_beside"))


def _changed(recording: Recording, handed: torch.Tensor) -> Finding:
    """Steps 8 to 10: what was done to the context. Each cause is tried: it must give the same."""
    case, right = recording.case, recording.right
    combined = right["combine"]["context"]  # (b, num_tokens, d_out)
    if handed.numel() != combined.numel():
        return say("heads_not_beside")
    handed = handed.reshape(combined.shape)
    if exact([handed], combined):
        return say("context_scaled", factor=float(handed.norm() / combined.norm()))
    for name, tensor in {"x": case.x, **right["project"]}.items():
        if close(handed - combined, tensor):
            return say("added_to_context", name=name)
    by_head = (case.num_heads, case.head_dim)
    mine, heads = handed.unflatten(-1, by_head), combined.unflatten(-1, by_head)
    mean = heads.mean(-2, keepdim=True)
    for name, one in (("heads_averaged", mean), ("heads_summed", mean * case.num_heads)):
        if close(mine, one.expand_as(mine)):
            return say(name)
    kept = mine.abs().amax(dim=(0, 1, 3)) > 0
    if not kept.all() and close(mine[..., kept, :], heads[..., kept, :]):
        return say("heads_lost", some=int(kept.sum()), num_heads=case.num_heads)
    finding, grouped = say("context_changed"), right["context"]["context"]
    if code := applied([mine.transpose(1, 2)], grouped, "context"):
        return replace(finding, text=together(finding.text, wording("is_made", code=code)))
    rights = grouped, right["reformat"]["context"], combined
    return with_cause(recording, finding, "context", *rights)


def _returned(recording: Recording) -> Finding | None:
    """Step 11: what out_proj gives is what is returned."""
    out, right = recording.record.seen.out, recording.right["out_proj"]["out"]
    if isinstance(out, torch.Tensor) and close(out, right):
        return None
    gave = recording.record.calls[-1].gave
    if gave and (idle := NAMES.keys() - gave[0].made_of):
        return say("layers_idle", layers=_and(idle))
    finding = say("out_changed" if exact(recording.tensors, right, False) else "out_not_right")
    like = likeness(out, right) if isinstance(out, torch.Tensor) else ""
    finding = replace(finding, text=together(finding.text, like))
    return finding if like else with_cause(recording, finding, "out", right)


def _and(names: Iterable[str]) -> str:
    ordered = [name for name in LAYERS if name in names]
    return " and ".join(filter(None, [", ".join(ordered[:-1]), *ordered[-1:]]))

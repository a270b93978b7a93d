"""Follow one recorded forward from step to step and say at which one it leaves the right way.

The right tensors of each step are looked for among those that were recorded. Where they meet, in
the product of queries and keys, in that of weights and values, and in out_proj, it is seen what
was handed on; the first thing that is not right there is where to look. Where forward raises, it is
where it raises unless something before that was not right.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass

import torch

from eleven_steps.checks.name.locate.by_weights import HIDDEN, weigh
from eleven_steps.checks.name.locate.places import arranged, exact, joined, place
from eleven_steps.checks.name.locate.recording import NAMES, Recording
from eleven_steps.checks.name.say import Finding, say
from eleven_steps.checks.run.cases import LAYERS, LOOSE, Case, close
from eleven_steps.checks.run.isolate import Failure
from eleven_steps.checks.run.recorder import Held
from helpers.trace import STEPS

# Words of a line, by the step that they speak of.
WORDS = (
    (7, ("softmax", "drop", "sqrt", "** 0.5", "**0.5", "** -0.5", "**-0.5", "scale")),
    (6, ("mask", "triu", "tril", "inf", "causal")),
    (11, ("out_proj",)),
    (2, ("W_query", "W_key", "W_value")),
    (10, ("contiguous",)),
    (5, ("score",)),
)
# Parts of the names of torch's functions.
VIEWING = "view", "reshape", "flatten", "split", "chunk"
MOVING = "transpose", "permute", "swap", "movedim"
PRODUCT = "matmul", "einsum", "bmm"


def follow(recording: Recording) -> Finding | None:
    """Name the first step that is not right, or return None where all of them are.

    The questions know the lecture's steps alone; of a class with a change it is said how far it is
    right.
    """
    if recording.case.variant:
        return _as_far(recording)
    for question in (_projected, _scored, _weighed, _gathered, _combined):
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


def _scored(recording: Recording) -> Finding | None:
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
        right = recording.project(NAMES[layer])
        places, _ = place(product.left.tensor, right, recording.factors)
        heads.update((places % case.d_out // case.head_dim).flatten().tolist())
    return heads


def _handed_on(recording: Recording, held: Held, turned: bool) -> Finding | None:
    """What is wrong with queries, keys or values as they are handed to a product, if anything.

    Args:
        recording: of the forward.
        held: what was handed on, (..., tokens, features), made of one layer.
        turned: whether its last two axes are the other way round.
    """
    (layer,) = held.made_of
    name, product = NAMES[layer], 8 if layer == "W_value" else 5
    viewed, grouped = recording.reached("view", name), recording.reached("transpose", name)
    origin = place(held.tensor, recording.project(name), recording.factors)
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


# Where forward raises


@dataclass(frozen=True)
class Attempt:
    """What forward tried when it raised: a function of torch, and what that was given."""

    name: str
    tensors: tuple[torch.Tensor, ...]
    numbers: tuple[int, ...]
    worded: int | None  # the step that the words of the line speak of

    def does(self, *words: str) -> bool:
        """Whether the function is one of these, by parts of names."""
        return any(word in self.name for word in words)


def worded_step(failure: Failure) -> int | None:
    """The step that the words of a failing line speak of, if any."""
    line = f"{failure.line} {failure.words}"
    return next((step for step, words in WORDS if any(each in line for each in words)), None)


def failing_step(recording: Recording, failure: Failure) -> int:
    """The step at which forward raises: the first whose tensors it did not come to."""
    named = re.match(r"\w+: (\w+)\(\)", failure.text)  # by torch, where it was never called
    unseen = named[1] if named else "", (), ()
    tried = Attempt(*(recording.record.failing or unseen), worded_step(failure))
    if not _past_projections(recording, tried):
        return _to_projections(recording, tried)
    if not recording.scores_there:
        early = _scored(recording) if recording.scores else None
        return early.step if early else _to_scores(recording, tried)
    if not recording.there("softmax", "weights"):
        return _to_weights(recording, tried)
    if not recording.there("context", "context"):
        return _product(recording, tried, 8)
    return _to_out(recording, tried)


def _past_projections(recording: Recording, tried: Attempt) -> bool:
    """Whether all three are there, or one of them is what was handed on."""
    if tried.does(*VIEWING) or all(map(recording.made, NAMES.values())):
        return True
    rights = [recording.project(name) for name in NAMES.values()]
    return any(place(tensor, right) for tensor in tried.tensors for right in rights)


def _to_projections(recording: Recording, tried: Attempt) -> int:
    """Step 1 where nothing was begun, else 2, or that of a mask or a scale made beforehand."""
    if tried.worded in (6, 7):
        return tried.worded
    begun = any(held.made_of for held in recording.held)
    return 2 if tried.name or begun or tried.worded else 1


def _to_scores(recording: Recording, tried: Attempt) -> int:
    """The step, 1 or 3 to 7, at which forward raises between the projections and the scores."""
    case, tensors, numbers = recording.case, tried.tensors, tried.numbers
    if any(each.dim() == 4 and each.shape[0] == case.num_tokens for each in tensors):
        return 1
    if tried.does(*VIEWING):
        wanted = sorted((case.b, case.num_tokens, case.num_heads, case.head_dim))
        return 3 if -1 in numbers or sorted(numbers[-4:]) == wanted else 1
    if tried.does(*MOVING):
        return 3 if tensors and tensors[0].dim() == 3 else 4
    if tried.does(*PRODUCT) or tried.name in ("mul", "__mul__"):
        return _product(recording, tried, 5)
    square = any(t.dim() > 2 and t.shape[-2:] == (case.num_tokens,) * 2 for t in tensors)
    if square and (tried.worded in (6, 7) or tried.does("mask")):
        return 6
    return tried.worded or (5 if recording.reached("transpose", "queries") else 3)


def _to_weights(recording: Recording, tried: Attempt) -> int:
    """The step, 6 to 8, at which forward raises between the scores and the weights."""
    if tried.does("mask") or tried.worded == 6:
        return 6
    if tried.does("softmax") or tried.worded == 7:
        return 7
    return _product(recording, tried, 8) if tried.does(*PRODUCT) else 6


def _to_out(recording: Recording, tried: Attempt) -> int:
    """The step, 9 to 11, at which forward raises once the context is there."""
    if not tried.name:
        return tried.worded if tried.worded in (10, 11) else 9
    if tried.does("linear"):
        return 10 if tried.tensors and tried.tensors[0].shape[-1] != recording.case.d_out else 11
    if tried.does(*MOVING):
        return 9
    return 10 if tried.does(*VIEWING) else 11


def _product(recording: Recording, tried: Attempt, step: int) -> int:
    """The step at which what a product was given went wrong; the product's own if it is right."""
    b, num_heads, num_tokens, head_dim = recording.right["transpose"]["queries"].shape
    grouped = (b, num_heads, num_tokens, head_dim), (b, num_heads, head_dim, num_tokens)
    for tensor in (each for each in tried.tensors if each.dim() == 4 and each.shape not in grouped):
        for name in NAMES.values():
            origin = place(tensor, recording.project(name), recording.factors)
            if origin is None:
                continue
            if recording.reached("transpose", name) and step == 5:
                return step
            if arranged(origin[0], recording.case) != "right":
                return 4 if recording.reached("view", name) else 3
    return step

"""A learner's own class: its tensors step by step, and then the sentence, read by it."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import torch
import traitlets

from eleven_steps.beyond.checkpoints import MEETING, load_trained
from eleven_steps.beyond.grammar import WORDS, read
from eleven_steps.beyond.tiny import NUM_HEADS, TinyModel, without_head
from eleven_steps.helpers.trace import STEPS
from eleven_steps.sliders.breaking import differing, tables
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.live import Live, script, style
from eleven_steps.sliders.stage import (
    SCRIPTS,
    START,
    STORY,
    arcs,
    code,
    packed,
    page,
    scene_of,
    sentence,
    still,
    whiteboard,
)

SENTENCES = (
    MEETING,
    STORY,
    "Jana heard Kofi . the old dog sleeps . Jana heard",
    "the dogs near the tree",
)
NAME = re.compile(r"[A-Za-z_]\w*")
SAME = 1e-3  # what two ways to work out the scores of a word may differ by


class Read(Protocol):
    """How far a class is right: eleven_steps.checks.read_class returns it."""

    cls: Any
    says: str
    whole: bool
    steps: Sequence[Any]  # each with its name, state, tensors and right ones


class Own(Live):
    """Show how far a class is right, in its own tensors; once it is, let it read the sentence.

    Attributes:
        data: what the page gets: the stage, tables of what has no place there, what is said of the
            class, and each sentence that it has read with the next word.
        still: what the last step that is right makes of the whiteboard, or what the sentence's
            words attend to.
    """

    _esm = script("parts", *SCRIPTS, "own")
    _css = style("look", "sentence", "stage", "story", "own")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, reading: Read):
        reads, says = [], reading.says[:1].upper() + reading.says[1:]
        if reading.whole:
            try:
                reads = list(read_by(reading.cls))
            except Exception as error:  # it passes the checks, and may do anything elsewhere
                says += f" It cannot read a sentence: {type(error).__name__}: {error}"
        done = sum(step.state == "done" for step in reading.steps)
        title = f"Steps that are right: {done} of {len(STEPS)}"
        self.still = arcs() if reads else still(STEPS[max(done, 1) - 1], title)
        super().__init__(
            data={
                "says": says,
                "stage": story(reading.cls) if reads else staged(reading),
                "tables": [table for step in reading.steps for table in misplaced(step)],
                "reads": reads,
            }
        )

    def states(self) -> tuple[str, str, str]:
        """Return what is said of the class and what it says itself, and all of it."""
        says = [self.data["says"]]
        says += [f"{text} ... {word}, {share:.2f}" for text, word, share in self.data["reads"]]
        return "\n".join(says), "all tensors and all sentences", json.dumps(self.data)


def explore_class(reading: Read) -> Own:
    """See a class of your own step by step, and let it read once all eleven are right.

    A right class gets the weights of the trained tiny model. Its numbers are compared with those of
    the course's class on four sentences, with all heads and without each; where they agree, the
    sentence stands there as in the first notebook, with the lines of the class.

    Args:
        reading: how far it is right, as eleven_steps.checks.read_class returns it.
    """
    return Own(reading)


def story(cls: Any) -> dict[str, Any]:
    """Return the stage of a right class: the sentence in large type, the class's own lines."""
    own = typed(cls)
    scenes = {"whiteboard": whiteboard(), "sentence": sentence()}
    told = page(scenes, "softmax", True, STEPS)
    if own:
        for step in told["steps"]:
            step["code"] = own.splitlines()[nearest(own, step["code"])].strip()
    return told | {"scene": "sentence", "large": True}


def staged(reading: Read) -> dict[str, Any]:
    """Return the stage of a class: as far as it is right, and its first wrong step."""
    steps = reading.steps
    done = [step.name for step in steps if step.state == "done"]
    wrong = [at for at, step in enumerate(steps) if step.state == "wrong"]
    at = wrong[0] if wrong else len(done)  # as far as it goes: what is not right, or comes next
    first = steps[min(at, len(steps) - 1)]
    (mha, _), size = run(), {START["dOut"]: (START["heads"],)}
    scene = scene_of(tokens(), {START["dOut"]: mha}, size, START)
    other = [step.name for step in steps[1:at] if not step.tensors]  # x is always there
    own = {"open": at + 1 if at < len(steps) else None, "state": first.state, "other": other}
    own["code"], own["shapes"] = typed(reading.cls), unlike(first)
    own["lines"] = [nearest(own["code"], code(step.name)) for step in steps]
    if reshaped(first):
        own["shape"] = list(next(iter(first.tensors.values())).shape)
    if first.state == "wrong" and (fits(first) or "shape" in own):
        own["tensors"] = {
            name: {
                "numbers": packed(tensor),
                "differs": [0] * tensor.numel()
                if "shape" in own
                else differing(tensor, first.right[name]).flatten().int().tolist(),
            }
            for name, tensor in first.tensors.items()
        }
    answered = first.state == "done" or "tensors" in own
    return page({"whiteboard": scene}, first.name, answered, done) | {"own": own}


def typed(cls: Any) -> str:
    """Return a class's forward as it was typed; "" where its source is not known."""
    try:
        return textwrap.dedent(inspect.getsource(cls.forward)).rstrip()
    except (AttributeError, OSError, TypeError):
        return ""


def nearest(typed: str, code: str) -> int:
    """Return the index of the typed line that shares the most names with a line of the code."""
    names = [set(NAME.findall(line.partition("#")[0])) for line in typed.splitlines()]
    steps = [set(NAME.findall(line)) for line in code.splitlines()]
    alike = [max(len(own & other) / len(own | other) for other in steps) for own in names]
    return alike.index(max(alike)) if alike else 0


def unlike(step: Any) -> list[list[str]]:
    """Return name, shape and right shape of a wrong step's tensors that have another shape."""
    return [
        [name, str(tuple(tensor.shape)), str(tuple(step.right[name].shape))]
        for name, tensor in step.tensors.items()
        if step.state == "wrong" and tensor.shape != step.right[name].shape
    ]


def fits(step: Any) -> bool:
    """Whether all tensors of a step are there, in the shapes that they should have."""
    shapes = {name: tensor.shape for name, tensor in step.tensors.items()}
    return shapes == {name: tensor.shape for name, tensor in step.right.items()}


def reshaped(step: Any) -> bool:
    """Whether a step that only moves numbers made all of them in a shape of its own."""
    shapes = {tuple(tensor.shape) for tensor in step.tensors.values()}
    sizes = {name: tensor.numel() for name, tensor in step.tensors.items()}
    moves = step.state == "wrong" and step.name in ("view", "transpose", "reformat", "combine")
    whole = sizes == {name: tensor.numel() for name, tensor in step.right.items()}
    return moves and whole and not fits(step) and len(shapes) == 1 and len(min(shapes)) in (3, 4)


def misplaced(step: Any) -> Iterator[dict[str, Any]]:
    """Yield as tables what of a wrong step has no place on the stage."""
    if step.state != "wrong" or fits(step) or reshaped(step):
        return
    for name, tensor in step.tensors.items():
        yield {"title": f"{name} {tuple(tensor.shape)}", "all": tables(tensor, step.right[name])}


def read_by(cls: type) -> Iterator[tuple[str, str, float]]:
    """Yield each sentence, the next word that a class predicts with trained weights, its share.

    Raises:
        ValueError: the class has no place for the weights, or its scores are not those of the
            course's class, with all heads or without one.
    """
    right = load_trained()
    with torch.random.fork_rng(devices=[]):
        model = TinyModel(attention=cls).eval()
    trained = dict(right.named_parameters())  # a mask of ours would turn theirs round
    strange = model.load_state_dict(trained, strict=False)
    if lacking := [name for name in strange.missing_keys if name.endswith(("weight", "bias"))]:
        raise ValueError(f"{', '.join(lacking)} cannot be found")
    heads = [(layer, head) for layer, many in enumerate(NUM_HEADS) for head in range(many)]
    for text in SENTENCES:
        for off in (*heads, None):
            with torch.no_grad(), ExitStack() as out:
                for each in (model, right) if off else ():
                    out.enter_context(without_head(each, *off))
                scores, wanted = (each(read(text)) for each in (model, right))
            if not torch.allclose(scores, wanted, atol=SAME):
                less = "layer {}, head {} off".format(*off) if off else "all heads"
                raise ValueError(f'with {less} its scores for "{text}" are not right')
        share, best = scores[0, -1].softmax(dim=-1).max(dim=-1)
        yield text, WORDS[best], round(share.item(), 2)

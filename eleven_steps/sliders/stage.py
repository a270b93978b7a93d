"""The stage: the eleven steps as one picture under the hand, worked out in the page."""

import base64
import hashlib
import json
from collections.abc import Collection, Sequence
from copy import deepcopy
from functools import cache
from typing import Any

import torch
import traitlets

from eleven_steps.beyond.checkpoints import load_sentence
from eleven_steps.beyond.grammar import WORDS, read
from eleven_steps.beyond.tiny import TinyModel, trace_layers
from eleven_steps.helpers.attention import MultiHeadAttention
from eleven_steps.helpers.trace import SHAPES, STEPS, step_source, trace
from eleven_steps.pictures import (
    HEAD_COLOURS,
    Head,
    Picture,
    draw_arcs,
    draw_matrices,
    draw_tensors,
)
from eleven_steps.sliders.lesson import at_steps, run, tokens
from eleven_steps.sliders.live import Live, script, style

SIZES = {4: (1, 2, 4), 6: (1, 2, 3), 8: (1, 2, 4), 12: (1, 2, 3, 4)}  # d_out: num_heads
START = {"dOut": 6, "heads": 2, "tokens": 3}
PARTS = (
    *("numbers", "words", "layout", "memory", "story"),
    *("paint", "says", "hand", "playhead", "page"),
)
SCENES = ("whiteboard", "sentence")
STORY = "Anna met Bert . Anna met Lena . Anna met"  # its first six words are the sentence
WORDS_BY_HAND = ("old", "red", "boat")  # what the notebooks call the whiteboard's tokens
SHORT = 6
ASKED = {"mask": 1}  # the word a step opens with, where it is not the last: the first "met"
CONTRAST = ("softmax", "context")  # these open where one word shares its weight between two
NAMES = (
    ("nearby", "the verb", "word before"),
    ("same word", "what followed"),
)  # of heads, by layer
SCRIPTS = ("listen", *(f"stage_{name}" for name in PARTS), "sentence", "stage")


class Stage(Live):
    """Show all eleven steps under a playhead; it needs no kernel once it stands.

    Attributes:
        data: what the page gets: scenes (x, weights, legal sizes), the steps' names and code.
        still: the step it opens at.
    """

    _esm = script(*SCRIPTS, "alone")
    _css = style("look", "sentence", "stage", "story")
    data = traitlets.Dict().tag(sync=True)

    def __init__(
        self,
        step: str,
        scenes: Sequence[str],
        answered: bool,
        done: Collection[str] = (),
        large: bool = False,
    ):
        self.still = arcs() if large else still(step) if answered else before(step)
        opens = None if large else step
        made = {name: whiteboard() if name == "whiteboard" else sentence(opens) for name in scenes}
        more = {"scene": scenes[-1]} | ({"large": True} if large else {})  # the sentence first
        super().__init__(data=page(made, step, answered, done) | more)

    def states(self) -> tuple[str, str, str]:
        """Return what there is to move, and the numbers of every state."""
        scenes = ", ".join(self.data["scenes"])
        what = "the sentence" if self.data.get("large") else "the stage"
        says = f"{what}: step {self.data['step']}; {scenes}; playhead, sizes and numbers to move"
        data = {key: value for key, value in self.data.items() if key != "done"}
        every = json.dumps([data, numbers(json.dumps(self.data["scenes"]))])
        return says, "all steps at all sizes", every


def explore_stage(
    step: str = "scores",
    scene: str = "whiteboard",
    answered: bool = False,
    done: Collection[str] = (),
    large: bool = False,
) -> Stage:
    """See the eleven steps happen under your hand: move the playhead, the sizes, any number.

    Args:
        step: the step it opens at, one of helpers.trace.STEPS.
        scene: "whiteboard" (the course's x, seed 123), "sentence" (what the trained layer makes of
            "Anna met Bert . Anna met"), or "both", which begins with the sentence.
        answered: whether the step has happened already; else the title asks what it will do.
        large: whether the sentence stands first and in large type, with all else one press away.
        done: the names of the steps to tick, as eleven_steps.checks.steps_done() returns them.
    """
    if step not in STEPS:
        raise ValueError(f"no step is called {step!r}: expected one of {', '.join(STEPS)}")
    if scene not in (*SCENES, "both"):
        raise ValueError(f"there is no scene {scene!r}: expected {', '.join(SCENES)} or both")
    scenes = SCENES if scene == "both" else (scene,)
    return Stage(step, scenes, answered, done, large)


def page(scenes: dict, step: str, answered: bool, done: Collection[str]) -> dict[str, Any]:
    """Return all that the page gets."""
    steps = [{"name": name, "code": code(name), "letters": SHAPES[name]} for name in STEPS]
    begin = {"scene": next(iter(scenes)), "step": step, "answered": answered, "done": sorted(done)}
    return {"scenes": scenes, **begin, "steps": steps, "colours": HEAD_COLOURS, "names": NAMES}


def whiteboard() -> dict[str, Any]:
    """Return the scene of the course's x, with three more tokens, at every width offered."""
    layers = {d_out: run(d_out, num_heads=1)[0] for d_out in SIZES}
    return scene_of(tokens(6), layers, SIZES, START) | {"names": WORDS_BY_HAND}


def arcs() -> Picture:
    """Draw the sentence with what its words attend to in the layer of the stage."""
    seen = load_sentence()
    weights = seen.steps[6].tensors["weights"][0]
    return draw_arcs([Head(each, head, 1) for head, each in enumerate(weights)], seen.words)


def sentence(step: str | None = None) -> dict[str, Any]:
    """Return the scene of the trained layer that reads a sentence, as a step opens it."""
    seen = load_sentence(STORY)
    exact = deepcopy(seen.model).double()  # whose x is the same on every processor
    layer, x = seen.layer, trace_layers(exact, read(" ".join(seen.words)))[1][0].tensors["x"]
    width, heads = layer.d_out, layer.num_heads
    start = {"dOut": width, "heads": heads, "tokens": x.shape[1] if step in CONTRAST else SHORT}
    scene = scene_of(x, {width: layer}, {width: (heads,)}, start)
    opened = {"words": seen.words, "asked": ASKED.get(step)}
    return scene | opened | {"model": around(seen.model, x.shape[1])}


def around(model: TinyModel, num_tokens: int) -> dict[str, Any]:
    """Return what of the tiny model lies around its second layer, as the page reads it."""
    first = model.layers[0]
    return {
        "vocabulary": WORDS,
        "heads": first.num_heads,
        "first": {name: packed(parameter) for name, parameter in first.named_parameters()},
        "embedding": packed(model.embedding.weight),
        "places": packed(model.places[:num_tokens]),
        "unembedding": packed(model.unembedding.weight),
        "bias": packed(model.unembedding.bias),
    }


def scene_of(x: torch.Tensor, layers: dict, heads: dict, start: dict) -> dict[str, Any]:
    """Return a scene of x (1, num_tokens, d_in) as the page reads it: tensors as base64."""
    weights = {
        str(d_out): {name: packed(parameter) for name, parameter in layer.named_parameters()}
        for d_out, layer in layers.items()
    }
    legal = {str(d_out): list(choices) for d_out, choices in heads.items()}
    sizes = {"dIn": x.shape[2], "most": x.shape[1], "heads": legal, "start": start}
    return {"x": packed(x), "weights": weights, **sizes}


def packed(tensor: torch.Tensor) -> str:
    """Write a tensor of any shape as base64 of float32, row by row."""
    return base64.b64encode(tensor.detach().float().contiguous().numpy().tobytes()).decode()


def unpacked(text: str) -> torch.Tensor:
    """Decode a tensor that `packed` encoded."""
    return torch.frombuffer(bytearray(base64.b64decode(text)), dtype=torch.float32)


def module_of(scene: dict[str, Any], d_out: int, num_heads: int) -> MultiHeadAttention:
    """Return the class with a scene's weights."""
    with torch.random.fork_rng(devices=[]):  # a notebook's random numbers stay its own
        mha = MultiHeadAttention(scene["dIn"], d_out, scene["most"], 0.0, num_heads)
    stored, own = scene["weights"][str(d_out)], dict(mha.named_parameters())
    mha.load_state_dict({name: unpacked(text).view_as(own[name]) for name, text in stored.items()})
    return mha


def sizes_of(scene: dict[str, Any]) -> list[tuple[int, int, int]]:
    """Return d_out, num_heads and num_tokens of all states that the sliders offer."""
    lengths = range(1, scene["most"] + 1)
    return [(int(d), h, n) for d, heads in scene["heads"].items() for h in heads for n in lengths]


@cache
def numbers(scenes: str) -> str:
    """Return a hash over the class's numbers in all steps at all sizes, to one decimal.

    More, and in single precision this too, would hang on how a processor rounds.
    """
    hashed = hashlib.sha256()
    for scene in json.loads(scenes).values():
        x = unpacked(scene["x"]).view(1, scene["most"], scene["dIn"]).double()
        for d_out, num_heads, num_tokens in sizes_of(scene):
            for step in trace(module_of(scene, d_out, num_heads).double(), x[:, :num_tokens]):
                for name, tensor in step.tensors.items():
                    rounded = [round(number, 1) + 0.0 for number in tensor.flatten().tolist()]
                    hashed.update(f"{step.name}.{name} {rounded}".encode())
    return hashed.hexdigest()


def code(step: str) -> str:
    """Return the step's lines of torch without their comments."""
    return "\n".join(line.partition("  #")[0] for line in step_source(step).splitlines())


def before(step: str) -> Picture:
    """Draw what a step is given: what is stored before a learner has predicted what it makes."""
    given = STEPS[max(STEPS.index(step) - 1, 0)]
    if step == given:
        facts = {"x": tokens(3)[0]}
        return draw_matrices(
            facts, f"Before step 1, {step}: which sizes does the code read from x?"
        )
    return still(given, f"Before step {STEPS.index(step) + 1}, {step}: what will it make of this?")


def still(step: str, title: str = "") -> Picture:
    """Draw what a step makes of the whiteboard: what stands where a view cannot."""
    ran = run()
    shown = at_steps(ran, *(f"{step}.{name}" for name in ran[1][step]))
    return draw_tensors(shown, title or f"Step {STEPS.index(step) + 1}: {step}")

"""A learner's own class: its tensors step by step, and what it makes of a sentence."""

import inspect
import json
import re
import textwrap
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import torch
import traitlets

from eleven_steps.beyond.checkpoints import load_trained
from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.beyond.grammar import WORDS, read, write
from eleven_steps.beyond.tiny import NUM_HEADS, TinyModel, patterns, without_head
from eleven_steps.helpers.trace import STEPS
from eleven_steps.sliders.breaking import differing, tables
from eleven_steps.sliders.lesson import run, tokens
from eleven_steps.sliders.live import Live, script, style
from eleven_steps.sliders.stage import SCRIPTS, START, code, packed, page, scene_of, still

SENTENCES = (
    "Anna met Bert . Anna met",
    "Cleo met Dora . Cleo met",
    "Anna met Bert . Cleo saw Dora . Cleo saw",
    "Emil Frida Gus . Emil Frida",
    "Jana heard Kofi . the old dog sleeps . Jana heard",
    "the dogs near the tree",
)
NAME = re.compile(r"[A-Za-z_]\w*")
LIKELIEST = 3  # words that are shown with their shares
SAME = 1e-3  # what shares from two ways of reckoning may differ by


class Read(Protocol):
    """How far a class is right: eleven_steps.checks.read_class returns it."""

    cls: Any
    says: str
    whole: bool
    steps: Sequence[Any]  # each with its name, state, tensors and right ones


class Own(Live):
    """Show how far a class is right, in its own tensors; once it is, let it read sentences.

    Attributes:
        data: what the page gets: the stage, tables of what has no place there, what the class says.
        still: what the last step that is right makes of the whiteboard.
    """

    _esm = script("parts", *SCRIPTS, "own")
    _css = style("look", "lever", "sentence", "stage", "story", "own")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, reading: Read):
        done = sum(step.state == "done" for step in reading.steps)
        self.still = still(STEPS[max(done, 1) - 1], f"Steps that are right: {done} of {len(STEPS)}")
        voice, says = None, reading.says[:1].upper() + reading.says[1:]
        if reading.whole:
            try:
                voice = list(spoken(reading.cls))
            except Exception as error:  # it passes the checks, and may do anything elsewhere
                says += f" It cannot read a sentence: {type(error).__name__}: {error}"
        super().__init__(
            data={
                "says": says,
                "stage": staged(reading),
                "tables": [table for step in reading.steps for table in misplaced(step)],
                "voice": voice,
            }
        )

    def states(self) -> tuple[str, str, str]:
        """Return what is said of the class and what it says itself, and all of it."""
        says = [self.data["says"]]
        for sentence in self.data["voice"] or ():
            word, share = sentence["states"][0]["next"][0]
            says.append(f"{' '.join(sentence['words'])} ... {word}, share {share:.2f}")
        return "\n".join(says), "all tensors and all sentences", json.dumps(self.data)


def explore_class(reading: Read) -> Own:
    """See a class of your own step by step, and let it speak once all eleven are right.

    A right class gets the weights of the trained tiny model and reads sentences, with all heads or
    with one switched off.

    Args:
        reading: how far it is right, as eleven_steps.checks.read_class returns it.
    """
    return Own(reading)


def staged(reading: Read) -> dict[str, Any]:
    """Return the stage of a class: as far as it is right, and its first wrong step."""
    steps = reading.steps
    done = [step.name for step in steps if step.state == "done"]
    wrong = [at for at, step in enumerate(steps) if step.state == "wrong"]
    at = wrong[0] if wrong else len(done)  # as far as it goes: what is not right, or comes next
    first = steps[min(at, len(steps) - 1)]
    (mha, _), size = run(), {START["dOut"]: (START["heads"],)}
    scene = scene_of(tokens(), {START["dOut"]: mha}, size, START)
    other = [step.name for step in steps[:at] if not step.tensors]
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
    """Return the number of the typed line, from 0, that shares most names with a step's."""
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


def spoken(cls: type) -> Iterator[dict[str, Any]]:
    """Yield for each sentence what a class makes of it: with all heads, then without one each."""
    right = load_trained()
    with torch.random.fork_rng(devices=[]):
        model = TinyModel(attention=cls).eval()
    trained = dict(right.named_parameters())  # a mask of ours would turn theirs round
    strange = model.load_state_dict(trained, strict=False)
    if lacking := [name for name in strange.missing_keys if name.endswith(("weight", "bias"))]:
        raise ValueError(f"{', '.join(lacking)} cannot be found")
    heads = [(layer, head) for layer, many in enumerate(NUM_HEADS) for head in range(many)]
    for sentence in SENTENCES:
        tokens = read(sentence)
        states = []
        for off in (None, *heads):
            with torch.no_grad(), ExitStack() as out:
                for either in (model, right) if off else ():
                    out.enter_context(without_head(either, *off))
                looks = [look for layer in patterns(right, tokens) for look in layer[0]]
                with SquaresMade() as watch:
                    scores = model(tokens)[0, -1]
                chances, best = scores.softmax(dim=-1).topk(LIKELIEST)
            every = zip(best.tolist(), chances.tolist(), strict=True)
            said = [[WORDS[k], round(share, 2)] for k, share in every]
            states.append({"off": off, "next": said, "arcs": [watch.seen(look) for look in looks]})
        yield {"words": write(tokens[0]), "states": states}


class SquaresMade(DispatchMode):
    """Keep every square matrix that torch makes: a class's own weights are among them."""

    def __init__(self):
        super().__init__()
        self.found: list[torch.Tensor] = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        """Run the operation and keep copies."""
        result = operation(*args, **(kwargs or {}))
        made = isinstance(result, torch.Tensor) and result.dim() > 1 and result.is_floating_point()
        if made and result.shape[-1] == result.shape[-2]:
            self.found += result.detach().clone().reshape(-1, *result.shape[-2:]).unbind()
        return result

    def seen(self, look: torch.Tensor) -> list[list[float]] | None:
        """Return the class's own weights of a head, (num_tokens, num_tokens), if it makes any."""
        for matrix in self.found:
            if matrix.shape == look.shape and torch.allclose(matrix, look, atol=SAME):
                return [[round(share, 2) for share in row] for row in matrix.tolist()]
        return None

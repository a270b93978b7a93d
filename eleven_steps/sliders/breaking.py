"""Lines of a step to break by hand: what its shape, its numbers and a real sentence say to it."""

import json
import math
import os
import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

import torch
import traitlets

from eleven_steps.beyond.checkpoints import MEETING, load_trained
from eleven_steps.beyond.grammar import WORDS, read
from eleven_steps.beyond.tiny import TinyModel
from eleven_steps.helpers.examples import load_whiteboard
from eleven_steps.pictures import draw_tensors
from eleven_steps.sliders.film import MOST
from eleven_steps.sliders.lesson import at_steps, run
from eleven_steps.sliders.live import Live, script, style

ENOUGH = 0.5  # probability of the right next word: below it, a reader notices
SAME = 1e-6  # what two ways to work out one number may differ by


class Lines(Protocol):
    """What can be changed in a step: eleven_steps.checks.wrong_lines returns it."""

    step: str
    shown: tuple[str, str]
    lines: tuple[Any, ...]  # each with its texts, the right one first

    def states(self) -> Iterable[Any]:
        """Yield every choice: chosen, the class with these lines, why it matters."""


class Break(Live):
    """Show lines that can be changed, and who notices; it needs no kernel once it stands.

    Attributes:
        data: what the page gets: the texts of each line, and what each choice of them comes to.
        still: the right tensor.
    """

    _esm = script("parts", "listen", "breaking")
    _css = style("look", "breaking")
    data = traitlets.Dict().tag(sync=True)

    def __init__(self, lines: Lines):
        step, name = lines.shown
        self.still = draw_tensors(at_steps(run(), f"{step}.{name}"), "Who notices a wrong line?")
        texts = [[plain(text) for text in line.texts] for line in lines.lines]
        states = list(judged(lines))
        if not 1 < len(states) <= MOST:
            raise ValueError(
                f"{lines.step} has {len(states)} states: from 2 to {MOST} can be shown"
            )
        super().__init__(
            data={
                "lines": [cut(choices) for choices in texts],
                "states": states,
                "tensor": name,
                "words": MEETING.split(),
            }
        )

    def states(self) -> tuple[str, str, str]:
        """Return for each choice of lines what was seen, and all of it."""
        says = [f"{len(self.data['states'])} choices of lines"]
        for state in self.data["states"]:
            change = [
                line["before"] + line["texts"][k] + line["after"]
                for line, k in zip(self.data["lines"], state["chosen"], strict=True)
                if k
            ]
            says.append(f"{'; '.join(change) or 'as it stands'}: {'; '.join(state['says'])}")
        return "\n".join(says), "all numbers", json.dumps(self.data)


def break_step(lines: Lines) -> Break:
    """Change the lines of a step by hand, and see who notices: shape, numbers or a sentence.

    Shape and numbers are those of the whiteboard; the sentence is "Anna met Bert . Anna met", which
    the trained model goes on with, all its layers written with the changed lines.

    Args:
        lines: what can be changed, in at most 40 ways, as eleven_steps.checks.wrong_lines returns
            it.
    """
    return Break(lines)


def plain(code: str) -> str:
    """Return a line of the class as the lesson writes it: without self, in one line."""
    return re.sub(r"\n\s*", "; ", code).replace("self.", "")


def cut(texts: list[str]) -> dict[str, Any]:
    """Return the parts of a line's texts that differ, and what stands before and after them."""
    before = os.path.commonprefix(texts)
    before = before[: max(before.rfind(mark) for mark in " .(") + 1]
    rest = [text[len(before) :] for text in texts]
    for k in range(min(map(len, rest)) + 1, -1, -1):  # the longest end that leaves no bracket open
        own = [text[: len(text) - k] for text in rest]
        same = len({text[len(text) - k :] for text in rest}) == 1
        if same and all(text.count("(") == text.count(")") for text in own):
            break
    return {"before": before, "after": rest[0][len(own[0]) :], "texts": own}


def judged(lines: Lines) -> Iterator[dict[str, Any]]:
    """Yield for each choice of lines what the page shows of it; the right one comes first."""
    trained, right = load_trained().state_dict(), None
    for state in lines.states():
        made = on_whiteboard(state.cls, *lines.shown)
        right = made if right is None else right
        word = next_word(state.cls, trained)
        seen = [of_shape(made, right), of_numbers(made, right), of_sentence(word)]
        yield {
            "chosen": list(state.chosen),
            "notices": [notices for notices, _ in seen],
            "says": [says for _, says in seen],
            "tables": tables(made, right),
            "word": None if isinstance(word, str) or math.isnan(word[1]) else word[:2],
            "why": list(state.why),
        }


def on_whiteboard(cls: type, step: str, name: str) -> torch.Tensor | str:
    """Return the tensor that a class records at a step, or the error that it stops with."""
    found: dict[str, torch.Tensor] = {}

    def record(at: str, **tensors: torch.Tensor) -> None:
        if at == step:
            found[name] = tensors[name].detach().clone()

    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            torch.manual_seed(123)
            cls(6, 6, 6, 0.0, 2)(load_whiteboard(), record=record)
    except RuntimeError as error:
        return str(error).splitlines()[0]
    return found[name]


def next_word(cls: type, trained: dict[str, torch.Tensor]) -> tuple[str, float, float] | str:
    """Return the next word, its probability and Bert's, or the error that the model stops with.

    All layers of the model are of the class; trained has their weights, (out, in) each. NaN among
    the probabilities makes the word's NaN.
    """
    try:
        with torch.random.fork_rng(devices=[]), torch.no_grad():
            model = TinyModel(attention=cls).eval()
            model.load_state_dict(trained)
            chances = model(read(MEETING))[0, -1].softmax(dim=-1)
    except RuntimeError as error:
        return "weights do not fit" if "state_dict" in str(error) else str(error).splitlines()[0]
    chance, best = chances.max(dim=-1)
    return WORDS[best], round(chance.item(), 2), round(chances[WORDS.index("Bert")].item(), 2)


def of_shape(made: torch.Tensor | str, right: torch.Tensor) -> tuple[bool, str]:
    """Return whether made's shape (...) shows that something is wrong, and what it is."""
    if isinstance(made, str):
        return True, f"torch stops: {made}"
    if made.shape != right.shape:
        return True, f"{tuple(made.shape)}, expected {tuple(right.shape)}"
    return False, f"{tuple(made.shape)}, as expected"


def of_numbers(made: torch.Tensor | str, right: torch.Tensor) -> tuple[bool | None, str]:
    """Return whether made's numbers (...) show it, None where they cannot, and how many differ."""
    if isinstance(made, str) or made.shape != right.shape:
        return None, "no number has its place"
    count, every = int(differing(made, right).sum()), right.numel()
    return count > 0, f"{count} of {every} differ" if count else f"all {every} as expected"


def of_sentence(word: tuple[str, float, float] | str) -> tuple[bool, str]:
    """Return whether a reader of the sentence notices, and its next word."""
    if isinstance(word, str):
        return True, f"torch stops: {word}"
    best, chance, wanted = word
    if math.isnan(wanted):
        return True, "no next word: every probability is NaN"
    only = "only " if chance == wanted < ENOUGH else ""  # the right word, but hardly
    return wanted < ENOUGH, f"{best}, probability {only}{chance:.2f}"


def differing(made: torch.Tensor, right: torch.Tensor) -> torch.Tensor:
    """Return where made and right, both (...), differ; -inf is like -inf, NaN like nothing."""
    return ~torch.isclose(made, right, rtol=0.0, atol=SAME)


def tables(made: torch.Tensor | str, right: torch.Tensor) -> list[dict[str, Any]]:
    """Return a tensor (1, ..., rows, columns) as tables of texts, and which of them differ.

    The tables of a tensor with four dimensions are its heads, where its shape is right.
    """
    if isinstance(made, str):
        return []
    comparable = made.shape == right.shape
    differs = differing(made, right) if comparable else torch.zeros_like(made, dtype=torch.bool)
    every = zip(*(tensor.reshape(-1, *made.shape[-2:]) for tensor in (made, differs)), strict=True)
    named = "head" if comparable else "table"
    return [
        {
            "name": f"{named} {k}" if made.dim() == 4 else "",
            "rows": [[written(number) for number in row] for row in table.tolist()],
            "differs": wrong.int().tolist(),
        }
        for k, (table, wrong) in enumerate(every)
    ]


def written(number: float) -> str:
    """Write a number with two decimals, as the stage does."""
    if math.isinf(number):
        return "−∞" if number < 0 else "∞"
    return "NaN" if math.isnan(number) else f"{round(number, 2) + 0.0:.2f}".replace("-", "−")

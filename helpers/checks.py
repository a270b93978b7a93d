"""Say what is wrong in a learner's attention class, and at which of the eleven steps."""

import functools
import html
import itertools
import re
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from helpers.attention import MultiHeadAttention
from helpers.devices import left_behind
from helpers.evidence import WORDS, done, failure_key, locate_detached, locate_failure
from helpers.exercises import check as check  # so that all checks can be had from here
from helpers.guard import Failure, Stopped, TimeUp, attempt, kept_attributes, kept_state, time_limit
from helpers.looks import (
    BIASED,
    MAIN,
    NAMES,
    SIMPLER,
    SIZES,
    Sizes,
    build,
    close,
    expected_parameters,
    gradient_look,
    look,
    parameter_shapes,
    planted,
    recorded,
    right_look,
    run,
    stress_look,
    training_looks,
    wrong_look,
)
from helpers.mistakes import MISTAKES
from helpers.probes import Finding, locate
from helpers.trace import STEPS

SECONDS = 1.6
SIGNATURE = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
DROPOUT = 0.2


@dataclass(frozen=True)
class Verdict:
    """What check_attention found; a notebook shows it with the numbers that tell.

    Args:
        passed: whether the class is right.
        step: the first wrong step, 1 to 11; None if there is none, or none can be told.
        mistakes: identifiers in helpers.mistakes of the known mistakes, first step first.
        message: what is wrong, where to look, what was expected.
        theirs: the learner's numbers, rows of equal length, and right beside them the right ones.
        right: see theirs.
        caption: what the numbers are.
    """

    passed: bool
    step: int | None
    mistakes: tuple[str, ...]
    message: str
    theirs: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    right: tuple[tuple[float, ...], ...] = field(default=(), repr=False)
    caption: str = field(default="", repr=False)

    @property
    def display(self) -> str:
        """The verdict as HTML, readable in light and dark themes."""
        word, sign, colour = (
            ("passed", "✓", "var(--jp-success-color0, #1b5e20)")
            if self.passed
            else ("not yet", "✗", "var(--jp-error-color0, #b71c1c)")
        )
        text = re.sub(r"`([^`]*)`", r"<code>\1</code>", html.escape(self.message))
        parts = [
            f'<div role="group" aria-label="Verdict: {word}" style="border-left: 4px solid '
            f'{colour}; padding: 4px 12px; color: var(--jp-ui-font-color1, currentColor)">'
            f'<p style="margin: 4px 0"><strong>{sign} {word}</strong> {text}</p>'
        ]
        if self.theirs:
            parts.append(
                '<div style="display: flex; flex-wrap: wrap; gap: 24px">'
                + _table(f"your {self.caption}", self.theirs, self.right)
                + _table(f"right {self.caption}", self.right, self.theirs)
                + "</div>"
            )
        return "".join(parts) + "</div>"

    def __str__(self) -> str:
        """The verdict as plain text."""
        lines = [f"{'passed' if self.passed else 'not yet'}: {self.message}"]
        for title, rows in (("your", self.theirs), ("right", self.right)):
            if rows:
                lines.append(f"{title} {self.caption}:")
                lines += ["  " + "  ".join(f"{_number(each):>8}" for each in row) for row in rows]
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/plain": str(self), "text/html": self.display}


def check_attention(cls: type) -> Verdict:
    """Find out whether a class is causal multi-head attention, and if not, what is wrong.

    The class is compared with MultiHeadAttention under the same weights: outputs at many sizes,
    gradients, dropout, devices. What differs is looked up in helpers.mistakes and asked about by
    helpers.probes.

    Args:
        cls: a subclass of nn.Module, built as cls(d_in, d_out, context_length, dropout, num_heads,
            qkv_bias=False) with layers W_query, W_key, W_value and out_proj; its forward takes
            x (b, num_tokens, d_in) and returns (b, num_tokens, d_out).

    Returns:
        A Verdict; nothing that cls does is raised, printed or left behind, and a class that takes
        longer than two seconds is stopped.
    """
    with kept_state(), kept_attributes(cls):
        learner = Learner(cls)
        try:
            with time_limit(SECONDS):
                return verdict_on(learner.findings(), learner.remark)
        except TimeUp:
            return verdict_on(
                [
                    *learner.found,
                    Found(
                        None,
                        f"The class did not answer all questions within {SECONDS} seconds: look "
                        f"for a loop that does not end, or for work that torch does in one call.",
                    ),
                ]
            )
        except Exception as error:
            return verdict_on(
                [Found(None, f"The class cannot be checked: {type(error).__name__}.")]
            )


@dataclass(frozen=True)
class Found:
    """One thing that is wrong: its step, what to say, the catalogued mistakes if it is known."""

    step: int | None
    text: str
    mistakes: tuple[str, ...] = ()
    finding: Finding | None = None


def verdict_on(found: list[Found], remark: str = "") -> Verdict:
    """Put together what was found, the first step first."""
    if not found:
        text = "All eleven steps are right: outputs, gradients, dropout and mask agree."
        return Verdict(True, None, (), f"{text} {remark}".strip())
    found = sorted(found, key=lambda each: each.step or len(STEPS) + 1)
    mistakes = dict.fromkeys(name for each in found for name in each.mistakes)
    texts = list(dict.fromkeys(_with_step(each) for each in found[:2]))
    numbers = next((each.finding for each in found if each.finding is not None), None)
    theirs = right = ()
    caption = ""
    if numbers is not None and numbers.theirs is not None:
        theirs, right = (
            tuple(map(tuple, each.tolist())) for each in (numbers.theirs, numbers.right)
        )
        caption = numbers.caption
    return Verdict(False, found[0].step, tuple(mistakes), " ".join(texts), theirs, right, caption)


def _with_step(found: Found) -> str:
    return (
        found.text
        if found.step is None
        else f"Step {found.step} ({STEPS[found.step - 1]}): {found.text}"
    )


class Learner:
    """A learner's class under examination; found grows as its channels are gone through."""

    def __init__(self, cls: Any):
        self.cls = cls
        self.found: list[Found] = []
        self.remark = ""
        self.looks: dict[Sizes, torch.Tensor | Failure] = {}

    def findings(self) -> list[Found]:
        """Everything that is wrong, each channel by itself."""
        if not self.is_module_class() or not self.is_constructed():
            return self.found
        whole = self.has_parameters()
        if self.has_layers:
            if whole:
                self.computes()
                self.learns()
                self.drops()
            else:
                self.computes_otherwise()
            self.stays_itself()
            self.moves()
        return self.found

    def report(
        self, step: int | None, text: str, *mistakes: str, finding: Finding | None = None
    ) -> None:
        """Add to what was found."""
        self.found.append(Found(step, text, mistakes, finding))

    def report_known(self, *mistakes: str) -> None:
        """Add catalogued mistakes to what was found."""
        for name in sorted(mistakes, key=lambda each: MISTAKES[each].step):
            if all(name not in each.mistakes for each in self.found):
                self.report(MISTAKES[name].step, with_numbers(MISTAKES[name].sentence), name)

    def is_module_class(self) -> bool:
        """Whether a class derived from nn.Module was handed over."""
        if isinstance(self.cls, nn.Module):
            self.report(None, "This is a module already built: hand over the class itself.")
        elif not isinstance(self.cls, type):
            self.report(None, f"This is a {type(self.cls).__name__}: hand over a class.")
        elif not issubclass(self.cls, nn.Module):
            self.report(
                1,
                f"{self.cls.__name__} is no nn.Module: begin with `class {self.cls.__name__}(nn.Module):`.",
            )
        return not self.found

    def is_constructed(self) -> bool:
        """Whether the constructor works as the lecture's does."""
        for bias in (True, False):
            built = attempt(construct, self.cls, MAIN, bias)
            if not isinstance(built, Failure):
                continue
            if "Module.__init__()" in built.text or "_modules" in built.text:
                self.report_known("no_super_init")
            elif isinstance(built.error, TypeError) and "argument" in built.text:
                self.report(
                    1, f"The constructor cannot be called as `({SIGNATURE})`: {built.text}."
                )
            else:
                where = f" in `{built.line}`" if built.line else ""
                self.report(
                    _worded_step(built.line, 1), f"The constructor raises {built.text}{where}."
                )
            return False
        return True

    @functools.cached_property
    def names(self) -> dict[bool | None, dict[str, tuple[int, ...]]]:
        """Parameter names and shapes with qkv_bias True, False and left out."""
        return {
            bias: parameter_shapes(construct(self.cls, MAIN, bias)) for bias in (True, False, None)
        }

    @property
    def has_layers(self) -> bool:
        """Whether W_query, W_key, W_value have weights, so that they can be filled."""
        return all(f"{name}.weight" in self.names[True] for name in NAMES)

    def has_parameters(self) -> bool:
        """Whether the layers have the names, shapes and biases of the lecture's; else report."""
        module = construct(self.cls, BIASED, True)
        lost = [name for name in NAMES if f"{name}.weight" not in self.names[True]]
        if lost:
            self.report_lost(module, lost)
            return False
        layers = {name: getattr(module, name).weight for name in NAMES}
        for one, other in itertools.combinations(layers, 2):
            if layers[one] is layers[other]:
                self.report(
                    2,
                    f"{one} and {other} are one and the same layer. "
                    + MISTAKES["weights_tied"].sentence,
                    "weights_tied",
                )
                break
        self.report_biases()
        right = right_shapes(True)
        return all(self.names[True].get(name, shape) == shape for name, shape in right.items())

    def report_lost(self, module: nn.Module, lost: list[str]) -> None:
        """Say which layers are missing."""
        if any(isinstance(getattr(module, name, None), list | tuple | dict) for name in lost):
            self.report_known("layers_in_plain_list")
            return
        listed = [each for each in vars(module).values() if isinstance(each, list | tuple | dict)]
        if any(
            isinstance(each, nn.Module)
            for some in listed
            for each in (some.values() if isinstance(some, dict) else some)
        ) and not dict(module.named_parameters()):
            self.report_known("layers_in_plain_list")
            return
        names = ", ".join(name for name, _ in module.named_parameters()) or "none"
        text = (
            f"{', '.join(lost)} cannot be found: the layers are expected as `nn.Linear` under the "
            f"names W_query, W_key, W_value and out_proj. The parameters found are: {names}."
        )
        self.report(11 if lost == ["out_proj"] else 2, text)

    def report_biases(self) -> None:
        """Say which biases are there or missing against qkv_bias."""
        qkv = {f"{name}.bias" for name in NAMES[:3]}
        missing = qkv - set(self.names[True])
        extra = qkv & set(self.names[False])
        if missing == qkv:
            self.report_known("bias_missing")
        elif missing:
            self.report(
                2,
                f"With qkv_bias=True there is no {', '.join(sorted(missing))}: pass `bias=qkv_bias` to all three layers.",
            )
        if extra == qkv:
            self.report_known("bias_always")
        elif extra:
            self.report(
                2,
                f"With qkv_bias=False there is still {', '.join(sorted(extra))}: pass `bias=qkv_bias` to all three layers.",
            )
        elif qkv & set(self.names[None]):
            self.report_known("bias_by_default")
        without = [bias for bias in (True, False) if "out_proj.bias" not in self.names[bias]]
        if without:
            self.report_known(
                "out_proj_without_bias" if len(without) == 2 else "out_proj_bias_from_qkv"
            )

    def ignored(self, sizes: Sizes) -> frozenset[str]:
        """Parameters that only this class or only the right one has; all are set to 0."""
        return frozenset(right_shapes(sizes.qkv_bias).keys() ^ self.names[sizes.qkv_bias].keys())

    def look(self, sizes: Sizes) -> torch.Tensor | Failure:
        """Output at sizes."""
        if sizes not in self.looks:
            self.looks[sizes] = look(self.cls, sizes, self.ignored(sizes))
        return self.looks[sizes]

    def wrong_sizes(self) -> list[Sizes]:
        """The sizes at which the output is not the right one."""
        return [
            sizes
            for sizes in SIZES
            if isinstance(self.look(sizes), Failure)
            or not close(self.look(sizes), right_look(sizes, self.ignored(sizes)))
        ]

    def computes(self) -> None:
        """Compare the outputs in eval mode; name the mistakes or find the step."""
        wrong = self.wrong_sizes()
        self.returns()
        if any("nothing_returned" in each.mistakes for each in self.found):
            return
        if wrong:
            known = self.single()
            if known:
                self.report_known(*known)
            else:
                self.probe(wrong)
            return
        ignored = self.ignored(MAIN)
        stressed = stress_look(self.cls, ignored)
        if not isinstance(stressed, Failure) and not close(
            stressed, stress_look(MultiHeadAttention, ignored)
        ):
            name = "mask_after_softmax_renormalised"
            if close(stressed, stress_look(planted((name,)), ignored)) or stressed.isnan().any():
                self.report_known(name)
            else:
                self.report(
                    6,
                    "When scores of future tokens are far higher than the others, the future is seen. Look at the mask: future scores must be -inf before the softmax.",
                )

    def returns(self) -> None:
        """Whether forward returns one float32 tensor."""
        module = build(self.cls, MAIN)
        if isinstance(module, Failure):
            return
        out = attempt(module, MAIN.input())
        if out is None:
            self.report_known("nothing_returned")
        elif isinstance(out, tuple | list):
            self.report_known("tuple_returned")
        elif isinstance(out, torch.Tensor) and out.dtype != torch.float32:
            self.report(
                11,
                f"The output holds {out.dtype}, x holds torch.float32. Look for a conversion such as `.double()` or `.half()`.",
            )
        elif not isinstance(out, Failure | torch.Tensor):
            self.report(11, f"forward returns {type(out).__name__}: return the output tensor.")

    def computes_otherwise(self) -> None:
        """Name the mistake where a layer has another shape."""
        known = self.single() or self.candidates
        if len(known) == 1:
            self.report_known(*known)
            return
        shapes, right = self.names[True], right_shapes(True)
        name = next(each for each in right if shapes.get(each, right[each]) != right[each])
        step = 2
        if name.startswith("out_proj"):
            step = 10 if shapes[name][-1] == MAIN.head_dim else 11
        elif shapes[name][0] == MAIN.d_out * MAIN.num_heads:
            step = 1
        self.report(
            step,
            f"{name} has shape {shapes[name]} at {_letters(MAIN)}: {right[name]} is expected. Look at its `nn.Linear` in the constructor.",
        )

    @property
    def every_size(self) -> tuple[Sizes, ...]:
        """Sizes at which a catalogued mistake must agree."""
        return SIZES + SIMPLER

    def agrees(self, mistakes: tuple[str, ...], sizes: Sizes) -> bool:
        """Whether the class does what the catalogued mistakes do at sizes."""
        mine, other = self.look(sizes), wrong_look(mistakes, sizes, self.ignored(sizes))
        if isinstance(mine, Failure) and isinstance(other, Failure):
            keys = [
                failure_key(recorded(module, sizes.input()))
                if not isinstance(module := build(cls, sizes), Failure)
                else None
                for cls in (self.cls, planted(mistakes))
            ]
            return keys[0] is not None and keys[0] == keys[1]
        return close(mine, other)

    def single(self) -> tuple[str, ...]:
        """The one catalogued mistake that comes to the same function, if there is one."""
        for name in self.candidates:
            if all(self.agrees((name,), each) for each in self.every_size):
                return (name,)
        return ()

    @functools.cached_property
    def candidates(self) -> list[str]:
        """Catalogued mistakes whose layers have the shapes of this class; biases aside."""
        weights = {name: shape for name, shape in self.names[True].items() if len(shape) > 1}
        return [
            name
            for name in MISTAKES
            if (shapes := planted_shapes(name))
            and all(shapes.get(each) == shape for each, shape in weights.items())
        ]

    def pair(self, step: int) -> tuple[str, ...]:
        """Two catalogued mistakes that together come to the same function, one at this step."""
        here = [name for name in self.candidates if step in MISTAKES[name].steps]
        for one, other in itertools.product(here, self.candidates):
            if MISTAKES[other].step <= MISTAKES[one].step or not self.conceivable(one, other):
                continue
            if isinstance(attempt(planted, (one, other)), Failure):  # the edits collide
                continue
            if all(self.agrees((one, other), each) for each in self.every_size):
                return (one, other)
        return ()

    def conceivable(self, one: str, other: str) -> bool:
        """Whether wherever one of two mistakes changes nothing, the other is seen alone."""
        return all(
            self.seen_alone(second, sizes)
            for sizes in (*SIMPLER, MAIN)
            for first, second in ((one, other), (other, one))
            if self.changes_nothing(first, sizes) or self.fails_alone(second, sizes)
        )

    def changes_nothing(self, name: str, sizes: Sizes) -> bool:
        """Whether a catalogued mistake comes to the right output at sizes."""
        ignored = self.ignored(sizes)
        return close(wrong_look((name,), sizes, ignored), right_look(sizes, ignored))

    def fails_alone(self, name: str, sizes: Sizes) -> bool:
        """Whether a catalogued mistake raises at sizes."""
        return isinstance(wrong_look((name,), sizes, self.ignored(sizes)), Failure)

    def seen_alone(self, name: str, sizes: Sizes) -> bool:
        """Whether a catalogued mistake comes to this class's output at sizes."""
        return close(wrong_look((name,), sizes, self.ignored(sizes)), self.look(sizes))

    def probe(self, wrong: list[Sizes]) -> None:
        """Find the step of a mistake that is not in the catalogue."""
        finding = locate(self.cls)
        if finding is not None:
            self.report(finding.step, finding.text, finding=finding)
            if known := self.pair(finding.step):
                self.found.pop()
                self.report_known(*known)
            return
        sizes = wrong[0]
        out = self.look(sizes)
        module = build(self.cls, sizes)
        if isinstance(module, Failure):
            self.report(
                _worded_step(module.line, 1),
                f"The constructor raises {module.text} at {_letters(sizes)}.",
            )
        elif isinstance(out, Failure):
            where = f" in `{out.line}`" if out.line else ""
            self.report(
                locate_failure(module, sizes, out),
                f"forward raises {out.text}{where}, at b = {sizes.b}, {_letters(sizes)}.",
            )
        else:
            after = done(recorded(module, sizes.input()), sizes)
            step = {0: 2, 2: 3, 5: 6, 7: 8, 8: 10, 11: 11}[after]
            expected = (sizes.b, sizes.num_tokens, sizes.d_out)
            if out.shape != expected:
                text = f"The output has shape {tuple(out.shape)}: (b, num_tokens, d_out), here {expected}, is expected."
            else:
                text = f"The output is wrong at b = {sizes.b}, {_letters(sizes)}, and right at other sizes."
            self.report(step, text)

    def learns(self) -> None:
        """Compare gradients: every weight that changes the output must learn."""
        ignored = self.ignored(BIASED)
        mine = gradient_look(self.cls, ignored)
        if isinstance(mine, Failure):
            if not self.found:
                self.report(2, f"backward raises {mine.text}: no gradient reaches the weights.")
            return
        right = gradient_look(MultiHeadAttention, ignored)
        cut = [
            name
            for name, gradient in mine.items()
            if name not in ignored
            and right[name].abs().max() > 1e-4
            and (gradient is None or not self.found and not gradient.any())
            and self.counts(name)
        ]
        if cut:
            self.report_cut(cut)
        elif not self.found and not all(
            close(mine[name], right[name], 1e-3) for name in mine if name not in ignored
        ):
            module = build(self.cls, BIASED)
            step = locate_detached(module, BIASED) or 7
            self.report(
                step,
                "The outputs are right and the gradients are not. Look for `.detach()`, `.data` or `no_grad` in forward.",
            )

    def counts(self, name: str) -> bool:
        """Whether a parameter, or x, changes the output."""
        module = build(self.cls, BIASED)
        x = BIASED.input()
        before = run(module, x)
        if name == "x":
            after = run(module, x + 0.5)
        else:
            with torch.no_grad():
                parameter = expected_parameters(module)[name]
                parameter.add_(torch.linspace(0.2, 0.9, parameter.numel()).view_as(parameter))
            after = run(module, x)
        return not close(before, after)

    def report_cut(self, cut: list[str]) -> None:
        """Say which weights get no gradient."""
        module = build(self.cls, BIASED)
        layers = [name for name in NAMES if f"{name}.weight" in cut]
        by_layers = {
            ("W_query",): "queries_detached",
            ("W_key",): "keys_detached",
            ("W_value",): "values_detached",
            ("W_query", "W_key"): "weights_detached",
            ("W_query", "W_key", "W_value"): "context_detached",
            NAMES: "no_grad",
        }
        known = by_layers.get(tuple(layers))
        step = locate_detached(module, BIASED) or (MISTAKES[known].step if known else 2)
        names = ", ".join(cut)
        text = MISTAKES[known].sentence if known else "Take away `.detach()`, `.data` or `no_grad`."
        self.report(step, f"No gradient reaches {names}. {text}", *((known,) if known else ()))

    def drops(self) -> None:
        """Look at dropout: on weights, at its rate, in training alone."""
        looks = training_looks(self.cls, DROPOUT)
        right = training_looks(MultiHeadAttention, DROPOUT)
        if isinstance(looks, Failure):
            return
        known = judge_dropout(looks, right)
        if known in MISTAKES:
            self.report_known(known)
        elif known:
            self.report(7, known)

    def stays_itself(self) -> None:
        """Whether forward leaves x and the weights alone, and gives the same each time."""
        module = build(self.cls, MAIN)
        if isinstance(module, Failure):
            return
        x = MAIN.input()
        given = x.clone()
        weights = {
            name: each.detach().clone() for name, each in expected_parameters(module).items()
        }
        attempt(module, given)
        if not close(given, x):
            self.report_known("input_changed")
        if not all(
            torch.equal(each, weights[name]) for name, each in expected_parameters(module).items()
        ):
            self.report(2, "forward changes the weights. Look for operations that end in `_`.")
        first = run(module, x)
        again = run(module, x)
        run(module, x[:1, :3] + 1)
        later = run(module, x)
        if isinstance(first, Failure) or self.found:
            return
        if isinstance(again, Failure) or not close(first, again):
            self.report(
                7,
                "The same x gives other numbers each time in eval mode. Look for randomness, and for results that are kept from one forward to the next.",
            )
        elif isinstance(later, Failure) or not close(first, later):
            self.report(
                6,
                "After a shorter text the same x gives other numbers. Look for something that is kept from one forward to the next, such as a mask.",
            )
        fresh = build(self.cls, MAIN)
        run(fresh, x[:1, :3] + 1)
        if not self.found and (isinstance(out := run(fresh, x), Failure) or not close(out, first)):
            self.report(
                6,
                "After a shorter text a longer one fails. Look for something that is kept from one forward to the next, such as a mask.",
            )

    def moves(self) -> None:
        """Whether everything follows `.to(device)`."""
        module = build(self.cls, MAIN)
        if isinstance(module, Failure):
            return
        behind = left_behind(module, MAIN.input())
        if "stored" in behind:
            self.report_known("mask_not_registered")
        elif behind:
            self.remark = "On a GPU it would fail: make the mask on x's device, `device=x.device`."


def construct(cls: Any, sizes: Sizes, bias: bool | None) -> nn.Module:
    """Call the constructor as the lecture does, qkv_bias left out where bias is None."""
    first = sizes.d_in, sizes.d_out, sizes.context_length, 0.0, sizes.num_heads
    if bias is None:
        return cls(*first)
    try:
        return cls(*first, qkv_bias=bias)
    except TypeError as error:
        if "qkv_bias" not in str(error):
            raise
        return cls(*first, bias)


@functools.cache
def right_shapes(bias: bool) -> dict[str, tuple[int, ...]]:
    """Parameter names and shapes of the right class."""
    return parameter_shapes(construct(MultiHeadAttention, MAIN, bias))


@functools.cache
def planted_shapes(name: str) -> dict[str, tuple[int, ...]]:
    """Parameter names and shapes with a catalogued mistake; none if it is one of biases."""
    shapes = {}
    for bias in (False, True):
        built = attempt(construct, planted((name,)), MAIN, bias)
        shapes = {} if isinstance(built, Failure) else parameter_shapes(built)
        if shapes.keys() != right_shapes(bias).keys():
            return {}
    return shapes


def judge_dropout(looks: tuple[torch.Tensor, ...], right: tuple[torch.Tensor, ...]) -> str:
    """Say what dropout does wrong: a catalogued mistake, a sentence, or nothing.

    Args:
        looks: weights read twice in eval mode and twice in training, as training_looks gives them.
        right: the same of the right class.
    """
    still, again, first, second = looks
    if not close(still, again):
        return "dropout_in_eval"
    if still.isnan().all():
        return ""
    if close(first, still):
        return "dropout_missing"
    if not close(still, right[0]):
        return ""
    if first.isnan().any():  # a dropped -inf is NaN
        return "dropout_on_scores"
    allowed = right[0] > 1e-3
    ratio = torch.where(allowed, first / right[0], torch.nan)
    if close(first[..., 0, :], first[..., 1, :]):
        kept = ratio[allowed & (first.abs() > 1e-6)]
        share = 1 - kept.numel() / int(allowed.sum())
        rows = first[..., 0, :].sum(-1)
        if close(rows, torch.ones_like(rows)):
            return "dropout_on_scores"
        if kept.numel() and float(kept.max() - kept.min()) < 1e-2:
            factor = float(kept.mean())
            if abs(share - DROPOUT) < 0.08 and abs(factor - 1) < 1e-2:
                return "dropout_not_scaled_up"
            if abs(share - 1 + DROPOUT) < 0.08:
                return "dropout_inverted"
            if abs(share - DROPOUT) > 0.08 or abs(factor - 1 / (1 - DROPOUT)) > 2e-2:
                return (
                    f"With dropout = {DROPOUT} a share of {share:.2f} of the weights is dropped and "
                    f"the others are multiplied by {factor:.3f}: expected are {DROPOUT} and "
                    f"{1 / (1 - DROPOUT):.3f}. Look at `nn.Dropout(dropout)` and where it is used."
                )
            dropped = (first[..., 0, :] == 0) & allowed[..., 0, :]
            if close(first, second):
                return "Dropout hits the same weights every time: let it draw anew in each forward."
            if torch.equal(dropped, dropped[:, :1].expand_as(dropped)):
                return "Dropout hits the same weights in all heads: apply it to the weights of every head."
            if torch.equal(dropped, dropped[:1].expand_as(dropped)):
                return "Dropout hits the same weights in all sequences of the batch: apply it to the whole weights."
            return ""
        return (
            "Dropout does not set single weights to 0. Apply it once, to the weights after the "
            "softmax."
        )
    whole = (first + 3).abs() < 1e-6
    return "dropout_on_output" if whole.any() else "dropout_on_context"


def _worded_step(line: str, default: int) -> int:
    return next((step for step, words in WORDS if any(each in line for each in words)), default)


def _letters(sizes: Sizes) -> str:
    return ", ".join(f"{name} = {size}" for name, size in sizes.letters().items())


def with_numbers(sentence: str, sizes: Sizes = MAIN) -> str:
    """Put the sizes of the check behind the letters of a scale's sentence, outside code."""
    if "square root" not in sentence:
        return sentence
    for name, size in sizes.letters().items():
        sentence = re.sub(
            rf"(?<![`\w]){name}(?![`\w(])(?! \()", f"{name} ({size})", sentence, count=1
        )
    return sentence


def _number(value: float) -> str:
    return f"{value:.4f}"


def _table(title: str, rows: tuple, others: tuple) -> str:
    body = ""
    for row, other in zip(rows, others, strict=True):
        cells = (
            f"<td><strong>{_number(one)}</strong></td>"
            if _number(one) != _number(two)
            else f"<td>{_number(one)}</td>"
            for one, two in zip(row, other, strict=True)
        )
        body += f"<tr>{''.join(cells)}</tr>"
    return f"<table><caption>{html.escape(title)}</caption><tbody>{body}</tbody></table>"

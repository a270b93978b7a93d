"""Examine a learner's attention class channel by channel: what it is, computes, learns, drops."""

import functools
import itertools
from typing import Any

import torch
from torch import nn

from helpers.attention import MultiHeadAttention
from helpers.checks.devices import left_behind
from helpers.checks.dropout import DROPOUT, judge_dropout
from helpers.checks.evidence import done, locate_detached, locate_failure, worded_step
from helpers.checks.guard import Failure, attempt
from helpers.checks.known import Known, Shapes, right_shapes
from helpers.checks.looks import (
    BIASED,
    MAIN,
    NAMES,
    SIZES,
    Sizes,
    build,
    close,
    construct,
    expected_parameters,
    gradient_look,
    parameter_shapes,
    planted,
    recorded,
    run,
    stress_look,
    training_looks,
)
from helpers.checks.mistakes import MISTAKES
from helpers.checks.probes import locate
from helpers.checks.readings import Finding
from helpers.checks.verdict import Found, letters, with_numbers

SIGNATURE = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
QKV_BIASES = {f"{name}.bias" for name in NAMES[:3]}

# What is known when just these layers get no gradient.
DETACHED = {
    ("W_query",): "queries_detached",
    ("W_key",): "keys_detached",
    ("W_value",): "values_detached",
    ("W_query", "W_key"): "weights_detached",
    ("W_query", "W_key", "W_value"): "context_detached",
    NAMES: "no_grad",
}


class Learner:
    """A learner's class under examination; found grows as its channels are gone through."""

    def __init__(self, cls: Any):
        self.cls = cls
        self.found: list[Found] = []
        self.remark = ""

    def examine(self) -> list[Found]:
        """Find everything that is wrong."""
        if not self.is_module_class() or not self.is_constructed():
            return self.found
        lost = [name for name in NAMES if f"{name}.weight" not in self.shapes[True]]
        if lost:
            self.report_lost(lost)
            return self.found
        self.compare_biases()
        right = right_shapes(True)
        if all(self.shapes[True].get(name, shape) == shape for name, shape in right.items()):
            self.compare_outputs()
            self.compare_gradients()
            self.compare_dropout()
        else:
            self.report_shapes()
        self.look_for_traces()
        self.look_for_devices()
        return self.found

    def report(self, step: int | None, text: str, finding: Finding | None = None) -> None:
        """Add what is not in the catalogue."""
        self.found.append(Found(step, text, finding=finding))

    def report_known(self, name: str, step: int | None = None) -> None:
        """Add a catalogued mistake, at its usual step or at another one of its steps."""
        if all(name != each.mistake for each in self.found):
            mistake = MISTAKES[name]
            if step not in mistake.steps:
                step = mistake.step
            self.found.append(Found(step, with_numbers(mistake.sentence), name))

    def is_module_class(self) -> bool:
        """Whether a class derived from nn.Module was handed over."""
        if isinstance(self.cls, nn.Module):
            self.report(None, "This is a module already built: hand over the class itself.")
        elif not isinstance(self.cls, type):
            self.report(None, f"This is a {type(self.cls).__name__}: hand over a class.")
        elif not issubclass(self.cls, nn.Module):
            name = self.cls.__name__
            self.report(1, f"{name} is no nn.Module: begin with `class {name}(nn.Module):`.")
        return not self.found

    def is_constructed(self) -> bool:
        """Whether the constructor works as the lecture's does."""
        for bias in (True, False, None):
            built = attempt(construct, self.cls, MAIN, bias)
            if not isinstance(built, Failure):
                continue
            if "Module.__init__()" in built.text or "_modules" in built.text:
                self.report_known("no_super_init")
            elif isinstance(built.error, TypeError) and "argument" in built.text:
                text = f"The constructor cannot be called as `({SIGNATURE})`: {built.text}."
                self.report(1, text)
            else:
                self.report(worded_step(built) or 1, f"The constructor raises {_told(built)}.")
            return False
        return True

    @functools.cached_property
    def shapes(self) -> dict[bool | None, Shapes]:
        """Shapes of the parameters by name, with qkv_bias True, False and left out."""
        return {
            bias: parameter_shapes(construct(self.cls, MAIN, bias)) for bias in (True, False, None)
        }

    @functools.cached_property
    def known(self) -> Known:
        """The class beside the catalogue."""
        return Known(self.cls, self.shapes)

    def report_lost(self, lost: list[str]) -> None:
        """Say which layers are missing."""
        module = construct(self.cls, MAIN, True)
        held = [each for each in vars(module).values() if isinstance(each, list | tuple)]
        if any(isinstance(each, nn.Module) for some in held for each in some):
            self.report_known("layers_in_plain_list")
            return
        found = ", ".join(name for name, _ in module.named_parameters()) or "none"
        text = (
            f"{', '.join(lost)} cannot be found: the layers are expected as `nn.Linear` under the "
            f"names W_query, W_key, W_value and out_proj. The parameters found are: {found}."
        )
        self.report(11 if lost == ["out_proj"] else 2, text)
        if lost == ["out_proj"] and (finding := locate(self.cls)) and finding.step < 11:
            self.report(finding.step, finding.text, finding)

    def compare_biases(self) -> None:
        """Hold layers that are shared, and biases against qkv_bias."""
        module = construct(self.cls, MAIN, True)
        for one, other in itertools.combinations(NAMES, 2):
            if getattr(module, one).weight is getattr(module, other).weight:
                self.report_known("weights_tied")
        missing = QKV_BIASES - self.shapes[True].keys()
        extra = QKV_BIASES & self.shapes[False].keys()
        for biases, name, state in (
            (missing, "bias_missing", "With qkv_bias=True there is no"),
            (extra, "bias_always", "With qkv_bias=False there is still a"),
        ):
            if biases == QKV_BIASES:
                self.report_known(name)
            elif biases:
                those = ", ".join(sorted(biases))
                self.report(2, f"{state} {those}: pass `bias=qkv_bias` to all three layers.")
        if not extra and QKV_BIASES & self.shapes[None].keys():
            self.report_known("bias_by_default")
        without = [bias for bias in (True, False) if "out_proj.bias" not in self.shapes[bias]]
        if len(without) == 2:
            self.report_known("out_proj_without_bias")
        elif without:
            self.report_known("out_proj_bias_from_qkv")

    def report_shapes(self) -> None:
        """Name the mistake where a layer has another shape."""
        single = self.known.single()
        if single or len(self.known.candidates) == 1:
            self.report_known(single or self.known.candidates[0])
            return
        shapes, right = self.shapes[True], right_shapes(True)
        name = next(each for each in right if shapes.get(each, right[each]) != right[each])
        step = 2
        if name.startswith("out_proj"):
            step = 10 if shapes[name][-1] == MAIN.head_dim else 11
        elif shapes[name][0] == MAIN.d_out * MAIN.num_heads:
            step = 1
        self.report(
            step,
            f"{name} has shape {shapes[name]} at {letters(MAIN)}: {right[name]} is expected. Look "
            f"at its `nn.Linear` in the constructor.",
        )

    def compare_outputs(self) -> None:
        """Compare the outputs in eval mode; name the mistakes or find the step."""
        if not self.returns_a_tensor():
            return
        wrong = [
            sizes for sizes in SIZES if not close(self.known.look(sizes), self.known.right(sizes))
        ]
        if wrong and (single := self.known.single()):
            self.report_known(single)
        elif wrong:
            self.report_unlisted(wrong[0])
        else:
            self.compare_under_stress()

    def returns_a_tensor(self) -> bool:
        """Whether forward returns something that a tensor can be taken from."""
        module = build(self.cls, MAIN)
        out = attempt(module, MAIN.input()) if isinstance(module, nn.Module) else module
        if out is None:
            self.report_known("nothing_returned")
        elif isinstance(out, tuple | list):
            self.report_known("tuple_returned")
        elif isinstance(out, torch.Tensor) and out.dtype != torch.float32:
            self.report(
                11,
                f"The output holds {out.dtype}, x holds torch.float32. Look for a conversion such "
                f"as `.double()` or `.half()`.",
            )
        elif not isinstance(out, Failure | torch.Tensor):
            self.report(11, f"forward returns {type(out).__name__}: return the output tensor.")
            return False
        return out is not None

    def compare_under_stress(self) -> None:
        """Compare the outputs where the future has the highest scores.

        In the first scene even an exp without a maximum taken off keeps its numbers; in the second
        it may give NaN.
        """
        for allowed, future in ((-60.0, 75.0), (-300.0, 0.0)):
            scene = self.known.ignored(MAIN), allowed, future
            mine, right = (stress_look(cls, *scene) for cls in (self.cls, MultiHeadAttention))
            if close(mine, right):
                continue
            name = "mask_after_softmax_renormalised"
            if close(mine, stress_look(planted((name,)), *scene)):
                self.report_known(name)
            elif isinstance(mine, Failure) or allowed == -60 or not mine.isnan().any():
                self.report(
                    6,
                    "Where tokens of the future have far higher scores than the others, they are "
                    "seen. Look at the mask: their scores must be -inf before the softmax.",
                )
            return

    def report_unlisted(self, sizes: Sizes) -> None:
        """Find the step of what no catalogued mistake comes to."""
        finding = locate(self.cls)
        if finding is not None:
            if pair := self.known.pair(finding.step):
                for name in pair:
                    self.report_known(name, finding.step)
            else:
                self.report(finding.step, finding.text, finding)
            return
        module, out = build(self.cls, sizes), self.known.look(sizes)
        where = f"at b = {sizes.b}, {letters(sizes)}"
        if isinstance(module, Failure):
            self.report(
                worded_step(module) or 1, f"The constructor raises {_told(module)} {where}."
            )
            return
        if isinstance(out, Failure):
            step = locate_failure(module, sizes, out)
            self.report(step, f"forward raises {_told(out)}, {where}.")
            return
        expected = sizes.b, sizes.num_tokens, sizes.d_out
        text = f"The output is wrong {where}, and right at other sizes."
        if out.shape != expected:
            text = f"The output has shape {tuple(out.shape)}: {expected} is expected {where}."
        self.report(_next_step(module, sizes), text)

    def compare_gradients(self) -> None:
        """Compare gradients: every weight that changes the output must learn."""
        ignored = self.known.ignored(BIASED)
        mine, right = (gradient_look(cls, ignored) for cls in (self.cls, MultiHeadAttention))
        if isinstance(mine, Failure):
            if not self.found:
                step = 7 if "Softmax" in mine.text else 2
                self.report(step, f"backward raises {_told(mine)}: the weights cannot learn.")
            return
        names = [name for name in mine if name not in ignored]
        cut = [
            name
            for name in names
            if (mine[name] is None or not self.found and not mine[name].any())
            and right[name].abs().max() > 1e-4
            and self.counts(name)
        ]
        module = build(self.cls, BIASED)
        if cut:
            self.report_cut(cut, module)
        elif not self.found and not all(close(mine[name], right[name], 1e-3) for name in names):
            self.report(
                locate_detached(module, BIASED) or 7,
                "The outputs are right and the gradients are not. Look for `.detach()`, `.data` or "
                "`no_grad` in forward.",
            )

    def counts(self, name: str) -> bool:
        """Whether a parameter, or x, changes the output."""
        module, x = build(self.cls, BIASED), BIASED.input()
        before = run(module, x)
        with torch.no_grad():
            changed = {"x": x} | expected_parameters(module)
            changed[name].add_(
                torch.linspace(0.2, 0.9, changed[name].numel()).view_as(changed[name])
            )
        return not close(before, run(module, x))

    def report_cut(self, cut: list[str], module: nn.Module) -> None:
        """Say which weights get no gradient."""
        name = DETACHED.get(tuple(each for each in NAMES if f"{each}.weight" in cut))
        step = locate_detached(module, BIASED) or (MISTAKES[name].step if name else 2)
        if name and step not in MISTAKES[name].steps:
            name = None
        advice = MISTAKES[name].sentence if name else "Take away `.detach()`, `.data`, `no_grad`."
        self.found.append(Found(step, f"No gradient reaches {', '.join(cut)}. {advice}", name))

    def compare_dropout(self) -> None:
        """Look at dropout: on weights, at its rate, in training alone."""
        mine, right = (training_looks(cls, DROPOUT) for cls in (self.cls, MultiHeadAttention))
        if isinstance(mine, Failure):
            return
        told = judge_dropout(mine, right)
        if told in MISTAKES:
            self.report_known(told)
        if self.found:
            return
        module = build(self.cls, BIASED)
        once, twice = (run(module.train(), BIASED.input()) for _ in range(2))
        if close(once, twice) and not close(once, self.known.look(BIASED)):
            self.report(
                _next_step(module, BIASED),
                "With dropout = 0 the output in training mode differs from that in eval mode. Look "
                "at what depends on `self.training`.",
            )
        elif told:
            self.report(7, told)

    def look_for_traces(self) -> None:
        """Whether forward leaves x and the weights alone and keeps nothing for the next time."""
        module = build(self.cls, MAIN)
        if isinstance(module, Failure):
            return
        x, given = MAIN.input(), MAIN.input()
        weights = {name: each.clone() for name, each in expected_parameters(module).items()}
        attempt(module, given)
        if not close(given, x):
            self.report_known("input_changed")
        if any(
            not torch.equal(each, weights[name])
            for name, each in module.named_parameters()
            if name in weights
        ):
            self.report(2, "forward changes the weights. Look for operations that end in `_`.")
        first, again, fresh = run(module, x), run(module, x), build(self.cls, MAIN)
        if isinstance(first, Failure) or self.found:
            return
        if not close(first, again):
            self.report(
                7,
                "The same x gives other numbers each time in eval mode. Look for randomness, and "
                "for what is kept from one forward to the next.",
            )
        elif any(not close(first, _after_shorter(each, x)) for each in (module, fresh)):
            self.report(
                6,
                "After a shorter text the same x gives something else. Look for what is kept from "
                "one forward to the next, such as a mask.",
            )

    def look_for_devices(self) -> None:
        """Whether everything follows `.to(device)`."""
        module = build(self.cls, MAIN)
        behind = left_behind(module, MAIN.input()) if isinstance(module, nn.Module) else set()
        if "stored" in behind:
            self.report_known("mask_not_registered")
        elif behind:
            self.remark = "On a GPU it would fail: make the mask on x's device, `device=x.device`."


def _after_shorter(module: nn.Module, x: torch.Tensor) -> torch.Tensor | Failure:
    run(module, x[:1, :3] + 1)
    return run(module, x)


def _next_step(module: nn.Module, sizes: Sizes) -> int:
    """The step after the last one whose right numbers a forward computes."""
    after = done(recorded(module, sizes.input()), sizes)
    return {0: 2, 2: 3, 5: 6, 7: 8, 8: 10, 11: 11}[after]


def _told(failure: Failure) -> str:
    return f"{failure.text} in `{failure.line}`" if failure.line else failure.text

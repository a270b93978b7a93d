"""Find out whether a class is causal multi-head attention, and if not, what is wrong."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from helpers.checks.cases import BIASED, CASES, LAYERS, MAIN, Case, close, drawn, known
from helpers.checks.failing import failing_step, worded_step
from helpers.checks.follow import NAMES, Followed, follow
from helpers.checks.isolate import Failure, TimeUp, attempt, isolated
from helpers.checks.match import Looks, Shapes, candidates, pair, single
from helpers.checks.mistakes import MISTAKES
from helpers.checks.observe import Facts, Pass, Record, ask, elsewhere, kind_of, once
from helpers.checks.outcome import Finding, Outcome, honestly, verdict
from helpers.checks.right import once_right, play
from helpers.checks.sentences import from_notebook, letters, with_numbers
from helpers.checks.training import (
    RANDOM,
    judge_devices,
    judge_dtypes,
    judge_gradients,
    judge_state,
    judge_training,
    leaks,
)

SECONDS = 3.0
SIGNATURE = "d_in, d_out, context_length, dropout, num_heads, qkv_bias=False"
UNMASKED = (
    "Tokens see their future in eval mode, and not in training. Look at what depends on "
    "`self.training`: the mask does not."
)
QKV_BIASES = {f"{name}.bias" for name in LAYERS[:3]}

Built = dict[bool | None, Facts]


def check_attention(cls: type) -> Outcome:
    """Find out whether a class is causal multi-head attention, and if not, what is wrong.

    Its forward is recorded once, operation by operation, and followed from step to step beside
    MultiHeadAttention's under the same weights. The mistakes of the catalogue, alone and in pairs,
    are matched by their outputs at many sizes; gradients, dropout, state, dtypes and devices are
    looked at besides.

    Args:
        cls: a subclass of nn.Module, built as cls(d_in, d_out, context_length, dropout, num_heads,
            qkv_bias=False) with layers W_query, W_key, W_value and out_proj; its forward takes
            x (b, num_tokens, d_in) and returns (b, num_tokens, d_out).

    Returns:
        An Outcome. Nothing that cls does is raised, printed or left behind, and a class that takes
        too long is stopped.
    """
    return honestly("", judged, cls)


def judged(cls: Any) -> Outcome:
    """Say of a class what check_attention says, the clock running."""
    owners = (cls,) if not elsewhere(cls) and attempt(isinstance, cls, type) is True else ()
    with isolated(SECONDS, *owners):
        found: list[Finding] = []
        try:
            remark = ""
            for each in examine(cls):
                if isinstance(each, str):
                    remark = each
                else:
                    found.append(each)
            return verdict(found, remark)
        except TimeUp:
            text = (
                f"The class did not answer all questions within {SECONDS:g} seconds of its own: "
                f"look for a loop that does not end, or for work that torch does in one call."
            )
            return verdict([*found, Finding(None, text)])


def examine(cls: Any) -> Iterator[Finding | str]:
    """Yield everything that is wrong with a class, and a remark, as text, on one that is right."""
    if odd := no_module_class(cls):
        yield odd
        return
    built = {bias: ask(cls, "facts", bias) for bias in (True, False, None)}
    if failed := next((each for each in built.values() if isinstance(each, Failure)), None):
        yield other_order(cls) or not_constructed(failed)
        return
    lost = [name for name in LAYERS if f"{name}.weight" not in built[True].shapes]
    if lost:
        yield from _lost(cls, built[True], lost)
        return
    found = list(layer_findings(built))
    yield from found
    looks = Looks(cls, {bias: built[bias].shapes for bias in (True, False)})
    right = {name: tuple(p.shape) for name, p in play(CASES[1]).module.named_parameters()}
    if any(built[True].shapes.get(name, shape) != shape for name, shape in right.items()):
        yield from (wrong := [_shapes(looks, right)])
    else:
        yield from (wrong := list(_outputs(cls, looks)))
        yield from (wrong := [*wrong, *judge_gradients(looks, bool(found or wrong))])
        yield from (wrong := [*wrong, *judge_training(looks, bool(found or wrong))])
    found += wrong
    yield from (state := list(judge_state(cls, bool(found))))
    devices, remark = judge_devices(cls, built[True])
    dtypes, other = judge_dtypes(cls) if not found and not state else ([], "")
    yield from (*devices, *dtypes)
    yield f"{remark} {other}".strip()


def no_module_class(cls: Any) -> Finding | None:
    """What was handed over instead of a class derived from nn.Module."""
    sort, name = kind_of(cls)
    if sort == "module class":
        return None
    if sort == "module":
        return Finding(None, "This is a module already built: hand over the class itself.")
    if sort == "class":
        return Finding(1, f"{name} is no nn.Module: begin with `class {name}(nn.Module):`.")
    return Finding(None, f"This is a {name or 'NoneType'}: hand over a class.")


def other_order(cls: Any) -> Finding | None:
    """Whether a constructor takes the lecture's arguments in another order."""
    wanted = ["d_in", "d_out", "context_length", "dropout", "num_heads"]
    names = ask(cls, "parameters")
    if isinstance(names, Failure) or sorted(names[:5]) != sorted(wanted) or names[:5] == wanted:
        return None
    return Finding(
        1,
        f"The constructor takes ({', '.join(names[:5])}): the order is ({SIGNATURE}).",
    )


def not_constructed(failed: Failure) -> Finding:
    """Why the constructor does not work as the lecture's does."""
    if "Module.__init__()" in failed.text or "_modules" in failed.text:
        return named("no_super_init")
    if failed.text.startswith("TypeError") and "argument" in failed.text:
        return Finding(1, f"The constructor cannot be called as `({SIGNATURE})`: {failed.text}.")
    if "dropout probability" in failed.text:
        text = f"The constructor is called as `({SIGNATURE})`, in this order: it raises"
        return Finding(1, f"{text} {failed.told}.")
    return Finding(worded_step(failed) or 1, f"The constructor raises {failed.told}.")


def named(name: str, step: int | None = None) -> Finding:
    """A catalogued mistake, at its usual step or at another one of its steps."""
    mistake = MISTAKES[name]
    return Finding(
        step if step in mistake.steps else mistake.step, with_numbers(mistake.sentence), name
    )


def _lost(cls: Any, facts: Facts, lost: list[str]) -> Iterator[Finding]:
    """Say which layers are missing."""
    if facts.listed:
        yield named("layers_in_plain_list")
        return
    yield Finding(
        11 if lost == ["out_proj"] else 2,
        f"{', '.join(lost)} cannot be found: the layers are expected as `nn.Linear` under the "
        f"names W_query, W_key, W_value and out_proj. The parameters found are: "
        f"{', '.join(facts.parameters) or 'none'}.",
    )
    if lost == ["out_proj"]:
        record = ask(cls, "record", MAIN)
        ran = isinstance(record, Record) and not isinstance(record.seen.out, Failure)
        found = follow(Followed(record, MAIN)) if ran else None
        if found and found.step < 11:
            yield found


def layer_findings(built: Built) -> Iterator[Finding]:
    """Hold layers that are shared, and biases against qkv_bias."""
    shapes = {bias: facts.shapes.keys() for bias, facts in built.items()}
    if built[True].tied:
        yield named("weights_tied")
    missing, extra = QKV_BIASES - shapes[True], QKV_BIASES & shapes[False]
    for biases, name, state in (
        (missing, "bias_missing", "With qkv_bias=True there is no"),
        (extra, "bias_always", "With qkv_bias=False there is still a"),
    ):
        if biases == QKV_BIASES:
            yield named(name)
        elif biases:
            those = ", ".join(sorted(biases))
            yield Finding(2, f"{state} {those}: pass `bias=qkv_bias` to all three layers.")
    if not extra and QKV_BIASES & shapes[None]:
        yield named("bias_by_default")
    without = [bias for bias in (True, False) if "out_proj.bias" not in shapes[bias]]
    if without and "out_proj.weight" in shapes[True]:
        yield named("out_proj_without_bias" if len(without) == 2 else "out_proj_bias_from_qkv")


def _shapes(looks: Looks, right: Shapes) -> Finding:
    """Name the mistake where a layer has another shape."""
    alike = candidates(looks.shapes[True])
    if name := single(looks) or (alike[0] if len(alike) == 1 else ""):
        return named(name)
    return shape_finding(looks.shapes[True], right)


def shape_finding(shapes: Shapes, right: Shapes) -> Finding:
    """Describe the first layer of another shape than the right one."""
    name = next(each for each in right if shapes.get(each, right[each]) != right[each])
    swapped = shapes.get("W_query.weight", (0,))[0] != MAIN.d_out
    step = 2
    if name.startswith("out_proj"):
        step = 10 if shapes[name][-1] == MAIN.head_dim else 11
    elif shapes[name][0] == MAIN.d_out * MAIN.num_heads or swapped and name != "W_query.weight":
        step = 1
    return Finding(
        step,
        f"{name} has shape {shapes[name]} at {letters(MAIN)}: {right[name]} is expected. Look at "
        f"its `nn.Linear` in the constructor.",
    )


def _outputs(cls: Any, looks: Looks) -> Iterator[Finding]:
    """Compare the outputs in eval mode; name the mistakes or find the step."""
    returned = once(cls, MAIN, Pass())[0]
    if returned.kind == "none":
        yield named("nothing_returned")
        return
    if returned.kind in ("other", "open"):
        yield Finding(11, f"{returned.out.text}: return the output tensor.")
        return
    if returned.kind == "tuple":
        yield named("tuple_returned")
    elif isinstance(returned.out, Failure) is False and returned.dtype != "torch.float32":
        yield Finding(
            11,
            f"The output holds {returned.dtype}, x holds torch.float32. Look for a conversion such "
            f"as `.double()` or `.half()`.",
        )
    cases = (*CASES, drawn()[0]) if elsewhere(cls) else CASES
    wrong = [case for case in cases if not close(looks.out(case), looks.right(case))]
    yield from _unlike(cls, looks, wrong) if wrong else _stressed(cls, looks)


def _unlike(cls: Any, looks: Looks, wrong: list[Case]) -> Iterator[Finding]:
    """Name the mistake that outputs in some cases come to, or two, or the step to look at."""
    case = looks.plain(BIASED if BIASED in wrong else wrong[0])
    record = ask(cls, "record", case)
    if isinstance(record, Failure):
        yield Finding(worded_step(record) or 1, f"The constructor raises {record.told}.")
        return
    failure = record.seen.out if isinstance(record.seen.out, Failure) else None
    way = Followed(record, case)
    step = failing_step(way, failure) if failure else None
    once_, again = once(cls, case, Pass(seed=1), Pass(seed=2))
    if not failure and not close(once_.out, again.out):
        yield Finding(None if all(map(way.made, NAMES.values())) else 2, RANDOM)
        return
    followed = None if failure else follow(way)
    if name := single(looks, step):
        hidden = name == "no_mask" and leaks(cls) is False
        yield Finding(6, UNMASKED) if hidden else named(name, followed.step if followed else step)
        return
    where = letters(case) if MAIN in wrong else f"b = {case.b}, {letters(case)}"
    found = Finding(step, f"forward raises {failure.told}, at {where}.") if failure else None
    found = found or followed or Finding(None, f"The output is another one at {where}.")
    names = pair(looks, way, found.step) if followed and found.step else ()
    used = ask(cls, "readings")
    if not isinstance(used, Failure) and used["names"]:
        text = f"{found.text} forward reads {from_notebook(used)}: work with self and x."
        found = replace(found, text=text)
    if MAIN not in wrong and not failure:
        found = replace(
            found, text=f"{found.text} It is right at other sizes, and wrong at {where}."
        )
    yield from [named(each, found.step) for each in names] or [found]


def _stressed(cls: Any, looks: Looks) -> Iterator[Finding]:
    """Compare where the future has the highest scores, in two strengths.

    In the first even an exp without a maximum taken off keeps its numbers; in the second it may
    give NaN.
    """
    case = Case(1, 4, 4, 8, 2, 5, without=looks.plain(MAIN).without)
    for allowed, future in ((-60.0, 75.0), (-300.0, 0.0)):
        stress = _stress(case, allowed, future)
        mine = once(cls, case, stress)[0].out
        right = once_right(case, stress)[0].out
        if close(mine, right):
            continue
        name = "mask_after_softmax_renormalised"
        if close(mine, once_right(case, stress, mistakes=(name,))[0].out):
            yield named(name)
        elif isinstance(mine, Failure) or allowed == -60 or not mine.isnan().any():
            yield Finding(
                6,
                "Where tokens of the future have far higher scores than the others, they are "
                "seen. Look at the mask: their scores must be -inf before the softmax.",
            )
        return


def _stress(case: Case, allowed: float, future: float) -> Pass:
    """A pass in which scaled scores are about allowed, and future above the diagonal."""
    import torch

    tokens = case.num_tokens
    scores = torch.full((tokens, tokens), future).triu(1)
    scores += (allowed + known("stress", (tokens, tokens))).tril()
    scores *= case.head_dim**0.5
    eye = torch.eye(tokens)
    weights = {"W_query.weight": torch.cat([scores.T, scores.T])}
    return Pass(eye[None], weights=weights | {"W_key.weight": torch.cat([eye, eye])})

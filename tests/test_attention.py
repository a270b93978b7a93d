"""The three classes: published tables, torch's own attention, causality, checkpoints, errors."""

import ast
import inspect
import re
import sys
import textwrap

import pytest
import torch
from hypothesis import example, given
from sizes import TELLING, build, legal_sizes, steady
from torch import nn
from torch.nn import functional as F

from helpers.attention import CausalAttention, MultiHeadAttention, MultiHeadAttentionWrapper
from helpers.examples import load_example, load_whiteboard
from helpers.trace import STEPS, trace

KINDS = {
    "split": lambda *sizes, **options: MultiHeadAttention(*sizes, num_heads=2, **options),
    "wrapper": lambda *sizes, **options: MultiHeadAttentionWrapper(*sizes, num_heads=2, **options),
    "one head": CausalAttention,
}
DTYPES = [torch.float32, torch.float64]
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
every_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


def assert_prints_as(actual, published):
    """Compare to the four decimals that were printed."""
    assert torch.equal((actual * 1e4).round(), (published * 1e4).round())


# Published tables


@pytest.mark.parametrize(
    ("cls", "sizes", "name", "given_key", "out_key"),
    [
        (MultiHeadAttentionWrapper, (3, 2, 6), "journey", "J", "wrapper_out"),
        (MultiHeadAttention, (3, 2, 6), "journey", "J", "out"),
        (MultiHeadAttention, (6, 6, 6), "whiteboard", "W", "out"),
    ],
)
def test_published_tables_come_out_digit_for_digit(cls, sizes, name, given_key, out_key):
    table = load_example(name)
    torch.manual_seed(123)
    module = cls(*sizes, 0.0, num_heads=2)
    out = module(torch.stack([table[given_key]] * 2))
    assert out.shape == (2, *table[out_key].shape)
    for item in out:
        assert_prints_as(item, table[out_key])


# torch's own attention


def assert_same(ours, reference, mha, x):
    """Compare two outputs, and the gradients of x and of every parameter through them."""
    torch.testing.assert_close(ours, reference)
    inputs = [x, *mha.parameters()]
    pull = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).view_as(ours)
    for mine, theirs in zip(
        torch.autograd.grad(ours, inputs, pull),
        torch.autograd.grad(reference, inputs, pull),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@every_dtype
@pytest.mark.parametrize("qkv_bias", [False, True])
@given(sizes=legal_sizes())
@example(sizes=TELLING)
@steady
def test_equals_scaled_dot_product_attention(dtype, qkv_bias, sizes):
    mha, x = build(sizes, dtype, qkv_bias=qkv_bias)
    x.requires_grad_()
    queries, keys, values = (
        layer(x).unflatten(2, (mha.num_heads, mha.head_dim)).movedim(2, 1)
        for layer in (mha.W_query, mha.W_key, mha.W_value)
    )
    context = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    assert_same(mha(x), mha.out_proj(context.movedim(1, 2).flatten(2)), mha, x)


@every_dtype
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize(("b", "num_tokens", "d", "num_heads"), [(2, 7, 12, 3), (3, 5, 8, 1)])
def test_equals_torchs_multihead_attention(dtype, qkv_bias, b, num_tokens, d, num_heads):
    mha, x = build((b, num_tokens, d, d, num_heads), dtype, qkv_bias=qkv_bias)
    x.requires_grad_()
    theirs = nn.MultiheadAttention(d, num_heads, batch_first=True, dtype=dtype)
    projections = (mha.W_query, mha.W_key, mha.W_value)
    biases = [layer.bias if qkv_bias else torch.zeros(d, dtype=dtype) for layer in projections]
    copied = {
        "in_proj_weight": torch.cat([layer.weight for layer in projections]),
        "in_proj_bias": torch.cat(biases),
        "out_proj.weight": mha.out_proj.weight,
        "out_proj.bias": mha.out_proj.bias,
    }
    future = torch.ones(num_tokens, num_tokens, dtype=torch.bool).triu(1)
    # functional_call keeps the copies attached, so that gradients reach our parameters.
    out, weights = torch.func.functional_call(
        theirs, copied, (x, x, x), {"attn_mask": future, "average_attn_weights": False}
    )
    assert_same(mha(x), out, mha, x)
    torch.testing.assert_close(trace(mha, x)[6].tensors["weights"], weights)


# Properties


@given(sizes=legal_sizes())
@example(sizes=TELLING)
@steady
def test_a_changed_token_never_changes_outputs_before_it(sizes):
    mha, x = build(sizes)
    out = mha(x)
    for t in range(sizes[1]):
        changed = x.clone()
        changed[:, t] += 1
        changed_out = mha(changed)
        assert torch.equal(changed_out[:, :t], out[:, :t])
        assert not torch.equal(changed_out[:, t], out[:, t])


# The wrapper


def test_the_wrapper_equals_stacked_single_heads():
    torch.manual_seed(0)
    wrapper = MultiHeadAttentionWrapper(5, 4, 9, 0.0, num_heads=3, qkv_bias=True)
    x = torch.randn(2, 7, 5)
    outs = []
    for head in wrapper.heads:
        single = CausalAttention(5, 4, 9, 0.0, qkv_bias=True)
        single.load_state_dict(head.state_dict())
        outs.append(single(x))
    assert torch.equal(wrapper(x), torch.cat(outs, dim=-1))
    assert wrapper(x).shape == (2, 7, 12)


# Checkpoints of the lecture's class


def lecture_state_dict(context_length=6):
    """Write by hand what the lecture's class saves after seed 123 at (6, 6, context_length)."""
    torch.manual_seed(123)
    layers = {name: nn.Linear(6, 6, bias=False) for name in ("W_query", "W_key", "W_value")}
    out_proj = nn.Linear(6, 6)
    return {
        "mask": torch.triu(torch.ones(context_length, context_length), diagonal=1),
        **{f"{name}.weight": layer.weight.detach() for name, layer in layers.items()},
        "out_proj.weight": out_proj.weight.detach(),
        "out_proj.bias": out_proj.bias.detach(),
    }


MASKS = {
    "float zeros and ones": lambda mask: mask,
    "bool": lambda mask: mask.bool(),
    "bool, True means keep": lambda mask: ~mask.bool(),
    "int8": lambda mask: mask.to(torch.int8),
    "additive": lambda mask: torch.where(mask.bool(), -torch.inf, 0.0),
    "zeros": torch.zeros_like,
    "longer": lambda mask: torch.ones(9, 9).triu(1),
    "four dimensions": lambda mask: mask[None, None],
    "absent": None,
}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("change", MASKS.values(), ids=MASKS.keys())
def test_the_lectures_checkpoint_loads_and_gives_its_results(change, assign):
    state_dict = lecture_state_dict()
    mask = state_dict.pop("mask")
    if change:
        state_dict["mask"] = change(mask)
    given_keys = set(state_dict)
    mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    mha.load_state_dict(state_dict, strict=True, assign=assign)
    assert_prints_as(mha(load_whiteboard())[0], load_example("whiteboard")["out"])
    assert torch.equal(mha.mask, mask.bool())
    assert set(state_dict) == given_keys


@pytest.mark.parametrize("with_mask", [False, True])
@pytest.mark.parametrize("assign", [False, True])
def test_the_lectures_checkpoint_loads_into_a_module_built_on_meta(with_mask, assign):
    with torch.device("meta"):
        mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    if not assign:
        mha = mha.to_empty(device="cpu")
    state_dict = lecture_state_dict()
    if not with_mask:
        del state_dict["mask"]
    mha.load_state_dict(state_dict, strict=True, assign=assign)
    assert mha.mask.device.type == "cpu"
    assert_prints_as(mha(load_whiteboard())[0], load_example("whiteboard")["out"])


def test_the_mask_of_an_assigned_checkpoint_lies_where_its_weights_lie():
    mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    elsewhere = {key: value.to("meta") for key, value in lecture_state_dict().items()}
    mha.load_state_dict(elsewhere, assign=True)
    assert mha.mask.device == mha.W_query.weight.device == torch.device("meta")


@pytest.mark.parametrize("with_mask", [False, True])
def test_the_lectures_checkpoint_loads_inside_a_parent(with_mask):
    parent = nn.ModuleDict({"block": nn.ModuleList([MultiHeadAttention(6, 6, 6, 0.0, 2)])})
    state_dict = {f"block.0.{key}": value for key, value in lecture_state_dict().items()}
    if not with_mask:
        del state_dict["block.0.mask"]
    parent.load_state_dict(state_dict, strict=True)
    out = parent["block"][0](load_whiteboard())
    assert_prints_as(out[0], load_example("whiteboard")["out"])


@pytest.mark.parametrize("with_mask", [False, True])
def test_the_lectures_wrapper_checkpoint_loads(with_mask):
    journey = load_example("journey")
    torch.manual_seed(123)
    state_dict = {}
    for head in range(2):
        for name in ("W_query", "W_key", "W_value"):
            weight = nn.Linear(3, 2, bias=False).weight.detach()
            state_dict[f"heads.{head}.{name}.weight"] = weight
        if with_mask:
            state_dict[f"heads.{head}.mask"] = torch.ones(6, 6).triu(1)
    wrapper = MultiHeadAttentionWrapper(3, 2, 6, 0.0, num_heads=2)
    wrapper.load_state_dict(state_dict, strict=True)
    assert_prints_as(wrapper(journey["J"][None])[0], journey["wrapper_out"])


def test_our_state_dict_has_the_lectures_keys_and_shapes():
    ours = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2).state_dict()
    theirs = lecture_state_dict()
    assert {key: value.shape for key, value in ours.items()} == {
        key: value.shape for key, value in theirs.items()
    }
    assert torch.equal(ours["mask"].float(), theirs["mask"])


def test_a_checkpoint_with_missing_or_unknown_weights_is_still_refused():
    mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    state_dict = lecture_state_dict()
    weight = state_dict.pop("W_key.weight")
    with pytest.raises(RuntimeError, match="Missing key.*W_key.weight"):
        mha.load_state_dict(state_dict)
    with pytest.raises(RuntimeError, match="Unexpected key.*W_kee.weight"):
        mha.load_state_dict(state_dict | {"W_key.weight": weight, "W_kee.weight": weight})


# The module as a citizen of torch


@every_kind
@pytest.mark.parametrize("backend", ["eager", pytest.param("aot_eager", marks=pytest.mark.nightly)])
def test_compiles_into_one_graph(kind, backend):
    torch.manual_seed(0)
    module, x = kind(5, 12, 9, 0.0), torch.randn(2, 7, 5)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend=backend)
    torch.testing.assert_close(compiled(x), module(x))


@every_kind
def test_the_mask_moves_with_the_module_and_stays_boolean(kind):
    module = kind(5, 12, 9, 0.0).to(torch.float64)
    assert module(torch.randn(2, 7, 5, dtype=torch.float64)).dtype == torch.float64
    masks = dict(module.named_buffers())
    assert masks
    assert {mask.dtype for mask in masks.values()} == {torch.bool}
    assert not any(name.endswith("mask") for name, _ in module.named_parameters())
    moved = module.to("meta")
    assert {mask.device.type for mask in moved.buffers()} == {"meta"}
    assert moved(torch.randn(2, 7, 5, dtype=torch.float64, device="meta")).shape[:2] == (2, 7)


def test_autocast_takes_float32_input():
    mha, x = build(TELLING)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = mha(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), mha(x), rtol=0.1, atol=0.05)


@every_kind
def test_dropout_acts_in_training_only(kind):
    torch.manual_seed(0)
    module, plain = kind(5, 12, 9, 0.5), kind(5, 12, 9, 0.0)
    plain.load_state_dict(module.state_dict())
    x = torch.randn(2, 7, 5)
    assert not torch.equal(module(x), module(x))
    module.eval()
    assert torch.equal(module(x), plain(x))


def test_dropout_zeroes_weights_and_scales_the_kept_ones():
    mha, x = build((4, 9, 5, 12, 3), dropout=0.25)
    dropped = trace(mha, x)[6].tensors["weights"]
    weights = trace(mha.eval(), x)[6].tensors["weights"]
    kept = dropped != 0
    past = weights != 0
    torch.testing.assert_close(dropped[kept], weights[kept] / 0.75)
    assert 0 < kept.sum() < past.sum()


def test_record_gets_each_step_and_the_live_tensors():
    mha, x = build(TELLING)
    live = {}
    out = mha(x, record=lambda name, **tensors: live.update({name: tensors}))
    assert list(live) == list(STEPS)
    assert live["shape"]["x"] is x
    assert live["out_proj"]["out"] is out


# Shape comments


def commented_shapes(function):
    """Return {last line of an assignment: (the assigned expression, its shape comment)}."""
    lines, first = inspect.getsourcelines(function)
    found = {}
    for node in ast.walk(ast.parse(textwrap.dedent("".join(lines)))):
        if isinstance(node, ast.Assign):
            target = node.targets[0]
            # A tuple of sizes is taken apart on the line that reads x.shape: that is x's shape.
            name = node.value.value.id if isinstance(target, ast.Tuple) else target.id
            comment = re.search(r"# (\(.*\))$", lines[node.end_lineno - 1].rstrip())
            found[first + node.end_lineno - 1] = name, comment and comment[1]
    return found


def shapes_after_lines(module, x):
    """Return {line of module.forward: {local name: shape}}, the locals as the line left them."""
    code, seen, last, before = type(module).forward.__code__, {}, None, sys.gettrace()

    def follow(frame, event, _):
        nonlocal last
        if frame.f_code is not code:
            return None
        if event in ("line", "return"):
            tensors = {k: v for k, v in frame.f_locals.items() if isinstance(v, torch.Tensor)}
            seen[last] = {name: tuple(tensor.shape) for name, tensor in tensors.items()}
            last = frame.f_lineno
        return follow

    sys.settrace(follow)
    try:
        module(x)
    finally:
        sys.settrace(before)
    return seen


def test_every_shape_comment_of_forward_is_true():
    mha, x = build(TELLING)
    names = dict(zip(("b", "num_tokens", "d_in", "d_out", "num_heads"), TELLING, strict=True))
    names["head_dim"] = mha.head_dim
    measured = shapes_after_lines(mha, x)
    proven = set()
    for line, (name, comment) in commented_shapes(MultiHeadAttention.forward).items():
        shape = measured[line].get(name)
        assert (shape is None) == (comment is None), f"line {line}: {name} {shape} {comment}"
        if comment:
            assert eval(comment, names) == shape, f"line {line}: {name}"
            proven.add(name)
    assert proven == {
        *("x", "queries", "keys", "values", "scores", "future"),
        *("masked", "scaled", "weights", "context", "out"),
    }


# Errors


@every_kind
@pytest.mark.parametrize(
    ("changes", "error", "parts"),
    [
        ({"d_in": 0}, ValueError, ["d_in is 0", "positive int"]),
        ({"d_out": -2}, ValueError, ["d_out is -2", "positive int"]),
        ({"context_length": 0}, ValueError, ["context_length is 0", "positive int"]),
        ({"d_in": 6.0}, TypeError, ["d_in is 6.0", "float", "positive int"]),
        ({"d_out": "6"}, TypeError, ["d_out is '6'", "str", "positive int"]),
        ({"context_length": True}, TypeError, ["context_length is True", "bool"]),
        ({"dropout": 1.0}, ValueError, ["dropout is 1.0", "0 to below 1"]),
        ({"dropout": -0.1}, ValueError, ["dropout is -0.1", "0 to below 1"]),
        ({"dropout": float("nan")}, ValueError, ["dropout is nan", "0 to below 1"]),
        ({"dropout": None}, TypeError, ["dropout is None", "NoneType", "a number"]),
        ({"dropout": False}, TypeError, ["dropout is False", "bool", "a number"]),
    ],
)
def test_bad_sizes_are_refused(kind, changes, error, parts):
    sizes = {"d_in": 6, "d_out": 6, "context_length": 6, "dropout": 0.0} | changes
    assert_refused(error, parts, lambda: kind(*sizes.values()))


@pytest.mark.parametrize("cls", [MultiHeadAttention, MultiHeadAttentionWrapper])
@pytest.mark.parametrize(
    ("num_heads", "error", "parts"),
    [
        (0, ValueError, ["num_heads is 0", "positive int"]),
        (2.0, TypeError, ["num_heads is 2.0", "float", "positive int"]),
    ],
)
def test_bad_num_heads_is_refused(cls, num_heads, error, parts):
    assert_refused(error, parts, lambda: cls(6, 6, 6, 0.0, num_heads))


@pytest.mark.parametrize("num_heads", [4, 12])
def test_heads_that_do_not_divide_d_out_are_refused(num_heads):
    parts = ["d_out is 6", f"num_heads is {num_heads}", "multiple of num_heads", "head_dim"]
    assert_refused(ValueError, parts, lambda: MultiHeadAttention(6, 6, 6, 0.0, num_heads))


@every_kind
@pytest.mark.parametrize(
    ("x", "error", "parts"),
    [
        (torch.zeros(3, 6), ValueError, ["(3, 6)", "2 dimensions", "(b, num_tokens, d_in)"]),
        (torch.zeros(1, 2, 3, 6), ValueError, ["(1, 2, 3, 6)", "4 dimensions", "three"]),
        (torch.zeros(1, 0, 6), ValueError, ["(1, 0, 6)", "at least one token"]),
        (torch.zeros(1, 3, 5), ValueError, ["5 features", "d_in is 6", "(b, num_tokens, 6)"]),
        (torch.zeros(1, 5, 6), ValueError, ["5 tokens", "context_length is 4", "cut x"]),
        ([[[0.0] * 6]], TypeError, ["x is a list", "tensor (b, num_tokens, d_in)"]),
        (torch.zeros(1, 3, 6).long(), TypeError, ["torch.int64", "floating-point", "x.float()"]),
        (torch.zeros(1, 3, 6).double(), TypeError, ["torch.float64", "torch.float32", "convert"]),
    ],
)
def test_bad_input_is_refused(kind, x, error, parts):
    assert_refused(error, parts, lambda: kind(6, 6, 4, 0.0)(x))


@every_kind
def test_the_wrong_dtype_is_refused_on_any_device(kind):
    module = kind(6, 6, 4, 0.0).to("meta")
    x = torch.zeros(1, 3, 6, dtype=torch.float64, device="meta")
    assert_refused(TypeError, ["torch.float64", "torch.float32", "convert"], lambda: module(x))


def assert_refused(error, parts, call):
    with pytest.raises(error) as caught:
        call()
    for part in parts:
        assert part in str(caught.value)

"""The four classes: published tables, torch's own attention, causality, checkpoints, errors."""

# ruff: noqa: F403, F405 - all its classes

import inspect
import re

import pytest
import torch
from hypothesis import example, given
from sizes import TELLING, assert_prints_as, build, legal_sizes, steady
from torch import nn

from helpers.attention import *
from helpers.examples import load_example, load_whiteboard
from helpers.trace import trace

CLASSES = {
    "split": MultiHeadAttention,
    "fused": FusedMultiHeadAttention,
    "wrapper": MultiHeadAttentionWrapper,
}
KINDS = {
    name: lambda *sizes, cls=cls, **options: cls(*sizes, num_heads=2, **options)
    for name, cls in CLASSES.items()
} | {"one head": CausalAttention}
every_kind = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
every_dtype = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@pytest.mark.parametrize(
    ("cls", "sizes", "name", "given_key", "out_key"),
    [
        (MultiHeadAttentionWrapper, (3, 2, 6), "journey", "J", "wrapper_out"),
        (MultiHeadAttention, (3, 2, 6), "journey", "J", "out"),
        (MultiHeadAttention, (6, 6, 6), "whiteboard", "W", "out"),
        (FusedMultiHeadAttention, (6, 6, 6), "whiteboard", "W", "out"),
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


def assert_same(ours, reference, inputs, theirs=None):
    """Compare two outputs, and the gradients of inputs (theirs for the reference) through them."""
    torch.testing.assert_close(ours, reference, rtol=1e-5, atol=1e-5)
    pull = torch.linspace(-1, 1, ours.numel(), dtype=ours.dtype).view_as(ours)
    for one, other in zip(
        torch.autograd.grad(ours, inputs, pull),
        torch.autograd.grad(reference, theirs or inputs, pull),
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-5)


def build_both(sizes, dtype=torch.float32, **options):
    """Return an explicit and a fused module with the same weights, and an x that needs grad."""
    mha, x = build(sizes, dtype, **options)
    fused, _ = build(sizes, dtype, FusedMultiHeadAttention, **options)
    fused.load_state_dict(mha.state_dict())
    return mha, fused, x.requires_grad_()


@every_dtype
@pytest.mark.parametrize("qkv_bias", [False, True])
@given(sizes=legal_sizes())
@example(sizes=TELLING)
@example(sizes=(1, 600, 8, 8, 2))  # more tokens than one block of torch's kernel
@steady
def test_explicit_and_fused_equal_scaled_dot_product_attention(dtype, qkv_bias, sizes):
    mha, fused, x = build_both(sizes, dtype, qkv_bias=qkv_bias)
    queries, keys, values = (
        layer(x).unflatten(2, (mha.num_heads, mha.head_dim)).movedim(2, 1)
        for layer in (mha.W_query, mha.W_key, mha.W_value)
    )
    context = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    inputs, out = [x, *mha.parameters()], mha(x)
    assert_same(out, mha.out_proj(context.movedim(1, 2).flatten(2)), inputs)
    assert_same(fused(x), mha(x), [x, *fused.parameters()], inputs)


@pytest.mark.parametrize("training", [False, True])
def test_the_fused_class_records_the_eleven_steps_too(training):
    mha, fused, x = build_both(TELLING, dropout=0.5)
    live, steps = {}, []
    out = mha(x, record=lambda name, **tensors: live.update(tensors))
    assert live["x"] is x and live["out"] is out
    for module in mha, fused:
        torch.manual_seed(0)
        steps.append(trace(module.train(training), x))
    for explicit, step in zip(*steps, strict=True):
        assert (explicit.number, explicit.name) == (step.number, step.name)
        assert list(explicit.tensors) == list(step.tensors)
        for name, tensor in step.tensors.items():
            assert torch.equal(tensor, explicit.tensors[name])
    with pytest.raises(ZeroDivisionError):
        fused(x, record=lambda name, **tensors: 1 / 0)
    assert fused.mask is None


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
PLACES = "cpu", "meta, then empty", "inside a parent"


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("change", MASKS.values(), ids=MASKS.keys())
def test_the_lectures_checkpoint_loads_and_gives_its_results(change, assign, place):
    state_dict, prefix = lecture_state_dict(), "block.0." if "parent" in place else ""
    mask = state_dict.pop("mask")
    if change:
        state_dict["mask"] = change(mask)
    state_dict = {f"{prefix}{name}": tensor for name, tensor in state_dict.items()}
    given_keys = set(state_dict)
    with torch.device(place.split(",")[0] if "meta" in place else "cpu"):
        mha = MultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    if "meta" in place and not assign:
        mha = mha.to_empty(device="cpu")
    parent = nn.ModuleDict({"block": nn.ModuleList([mha])}) if prefix else mha
    parent.load_state_dict(state_dict, strict=True, assign=assign)
    assert mha.mask.device.type == "cpu" and torch.equal(mha.mask, mask.bool())
    assert_prints_as(mha(load_whiteboard())[0], load_example("whiteboard")["out"])
    assert set(state_dict) == given_keys


@every_kind
def test_dynamo_sees_one_graph(kind):
    torch.manual_seed(0)
    module, x = kind(5, 12, 9, 0.0), torch.randn(2, 7, 5)
    torch._dynamo.reset()
    compiled = torch.compile(module, fullgraph=True, backend="eager")
    torch.testing.assert_close(compiled(x), module(x))


@every_kind
def test_the_mask_moves_with_the_module_and_stays_boolean(kind):
    module = kind(5, 12, 9, 0.0, qkv_bias=True).to(torch.float64)
    assert any(name.endswith("W_query.bias") for name, _ in module.named_parameters())
    assert module(torch.randn(2, 7, 5, dtype=torch.float64)).dtype == torch.float64
    masks = dict(module.named_buffers())
    assert bool(masks) is not isinstance(module, FusedMultiHeadAttention)
    assert {mask.dtype for mask in masks.values()} <= {torch.bool}
    assert not any(name.endswith("mask") for name, _ in module.named_parameters())
    moved = module.to("meta")
    assert {mask.device.type for mask in moved.buffers()} <= {"meta"}
    assert moved(torch.randn(2, 7, 5, dtype=torch.float64, device="meta")).shape[:2] == (2, 7)


@every_kind
def test_dropout_acts_in_training_only(kind):
    torch.manual_seed(0)
    module, plain = kind(5, 12, 9, 0.5), kind(5, 12, 9, 0.0)
    plain.load_state_dict(module.state_dict())
    x = torch.randn(2, 7, 5)
    assert not torch.equal(module(x), module(x))
    for dropout in (part for part in module.modules() if isinstance(part, nn.Dropout)):
        dropout.eval()
    assert torch.equal(module(x), plain(x))
    assert torch.equal(module.eval()(x), plain(x))


def test_every_shape_comment_of_forward_is_true():
    names = dict(zip(("b", "num_tokens", "d_in", "d_out", "num_heads"), TELLING, strict=True))
    names["head_dim"] = names["d_out"] // names["num_heads"]
    mha, x = build(TELLING)
    scope, commented = {"torch": torch, "self": mha, "x": x}, 0
    for line in inspect.getsource(MultiHeadAttention.forward).splitlines():
        if made := re.match(r" {8}(\w+)(, [\w, ]+)? = ", line):
            exec(line.strip(), scope)
            tensor = x if made[2] else scope[made[1]]  # the sizes are x's
            if isinstance(tensor, torch.Tensor):
                (said,) = re.findall(r"# (\(.*\))$", line)
                assert tensor.shape == eval(said, names), line
                commented += 1
    assert commented == 20

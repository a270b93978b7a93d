"""The fused class: equal to the explicit one in all but what it holds in memory."""

import copy
import pickle

import pytest
import torch
from hypothesis import example, given
from sizes import TELLING, build, legal_sizes, steady
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from helpers.attention import FusedMultiHeadAttention, MultiHeadAttention
from helpers.trace import trace


def build_both(sizes, dtype=torch.float32, **options):
    """Return an explicit and a fused module with the same weights, and an x that needs grad."""
    mha, x = build(sizes, dtype, **options)
    d_in, d_out, num_heads = sizes[2:]
    options = {"dropout": 0.0} | options
    fused = FusedMultiHeadAttention(d_in, d_out, mha.context_length, num_heads=num_heads, **options)
    fused.to(dtype).load_state_dict(mha.state_dict())
    return mha, fused, x.requires_grad_()


class Largest(TorchDispatchMode):
    """Keep the number of elements of the largest tensor that any operation returns."""

    numel = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(out) if isinstance(leaf, torch.Tensor)]
        self.numel = max([self.numel, *sizes])
        return out


# Equality


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("qkv_bias", [False, True])
@given(sizes=legal_sizes())
@example(sizes=TELLING)
@example(sizes=(1, 600, 8, 8, 2))  # more tokens than one block of torch's kernel
@steady
def test_outputs_and_gradients_equal_the_explicit_class(dtype, qkv_bias, sizes):
    mha, fused, x = build_both(sizes, dtype, qkv_bias=qkv_bias)
    explicit_out, out = mha(x), fused(x)
    torch.testing.assert_close(out, explicit_out, rtol=1e-5, atol=1e-5)
    pull = torch.linspace(-1, 1, out.numel(), dtype=dtype).view_as(out)
    for mine, theirs in zip(
        torch.autograd.grad(out, [x, *fused.parameters()], pull),
        torch.autograd.grad(explicit_out, [x, *mha.parameters()], pull),
        strict=True,
    ):
        torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("qkv_bias", [False, True])
def test_the_same_seed_gives_the_same_weights(qkv_bias):
    modules = []
    for cls in (MultiHeadAttention, FusedMultiHeadAttention):
        torch.manual_seed(123)
        modules.append(cls(6, 6, 6, 0.0, num_heads=2, qkv_bias=qkv_bias))
    for explicit, fused in zip(*(module.parameters() for module in modules), strict=True):
        assert torch.equal(explicit, fused)


@pytest.mark.parametrize("training", [False, True])
def test_a_record_gets_the_eleven_steps(training):
    mha, fused, x = build_both(TELLING, dropout=0.5)
    for explicit, step in zip(*(recorded(m.train(training), x) for m in (mha, fused)), strict=True):
        assert (explicit.number, explicit.name) == (step.number, step.name)
        assert list(explicit.tensors) == list(step.tensors)
        for name, tensor in step.tensors.items():
            assert torch.equal(tensor, explicit.tensors[name])
    assert fused.mask is None


def recorded(module, x):
    torch.manual_seed(0)
    return trace(module, x)


def test_a_failing_record_leaves_no_mask_behind():
    _, fused, x = build_both(TELLING)
    with pytest.raises(ZeroDivisionError):
        fused(x, record=lambda name, **tensors: 1 / 0)
    assert fused.mask is None


# Memory


@pytest.mark.parametrize("training", [False, True])
def test_no_tensor_grows_with_the_square_of_num_tokens(training):
    sizes = b, num_tokens, _, d_out, _ = (1, 256, 8, 8, 2)
    mha, fused, x = build_both(sizes)
    largest = {}
    for module in (mha, fused):
        with Largest() as mode:
            module.train(training)(x).sum().backward()
        largest[module] = mode.numel
    assert largest[fused] == b * num_tokens * d_out
    assert largest[mha] >= num_tokens**2


def test_a_long_context_length_costs_nothing():
    with Largest() as mode:
        FusedMultiHeadAttention(8, 8, 1_000_000, 0.0, num_heads=2)
    assert mode.numel == 8 * 8


# Dropout


def test_dropout_acts_in_training_only():
    mha, fused, x = build_both(TELLING, dropout=0.5)
    assert not torch.equal(fused(x), fused(x))
    torch.testing.assert_close(fused.eval()(x), mha.eval()(x))


def test_dropout_drops_the_share_asked_for_and_scales_the_rest():
    _, fused, _ = build_both((1, 1, 4, 4, 1), dropout=0.25)
    torch.manual_seed(0)
    # One token attends to itself alone, so its context is its value / 0.75, or 0.
    x = torch.randn(1, 1, 4).expand(400, 1, 4)
    bias = fused.out_proj.bias
    kept = fused.eval()(x) - bias
    out = fused.train()(x) - bias
    dropped = (out == 0).all(dim=-1).squeeze()
    torch.testing.assert_close(out[~dropped], kept[~dropped] / 0.75)
    assert 0.15 < dropped.float().mean() < 0.35


def test_dropout_is_switched_by_the_dropout_module_as_in_the_explicit_class():
    mha, fused, x = build_both(TELLING, dropout=0.5)
    for module in (mha, fused):
        module.dropout.eval()
    torch.testing.assert_close(fused(x), mha(x))


# Checkpoints and copies


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize("qkv_bias", [False, True])
@pytest.mark.parametrize("prefix", ["", "block."])
def test_state_dicts_are_exchanged_both_ways(prefix, qkv_bias, assign):
    pair = [
        cls(5, 12, 9, 0.0, num_heads=3, qkv_bias=qkv_bias)
        for cls in (MultiHeadAttention, FusedMultiHeadAttention)
    ]
    x = torch.randn(2, 7, 5)
    for source, target in (pair, reversed(pair)):
        for parameter in source.parameters():
            torch.nn.init.normal_(parameter)
        parents = [torch.nn.ModuleDict({"block": m}) if prefix else m for m in (source, target)]
        parents[1].load_state_dict(parents[0].state_dict(), strict=True, assign=assign)
        torch.testing.assert_close(target(x), source(x), rtol=1e-5, atol=1e-5)


def test_missing_and_unknown_weights_are_refused():
    fused = FusedMultiHeadAttention(6, 6, 6, 0.0, num_heads=2)
    state_dict = fused.state_dict()
    assert "mask" not in state_dict
    weight = state_dict.pop("W_key.weight")
    with pytest.raises(RuntimeError, match=r"Missing key.*W_key\.weight"):
        fused.load_state_dict(state_dict)
    with pytest.raises(RuntimeError, match=r"Unexpected key.*W_kee\.weight"):
        fused.load_state_dict(state_dict | {"W_key.weight": weight, "W_kee.weight": weight})


@pytest.mark.parametrize(
    "duplicate", [copy.deepcopy, lambda module: pickle.loads(pickle.dumps(module))]
)
def test_a_copy_computes_the_same(duplicate):
    _, fused, x = build_both(TELLING)
    duplicated = duplicate(fused)
    assert torch.equal(duplicated(x), fused(x))
    assert len(trace(duplicated, x)) == 11


# Compilers, devices, number formats


@pytest.mark.nightly
def test_compiles_into_one_graph():
    _, fused, x = build_both(TELLING)
    torch._dynamo.reset()
    compiled = torch.compile(fused, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), fused(x))


@pytest.mark.nightly
def test_exports_with_any_batch_and_number_of_tokens():
    _, fused, x = build_both(TELLING)
    dims = {0: torch.export.Dim("b"), 1: torch.export.Dim("num_tokens", max=fused.context_length)}
    program = torch.export.export(fused.eval(), (x.detach(),), dynamic_shapes={"x": dims})
    for shape in (x.shape, (3, 9, 5)):
        other = torch.randn(shape)
        torch.testing.assert_close(program.module()(other), fused(other))


def test_autocast_takes_float32_input():
    mha, fused, x = build_both(TELLING)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = fused(x)
    assert out.dtype == torch.bfloat16
    torch.testing.assert_close(out.float(), mha(x), rtol=0.1, atol=0.05)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_computes_the_same_on_a_gpu(dtype):
    mha, fused, x = build_both((2, 64, 32, 32, 2))
    out = fused.to("cuda", dtype)(x.to("cuda", dtype))
    torch.testing.assert_close(out.cpu().float(), mha(x), rtol=0.1, atol=0.05)


# Errors


@pytest.mark.parametrize(
    "changes",
    [
        {"d_in": 0},
        {"d_out": "6"},
        {"context_length": 0},
        {"context_length": 6.0},
        {"context_length": True},
        {"dropout": 1.0},
        {"num_heads": 4},
    ],
    ids=str,
)
def test_bad_sizes_are_refused_in_the_same_words(changes):
    sizes = {"d_in": 6, "d_out": 6, "context_length": 6, "dropout": 0.0, "num_heads": 2} | changes
    assert_same_error(lambda cls: cls(**sizes))


@pytest.mark.parametrize("record", [None, lambda name, **tensors: None])
@pytest.mark.parametrize(
    "x",
    [
        torch.zeros(3, 6),
        torch.zeros(1, 0, 6),
        torch.zeros(1, 3, 5),
        torch.zeros(1, 5, 6),
        [[[0.0] * 6]],
        torch.zeros(1, 3, 6).long(),
        torch.zeros(1, 3, 6).double(),
    ],
)
def test_bad_input_is_refused_in_the_same_words(x, record):
    options = {"record": record} if record else {}
    assert_same_error(lambda cls: cls(6, 6, 4, 0.0, num_heads=2)(x, **options))


def assert_same_error(call):
    errors = []
    for cls in (MultiHeadAttention, FusedMultiHeadAttention):
        with pytest.raises((TypeError, ValueError)) as caught:
            call(cls)
        errors.append((caught.type, str(caught.value)))
    assert errors[0] == errors[1]

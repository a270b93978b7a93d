"""Both classes at their edges: what docs/class.md lists works, and what it says cannot, cannot."""

# ruff: noqa: F403, F405 - all its classes

import copy
import io
import pickle

import pytest
import torch
from sizes import TELLING, build
from torch import nn

from eleven_steps.beyond.variants import GroupedHeads, Rope, VariantAttention
from helpers.attention import *
from helpers.trace import trace

BOTH = [MultiHeadAttention, FusedMultiHeadAttention]
THREE = [*BOTH, VariantAttention]
both = pytest.mark.parametrize("cls", BOTH)
three = pytest.mark.parametrize("cls", THREE)
old_things = pytest.mark.filterwarnings("ignore")  # what torch says of its own old parts


def made(cls, dtype=torch.float32, **options):
    """Return a seeded module of telling sizes, and an x that needs its gradient."""
    mha, x = build(TELLING, dtype, cls, **options)
    return mha, x.requires_grad_()


def gradients(out, x, mha):
    return torch.autograd.grad(out.square().sum(), [x, *mha.parameters()])


def wrapped(mha, x):
    mha.W_query = nn.Sequential(mha.W_query)  # as an adapter: no in_features, and no weight
    with pytest.raises(ValueError, match="10 tokens, but context_length is 9"):
        mha(torch.zeros(1, 10, 5))
    return mha(x)


def saved(mha, x):
    torch.save(mha, stored := io.BytesIO())
    stored.seek(0)
    return torch.load(stored, weights_only=False)(x)


def traced(mha, x):
    with pytest.raises((RuntimeError, torch.jit.Error, TypeError)):
        torch.jit.script(mha)
    return torch.jit.trace(mha.eval(), 2 * x)(x)


def exported(mha, x):
    open_sizes = {"x": dict.fromkeys((0, 1), torch.export.Dim.AUTO)}
    program = torch.export.export(mha.eval(), (x,), dynamic_shapes=open_sizes).module()
    longer = torch.randn(3, 8, 5)
    torch.testing.assert_close(program(longer), mha(longer), rtol=1e-4, atol=1e-5)
    return program(x)


def as_onnx(mha, x):
    from onnx.reference import ReferenceEvaluator  # it comes with requirements-nightly.txt

    torch.onnx.export(mha.eval(), (x,), stored := io.BytesIO(), dynamo=True, verbose=False)
    evaluator = ReferenceEvaluator(stored.getvalue())
    return torch.from_numpy(evaluator.run(None, {evaluator.input_names[0]: x.numpy()})[0])


WAYS = {
    "a wrapped layer": wrapped,
    "scattered memory": lambda mha, x: mha(x.permute(2, 1, 0).contiguous().permute(2, 1, 0)),
    "token by token": lambda mha, x: torch.cat([mha(x[:, : n + 1])[:, n:] for n in range(7)], 1),
    "deepcopy": lambda mha, x: copy.deepcopy(mha)(x),
    "pickle": lambda mha, x: pickle.loads(pickle.dumps(mha))(x),
    "torch.save": saved,
    "jit.trace": traced,
    "vmap": lambda mha, x: torch.vmap(mha)(torch.stack([2 * x, x]))[1],
    "export": exported,
    "onnx": as_onnx,
}
LONG = "export", "onnx"  # what waits for the night


@old_things
@pytest.mark.parametrize(
    "way", [pytest.param(w, marks=[pytest.mark.nightly] * (w in LONG)) for w in WAYS]
)
@three
def test_the_same_comes_out(cls, way):
    mha, x = made(cls)
    right = mha(x).detach()
    torch.testing.assert_close(WAYS[way](mha, x.detach()).detach(), right, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("cls", [*THREE, CausalAttention, MultiHeadAttentionWrapper])
def test_memory_given_later_gets_the_right_mask(cls, inside):
    sizes = (5, 12, 9, 0.0) + (3,) * (cls is not CausalAttention)
    torch.manual_seed(0)
    right = cls(*sizes)
    with torch.device("meta"):
        later = nn.ModuleDict({"block": cls(*sizes)}) if inside else cls(*sizes)
    later.to_empty(device="cpu")
    later = later["block"] if inside else later
    with torch.no_grad():  # an initialisation of one's own, which knows nothing of a mask
        for empty, weight in zip(later.parameters(), right.parameters(), strict=True):
            empty.copy_(weight)
    for ours, theirs in zip(later.buffers(), right.buffers(), strict=True):
        assert torch.equal(ours, theirs)
    x = torch.randn(2, 7, 5)
    assert torch.equal(later(x), right(x))


def test_a_mask_of_ones_own_stays_when_the_module_is_moved():
    mha, _ = made(MultiHeadAttention)
    mha.mask = torch.zeros(9, 9, dtype=torch.bool)
    assert not mha.to(torch.float64).mask.any()


@both
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("how", ["autocast", "converted"])
def test_half_the_bits_give_nearly_the_same(cls, dtype, how):
    mha, x = made(cls)
    right = mha(x)
    if how == "autocast":
        with torch.autocast("cpu", dtype=dtype):
            out = mha(x)
    else:
        out = mha.to(dtype)(x.to(dtype))
    assert out.dtype == dtype
    torch.testing.assert_close(out.float(), right, rtol=0.1, atol=0.05)


def test_a_large_score_in_float16_is_finite_in_the_fused_class_only():
    """What the classes say of themselves: step 7 divides only after step 5 has multiplied."""
    found = {}
    for cls in BOTH:
        mha, x = made(cls)
        with torch.no_grad():
            mha.W_query.weight.mul_(300)
            mha.W_key.weight.mul_(300)
            assert trace(mha, x)[4].tensors["scores"].abs().max() > 65_504
            found[cls] = mha.half()(x.half()).isfinite().all().item()
            assert mha.bfloat16()(x.bfloat16()).isfinite().all()
    assert found == {MultiHeadAttention: False, FusedMultiHeadAttention: True}


@three
def test_a_batch_of_no_sequences_comes_out_as_it_came(cls):
    mha, _ = made(cls)
    x = torch.zeros(0, 7, 5, requires_grad=True)
    assert mha(x).shape == (0, 7, 12)
    mha(x).sum().backward()
    assert mha.W_query.weight.grad.abs().sum() == 0
    if cls is VariantAttention:
        parts = [GroupedHeads(1), Rope()]
        assert made(cls, parts=parts)[0](x).shape == (0, 7, 12)


@three
def test_a_nested_x_gets_a_sentence_that_helps(cls):
    mha, x = made(cls)
    sequences = [x[0, :3].detach(), x[1].detach()]
    jagged = torch.nested.nested_tensor(sequences, layout=torch.jagged)
    with pytest.raises(TypeError, match=r"x is nested.*torch\.nested\.to_padded_tensor"):
        mha(jagged)
    out = mha(torch.nested.to_padded_tensor(jagged, 0.0))
    torch.testing.assert_close(out[0, :3], mha(x)[0, :3])


@both
def test_gradients_are_those_of_small_steps(cls):
    mha, x = made(cls, torch.float64)
    assert torch.autograd.gradcheck(mha, [x])


@old_things
@pytest.mark.nightly
@both
def test_inductor_compiles_it_into_one_graph_with_its_gradients(cls):
    mha, x = made(cls)
    torch._dynamo.reset()
    compiled = torch.compile(mha, fullgraph=True)
    for one, other in zip(
        [compiled(x), *gradients(compiled(x), x, mha)],
        [mha(x), *gradients(mha(x), x, mha)],
        strict=True,
    ):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)

"""GPT-2's attention weights, loaded into ours, give what the transformers library gives."""

import pytest
import torch
from safetensors.torch import save_file

from eleven_steps.beyond.gpt2 import load_attention
from helpers.trace import trace

PREFIXES = ["", "transformer."]


@pytest.fixture(scope="module")
def transformers():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HUB_OFFLINE", "1")
        import transformers

        yield transformers


def random_model(transformers, d, num_heads, context_length, num_layers=3):
    """Return transformers' model, every parameter random: a fresh one has zero biases."""
    config = transformers.GPT2Config(
        n_embd=d,
        n_head=num_heads,
        n_positions=context_length,
        n_layer=num_layers,
        vocab_size=11,
        attn_implementation="sdpa",
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    torch.manual_seed(0)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=d**-0.5)
    return model


def checkpoint(d=128, dtype=torch.float32, prefix="", **changes):
    """Return the tensors of layer 0 by name; changes replace or, with None, drop some."""
    torch.manual_seed(0)
    shapes = {
        "c_attn.weight": (d, 3 * d),
        "c_attn.bias": (3 * d,),
        "c_proj.weight": (d, d),
        "c_proj.bias": (d,),
    }
    tensors = {name: torch.randn(shape).to(dtype) for name, shape in shapes.items()} | changes
    named = {f"{prefix}h.0.attn.{name}": tensor for name, tensor in tensors.items()}
    return {name: tensor for name, tensor in named.items() if tensor is not None}


@pytest.fixture
def save(tmp_path):
    """Save tensors as a safetensors file and return its path."""

    def save(tensors):
        save_file(tensors, tmp_path / "model.safetensors")
        return tmp_path / "model.safetensors"

    return save


@pytest.mark.nightly
@pytest.mark.parametrize("prefix", PREFIXES)
@pytest.mark.parametrize(
    ("d", "num_heads", "context_length"), [(12, 3, 7), (64, 1, 16), (192, None, 32), (768, None, 9)]
)
def test_equals_transformers(transformers, save, prefix, d, num_heads, context_length):
    model = random_model(transformers, d, num_heads or d // 64, context_length)
    state_dict = model.transformer.state_dict()
    path = save({f"{prefix}{name}": tensor for name, tensor in state_dict.items()})
    x = torch.randn(2, context_length, d)
    outs = []
    for layer, block in enumerate(model.transformer.h):
        mha = load_attention(path, layer, num_heads=num_heads)
        assert mha.context_length == context_length
        assert block.attn.config._attn_implementation == "sdpa"
        outs.append(mha(x))
        torch.testing.assert_close(outs[-1], block.attn(x)[0], rtol=1e-5, atol=1e-5)
    assert not torch.allclose(outs[0], outs[1], atol=0.1)


def test_the_wide_matrix_is_cut_and_transposed(save):
    tensors = checkpoint()
    mha = load_attention(save(tensors), 0)
    wide, x = tensors["h.0.attn.c_attn.weight"], torch.randn(2, 4, 128)
    projected = trace(mha, x)[1].tensors
    together = torch.cat([projected["queries"], projected["keys"], projected["values"]], dim=-1)
    torch.testing.assert_close(together, x @ wide + tensors["h.0.attn.c_attn.bias"])
    assert all(parameter.is_contiguous() for parameter in mha.parameters())
    assert all(parameter.requires_grad for parameter in mha.parameters())


def test_loading_draws_no_random_numbers_lets_go_of_the_file_and_keeps_its_form(save):
    tensors = checkpoint(d=192, dtype=torch.bfloat16)
    path, before = save(tensors), torch.get_rng_state()
    mha = load_attention(path, 0)
    assert torch.equal(torch.get_rng_state(), before)
    path.write_bytes(bytes(path.stat().st_size))
    assert torch.equal(mha.out_proj.bias, tensors["h.0.attn.c_proj.bias"])
    assert {parameter.dtype for parameter in mha.parameters()} == {torch.bfloat16}
    assert (mha.num_heads, mha.head_dim, mha.context_length) == (3, 64, 1024)

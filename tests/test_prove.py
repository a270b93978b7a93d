"""bench/prove.py: every row is equal, and a row that is not is said so."""

from importlib import import_module

import pytest
from prove_models import MODEL_PROOFS, MODELS, RELEASED
from prove_rows import CHANGES

from eleven_steps.beyond.since import load_since
from eleven_steps.beyond.variants import Cap, Norm, Window

PROOFS = [*CHANGES, *MODEL_PROOFS]
pytestmark = pytest.mark.nightly  # all of it needs transformers


@pytest.fixture(scope="module")
def prove():
    """bench/prove.py, which imports transformers: seconds that only these tests pay."""
    return import_module("prove")


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: f"{proof.change} {proof.module}")
def test_equal_to_the_modules_people_run(prove, proof):
    ((line, equal),) = prove.rows([proof])
    assert equal, line


def test_what_is_no_number_is_not_equal(prove, monkeypatch):
    monkeypatch.setattr(prove, "difference", lambda *_: float("nan"))
    ((line, equal),) = prove.rows(PROOFS[:1])
    assert not equal and line.endswith("NOT EQUAL")


@pytest.mark.parametrize(("part", "does"), [(Window, "mask"), (Cap, "scores"), (Norm, "transpose")])
def test_a_part_that_does_nothing_makes_its_row_red(prove, monkeypatch, part, does):
    monkeypatch.delattr(part, does)
    proofs = [each for each in CHANGES if each.change == part.__name__.lower()]
    assert proofs and not any(equal for _, equal in prove.rows(proofs))


def test_every_model_of_the_table_has_its_rows():
    proven = [(proof.change, proof.kind) for proof in MODEL_PROOFS]
    wanted = []
    for model in load_since():
        other = model.window_layers + model.delta_layers
        full = model.num_layers - model.window_layers - model.large_layers
        kinds = {"window": other, "full": full, "large": model.large_layers}
        kinds["borrowing"] = model.borrowing + model.sharing
        name = model.name.partition(" (")[0]
        wanted += [(name, kind) for kind, layers in kinds.items() if layers]
    assert sorted(proven) == sorted(wanted)
    assert len(PROOFS) >= 75


NAMED = {"chunk": "attention_chunk_size", "temperature": "floor_scale"}
NAMED |= {
    "block": "index_block_size",
    "top_blocks": "index_topk_blocks",
    "index_pool": "index_kpool",
}
NAMED |= {"borrowing": "num_kv_shared_layers", "out_rank": "o_lora_rank"}
NAMED |= {"rope_base": "compress_rope_theta", "out_groups": "o_groups"}


@pytest.mark.parametrize("name", RELEASED)
def test_the_table_says_what_the_configuration_says(name):
    model, config = MODELS[name], RELEASED[name].config
    assert (model.d_model, model.num_heads) == (config.hidden_size, config.num_attention_heads)
    few = 1 if name == "Falcon 7B" else getattr(config, "num_key_value_heads", model.num_heads)
    assert (model.window_kv_heads or model.num_kv_heads) == few
    kinds = getattr(config, "layer_types", None)
    if kinds and "linear_attention" in kinds:
        assert model.num_layers == len(kinds) - kinds.count("linear_attention")
        assert not model.delta_layers or model.delta_layers == kinds.count("linear_attention")
    else:
        assert model.num_layers == config.num_hidden_layers
    for kind in ("sliding_attention", "chunked_attention", "minimax_m3_sparse"):
        if kind in (kinds or ()):
            assert model.window_layers == kinds.count(kind)
    if model.window:
        assert model.window == config.sliding_window
    if model.latent_dim:
        assert config.v_head_dim == model.head_dim
        assert config.qk_nope_head_dim == (model.key_dim or model.head_dim)
        latents = config.kv_lora_rank, config.q_lora_rank or 0, config.qk_rope_head_dim
        assert latents == (model.latent_dim, model.query_dim, model.rope_dim)
    else:
        width = getattr(config, "head_dim", None) or model.d_model // model.num_heads
        assert (model.window_head_dim or model.head_dim) == width
    if model.top_keys:
        index = config.index_topk, config.index_n_heads, config.index_head_dim
        assert index == (model.top_keys, model.index_heads, model.index_dim)
    assert model.cap == (getattr(config, "attn_logit_softcapping", None) or 0)
    for ours, theirs in NAMED.items():
        if hasattr(config, theirs):
            assert getattr(model, ours) == getattr(config, theirs)
    assert model.sharing == (getattr(config, "indexer_types", None) or []).count("shared")
    if model.delta_bound:
        delta = config.linear_num_heads, config.linear_head_dim, -config.linear_lower_bound
        assert delta == (model.window_kv_heads, model.window_head_dim, model.delta_bound)
        assert config.rms_norm_eps == model.eps / 1e6
    elif model.window_head_dim:
        layer = config.per_layer_config[kinds.index("full_attention")]
        assert (layer.head_dim, layer.num_key_value_heads) == (model.head_dim, model.num_kv_heads)
        assert model.same_values == config.attention_k_eq_v
    if model.pool:
        rates = config.compress_rates
        assert rates["compressed_sparse_attention"] == model.pool
        assert rates["heavily_compressed_attention"] == model.large_pool
        assert kinds.count("heavily_compressed_attention") == model.large_layers
        scaled, plain = config.rope_parameters["compress"], config.rope_parameters["main"]
        assert (scaled["factor"], plain["rope_theta"]) == (model.factor, model.window_base)
        assert scaled["original_max_position_embeddings"] == model.original
        assert config.index_topk == model.top_pools

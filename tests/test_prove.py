"""bench/prove.py: every row is equal, and a row that is not is said so."""

from dataclasses import replace
from importlib import import_module

import pytest
import torch
from prove_rows import PROOFS, Proof

from eleven_steps.beyond.variants import GroupedHeads, Rope, Window

pytestmark = pytest.mark.nightly


@pytest.fixture(scope="module")
def prove():
    """bench/prove.py, which imports transformers: seconds that only these tests pay."""
    return import_module("prove")


@pytest.mark.parametrize("proof", PROOFS, ids=lambda proof: f"{proof.change} {proof.module}")
def test_equal_to_the_modules_people_run(prove, proof):
    ((line, equal),) = prove.rows([proof])
    assert equal, line


def swapped(proof, new):
    """Return a proof with new in place of the part of its kind."""
    return replace(proof, parts=[new if type(p) is type(new) else p for p in proof.parts])


def find(change, model):
    return next(
        p for p in PROOFS if isinstance(p, Proof) and (p.change, p.model) == (change, model)
    )


class Tiled(GroupedHeads):
    """Wrong: heads 0, 1, 0, 1 in place of 0, 0, 1, 1."""

    def transpose(self, call, queries, keys, values):
        repeats = (1, call.mha.num_heads // self.num_kv_heads, 1, 1)
        return queries, keys.repeat(repeats), values.repeat(repeats)


WRONG = {
    "other pairing": swapped(find("rope halves", "Llama"), Rope(500.0, "neighbours")),
    "other pairing, latent": swapped(find("latent", "DeepseekV3"), Rope(500.0, "halves", 4)),
    "window one short": swapped(find("window", "Mistral"), Window(3)),
    "window one long": swapped(find("window", "Mistral"), Window(5)),
    "tiled": replace(find("gqa", "Llama"), parts=[Tiled(2), Rope(500.0)]),
    "no position": replace(find("alibi", "Mpt"), parts=[]),
    "all features turn": swapped(find("latent", "DeepseekV2"), Rope(500.0, "neighbours")),
}


@pytest.mark.parametrize("proof", WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_not_equal(prove, proof):
    ((line, equal),) = prove.rows([proof])
    assert not equal
    assert line.endswith("NOT EQUAL")


def test_the_exit_status_tells(prove, monkeypatch, capsys):
    monkeypatch.setattr(prove, "rows", lambda: iter([("one", True), ("two", True)]))
    assert prove.main() == 0
    monkeypatch.setattr(prove, "rows", lambda: iter([("one", False), ("two", True)]))
    assert prove.main() == 1
    assert "one\ntwo\n" in capsys.readouterr().out


def test_casts_lead_to_the_dtype_asked_for(prove):
    x = torch.ones(2, dtype=torch.float64)
    with prove.casts_to(torch.float64):
        assert x.float().dtype is x.to(torch.float32).dtype is torch.float64
        assert torch.softmax(x, dim=-1, dtype=torch.float32).dtype is torch.float64
    assert x.float().dtype is torch.float32

"""bench/prove.py: every row is equal, and a row that is not is said so."""

from importlib import import_module

import pytest
from prove_models import MODEL_PROOFS
from prove_rows import CHANGES

from eleven_steps.beyond.newer_models import load_newer_models
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
    for model in load_newer_models():
        other = model.window_layers + model.delta_layers
        full = model.num_layers - model.window_layers - model.large_layers
        kinds = {"window": other, "full": full, "large": model.large_layers}
        kinds["borrowing"] = model.borrowing + model.sharing
        name = model.name.partition(" (")[0]
        wanted += [(name, kind) for kind, layers in kinds.items() if layers]
    assert sorted(proven) == sorted(wanted)
    assert len(PROOFS) >= 75

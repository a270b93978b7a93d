"""The data files hold what they say, and what they say is true."""

import json

import pytest

from helpers import examples
from helpers.examples import load_example, load_whiteboard

FIELDS = {"value", "shape", "meaning", "source"}


@pytest.mark.parametrize("path", sorted(examples.DATA.glob("*.json")), ids=lambda path: path.stem)
def test_a_file_holds_what_it_says(path):
    content, example = json.loads(path.read_text("utf-8")), load_example(path.stem)
    assert content.keys() == {"about", "tensors"} and content["about"]
    for name, entry in content["tensors"].items():
        assert entry.keys() - {"dtype", "rows"} == FIELDS and entry["meaning"] and entry["source"]
        tensor = example[name]
        assert list(tensor.shape) == entry["shape"] and tensor.isfinite().all()
        assert tensor.is_floating_point() or tensor.tolist() == entry["value"]
        assert len(example.rows.get(name, tensor)) == len(tensor)


def test_loading_works_from_any_folder_and_gives_fresh_tensors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examples.DATA.is_absolute()
    load_whiteboard().zero_()
    assert load_whiteboard().any()


def test_the_smallest_gpt2_has_its_published_counts():
    t = load_example("models")
    assert t["attention_parameters"][0] == 2_360_064
    assert t["parameters_published"][0] == 117_000_000
    assert t["parameters_counted"][0] // 1_000_000 == 124

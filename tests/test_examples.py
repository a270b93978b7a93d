"""The data files hold what they say, and what they say is true."""

from helpers import examples
from helpers.examples import load_example, load_whiteboard


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

"""The data files hold what they say, and what they say is true."""

import torch

from helpers import examples
from helpers.examples import load_example, load_whiteboard


def test_loading_works_from_any_folder_and_gives_fresh_tensors(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert examples.DATA.is_absolute()
    load_whiteboard().zero_()
    assert load_whiteboard().any()


def test_numbers_are_float32_unless_their_entry_says_otherwise():
    kinds = {name: t.dtype for name, t in load_example("whiteboard").tensors.items()}
    printed = dict.fromkeys(["queries_after_view", "context_after_reformat"], torch.float64)
    assert kinds == {"W": torch.float32, "out": torch.float32} | printed


def test_the_smallest_gpt2_has_its_published_counts():
    t = load_example("models")
    assert t["attention_parameters"][0] == 2_360_064
    assert t["parameters_published"][0] == 117_000_000
    assert t["parameters_counted"][0] // 1_000_000 == 124

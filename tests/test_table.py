"""A table says in text and in HTML the same, and what it was given."""

import re
from html import escape

import pytest
import torch

from helpers.table import show_table


def test_numbers_stand_to_the_right_and_texts_to_the_left():
    table = show_table({"model": ["small", "the largest"], "parameters": [1234567, 8]})
    assert str(table).splitlines() == [
        "model        parameters",
        "small         1,234,567",
        "the largest           8",
    ]
    assert re.findall(r"text-align:(\w+)", table.html) == ["left", "right"] * 3


def test_digits_and_shares():
    columns = {"a": torch.tensor([0.126, 1234.5]), "b": [0.126, 2.0], "part": [0.126, 1]}
    table = show_table(columns, digits=1, share=["part"])
    assert table.columns == (("0.1", "1,234.5"), ("0.1", "2.0"), ("13%", "100%"))
    assert show_table({"a": [0.126]}, digits=3).columns == (("0.126",),)


@pytest.mark.parametrize("value", [True, (1, 3, 6), "7 softmax", None])
def test_what_is_no_number_is_written_as_it_is(value):
    table = show_table({"n": [1, 2], "what": [value, value]})
    assert table.columns[1] == (str(value),) * 2 and table.sides == ("right", "left")


def test_a_number_with_its_unit_stands_to_the_right_too():
    columns = {"memory": ["48 MiB", "1.5 GiB"], "share": ["8%", "10%"], "time": ["3 ms", "0.2 s"]}
    assert show_table(columns).sides == ("right",) * 3
    assert show_table({"what": ["3 MiB", "none"]}).sides == ("left",)


def test_html_and_text_hold_the_same_and_the_html_escapes():
    table = show_table({"a < b": [1.5, 2.5], "what": ["<b>", "&"]})
    assert re.sub(r"<[^>]+>", " ", table.html).split() == escape(str(table)).split()
    assert table.html.count('scope="col"') == 2
    assert table._repr_mimebundle_() == {"text/html": table.html, "text/plain": str(table)}

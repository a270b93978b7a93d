"""Renewing a notebook twice changes nothing, and measured times stay until their code changes."""

import asyncio

import nbformat
import pytest
import renew
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

SOLUTION = {"tags": ["solution"]}
MEASURED = {"tags": ["nbval-ignore-output"]}


@pytest.fixture(scope="module")
def twice(tmp_path_factory):
    """Return a notebook's path and its text after each of two renewals."""
    path = tmp_path_factory.mktemp("renew") / "small.ipynb"
    cells = [
        new_markdown_cell("# Small"),
        new_code_cell("import time\nimport ipywidgets\nprint(1)\nprint(2)"),
        new_code_cell("time.perf_counter()", metadata=MEASURED),
        new_code_cell("ipywidgets.IntSlider()"),
        new_code_cell("1 / 0", metadata={"tags": ["raises-exception"], "scrolled": True}),
        new_code_cell("# Solution\n42", metadata=SOLUTION),
    ]
    nbformat.write(new_notebook(cells=cells), path)
    texts = []
    for _ in range(2):
        asyncio.run(renew.renew(path))
        texts.append(path.read_text("utf-8"))
    return path, texts


def test_the_second_time_changes_nothing(twice):
    path, (first, second) = twice
    assert first == second == renew.normal_form(renew.read(path))


def test_what_the_form_keeps(twice):
    path, _ = twice
    _, prints, timed, slider, error, answer = renew.read(path).cells
    assert renew.is_measured(timed)
    timed.source = "time.monotonic()"  # its times go when its code changes
    assert not renew.is_measured(timed)
    assert [output.text for output in prints.outputs] == ["1\n2\n"]
    assert list(slider.outputs[0].data) == ["text/plain"]
    assert error.outputs[0].traceback == ["ZeroDivisionError: division by zero"]
    assert error.metadata == {"tags": ["raises-exception"]}
    hidden = {"source_hidden": True, "outputs_hidden": True}
    assert answer.metadata == SOLUTION | {"jupyter": hidden}


def test_a_failing_notebook_is_named_and_left_alone(tmp_path, capsys):
    path = tmp_path / "broken.ipynb"
    nbformat.write(new_notebook(cells=[new_code_cell("1 / 0")]), path)
    before = path.read_text("utf-8")
    assert asyncio.run(renew.for_each([path], renew.renew)) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err
    assert path.read_text("utf-8") == before

"""The minutes that the course states are those that its rule gives."""

import minutes
from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

BOTH = minutes.both()


def test_readme_and_plan_state_the_minutes():
    readme, plan = (page.read_text("utf-8") for page in minutes.PAGES)
    assert len(minutes.ROW.findall(readme)) == len(BOTH) and len(minutes.WEEK.findall(plan)) == 18
    assert len(minutes.PART.findall(plan)) == 6
    for text in readme, plan:
        assert len(minutes.SUM.findall(text)) == 1
        assert minutes.in_page(text, BOTH) == text, "run: python tools/minutes.py --write"
    evening = plan.partition("| from |")[2].partition("\n\n")[0]
    assert set(minutes.NAME.findall(evening)) == {name for name, (some, _) in BOTH.items() if some}


def test_folded_headings_state_theirs():
    wrong = [path.name for path, _ in minutes.in_headings()]
    assert wrong == [], "run: python tools/minutes.py --write"


def test_an_evening_is_one():
    evenings = {name: evening for name, (evening, _) in BOTH.items() if evening}
    steps = {name: m for name, m in evenings.items() if name[:2] not in ("00", "12", "13")}
    assert len(steps) == 11 and max(steps.values()) <= 12, steps
    assert sum(evenings.values()) <= 150, evenings


def taken(*cells):
    """The minutes of a notebook of these cells, behind a set-up cell."""
    set_up = new_code_cell("import torch\n" * 9, metadata={"tags": ["set-up"]})
    return minutes.minutes([set_up, *cells])


def shown(**data):
    return new_code_cell("", outputs=[new_output("display_data", data)])


def test_the_rule():
    assert taken() == 1
    assert taken(new_markdown_cell("word " * 2000)) == 10
    assert taken(new_markdown_cell("[a word](a/long/link.ipynb) | `code` " * 1000)) == 15
    assert taken(new_code_cell("x\n\n" * 60)) == 10
    assert (
        taken(*(shown(**{"image/svg+xml": "", "text/plain": "a picture"}) for _ in range(30))) == 10
    )
    film = {"image/svg+xml": "", "text/plain": "a film\n3 positions (head): 0, 1, 2"}
    assert taken(*(shown(**film) for _ in range(10))) == 15
    assert taken(*(shown(**{"text/plain": "line\n" * 50}) for _ in range(50))) == 20
    names = ("scores.1", "by_hand.1") * 3
    asked = [new_code_cell(f'check("{name}", answer)') for name in names]
    assert taken(*asked) == 9  # each counts once
    assert taken(new_code_cell('check("your_class.1", Mine)')) == 45


def test_what_is_written_is_read_again():
    row = "| [01_shape](notebooks/01_shape.ipynb) | what |  | 15 |\nOne evening, 3 minutes"
    expected = row.replace("|  | 15 |", "| 9 | 30 |").replace("3 minutes", "9 minutes")
    assert minutes.in_page(row, {"01_shape": (9, 30)}) == expected
    assert minutes.in_page(expected, {"01_shape": (9, 30)}) == expected

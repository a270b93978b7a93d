"""The picture of progress shows what it is given, in boxes and in words."""

import re

import pytest

from eleven_steps.pictures.done import draw_progress

GROUPS = {"view": ["view.1", "view.2"], "mask": ["mask.1"], "sheet": [f"sheet.{n}" for n in "1234"]}


def texts(picture):
    return re.findall(r"<text[^>]*>([^<]*)</text>", picture.body)


def test_nothing_done():
    picture = draw_progress([], GROUPS)
    assert texts(picture) == ["view", "1", "2", "mask", "1", "sheet", "1", "2", "3", "4"]
    assert picture.title == "0 of 7 exercises are done"
    assert picture.description == "None is done yet."


def test_what_is_done_is_ticked_and_said_in_the_order_of_the_groups():
    picture = draw_progress(["sheet.3", "view.2", "gone.1"], GROUPS, note="And a note.")
    assert texts(picture) == ["view", "1", "2 ✓", "mask", "1", "sheet", "1", "2", "3 ✓", "4"]
    assert picture.title == "2 of 7 exercises are done"
    assert picture.description == "Done: view.2, sheet.3. And a note."


def test_the_evening_is_counted_apart():
    picture = draw_progress(["sheet.3", "view.2", "view.1"], GROUPS, ["view.1", "mask.1"])
    assert picture.title.startswith("Done: 1 of the evening's 2 exercises (strong edge), 2 of 5")
    assert picture.body.count("stroke-width:2") == 2


@pytest.mark.parametrize(
    "groups",
    [GROUPS, {"a": ["a.1"]}, {"a": list("abcd")}, {"a": list("abcdefghijklm"), "b": list("nopq")}],
    ids=len,
)
def test_every_box_has_its_own_place_inside_the_picture(groups):
    picture = draw_progress([], groups)
    boxes = re.findall(r'<rect x="(\d+)" y="(\d+)" width="(\d+)" height="(\d+)"', picture.body)
    corners = [(int(x) + int(w), int(y) + int(h)) for x, y, w, h in boxes]
    assert len(set(corners)) == len(corners) == sum(map(len, groups.values()))
    assert all(right <= picture.width and low <= picture.height for right, low in corners)

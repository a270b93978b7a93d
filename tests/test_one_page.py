"""The page to print: all of it is there, inside the paper, and black on white."""

import one_page
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from helpers.trace import STEPS


@pytest.mark.parametrize("paper", one_page.PAPERS)
def test_everything_lies_inside_the_margins_and_nothing_overlaps(paper):
    figure = one_page.draw(paper)
    renderer = FigureCanvasAgg(figure).get_renderer()
    boxes = [each.get_window_extent(renderer) for each in figure.texts]
    margin = 0.35 * figure.dpi
    wide, high = (side * figure.dpi for side in one_page.PAPERS[paper])
    for box in boxes:
        assert (
            margin <= box.x0 < box.x1 <= wide - margin
            and margin <= box.y0 < box.y1 <= high - margin
        )
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert not (
                box.x0 < other.x1 and other.x0 < box.x1 and box.y0 < other.y1 and other.y0 < box.y1
            )
    assert {each.get_color() for each in figure.texts} == {"black"}
    said = "\n".join(each.get_text() for each in figure.texts)
    assert all(f"{place} {step}" in said for place, step in enumerate(STEPS, start=1))
    assert len(one_page.one_head()) == 6 and "return weights @ values" in said
    assert "`" not in said and said.count("(b, num_heads, num_tokens, num_tokens)") == 5


def test_what_does_not_fit_is_not_printed(monkeypatch):
    monkeypatch.setattr(one_page, "LINE", 0.4)
    with pytest.raises(AssertionError, match="A4: it does not fit on one page"):
        one_page.draw("A4")

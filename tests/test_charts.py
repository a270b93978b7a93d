import re

import matplotlib
import pytest
import torch

from eleven_steps.pictures import HEAD_COLOURS
from eleven_steps.pictures.charts import (
    LINES,
    draw_growth,
    draw_saturation,
    draw_squares,
    entropy,
    slope,
)
from eleven_steps.pictures.svg import Drawing

EMPTY = Drawing("", 0, 0)


def scores(head_dim, spread=1.0):
    generator = torch.Generator().manual_seed(0)
    return spread * torch.randn(200, 8, generator=generator) * head_dim**0.5


@pytest.fixture
def chart():
    return draw_saturation({d: scores(d) for d in (1, 64, 256)}, "It grows")


def test_entropy_counts_the_bits_of_a_row():
    rows = torch.tensor([[0.25, 0.25, 0.25, 0.25], [0.5, 0.5, 0, 0], [1.0, 0, 0, 0]])
    assert entropy(rows).tolist() == pytest.approx([2, 1, 0])


def test_slope_is_the_derivative_of_a_weight_in_its_own_score():
    row = torch.tensor([0.3, -1.2, 2.0])
    jacobian = torch.autograd.functional.jacobian(lambda s: torch.softmax(s, dim=-1), row)
    assert torch.allclose(slope(torch.softmax(row, dim=-1)), jacobian.diagonal())


def test_the_words_give_the_finding(chart):
    assert chart.description.startswith("From head_dim 1 to 256: ")
    for what, measure in (
        ("entropy of the weights (bits)", entropy),
        ("gradient of a weight", slope),
    ):
        first, last = (measure(torch.softmax(scores(d), dim=-1)).mean() for d in (1, 256))
        assert f"{what} without the scale: {first:.2f} to {last:.2f}" in chart.description
        assert f"{what} with the scale: {first:.2f} to {first:.2f}" in chart.description
        assert f"{first:.2f}" != f"{last:.2f}"


def test_equal_numbers_give_equal_pictures_and_other_numbers_others(chart, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    assert chart == draw_saturation({d: scores(d) for d in (1, 64, 256)}, "It grows")
    assert chart.svg != draw_saturation({d: scores(d, 1.1) for d in (1, 64, 256)}, "It grows").svg


def test_a_chart_takes_the_colours_of_the_page(chart):
    assert "#010203" not in chart.svg and "#040506" not in chart.svg
    assert chart.svg.count("var(--jp-content-font-color1") > 10  # its texts
    colours = {colour.lower() for colour in re.findall("#[0-9a-fA-F]{6}", chart.svg)}
    assert colours == {"#212121", "#ffffff", "#757575", *(line["color"] for line in LINES.values())}
    assert not re.search(r"(?:href|url)[=(]\"?http", chart.svg) and "<script" not in chart.svg
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', chart.svg))
    assert used == set(re.findall(r' id="([^"]+)"', chart.svg))


def test_the_lines_have_colours_of_no_head_and_more_than_colour():
    assert not {line["color"] for line in LINES.values()} & set(HEAD_COLOURS)
    assert len({line["marker"] for line in LINES.values()}) == len(LINES)


def test_squares_have_the_area_of_their_amounts():
    drawn = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "eleven_steps.pictures.charts.saved", lambda figure: drawn.append(figure) or EMPTY
        )
        chart = draw_squares({"one": 1, "sixteen": 16}, "It grows", "{} bytes".format)
    small, large = (patch.get_width() * patch.get_height() for patch in drawn[0].axes[0].patches)
    assert (small, large) == pytest.approx((1, 16))
    assert drawn[0].axes[0].get_aspect() == 1
    assert chart.description == "Squares to scale: one: 1 bytes; sixteen: 16 bytes."


def test_growth_starts_at_zero_and_says_its_ends():
    drawn = []
    lines = {"layers": [1, 2, 3], "scores": [1, 4, 9]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "eleven_steps.pictures.charts.saved", lambda figure: drawn.append(figure) or EMPTY
        )
        chart = draw_growth([10, 20, 30], lines, "millions", "It grows")
    (axes,) = drawn[0].axes
    assert (axes.get_xlim()[0], axes.get_ylim()[0]) == (0, 0)
    assert [line.get_ydata().tolist() for line in axes.lines] == list(lines.values())
    assert chart.description == "From 10 to 30 tokens, millions: layers 1 to 3; scores 1 to 9."
    texts = re.findall("<text[^>]*>([^<]+)", draw_growth([1, 2, 3], lines, "millions", "It").svg)
    assert {"layers", "scores", "num_tokens", "millions", "It"} <= set(texts)

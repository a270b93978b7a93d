import base64
from html.parser import HTMLParser

import matplotlib
import pytest
import torch

from helpers.charts import LINES, draw_saturation, entropy, slope
from helpers.pictures import HEAD_COLOURS


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
    jacobian = torch.func.jacrev(lambda s: torch.softmax(s, dim=-1))(row)
    assert torch.allclose(slope(torch.softmax(row, dim=-1)), jacobian.diagonal())


def test_the_words_give_the_finding(chart):
    assert chart.alt.startswith("It grows. From head_dim 1 to 256: ")
    for what, measure in (
        ("entropy of the weights (bits)", entropy),
        ("gradient of a weight", slope),
    ):
        first, last = (measure(torch.softmax(scores(d), dim=-1)).mean() for d in (1, 256))
        assert f"{what} without the scale: {first:.2f} to {last:.2f}" in chart.alt
        assert f"{what} with the scale: {first:.2f} to {first:.2f}" in chart.alt
        assert f"{first:.2f}" != f"{last:.2f}"


def test_equal_numbers_give_equal_pictures_and_other_numbers_others(chart, monkeypatch):
    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30)
    assert chart == draw_saturation({d: scores(d) for d in (1, 64, 256)}, "It grows")
    assert chart.png != draw_saturation({d: scores(d, 1.1) for d in (1, 64, 256)}, "It grows").png
    assert b"Software" not in chart.png


def test_a_screen_reader_gets_the_words(chart):
    class Images(HTMLParser):
        found = {}

        def handle_starttag(self, tag, attributes):
            self.found[tag] = dict(attributes)

    bundle = chart._repr_mimebundle_()
    reader = Images()
    reader.feed(bundle["text/html"])
    assert reader.found["img"]["alt"] == chart.alt == bundle["text/plain"]
    assert base64.b64decode(bundle["image/png"]) == chart.png
    assert reader.found["img"]["src"].endswith(bundle["image/png"])


def test_the_lines_have_colours_of_the_heads_and_more_than_colour():
    assert {line["color"] for line in LINES.values()} <= set(HEAD_COLOURS)
    assert len({line["marker"] for line in LINES.values()}) == len(LINES)

"""Charts take the colours of the page, load nothing, and have no colour of a head."""

import re

import torch

from eleven_steps.pictures import HEAD_COLOURS
from eleven_steps.pictures.charts import LINES, draw_saturation


def test_a_chart_takes_the_colours_of_the_page():
    svg = draw_saturation({d: torch.linspace(-d, d, 8) for d in (1, 64)}, "It grows").svg
    assert "#010203" not in svg and "#040506" not in svg
    assert svg.count("var(--jp-content-font-color1") > 10  # its texts
    colours = {colour.lower() for colour in re.findall("#[0-9a-fA-F]{6}", svg)}
    own = {line["color"] for line in LINES.values()}
    assert colours == {"#212121", "#ffffff", "#757575", *own} and not own & {*HEAD_COLOURS}
    assert not re.search(r"(?:href|url)[=(]\"?http", svg) and "<script" not in svg
    used = set(re.findall(r'(?:url\(#|href="#)([^)"]+)', svg))
    assert used == set(re.findall(r' id="([^"]+)"', svg))
    assert len({line["marker"] for line in LINES.values()}) == len(LINES)

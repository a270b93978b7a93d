"""Pictures say what the tensors hold, the same every time, to every reader."""

# ruff: noqa: F403, F405 - what pictures are made of

import base64
import functools
import itertools
import math
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import torch
from colorspacious import cspace_convert
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from sizes import TELLING, build

from eleven_steps import sliders
from eleven_steps.beyond import checkpoints
from eleven_steps.beyond.tiny import NUM_HEADS
from eleven_steps.pictures import *
from eleven_steps.pictures.charts import LINES, draw_learning, draw_saturation
from eleven_steps.pictures.stored import hint
from eleven_steps.pictures.svg import *
from helpers.trace import trace

SVG = "{http://www.w3.org/2000/svg}"
LETTERS = "b num_tokens num_heads head_dim"


def tensor(*shape):
    """Return numbers that are all different, so that a picture cannot mix them up."""
    return (torch.arange(math.prod(shape)) + 100).view(shape).float()


def whiteboard(b=1, num_tokens=3, d_in=6, d_out=6, num_heads=2):
    return trace(*build((b, num_tokens, d_in, d_out, num_heads)))


PICTURES = {
    "tensor": lambda: draw_tensors([Shown(tensor(1, 3, 2, 3), "queries", LETTERS)], "A title"),
    "tensors": lambda: draw_tensors(
        [Shown(tensor(2, 3), "x", "num_tokens d_in")] * 2, "Twice", ["again"]
    ),
    "product": lambda: draw_product(
        Shown(tensor(3, 4), "a", "num_tokens d_in"),
        Shown(tensor(4, 2), "b", "d_in d_out"),
        Shown(tensor(3, 4) @ tensor(4, 2), "c", "num_tokens d_out"),
        row=1,
        column=1,
    ),
    "memory": lambda: draw_memory([Shown(tensor(1, 3, 2, 3), "q", LETTERS)], "Memory"),
    "map": lambda: draw_map(whiteboard()),
    "map of shades": lambda: draw_map(whiteboard(2, 7, 5, 12, 3)),
    "map of outlines": lambda: draw_map(whiteboard(1, 70, 6, 260, 10)),
    "arcs": lambda: draw_arcs(
        [Head(whiteboard()[6].tensors["weights"][0, head], head, layer=0) for head in (0, 1)],
        ["swimming", "ducks", "swimming"],
    ),
    "blocks": draw_blocks,
    "blocks named": lambda: draw_blocks({"A": "W_q, W_k, W_v", "B": "Q_h, K_h, V_h of a head"}),
    "vectors": lambda: draw_vectors(
        [Arrow("a long name", (4, 0), "strong"), Arrow("c", (1, 3), "dashed"), Arrow("", (0, 0))],
        "Some vectors",
        shares=[("swimming", 0.25), ("ducks", 0.75)],
        angle=(0, 1),
    ),
    "matrices": lambda: draw_matrices(
        {"weights": torch.eye(2), "causal": tensor(2, 2)},
        "Two",
        ["I", "you"],
        ["I", "you"],
        "weights",
    ),
    "matrices below": lambda: draw_matrices({"a": tensor(1, 2), "b": tensor(2, 2)}, "T", (), "xy"),
}
every_picture = pytest.mark.parametrize("name", PICTURES)


@functools.cache
def picture_of(name):
    return PICTURES[name]()


def root(picture):
    return ET.fromstring(picture.svg)


def texts(picture):
    return [element.text for element in root(picture).iter(f"{SVG}text")]


@every_picture
def test_a_picture_is_well_formed_and_named(name):
    picture, svg = picture_of(name), root(picture_of(name))
    assert svg.tag == f"{SVG}svg" and svg.get("role") == "img"
    assert svg.find(f"{SVG}title").text == picture.title
    assert svg.find(f"{SVG}desc").text == picture.description
    assert svg.get("aria-label") == f"{picture.title} {picture.description}"
    assert picture.title and picture.description.endswith(".")
    assert picture.title in texts(picture)
    for element in svg.iter():  # it may stand many times in a page, and it runs nothing
        assert element.tag != f"{SVG}script" and "href" not in "".join(element.attrib)
        assert not [key for key in element.attrib if key.startswith("on") or key == "id"]


@every_picture
def test_a_picture_shows_its_html_its_svg_and_its_words_which_can_be_read(name):
    picture = picture_of(name)
    bundle = picture._repr_mimebundle_()
    assert set(bundle) == {"text/html", "image/svg+xml", "text/plain"}
    assert bundle["image/svg+xml"] == picture.svg
    assert bundle["text/plain"] == picture.words == f"{picture.title} {picture.description}"
    wide = ET.fromstring(bundle["text/html"].replace("></div>", "/></div>"))
    style, image = wide
    kind, _, data = image.get("src").partition(",")
    assert image.get("alt") == picture.words and kind == "data:image/svg+xml;base64"
    assert base64.b64decode(data).decode() == picture.svg
    sizes = [float(size) for size in re.findall(r'font-size="([\d.]+)px"', picture.svg)]
    (least,) = re.findall(r"^min-width:([\d.]+)px$", image.get("style"))
    assert float(least) / picture.width * min(sizes) >= 10.99  # as small as a text ever gets
    room = 848  # a notebook's outputs in a window of 1280 px, measured in JupyterLab
    assert min(sizes) * min(1, room / picture.width) >= 11
    assert wide.get("style") == f"--least:{least}px" and style.text == hint()


@every_picture
def test_a_style_says_no_more_than_attributes_do(name):
    for element in list(root(picture_of(name)).iter())[1:]:
        for declared in filter(None, element.get("style", "").split(";")):
            named, _, value = declared.partition(":")
            bare = re.sub(r"var\(--[\w-]+, (.*?)\)(?=$|,)", r"\1", value)
            if named == "font":
                parts = [element.get(f"font-{each}") for each in ("weight", "size", "family")]
                assert bare == " ".join(filter(None, parts))
            else:
                assert element.get(named) == bare


def test_alone_a_picture_follows_light_and_dark_and_within_a_page_the_page():
    style = root(PICTURES["tensor"]()).find(f"{SVG}style").text
    assert style.startswith("@media (prefers-color-scheme:dark){svg:root{")
    used = set(re.findall(r"(--[\w-]+-color\d)", "".join((INK, GROUND, LINE))))
    assert set(re.findall(r"(--[\w-]+):", style)) == used


@functools.cache
def font_of(family, weight):
    return FT2Font(findfont(FontProperties(family=family, weight=weight)))


@functools.cache
def font_width(content, style, size):
    """Return how wide a text is in DejaVu, about the widest of the fonts that a page may have."""
    family = "DejaVu Sans" if "system-ui" in style else "DejaVu Sans Mono"
    font = font_of(family, "bold" if re.search(r"\b[67]00\b", style) else "normal")
    font.set_size(float(size), 72)
    font.set_text(content)
    return font.get_width_height()[0] / 64


@every_picture
def test_everything_stays_on_the_canvas(name):
    picture = picture_of(name)
    for x, y, size, element in placed(root(picture)):
        width = font_width(element.text, element.get("style", ""), size)
        left = x - {"start": 0, "middle": 0.5, "end": 1}[element.get("text-anchor")] * width
        assert left >= 0 and left + width <= picture.width, element.text
        assert size <= y <= picture.height, element.text


def placed(element, x=0.0, y=0.0, size=12, anchor="start"):
    """Yield every text with where it stands on the canvas, and how large."""
    if shift := element.get("transform"):
        dx, dy = (float(d) for d in shift.removeprefix("translate(").removesuffix(")").split())
        x, y = x + dx, y + dy
    anchor = element.get("text-anchor", anchor)
    if found := re.search(r"font[^;]*?(\d+)px", element.get("style", "")):
        size = int(found[1])
    if element.tag == f"{SVG}text":
        element.set("text-anchor", anchor)
        yield x + float(element.get("x")), y + float(element.get("y")), size, element
    for child in element:
        yield from placed(child, x, y, size, anchor)


def test_a_map_fits_a_screen_and_says_every_shape():
    for sizes in (
        (1, 3, 6, 6, 2),
        TELLING,
        (1, 70, 6, 260, 10),
        (1, 1, 8, 1, 1),
        (1, 40, 8, 21, 3),
    ):
        steps = whiteboard(*sizes)
        picture = draw_map(steps)
        assert picture.width == 804 and picture.height < 640 and len(picture.svg) < 300_000, sizes
        shapes = {f"{s.letters} = {tuple(next(iter(s.tensors.values())).shape)}" for s in steps}
        assert shapes <= {*texts(picture)} and all(s in picture.description for s in shapes)


def test_memory_shows_what_a_strided_tensor_reads_where_it_lies():
    sliced, expanded = tensor(2, 5, 8)[:, 1:4, ::2], tensor(2, 1, 4).expand(2, 3, 4)
    for each in (sliced, expanded, tensor(2, 4, 3).transpose(1, 2)):
        picture = draw_memory([Shown(each, "numbers", "b num_tokens d_out")], "Memory")
        read, stored = ([f"{v:.0f}" for v in t.flatten().tolist()] for t in (each, storage(each)))
        shown = [text for text in texts(picture) if text.isdigit() and int(text) >= 100]
        assert shown == [value for value in stored if value in read]
        assert f"shape {tuple(each.shape)}, stride {each.stride()}" in picture.description


def test_numbers_fit_their_cells():
    values = 0.0, -0.001, -0.27, 9.996, -99.96, 12345.6, -math.inf, math.nan, 7
    written = "0.00", "0.00", "-0.27", "10.0", "-100", "12346", "-\N{INFINITY}", "NaN", "7"
    assert tuple(number(value) for value in values) == written


def test_small_weights_are_told_as_a_sum():
    picture = draw_arcs([Head(torch.full((7, 7), 1 / 7), 0)], list("abcdefg"))
    assert '"b" attends to "a" 14 %' in picture.description.replace("\N{NO-BREAK SPACE}%", " %")


def test_odd_names_are_written_as_they_are():
    odd = '<b onload="x">&\'amp;'
    picture = draw_tensors([Shown(tensor(1, 2), odd, "num_tokens d_in")], odd)
    assert root(picture).find(f"{SVG}title").text == odd and odd in texts(picture)
    assert {e.tag for e in root(picture).iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "desc", "style", "rect", "g", "text", "path")
    }


# JupyterLab's own grounds and inks, as red, green, blue and opacity.
THEMES = {"light": ((255, 255, 255), (0, 0, 0, 0.87)), "dark": ((17, 17, 17), (255, 255, 255, 1))}
MOST = FAINT + 10 * STEP
VISIONS = [None, *(f"{kind}anomaly" for kind in ("prot", "deuter", "trit"))]


def rgb(colour):
    return np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)], dtype=float)


def blend(colour, ground, opacity):
    return opacity * np.asarray(colour, dtype=float) + (1 - opacity) * np.asarray(ground)


def luminance(colour):
    """Return the relative luminance of WCAG 2."""
    part = colour / 255
    linear = np.where(part <= 0.04045, part / 12.92, ((part + 0.055) / 1.055) ** 2.4)
    return linear @ np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("colour", [*HEAD_COLOURS, NEUTRAL])
def test_text_stands_out_from_every_ground_it_is_written_on(theme, colour):
    ground, (*ink, strength) = THEMES[theme]
    for opacity in (0, FAINT, TINT, MOST):
        under = blend(rgb(colour), ground, opacity)
        over = blend(ink, under, strength)
        light, dark = sorted([luminance(under), luminance(over)], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("vision", VISIONS)
def test_heads_differ_for_every_kind_of_colour_vision(theme, vision):
    """7 in CAM02-UCS, where about 1 can be seen side by side; no head, and no cell, count too."""
    ground = THEMES[theme][0]
    tinted = [blend(rgb(colour), ground, TINT) for colour in (*HEAD_COLOURS, NEUTRAL)]
    seen = np.array([*tinted, ground]) / 255
    if vision:
        space = {"name": "sRGB1+CVD", "cvd_type": vision, "severity": 100}
        seen = np.clip(cspace_convert(seen, space, "sRGB1"), 0, 1)
    places = cspace_convert(seen, "sRGB1", "CAM02-UCS")
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places, 2)) >= 7


def test_heads_beyond_the_colours_are_told_by_their_number():
    assert head_colour(8) == head_colour(0) and head_colour(None) == NEUTRAL
    assert len(set(HEAD_COLOURS)) == 8
    shown = Shown(tensor(1, 10, 1, 2), "queries", "b num_heads num_tokens head_dim")
    assert {"head 0", "head 8"} <= set(texts(draw_tensors([shown], "Title")))
    assert {"h0", "h8"} <= set(texts(draw_memory([shown], "Title")))


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


# What is wrong, right, or can be moved, in both themes, as look.css has it.
MEANINGS = re.compile(r"--(?:hold|wrong|right): light-dark\((#\w{6}), (#\w{6})\)")


def test_a_head_has_one_colour_in_all_pictures_and_none_that_means_something_else():
    """In arcs, maps and shades, and on the stage, by layer and head."""
    folder = Path(sliders.__file__).parent
    first = int(re.search(r"FIRST = (\d+)", (folder / "sentence.js").read_text("utf-8"))[1])
    assert first == FIRST and sliders.explore_stage().data["colours"] == HEAD_COLOURS
    even = torch.eye(2)
    for layer, many in enumerate(NUM_HEADS):
        for head in range(many):
            own = head_colour(FIRST + head if layer == 0 else head)
            drawn = [
                draw_arcs([Head(even, head, layer)], "ab"),
                draw_weights(even, "ab", head, layer),
            ]
            drawn.append(checkpoints.draw_head("Anna met Bert", layer, head))
            drawn.append(draw_learning([0, 1], [1.0, 0.5], [0.0, 1.0], (layer, head), "It forms"))
            for picture in drawn:
                assert {c for c in HEAD_COLOURS if c in picture.svg} == {own}, (layer, head)
    trained = {hue(head, layer) for layer, many in enumerate(NUM_HEADS) for head in range(many)}
    assert len(trained) == 5
    styles = (folder / "look.css").read_text("utf-8")
    meant = [rgb(colour) for pair in MEANINGS.findall(styles) for colour in pair]
    assert len(meant) == 6
    every = np.array([rgb(colour) for colour in HEAD_COLOURS] + meant) / 255
    places = cspace_convert(every, "sRGB1", "CAM02-UCS")
    for head, other in itertools.product(places[: len(HEAD_COLOURS)], places[len(HEAD_COLOURS) :]):
        assert np.linalg.norm(head - other) >= 12
    assert min(np.linalg.norm(a - b) for a, b in itertools.combinations(places[[*trained]], 2)) > 30

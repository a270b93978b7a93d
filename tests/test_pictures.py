"""Pictures say what the tensors hold, the same every time, to every reader."""

import base64
import functools
import itertools
import math
import re
import xml.etree.ElementTree as ET

import numpy as np
import pytest
import torch
from colorspacious import cspace_convert
from matplotlib.font_manager import FontProperties, findfont
from matplotlib.ft2font import FT2Font
from sizes import TELLING, build

from eleven_steps.pictures import (
    HEAD_COLOURS,
    Arrow,
    Head,
    Shown,
    draw_arcs,
    draw_blocks,
    draw_heads_over_processes,
    draw_map,
    draw_matrices,
    draw_memory,
    draw_product,
    draw_ring,
    draw_running,
    draw_tensors,
    draw_vectors,
    storage,
)
from eleven_steps.pictures.grid import grid
from eleven_steps.pictures.stored import hint
from eleven_steps.pictures.svg import (
    FAINT,
    GROUND,
    INK,
    LINE,
    NEUTRAL,
    STEP,
    TINT,
    head_colour,
    number,
)
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
    "heads over processes": lambda: draw_heads_over_processes(4, 3, 2),
    "ring": lambda: draw_ring(8, 4),
    "running": lambda: draw_running(torch.tensor([1.0, 3, 2]), tensor(3, 2), size=2, block=0),
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


@every_picture
def test_a_picture_can_stand_many_times_in_a_page_and_runs_nothing(name):
    for element in root(picture_of(name)).iter():
        assert element.tag != f"{SVG}script" and "href" not in "".join(element.attrib)
        assert "id" not in element.attrib
        assert not [key for key in element.attrib if key.startswith("on")]


@every_picture
def test_a_picture_shows_its_html_its_svg_and_its_words(name):
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
        dx, dy = map(float, shift.removeprefix("translate(").removesuffix(")").split())
        x, y = x + dx, y + dy
    anchor = element.get("text-anchor", anchor)
    if found := re.search(r"font[^;]*?(\d+)px", element.get("style", "")):
        size = int(found[1])
    if element.tag == f"{SVG}text":
        element.set("text-anchor", anchor)
        yield x + float(element.get("x")), y + float(element.get("y")), size, element
    for child in element:
        yield from placed(child, x, y, size, anchor)


def numbers_in(picture):
    return [t for t in texts(picture) if t.isdigit() and int(t) >= 100]


@pytest.mark.parametrize(
    ("letters", "shape"),
    [
        ("num_tokens d_in", (3, 4)),
        ("b num_tokens d_out", (2, 3, 4)),
        (LETTERS, (2, 2, 2, 3)),
        ("b num_heads num_tokens num_tokens", (1, 3, 2, 2)),
    ],
)
def test_a_tensor_is_drawn_number_for_number(letters, shape):
    shown = Shown(tensor(*shape), "name", letters)
    expected = [str(i + 100) for i in range(math.prod(shape))]
    assert numbers_in(draw_tensors([shown], "Title")) == expected
    strided = Shown(shown.tensor.transpose(-1, -2), "name", letters)
    drawn = [f"{value:.0f}" for value in strided.tensor.flatten().tolist()]
    assert numbers_in(draw_tensors([strided], "Title")) == drawn


def test_heads_of_keys_and_keys_of_another_text_are_named():
    few = texts(
        draw_tensors([Shown(tensor(1, 2, 3, 4), "keys", "b num_kv_heads num_tokens d_in")], "A")
    )
    assert {"head 0", "head 1", "(b, num_kv_heads, num_tokens, d_in) = (1, 2, 3, 4)"} <= set(few)
    other = texts(draw_tensors([Shown(tensor(3, 2), "weights", "num_tokens num_keys")], "A"))
    assert {"query 2", "key 1"} <= set(other) and "token 0" not in other


def test_a_map_fits_a_screen_and_writes_every_shape():
    sizes = (1, 1, 8, 1, 1), (1, 13, 8, 56, 8), (1, 40, 8, 8, 8), (1, 40, 8, 21, 3)
    for each in ((1, 3, 6, 6, 2), TELLING, (1, 70, 6, 260, 10), *sizes):
        steps = whiteboard(*each)
        picture = draw_map(steps)
        assert picture.width == 804 and picture.height < 640 and len(picture.svg) < 300_000, each
        assert not numbers_in(picture)
        for step in steps:
            shape = f"{step.letters} = {tuple(next(iter(step.tensors.values())).shape)}"
            assert shape in texts(picture) and shape in picture.description


def test_a_map_shows_every_number_that_fits_as_a_cell():
    for sizes in ((1, 3, 6, 6, 2), (1, 4, 6, 12, 1), (1, 2, 6, 4, 2)):
        steps = whiteboard(*sizes)
        cells = re.findall(r"M[\d.]+ [\d.]+h[\d.]+v[\d.]+h-", draw_map(steps).svg)
        every = sum(t[0].numel() for step in steps for t in step.tensors.values())
        boxes = 2 * sizes[-1]  # the legend's, each filled and framed
        assert len(cells) == every + boxes


def test_large_maps_need_no_numbers_and_name_the_first_and_the_last():
    with torch.device("meta"):
        picture = draw_map(whiteboard(1, 2048, 12288, 12288, 96))
        assert {str(i) for i in range(12)} <= set(texts(draw_map(whiteboard(1, 9, 768, 768, 12))))
    assert {"0", "95", "2047", "head 95", "2048 x 12288"} <= set(texts(picture))
    assert picture.height < 640 and len(picture.svg) < 100_000


RISING, FALLING = torch.tensor([1.0, 2, 0.5, 3, 2.5]), torch.tensor([3.0, 1, -torch.inf, 2, 0])


@pytest.mark.parametrize("scaled", [RISING, FALLING], ids=["rising", "falling"])
@pytest.mark.parametrize(("size", "block"), [(2, 0), (2, 1), (2, 2), (1, 3), (3, 1), (5, 0)])
def test_running_numbers_are_those_of_a_loop_over_blocks(scaled, size, block):
    values = torch.linspace(-3, 4, 10).view(5, 2)
    largest, total, context, found = torch.tensor(-torch.inf), 0.0, torch.zeros(2), []
    for s, v in list(zip(scaled.split(size), values.split(size), strict=True))[: block + 1]:
        before, largest = largest, torch.maximum(largest, s.max())
        shrink, powers = torch.exp(before - largest), torch.exp(s - largest)
        total, context = total * shrink + powers.sum(), context * shrink + powers @ v
        found.append((largest, shrink, total))
    end = min((block + 1) * size, 5)
    expected = [scaled[:end], powers, *map(torch.stack, zip(*found, strict=True))]
    expected += [context, context / total, torch.softmax(scaled, dim=0) @ values]
    labels = {f"key {i}" for i in range(5)} | {f"block {i}" for i in range(5)} | {"0", "1"}
    labels |= {"scaled scores", "powers", "largest", "shrink", "total"}
    labels |= {"context", "context / total", "all keys at once"}
    drawn = [t for t in texts(draw_running(scaled, values, size, block))[1:] if t not in labels]
    assert drawn == [number(v) for row in expected for v in row.tolist()]


STRIDED = {
    "contiguous": tensor(2, 3, 4),
    "transposed": tensor(2, 4, 3).transpose(1, 2),
    "sliced": tensor(2, 5, 8)[:, 1:4, ::2],
    "expanded": tensor(2, 1, 4).expand(2, 3, 4),
    "one number": tensor(1)[:, None, None].expand(2, 3, 4),
}


@pytest.mark.parametrize("kind", STRIDED)
def test_memory_shows_what_a_strided_tensor_reads_where_it_lies(kind):
    each = STRIDED[kind]
    shown = Shown(each, "numbers", "b num_tokens d_out")
    picture = draw_memory([shown], "Memory")
    read = {f"{value:.0f}" for value in each.flatten().tolist()}
    places = [f"{value:.0f}" for value in storage(each).tolist()]
    assert numbers_in(picture) == [value for value in places if value in read]
    assert f"shape {tuple(each.shape)}, stride {each.stride()}" in picture.description
    assert ("not contiguous" in picture.description) != each.is_contiguous()
    assert ("offset" in picture.description) == bool(each.storage_offset())
    assert ("numbers stand in" in picture.description) == (len(read) < each.numel())


@pytest.mark.parametrize(
    ("value", "written"),
    [
        (0.0, "0.00"),
        (-0.001, "0.00"),
        (-0.27, "-0.27"),
        (9.996, "10.0"),
        (-99.96, "-100"),
        (12345.6, "12346"),
        (math.inf, "\N{INFINITY}"),
        (-math.inf, "-\N{INFINITY}"),
        (math.nan, "NaN"),
        (7, "7"),
    ],
)
def test_numbers_fit_their_cells(value, written):
    assert number(value) == written and len(written) <= 5


def test_odd_names_are_written_as_they_are():
    odd = '<b onload="x">&\'amp;'
    picture = draw_tensors([Shown(tensor(1, 2), odd, "num_tokens d_in")], odd)
    assert root(picture).find(f"{SVG}title").text == odd and odd in texts(picture)
    assert {e.tag for e in root(picture).iter()} == {
        f"{SVG}{tag}" for tag in ("svg", "title", "desc", "style", "rect", "g", "text", "path")
    }


def test_columns_have_their_numbers_where_heads_have_names():
    shown = Shown(tensor(1, 2, 6), "queries", "b num_tokens d_out", num_heads=2)
    above = texts(draw_tensors([shown], "A"))
    for name in ("h0", "h1", *"012345"):
        assert above.count(name) == 1


def test_a_number_keeps_the_colour_of_its_owner():
    owners = torch.tensor([[0, 0, 1], [1, 1, 0]])
    shown = Shown(tensor(2, 3), "queries", "num_heads head_dim", owners=owners)
    assert [[shown.head((i, j)) for j in range(3)] for i in range(2)] == owners.tolist()
    drawn = draw_tensors([shown], "A").svg
    for head, runs in ((0, 3), (1, 3)):
        (boxes,) = re.findall(f'<g fill="{HEAD_COLOURS[head]}".*?<path d="(.*?)"', drawn)
        assert boxes.count("M") == runs


def test_a_column_and_what_it_makes_stand_in_one_line():
    left, right = torch.ones(3, 6, dtype=torch.int64), torch.ones(6, 4, dtype=torch.int64)
    product = Shown(left @ right, "queries", "num_tokens d_out")
    shown = Shown(left, "x", "num_tokens d_in"), Shown(right, "W_query", "d_in d_out")
    svg = draw_product(*shown, product, row=1, column=2).svg
    groups = re.findall(r'translate\((\S+) \d+\)">(?:<g [^>]*>)*<text[^>]*>(?:W_q|que)', svg)
    frames = re.findall(r'<path d="M([\d.]+) [^"]*" fill="none" stroke-width="3"', svg)
    column, made = (float(x) + float(frame) for x, frame in zip(groups, frames[1:], strict=True))
    assert column == pytest.approx(made)
    assert "Row 1 of x meets column 2 of W_query: 6<" in svg  # a whole number has no decimals


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


def test_shades_are_deeper_where_no_number_is_written_on_them():
    deepest = {
        written: max(
            float(found)
            for found in re.findall(
                r'fill-opacity="([\d.]+)"', grid([[0, 1]], shades=[[0, 1]], written=written).body
            )
        )
        for written in (True, False)
    }
    assert deepest == pytest.approx({True: MOST, False: FAINT + 20 * STEP})


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


@every_picture
def test_text_is_at_least_11_px_in_a_window_of_1280(name):
    picture = picture_of(name)
    styles = "".join(element.get("style", "") for element in root(picture).iter())
    sizes = [float(size) for size in re.findall(r"font[^;]*?(\d+)px", styles)]
    room = 848  # a notebook's outputs in such a window, measured in JupyterLab
    assert min(sizes) * min(1, room / picture.width) >= 11


def test_heads_over_processes_say_who_holds_what():
    drawn = draw_heads_over_processes(num_heads=6, head_dim=2, num_processes=3)
    assert "data-lay" not in drawn.svg, "its arrows would end where nothing is"
    assert "process 2 heads 4 and 5" in drawn.description
    # Each head's number stands once in three rows of weights, in its context and its columns.
    for head in range(6):
        assert texts(drawn).count(str(head)) == 5


def test_a_ring_brings_every_block_to_every_process():
    drawn = texts(draw_ring(num_tokens=6, num_processes=3))
    # By turns; in brackets what lies in the future of the process.
    turns = ["0 to 1", "2 to 3", "4 to 5", "(4 to 5)", "0 to 1", "2 to 3"]
    turns += ["(2 to 3)", "(4 to 5)", "0 to 1"]
    assert sorted(each for each in drawn if " to " in each) == sorted(turns)

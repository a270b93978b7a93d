"""Every kind of picture in every viewer of notebooks: seen, legible, with words beside it."""

import io
import re

import nbformat
import pytest
import torch
from lab_page import make_dark, open_7, open_notebook, put
from look import see
from matplotlib.image import imread
from nbconvert import HTMLExporter
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect
from renew import METADATA, VIEW
from traitlets.config import Config
from waits import soon

from eleven_steps import pictures, sliders
from eleven_steps.pictures import Shown
from eleven_steps.pictures.charts import draw_saturation
from helpers.trace import trace

SVG = "image/svg+xml"
GROUNDS = {"light": 1.0, "dark": 0x11 / 255}
PROBE = '<svg id="probe" width="9" height="9"></svg>'  # what a viewer that cleans HTML takes out


def bundles():
    """Return what a notebook stores of each kind of picture, of a chart and of what moves."""
    mha, _ = sliders.run()
    steps = trace(mha, sliders.tokens())
    queries = Shown(steps[3].tensors["queries"], "queries", "b num_heads num_tokens head_dim")
    x, keys = (
        Shown(steps[i].tensors[n][0], n, "num_tokens d_in") for i, n in ((0, "x"), (1, "keys"))
    )
    weights = steps[6].tensors["weights"][0]
    square = Shown(mha.W_key.weight.detach().T, "W_key", "d_in d_out")
    drawn = [
        pictures.draw_tensors([queries], "Queries"),  # first: all of it is in sight
        pictures.draw_map(steps),
        pictures.draw_memory([queries], "In memory"),
        pictures.draw_product(x, square, keys, row=1, column=1),
        pictures.draw_weights(weights[0], ["a", "dog", "runs"], head=0),
        pictures.draw_blocks(),
        pictures.draw_vectors([pictures.Arrow("key", (3, 1), "strong")], "A vector"),
        draw_saturation({d: torch.linspace(-d, d, 8) for d in (1, 4, 16)}, "Steep"),
        sliders.explore_blocks(),
        sliders.explore_stage("mask"),
        pictures.draw_arcs([pictures.Head(weights[0], 0)], ["a", "dog", "runs"]),
        sliders.explore_lever(torch.tensor([4.0, -2.4, 8.0, 0.8])),
    ]
    return [one._repr_mimebundle_() for one in drawn]


@pytest.fixture(scope="module")
def gallery():
    """Return a notebook that stores every kind of picture, and a probe for cleaners of HTML."""
    cells = [new_code_cell(outputs=[new_output("display_data", {"text/html": PROBE})])]
    for bundle in bundles():
        stored = {kind: data for kind, data in bundle.items() if kind != VIEW}
        cells.append(new_code_cell(outputs=[new_output("display_data", stored)]))
    return new_notebook(cells=cells, metadata=METADATA)


@pytest.fixture(scope="module")
def served(tmp_path_factory, lab, folder, gallery):
    """The address of a server with a trusted and an untrusted copy of the gallery."""
    trusted = tmp_path_factory.mktemp("ours") / "trusted.ipynb"
    nbformat.write(gallery, trusted)
    put(folder, trusted)
    other = new_notebook(cells=[new_markdown_cell("another"), *gallery.cells], metadata=METADATA)
    nbformat.write(other, folder / "untrusted.ipynb")
    return lab


PAGES = [11, 12]  # of the bundles, what answers by style alone, where styles are not dropped

# Images may be decoded late: all are there only then.
DECODED = "async images => { for (const image of images) await image.decode(); }"


def check_seen(page, gallery, where=".jp-OutputArea-output"):
    """Find each picture of the gallery as an image, and return the images."""
    wanted = [cell.outputs[0].data["text/plain"].splitlines()[0] for cell in gallery.cells[1:]]
    images = page.locator(f"{where} img:visible")
    alive = page.locator(f"{where} .page:visible").count()  # in place of their images
    expect(images).to_have_count(len(wanted) - alive)
    images.evaluate_all(DECODED)
    seen = [picture["label"] for picture in see(page, where)]
    # The map stands a second time, as an image.
    gone = [wanted[k] for k in PAGES[:alive] if wanted.count(wanted[k]) == 1]
    assert [label for label in wanted if label not in seen] == gone
    text = page.locator("body").inner_text()
    assert not re.search(r"base64|<img|&lt;|Error displaying|model not found", text)
    return images


def check_ground(image, scheme):
    """Find the corner of an image painted in the ground of light or dark."""

    def check():
        corner = imread(io.BytesIO(image.screenshot()))[-2, 1, :3]
        assert corner == pytest.approx([GROUNDS[scheme]] * 3, abs=0.02)

    soon(check)


@pytest.mark.parametrize(
    ("opens", "trust"),
    [
        pytest.param(open_notebook, "trusted", id="JupyterLab"),
        pytest.param(open_7, "untrusted", id="Notebook 7, untrusted"),
        pytest.param(open_notebook, "untrusted", id="untrusted", marks=pytest.mark.nightly),
        pytest.param(open_7, "trusted", id="Notebook 7", marks=pytest.mark.nightly),
    ],
)
def test_jupyter(served, gallery, page, opens, trust):
    opens(page, served, f"{trust}.ipynb")
    for theme, elsewhere in ("dark", "light"), ("light", "dark"):
        page.emulate_media(color_scheme=elsewhere)  # the theme decides, not the machine
        make_dark(page, theme == "dark")
        check_ground(check_seen(page, gallery).first, theme)
        expect(page.locator("p:visible", has_text="Run the cell to move it.")).to_have_count(3)
    expect(page.locator("#probe")).to_have_count(int(trust == "trusted"))


def test_nbconvert(gallery, page, tmp_path):
    for scheme in open_converted(page, tmp_path, gallery, HTMLExporter()):
        check_ground(check_seen(page, gallery).first, scheme)
    expect(page.locator("#probe")).to_have_count(1)


def test_nbconvert_that_cleans(gallery, page, tmp_path):
    # It takes every <img> out of HTML and Markdown, so it has to be told to begin with pictures.
    first = Config({"NbConvertBase": {"display_data_priority": [SVG, "image/png", "text/html"]}})
    exporter = HTMLExporter(sanitize_html=True, config=first)
    for scheme in open_converted(page, tmp_path, gallery, exporter):
        images = page.locator(".jp-OutputArea-output img:visible")
        expect(images).to_have_count(len(gallery.cells) - 1)
        check_ground(images.first, scheme)
    expect(page.locator("#probe")).to_have_count(0)


def open_converted(page, folder, notebook, exporter):
    """Open a notebook as an HTML page of nbconvert, offline: MathJax and RequireJS are missing.

    Yields each scheme once the page is in it.
    """
    html, _ = exporter.from_notebook_node(notebook)
    (folder / "page.html").write_text(html)
    page.context.set_offline(True)
    page.goto((folder / "page.html").as_uri(), wait_until="domcontentloaded")
    for scheme in GROUNDS:
        page.emulate_media(color_scheme=scheme)
        yield scheme

"""The course in a browser, as make lite writes it: it opens, shows the stage, keeps progress.

torch is a stand-in that computes nothing, so what the cells compute is not tried here.
"""

import functools
import http.server
import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from lab_page import write
from stand_ins import write_wheels
from waits import LONG, soon, visit

from eleven_steps.sliders import explore_stage

pytestmark = pytest.mark.nightly  # it builds the site from npm and pip
ROOT = Path(__file__).parents[2]
PYTHON = Path(f"{sys.prefix}-lite", "bin", "python")
IMPORTS = """
import sys, time
start = time.time()
import eleven_steps.pictures, eleven_steps.sliders, eleven_steps.checks
import helpers.trace, eleven_steps.helpers.trace
print("found", sys.platform, helpers.trace is eleven_steps.helpers.trace)
"""
STAGE = """
import json, anywidget, traitlets
state = json.loads({state!r})
own = {{"_esm": state.pop("_esm"), "_css": state.pop("_css")}}
Stage = type("Stage", (anywidget.AnyWidget,), own | {{"data": traitlets.Dict().tag(sync=True)}})
Stage(data=state["data"])
"""
PROGRESS = """
import os
from eleven_steps.checks import progress
before = progress.read(progress.file())
progress.record("shape.1")
print("done before:", before, "now:", progress.read(progress.file()), "in", progress.file())
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the address of the site with one notebook more, and every other host it is asked."""
    if not PYTHON.exists():
        pytest.skip("make nightly makes the environment that builds the site")
    folder = tmp_path_factory.mktemp("lite")
    write_wheels(folder)
    command = [PYTHON, ROOT / "tools" / "lite.py", *folder.glob("*.whl")]
    subprocess.run([*command, "--to", folder / "site"], check=True)
    state = explore_stage("softmax", "both").get_state(["_esm", "_css", "data"])
    cells = [IMPORTS, STAGE.format(state=json.dumps(state)), PROGRESS]
    write(folder / "site" / "files" / "tried.ipynb", cells)
    listing = folder / "site" / "api" / "contents" / "all.json"
    content = json.loads(listing.read_text("utf-8"))
    one = next(each for each in content["content"] if each["type"] == "notebook")
    content["content"].append(one | {"name": "tried.ipynb", "path": "tried.ipynb"})
    listing.write_text(json.dumps(content), encoding="utf-8")
    handler = functools.partial(Quiet, directory=folder / "site")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *about):
        pass


def open_and_run(page, address):
    """Open the notebook, run all its cells, and return what they print once the last has."""
    page.goto(f"{address}/lab/index.html?path=tried.ipynb")
    page.locator(".jp-Notebook .jp-CodeCell").first.wait_for(timeout=1000 * LONG)
    page.locator("text=| Idle").wait_for(timeout=1000 * LONG)
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()

    def printed():
        text = "\n".join(page.locator(".jp-OutputArea-output").all_inner_texts())
        assert "done before:" in text or "Error" in text, text
        return text

    return soon(printed, seconds=LONG)


def test_it_opens_shows_the_stage_keeps_progress_and_asks_no_other_host(chromium, site, tmp_path):
    page, asked = visit(chromium), []
    page.on("request", lambda request: asked.append(request.url))
    first = open_and_run(page, site)
    assert "found emscripten True" in first
    assert "done before: [] now: ['shape.1'] in /drive/progress.json" in first
    page.get_by_role("button", name="Play").first.wait_for()
    page.screenshot(path=tmp_path / "stage.png")
    page.reload()
    assert "done before: ['shape.1']" in open_and_run(page, site)
    page.screenshot(path=tmp_path / "after.png")
    assert [url for url in asked if not url.startswith((site, "blob:", "data:"))] == []
    page.context.close()

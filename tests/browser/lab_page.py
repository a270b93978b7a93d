"""JupyterLab in headless Chromium: start it, open a notebook, run it, move its sliders."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import nbformat
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page, expect
from renew import COURSE, METADATA
from waits import LONG, settle, soon, turn, until

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = list(COURSE.values())
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
SETTINGS = {
    # Every cell stays in the page, so that a test can look at all of them.
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
    "@jupyterlab/apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
}


@contextmanager
def jupyterlab(folder: Path, notebooks: Iterable[Path]):
    """Serve trusted copies of notebooks from folder; yield the address."""
    home = folder / ".jupyter"
    environment = os.environ | {
        "JUPYTER_CONFIG_DIR": str(home / "config"),
        "JUPYTER_CONFIG_PATH": str(ROOT / "tools" / "jupyterlab"),  # as tools/lab.py does
        "JUPYTER_DATA_DIR": str(home / "data"),
        "JUPYTERLAB_SETTINGS_DIR": str(home / "settings"),
        "JUPYTERLAB_WORKSPACES_DIR": str(home / "workspaces"),
    }
    for plugin, values in SETTINGS.items():
        path = home / "settings" / f"{plugin}.jupyterlab-settings"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(values))
    (home / "data").mkdir(parents=True)
    for notebook in notebooks:
        put(folder, notebook)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    options = ["--no-browser", "--allow-root", "--IdentityProvider.token=", f"--port={port}"]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options, f"--ServerApp.root_dir={folder}"],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: responds(address + "/api"), "JupyterLab did not start", LONG)
        yield address
    finally:
        server.terminate()
        server.wait()


def put(folder: Path, notebook: Path) -> str:
    """Put a trusted copy of a notebook into a folder that is served; return its name."""
    copy = Path(shutil.copy(notebook, folder))
    with NotebookNotary(data_dir=str(folder / ".jupyter" / "data")) as notary:
        notary.sign(nbformat.read(copy, as_version=nbformat.NO_CONVERT))
    return copy.name


def write(path: Path, sources: Iterable[str]) -> Path:
    """Write a notebook of code cells."""
    cells = [new_code_cell(source) for source in sources]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), path)
    return path


def responds(address: str) -> bool:
    """Say whether a server answers at address."""
    try:
        return urlopen(address).status == 200
    except OSError:
        return False


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open a notebook in JupyterLab and wait until its cells stand and its kernel is there."""
    page.goto(f"{address}/lab/tree/{name}?reset")  # forget what was open before
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.locator("text=Python 3 (ipykernel) | Idle").wait_for()


def open_7(page: Page, address: str, name: str) -> None:
    """Open a notebook in Notebook 7 and wait until its cells stand and its kernel is there."""
    page.goto(f"{address}/notebooks/{name}")
    page.locator(".jp-Notebook .jp-Cell").first.wait_for()
    page.locator(".jp-KernelName", has_text="Python 3 (ipykernel)").wait_for()
    page.locator(".jp-NotebookKernelStatus-fade").wait_for(state="attached")  # it is idle


def run_all(page: Page) -> None:
    """Run all cells and wait for the last, and until what they show stands still."""
    # Not those of text, nor those of cells that are folded: they get no number.
    prompts = page.locator(".jp-CodeCell .jp-InputPrompt:not(.jp-Placeholder-prompt)")
    # A number may be left from an earlier run: what stands there anew is this run's.
    prompts.evaluate_all("all => all.forEach(each => { each.textContent = '[ ]:'; })")
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    # A cell whose turn has not come may stand there as if nobody had asked for it: [ ].
    waiting = prompts.filter(has_text=re.compile(r"\[[ *]\]"))
    until(lambda: not waiting.count(), "not all cells ran", LONG)
    settle(page)


def unfold(page: Page) -> None:
    """Unfold every heading under which a notebook's depth is folded."""
    lines = page.locator(".jp-showHiddenCellsButton")
    while lines.count():
        lines.first.click()
    settle(page)


def close(page: Page) -> None:
    """Shut down the kernel of the notebook that a page shows, so that memory stays free."""
    page.evaluate(
        """async () => {
            const name = decodeURIComponent(location.pathname.split('/').at(-1));
            for (const {path, kernel} of await (await fetch('/api/sessions')).json())
                if (path === name)
                    await fetch('/api/kernels/' + kernel.id, {method: 'DELETE', headers:
                        {'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)?.[1] ?? ''}});
        }"""
    )


def check_no_commands(page: Page, part) -> None:
    """Find letters that are typed in a part of a picture to be no commands to the notebook."""
    cells = page.locator(".jp-Cell").count()
    for key in "ddbx":  # two of them delete a cell, elsewhere
        part.press(key)
    turn(page)
    assert page.locator(".jp-Cell").count() == cells


def fold_files(page: Page) -> None:
    """Close JupyterLab's list of files, which takes room."""
    page.keyboard.press("Control+b")
    expect(page.locator("#jp-left-stack")).to_be_hidden()
    settle(page)


def make_dark(page: Page, dark: bool = True) -> None:
    """Choose JupyterLab's dark theme, or its light one."""
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text(f"JupyterLab {'Dark' if dark else 'Light'}", exact=True).click()
    expect(page.locator("body")).to_have_attribute("data-jp-theme-light", str(not dark).lower())
    page.wait_for_function(GROUND, arg="rgb(17, 17, 17)" if dark else "rgb(255, 255, 255)")
    settle(page)


# Whether the theme's own style is there: the name of a theme may be written before it.
GROUND = """wanted => {
  const probe = document.body.appendChild(document.createElement('i'));
  probe.style.color = 'var(--jp-layout-color0)';
  const colour = getComputedStyle(probe).color;
  probe.remove();
  return colour === wanted;
}"""

# The values beside a film's sliders, and which of the drawings it should have is the one in sight.
SHOWN = """(film, drawn) => ({
  position: [...film.querySelectorAll('output')].map(e => e.textContent),
  pictures: [...film.querySelectorAll('svg[role=img]')].filter(e => e.checkVisibility())
    .map(e => drawn.indexOf(e.outerHTML)),
})"""
# Drawings as a page writes them.
WRITTEN = """svgs => svgs.map(svg => {
  const holder = document.createElement('div');
  holder.innerHTML = svg;
  return holder.innerHTML;
})"""


def check_film(place, film) -> None:
    """Move a film's sliders by keyboard through all positions; find the own picture at each.

    Args:
        place: locator of the film's box.
        film: the Film, made here.
    """
    drawn = place.page.evaluate_handle(WRITTEN, [each.svg for each in film.pictures.values()])
    positions = [tuple(map(str, position)) for position in film.pictures]
    handles = place.locator("input[type=range]")

    def check(start):
        shown = place.evaluate(SHOWN, drawn)
        position = tuple(shown["position"])
        assert position in positions and position[: len(start)] == start, position
        assert shown["pictures"] == [positions.index(position)], f"no own picture at {position}"

    def walk(start, depth):
        if len(start) == len(film.names):
            return
        values = list(dict.fromkeys(p[len(start)] for p in positions if p[: len(start)] == start))
        if len(values) == 1:
            expect(handles.nth(depth)).to_be_disabled()
            return walk((*start, *values), depth + 1)
        handles.nth(depth).press("Home")
        for step, value in enumerate(values):
            if step:
                handles.nth(depth).press("ArrowRight")
            soon(check, (*start, value))
            walk((*start, value), depth + 1)
            spoken = handles.nth(depth).get_attribute("aria-valuetext")
            assert spoken == str(value), f"{spoken} is read aloud at {value}"
        assert float(handles.nth(depth).get_attribute("max")) == len(values) - 1

    handles.first.wait_for()  # a film's box stands before what is in it
    walk((), 0)

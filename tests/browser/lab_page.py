"""JupyterLab in headless Chromium: start it, open a notebook, run it, move its sliders."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

import nbformat
from nbformat.sign import NotebookNotary
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import Page
from renew import METADATA

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
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
    copies = [Path(shutil.copy(notebook, folder)) for notebook in notebooks]
    (home / "data").mkdir(parents=True)
    with NotebookNotary(data_dir=str(home / "data")) as notary:
        for copy in copies:
            notary.sign(nbformat.read(copy, as_version=nbformat.NO_CONVERT))
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
        until(lambda: responds(address + "/api"), 60, "JupyterLab did not start")
        yield address
    finally:
        server.terminate()
        server.wait()


@contextmanager
def serving(folder: Path, name: str, sources: Iterable[str]):
    """Serve a notebook of code cells, written into folder; yield the address."""
    cells = [new_code_cell(source) for source in sources]
    nbformat.write(new_notebook(cells=cells, metadata=METADATA), folder / name)
    served = folder / "served"
    served.mkdir()
    with jupyterlab(served, [folder / name]) as address:
        yield address


def responds(address: str) -> bool:
    """Say whether a server answers at address."""
    try:
        return urlopen(address).status == 200
    except OSError:
        return False


def until(condition, seconds: float, complaint: str) -> None:
    """Wait until condition() is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"{complaint} within {seconds:g} s")
        time.sleep(0.1)


def open_notebook(page: Page, address: str, name: str) -> None:
    """Open a notebook in JupyterLab and wait until its cells stand."""
    page.goto(f"{address}/lab/tree/{name}?reset")  # forget what was open before
    page.wait_for_selector(".jp-Notebook .jp-Cell", timeout=60_000)
    page.wait_for_selector("text=Python 3 (ipykernel) | Idle", timeout=60_000)


def run_all(page: Page) -> None:
    """Run all cells and wait for the last."""
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.get_by_text("Run All Cells", exact=True).click()
    # A cell whose turn has not come may stand there as if nobody had asked for it: [ ].
    waiting = page.locator(".jp-InputPrompt", has_text=re.compile(r"\[[ *]\]"))
    waiting.first.wait_for(state="attached")
    until(lambda: not waiting.count(), 120, "not all cells ran")


def close(page: Page) -> None:
    """Shut the notebook's kernel down, so that memory stays free."""
    page.evaluate(
        """async () => {
            const base = '/api/kernels';
            for (const kernel of await (await fetch(base)).json())
                await fetch(base + '/' + kernel.id, {method: 'DELETE',
                    headers: {'X-XSRFToken': document.cookie.match(/_xsrf=([^;]*)/)?.[1] ?? ''}});
        }"""
    )


def make_dark(page: Page, dark: bool = True) -> None:
    """Choose JupyterLab's dark theme, or its light one."""
    page.get_by_role("menuitem", name="Settings", exact=True).click()
    page.get_by_text("Theme", exact=True).hover()
    page.get_by_text(f"JupyterLab {'Dark' if dark else 'Light'}", exact=True).click()
    chosen = f"body[data-jp-theme-light={str(not dark).lower()}]"
    page.wait_for_selector(chosen, state="attached")
    page.wait_for_timeout(300)


SHOWN = """film => ({
  // A slider with one value is shown as a label, "head: 0".
  position: [...film.querySelectorAll('.widget-readout, div.widget-label')]
    .filter(e => e.checkVisibility()).map(e => e.textContent.split(': ').at(-1)),
  pictures: [...film.querySelectorAll('svg[role=img]')].filter(e => e.checkVisibility())
    .map(e => e.outerHTML),
})"""


def walk(film, depth: int = 0):
    """Move a film's sliders by keyboard through all positions; yield what the page shows at each.

    Args:
        film: locator of the film's box.
    """
    handles = film.locator("[role=slider]:visible")
    if not depth:
        handles.first.wait_for()  # a film's box stands before what is in it
    if depth == handles.count():
        yield film.evaluate(SHOWN)
        return
    handle = handles.nth(depth)
    handle.press("Home")
    for step in range(int(float(handle.get_attribute("aria-valuemax"))) + 1):
        if step:
            handle.press("ArrowRight")
        yield from walk(film, depth + 1)

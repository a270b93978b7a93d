"""A picture that answers in a page of its own, without a kernel."""

import json
from pathlib import Path

from playwright.sync_api import Locator, Page

PAGE = """<!doctype html><html lang="en"><title>A page</title>
<style>:root {{ color-scheme: light dark; }} {css}</style>
<main><h1>A page</h1><h2>A part</h2><h3>Another</h3><div id="place"></div></main>
<script type="module">{js}
const data = window.data = {data}, el = document.querySelector("#place");
{begin}</script></html>"""
BEGIN = "render({ model: { get: () => data }, el });"


def write(folder: Path, widget, begin: str = BEGIN) -> str:
    """Write the page of a widget that has one trait, data; return its address."""
    js, data = widget._esm.replace("export default", "void"), json.dumps(dict(widget.data))
    path = folder / "page.html"
    path.write_text(PAGE.format(css=widget._css, js=js, data=data, begin=begin), "utf-8")
    return path.as_uri()


def visit(page: Page, address: str) -> Locator:
    """Open such a page and return its place; page.faults collects what its script raises."""
    page.faults = []
    page.on("pageerror", lambda fault: page.faults.append(fault))
    page.goto(address)
    return page.locator("#place")

"""Ask axe-core what it finds wrong in a page, by all of its rules."""

from pathlib import Path

from playwright.sync_api import Page
from waits import soon

SCRIPT = (Path(__file__).parent / "axe.min.js").read_text()


def ask_axe(page: Page, where: str | None = None, rules: list[str] | None = None) -> dict:
    """Return axe's findings of a part of the page, or of all of it."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SCRIPT)
    return page.evaluate(
        "([where, rules]) => axe.run(where ? {include: [[where]]} : document,"
        " {preload: false, ...(rules ? {runOnly: rules} : {})})",  # nothing is fetched
        [where, rules],
    )


def check_axe(page: Page, where: str | None = None) -> None:
    """Find nothing wrong in a part of the page, or in all of it."""

    def check():
        found = ask_axe(page, where)
        assert [(p["id"], node["html"]) for p in found["violations"] for node in p["nodes"]] == []
        assert found["passes"], f"there is nothing in {where}"

    soon(check)

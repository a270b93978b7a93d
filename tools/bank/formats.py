"""Write questions as Moodle XML, as packages of QTI 2.1, which Canvas imports, and as web pages."""

import re
import zipfile
from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path
from typing import Any

from bank import WRITTEN, Option, Question, read
from jinja2 import DictLoader, Environment, StrictUndefined
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


def body(text: str) -> str:
    """Return a question's text as HTML: paragraphs, and indented blocks unchanged."""
    return "".join(
        f"<pre>{escape(re.sub('(?m)^    ', '', block), quote=False)}</pre>"
        if block.startswith("    ")
        else f"<p>{inline(block)}</p>"
        for block in text.split("\n\n")
    )


def inline(text: str) -> str:
    """Return prose as HTML, with text in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def shown(option: Option, question: Question) -> str:
    """Return an option as HTML: prose, an unchanged table or lines of code, or a result."""
    if question.kind in WRITTEN:
        return inline(option.text)
    tag = "pre" if "\n" in option.text else "code"
    return f"<{tag}>{escape(option.text, quote=False)}</{tag}>"


TEMPLATES = Environment(
    loader=DictLoader(read("templates.toml")),
    undefined=StrictUndefined,
    trim_blocks=True,
    keep_trailing_newline=True,
)
TEMPLATES.filters |= {"body": body, "inline": inline, "shown": shown, "e": escape}


def written(template: str, **about: Any) -> str:
    return TEMPLATES.get_template(template).render(about)


def by_kind(questions: Iterable[Question]) -> list[tuple[str, list[Question]]]:
    return [(kind, [*some]) for kind, some in groupby(questions, lambda question: question.kind)]


def moodle(questions: Iterable[Question], top: str) -> str:
    """Return questions as Moodle XML, with a category for each kind."""
    return written("moodle", kinds=by_kind(questions), top=top)


def package(path: Path, questions: list[Question], title: str) -> None:
    """Write a zip of QTI 2.1 with a test, which draws one variant of each kind."""
    files = {"test.xml": written("test", kinds=by_kind(questions), title=title)}
    files["imsmanifest.xml"] = written("manifest", questions=questions)
    for question in questions:
        files[f"items/{question.name}.xml"] = written("item", question=question)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            whole = zipfile.ZipInfo(name)  # has no time, so the same seed writes the same bytes
            archive.writestr(whole, content, zipfile.ZIP_DEFLATED)


# Web pages: the tests for paper with their key, and the page of the site


def sheet(title: str, questions: Iterable[Question]) -> str:
    return written("paper", title=title, questions=questions, answers=())


def key(title: str, tests: dict[str, list[Question]]) -> str:
    """Return the key of some tests: right letters, what a question reveals, and all feedback."""
    answers = []
    for both in zip(*tests.values(), strict=True):
        asked = [*zip(tests, both, strict=True)]
        right = ", ".join(f"{test} {'ABCD'[question.right]}" for test, question in asked)
        feedback: dict[str, list[str]] = {}
        for test, question in asked:
            for place, option in enumerate(question.options):
                if place != question.right:
                    feedback.setdefault(option.why, []).append(f"{test} {'ABCD'[place]}")
        answers.append((right, both[0].tells, feedback))
    return written("paper", title=title, questions=(), answers=answers)


def questions_page(steps: dict[str, list[list[Question]]]) -> NotebookNode:
    """Return the site's page of questions, by heading, with the variants of each kind."""
    places = " · ".join(f"[{each}](#{each.replace(' ', '-')})" for each in steps)
    cells = [new_markdown_cell(f"{written('page')}\n\n{places}")]
    for heading, kinds in steps.items():
        html = "".join(written("asked", variants=variants) for variants in kinds)
        cells += [new_markdown_cell(f"## {heading}"), html_cell(html, heading)]
    script = html_cell('<script src="assets/questions.js"></script>', "")
    return new_notebook(cells=[*cells, script])


def html_cell(html: str, words: str) -> NotebookNode:
    data = {"text/html": html, "text/plain": words}
    return new_code_cell(outputs=[new_output("display_data", data)])

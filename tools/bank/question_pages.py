"""Questions as web pages: the tests for paper with their key, and the page of the site."""

from collections.abc import Iterable
from html import escape

from bank import Question
from formats import TEMPLATES, body, each_option, inline, shown
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


def sheet(title: str, questions: Iterable[Question]) -> str:
    """Return a test for paper."""
    content = "\n".join(
        f"<section><h2>{number}</h2>{body(question.text)}<ol>"
        + "".join(f"<li>{shown(question, option)}</li>" for option in question.options)
        + "</ol></section>"
        for number, question in enumerate(questions, start=1)
    )
    return TEMPLATES["paper"].format(title=escape(title), content=content)


def key(title: str, tests: dict[str, list[Question]]) -> str:
    """Return what is right in tests of equal kinds, what each question tells, and each option."""
    content = []
    for number, both in enumerate(zip(*tests.values(), strict=True), start=1):
        right = ", ".join(
            f"{test} {'ABCD'[question.right]}" for test, question in zip(tests, both, strict=True)
        )
        places: dict[str, list[str]] = {}
        for test, question in zip(tests, both, strict=True):
            for place, option in enumerate(question.options):
                if place != question.right:
                    places.setdefault(option.why, []).append(f"{test} {'ABCD'[place]}")
        said = "".join(f"<li>{', '.join(at)}: {inline(why)}</li>" for why, at in places.items())
        content.append(
            f"<section><h2>{number}: {right}</h2><p>{both[0].tells}</p><ul>{said}</ul></section>"
        )
    return TEMPLATES["paper"].format(title=escape(title), content="\n".join(content))


def questions_page(steps: dict[str, list[list[Question]]]) -> NotebookNode:
    """Return the page of the site on which one answers, as a notebook.

    Args:
        steps: by heading, for each kind its variants.
    """
    cells = [new_markdown_cell(TEMPLATES["page"])]
    for heading, kinds in steps.items():
        html = "".join(map(asked, kinds))
        cells += [new_markdown_cell(f"## {heading}"), html_cell(html, heading)]
    script = html_cell('<script src="assets/questions.js"></script>', "")
    return new_notebook(cells=[*cells, script])


def html_cell(html: str, words: str) -> NotebookNode:
    data = {"text/html": html, "text/plain": words}
    return new_code_cell(outputs=[new_output("display_data", data)])


def asked(variants: list[Question]) -> str:
    """Return one kind as HTML: all its variants, of which the script shows one."""
    fieldsets = (
        TEMPLATES["fieldset"].format(
            name=question.name, body=body(question.text), **each_option(question, "radio")
        )
        for question in variants
    )
    other = TEMPLATES["other"] if len(variants) > 1 else ""
    return TEMPLATES["asked"].format(variants="".join(fieldsets), other=other)

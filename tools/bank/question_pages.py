"""Questions as web pages: the tests for paper with their key, and the page of the site."""

from collections.abc import Iterable

from bank import Question
from formats import written
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output


def sheet(title: str, questions: Iterable[Question]) -> str:
    """Return a test for paper."""
    return written("paper", title=title, questions=questions, answers=())


def key(title: str, tests: dict[str, list[Question]]) -> str:
    """Return what is right in tests of equal kinds, what each question tells, and each option."""
    answers = []
    for both in zip(*tests.values(), strict=True):
        asked = [*zip(tests, both, strict=True)]
        right = ", ".join(f"{test} {'ABCD'[question.right]}" for test, question in asked)
        said: dict[str, list[str]] = {}
        for test, question in asked:
            for place, option in enumerate(question.options):
                if place != question.right:
                    said.setdefault(option.why, []).append(f"{test} {'ABCD'[place]}")
        answers.append((right, both[0].tells, said))
    return written("paper", title=title, questions=(), answers=answers)


def questions_page(steps: dict[str, list[list[Question]]]) -> NotebookNode:
    """Return the page of the site on which one answers, as a notebook.

    Args:
        steps: by heading, for each kind its variants.
    """
    cells = [new_markdown_cell(written("page"))]
    for heading, kinds in steps.items():
        html = "".join(written("asked", variants=variants) for variants in kinds)
        cells += [new_markdown_cell(f"## {heading}"), html_cell(html, heading)]
    script = html_cell('<script src="assets/questions.js"></script>', "")
    return new_notebook(cells=[*cells, script])


def html_cell(html: str, words: str) -> NotebookNode:
    data = {"text/html": html, "text/plain": words}
    return new_code_cell(outputs=[new_output("display_data", data)])

"""Write questions as Moodle XML and as packages of QTI 2.1, which Canvas imports."""

import re
import zipfile
from collections.abc import Iterable
from html import escape
from itertools import groupby
from pathlib import Path

from bank import WRITTEN, Option, Question, read

TEMPLATES: dict[str, str] = read("templates.toml")


def body(text: str) -> str:
    """Return a question's text as HTML: paragraphs, and indented blocks as they stand."""
    return "".join(
        f"<pre>{escape(re.sub('(?m)^    ', '', block), quote=False)}</pre>"
        if block.startswith("    ")
        else f"<p>{inline(block)}</p>"
        for block in text.split("\n\n")
    )


def inline(text: str) -> str:
    """Return prose as HTML: what stands in backticks is code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text, quote=False))


def shown(question: Question, option: Option) -> str:
    """Return an option as HTML: prose, a table or lines of code as they stand, or a result."""
    if question.kind in WRITTEN:
        return inline(option.text)
    tag = "pre" if "\n" in option.text else "code"
    return f"<{tag}>{escape(option.text, quote=False)}</{tag}>"


def each_option(question: Question, *templates: str) -> dict[str, str]:
    """Return templates filled in for all options, one after the other."""
    filled = dict.fromkeys(templates, "")
    for place, option in enumerate(question.options):
        score = int(place == question.right)
        about = {"letter": "ABCD"[place], "score": score, "points": 100 * score}
        about |= {"text": shown(question, option), "why": inline(option.why)}
        for name in templates:
            filled[name] += TEMPLATES[name].format(name=question.name, **about)
    return filled


def moodle(questions: Iterable[Question], top: str) -> str:
    """Return questions as Moodle XML, a category for each kind, from which a quiz draws one."""
    parts = []
    for kind, variants in groupby(questions, key=lambda question: question.kind):
        about = {"step": kind.partition(".")[0], "kind": kind, "top": escape(top)}
        parts.append(TEMPLATES["category"].format(**about))
        for question in variants:
            about = {"name": question.name, "body": body(question.text)}
            about |= each_option(question, "answer")
            parts.append(TEMPLATES["multichoice"].format(**about))
    return TEMPLATES["moodle"].format(questions="\n".join(parts))


def package(path: Path, questions: list[Question], title: str) -> None:
    """Write a zip of QTI 2.1 with a test, which draws one variant of each kind."""
    every = {
        name: [TEMPLATES[name].format(name=question.name) for question in questions]
        for name in ("need", "resource")
    }
    sections = []
    for kind, variants in groupby(questions, key=lambda question: question.kind):
        refs = "".join(TEMPLATES["ref"].format(name=question.name) for question in variants)
        sections.append(TEMPLATES["section"].format(kind=kind, refs=refs))
    files = {"test.xml": {"sections": "".join(sections), "title": escape(title)}}
    needs, resources = "".join(every["need"]), "\n".join(every["resource"])
    files["imsmanifest.xml"] = {"needs": needs, "resources": resources}
    for question in questions:
        about = {"name": question.name, "right": "ABCD"[question.right]}
        about |= {"body": body(question.text)} | each_option(question, "choice", "rule", "said")
        files[f"items/{question.name}.xml"] = about
    spaces = {name: TEMPLATES[name] for name in ("qti", "package")}
    with zipfile.ZipFile(path, "w") as archive:
        for name, about in files.items():
            kind = {"imsmanifest.xml": "manifest", "test.xml": "test"}.get(name, "item")
            whole = zipfile.ZipInfo(name)  # no time of writing: the same seed, the same file
            content = TEMPLATES[kind].format(**spaces, **about)
            archive.writestr(whole, content, zipfile.ZIP_DEFLATED)

"""The glossary: short, in order; each term is linked where it is first used, and only there."""

import functools
import re

import pytest
import renew

GLOSSARY = renew.NOTEBOOKS / "glossary.md"
TEXT = GLOSSARY.read_text("utf-8")
ENTRIES = dict(re.findall(r"^## (.+)\n\n(.+)\n", TEXT, re.MULTILINE))
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*glossary\.md#([^)]*)\)")
# Nobody reads a sentence in code, a formula, a table, a heading, or a link that leads elsewhere.
NO_SENTENCE = re.compile(
    r"^```.*?^```|`[^`\n]*`|\$\$.+?\$\$|\$[^$\n]+\$|^[#|].*?$|<[^>]+>"
    r"|\[[^\]]*\]\((?!(?:\.\./)*glossary\.md#)[^)]*\)",
    re.MULTILINE | re.DOTALL,
)


@functools.cache
def proses():
    """The prose of each notebook."""
    return {
        name: "\n\n".join(
            NO_SENTENCE.sub(" ", cell.source)
            for cell in renew.read(path).cells
            if cell.cell_type == "markdown"
        )
        for name, path in renew.COURSE.items()
    }


@functools.cache
def untargeted():
    """The prose without the links' targets: they hold the terms as well, and are no use of them."""
    return {
        name: re.sub(r"\]\([^)]*\)", lambda target: " " * len(target[0]), prose)
        for name, prose in proses().items()
    }


def anchor(term):
    """Return the anchor of a heading: the same on a page, in JupyterLab and in a repository, as
    long as no letter is large."""
    return term.replace(" ", "-")


def forms(term):
    """Return a pattern for a term and its plural."""
    stem = term.removesuffix("y").removesuffix("is")
    return re.compile(rf"(?<![\w-]){stem}(y|ys|ies|is|s|es)?(?![\w-])", re.IGNORECASE)


def test_it_has_at_most_forty_terms_in_order_with_a_notebook_each():
    assert 0 < len(ENTRIES) <= 40
    assert list(ENTRIES) == sorted(ENTRIES) == re.findall("^## (.+)", TEXT, re.MULTILINE)
    for term, said in ENTRIES.items():
        assert re.fullmatch("[a-z -]+", term)
        sentences, made = re.fullmatch(r"(.+\.) \[[^\]]+\]\((\S+)\)", said).groups()
        assert len(re.findall(r"\.(?= |$)", sentences)) <= 2, term
        assert (renew.NOTEBOOKS / made).exists()


@pytest.mark.parametrize("term", ENTRIES)
def test_a_term_is_linked_where_it_is_first_used(term):
    links = [
        (name, link.start(1))
        for name, prose in proses().items()
        for link in LINK.finditer(prose)
        if link[2] == anchor(term)
    ]
    first = next(
        (name, use.start())
        for name, prose in untargeted().items()
        for use in forms(term).finditer(prose)
    )
    assert links == [first]


def test_every_link_has_an_entry():
    linked = {link[2] for prose in proses().values() for link in LINK.finditer(prose)}
    assert linked == {anchor(term) for term in ENTRIES}

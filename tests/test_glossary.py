"""The glossary: short and in order; each term is linked once from the lessons, and only terms."""

import re

import renew

GLOSSARY = renew.NOTEBOOKS / "glossary.md"
TEXT = GLOSSARY.read_text("utf-8")
ENTRIES = dict(re.findall(r"^## (.+)\n\n(.+)\n", TEXT, re.MULTILINE))
LINK = re.compile(r"\[([^\]]+)\]\((?:\.\./)*glossary\.md#([^)]*)\)")


def test_it_has_at_most_forty_terms_in_order_with_a_notebook_each():
    assert 0 < len(ENTRIES) <= 40
    assert list(ENTRIES) == sorted(ENTRIES) == re.findall("^## (.+)", TEXT, re.MULTILINE)
    for term, said in ENTRIES.items():
        assert re.fullmatch("[a-z -]+", term)
        sentences, made = re.fullmatch(r"(.+\.) \[[^\]]+\]\((\S+)\)", said).groups()
        assert len(re.findall(r"\.(?= |$)", sentences)) <= 2, term
        assert (renew.NOTEBOOKS / made).exists()


def test_each_term_is_linked_once_and_no_link_leads_nowhere():
    cells = (cell for path in renew.COURSE.values() for cell in renew.read(path).cells)
    prose = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    links = [anchor for _, anchor in LINK.findall(prose)]
    assert sorted(links) == sorted(term.replace(" ", "-") for term in ENTRIES)

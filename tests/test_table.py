"""A table says in text and in HTML the same, and what it was given."""

import re
from html import escape

from helpers.table import show_table


def test_html_and_text_hold_the_same_and_the_html_escapes():
    table = show_table({"a < b": [1.5, 2.5], "what": ["<b>", "&"]})
    assert re.sub(r"<[^>]+>", " ", table.html).split() == escape(str(table)).split()
    assert table.html.count('scope="col"') == 2
    assert table._repr_mimebundle_() == {"text/html": table.html, "text/plain": str(table)}

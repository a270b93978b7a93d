"""Python to read: in the page's own colours, the eleven steps numbered in the margin."""

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

RECORD = re.compile(r"^ *record\(.*\)\n", re.MULTILINE)
LISTENER = re.compile(r", record: [^=]+ = record_nothing")
EXPLAINED = re.compile(r"^ +record: called(?:\n|.)*?(?=\n\n)", re.MULTILINE)
STEP = re.compile(r'(\s*<span class="c1"># )(\d+) (\w+)(</span>)$')
MARGIN = "display:inline-block;width:2.4em;user-select:none"
BADGE = (
    "display:inline-block;min-width:1.5em;border-radius:.75em;text-align:center;font-weight:700;"
    "text-decoration:none;"
    "background:var(--jp-content-font-color1,#212121);color:var(--jp-layout-color0,#ffffff)"
)
# JupyterLab's comments are too faint in both of its themes, its numbers in the light one.
COLOURS = (
    "--jp-mirror-editor-comment-color:"
    "color-mix(in srgb,#408080,var(--jp-content-font-color1,#212121) 25%);"
    "--jp-mirror-editor-number-color:var(--jp-mirror-editor-keyword-color)"
)


@dataclass(frozen=True)
class Source:
    """Hold source code, ready for a notebook to show."""

    code: str  # Python, from the left margin

    @property
    def html(self) -> str:
        """Return the code in colours, numbered by step where it has steps."""
        lines = coloured(self.code)
        numbered = any(map(STEP.match, lines))
        body = "\n".join(map(in_margin, lines)) if numbered else "\n".join(lines)
        style = f"margin:0;overflow-x:auto;white-space:pre;line-height:1.5;{COLOURS}"
        # The class is the one that Jupyter colours code by, in its own light or dark.
        return f'<div class="highlight"><pre style="{style}" tabindex="0">{body}</pre></div>'

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.code}


def draw_source(*parts: Callable | str) -> Source:
    """Show the source of functions, or code as it is, one below the other.

    What a class tells the trace after each step is left out: it is no part of attention.

    Raises:
        TypeError: a part is neither a string nor has source code.
    """
    return Source("\n\n".join(part if isinstance(part, str) else read(part) for part in parts))


def read(function: Callable) -> str:
    """Return a function's source from the left margin, without what it records."""
    code = inspect.cleandoc("\n" + inspect.getsource(function))
    plain = RECORD.sub("", code)
    if not re.search(r"\brecord\b", EXPLAINED.sub("", LISTENER.sub("", plain))):
        plain = EXPLAINED.sub("", LISTENER.sub("", plain))
        plain = plain.replace("(\n    self, x: torch.Tensor\n)", "(self, x: torch.Tensor)")
    return re.sub(r"\n\s*\n\s*\n", "\n\n", plain).strip()


def coloured(code: str) -> list[str]:
    """Return the lines of some Python as HTML, each whole in itself."""
    return highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)).splitlines()


def in_margin(line: str) -> str:
    """Indent a line by the margin; where a step begins, its number leads to the step's notebook."""
    number, name, line = step_in(line)
    link = f'href="{number:02}_{name}.ipynb" aria-label="step {number}, {name}"'
    badge = f'<a {link} style="{BADGE}">{number}</a>' if number else ""
    return f'<span style="{MARGIN}">{badge}</span>{line}'


def step_in(line: str) -> tuple[int, str, str]:
    """Return number and name of the step that begins with a line, and the line without its number.

    Where none begins, the number is 0.
    """
    found = STEP.match(line)
    if not found:
        return 0, "", line
    before, number, name, after = found.groups()
    return int(number), name, f"{before}{name}{after}"

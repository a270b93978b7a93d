"""Write into docs/design.md a drawing of which room imports which.

Usage: python tools/draw_imports.py
A room is a folder; checks/asking is one of its own.
"""

import argparse
import ast
import re
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "design.md"
DRAWING = re.compile(r"```mermaid\n.*?```", re.DOTALL)
# From top to bottom: an arrow may only point down.
ORDER = ["checks", "asking", "sliders", "beyond", "pictures", "helpers"]


def room(module: str) -> str:
    """Return the room of a module: "pictures" for eleven_steps.pictures.svg."""
    rooms = [name for name in module.split(".") if name in ORDER]
    return "asking" if "asking" in rooms else rooms[0] if rooms else ""


def drawing() -> str:
    """Return the rooms and their arrows, for Mermaid."""
    arrows = defaultdict(set)
    for path in (ROOT / "eleven_steps").rglob("*.py"):
        here = room(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module.startswith("eleven_steps"):
                arrows[here] |= {room(f"{node.module}.{alias.name}") for alias in node.names}
    lines = [
        f"  {name} --> {' & '.join(others)}"
        for name in ORDER
        if (others := [other for other in ORDER if other in arrows[name] - {name}])
    ]
    return "\n".join(["```mermaid", "graph TD", *lines, "```"])


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    text = PAGE.read_text("utf-8")
    PAGE.write_text(DRAWING.sub(drawing(), text), encoding="utf-8")


if __name__ == "__main__":
    main()

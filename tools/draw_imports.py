"""Draw which room imports which, as docs/imports.svg.

Usage: python tools/draw_imports.py
A room is a folder; of the checks it is one of their folders. The arrows are read from the code.
"""

import argparse
import ast
from collections.abc import Iterable, Iterator
from pathlib import Path

from eleven_steps.pictures import Picture

ROOT = Path(__file__).resolve().parents[1]
DRAWING = ROOT / "docs" / "imports.svg"
PACKAGES = "helpers", "eleven_steps"

# From top to bottom: an arrow may only point down.
ROOMS = (
    "checks",
    "judge",
    "progress",
    "adapt",
    "know",
    "run",
    "sliders",
    "beyond",
    "pictures",
    "helpers",
)
LEFT = {"checks", "progress", "sliders"}  # their arrows run on the left, so that few cross

WIDTH, BOX_WIDTH, BOX_HEIGHT, PITCH, TOP = 600, 110, 28, 46, 40
INK = "var(--jp-content-font-color1, #212121)"
LINE = "var(--jp-border-color0, #757575)"
TIP = (
    '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" '
    f'orient="auto"><path d="M0 0L8 4L0 8z" style="fill:{LINE}"/></marker></defs>'
)
ARROW = f'fill="none" style="stroke:{LINE}" marker-end="url(#tip)"'


def name_of(path: Path) -> str:
    """Return the dotted name that a file is imported by."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return plain(".".join(parts[:-1] if parts[-1] == "__init__" else parts))


def plain(name: str) -> str:
    """Return the name that notebooks import by: the library has helpers inside itself."""
    return name.replace("eleven_steps.helpers", "helpers", 1)


def imported(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what import statements among nodes name: "torch", "helpers.trace.STEPS"."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (plain(alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (plain(f"{node.module}.{alias.name}") for alias in node.names)


def modules() -> dict[str, set[str]]:
    """Return every module of ours with the modules of ours that it imports, anywhere."""
    paths = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    files = {name_of(path): path for path in paths}
    found = {}
    for module, path in files.items():
        names = imported(ast.walk(ast.parse(path.read_text("utf-8"))))
        ours = {name for name in names if name.split(".")[0] in PACKAGES}
        found[module] = {name if name in files else name.rpartition(".")[0] for name in ours}
    return found


def room(module: str) -> str:
    """Return the room of a module: "pictures" for eleven_steps.pictures.svg."""
    package, *rest = module.split(".")
    if package == "helpers" or not rest:
        return package
    inside = rest[0] == "checks" and rest[1:] not in ([], ["__main__"])
    return rest[1] if inside else rest[0]


def arrows(graph: dict[str, set[str]]) -> list[tuple[str, str]]:
    """Return the imports between rooms as (who imports, who is imported), from top to bottom."""
    found = {
        (room(module), room(other))
        for module, others in graph.items()
        for other in others
        if room(module) != room(other)
    }
    return sorted(found, key=lambda arrow: tuple(map(ROOMS.index, arrow)))


def draw(graph: dict[str, set[str]]) -> Picture:
    """Draw the rooms in a column and an arrow for each import between two of them."""
    found = arrows(graph)
    middle = WIDTH / 2
    body = TIP
    for place, name in enumerate(ROOMS):
        y = TOP + PITCH * place
        body += (
            f'<rect x="{middle - BOX_WIDTH / 2:g}" y="{y}" width="{BOX_WIDTH}" '
            f'height="{BOX_HEIGHT}" rx="4" fill="none" style="stroke:{INK}"/>'
            f'<text x="{middle:g}" y="{y + 18}" text-anchor="middle">{name}</text>'
        )
    for importer, other in found:
        start, end = ROOMS.index(importer), ROOMS.index(other)
        side = -1 if importer in LEFT else 1
        # Each arrow leaves and arrives a little beside its neighbours.
        x = middle + side * BOX_WIDTH / 2
        shift = 20 * (end - start) / len(ROOMS)
        first, last = TOP + PITCH * start + 24 - shift, TOP + PITCH * end + 4 + shift
        bend = x + side * (18 + 24 * (end - start))
        curve = f"M{x:g} {first:.1f}C{bend:g} {first:.1f} {bend:g} {last:.1f} {x:g} {last:.1f}"
        body += f'<path d="{curve}" {ARROW}/>'
    by_room = {name: [other for one, other in found if one == name] for name in ROOMS}
    words = [f"{name} imports {', '.join(others)}" for name, others in by_room.items() if others]
    alone = [name for name, others in by_room.items() if not others]
    return Picture(
        body,
        WIDTH,
        TOP + PITCH * len(ROOMS),
        "Imports between the rooms point down",
        f"From top to bottom: {'; '.join(words)}; {', '.join(alone)} import none.",
    )


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    DRAWING.write_text(draw(modules()).svg + "\n", encoding="utf-8", newline="\n")
    print(DRAWING)


if __name__ == "__main__":
    main()

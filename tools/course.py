"""The notebooks of the course, for all tools: it loads nothing."""

from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
# All of them by name, in the order they are read: the walk, then what goes past it.
COURSE = {
    path.stem: path
    for pattern in ("*.ipynb", "beyond/*.ipynb")
    for path in sorted(NOTEBOOKS.glob(pattern))
}

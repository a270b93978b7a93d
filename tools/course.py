"""List the notebooks of the course, for all tools, without importing the library."""

from pathlib import Path

NOTEBOOKS = Path(__file__).resolve().parents[1] / "notebooks"
# All notebooks by name, in reading order: 00 to 13, then those of beyond/.
COURSE = {
    path.stem: path
    for pattern in ("*.ipynb", "beyond/*.ipynb")
    for path in sorted(NOTEBOOKS.glob(pattern))
}

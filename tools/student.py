"""Write copies of the notebooks without their solutions to student/.

Usage: python tools/student.py [NOTEBOOK ...]
"""

import argparse
import shutil
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from renew import COURSE, NOTEBOOKS, normal_form, read

STUDENT = NOTEBOOKS.parent / "student"


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    copy = nbformat.from_dict(notebook)
    copy.cells = [cell for cell in copy.cells if "solution" not in cell.metadata.get("tags", [])]
    return copy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", type=Path, help="all of notebooks/ unless named")
    for path in parser.parse_args().notebooks or COURSE.values():
        if path.resolve() not in {known.resolve() for known in COURSE.values()}:
            parser.error(f"{path} is no notebook of the course")
        copy = STUDENT / path.resolve().relative_to(NOTEBOOKS)
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(normal_form(without_solutions(read(path))), encoding="utf-8", newline="\n")
        print(copy)
    shutil.copy(NOTEBOOKS / "glossary.md", STUDENT)


if __name__ == "__main__":
    main()

"""Turn the grader's results into the tables that Canvas and Moodle import.

Usage: python tools/grade/gradebook.py results.json --canvas canvas.csv --moodle moodle.csv

One row a student, one column a notebook of the course: the points of its exercises that are right.
Students are known by the names of what they handed in, which must be their logins there: Canvas
reads them as SIS Login ID, Moodle as username. Canvas wants a row of points possible besides.
"""

import argparse
import csv
import json
from pathlib import Path

from assignment import points, with_exercises
from grade import harmless, replacing
from handed_in import IDENTIFIER
from renew import COURSE

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
POSSIBLE = "    Points Possible"  # as Canvas writes it, blanks and all


def notebooks_of() -> dict[str, str]:
    """Return the course's notebook of each exercise, without its ending."""
    found = {}
    for name, notebook in with_exercises(COURSE.values()).items():
        for cell in notebook.cells:
            if cell.cell_type == "code":
                found |= dict.fromkeys(IDENTIFIER.findall(cell.source), Path(name).stem)
    return found


def totals(content: dict) -> tuple[dict[str, int], dict[str, dict[str, int]]]:
    """Add up points: possible by notebook, and reached by student and notebook.

    Args:
        content: what the grader wrote, its exercises and its results.
    """
    place = notebooks_of()
    possible: dict[str, int] = {}
    for name in content["exercises"]:
        possible[place[name]] = possible.get(place[name], 0) + points(name)
    reached: dict[str, dict[str, int]] = {}
    for result in content["results"]:
        row = reached.setdefault(result["student"], dict.fromkeys(possible, 0))
        row[place[result["exercise"]]] += points(result["exercise"]) * result["passed"]
    return possible, reached


def write_canvas(path: Path, possible: dict, reached: dict) -> None:
    """Write a table that Canvas imports; what stands in ID it fills in itself."""
    with replacing(path) as file:
        table = csv.writer(file)
        table.writerow([*CANVAS, *possible])
        table.writerow([POSSIBLE, *[""] * (len(CANVAS) - 1), *possible.values()])
        for student, row in reached.items():
            name = harmless(student)
            table.writerow([name, "", "", name, "", *row.values()])


def write_moodle(path: Path, possible: dict, reached: dict) -> None:
    """Write a table that Moodle imports."""
    with replacing(path) as file:
        table = csv.writer(file)
        table.writerow(["username", *possible])
        table.writerows([harmless(student), *row.values()] for student, row in reached.items())


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="what tools/grade/grade.py wrote with --json")
    parser.add_argument("--canvas", type=Path, help="where to write Canvas's table")
    parser.add_argument("--moodle", type=Path, help="where to write Moodle's table")
    options = parser.parse_args(arguments)
    if not (options.canvas or options.moodle):
        parser.error("say where to: --canvas FILE, --moodle FILE, or both")
    possible, reached = totals(json.loads(options.results.read_text("utf-8")))
    if options.canvas:
        write_canvas(options.canvas, possible, reached)
    if options.moodle:
        write_moodle(options.moodle, possible, reached)
    print(f"{len(reached)} students, {len(possible)} notebooks")


if __name__ == "__main__":
    main()

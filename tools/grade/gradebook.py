"""Turn the grader's results into the tables that Canvas and Moodle import.

Usage: python tools/grade/gradebook.py results.json --canvas canvas.csv --moodle moodle.csv

The tables have a row for each student and a column for each notebook, with the points of its
exercises (for Moodle in percent), or no grade if the notebook was not handed in. Canvas reads the
login as SIS Login ID and the number as ID, and Moodle the login as username: see --roster of the
grader. Canvas also needs a row of possible points. Moodle refuses a table with a name that it does
not know, so students without a login are left out of its table and printed.
"""

import argparse
import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from grade import harmless, replacing
from results import possible

from eleven_steps.checks.asking.failures import visible

CANVAS = ["Student", "ID", "SIS User ID", "SIS Login ID", "Section"]
POSSIBLE = "    Points Possible"  # as Canvas writes it, blanks and all
NO_GRADE = "-"  # to Moodle, which makes an empty cell of a new item 0


def totals(content: dict) -> tuple[dict[str, int], dict[str, dict[str, int | str]]]:
    """Add up points: possible by notebook, and reached by student and notebook.

    Of a notebook that was not handed in there is "", not 0.
    """
    place = content["exercises"]
    most: dict[str, int] = {}
    for name in place:
        most[place[name]] = most.get(place[name], 0) + possible(name)
    reached: dict[str, dict[str, int | str]] = {}
    for result in content["results"]:
        row = reached.setdefault(result["student"], dict.fromkeys(most, ""))
        if result["kind"] != "missing":
            column = place[result["exercise"]]
            row[column] = (row[column] or 0) + result["points"]
    return most, reached


def canvas_rows(most: dict, reached: dict, people: dict) -> Iterator[list]:
    """Yield a table that Canvas imports; Canvas fills in an empty ID itself."""
    yield [*CANVAS, *most]
    yield [POSSIBLE, *[""] * (len(CANVAS) - 1), *most.values()]
    for student, row in reached.items():
        person = people.get(student, {})
        who = person.get("name") or student, person.get("number", ""), ""
        login = person.get("login", student)
        yield [*map(harmless, (*who, login)), "", *row.values()]


def moodle_rows(most: dict, reached: dict, people: dict) -> Iterator[list]:
    """Yield a table that Moodle imports: in percent, since its new items have a maximum of 100."""
    yield ["username", *most]
    for student, row in reached.items():
        if login := people.get(student, {}).get("login", student):
            yield [harmless(login), *(percent(row[name], most[name]) for name in most)]
        else:
            print(f"without a login, so not in Moodle's table: {visible(student)}", file=sys.stderr)


def percent(reached: int | str, most: int) -> float | str:
    """Return points as a share from 0 to 100, or the mark for no grade."""
    return NO_GRADE if reached == "" else round(100 * reached / most, 2)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, help="what tools/grade/grade.py wrote with --json")
    parser.add_argument("--canvas", type=Path, help="where to write Canvas's table")
    parser.add_argument("--moodle", type=Path, help="where to write Moodle's table")
    options = parser.parse_args(arguments)
    if not (options.canvas or options.moodle):
        parser.error("say where to: --canvas FILE, --moodle FILE, or both")
    content = json.loads(options.results.read_text("utf-8"))
    most, reached = totals(content)
    tables = (options.canvas, canvas_rows), (options.moodle, moodle_rows)
    for path, rows in tables:
        if path:
            with replacing(path) as file:
                csv.writer(file).writerows(rows(most, reached, content["students"]))
    print(f"{len(reached)} students, {len(most)} notebooks")


if __name__ == "__main__":
    main()

"""Write a bank of questions whose wrong options are real mistakes, and two tests of twelve.

Usage: make questions, or: python tools/bank/write_bank.py [--seed 0] [--variants 10]

moodle.xml has a category for each kind. qti/ has a zip for each step, which Canvas imports as a
quiz that draws one variant of each kind. pre-test and post-test ask the same kinds of questions
with wrong options from the same mistakes, but with different numbers. Each test is written for
Moodle, for Canvas and for paper, and key.html has the answers to both. The same seed gives the same
files.
"""

import argparse
from itertools import groupby
from pathlib import Path

from bank import KINDS, WRITTEN, Question, make
from formats import key, moodle, package, sheet

from helpers.trace import STEPS

ROOT = Path(__file__).parents[2]
TOP = "Eleven Steps"
MOST = 900  # variants of a kind; the two seeds after them belong to the tests
TESTS = {"pre-test": MOST, "post-test": MOST + 1}
ORDER = {step: place for place, step in enumerate((*STEPS, "class"))}


def names() -> list[str]:
    """Return all kinds and all questions of understanding, in the order of the steps."""
    return sorted([*KINDS, *WRITTEN], key=lambda name: ORDER[step_of(name)])


def step_of(name: str) -> str:
    return name.partition(".")[0]


def bank(seed: int, variants: int) -> list[Question]:
    first = seed * (MOST + len(TESTS))
    return [
        make(name, first + number)
        for name in names()
        for number in range(variants if name in KINDS else 1)
    ]


def by_step(variants: int = 3) -> dict[str, list[list[Question]]]:
    """Return the questions of the site's page: for each heading, the variants of each kind."""
    found: dict[str, list[list[Question]]] = {}
    for name, some in groupby(bank(0, variants), key=lambda question: question.kind):
        step = step_of(name)
        heading = f"{ORDER[step] + 1} {step}" if step in STEPS else "The class"
        found.setdefault(heading, []).append([*some])
    return found


def tests(seed: int) -> dict[str, list[Question]]:
    """Return the pre-test and the post-test, which ask the kinds whose answers reveal a mistake."""
    first = seed * (MOST + len(TESTS))
    asked = [name for name in names() if name in KINDS and KINDS[name].tells]
    return {
        test: [make(name, first + place, slips=first) for name in asked]
        for test, place in TESTS.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="seed of all numbers (%(default)s)")
    parser.add_argument(
        "--variants", type=int, default=10, help="number of variants of each kind (%(default)s)"
    )
    parser.add_argument("--to", type=Path, default=ROOT / "questions", metavar="FOLDER")
    options = parser.parse_args()
    if not 1 <= options.variants <= MOST:
        parser.error(f"--variants is {options.variants}: 1 to {MOST} are expected")
    if options.seed < 0:
        parser.error(f"--seed is {options.seed}: 0 or more is expected")
    (options.to / "qti").mkdir(parents=True, exist_ok=True)
    every = bank(options.seed, options.variants)
    (options.to / "moodle.xml").write_text(moodle(every, TOP), "utf-8")
    for step, of_step in groupby(every, key=lambda question: step_of(question.kind)):
        name = f"{ORDER[step] + 1:02}_{step}"
        package(options.to / "qti" / f"{name}.zip", [*of_step], f"{TOP}: {step}")
    both = tests(options.seed)
    for test, asked in both.items():
        title, file = f"{TOP}, {test}", options.to / test
        file.with_suffix(".xml").write_text(moodle(asked, title), "utf-8")
        file.with_suffix(".html").write_text(sheet(title, asked), "utf-8")
        package(file.with_suffix(".zip"), asked, title)
    (options.to / "key.html").write_text(key(f"{TOP}, key", both), "utf-8")
    print(f"{len(every)} questions of {len(names())} kinds, and two tests: {options.to}")


if __name__ == "__main__":
    main()

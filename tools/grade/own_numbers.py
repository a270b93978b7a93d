"""Make exercises with different numbers for each student, and the cells that ask for them.

The seed follows from the name of the assignment and the login, so a grader needs no list of seeds.
"""

import functools
from collections.abc import Iterable
from zlib import crc32

from eleven_steps.checks import check

# Code that finds the seed where nbgrader runs a test, which is in the folder LOGIN/NAME.
FOUND = """import zlib
from pathlib import Path

seed = zlib.crc32(f"{Path.cwd().name}/{Path.cwd().parent.name}".encode())
"""


def own(name: str, login: str, exercises: Iterable[str]) -> dict[str, str]:
    """Return the student's own exercise for each exercise that can have other numbers."""
    seed = crc32(f"{name}/{login}".encode())
    return {exercise: f"{exercise}.{seed}" for exercise in exercises if is_drawn(exercise)}


@functools.cache
def is_drawn(exercise: str) -> bool:
    return check(f"{exercise}.1", record=False).kind != "unknown"


def found_there(exercise: str, source: str) -> str:
    """Return a test's source with lines before it that work out the seed from the folder's name."""
    return FOUND + source.replace(f'check("{exercise}"', f'check(f"{exercise}.{{seed}}"')


def for_one(exercise: str, asks: str, source: str) -> str:
    """Return a cell's source with the student's own exercise in it, and no search for the seed."""
    for call in f'check("{exercise}"', f'check(f"{exercise}.{{seed}}"':
        source = source.replace(call, f'check("{asks}"')
    return source.replace(FOUND, "") if asks in source else source


def cells_of(asks: str, name: str) -> tuple[str, str]:
    """Return code that shows the given numbers, and code that asks for an answer with all parts."""
    problem = check(asks, record=False)
    sizes = "print(dict(problem.sizes))\n" if problem.sizes else ""
    shown = f'problem = check("{asks}")\n{sizes}draw_matrices(problem.given, "Given: your numbers")'
    first, *parts = problem.solution
    lines = [f'    "{first}": ...,  # yours', *(f'    "{part}": ...,' for part in parts)]
    return shown, "\n".join([f"{name} = {{", *lines, "}", f'check("{asks}", {name})'])

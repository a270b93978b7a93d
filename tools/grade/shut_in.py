"""Run a submitted notebook in the sandbox: python -m shut_in, in the copied course.

The cells run in order, in this process. The process that started it, the judge, sends questions
about each answer through a pipe. The answer runs here, and the results go back through a second
pipe. Each message is a line of JSON. This process sends:

    {"ready": true}                    all imports are done, and it waits for the job
    {"cell": 3}                        cell 3 begins
    {"cell": 3, "error": "..."}        cell 3 raised; {"cell": 3, "late": true} if it took too long
    {"exercise": "scores.1"}           check was called, and questions may be sent
    {"reply": {...}}, {"late": true}   the result of a question, or that it took too long;
                                       {"reply": {"wants": ...}} asks the judge for something first
    {"end": true}                      all cells have run

It receives the job first (see run), then for each exercise any number of {"question": {...}},
and then {"next": true}. This process does not know which answers are right.

When everything is judged, a second process may run the cells again to find the line of a mistake.
That process has a copy of the whole course. The judge asks it nothing and takes no verdict from
it:

    {"place": "scores.1", "line": 2}   the place that the course's own check reports, see Placer
"""

import argparse
import ast
import builtins
import contextlib
import json
import os
import resource
import sys
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock

import torch
from IPython.core.interactiveshell import InteractiveShell
from served import reply
from traitlets.config import Config
from wire import PLACE

from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import TimeUp, attempt, clock_paused, isolated, timed

COLLECT = "__collect__"
CHECKS = "eleven_steps.checks"
LARGEST_FILE = 50_000_000  # bytes
MOST_FILES, MOST_TASKS = 256, 400  # open at a time; processes and threads at a time


@dataclass(frozen=True)
class HandedIn:
    """Replace a verdict while a notebook is graded, and reveal nothing."""

    given: dict[str, torch.Tensor] = field(default_factory=dict)  # as in a Verdict
    sizes: dict[str, int] = field(default_factory=dict)
    solution: dict[str, torch.Tensor] = field(default_factory=dict)
    kind: str = "right"
    message: str = "handed in."
    passed: bool = True

    def __str__(self) -> str:
        return self.message


def hold_back(module: ModuleType) -> None:
    """Replace the checks: check collects answers, and any other name is a mock."""

    def lookup(name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(builtins, COLLECT) if name == "check" else MagicMock()

    module.__getattr__ = lookup


class Channel:
    """Communicate with the judge through two pipes, the former standard input and output."""

    def __init__(self) -> None:
        self.hears, self.tells = os.fdopen(os.dup(0), "rb"), os.dup(1)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(nowhere, standard)

    def tell(self, **fact: Any) -> None:
        left = memoryview(json.dumps(fact).encode() + b"\n")
        while left:
            left = left[os.write(self.tells, left) :]

    def hear(self) -> dict:
        """Read one message; end this process if the pipe is closed."""
        line = self.hears.readline()
        if not line:
            os._exit(1)
        return json.loads(line)


class Rename(ast.NodeTransformer):
    """Rename every check("scores.1", ...) in a cell's source, so that it always collects."""

    def visit_Call(self, node: ast.Call) -> ast.Call:
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        first = getattr(node.args[0], "value", None) if node.args else None
        if name == "check" and isinstance(first, str):
            node.func = ast.copy_location(ast.Name(COLLECT, ast.Load()), node.func)
        return node


class Collector:
    """Replace check: let the judge ask the answer, and judge nothing."""

    def __init__(self, channel: Channel, seconds: float, skipped: list[str]):
        self.channel, self.skipped = channel, skipped
        self.seconds = seconds  # of one answer, all questions together
        self.asking = False

    def __call__(self, identifier: Any = None, answer: Any = None, record: bool = True) -> HandedIn:
        """Collect the answer that check gets; ignore calls from within an answer."""
        if type(identifier) is not str or not record or self.asking or identifier in self.skipped:
            return HandedIn()
        self.asking = True
        try:
            with clock_paused():  # questions do not use up the time of the cell
                return self.be_asked(identifier[:100], answer)
        finally:
            self.asking = False

    def be_asked(self, identifier: str, answer: Any) -> HandedIn:
        """Answer questions about the answer until the judge is done; return the problem's data."""
        self.channel.tell(exercise=identifier)
        left = self.seconds
        while "question" in (heard := self.channel.hear()):
            try:
                with isolated(max(left, 0.01)) as clock:
                    clock.left["idle"] = clock.left["work"]  # waiting counts as work does
                    came = {"reply": reply(answer, heard["question"], self.consult)}
            except TimeUp:
                came = {"late": True}
            left = min(clock.left.values())
            self.channel.tell(**came)
        given = {name: torch.tensor(rows) for name, rows in heard.get("given", {}).items()}
        return HandedIn(given, heard.get("sizes", {}))

    def consult(self, wanted: dict) -> Any:
        self.channel.tell(reply={"wants": wanted})
        return self.channel.hear()["question"]["served"]


class Placer(Collector):
    """Replace check in the second sandbox: report the lines at which answers go wrong."""

    def __init__(self, channel: Channel, seconds: float, skipped: list[str], wanted: list[str]):
        super().__init__(channel, seconds, skipped)
        self.wanted, self.check = wanted, sys.modules[CHECKS].check
        sys.modules[CHECKS].check = self

    def be_asked(self, identifier: str, answer: Any) -> HandedIn:
        wanted = identifier in self.wanted
        verdict = self.check(identifier, answer if wanted else ..., record=False)
        if wanted:
            told = {name: getattr(verdict, name) for name in ("kind", "line", *PLACE)}
            self.channel.tell(place=identifier, **told)
        return HandedIn(verdict.given, verdict.sizes)


def new_shell() -> InteractiveShell:
    """Return an IPython shell that runs cells as a notebook does."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Minimal"
    shell = InteractiveShell.instance(config=config)
    shell.ast_transformers.append(Rename())
    return shell


def limit(memory: int) -> None:
    """Limit memory, files and tasks of this process and those it starts."""
    for what, most in (
        (resource.RLIMIT_AS, memory_in_use() + memory),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_NOFILE, MOST_FILES),
        (resource.RLIMIT_NPROC, MOST_TASKS),
        (resource.RLIMIT_CORE, 0),
    ):
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def memory_in_use() -> int:
    """Return the size of this process in bytes, or 0 if the system does not report it."""
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0


def run(
    channel: Channel,
    shell: InteractiveShell,
    cells: list[str],
    omitted: list[int],
    skipped: list[str],
    seconds: dict[str, float],
    memory: int,
    wanted: list[str] | None = None,
) -> None:
    """Run a notebook's cells.

    Args:
        channel, shell: the pipes to the judge, and the shell that runs the cells.
        cells: their sources.
        omitted: numbers of the cells not to run.
        skipped: exercises whose answers are not run.
        seconds: limits for one "cell" and one "answer".
        memory: limit in bytes, on top of the memory in use now.
        wanted: exercises in which to find the line of the mistake; without any, answers are
            collected for the judge.
    """
    given = channel, seconds["answer"], skipped
    setattr(builtins, COLLECT, Placer(*given, wanted) if wanted else Collector(*given))
    hold_back(sys.modules[CHECKS])
    limit(memory)
    for number, source in enumerate(cells):
        if number in omitted:
            continue
        channel.tell(cell=number)
        try:
            with timed(seconds["cell"]) as clock:
                clock.left["idle"] = seconds["cell"]
                raised = attempt(lambda cell=source: shell.run_cell(cell).raise_error())
        except TimeUp:
            channel.tell(cell=number, late=True)
        else:
            if isinstance(raised, Failure):
                channel.tell(cell=number, error=raised.text)
    channel.tell(end=True)


def main() -> None:
    argparse.ArgumentParser(description=__doc__.partition("\n")[0]).parse_args()
    torch.set_num_threads(1)
    channel, shell = Channel(), new_shell()
    channel.tell(ready=True)
    run(channel, shell, **channel.hear())
    os._exit(0)


if __name__ == "__main__":
    main()

"""Run submitted notebooks, each in a process of its own; tools/grade.py starts this and asks.

This process imports what notebooks import, then waits. For every line on its standard input it
forks a child, which runs one notebook, and says on its standard output how the child ended. It
never runs a learner's code itself, and never knows what is right: a child inherits nothing else.
"""

import ast
import builtins
import ctypes
import importlib
import json
import os
import re
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from IPython.core.interactiveshell import InteractiveShell
from plain_data import decode, decode_argument, encode
from traitlets.config import Config

from helpers.checks import DROPOUT, check_attention, exercises
from helpers.checks.compare import call
from helpers.checks.growing import layers
from helpers.checks.guard import Failure, TimeUp, attempt, kept_state, time_limit
from helpers.checks.looks import training_looks
from helpers.checks.tasks import TASKS, Explain, Grow

PRELOADED = "ipywidgets", "matplotlib.pyplot", "helpers.charts", "helpers.gpt2", "helpers.sliders"
JOB, ANSWERS, DESK = "job.json", "answers.jsonl", "desk"
CLASSES = {name for name, task in TASKS.items() if isinstance(task, Grow)}
COLLECT = "__collect__"
LARGEST_FILE = 50_000_000  # bytes
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
DIE_WITH_PARENT, ADOPT_ORPHANS = 1, 36  # of prctl, on Linux

# Python asks these hooks by name before it does such a thing. This stops accidents and plain
# tricks, not an attacker with machine code.
FORBIDDEN = re.compile(
    r"os\.(fork|forkpty|exec|posix_spawn|spawn|system|startfile|kill|killpg)|pty\.spawn"
    r"|subprocess\.Popen|ctypes\.(dlopen|dlsym.*)|socket\.(connect|bind|sendto|getaddrinfo|gethostby.*)"
)
CHANGING = re.compile(
    r"os\.(chmod|chown|link|mkdir|remove|rename|rmdir|symlink|truncate|utime|setxattr)"
)


def main() -> None:
    """Run one notebook for each line of standard input."""
    torch.set_num_threads(1)
    for name in PRELOADED:
        importlib.import_module(name)
    prctl(ADOPT_ORPHANS, 1)
    shell = new_shell()
    for line in sys.stdin:
        print(json.dumps(supervised(shell, **json.loads(line))), flush=True)


def new_shell() -> InteractiveShell:
    """Return what runs cells as a notebook does, magics and displays included."""
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.xmode = "Minimal"
    return InteractiveShell.instance(config=config)


def prctl(option: int, value: int) -> None:
    """Ask the Linux kernel for something; elsewhere do without."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)


def supervised(shell: InteractiveShell, folder: str, seconds: float, memory: int) -> str:
    """Run the notebook in folder; return why it was stopped, or nothing."""
    started, child = time.monotonic(), os.fork()
    if child == 0:
        try:
            enter(Path(folder), memory)
            run_notebook(shell, Path(folder))
        finally:
            os._exit(1)
    try:
        while not (ended := os.waitpid(child, os.WNOHANG))[0]:
            if time.monotonic() - started > seconds:
                return f"did not end within {seconds:g} seconds"
            time.sleep(0.005)
    finally:
        end_family(child)
    code = os.waitstatus_to_exitcode(ended[1])
    return f"ended its process, with exit code {code}" if code else ""


def end_family(child: int) -> None:
    """End a child's process group, then whatever it left behind."""
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)
    with suppress(ChildProcessError):
        while True:
            if not os.waitpid(-1, os.WNOHANG)[0]:
                for orphan in children():
                    os.kill(orphan, signal.SIGKILL)
                time.sleep(0.005)


def children() -> list[int]:
    """Return the processes whose parent is this one, orphans that it adopted included."""
    found = []
    for status in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = status.read_text(errors="replace").rpartition(")")[2].split()[1]
            found += [int(status.parent.name)] if int(parent) == os.getpid() else []
    return found


def enter(folder: Path, memory: int) -> None:
    """Make the child a place of its own: its limits, its files, no way to the grader's."""
    os.setsid()
    prctl(DIE_WITH_PARENT, signal.SIGKILL)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(nowhere, standard)
    os.closerange(3, 1024)
    desk = os.path.realpath(folder / DESK)
    os.chdir(desk)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG", "TZ")}
    places = dict.fromkeys(("HOME", "TMPDIR", "MPLCONFIGDIR", "IPYTHONDIR"), desk)
    os.environ.clear()
    os.environ.update(kept | places | {"ELEVEN_STEPS_PROGRESS": f"{desk}/progress.json"})
    tempfile.tempdir = None
    sys.path[:] = [place for place in sys.path if Path(place) != Path(__file__).parent]
    sys.dont_write_bytecode = True
    for what, most in (
        (resource.RLIMIT_AS, memory_in_use() + memory),
        (resource.RLIMIT_FSIZE, LARGEST_FILE),
        (resource.RLIMIT_CORE, 0),
    ):
        with suppress(ValueError, OSError):
            resource.setrlimit(what, (most, most))


def memory_in_use() -> int:
    """Return the size of this process in bytes; 0 where the system does not tell."""
    with suppress(OSError):
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    return 0


def keep_to(desk: str) -> None:
    """Let Python change files on the desk alone, start no process and call nobody."""
    realpath = os.path.realpath

    def refuse(event: str, arguments: tuple) -> None:
        if FORBIDDEN.fullmatch(event):
            raise PermissionError(f"{event} is not available while a notebook is graded")
        if event == "open" and arguments[2] & WRITES or CHANGING.fullmatch(event):
            for path in arguments[: 2 if event in ("os.link", "os.rename", "os.symlink") else 1]:
                if isinstance(path, int):
                    continue
                place = realpath(os.fsdecode(path))
                if place != os.devnull and not f"{place}/".startswith(f"{desk}/"):
                    raise PermissionError(f"{event}: only the working folder can be written to")

    sys.addaudithook(refuse)


def run_notebook(shell: InteractiveShell, folder: Path) -> None:
    """Run all cells in order and write down what check is given; end the process."""
    job = json.loads((folder / JOB).read_text("utf-8"))
    out = os.open(folder / ANSWERS, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    keep_to(os.getcwd())

    def write(**fact: Any) -> None:
        os.write(out, json.dumps(fact).encode() + b"\n")

    check = collector(job["questions"], write)
    setattr(builtins, COLLECT, check)
    exercises.check = check
    shell.ast_transformers.append(Rename(job["questions"]))
    for number, source in enumerate(job["cells"]):
        result = attempt(run_cell, shell, source)
        if isinstance(result, Failure):
            write(cell=number, error=result.text)
    write(end=True)
    os._exit(0)


def run_cell(shell: InteractiveShell, source: str) -> None:
    """Run a cell and raise what it raises."""
    shell.run_cell(source).raise_error()


class Rename(ast.NodeTransformer):
    """Let every check("scores.1", ...) in a cell's source collect, whatever check is by then."""

    def __init__(self, identifiers: dict[str, Any]):
        self.identifiers = identifiers

    def visit_Call(self, node: ast.Call) -> ast.Call:
        """Give a call of check another name."""
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", None))
        first = getattr(node.args[0], "value", None) if node.args else None
        if name == "check" and isinstance(first, str) and first in self.identifiers:
            node.func = ast.copy_location(ast.Name(COLLECT, ast.Load()), node.func)
        return node


def answer_class(judge: Callable, identifier: str, cls: type, scenes: list) -> dict[str, Any]:
    """Return what check and check_attention say of a class, and what it computes in each scene."""
    outcome = judge(identifier, cls, record=False)
    facts = {"outcome": [outcome.kind, outcome.message, outcome.mistake]}
    if outcome.passed:
        verdict = check_attention(cls)
        looks = [encode(call(forward_and_back, cls, *map(decode, scene))) for scene in scenes]
        dropout = encode(call(training_looks, cls, DROPOUT))
        facts |= {"verdict": [verdict.passed, verdict.message, next(iter(verdict.mistakes), None)]}
        facts |= {"looks": looks, "dropout": dropout}
    return facts


def forward_and_back(
    cls: type, sizes: tuple, qkv_bias: bool, names: list[str], weights: list, x: torch.Tensor
) -> tuple[torch.Tensor, ...]:
    """Return the output of a class with given weights, and the gradients of x and the weights.

    Args:
        cls: built as cls(*sizes, qkv_bias=qkv_bias), sizes being the lecture's five arguments.
        names: which weights and biases are given; weights are they.
        x: (b, num_tokens, d_in).
    """
    module = cls(*sizes, qkv_bias=qkv_bias).eval()
    own = layers(module)
    with torch.no_grad():
        for name, weight in zip(names, weights, strict=True):
            own[name].copy_(weight)
    x = x.clone().requires_grad_()
    out = module(x * 1)
    out.square().sum().backward()
    return out, x.grad, *(own[name].grad for name in names)


def collector(
    questions: dict[str, Any], write: Callable[..., None]
) -> Callable[..., exercises.Outcome]:
    """Return what stands for check: it asks the answer the grader's questions, and judges nothing.

    Args:
        questions: for each exercise that may be asked about, what its answer is to be given.
        write: takes down facts.
    """
    judge = exercises.check

    def check(identifier: str, answer: Any, record: bool = True) -> exercises.Outcome:
        if record and type(identifier) is str and identifier in questions:
            write(begun=identifier)
            with kept_state():
                try:
                    with time_limit(exercises.SECONDS * (3 if identifier in CLASSES else 1)):
                        facts = attempt(ask, TASKS[identifier], answer, questions[identifier])
                except TimeUp:
                    facts = {"late": True}
            if isinstance(facts, Failure):
                facts = {"value": encode(facts)}
            write(exercise=identifier, **facts)
        return exercises.Outcome(str(identifier), "right", "handed in.")

    def ask(task, answer: Any, question: Any) -> dict[str, Any]:
        if isinstance(task, Explain) or not callable(answer):
            return {"value": encode(answer)}
        if isinstance(task, Grow):
            return {"class": answer_class(judge, task.identifier, answer, question)}
        arguments = [map(decode_argument, each) for each in question]
        return {"returned": [encode(call(answer, *each)) for each in arguments]}

    return check


if __name__ == "__main__":
    main()

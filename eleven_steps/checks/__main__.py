"""Judge classes of attention from the shell, each in a process of its own.

    python -m eleven_steps.checks model.py:MultiHeadAttention
    python -m eleven_steps.checks package.module:declared --full --json

The exit status is 0 if all classes are right, 1 if one is wrong, and 2 if one could not be judged,
whatever the verdict on the others is.
"""

import argparse
import json
import multiprocessing
import os
import signal
import sys
from dataclasses import asdict
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import TimeUp, attempt, timed
from eleven_steps.checks.asking.questions import kind_of
from eleven_steps.checks.attention import check_attention
from eleven_steps.checks.verdict import UNJUDGED, Verdict, say
from eleven_steps.helpers.trace import STEPS

NOT_JUDGED = *UNJUDGED, "unfinished", "type"  # kinds of verdicts that judge nothing
STATUS = {"right": 0, "wrong": 1, "not judged": 2}
COLOURS = {"right": ("✓", "32"), "wrong": ("✗", "31"), "not judged": ("?", "33")}  # ANSI colours
LOADING = 120.0  # seconds to import a file and all that it imports
GIVEN_UP = 1800.0  # seconds after which a process that does not answer is ended
# The fields of a verdict that a process sends, and that --json prints.
PARTS = "kind", "text", "wrong", "gets", "expected", "hint", "step", "line", "code", "note"
# A forked process need not load torch again; elsewhere a new process is started.
PROCESSES = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def main(arguments: list[str] | None = None) -> int:
    """Judge what the command line names, print a verdict on each, and return the status."""
    given = _parser().parse_args(arguments)
    status = 0
    sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack what a message has
    try:
        for target in given.targets:
            verdict = judge_apart(target, causal=not given.full)
            status = max(status, STATUS[judgement(verdict)])
            print(as_json(target, verdict) if given.json else shown(target, verdict), flush=True)
    except KeyboardInterrupt:
        print("stopped: what is not named above is not judged", file=sys.stderr)
        return STATUS["not judged"]
    except BrokenPipeError:  # the reader of the pipe has closed it
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS["not judged"]
    return status


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        "python -m eleven_steps.checks",
        description=__doc__.split("\n")[0],
        epilog="Exit status: 0 all are right, 1 one is wrong, 2 one could not be judged.",
    )
    about = "or package.module:NAME; NAME is a class, or what declare returns for it"
    parser.add_argument("targets", metavar="FILE.py:NAME", help=about, nargs="+")
    parser.add_argument("--full", action="store_true", help="hide no token, as in an encoder")
    parser.add_argument("--json", action="store_true", help="print one JSON object a line")
    return parser


def judgement(verdict: Verdict) -> str:
    """Return right, wrong or not judged."""
    return "right" if verdict else "not judged" if verdict.kind in NOT_JUDGED else "wrong"


def shown(target: str, verdict: Verdict) -> str:
    """Return a verdict as lines for a terminal."""
    mark, colour = COLOURS[judgement(verdict)]
    head = f"{mark} {target}: {judgement(verdict)}"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        head = f"\x1b[1;{colour}m{head}\x1b[0m"
    lines = "\n".join(filter(None, (verdict.message, verdict.note))).split("\n")
    return "\n".join([head, *(f"  {line}".rstrip() for line in lines)])


def as_json(target: str, verdict: Verdict) -> str:
    """Return a verdict as a JSON object on one line."""
    step = verdict.step and STEPS[verdict.step - 1]
    fields = {"target": target, "verdict": judgement(verdict), "step": verdict.step, "name": step}
    fields |= {"mistakes": verdict.mistakes, "message": verdict.message}
    return json.dumps(fields | {part: getattr(verdict, part) for part in PARTS if part != "text"})


# In a process of its own


def judge_apart(target: str, causal: bool = True) -> Verdict:
    """Return what check_attention returns for FILE.py:NAME or package.module:NAME.

    The kind is "unread" where there is no such thing, or its file cannot be loaded or ends the
    process.
    """
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_answer, args=(theirs, target, causal))
    process.start()
    theirs.close()  # so that reading ends if nothing was sent
    try:
        wait([ours, process.sentinel], GIVEN_UP)
        if ours.poll():
            fields = json.loads(ours.recv_bytes())
            return Verdict(**fields | {"mistakes": tuple(fields["mistakes"])})
    except (EOFError, OSError):
        pass  # the process ended before it sent a verdict
    finally:
        process.join(1 if process.exitcode is None and not ours.poll() else 0)
        ended = process.exitcode
        process.kill()
        process.join()
    return say("process_ended", how=_how(ended))


def _how(ended: int | None) -> str:
    if ended is None:
        return f"does not end within {GIVEN_UP:g} seconds"
    return f"ends with {signal.Signals(-ended).name if ended < 0 else f'status {ended}'}"


def _answer(connection: Connection, target: str, causal: bool) -> None:
    """Judge a target in the other process, and send the verdict as JSON."""
    os.dup2(2, 1)  # a file's own output goes to stderr, apart from verdicts
    try:
        verdict = asdict(_judged(target, causal))
        fields = {name: verdict[name] for name in (*PARTS, "mistakes")}
        connection.send_bytes(json.dumps(fields).encode())
    except KeyboardInterrupt:
        pass  # the parent process reports the interrupt


def _judged(target: str, causal: bool) -> Verdict:
    try:
        with timed(LOADING):
            found = attempt(target_of, target)
    except TimeUp:
        return say("loads_long", seconds=LOADING)
    if isinstance(found, Failure):
        return say("not_loaded", error=found.told.removeprefix("LookupError: "))
    kind, name = kind_of(found)
    if kind not in ("module class", "callable"):
        name = "type" if kind == "class" else name or "None"
        return say("not_a_class", name=target.rpartition(":")[2], type=name)
    return check_attention(found, causal=causal)


def target_of(target: str) -> Any:
    """Return what FILE.py:NAME or package.module:NAME names.

    Raises:
        LookupError: there is no such thing.
    """
    place, _, name = target.rpartition(":")
    if not place or not name:
        raise LookupError("FILE.py:NAME or package.module:NAME is expected")
    if place.endswith(".py"):
        found = loaded(Path(place).absolute())
    else:
        sys.path.insert(0, str(Path.cwd()))
        found = import_module(place)
    made = (thing for thing in vars(found).values() if isinstance(thing, type))
    modules = (cls for cls in made if issubclass(cls, torch.nn.Module))
    classes = [cls.__name__ for cls in modules if cls.__module__ == found.__name__]
    for part in name.split("."):
        if not hasattr(found, part):
            there = f": it has {', '.join(classes)}" if classes else ""
            raise LookupError(f"there is no {name} in {place}{there}")
        found = getattr(found, part)
    return found


def loaded(path: Path) -> ModuleType:
    """Load a file by its path, whatever else has its name; load its package with it."""
    if not path.is_file():
        raise LookupError(f"there is no file {path.name} in {path.parent}")
    top, parts = path, [path.stem]
    while (top.parent / "__init__.py").is_file():
        top = top.parent
        parts.insert(0, top.name)
    parts = parts[: -1 if path.stem == "__init__" else None]
    sys.path.insert(0, str(top.parent))
    if top == path:
        return _private(path)
    if parts[0] in sys.modules and not _is_in(sys.modules[parts[0]], top):
        parts[0] = _private(top / "__init__.py").__name__  # ours, or torch's, has this name
    return import_module(".".join(parts))


def _is_in(module: ModuleType, folder: Path) -> bool:
    file = getattr(module, "__file__", None)
    return file is not None and Path(file).resolve().parent == folder.resolve()


def _private(path: Path) -> ModuleType:
    """Load a file, or a package's __init__.py, under a name that no other module has."""
    name = f"asked_{path.parent.name if path.stem == '__init__' else path.stem}"
    folders = [str(path.parent)] if path.stem == "__init__" else None
    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())

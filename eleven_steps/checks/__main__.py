"""Judge classes of attention from the shell, each in a process of its own.

    python -m eleven_steps.checks model.py:CausalSelfAttention
    python -m eleven_steps.checks package.module:Attention --full --json

Whatever a class does, a verdict is given. The exit status is 0 where all are right, 2 where one
could not be judged, else 1: one is wrong.
"""

import argparse
import json
import multiprocessing
import os
import shutil
import signal
import sys
import textwrap
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from multiprocessing.connection import Connection, wait
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from eleven_steps.checks.judge.entry import check_attention
from eleven_steps.checks.judge.say import Outcome, say
from eleven_steps.checks.know.sentences import IN_SHELL, OPTIONS
from eleven_steps.checks.run.ask import kind_of
from eleven_steps.checks.run.isolate import Failure, TimeUp, attempt, timed
from eleven_steps.helpers.trace import STEPS

NOT_JUDGED = "unread", "failed", "type"
STATUS = {"right": 0, "wrong": 1, "not judged": 2}
COLOURS = {"right": ("✓", "32"), "wrong": ("✗", "31"), "not judged": ("?", "33")}  # colours of ANSI
LOADING = 120.0  # seconds for a file and all that it imports
GIVEN_UP = 1800.0  # seconds after which a process that answers to nothing is given up
PARTS = "kind", "message", "step", "mistakes", "note"  # of an Outcome, those that are carried
# A forked process need not load torch again; where torch's own threads forbid it, a new one is.
PROCESSES = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")


def main(arguments: list[str] | None = None) -> int:
    """Judge what the command line names, print what is said of each, and return the status."""
    given = _parser().parse_args(arguments)
    options = {"variant": given.variant, "causal": not given.full, "call": given.call}
    told = {role: None if name in ("", "None") else name for role, name in map(_pair, given.layers)}
    status = 0
    sys.stdout.reconfigure(errors="backslashreplace")  # a terminal may lack what a message has
    try:
        for target in given.targets:
            outcome = judged_apart(target, layers=told or None, **options)
            status = max(status, STATUS[judgement(outcome)])
            print(as_json(target, outcome) if given.json else shown(target, outcome), flush=True)
    except KeyboardInterrupt:
        print("stopped: what is not named above is not judged", file=sys.stderr)
        return STATUS["not judged"]
    except BrokenPipeError:  # whoever reads has read enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS["not judged"]
    return status


def _parser() -> argparse.ArgumentParser:
    status = "Exit status: 0 all are right, 1 one is wrong, 2 one could not be judged."
    told, several = {"description": __doc__.split("\n")[0], "epilog": status}, {"nargs": "+"}
    parser = argparse.ArgumentParser("python -m eleven_steps.checks", **told)
    said = "a class, or a function that builds one from d_out, num_heads, ..."
    said = f"or package.module:NAME; {said}"
    parser.add_argument("targets", metavar="FILE.py:NAME", help=said, **several)
    parser.add_argument("--variant", default="", help="a change that it has, or several: gqa,rope")
    parser.add_argument("--full", action="store_true", help="no token is hidden, as in an encoder")
    said = "where the weights are: qkv=c_attn out_proj=c_proj; out_proj=None if it has none"
    parser.add_argument("--layers", default=[], metavar="LAYER=NAME", help=said, **several)
    said = "how it is called, in Python: 'module(x, mask=~hidden)[0]'; "
    said += "hidden (num_tokens, num_tokens) is True where a key must not be seen"
    parser.add_argument("--call", metavar="CODE", help=said)
    parser.add_argument("--json", action="store_true", help="one object a line")
    return parser


def _pair(text: str) -> tuple[str, str]:
    name, _, value = text.partition("=")
    return name, value


def judgement(outcome: Outcome) -> str:
    """right, wrong or not judged."""
    return "right" if outcome else "not judged" if outcome.kind in NOT_JUDGED else "wrong"


def shown(target: str, outcome: Outcome) -> str:
    """What is said of a class, as lines for a terminal."""
    mark, colour = COLOURS[judgement(outcome)]
    head = f"{mark} {target}: {judgement(outcome)}"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        head = f"\x1b[1;{colour}m{head}\x1b[0m"
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    texts = filter(None, (outcome.message, outcome.note))
    indent = {"initial_indent": "  ", "subsequent_indent": "  "}
    return "\n".join([head, *(textwrap.fill(text, width, **indent) for text in texts)])


def as_json(target: str, outcome: Outcome) -> str:
    """The same as an object in one line."""
    fields = {
        "target": target,
        "verdict": judgement(outcome),
        "step": outcome.step,
        "name": STEPS[outcome.step - 1] if outcome.step else None,
        "mistakes": outcome.mistakes,
        "message": outcome.message,
        "note": outcome.note,
    }
    return json.dumps(fields)


# In a process of its own


def judged_apart(target: str, call: str | None = None, **options: Any) -> Outcome:
    """Say what check_attention says of FILE.py:NAME or package.module:NAME.

    A call comes as code, in terms of module, x and hidden. The kind is "unread" where there is no
    such thing, or its file cannot be loaded or ends the process.
    """
    ours, theirs = PROCESSES.Pipe(duplex=False)
    process = PROCESSES.Process(target=_answer, args=(theirs, target, call, options))
    process.start()
    theirs.close()  # so that the end is seen where nothing was sent
    try:
        wait([ours, process.sentinel], GIVEN_UP)
        if ours.poll():
            said = dict(zip(PARTS, json.loads(ours.recv_bytes()), strict=True))
            return Outcome("", **said | {"mistakes": tuple(said["mistakes"])})
    except (EOFError, OSError):
        pass  # it ended without a word
    finally:
        process.join(1 if process.exitcode is None and not ours.poll() else 0)
        ended = process.exitcode
        process.kill()
        process.join()
    return say("process_ended", how=_how(ended)).outcome("")


def _how(ended: int | None) -> str:
    if ended is None:
        return f"does not end within {GIVEN_UP:g} seconds"
    return f"ends with {signal.Signals(-ended).name if ended < 0 else f'status {ended}'}"


def _answer(connection: Connection, target: str, call: str | None, options: Any) -> None:
    """In the other process: judge in the shell's words, and send the verdict as JSON."""
    OPTIONS.update(IN_SHELL)
    os.dup2(2, 1)  # what a file prints is no verdict
    try:
        said = _judged(target, call, options)
        connection.send_bytes(json.dumps([getattr(said, part) for part in PARTS]).encode())
    except KeyboardInterrupt:
        pass  # the person at the keyboard: the other process says so


def _judged(target: str, call: str | None, options: Any) -> Outcome:
    try:
        with timed(LOADING):
            found = attempt(target_of, target)
    except TimeUp:
        return say("loads_long", seconds=LOADING).outcome("")
    if isinstance(found, Failure):
        return say("not_loaded", error=found.told.removeprefix("LookupError: ")).outcome("")
    kind, name = kind_of(found)
    if kind not in ("module class", "callable"):
        name = "type" if kind == "class" else name or "None"
        return say("not_a_class", name=target.rpartition(":")[2], type=name).outcome("")
    if call is not None:
        call = attempt(eval, f"lambda module, x, hidden: ({call}\n)", {"torch": torch})
        if isinstance(call, Failure):
            return say("no_call", error=call.text).outcome("")
    try:
        return check_attention(found, call=call, **options)
    except ValueError as error:
        return say("no_option", error=error).outcome("")


def target_of(target: str) -> Any:
    """What FILE.py:NAME or package.module:NAME names; LookupError where there is no such thing."""
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
    """Load a file by its path, whatever else bears its name; a package's, with its package."""
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
    """Load a file, or a package by its __init__.py, under a name that nothing else has."""
    name = f"asked_{path.parent.name if path.stem == '__init__' else path.stem}"
    folders = [str(path.parent)] if path.stem == "__init__" else None
    spec = spec_from_file_location(name, path, submodule_search_locations=folders)
    module = sys.modules[name] = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())

"""Judge classes of attention from the shell.

    python -m eleven_steps.checks model.py:CausalSelfAttention
    python -m eleven_steps.checks package.module:Attention --full --json

The exit status is 0 where all are right, 1 where one is wrong, 2 where one cannot be judged.
"""

import argparse
import importlib
import json
import os
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import torch

from eleven_steps.checks.judge.foreign import check_attention
from eleven_steps.checks.judge.say import Outcome
from eleven_steps.checks.run.contract import combined
from helpers.trace import STEPS

NOT_JUDGED = "unread", "failed", "type"
STATUS = {"right": 0, "wrong": 1, "not judged": 2}
MARKS = {"right": ("✓", "32"), "wrong": ("✗", "31"), "not judged": ("?", "33")}  # colours of ANSI


def _variant(text: str) -> str:
    try:
        return combined(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def main(arguments: list[str] | None = None) -> int:
    """Judge what the command line names, print what is said of each, and return the status."""
    parser = argparse.ArgumentParser(
        "python -m eleven_steps.checks", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="FILE.py:NAME",
        help="or package.module:NAME; "
        "a class, or a function that builds one from d_out, num_heads, ...",
    )
    parser.add_argument(
        "--variant", default="", type=_variant, help="a change that it has, or several: gqa,rope"
    )
    parser.add_argument("--full", action="store_true", help="no token is hidden, as in an encoder")
    parser.add_argument(
        "--layers",
        nargs="+",
        default=[],
        metavar="LAYER=NAME",
        help="where the weights are: qkv=c_attn out_proj=c_proj",
    )
    parser.add_argument(
        "--call",
        metavar="CODE",
        help="how it is called, in Python: 'module(x, mask=~hidden)[0]'; "
        "hidden (num_tokens, num_tokens) is True where a key must not be seen",
    )
    parser.add_argument("--json", action="store_true", help="one object a line")
    given = parser.parse_args(arguments)
    layers = dict(each.partition("=")[::2] for each in given.layers) or None
    status = 0
    call = given.call and eval(f"lambda module, x, hidden: {given.call}", {"torch": torch})
    for target in given.targets:
        try:
            cls = named(target)
            outcome = check_attention(
                cls, given.variant, layers=layers, call=call, causal=not given.full
            )
        except (ImportError, AttributeError, OSError, SyntaxError, ValueError) as error:
            parser.error(f"{target}: {error}")
        status = max(status, STATUS[verdict(outcome)])
        print(as_json(target, outcome) if given.json else shown(target, outcome))
    return status


def named(target: str) -> Any:
    """What FILE.py:NAME or package.module:NAME names.

    Raises:
        ImportError, AttributeError, OSError, SyntaxError, ValueError: there is no such thing.
    """
    place, colon, name = target.rpartition(":")
    if not colon or not place or not name:
        raise ValueError("FILE.py:NAME or package.module:NAME is expected")
    folder, module = str(Path.cwd()), place
    if place.endswith(".py"):
        path = Path(place).resolve(strict=True)
        parts = [path.stem]
        while (path.parent / "__init__.py").exists():  # inside a package, imports may be relative
            path = path.parent
            parts.insert(0, path.name)
        folder, module = str(path.parent), ".".join(parts)
    sys.path.insert(0, folder)
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    return found


def verdict(outcome: Outcome) -> str:
    """right, wrong or not judged."""
    return "right" if outcome else "not judged" if outcome.kind in NOT_JUDGED else "wrong"


def shown(target: str, outcome: Outcome) -> str:
    """What is said of a class, as lines for a terminal."""
    mark, colour = MARKS[verdict(outcome)]
    head = f"{mark} {target}: {verdict(outcome)}"
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        head = f"\x1b[1;{colour}m{head}\x1b[0m"
    width = min(100, shutil.get_terminal_size((100, 24)).columns)
    texts = filter(None, (outcome.message, outcome.note))
    lines = [
        textwrap.fill(each, width, initial_indent="  ", subsequent_indent="  ") for each in texts
    ]
    return "\n".join([head, *lines])


def as_json(target: str, outcome: Outcome) -> str:
    """The same as an object in one line."""
    fields = {
        "target": target,
        "verdict": verdict(outcome),
        "step": outcome.step,
        "name": STEPS[outcome.step - 1] if outcome.step else None,
        "mistakes": outcome.mistakes,
        "message": outcome.message,
        "note": outcome.note,
    }
    return json.dumps(fields, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())

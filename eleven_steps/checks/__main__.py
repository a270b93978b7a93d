"""Judge classes of attention from the shell.

    python -m eleven_steps.checks model.py:CausalSelfAttention
    python -m eleven_steps.checks package.module:Attention --full --json

Each is judged in a process of its own. The exit status is 0 where all are right, 2 where one could
not be judged, else 1: one is wrong.
"""

import argparse
import json
import os
import shutil
import sys
import textwrap

from eleven_steps.checks.judge.own_process import judged_apart
from eleven_steps.checks.judge.say import Outcome
from eleven_steps.helpers.trace import STEPS

NOT_JUDGED = "unread", "failed", "type"
STATUS = {"right": 0, "wrong": 1, "not judged": 2}
MARKS = {"right": ("✓", "32"), "wrong": ("✗", "31"), "not judged": ("?", "33")}  # colours of ANSI


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
    parser = argparse.ArgumentParser(
        "python -m eleven_steps.checks",
        description=__doc__.split("\n")[0],
        epilog="Exit status: 0 all are right, 1 one is wrong, 2 one could not be judged.",
    )
    parser.add_argument(
        "targets",
        nargs="+",
        metavar="FILE.py:NAME",
        help="or package.module:NAME; "
        "a class, or a function that builds one from d_out, num_heads, ...",
    )
    parser.add_argument("--variant", default="", help="a change that it has, or several: gqa,rope")
    parser.add_argument("--full", action="store_true", help="no token is hidden, as in an encoder")
    parser.add_argument(
        "--layers",
        nargs="+",
        default=[],
        metavar="LAYER=NAME",
        help="where the weights are: qkv=c_attn out_proj=c_proj; out_proj=None if it has none",
    )
    parser.add_argument(
        "--call",
        metavar="CODE",
        help="how it is called, in Python: 'module(x, mask=~hidden)[0]'; "
        "hidden (num_tokens, num_tokens) is True where a key must not be seen",
    )
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
    mark, colour = MARKS[judgement(outcome)]
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


if __name__ == "__main__":
    sys.exit(main())

"""Shorten tracebacks in a notebook to the learner's own lines and the message."""

import os
from pathlib import Path
from traceback import walk_tb
from types import TracebackType

import torch
from IPython import get_ipython

# An error raised in one of these folders is explained by its message, not by their lines.
HERE = Path(__file__).parent
FOLDERS = Path(torch.__file__).parent, HERE, HERE.parent / "helpers"
NOT_YOURS = tuple(f"{folder}{os.sep}" for folder in FOLDERS)


def show_short() -> None:
    """Show errors raised in torch or in this course as if the learner's own line had raised them.

    Errors raised anywhere else keep their traceback. Outside a notebook nothing happens.
    """
    if shell := get_ipython():
        shell.set_custom_exc((Exception,), show)
        shell.colors = "nocolor"  # its colours are too pale to read on a notebook's pink


def show(shell, kind, error, traceback, tb_offset=None) -> None:
    """Print a shortened traceback, as the exception hook of IPython."""
    shell.showtraceback((kind, error, shortened(traceback)), tb_offset=tb_offset)


def shortened(traceback: TracebackType) -> TracebackType:
    """Return a traceback without frames of torch and of this course, if one of them raised."""
    frames = list(walk_tb(traceback))
    yours = [each for each in frames if not each[0].f_code.co_filename.startswith(NOT_YOURS)]
    if frames[-1] in yours:
        return traceback
    kept = None
    for frame, line in reversed(yours):
        kept = TracebackType(kept, frame, -1, line)
    return kept or traceback

"""Show errors short: the learner's own lines and the message, without what lies between."""

import os
import types
from pathlib import Path
from traceback import walk_tb

import torch
from IPython import get_ipython

# An error from inside one of these is explained by its message, not by their lines.
HERE = Path(__file__).parent
LIBRARY = HERE.parent if HERE.parent.name == "eleven_steps" else HERE.parent / "eleven_steps"
NOT_YOURS = tuple(f"{folder}{os.sep}" for folder in (Path(torch.__file__).parent, HERE, LIBRARY))


def show_short() -> None:
    """From now on show errors raised in torch or in this course as if your line had raised them.

    Errors from elsewhere are shown as ever; without a notebook nothing happens.
    """
    if shell := get_ipython():
        shell.set_custom_exc((Exception,), show)
        shell.colors = "nocolor"  # its colours are too pale to read on a notebook's pink


def show(shell, kind, error, traceback, tb_offset=None) -> None:
    """Print a shortened traceback, as the exception hook of IPython."""
    shell.showtraceback((kind, error, shortened(traceback)), tb_offset=tb_offset)


def shortened(traceback: types.TracebackType) -> types.TracebackType:
    """Return a traceback without frames of torch and of this course, if one of them raised."""
    frames = list(walk_tb(traceback))
    if not inside(frames[-1][0]):
        return traceback
    kept = None
    for frame, line in reversed([found for found in frames if not inside(found[0])]):
        kept = types.TracebackType(kept, frame, -1, line)
    return kept or traceback


def inside(frame: types.FrameType) -> bool:
    """Say whether a frame runs code of torch or of this course."""
    return frame.f_code.co_filename.startswith(NOT_YOURS)

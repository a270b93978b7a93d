"""What is kept of an exception that somebody's code raised, fit to be read."""

import dis
import linecache
import re
import traceback
from dataclasses import dataclass
from pathlib import Path

import torch

LIBRARY = Path(__file__).parents[2]
OUR_FILES = tuple(
    f"{folder}/" for folder in (LIBRARY, LIBRARY.parent / "helpers", Path(torch.__file__).parent)
)
CONTROL = re.compile("[\0-\b\v-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


@dataclass(frozen=True)
class Failure:
    """An exception that a learner's code raised: its text, and their line where it happened."""

    text: str
    line: str = ""
    words: str = ""  # the names that stand in the line, known where its text is not

    @classmethod
    def of(cls, error: BaseException) -> "Failure":
        """What is kept of an exception."""
        return cls(_text(error), *_line(error))

    @property
    def told(self) -> str:
        """The text, with the line if there is one."""
        return f"{self.text} in `{self.line}`" if self.line else self.text


def visible(text: str) -> str:
    """A text in which what steers a terminal, or turns the writing, is spelt out."""
    return CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _text(error: BaseException) -> str:
    """Name and message of an error on one line; its own __str__ may be broken."""
    try:
        message = visible(" ".join(str(error).split()))
    except BaseException:
        message = ""
    name = str(type(error).__name__)
    short = message if len(message) <= 160 else message[:159] + "…"
    return f"{name}: {short}" if short else name


def _line(error: BaseException) -> tuple[str, str]:
    """The learner's own line of the traceback that is nearest to the error, and its names."""
    traced = [
        (frame, number)
        for frame, number in traceback.walk_tb(error.__traceback__)
        if not frame.f_code.co_filename.startswith((*OUR_FILES, "<frozen"))
    ]
    if not traced:
        return "", ""
    frame, number = traced[-1]
    names = [
        str(each.argval)
        for each in dis.get_instructions(frame.f_code)
        if each.positions.lineno == number and isinstance(each.argval, str)
    ]
    return linecache.getline(frame.f_code.co_filename, number).strip(), " ".join(names)

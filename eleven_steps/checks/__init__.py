"""Everything that judges an answer: check an exercise, check a class, plant and show a mistake."""

from eleven_steps.checks.answers import check, read_class
from eleven_steps.checks.attention import check_attention
from eleven_steps.checks.declared import declare
from eleven_steps.checks.lines import wrong_lines
from eleven_steps.checks.mistakes import show_lines, wrong_class
from eleven_steps.checks.progress import steps_done

__all__ = [
    "check",
    "check_attention",
    "declare",
    "read_class",
    "show_lines",
    "steps_done",
    "wrong_class",
    "wrong_lines",
]

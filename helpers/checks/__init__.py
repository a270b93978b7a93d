"""Everything that judges an answer: check an exercise, check a class, plant and show a mistake."""

from helpers.checks.answers import check
from helpers.checks.classes import check_attention
from helpers.checks.mistakes import show_lines, wrong_class

__all__ = ["check", "check_attention", "show_lines", "wrong_class"]

"""The checks of the course: one for each exercise, one for a whole attention class."""

from helpers.checks.dropout import DROPOUT, judge_dropout
from helpers.checks.exercises import check
from helpers.checks.guard import Stopped, TimeUp, kept_attributes, kept_state, time_limit
from helpers.checks.learner import Learner
from helpers.checks.mistakes import show_lines, wrong_class
from helpers.checks.verdict import Found, Verdict, verdict_on

__all__ = [
    "DROPOUT",
    "Verdict",
    "check",
    "check_attention",
    "judge_dropout",
    "show_lines",
    "wrong_class",
]

SECONDS = 1.6


def check_attention(cls: type) -> Verdict:
    """Find out whether a class is causal multi-head attention, and if not, what is wrong.

    The class is compared with MultiHeadAttention under the same weights: outputs at many sizes,
    gradients, dropout, devices. What differs is looked up in helpers.checks.mistakes, alone and in pairs,
    and asked about by helpers.checks.probes, which find the step of mistakes that are not listed.

    Args:
        cls: a subclass of nn.Module, built as cls(d_in, d_out, context_length, dropout, num_heads,
            qkv_bias=False) with layers W_query, W_key, W_value and out_proj; its forward takes
            x (b, num_tokens, d_in) and returns (b, num_tokens, d_out).

    Returns:
        A Verdict. Nothing that cls does is raised, printed or left behind, and a class that takes
        too long is stopped.
    """
    with kept_state(), kept_attributes(cls):
        learner = Learner(cls)
        try:
            with time_limit(SECONDS):
                return verdict_on(learner.examine(), learner.remark)
        except TimeUp:
            text = (
                f"The class did not answer all questions within {SECONDS} seconds: look for a loop "
                f"that does not end, or for work that torch does in one call."
            )
        except Stopped:
            raise
        except BaseException as error:
            text = f"The class cannot be checked: {type(error).__name__}."
        return verdict_on([*learner.found, Found(None, text)])

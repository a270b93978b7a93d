"""check_attention: known mistakes in other classes, and pairs of them."""

import pytest
from attention_variants import STYLES, carrier

from eleven_steps.checks import check_attention
from eleven_steps.checks.know.catalogue import MISTAKES, edited_source
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.cases import MAIN

pytestmark = pytest.mark.usefixtures("one_thread")

# Each pair is two steps apart or more, and the second does not hide the first.
PAIRS = [
    ("keys_and_values_swapped", "no_scale"),
    ("bias_not_added", "no_mask"),
    ("head_dim_before_heads", "out_proj_twice"),
    ("view_straight", "scale_sqrt_d_out"),
    ("mask_off_by_one", "heads_interleaved"),
    ("mask_not_registered", "dropout_on_context"),
    ("no_scale", "values_added"),
    ("scale_sqrt_d_out", "no_transpose_back"),
    ("dropout_in_eval", "out_proj_without_bias"),
    ("queries_detached", "scale_multiplied"),
]


@pytest.mark.parametrize("identifier", MISTAKES)
def test_every_known_mistake_is_named_in_classes_that_are_written_otherwise(identifier):
    named("functional", identifier)
    wrong = set(edited_source(identifier).splitlines()) - set(edited_source().splitlines())
    its_own_line = any(plain in line for line in wrong for plain in STYLES["moved"])
    if its_own_line or play(MAIN, identifier).failure:
        named("moved", identifier)


def named(style, identifier):
    verdict = check_attention(carrier(style, identifier))
    assert not verdict.passed
    assert verdict.mistakes == (identifier,), verdict
    assert verdict.step in MISTAKES[identifier].steps  # where it is seen, in this style
    assert verdict.message


@pytest.mark.parametrize("pair", PAIRS, ids="+".join)
def test_two_mistakes_are_both_named_the_first_first(pair):
    verdict = check_attention(carrier("functional", *pair))
    assert verdict.mistakes == pair, verdict
    assert verdict.step == MISTAKES[pair[0]].step
    assert verdict.message.startswith(f"Step {verdict.step} (")


def test_the_message_gives_the_sizes_and_the_place():
    verdict = check_attention(carrier("functional", "scale_sqrt_d_out"))
    assert verdict.message == (
        "Step 7 (softmax): The scores are divided by the square root of d_out (40); it should be "
        "the square root of head_dim (8). Look at what the softmax is given."
    )

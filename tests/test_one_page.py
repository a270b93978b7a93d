"""The page to print has all eleven steps with their shapes, one head, and five mistakes."""

import one_page

from helpers.trace import STEPS


def test_the_page_has_every_step_the_head_and_the_mistakes():
    names = [name for name, _, _ in one_page.lines_of_steps() if name]
    assert names == [f"{place} {step}" for place, step in enumerate(STEPS, start=1)]
    said = one_page.page()
    assert len(one_page.lines_of_one_head()) == 6 and "return weights @ values" in said
    assert said.count("<code>(b, num_heads, num_tokens, num_tokens)</code>") == 5
    assert said.count("<li>") == len(one_page.COMMON) and "`" not in said

"""The minutes that the course states are those that its rule gives."""

import minutes

BOTH = minutes.both()


def test_readme_plan_and_headings_state_the_minutes():
    readme, plan = (page.read_text("utf-8") for page in minutes.PAGES)
    for text in readme, plan:
        assert minutes.in_page(text, BOTH) == text, "run: python tools/minutes.py --write"
    assert not list(minutes.in_headings()), "run: python tools/minutes.py --write"


def test_an_evening_is_one():
    evenings = {name: evening for name, (evening, _) in BOTH.items() if evening}
    steps = {name: m for name, m in evenings.items() if name[:2] not in ("00", "12", "13")}
    assert len(steps) == 11 and max(steps.values()) <= 12, steps
    assert sum(evenings.values()) <= 150, evenings

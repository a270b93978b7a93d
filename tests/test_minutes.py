"""The minutes that the course states are those that its rule gives."""

import minutes

BOTH = minutes.both()


def test_readme_and_plan_state_the_minutes():
    readme, plan = (page.read_text("utf-8") for page in minutes.PAGES)
    assert len(minutes.ROW.findall(readme)) == len(BOTH) and len(minutes.WEEK.findall(plan)) == 18
    assert len(minutes.PART.findall(plan)) == 6
    for text in readme, plan:
        assert len(minutes.SUM.findall(text)) == 1
        assert minutes.in_page(text, BOTH) == text, "run: python tools/minutes.py --write"
    evening = plan.partition("| from |")[2].partition("\n\n")[0]
    assert set(minutes.NAME.findall(evening)) == {name for name, (some, _) in BOTH.items() if some}


def test_folded_headings_state_theirs():
    wrong = [path.name for path, _ in minutes.in_headings()]
    assert wrong == [], "run: python tools/minutes.py --write"


def test_an_evening_is_one():
    evenings = {name: evening for name, (evening, _) in BOTH.items() if evening}
    steps = {name: m for name, m in evenings.items() if name[:2] not in ("00", "12", "13")}
    assert len(steps) == 11 and max(steps.values()) <= 12, steps
    assert sum(evenings.values()) <= 150, evenings

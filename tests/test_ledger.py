"""The judge on the cases of ledger.csv: its figures by group do not fall below the floors."""

import re

import ledger
import pytest

# By group: the least share of its wrong cases that are put at their step or line. None may pass,
# and no right case may be refused.
FLOORS = {
    "mutants": 0.99,
    "slips": 0.93,
    "planted": 1.0,
    "two_faults": 0.95,
    "answers": 0.91,
    "growing": 1.0,
    "solutions": 1.0,
    "right": 1.0,
}


@pytest.mark.parametrize("sealed", [False, True])
def test_a_row_says_how_its_code_is_made_and_the_step_of_its_line(sealed):
    styles = ledger.toml(f"ledger{'_sealed' * sealed}")["styles"]
    for row in ledger.rows(sealed):
        group, _, case = row["id"].partition(" ")
        source, words = ledger.made(group, case)
        assert row["source"] == words
        if group in ("mutants", "two_faults"):
            right = styles[case.split()[0]].splitlines()
            wrong = zip(right, source.splitlines(), strict=True)
            steps = [old for old, new in wrong if old.partition("  # s")[0] != new]
            labels = [" ".join(re.findall(r"s(\d+)", line.partition("  # ")[2])) for line in steps]
            assert labels == [step for step in (row["step"], row["step2"]) if step], row["id"]


@pytest.mark.parametrize("every", [16, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_figures_of_each_group_are_not_below_their_floors(every):
    said = [*ledger.asked(ledger.rows()[::every])]
    print(ledger.summary(said))
    counts = ledger.counts(said)
    for group, share in FLOORS.items():
        count = counts[group]
        if every == 1:  # a few rows are no fair share
            assert count["right step"] >= share * count["wrong"], group
        assert not count["wrong that pass"] + count["right that are refused"], group
        assert not count["no verdict"], group

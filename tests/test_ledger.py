"""The judge on the cases of ledger.csv: its figures by group do not fall below the floors."""

import ledger
import pytest

# By group: the least share of its wrong cases that are put at their step or line, how many of them
# may pass, and how many of its right cases may be refused.
FLOORS = {
    "mutants": (0.95, 0, 0),
    "slips": (0.95, 0, 0),
    "planted": (1.0, 0, 0),
    "two_faults": (0.95, 0, 0),
    "answers": (0.95, 0, 0),
    "growing": (1.0, 0, 0),
    "solutions": (1.0, 0, 0),
    "right": (1.0, 0, 0),
}


@pytest.mark.parametrize("sealed", [False, True])
def test_a_row_says_how_its_code_is_made(sealed):
    for row in ledger.rows(sealed):
        group, _, case = row["id"].partition(" ")
        assert row["source"] == ledger.made(group, case)[1]


@pytest.mark.parametrize("every", [10, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_figures_of_each_group_are_not_below_their_floors(every):
    said = [*ledger.asked(ledger.rows()[::every])]
    print(ledger.summary(said))
    counts = ledger.counts(said)
    for group, (share, passed, refused) in FLOORS.items():
        count = counts[group]
        one = every > 1 and share < 1  # a few rows are no fair share
        assert count["right step"] + one >= share * count["wrong"], group
        assert count["wrong that pass"] <= passed, group
        assert count["right that are refused"] <= refused, group
        assert not count["no verdict"], group

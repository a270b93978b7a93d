"""The judge on the cases of ledger.csv: its figures by group do not fall below the floors."""

import ledger
import pytest

# By group: the least share of wrong cases put at their step or line, and how many may pass; how
# many right cases may be refused.
FLOORS = {"mutants": (0.95, 0, 0), "slips": (0.95, 0, 0)}


@pytest.mark.parametrize("sealed", [False, True])
def test_a_row_says_how_its_code_is_made(sealed):
    for row in ledger.rows(sealed):
        assert row["source"] == ledger.words_of(row["group"], row["id"].partition(" ")[2])


@pytest.mark.parametrize("every", [7, pytest.param(1, marks=pytest.mark.nightly)])
def test_the_figures_of_each_group_are_not_below_their_floors(every):
    said = [*ledger.asked(ledger.rows()[3::every])]
    print(ledger.summary(said))
    for group, (share, passed, refused) in FLOORS.items():
        count = ledger.counts(said)[group]
        assert count["right step"] + 1 >= share * count["wrong"], group  # one of a few rows
        assert count["wrong that pass"] <= passed and count["no verdict"] == 0, group
        assert count["right that are refused"] <= refused, group

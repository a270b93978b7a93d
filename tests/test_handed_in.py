"""Whatever Canvas, Moodle or a student calls a file, it is found, and it is known whose it is."""

import json
import os
import zipfile

import pytest
from handed_in import submissions
from match_students import Roster, person_of
from results import results
from submissions import RIGHT, SETUP, WHOLE, cells, checks

from eleven_steps.checks.verdict import Verdict

ROSTER = """Student,ID,SIS User ID,SIS Login ID,Section
"    Points Possible",,,,
"Lovelace, Ada",71,,al1,all
"Pascal, Blaise",72,,bp2,all
"Zo\u00eb Ångström",73,,za3,all
"Lovelace, Byron",74,,bl4,all
"""


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "logins.csv"
    path.write_text(ROSTER, encoding="utf-8-sig")
    return Roster.read(path)


@pytest.mark.parametrize(
    ("name", "login"),
    {
        "al1__05_scores.ipynb": "al1",
        "al1.ipynb": "al1",
        "lovelaceada_71_9931_05_scores.ipynb": "al1",
        "lovelaceada_LATE_71_9931_05_scores-1.ipynb": "al1",
        "adal_71_9931_work.zip": "al1",  # the number is enough
        "Ada Lovelace_2214_assignsubmission_file_05_scores.ipynb": "al1",
        "Ada Lovelace_71_assignsubmission_file_05_scores.ipynb": "al1",
        "Blaise Pascal_72_assignsubmission_onlinetext": "bp2",
        "Zoe\u0308 A\u030angstro\u0308m_9_assignsubmission_file_": "za3",  # letters in two parts
        "Group A-Ada Lovelace_2214_assignsubmission_file_05_scores.ipynb": "al1",  # a team's
        "Team 3-Blaise Pascal_72_assignsubmission_file_": "bp2",
        "Anna-Ada Lovelace_2214_assignsubmission_file_": "Anna-Ada Lovelace_2214",  # somebody else
        "AL1": "al1",
        "lovelace_75_9931_05_scores.ipynb": "lovelace_75",  # two have that name
        "Carl Gauss_2215_assignsubmission_file_": "Carl Gauss_2215",
        "noether": "noether",
    }.items(),
)
def test_downloads_are_known_by_the_roster(roster, name, login):
    student, person = roster.student(person_of(name, "." in name))
    assert student == login
    assert (person.late == "late") is ("_LATE" in name)
    logins = {each.login for each in roster.people}
    assert (person.login in logins) is (login in logins)


@pytest.mark.parametrize("separator", ",;\t")
def test_moodles_participants_are_a_roster(tmp_path, separator):
    path = tmp_path / "participants.csv"
    text = '"First name","Last name","Email address",Groups\nAda,Lovelace,ada@x.edu,\n'
    path.write_text(text.replace(",", separator), encoding="utf-8-sig")  # with a BOM
    person = person_of("Ada Lovelace_2214_assignsubmission_file_x", False)
    assert Roster.read(path).student(person)[0] == "ada@x.edu"


def test_a_roster_without_logins_is_refused(tmp_path):
    (tmp_path / "names.csv").write_text("name\nAda\n")
    with pytest.raises(ValueError, match="login"):
        Roster.read(tmp_path / "names.csv")


def test_who_is_on_the_roster_is_never_without_a_result(tmp_path, roster):
    (tmp_path / "in" / "al1").mkdir(parents=True)
    every, _ = submissions(tmp_path / "in", roster)
    assert {each.student for each in every} == {"al1", "bp2", "za3", "bl4"}
    assert not any(each.notebook for each in every)


def test_zip_files_are_opened_and_what_systems_leave_is_not(tmp_path):
    packed = tmp_path / "ada.zip"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("week 3/05_scores.ipynb", WHOLE)
        archive.writestr("__MACOSX/week 3/._05_scores.ipynb", "\0")
        archive.writestr(".hidden.ipynb", WHOLE)
    folder = tmp_path / "in"
    folder.mkdir()
    with zipfile.ZipFile(tmp_path / "all.zip", "w") as archive:
        archive.write(packed, "ada.zip")
        archive.write(packed, "lovelaceada_71_99_work.zip")
        archive.writestr("__blaise/.work.ipynb", WHOLE)
        archive.writestr(".carl/._work.ipynb", WHOLE)
        archive.writestr("dora__work.pdf", "%PDF")
        archive.writestr("emmy.zip", "no zip at all")
        archive.writestr("notes.txt", "not handed in")
    with zipfile.ZipFile(tmp_path / "all.zip") as archive:
        archive.extractall(folder)
    for place in folder, tmp_path / "all.zip":  # unpacked or as it came
        every, unread = submissions(place)
        names = sorted((each.student, each.notebook, bool(each.cells)) for each in every)
        assert names == [
            (".carl", ".carl/._work.ipynb", True),
            ("__blaise", "__blaise/.work.ipynb", True),
            ("ada", "ada.zip/.hidden.ipynb", True),
            ("ada", "ada.zip/week 3/05_scores.ipynb", True),
            ("dora", "", False),
            ("emmy", "emmy.zip/.ipynb", False),
            ("lovelaceada_71", "lovelaceada_71_99_work.zip/.hidden.ipynb", True),
            ("lovelaceada_71", "lovelaceada_71_99_work.zip/week 3/05_scores.ipynb", True),
        ]
        assert unread == ["notes.txt"]


def test_what_systems_leave_is_named_and_no_student(tmp_path):
    (tmp_path / "__MACOSX").mkdir()
    assert submissions(tmp_path) == ([], ["__MACOSX"])


def taken(tmp_path, files, said):
    """Return the result of one exercise, of files by name with the hour they were changed."""
    for name, hour in files.items():
        path = tmp_path / "ada" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(cells(SETUP, checks("scores.1", RIGHT))))
        os.utime(path, (hour * 3600, hour * 3600))
    every, _ = submissions(tmp_path)
    judged = [(each, {"scores.1": said[each.notebook.partition("/")[2]]}) for each in every]
    (result,) = results(judged, ["scores.1"])
    return result.notebook.partition("/")[2], result.kind


SOLVED, OPEN = Verdict("right", "right."), Verdict("unfinished", "open.")
SLIP = Verdict("mistake", "a slip.")
FIRST, SECOND = "05_scores.ipynb", "05_scores (1).ipynb"


@pytest.mark.parametrize(
    ("hours", "said", "which"),
    [
        ((1, 1), (OPEN, SOLVED), SECOND),  # as it was handed in: the first untouched
        ((2, 1), (OPEN, SOLVED), SECOND),
        ((1, 2), (SOLVED, OPEN), FIRST),
        ((2, 1), (SLIP, SOLVED), FIRST),  # the newest with an answer
        ((1, 1), (SOLVED, SLIP), SECOND),
    ],
)
def test_of_two_downloads_the_newest_with_an_answer_counts(tmp_path, hours, said, which):
    names = FIRST, SECOND
    both = dict(zip(names, said, strict=True))
    found = taken(tmp_path, dict(zip(names, hours, strict=True)), both)
    assert found == (which, both[which].kind)


def test_a_broken_file_costs_its_own_notebook_alone(tmp_path):
    (tmp_path / "ada").mkdir()
    for name, text in {"05_scores.ipynb": "{", "06_mask.ipynb": WHOLE, "work.ipynb": "{"}.items():
        (tmp_path / "ada" / name).write_text(text)
    every, _ = submissions(tmp_path)
    names = ["scores.1", "mask.1", "view.1"]
    broken, none = Verdict("broken", "broken."), Verdict("missing", "none.")
    for leave, kinds in (
        ("work.ipynb", ["broken", "missing", "missing"]),
        ("", ["broken", "broken", "broken"]),  # whose name tells no notebook, it may hold any
    ):
        judged = [
            (each, dict.fromkeys(names, broken if each.broken else none))
            for each in every
            if not leave or not each.notebook.endswith(leave)
        ]
        found = list(results(judged, names))
        assert [each.kind for each in found] == kinds
        # What is wrong with the file of another notebook is not told here.
        assert leave == "" or "05_scores" not in found[1].message + found[2].message


def read_as(tmp_path, name, text):
    """Return what is read of one file that a student hands in."""
    (tmp_path / "ada").mkdir(exist_ok=True)
    (tmp_path / "ada" / name).write_text(text)
    (only,), _ = submissions(tmp_path)
    return only


def test_stored_outputs_count_for_no_size_but_code_and_what_is_read_are_bounded(tmp_path):
    notebook = cells(SETUP, checks("scores.1", RIGHT))
    sources = tuple(each["source"] for each in notebook["cells"])
    output = {"output_type": "stream", "name": "stdout", "text": "x" * 12_000_000}
    notebook["cells"][0]["outputs"] = [output]
    assert read_as(tmp_path, "05_scores.ipynb", json.dumps(notebook)).cells == sources
    output["text"] *= 3
    too_large = read_as(tmp_path, "05_scores.ipynb", json.dumps(notebook))
    assert not too_large.cells and "larger than 30 MB" in too_large.broken
    long = cells("#" * 6_000_000, "#" * 6_000_000)
    assert "10 MB of code" in read_as(tmp_path, "05_scores.ipynb", json.dumps(long)).broken


@pytest.mark.parametrize("odd", ["null", '{"tags": "no solution"}'])
def test_odd_metadata_are_read_as_if_there_were_no_tags(tmp_path, odd):
    text = WHOLE.replace('{"tags": []}', odd)
    assert text != WHOLE and len(read_as(tmp_path, "work.ipynb", text).cells) == 2


def test_what_is_no_notebook_is_told_by_its_name_unless_the_notebook_is_there(tmp_path):
    told = read_as(tmp_path, "05_scores.py", "print()")
    assert "05_scores.py is not a notebook" in told.broken
    read_as(tmp_path, "05_scores.ipynb", WHOLE)
    (tmp_path / "ada" / "notes.txt").touch()
    (tmp_path / "05_scores.csv").touch()  # is no student's
    (only,), unread = submissions(tmp_path)
    assert only.cells and not only.broken and unread == ["05_scores.csv"]


def test_what_canvas_marks_as_late_is_late_in_the_results(tmp_path):
    for name in "lovelaceada_LATE_71_99_05_scores.ipynb", "pascal_72_99_05_scores.ipynb":
        (tmp_path / name).write_text(WHOLE)
    said = {"scores.1": SOLVED, "view.1": Verdict("missing", "none.")}
    found = list(results([(each, said) for each in submissions(tmp_path)[0]], [*said]))
    assert [each.late for each in found] == ["late", "", "", ""]

"""The grader finds right answers right and wrong ones wrong, whatever a submission tries."""

# ruff: noqa: F403, F405 - what is handed in

import contextlib
import csv
import json
import os
import re
import socket
from pathlib import Path

import grade
import pytest
import sandbox
import torch
from handed_in import Submission
from said import typed
from submissions import *

from eleven_steps.checks import check
from helpers.attention import MultiHeadAttention

WHY_NOT = sandbox.find_isolation()[1]
shut_in = pytest.mark.skipif(bool(WHY_NOT), reason=f"nothing shuts submissions in: {WHY_NOT}")


@contextlib.contextmanager
def listening(folder):
    """Open a socket of each kind; yield where they are, and say at the end that nobody called."""
    name = f"grading-{os.getpid()}"
    with (
        socket.socket() as tcp,
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        tcp.bind(("127.0.0.1", 0))
        udp.bind(("127.0.0.1", 0))
        unix.bind(str(folder / "s"))
        abstract.bind(f"\0{name}")
        for each in (tcp, unix, abstract):
            each.listen()
        yield {
            "tcp": tcp.getsockname()[1],
            "udp": udp.getsockname()[1],
            "unix": folder / "s",
            "abstract": name,
        }
        for each, call in ((tcp, tcp.accept), (unix, unix.accept), (abstract, abstract.accept)):
            each.setblocking(False)
            with pytest.raises(BlockingIOError):
                call()
        udp.setblocking(False)
        with pytest.raises(BlockingIOError):
            udp.recv(9)


def graded(folder, out, *options):
    """Grade a folder; return the results by student and exercise, and all that was written."""
    arguments = [str(folder), "--json", str(out), "--cell-seconds", "2", "--memory", "1000"]
    every = "--exercises", *grade.course_exercises()
    assert grade.main([*arguments, *every, *options]) == 0
    written = json.loads(out.read_text("utf-8"))
    return {(each["student"], each["exercise"]): each for each in written["results"]}, written


def content(folder):
    """Return what stands in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo() and path.stat().st_size < 10**6
    }


SOON = "ends", "writes everywhere"  # of what breaks off, what does so at once


@pytest.fixture(scope="module")
def much(tmp_path_factory):
    """Grade what takes long: the course's solutions, and notebooks that hang or take all."""
    top = tmp_path_factory.mktemp("much")
    slow = {name: BREAKING_OFF[name] for name in BREAKING_OFF if name not in SOON}
    hand_in(top / "handed in", solutions() | slow)
    return graded(top / "handed in", top / "out.json", "--processes", "2")


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Hand in all else, and grade it in one run."""
    top = tmp_path_factory.mktemp("grade")
    folder, outside, out = top / "handed in", top / "outside", top / "results" / "out.json"
    outside.mkdir()
    out.parent.mkdir()
    (outside / "kept.txt").write_text("kept")
    notebooks = {}
    for student, names in STUDENTS.items():
        sources = [checks(*ANSWERS[name][:2]) for name in names.values()]
        notebooks[student] = cells(*SET_UP_ANSWERS, *sources)
    notebooks |= {f"rogue {name}": notebook for name, notebook in ROGUES.items()}
    notebooks |= {name: BREAKING_OFF[name] for name in SOON}
    hand_in(folder, notebooks | {"ada": OWN_NUMBERS})
    hand_in_unreadable(folder)
    (folder / "notes.txt").write_text("not handed in")
    (folder / "=1+2__05_scores.ipynb").touch()
    with listening(top) as sockets:
        places = {"outside": outside, "other": folder / "answers 0" / "work.ipynb", "out": out}
        places |= {"home": Path.home(), "root": grade.NOTEBOOKS.parent, "pid": os.getpid()}
        hand_in(folder, {"tries": attempts(places | sockets)})
        before = content(folder), content(outside)
        found, written = graded(
            folder,
            out,
            *("--csv", str(out.with_suffix(".csv")), "--feedback", str(out.with_name("pages"))),
            *("--processes", "2", "--own-numbers", "week6"),
        )
    assert before == (content(folder), content(outside))
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.csv", "out.json", "pages"]
    return found, written, out


def result_of(found, name):
    """Return the result of one of the answers."""
    return next(
        found[student, ANSWERS[name][0]]
        for student, names in STUDENTS.items()
        if names.get(ANSWERS[name][0]) == name
    )


@shut_in
@pytest.mark.parametrize("name", ANSWERS)
def test_the_verdict_is_the_one_that_the_learner_sees(everything, name):
    identifier, answer, kind = ANSWERS[name]
    names = {"torch": torch, "nn": torch.nn, "MultiHeadAttention": MultiHeadAttention}
    for source in CLASSES:
        typed(source, names)
    told = check(identifier, typed(answer, names, "eval"), record=False)
    result = result_of(everything[0], name)
    assert result["kind"] == told.kind == kind
    assert result["mistake"] == told.mistake
    assert result["passed"] is (kind == "right")
    # A lambda's line is longer in the notebook, where it is handed to check.
    said, seen = (re.sub(r"`.*lambda .*`", "", e) for e in (result["message"], told.message))
    assert said == seen


@shut_in
def test_a_wrong_answer_gets_the_line_where_it_goes_wrong(everything):
    result = result_of(everything[0], "unnamed")
    assert "self.head_dim**0.4`" in result["message"].partition("\n")[0]
    assert "Expected: 2.828 = head_dim**0.5." in result["message"] and result["points"] == 6


@shut_in
@pytest.mark.nightly
def test_every_solution_of_the_course_is_right(much):
    found, written = much
    assert written["exercises"] == grade.course_exercises()
    for identifier in written["exercises"]:
        handed_in = [found[student, identifier] for student in solutions()]
        assert any(each["passed"] for each in handed_in), handed_in


@shut_in
@pytest.mark.parametrize("name", ROGUES)
def test_no_wrong_answer_passes(everything, name):
    results = [each for (student, _), each in everything[0].items() if student == f"rogue {name}"]
    assert len(results) == len(everything[1]["exercises"])
    assert not any(each["passed"] for each in results)


@shut_in
def test_a_wrong_answer_is_named_whatever_stands_around_it(everything):
    found = {name: each for (who, name), each in everything[0].items() if who == "rogue odd"}
    assert found["scores.1"]["mistake"] == "scores_transposed"
    kinds = {name: each["kind"] for name, each in found.items()}
    assert kinds["softmax.2"] == kinds["scores.2"] == "value"
    assert kinds["context.1"] == kinds["context.3"] == "missing"


@shut_in
def test_each_is_graded_by_their_own_numbers(everything):
    said = {name: everything[0]["ada", name] for name in MINE}
    assert [each["points"] for each in said.values()] == [2, 0, 0]
    expected = f"these are not your own numbers: those are {MINE['by_hand.4']}."
    assert said["by_hand.4"]["message"] == expected
    assert "These are not the numbers." in said["by_hand.5"]["message"]
    code = tuple("".join(cell["source"]) for cell in OWN_NUMBERS["cells"])
    assert grade.notebooks_asked([Submission("ada", "", code)]) == ["15_by_hand"]


@shut_in
def test_what_a_notebook_tries_outside_comes_to_nothing(everything):
    for identifier in ("scores.2", "scores.1"):  # a cell that reached something says what
        result = everything[0]["tries", identifier]
        assert result["kind"] == "right", result["message"]


def stopped(found, *expected):
    """Say that what stands beside these exercises counts, and why these were stopped."""
    for student, identifier, said in expected:
        assert found[student, "scores.1"]["kind"] == found[student, "scores.2"]["kind"] == "right"
        result = found[student, identifier]
        assert (result["kind"], said in result["message"]) == ("stopped", True), result


@shut_in
def test_a_notebook_that_breaks_off_costs_no_more_than_what_it_stops(everything):
    found = everything[0]
    stopped(found, ("ends", "scores.3", "ended its process"))
    stopped(found, ("writes everywhere", "scores.3", "wrote what is no answer, to a file"))
    assert found["writes everywhere", "context.1"]["passed"]


@shut_in
@pytest.mark.nightly
def test_a_notebook_that_takes_all_or_hangs_costs_no_more_than_what_it_stops(much):
    found, _ = much
    stopped(
        found,
        ("takes", "scores.3", "more than 64 processes"),
        ("takes", "context.1", "the notebook "),  # used too much memory, or took too long
        ("takes", "context.3", "the notebook "),  # returned too much, or took too long
        ("hangs", "scores.3", "within 12 seconds"),
        ("hangs", "context.2", "seconds"),
        ("hangs", "mask.1", "within 12 seconds"),
        ("hangs", "mask.3", "within 12 seconds"),
    )
    assert found["hangs", "context.1"]["message"] == "no end after 2 seconds of running."
    assert "raises NameError: name 'nothing'" in found["hangs", "context.3"]["message"]


@shut_in
def test_what_a_notebook_leaves_running_ends_with_it(everything):
    assert everything[0]["ends", "scores.2"]["passed"]
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            running.append(path.read_bytes())
    assert running
    assert not [command for command in running if ORPHAN.encode() in command]


@shut_in
def test_broken_files_do_not_stop_the_others(everything):
    found, _, out = everything
    broken = "=1+2", *BROKEN, *UNREADABLE
    assert all(found[name, "scores.1"]["kind"] == "broken" for name in broken)
    assert not any(student.startswith("notes") for student, _ in found)
    assert all(found[name, "scores.1"]["kind"] == "missing" for name in NONE)
    said = {"cut": "cut off", "huge": "larger", "link": "link", "pipe": "plain", "none": "no note"}
    assert all(text in found[name, "scores.1"]["message"] for name, text in said.items())
    assert "'=1+2" in out.with_suffix(".csv").read_text("utf-8")


@shut_in
def test_the_files_hold_the_same_in_a_fixed_order(everything):
    _, written, out = everything
    with out.with_suffix(".csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    order = [(each["student"], each["exercise"]) for each in written["results"]]
    assert [(row["student"].lstrip("'"), row["exercise"]) for row in rows] == order
    students = sorted({student for student, _ in order})
    assert order == [(student, name) for student in students for name in written["exercises"]]
    assert [row["passed"] for row in rows] == [str(each["passed"]) for each in written["results"]]
    pages = [each.read_text("utf-8") for each in out.with_name("pages").iterdir()]
    assert len(pages) == len(students)  # whatever they handed in
    assert all(page.count("<h1>") == 1 and page.endswith("</html>") for page in pages)


def test_a_notebook_that_few_hand_in_raises_nobodys_total(capsys):
    every = [
        Submission(name, "", (f'check("{exercise}", 3)',))
        for name, exercise in zip("abcde", ["scores.1"] * 4 + ["mask.1"], strict=True)
    ]
    assert grade.notebooks_asked(every) == ["05_scores"]
    assert "06_mask: handed in by 1 of 5, so it does not count" in capsys.readouterr().err
    assert grade.notebooks_asked(every[3:]) == ["05_scores", "06_mask"]
    assert set(grade.notebooks_asked([])) == set(grade.course_exercises().values())


@pytest.mark.parametrize(
    "refused", [True, pytest.param(False, marks=pytest.mark.nightly)], ids=["refused", "missing"]
)
def test_where_nothing_isolates_only_what_is_trusted_is_graded(
    tmp_path, monkeypatch, capsys, refused
):
    if refused:
        monkeypatch.setattr(sandbox.shutil, "which", lambda name: name == "bwrap")
        no = ["sh", "-c", "echo namespaces are refused >&2; exit 1"]
        monkeypatch.setattr(sandbox, "bubblewrap", lambda *_: no)
    else:
        monkeypatch.setattr(sandbox.shutil, "which", lambda name: None)
    source = f'{checks("scores.1", RIGHT)}\nos.system("sleep {ORPHAN} &")'
    hand_in(tmp_path / "in", {"a": cells(SETUP, source)})
    arguments = [str(tmp_path / "in"), "--json", str(tmp_path / "out.json"), "--processes", "1"]
    assert grade.main(arguments) == 2
    said = capsys.readouterr().err
    assert "nothing is isolated" in said
    assert ("refused" if refused else "not installed") in said
    assert not (tmp_path / "out.json").exists()
    if not refused:
        assert grade.main([*arguments, "--trusted"]) == 0
        assert json.loads((tmp_path / "out.json").read_text())["results"][0]["passed"]
        assert "nothing is isolated" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_without_submissions_nothing_is_written(tmp_path, folder):
    with pytest.raises(SystemExit) as left:
        grade.main([str(tmp_path / folder), "--json", str(tmp_path / "out.json")])
    assert left.value.code == 2
    assert not (tmp_path / "out.json").exists()

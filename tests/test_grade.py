"""The grader finds right answers right and wrong ones wrong, whatever a submission tries."""

import contextlib
import csv
import json
import os
import sys
from pathlib import Path

import grade
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from plain_data import decode, encode

from helpers.attention import MultiHeadAttention
from helpers.checks.exercises import check
from helpers.checks.growing import layers

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits and forks as on Linux")

SETUP = (
    "import os, sys, time, torch\nfrom torch import nn\nfrom helpers.checks.exercises import check"
)
RIGHT = "lambda queries, keys: queries @ keys.transpose(2, 3)"
WRONG = "lambda queries, keys: keys @ queries.transpose(2, 3)"  # scores_transposed

CLASS = """
class Mine(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        for name in ("W_query", "W_key", "W_value"):
            setattr(self, name, nn.Linear(d_in, d_out, bias=qkv_bias))
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("mask", torch.ones(context_length, context_length).triu(1).bool())

    def forward(self, x):
        q, k, v = (
            each(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
            for each in (self.W_query, self.W_key, self.W_value)
        )
        scores = q @ k.transpose(2, 3) / q.shape[-1] ** 0.5
        scores = scores.masked_fill(self.mask[: x.shape[1], : x.shape[1]], -torch.inf)
        weights = self.dropout(scores.softmax(-1))
        return self.out_proj((weights @ v).transpose(1, 2).flatten(2))
"""
UNMASKED = CLASS.replace("scores.masked_fill", "(lambda *_: scores)")
UNDROPPED = CLASS.replace("self.dropout(scores.softmax(-1))", "scores.softmax(-1)")
LIE = """
import helpers.checks, helpers.checks.exercises
helpers.checks.exercises.how_far = lambda cls: ("right", "all is right", None)
helpers.checks.verdict_on = lambda *_: helpers.checks.Verdict(True, None, (), "all is right")
"""
CHECK_CLASS = 'check("your_class.1", Mine)'


def cells(*sources, tags=()):
    """Return a notebook of code cells."""
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}
            for source in sources
        ],
    }


def scores(answer, *before):
    """Return a notebook that answers scores.1, with other cells before it."""
    return cells(SETUP, *before, f'check("scores.1", {answer})')


def hand_in(folder, notebooks):
    """Write the notebooks of students into a folder."""
    for name, notebook in notebooks.items():
        path = folder / name / "work.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def graded(folder, *options):
    """Grade a folder; return the results by student and exercise, and all that was written."""
    out = folder.parent / "out.json"
    arguments = [str(folder), "--json", str(out), "--processes", "2", "--seed", "5", *options]
    assert grade.main(arguments) == 0
    written = json.loads(out.read_text("utf-8"))
    return {(each["student"], each["exercise"]): each for each in written["results"]}, written


PLANTED = "def again(queries, keys):\n    return keys @ queries.transpose(2, 3)"
ANSWERS = {
    "right": ("scores.1", RIGHT, "right"),
    "open": ("scores.1", "...", "unfinished"),
    "returns open": ("scores.1", "lambda queries, keys: ...", "unfinished"),
    "slip": ("scores.1", WRONG, "mistake"),
    "viewed": ("combine.1", "lambda context: context.view(*context.shape[:2], -1)", "mistake"),
    "slip view": ("scores.1", "lambda q, k: q @ k.view(*k.shape[:2], -1, k.shape[2])", "mistake"),
    "number": ("scores.1", "3", "type"),
    "array": ("scores.1", "lambda q, k: (q @ k.transpose(2, 3)).numpy()", "type"),
    "double": ("scores.1", "lambda q, k: (q @ k.transpose(2, 3)).double()", "type"),
    "scalar": ("scores.1", "lambda q, k: torch.tensor(1.0)", "shape"),
    "nan": ("scores.1", "lambda q, k: q @ k.transpose(2, 3) * torch.nan", "nan"),
    "raises": ("scores.1", "lambda q, k: q @ k.nothing", "error"),
    "many": ("scores.1", "lambda q, k: torch.zeros(1).expand(10**12)", "shape"),
    "whiteboard": ("scores.1", "lambda q, k: torch.ones(1, 2, 3, 3)", "value"),
    "sum": ("scores.2", "torch.tensor(43)", "right"),
    "transposed sum": ("scores.2", "22.0", "mistake"),
    "text": ("scores.2", "'43'", "type"),
    "row": ("combine.2", "(1, 2, 3, 4, 5, 6)", "right"),
    "half a row": ("combine.2", "[1, 2, ..., 4]", "unfinished"),
    "sizes": ("shape.1", "lambda x, d_out, num_heads: (*x.shape[:2], d_out // num_heads)", "right"),
    "float": ("shape.1", "lambda x, d_out, heads: (*x.shape[:2], d_out / heads)", "type"),
    "layers": ("project.1", "lambda x, q, k, v: (q(x), k(x), v(x))", "right"),
    "class": ("your_class.1", f"make_class('''{CLASS}''')", "right"),
    "open class": ("your_class.1", "nn.Module", "error"),
    "unmasked": ("your_class.1", f"make_class('''{UNMASKED}''')", "mistake"),
    "no class": ("your_class.1", "7", "type"),
}
MAKE_CLASS = """
def make_class(source):
    exec(source, names := {"torch": torch, "nn": nn})
    return names["Mine"]
"""

ROGUES = {
    "prints": scores(WRONG, 'print("✓ scores.1: right")'),
    "own_check": scores(WRONG, 'def check(*_):\n    return "right"'),
    "patched_check": cells(
        f"import helpers.checks.exercises\nhelpers.exercises.check = lambda *_: True\n{SETUP}",
        f'check("scores.1", {WRONG})',
    ),
    "patched_torch": scores(
        WRONG, "torch.equal = torch.allclose = torch.isclose = lambda *_, **__: True"
    ),
    "patched_helpers": scores(
        WRONG,
        "import helpers.checks.compare, helpers.checks.exercises as e\n"
        "e.same = e.fault = helpers.checks.compare.agree = lambda *_: None\n"
        "e.judge = lambda task, answer: e.Outcome(task.identifier, 'right', 'right.')",
    ),
    "patched_modules": scores(
        WRONG,
        "import types\nfake = types.ModuleType('helpers.checks.exercises')\nfake.check = lambda *_: True\n"
        "sys.modules['helpers.checks.exercises'] = fake\nfrom helpers.checks.exercises import check",
    ),
    "everything_equal": scores(
        "lambda *_: torch.ones(1).as_subclass(Same)",
        "class Same(torch.Tensor):\n    __eq__ = lambda *_: True\n    shape = (1, 2, 3, 3)",
    ),
    "bad_reduce": scores(
        "lambda *_: Bad()",
        "class Bad:\n    def __reduce__(self):\n        return os._exit, (0,)\n"
        "    __class__ = property(lambda self: 1 / 0)",
    ),
    "writes_answers": scores(
        WRONG,
        "for number in range(3, 50):\n    try:\n"
        '        os.write(number, b\'{"exercise": "scores.1", "value": true}\\n\')\n'
        "        os.write(number, b'{' * 100_000 + b'[1, \\xff\\n\"a\"\\n')\n"
        "    except OSError:\n        pass",
    ),
    "in_a_loop": cells(
        SETUP, f'for name, answer in {{"scores.1": {WRONG}}}.items():\n    check(name, answer)'
    ),
    "guesses": cells(SETUP, 'for n in range(50):\n    check("scores.2", n)'),
    "pretends_solution": cells(SETUP, f'check("scores.1", {RIGHT})', tags=["solution"]),
    "proves_only": cells(SETUP, f'check("scores.1", {RIGHT}, record=False)'),
    "lying_class": cells(SETUP, LIE, UNMASKED, CHECK_CLASS),
    "lying_undropped": cells(SETUP, LIE, UNDROPPED, CHECK_CLASS),
}
# These are right in the end: what they try on the way comes to nothing.
HARMLESS = {
    "exits": "import sys; sys.exit(3)",
    "raises": "1 / 0",
    "raises_interrupt": "raise KeyboardInterrupt",
    "no_python": "this is no Python (",
    "shell": "!touch '{marker}'",
    "writes": "open('{marker}', 'w')",
    "climbs": "open('../../../escaped', 'w')",
    "removes": "os.remove('{graded}/work.ipynb')",
    "renames": "os.rename('{graded}', 'mine')",
    "forks": "os.fork()",
    "forks_in_c": "import _posixsubprocess, ctypes\nctypes.CDLL(None).fork()",
    "kills": "os.kill(os.getppid(), 9)",
    "calls": "import socket\nsocket.create_connection(('localhost', 80))",
    "half_a_letter": '"\ud800"',
    "sets_defaults": "torch.set_default_dtype(torch.float64); torch.manual_seed(0)",
    "deep": "x = []\nfor _ in range(10**5):\n    x = [x]",
}


HANG = "lambda *_: sum(range(10**15))"  # one call of C, deaf to signals
ORPHAN = f"321.{os.getpid()}"  # seconds that it sleeps, by which it is known
OTHERS = f'check("scores.1", {RIGHT})', 'check("scores.2", 43)'
BREAKING_OFF = {
    "exits": cells(SETUP, OTHERS[0], "os._exit(0)", OTHERS[1]),
    "exits_in_answer": cells(SETUP, 'check("scores.3", lambda *_: os._exit(0))', *OTHERS),
    "hangs": cells(SETUP, OTHERS[0], "while True:\n    pass", OTHERS[1]),
    "hangs_in_answer": cells(SETUP, OTHERS[0], f'check("scores.3", {HANG})', OTHERS[1]),
    "hoards": cells(SETUP, f"hoard = bytearray(3 * 10**9)\n{OTHERS[0]}", OTHERS[1]),
    "raises": cells(SETUP, OTHERS[0], f"missing = nothing\n{OTHERS[1]}"),
    "sleeps": cells(SETUP, 'check("scores.1", lambda *_: time.sleep(100))', OTHERS[1]),
    "orphans": scores(
        RIGHT,
        "import subprocess\nsys.audit = lambda *_: None\n"
        f"subprocess.Popen(['sleep', '{ORPHAN}'], start_new_session=True)",
    ),
}
WHOLE = json.dumps(scores(RIGHT))
BROKEN = {
    "cut": WHOLE[: len(WHOLE) // 2],
    "empty": "",
    "binary": "\0\ud8ff",
    "list": "[]",
    "no_cells": '{"nbformat": 4}',
    "no_source": '{"cells": [{"cell_type": "code"}]}',
    "odd_cells": '{"cells": [3]}',
    "deep": "[" * 100_000,
}
UNREADABLE = "huge", "link", "pipe", "folder", "none", "link_to_folder"


def hand_in_unreadable(folder):
    """Hand in what is broken as a file, two of them links out of the folder."""
    for name in UNREADABLE[:5]:
        (folder / name).mkdir()
    secret = folder.parent / "secret.ipynb"
    secret.write_text(WHOLE)
    (folder / "huge" / "work.ipynb").touch()
    os.truncate(folder / "huge" / "work.ipynb", grade.LARGEST_FILE + 1)
    (folder / "link" / "work.ipynb").symlink_to(secret)
    os.mkfifo(folder / "pipe" / "work.ipynb")
    (folder / "folder" / "work.ipynb").mkdir()
    (folder / "link_to_folder").symlink_to(folder.parent)


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Hand in everything above, and grade it in one run."""
    folder = tmp_path_factory.mktemp("grade") / "handed in"
    marker = folder.parent / "marker"
    places = {"{marker}": str(marker), "{graded}": str(folder / "rogue prints")}

    def answering(identifier, answer, kind):
        return cells(SETUP, MAKE_CLASS, f'check("{identifier}", {answer})')

    def trying(source):
        for name, place in places.items():
            source = source.replace(name, place)
        return scores(RIGHT, source)

    notebooks = {f"answer {name}": answering(*answer) for name, answer in ANSWERS.items()}
    notebooks |= {f"rogue {name}": notebook for name, notebook in ROGUES.items()}
    notebooks |= {f"harmless {name}": trying(source) for name, source in HARMLESS.items()}
    hand_in(folder, notebooks | BREAKING_OFF)
    for name, text in BROKEN.items():
        (folder / name).mkdir()
        (folder / name / "work.ipynb").write_text(text, "utf-8", errors="surrogatepass")
    hand_in_unreadable(folder)
    (folder / "notes.txt").write_text("not handed in")
    (folder / "=1+2__05_scores.ipynb").write_text(WHOLE)
    before = sorted(folder.rglob("*"))
    found, written = graded(folder, "--csv", str(folder.parent / "out.csv"), "--seconds", "10")
    assert sorted(folder.rglob("*")) == before
    assert not marker.exists()
    return found, written, folder


@pytest.mark.parametrize("name", ANSWERS)
def test_the_verdict_is_the_one_that_the_learner_sees(everything, name):
    identifier, answer, kind = ANSWERS[name]
    names = {"torch": torch, "nn": torch.nn}
    exec(MAKE_CLASS, names)
    told = check(identifier, eval(answer, names), record=False)
    result = everything[0][f"answer {name}", identifier]
    assert result["kind"] == told.kind == kind
    assert result["mistake"] == told.mistake
    assert result["passed"] is (kind == "right")
    if name == "raises":  # here too the line of the notebook's cell is quoted
        assert "in the line `check(" in result["message"]
    elif name != "class":  # whose sentence is check_attention's
        assert result["message"] == told.message


@pytest.mark.parametrize("name", ROGUES)
def test_no_wrong_answer_passes(everything, name):
    results = [each for (student, _), each in everything[0].items() if student == f"rogue {name}"]
    assert len(results) == len(everything[1]["exercises"])
    assert not any(each["passed"] for each in results)


NAMED = "prints", "own_check", "patched_check", "patched_torch", "patched_helpers", "in_a_loop"


@pytest.mark.parametrize("name", NAMED)
def test_a_wrong_answer_is_named_whatever_stands_around_it(everything, name):
    assert everything[0][f"rogue {name}", "scores.1"]["mistake"] == "scores_transposed"


@pytest.mark.parametrize("name", HARMLESS)
def test_what_a_notebook_tries_on_the_way_does_no_harm(everything, name):
    assert everything[0][f"harmless {name}", "scores.1"]["kind"] == "right"


def test_a_class_that_lies_is_caught_by_its_numbers(everything):
    for name in ("lying_class", "lying_undropped"):
        assert "for other weights" in everything[0][f"rogue {name}", "your_class.1"]["message"]


def test_answers_that_are_not_there_are_told_apart(everything):
    found = everything[0]
    assert found["rogue guesses", "scores.1"]["kind"] == "missing"
    assert found["rogue proves_only", "scores.1"]["kind"] == "missing"


def test_the_files_hold_the_same_in_a_fixed_order(everything):
    _, written, folder = everything
    with (folder.parent / "out.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    order = [(each["student"], each["exercise"]) for each in written["results"]]
    assert [(row["student"].lstrip("'"), row["exercise"]) for row in rows] == order
    students = sorted({student for student, _ in order})
    assert order == [(student, name) for student in students for name in written["exercises"]]
    assert [row["passed"] for row in rows] == [str(each["passed"]) for each in written["results"]]


def test_a_notebook_that_breaks_off_costs_no_more_than_what_it_stops(everything):
    found = everything[0]
    kinds = {key: each["kind"] for key, each in found.items()}
    for student in ("exits", "hangs"):
        assert kinds[student, "scores.1"] == "right"
        assert kinds[student, "scores.2"] == "stopped"
    for student in ("exits_in_answer", "hangs_in_answer"):
        assert kinds[student, "scores.1"] == kinds[student, "scores.2"] == "right"
        assert kinds[student, "scores.3"] == "stopped"
    assert "did not end within 10 seconds" in found["hangs", "scores.2"]["message"]
    assert found["hoards", "scores.1"]["message"] == "the cell of this exercise raises MemoryError."
    assert kinds["hoards", "scores.2"] == "right"
    assert "raises NameError: name 'nothing'" in found["raises", "scores.2"]["message"]
    assert found["sleeps", "scores.1"]["message"] == "no end after 5 seconds of running."
    assert kinds["sleeps", "scores.2"] == "right"


def test_what_a_notebook_leaves_running_ends_with_it(everything):
    assert everything[0]["orphans", "scores.1"]["passed"]
    running = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            running.append(path.read_bytes())
    assert running
    assert not [command for command in running if ORPHAN.encode() in command]


def test_broken_files_do_not_stop_the_others(everything):
    found, _, folder = everything
    assert found["=1+2", "scores.1"]["passed"]
    assert all(found[name, "scores.1"]["kind"] == "broken" for name in (*BROKEN, *UNREADABLE))
    assert not any(student.startswith("notes") for student, _ in found)
    said = {"cut": "cut off", "huge": "larger", "link": "link", "pipe": "plain", "none": "no note"}
    assert all(text in found[name, "scores.1"]["message"] for name, text in said.items())
    assert "'=1+2" in (folder.parent / "out.csv").read_text("utf-8")


def test_a_starter_that_is_lost_is_replaced(tmp_path, monkeypatch):
    child = tmp_path / "child.py"
    child.write_text(
        "import pathlib\ninput()\nbefore = pathlib.Path(__file__).with_suffix('.before')\n"
        "if before.exists():\n    print('\"\"')\nbefore.touch()\n"
    )
    monkeypatch.setattr(grade, "CHILD", child)
    starter = grade.Starter(str(tmp_path))
    assert "started it" in starter.run(tmp_path, 1, 10**9)
    assert starter.run(tmp_path, 1, 10**9) == ""
    starter.stop()


def test_a_folder_is_cleared_away_however_deep(tmp_path):
    with grade.scratch(str(tmp_path)) as folder, contextlib.chdir(folder):
        for _ in range(sys.getrecursionlimit() + 100):
            os.mkdir("d")
            os.chdir("d")
    assert not folder.exists()


def test_only_the_end_of_the_progress_goes_into_a_log(capsys):
    grade.show_progress(1, 4)
    assert not capsys.readouterr().err
    grade.show_progress(4, 4)
    assert "] 4 of 4\n" in capsys.readouterr().err


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_without_submissions_nothing_is_written(tmp_path, folder):
    with pytest.raises(SystemExit) as left:
        grade.main([str(tmp_path / folder), "--json", str(tmp_path / "out.json")])
    assert left.value.code == 2
    assert not (tmp_path / "out.json").exists()


def test_the_inputs_are_drawn_and_a_seed_repeats_them():
    known, drawn = grade.draw_places(1), grade.draw_places(2)
    assert known == grade.draw_places(1)
    assert known[: len(grade.PLACES)] == drawn[: len(grade.PLACES)] == grade.PLACES
    for one, other in zip(known[len(grade.PLACES) :], drawn[len(grade.PLACES) :], strict=True):
        assert one != other
        x, y = grade.play(one)["shape"]["x"], grade.play(other)["shape"]["x"]
        assert x.shape != y.shape or not torch.equal(x, y)


def test_a_table_of_numbers_does_not_pass_for_a_function():
    places = grade.draw_places(3)
    task = grade.TASKS["scores.1"]
    known = [encode(grade.play(place)["scores"]["scores"]) for place in places]
    assert grade.judge_answer(task, {"returned": known}, places).passed
    old = [*known[: len(grade.PLACES)], *known[: len(places) - len(grade.PLACES)]]
    assert not grade.judge_answer(task, {"returned": old}, places).passed
    assert not grade.judge_answer(task, {"returned": known[:-1]}, places).passed


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("value", "returned", "class", "late", "outcome", "verdict", "looks", "dropout")
                + ("dtype", "shape", "data", "type", "tuple", "array", "scalar", "failure", "line")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(st.sampled_from(["scores.1", "scores.2", "combine.2", "your_class.1"]), PLAIN)
def test_nothing_that_comes_back_breaks_the_grader_or_passes(identifier, facts):
    submitted = grade.Submission("a", "a.ipynb", (f'check("{identifier}", 0)',))
    done = grade.Run({identifier: facts})
    assert not grade.outcome_of(submitted, done, identifier, grade.PLACES).passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 0, 4)])
def test_tensors_cross_the_border_whole(dtype, shape):
    tensor = torch.ones(4, 3, 2).to(dtype).flatten()[: max(torch.Size(shape).numel(), 0)]
    tensor = tensor.reshape(shape) if torch.Size(shape).numel() else torch.empty(shape, dtype=dtype)
    came = decode(json.loads(json.dumps(encode(tensor))))
    assert came.dtype == dtype
    assert torch.equal(came, tensor)


def test_a_claimed_size_takes_no_memory():
    assert decode({"dtype": "torch.float64", "shape": [10**9, 10**9]}).shape == (10**9, 10**9)


def test_a_right_class_learns_as_the_right_one_does():
    place = grade.PLACES[2]
    scene = grade.play(place)
    out, *_ = grade.forward_and_back(MultiHeadAttention, *grade.scene_of_class(scene))
    assert torch.allclose(out, scene["out_proj"]["out"])
    assert len(grade.scene_of_class(scene)[2]) == len(layers(scene.module))

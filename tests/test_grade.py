"""The grader finds right answers right and wrong ones wrong, whatever a submission tries."""

import contextlib
import csv
import json
import os
import socket
from pathlib import Path

import grade
import grade_one
import handed_in
import pytest
import sandbox
import stage
import torch
from hypothesis import given
from hypothesis import strategies as st

from helpers.attention import MultiHeadAttention
from helpers.checks import check
from helpers.checks.plain import decode, decode_argument, encode, encode_argument
from helpers.trace import STEPS

WHY_NOT = sandbox.find_isolation()[1]
shut_in = pytest.mark.skipif(bool(WHY_NOT), reason=f"nothing shuts submissions in: {WHY_NOT}")

SETUP = "import os, sys, time, torch\nfrom torch import nn\nfrom helpers.checks import check"
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
MAKE_CLASS = """
def make_class(source):
    exec(source, names := {"torch": torch, "nn": nn})
    return names["Mine"]
"""


def cells(*sources, tags=()):
    """Return a notebook of code cells; a pair of a source and tags is one that has tags."""
    pairs = (source if isinstance(source, tuple) else (source, tags) for source in sources)
    return {
        "nbformat": 4,
        "nbformat_minor": 5,
        "metadata": {},
        "cells": [
            {"cell_type": "code", "source": source, "metadata": {"tags": list(tags)}}
            for source, tags in pairs
        ],
    }


def checks(identifier, answer):
    """Return the source that hands an answer in."""
    return f'check("{identifier}", {answer})'


# Each is graded in a notebook with others, and beside it judged here, where it can be seen.
ANSWERS = {
    "right": ("scores.1", RIGHT, "right"),
    "open": ("scores.3", "...", "unfinished"),
    "returns open": ("context.1", "lambda weights, values: ...", "unfinished"),
    "slip": ("scores.1", WRONG, "mistake"),
    "viewed": ("combine.1", "lambda context: context.view(*context.shape[:2], -1)", "mistake"),
    "number": ("context.3", "3", "type"),
    "array": ("transpose.1", "lambda queries: queries.transpose(1, 2).numpy()", "type"),
    "double": ("reformat.1", "lambda context: context.transpose(1, 2).double()", "type"),
    "scalar": ("mask.1", "lambda scores, mask: torch.tensor(1.0)", "shape"),
    "nan": ("mask.3", "lambda scores, mask: scores * torch.nan", "nan"),
    "raises": ("view.1", "lambda queries, num_heads: queries.nothing", "error"),
    "many": ("softmax.1", "lambda *_: torch.zeros(1).expand(10**12)", "shape"),
    "whiteboard": ("scores.3", "lambda q, k: torch.ones(1, 2, 3, 3)", "value"),
    "sum": ("scores.2", "torch.tensor(43)", "right"),
    "transposed sum": ("scores.2", "22.0", "mistake"),
    "text": ("softmax.2", "'8'", "type"),
    "row": ("combine.2", "(1, 2, 3, 4, 5, 6)", "right"),
    "half a row": ("combine.2", "[1, 2, ..., 4]", "unfinished"),
    "sizes": ("shape.1", "lambda x, d_out, num_heads: (*x.shape[:2], d_out // num_heads)", "right"),
    "float": ("shape.1", "lambda x, d_out, heads: (*x.shape[:2], d_out / heads)", "type"),
    "layers": ("project.1", "lambda x, q, k, v: (q(x), k(x), v(x))", "right"),
    "words": ("by_hand.6", "{'argument': 'd_out', 'value': 1}", "right"),
    "half a sheet": ("by_hand.5", "{'Q0': [[1, 2], [5, 6]], 'Q1': ...}", "so far"),
    "built": (
        "by_hand.7",
        "{'mha': MultiHeadAttention(768, 768, 1024, 0.0, 12), 'head_dim': 64, "
        "'parameters': 2360064}",
        "right",
    ),
    "built otherwise": ("by_hand.7", "{'mha': MultiHeadAttention(6, 6, 6, 0.0, 2)}", "value"),
    "class": ("your_class.1", f"make_class('''{CLASS}''')", "right"),
    "unmasked": ("your_class.1", f"make_class('''{UNMASKED}''')", "mistake"),
}
CLASSES = "class", "unmasked"


def students_of_answers():
    """Share the answers out among as few students as can be, none of whom answers twice."""
    students = []
    for name, (identifier, _, _) in ANSWERS.items():
        free = (names for names in students if identifier not in names)
        names = next(free, None)
        if names is None:
            students.append(names := {})
        names[identifier] = name
    return {f"answers {number}": names for number, names in enumerate(students)}


STUDENTS = students_of_answers()
SET_UP_ANSWERS = f"{SETUP}\nfrom helpers.attention import MultiHeadAttention\n{MAKE_CLASS}"

# What stands before a wrong answer changes nothing: all of these end as the mistake that they are.
PATCHES = (
    'print("✓ scores.1: right")',
    "import helpers.checks\nhelpers.checks.check = lambda *_: True",
    "torch.equal = torch.allclose = torch.isclose = torch.Tensor.allclose = lambda *_, **__: True",
    "torch.Tensor.__eq__ = lambda *_: True",
    "import types\nfake = types.ModuleType('helpers.checks')\nfake.check = lambda *_: True\n"
    "sys.modules['helpers.checks'] = fake\nfrom helpers.checks import check",
    'def check(*_):\n    return "right"',
)
FIND_ANSWER = """
import gc
def answer_of(thing):
    try:
        return thing.answer if thing.identifier == "scores.2" else None
    except BaseException:
        return None
from helpers.checks.tasks import TASKS
numbers = [answer_of(thing) for thing in [*gc.get_objects(), TASKS["scores.2"]]]
check("scores.2", next((n for n in numbers if type(n) in (int, float)), 0))
"""
ROGUES = {
    "patched": cells(SETUP, *PATCHES, checks("scores.1", WRONG)),
    "odd": cells(
        SETUP,
        "class Same(torch.Tensor):\n    __eq__ = lambda *_: True\n    shape = (1, 2, 3, 3)",
        checks("scores.1", "lambda *_: torch.ones(1).as_subclass(Same)"),
        "class Bad:\n    def __reduce__(self):\n        return os._exit, (0,)\n"
        "    __class__ = property(lambda self: 1 / 0)",
        checks("scores.3", "lambda *_: Bad()"),
        'for n in range(50):\n    check("softmax.2", n)',
        FIND_ANSWER,
        (checks("context.1", "lambda weights, values: weights @ values"), ["solution"]),
        'check("context.3", lambda weights, values: weights @ values, record=False)',
    ),
    "forges the channel": cells(
        SETUP,
        "for number in range(3, 50):\n    try:\n"
        '        os.write(number, b\'{"exercise": "scores.1", "kind": "right"}\\n\')\n'
        "        os.write(number, b'{\"reply\": ' + b'[' * 100_000 + b'1, \\xff\\n\"a\"\\n')\n"
        "    except OSError:\n        pass",
        checks("scores.1", WRONG),
    ),
}
LOOP = 'for name, answer in {{"scores.1": {}}}.items():\n    check(name, answer)'

# A notebook that tries these, cell by cell: what succeeds is handed in with the last answer.
ATTEMPTS = {
    "rmtree": "import shutil\nshutil.rmtree('{outside}')",
    "torch.save": "torch.save(torch.ones(3), '{outside}/saved.pt')",
    "sqlite": "import sqlite3\nsqlite3.connect('{outside}/data.db').execute('create table t (n)')",
    "from_file": "torch.from_file('{outside}/mapped', shared=True, size=4)",
    "open": "open('{outside}/kept.txt', 'w')",
    "shell": "assert not os.system('echo changed > {outside}/kept.txt')",
    "climb": "open('../../../escaped', 'w')",
    "other": "open('{other}').read()",
    "own": "import glob\nassert [p for p in glob.glob('/**/*.ipynb', recursive=True)]",
    "home": "assert [n for n in os.listdir('{home}') if os.path.isfile('{home}/' + n)]",
    "results": "open('{out}', 'w').write('[]')",
    "course": "assert os.path.exists('{root}/helpers/checks/tasks.py')",
    "tcp": "import socket\nsocket.create_connection(('127.0.0.1', {tcp}), timeout=1)",
    "udp": "import socket\nwith socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:\n"
    "    s.connect(('127.0.0.1', {udp}))\n    s.sendmsg([b'hello'])\n    s.settimeout(0.5)\n"
    "    s.recv(1)",
    "unix": "import socket\nsocket.socket(socket.AF_UNIX).connect('{unix}')",
    "abstract": "import socket\nsocket.socket(socket.AF_UNIX).connect('\\0{abstract}')",
    "raw": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)",
    "packet": "import socket\nsocket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "kill": "os.kill({pid}, 0)",
    "root": "os.setuid(0)",
    "namespace": "import ctypes\nassert not ctypes.CDLL(None).unshare(0x10000000)",
    "memory": "bytearray(10 * 10**9)",
    "tensor": "torch.empty(10 * 10**9, dtype=torch.uint8).fill_(1)",
    "disk": "for n in range(9):\n    open(f'big{n}', 'wb').write(bytes(40_000_000))",
}
# These come to nothing on the way to a right answer.
ON_THE_WAY = (
    "import sys; sys.exit(3)",
    "raise KeyboardInterrupt",
    "this is no Python (",
    "!true",
    "print('x' * 10**8)",
    '"\ud800"',
    "torch.set_default_dtype(torch.float64); torch.manual_seed(0); torch.set_grad_enabled(False)",
    "x = []\nfor _ in range(10**5):\n    x = [x]",
    "while True:\n    try:\n        pass\n    except BaseException:\n        pass",
    "from helpers.checks.paper import PAPERS, practice\npractice('shapes', 3), PAPERS['by_hand.1']",
)
ORPHAN = f"321.{os.getpid()}"  # seconds that it sleeps, by which it is known
OUTLIVE = f"""
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execvp("sleep", ["sleep", "{ORPHAN}"])
    os._exit(0)
os.wait()
"""
# Without the alarm that ends a cell, so that nothing but the limits from outside ends these.
DEAF = "import signal, subprocess\nsignal.signal(signal.SIGALRM, signal.SIG_IGN)"
MANY = f"{DEAF}\nmany = [subprocess.Popen(['sleep', '100']) for _ in range(200)]\ntime.sleep(100)"
HOARD = f"""
{DEAF}
for _ in range(5):
    if os.fork() == 0:
        hoard = b"x" * 400_000_000
        time.sleep(100)
time.sleep(100)
"""
FLOOD = f"""
{DEAF}
import stat
pipes = [n for n in range(3, 99) if os.path.exists(f"/proc/self/fd/{{n}}")]
for n in pipes:
    if stat.S_ISFIFO(os.fstat(n).st_mode) and os.readlink(f"/proc/self/fd/{{n}}"):
        try:
            while True:
                os.write(n, b"x" * 10**6)
        except OSError:
            pass
"""
HANG = "lambda *_: sum(range(10**15))"  # one call of C, deaf to signals
BREAKING_OFF = {
    "ends": cells(
        SETUP,
        checks("scores.1", RIGHT),
        "os._exit(0)",
        checks("scores.3", "lambda *_: os._exit(0)"),
        OUTLIVE,
        checks("scores.2", 43),
    ),
    "takes": cells(
        SETUP,
        checks("scores.1", RIGHT),
        f"{MANY}\n{checks('scores.3', RIGHT)}",
        f"{HOARD}\n{checks('context.1', RIGHT)}",
        f"{FLOOD}\n{checks('context.3', RIGHT)}",
        checks("scores.2", 43),
    ),
    "hangs": cells(
        SETUP,
        LOOP.format(RIGHT),
        checks("scores.3", HANG),
        checks("context.1", "lambda *_: time.sleep(100)"),
        f"while True:\n    pass\n{checks('context.2', 43)}",
        f"missing = nothing\n{checks('context.3', 43)}",
        checks("scores.2", 43),
    ),
}
WHOLE = json.dumps(cells(SETUP, checks("scores.1", RIGHT)))
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


def hand_in(folder, notebooks):
    """Write the notebooks of students into a folder."""
    for name, notebook in notebooks.items():
        path = folder / name / "work.ipynb"
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(notebook), encoding="utf-8")


def hand_in_unreadable(folder):
    """Hand in what is broken as a file, two of them links out of the folder."""
    for name, text in BROKEN.items():
        (folder / name).mkdir()
        (folder / name / "work.ipynb").write_text(text, "utf-8", errors="surrogatepass")
    for name in UNREADABLE[:5]:
        (folder / name).mkdir()
    secret = folder.parent / "secret.ipynb"
    secret.write_text(WHOLE)
    (folder / "huge" / "work.ipynb").touch()
    os.truncate(folder / "huge" / "work.ipynb", handed_in.LARGEST_FILE + 1)
    (folder / "link" / "work.ipynb").symlink_to(secret)
    os.mkfifo(folder / "pipe" / "work.ipynb")
    (folder / "folder" / "work.ipynb").mkdir()
    (folder / "link_to_folder").symlink_to(folder.parent)


def attempts(places):
    """Return the notebook that tries everything and hands in what it reached."""
    tried = [
        f"name = {name!r}\n{source}\nreached.append(name)" for name, source in ATTEMPTS.items()
    ]
    for name, place in places.items():
        tried = [source.replace(f"{{{name}}}", str(place)) for source in tried]
    return cells(
        SETUP,
        "reached = []",
        *tried,
        *ON_THE_WAY,
        f"assert not reached, reached\n{checks('scores.2', 43)}",
        checks("scores.1", RIGHT),
    )


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
    arguments = [str(folder), "--json", str(out), "--cell-seconds", "1", "--memory", "1000"]
    assert grade.main([*arguments, *options]) == 0
    written = json.loads(out.read_text("utf-8"))
    return {(each["student"], each["exercise"]): each for each in written["results"]}, written


def content(folder):
    """Return what stands in a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
        if not path.is_fifo() and path.stat().st_size < 10**6
    }


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """Hand in everything above, and grade it in one run."""
    top = tmp_path_factory.mktemp("grade")
    folder, outside, out = top / "handed in", top / "outside", top / "results" / "out.json"
    outside.mkdir()
    out.parent.mkdir()
    (outside / "kept.txt").write_text("kept")
    notebooks = {}
    for student, names in STUDENTS.items():
        sources = [checks(*ANSWERS[name][:2]) for name in names.values()]
        notebooks[student] = cells(SET_UP_ANSWERS, *sources)
    notebooks |= {f"rogue {name}": notebook for name, notebook in ROGUES.items()}
    hand_in(folder, notebooks | BREAKING_OFF)
    hand_in_unreadable(folder)
    (folder / "notes.txt").write_text("not handed in")
    (folder / "=1+2__05_scores.ipynb").write_text(WHOLE)
    with listening(top) as sockets:
        places = {"outside": outside, "other": folder / "answers 0" / "work.ipynb", "out": out}
        places |= {"home": Path.home(), "root": grade.COURSE.parent, "pid": os.getpid()}
        hand_in(folder, {"tries": attempts(places | sockets)})
        before = content(folder), content(outside)
        found, written = graded(
            folder, out, "--csv", str(out.with_suffix(".csv")), "--processes", "2"
        )
    assert before == (content(folder), content(outside))
    assert sorted(path.name for path in out.parent.iterdir()) == ["out.csv", "out.json"]
    return found, written, out


def result_of(found, name):
    """Return the result of one of the answers."""
    return next(
        found[student, ANSWERS[name][0]]
        for student, names in STUDENTS.items()
        if names.get(ANSWERS[name][0]) == name
    )


@shut_in
@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in CLASSES])
def test_the_verdict_is_the_one_that_the_learner_sees(everything, name):
    identifier, answer, kind = ANSWERS[name]
    names = {"torch": torch, "MultiHeadAttention": MultiHeadAttention}
    told = check(identifier, eval(answer, names), record=False)
    result = result_of(everything[0], name)
    assert result["kind"] == told.kind == kind
    assert result["mistake"] == told.mistake
    assert result["passed"] is (kind == "right")
    if name == "raises":  # here too the line of the notebook's cell is quoted
        assert result["message"].startswith(told.message.removesuffix("."))
    else:
        assert result["message"] == told.message


@shut_in
@pytest.mark.xfail(strict=True, reason="check does not yet ask a stand-in for a class")
@pytest.mark.parametrize("name", CLASSES)
def test_a_class_is_judged_from_outside(everything, name):
    _, source, kind = ANSWERS[name]
    names = {"torch": torch, "nn": torch.nn}
    exec(MAKE_CLASS, names)
    told = check("your_class.1", eval(source, names), record=False)
    result = result_of(everything[0], name)
    assert (result["kind"], result["mistake"]) == (told.kind, told.mistake)
    assert result["passed"] is (kind == "right")


@shut_in
@pytest.mark.parametrize("name", ROGUES)
def test_no_wrong_answer_passes(everything, name):
    results = [each for (student, _), each in everything[0].items() if student == f"rogue {name}"]
    assert len(results) == len(everything[1]["exercises"])
    assert not any(each["passed"] for each in results)


@shut_in
def test_a_wrong_answer_is_named_whatever_stands_around_it(everything):
    assert everything[0]["rogue patched", "scores.1"]["mistake"] == "scores_transposed"


@shut_in
def test_answers_that_are_not_there_are_told_apart(everything):
    kinds = {key: each["kind"] for key, each in everything[0].items()}
    assert kinds["rogue odd", "softmax.2"] == kinds["rogue odd", "scores.2"] == "value"
    assert kinds["rogue odd", "context.1"] == kinds["rogue odd", "context.3"] == "missing"


@shut_in
def test_what_a_notebook_tries_outside_comes_to_nothing(everything):
    for identifier in ("scores.2", "scores.1"):  # a cell that reached something says what
        result = everything[0]["tries", identifier]
        assert result["kind"] == "right", result["message"]


@shut_in
def test_a_notebook_that_breaks_off_costs_no_more_than_what_it_stops(everything):
    found = everything[0]
    for student in BREAKING_OFF:
        assert found[student, "scores.1"]["kind"] == "right"
        assert found[student, "scores.2"]["kind"] == "right"
    for student, identifier, said in (
        ("ends", "scores.3", "ended its process"),
        ("takes", "scores.3", "more than 64 processes"),
        ("takes", "context.1", "more than 1000 MB"),
        ("takes", "context.3", "the notebook "),  # returned too much, or took too long
        ("hangs", "scores.3", "within 3 seconds"),
        ("hangs", "context.2", "seconds"),
    ):
        result = found[student, identifier]
        assert (result["kind"], said in result["message"]) == ("stopped", True), result
    assert found["hangs", "context.1"]["message"] == "no end after 1 seconds of running."
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
    assert found["=1+2", "scores.1"]["passed"]
    assert all(found[name, "scores.1"]["kind"] == "broken" for name in (*BROKEN, *UNREADABLE))
    assert not any(student.startswith("notes") for student, _ in found)
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


def test_every_exercise_is_graded():
    steps = {f"{step}.{number}" for step in STEPS for number in (1, 2, 3)}
    sheet = {f"by_hand.{number}" for number in range(1, 8)}
    every = grade.course_exercises()
    assert len(every) == len(set(every))
    assert set(every) == steps | sheet | {"your_class.1"}
    assert all(grade.known(identifier) for identifier in every)
    assert not grade.known("scores.4")


@pytest.mark.parametrize("refused", [True, False], ids=["refused", "missing"])
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


def test_results_are_whole_or_the_old_ones(tmp_path):
    path = tmp_path / "out.json"
    path.write_text("old")
    with pytest.raises(RuntimeError), grade.replacing(path) as file:
        file.write("half")
        raise RuntimeError
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out.json"]


def test_what_is_shut_in_gets_no_module_with_an_answer(tmp_path):
    stage.stage(tmp_path)
    there = {path.stem for path in (tmp_path / "helpers" / "checks").glob("*.py")}
    assert {"elsewhere", "observe", "plain"} < there
    assert not there & {"tasks", "paper", "mistakes", "exercises", "answers", "scenes", "cases"}
    assert not list(tmp_path.rglob("*.ipynb"))


class Elsewhere:
    """An answer that is asked; it keeps the questions."""

    def __init__(self, function):
        self.function, self.questions = function, []

    def ask(self, question):
        from helpers.checks.observe import reply

        self.questions.append(json.dumps(question))
        return reply(self.function, json.loads(self.questions[-1]))


def test_a_stand_in_is_asked_something_new_each_time():
    answers = [Elsewhere(lambda queries, keys: queries @ keys.transpose(2, 3)) for _ in range(2)]
    assert all(check("scores.1", answer, record=False) for answer in answers)
    assert answers[0].questions != answers[1].questions


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ("value", "returned", "callable", "error", "late", "names", "sizes", "bias")
                + ("dtype", "shape", "data", "type", "tuple", "array", "scalar", "failure", "line")
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


class Forger:
    """A sandbox in which every reply is forged."""

    def __init__(self, fact):
        self.fact = fact

    def tell(self, fact, seconds):
        pass

    def hear(self, seconds):
        return self.fact


@given(st.sampled_from(["scores.1", "combine.2", "by_hand.1", "by_hand.7", "your_class.1"]), PLAIN)
def test_nothing_that_comes_back_breaks_the_grader_or_passes(identifier, forged):
    for fact in {"reply": forged}, {"reply": {"value": forged, "callable": True}}:
        assert not grade_one.judge(identifier, Forger(fact), grade_one.Limits()).passed


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.bool, torch.complex64])
@pytest.mark.parametrize("shape", [(), (0,), (2, 3), (1, 0, 4)])
def test_tensors_cross_the_border_whole(dtype, shape):
    tensor = torch.ones(4, 3, 2).to(dtype).flatten()[: max(torch.Size(shape).numel(), 0)]
    tensor = tensor.reshape(shape) if torch.Size(shape).numel() else torch.empty(shape, dtype=dtype)
    came = decode(json.loads(json.dumps(encode(tensor))))
    assert came.dtype == dtype
    assert torch.equal(came, tensor)


def test_arguments_keep_their_strides_and_layers_their_bias():
    tensor = torch.arange(24.0).view(2, 3, 4).transpose(1, 2)
    came = decode_argument(json.loads(json.dumps(encode_argument(tensor))))
    assert came.stride() == tensor.stride()
    assert torch.equal(came, tensor)
    for bias in (True, False):
        layer = torch.nn.Linear(2, 3, bias=bias)
        came = decode_argument(json.loads(json.dumps(encode_argument(layer))))
        assert torch.equal(came(torch.ones(2)), layer(torch.ones(2)))


def test_a_claimed_size_takes_no_memory():
    assert decode({"dtype": "torch.float64", "shape": [10**9, 10**9]}).shape == (10**9, 10**9)
    module = decode({"sizes": [6, 6, 10**9, 2], "bias": False})
    assert (module.context_length, module.mask.numel()) == (10**9, 1)


def test_what_is_written_down_crosses_the_border():
    answer = {"mha": MultiHeadAttention(4, 6, 5, 0.5, 2, qkv_bias=True), "W": [[1, 2.5], [..., 0]]}
    came = decode(json.loads(json.dumps(encode(answer | {"shape": ("B", "n"), "odd": object()}))))
    assert came["W"] == answer["W"]
    assert came["shape"] == ("B", "n")
    assert type(came["odd"]).__name__ == "object"
    sizes = "d_in", "d_out", "context_length", "num_heads"
    assert [getattr(came["mha"], name) for name in sizes] == [4, 6, 5, 2]
    assert came["mha"].W_query.bias is not None

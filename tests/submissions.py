"""What the tests hand in: right and wrong answers, and whatever else a submission may try."""

import json
import os

import handed_in
from attention_variants import CLASS
from own_numbers import own
from renew import COURSE, read
from test_own_numbers import OWN, answer

SETUP = "import os, sys, time, torch\nfrom torch import nn\nfrom eleven_steps.checks import check"
RIGHT = "lambda queries, keys: queries @ keys.transpose(2, 3)"
WRONG = "lambda queries, keys: keys @ queries.transpose(2, 3)"  # scores_transposed

UNMASKED = CLASS.replace("Mine", "Unmasked").replace("hidden, -", "hidden & False, -")
UNNAMED = CLASS.replace("Mine", "Unnamed").replace("head_dim**0.5", "head_dim**0.4")
TEST = (
    "lambda cls: (torch.manual_seed(1), mha := cls(5, 12, 9, 0.5, 3).eval(), x := "
    "torch.randn(2, 7, 5), h := mha.W_query.out_features // 4, torch.allclose(mha(x), "
    "mha.out_proj(torch.nn.functional.scaled_dot_product_attention(*(layer(x).unflatten(-1, "
    "(h, 4)).transpose(1, 2) for layer in (mha.W_query, mha.W_key, mha.W_value)), "
    "is_causal=True).transpose(1, 2).flatten(2)), atol=1e-5))[-1]"
)


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
    "number": ("context.3", "3", "type"),
    "raises": ("view.1", "lambda queries, num_heads: queries.nothing", "error"),
    "many": ("softmax.1", "lambda *_: torch.zeros(1).expand(10**12)", "shape"),
    "built": (
        "by_hand.7",
        "{'mha': MultiHeadAttention(768, 768, 1024, 0.0, 12), 'head_dim': 64, "
        "'parameters': 2360064}",
        "right",
    ),
    "test": ("the_test.1", TEST, "right"),
    "test without a mask": ("the_test.1", TEST.replace("is_causal=True", "scale=1"), "value"),
    "hostile": (
        "scores.3",
        "lambda q, k: [type('H', (), {'__class__': property(exit)})()]",
        "type",
    ),
    "not rescaled": ("many.5", "lambda a, b: (a[2] + b[2]) / (a[1] + b[1])", "mistake"),
    "class": ("your_class.1", "Mine", "right"),
    "unmasked": ("your_class.1", "Unmasked", "mistake"),
    "unnamed": ("your_class.1", "Unnamed", "value"),
}
CLASSES = CLASS, UNMASKED, UNNAMED


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


def solutions():
    """Return what hands in the solutions of the course, a quarter by each of four students."""
    paths = list(COURSE.values())
    return {f"solutions {i}": solutions_of(paths[i::4]) for i in range(4)}


def solutions_of(paths):
    """Return a notebook that hands in the solutions of some notebooks."""
    sources = []
    for path in paths:
        code = [cell for cell in read(path).cells if cell.cell_type == "code"]
        solved = [cell for cell in code if "solution" in cell.metadata.get("tags", [])]
        if "15_" in path.name:  # which works out its solutions along the way
            solved = code
        sources += [code[0].source]
        sources += [cell.source.replace(", record=False", "") for cell in solved]
    return cells("from torch import nn", *sources)


STUDENTS = students_of_answers()
SET_UP_ANSWERS = f"{SETUP}\nfrom helpers.attention import MultiHeadAttention", *CLASSES

# What stands before a wrong answer changes nothing: all of these end as the mistake that they are.
PATCHES = (
    'print("✓ scores.1: right")',
    "import eleven_steps.checks\neleven_steps.checks.check = lambda *_: True",
    "torch.equal = torch.allclose = torch.isclose = torch.Tensor.allclose = lambda *_, **__: True",
    "torch.Tensor.__eq__ = lambda *_: True",
    "import types\nfake = types.ModuleType('eleven_steps.checks')\nfake.check = lambda *_: True\n"
    "sys.modules['eleven_steps.checks'] = fake\nfrom eleven_steps.checks import check",
    'def check(*_):\n    return "right"',
)
FIND_ANSWER = """
import gc
def answer_of(thing):
    try:
        return thing.answer if thing.identifier == "scores.2" else None
    except BaseException:
        return None
try:
    from eleven_steps.checks.exercises import TASKS
except ImportError:
    TASKS = {"scores.2": None}
numbers = [answer_of(thing) for thing in [*gc.get_objects(), TASKS["scores.2"]]]
check("scores.2", next((n for n in numbers if type(n) in (int, float)), 0))
"""
ROGUES = {
    "odd": cells(
        SETUP,
        "class Same(torch.Tensor):\n    __eq__ = lambda *_: True\n    shape = (1, 2, 3, 3)",
        checks("mask.1", "lambda *_: torch.ones(1).as_subclass(Same)"),
        "class Bad:\n    def __reduce__(self):\n        return os._exit, (0,)\n"
        "    __class__ = property(lambda self: 1 / 0)",
        checks("scores.3", "lambda *_: Bad()"),
        'for n in range(50):\n    check("softmax.2", n)',
        FIND_ANSWER,
        (checks("context.1", "lambda weights, values: weights @ values"), ["solution"]),
        'check("context.3", lambda weights, values: weights @ values, record=False)',
        *PATCHES,
        checks("scores.1", WRONG),
    ),
    "forges the channel": cells(
        SETUP,
        "for number in range(3, 50):\n    try:\n"
        "        name = 'practice.columns.' + '1' * 5000\n"
        '        os.write(number, b\'{"exercise": "%s"}\\n\' % name.encode())\n'
        '        os.write(number, b\'{"exercise": "scores.1", "kind": "right"}\\n\')\n'
        "        os.write(number, b'{\"reply\": ' + b'[' * 100_000 + b'1, \\xff\\n\"a\"\\n')\n"
        "    except OSError:\n        pass",
        checks("scores.1", WRONG),
    ),
}
MINE, THEIRS = (own("week6", who, OWN) for who in ("ada", "blaise"))
OWN_NUMBERS = (
    cells(  # a right one, then the sheet's; a copied one; one whose numbers are not its own
        SETUP,
        checks(MINE["by_hand.3"], answer(MINE["by_hand.3"])),
        checks("by_hand.3", answer(MINE["by_hand.3"])),
        checks(THEIRS["by_hand.4"], answer(THEIRS["by_hand.4"])),
        checks(MINE["by_hand.5"], answer(THEIRS["by_hand.5"])),
    )
)
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
    "course": "assert os.path.exists('{root}/eleven_steps/checks/exercises.py')",
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
    "environment": "assert open('/proc/1/environ').read()",
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
    "from eleven_steps.checks.paper import papers\npapers()['by_hand.1']",
)
ORPHAN = f"321.{os.getpid()}"  # seconds that it sleeps, by which it is known
SELF_CHECK = f"""
from eleven_steps.checks import check_attention
assert check_attention(nn.Linear) and check_attention(nn.Linear).passed
{checks("scores.1", RIGHT)}
"""
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
SWALLOW = """
def swallow(*_):
    while True:
        try:
            time.sleep(0.1)
        except BaseException:
            pass
"""
EVERYWHERE = r"""
def write_everywhere():
    for number in range(1, 50):
        try:
            os.write(number, b"\x00\xff 7\n[7]\n")
        except OSError:
            pass
"""
BREAKING_OFF = {
    "ends": cells(
        SETUP,
        SELF_CHECK,
        "os._exit(0)",
        checks("scores.3", "lambda *_: os._exit(0)"),
        OUTLIVE,
        checks("scores.2", 43),
    ),
    "writes everywhere": cells(
        SETUP,
        checks("scores.1", RIGHT),
        EVERYWHERE,
        checks("scores.3", f"lambda *given: write_everywhere() or ({RIGHT})(*given)"),
        checks("context.1", "lambda weights, values: weights @ values"),
        "write_everywhere()",
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
        f"{SWALLOW}\n{checks('mask.1', 'swallow')}",
        f"swallow()\n{checks('mask.3', 43)}",
        f"while True:\n    pass\n{checks('context.2', 43)}",
        f"missing = nothing\n{checks('context.3', 43)}",
        checks("scores.2", 43),
    ),
}
WHOLE = json.dumps(cells(SETUP, checks("scores.1", RIGHT)))
BROKEN = {
    "cut": WHOLE[: len(WHOLE) // 2],
    "empty": "",
    "list": "[]",
    "a_dictionary": '{"cells": [{"cell_type": "code", "source": {"check": 1}}]}',
    "odd_cells": '{"cells": [3]}',
    "deep": "[" * 100_000,
}
UNREADABLE = "huge", "link", "pipe"
NONE = "folder", "none", "link_to_folder"


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
    for name in (*UNREADABLE, *NONE[:2]):
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

"""python -m eleven_steps.checks, as an engineer calls it: which file, status and message."""

import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import theirs as others
from attention_variants import CLASS

from eleven_steps.checks import __main__ as shell
from eleven_steps.checks.verdict import Verdict

ROOT = Path(__file__).parents[1]
MODEL = "import torch\nfrom torch import nn\n\n" + CLASS.replace("Mine", "Attention")
WRONG = MODEL.replace("triu(1)", "triu(2)")
DECLARED = (
    Path(others.__file__).read_text("utf-8")
    + """
from eleven_steps.checks import declare

declared = declare(
    build=lambda d_in, d_out, context_length, dropout, num_heads, qkv_bias=False: SelfAttention(
        d_in, d_out, num_heads, dropout, qkv_bias
    ),
    state=lambda mha: {
        f"{theirs}.{name}": tensor
        for theirs, ours in zip(["q_proj", "k_proj", "v_proj", "o_proj"], mha.children())
        for name, tensor in ours.named_parameters()
    },
)
"""
)


def ask(folder, *arguments, **environment):
    """Run the command in a folder."""
    command = [sys.executable, "-m", "eleven_steps.checks", *arguments]
    given = os.environ | {"PYTHONPATH": str(ROOT)} | environment
    return subprocess.run(command, cwd=folder, env=given, text=True, capture_output=True)


def verdicts(said):
    """Read what --json prints, a target a line."""
    return [json.loads(line) for line in said.stdout.splitlines()]


@pytest.fixture(scope="module")
def theirs(tmp_path_factory):
    """Somebody's files, among them names that others have too."""
    folder = tmp_path_factory.mktemp("theirs")
    files = {
        "right/model.py": "from parts import diagonal\n" + MODEL.replace("(1)", "(diagonal)"),
        "right/parts.py": "diagonal = 1",
        "wrong/model.py": "from parts import diagonal\n" + MODEL.replace("(1)", "(diagonal)"),
        "wrong/parts.py": "diagonal = 2",
        "theirs.py": DECLARED,
        "random.py": WRONG,
        "torch.py": WRONG,
        "use.py": "from helpers.attention import MultiHeadAttention",
        "helpers/__init__.py": "",
        "helpers/attention.py": "from .parts import Attention as MultiHeadAttention",
        "helpers/parts.py": WRONG,
        "numpy/__init__.py": "from .model import Attention",
        "numpy/model.py": WRONG,
        "boom.py": "raise RuntimeError('a driver is \\x1b[2J missing')",
        "leaves.py": "import sys\nsys.exit(0)",
        "gone.py": "import os\nos._exit(0)",
        "crash.py": "import ctypes\nctypes.string_at(0)",
        "keys.py": "raise KeyboardInterrupt",
        "lacks.py": "import nothing_of_that_name",
        "slip.py": "class Attention(:",
        "things.py": "print('noise')\nimport torch\nX, L = 3, torch.nn.Linear\nclass P: pass\n"
        "class Needs(torch.nn.Module):\n  def __init__(self, a, b, c): pass\n",
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_what_cannot_be_judged_stops_no_other_and_says_why(theirs):
    why = {
        "boom.py:A": r"RuntimeError: a driver is \\x1b\[2J missing in `raise",
        "leaves.py:A": "SystemExit: 0 in `sys.exit\\(0\\)`",
        "gone.py:A": "ends with status 0",
        "crash.py:A": "ends with SIGSEGV",
        "keys.py:A": "KeyboardInterrupt",
        "lacks.py:A": "No module named 'nothing_of_that_name' in `import nothing_of_that_name`",
        "slip.py:A": "SyntaxError",
        "things.py:X": "X is of type int",
        "things.py:P": "P is of type type",
        "things.py:Attention": "there is no Attention in things.py: it has Needs",
        "things.py:Needs": "a=\\.\\.\\., b=\\.\\.\\., c=\\.\\.\\.",
        "things.py:L": "bias=True",
        "theirs.py:SelfAttention": '"q_proj.weight": mha.W_query.weight,  # .12, 12.\n',
        "nowhere.py:A": "there is no file nowhere.py",
        "torch.nowhere:A": "No module named 'torch.nowhere'",
        "model.py": "FILE.py:NAME or package.module:NAME is expected",
    }
    judged = [f"{file}:Attention" for file in ("right/model.py", "wrong/model.py", "torch.py")]
    said = ask(theirs, *why, *judged, "--json")
    assert said.returncode == 2 and "Traceback" not in said.stderr + said.stdout
    assert "noise" not in said.stdout and "\x1b" not in said.stdout
    found = verdicts(said)
    assert [each["target"] for each in found] == [*why, *judged]
    assert {each["verdict"] for each in found[: len(why)]} == {"not judged"}
    assert [each["step"] for each in found[len(why) :]] == [None, 6, 6]
    assert [each["verdict"] for each in found[len(why) :]] == ["right", "wrong", "wrong"]
    for each, reason in zip(found, why.values(), strict=False):
        assert re.search(reason, each["message"]), each


VERDICTS = {
    "right": Verdict("right", "All agree."),
    "wrong": Verdict("mistake", wrong="The scores are not scaled.", step=7),
    "neither": Verdict("unread", "It cannot be read."),
}


@pytest.fixture
def judged(monkeypatch):
    """The shell, whose targets are judged as VERDICTS says."""
    monkeypatch.setattr(shell, "judge_apart", lambda target, **_: VERDICTS[target])
    return shell.main


@pytest.mark.parametrize(
    ("targets", "status"), [(["right"], 0), (["wrong", "right"], 1), (["neither", "wrong"], 2)]
)
def test_the_status_is_that_of_the_worst(targets, status, judged, capsys):
    assert judged(targets) == status
    assert capsys.readouterr().out.count("✗") == targets.count("wrong")


def test_without_a_terminal_that_can_show_it_all_is_said(judged, monkeypatch):
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(kept := io.BytesIO(), "ascii"))
    judged(["neither", "right"])
    sys.stdout.flush()
    said = kept.getvalue().decode()
    assert said.startswith("? neither: not judged\n") and "\x1b" not in said
    assert r"\u2713 right: right" in said

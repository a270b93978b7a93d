"""The scripts of pictures that answer: each a module of files that know nothing of each other."""

import re
import shutil
import subprocess

import pytest

from helpers.sliders.arcs import Arcs
from helpers.sliders.drag import Drag
from helpers.sliders.motion import Move
from helpers.sliders.source import LinkedSource
from helpers.sliders.touch import Touch

PICTURES = [Arcs, Drag, LinkedSource, Move, Touch]
each_picture = pytest.mark.parametrize("picture", PICTURES, ids=lambda each: each.__name__)
DECLARED = re.compile(r"^(?:async )?(?:function|class|const|let) (.*)", re.MULTILINE)


def names(module):
    """List the names that a module declares for itself, as often as it does."""
    found = []
    for line in DECLARED.findall(module):
        first, *others = re.split(r", (?=\w+ = )", line)
        found += [re.match(r"\w+", each)[0] for each in (first, *others)]
    return found


@each_picture
def test_no_name_is_declared_twice(picture):
    declared = names(picture._esm)
    assert "render" in declared and len(declared) > 5
    assert sorted(declared) == sorted(set(declared))


def test_a_name_that_is_declared_twice_is_found():
    assert names("const ONE = 1, TWO = 2;\nfunction one() {\n  const ONE = 1;\n}\nlet ONE;") == [
        *("ONE", "TWO", "one", "ONE"),
    ]


@each_picture
def test_what_a_module_calls_it_declares(picture):
    shared = r"(?<![.\w])(on[A-Z]\w+|ask|pin|press|turnTo|fit|scroll|MARGIN|NO_KERNEL)\b"
    assert set(re.findall(shared, code(picture))) <= set(names(picture._esm))


def code(picture):
    """Return a module without its comments and texts."""
    return re.sub(r"//.*|\"[^\"\n]*\"|`[^`]*`", "", picture._esm)


@each_picture
def test_it_is_a_module(picture):
    node = shutil.which("node")
    if not node:
        pytest.skip("no node on this machine to read it")
    options = ["--input-type=module", "--check"]
    read = subprocess.run([node, *options, "-"], input=picture._esm, capture_output=True, text=True)
    assert not read.returncode, read.stderr

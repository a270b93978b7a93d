"""Every script that may be called says what it is for, and does nothing else, if asked so."""

import re
import runpy
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = [
    path
    for path in sorted((ROOT / "tools").rglob("*.py"))
    if '__name__ == "__main__"' in path.read_text("utf-8")
]


@pytest.mark.parametrize("path", TOOLS, ids=lambda path: path.stem)
def test_it_answers_help(path, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [str(path), "--help"])
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = set(ROOT.iterdir())
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(path), run_name="__main__")
    said = " ".join(capsys.readouterr().out.split())
    (first,) = re.findall(r'\A"""(.+?)(?:"""|\n)', path.read_text("utf-8"))
    assert not left.value.code and said.startswith("usage: ") and first.rstrip(":") in said
    assert set(ROOT.iterdir()) == before

"""Judge attention as packages ship it, unmodified: right classes, and releases with a mistake.

    python bench/in_the_wild.py [WORDS ...]     # only rows whose package or class has one of these
    python bench/in_the_wild.py --transformers  # all attention classes of the installed one, bare

Each row's package is fetched from the registry, with what it needs and in these versions, into a
folder of its own in the user's cache, and judged in a process of its own beside the course's torch;
nothing is installed where the course is. What no class here computes with is stood in for. Exit
status 1 if a row is not as expected, or could not run, or none ran.

Not here, though told in threads: mistakes in repositories that were never on the registry, or
written for MXNet, Paddle, TensorFlow or JAX; fuxictr and monai-generative, whose first releases
there are after the mend; xformers' of 2021, which would have to be compiled; labml-nn's
AttentionBlock, which runs with one head alone; and memory-compressed-attention, which has a key
more than attention.
"""

import importlib.machinery
import json
import os
import subprocess
import sys
import tempfile
import threading
import warnings
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from unittest import mock

import wild_transformers
from wild_rows import ROWS, TABLE, Row

from eleven_steps.checks import check_attention

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eleven-steps-in-the-wild"
SECONDS = 900  # for a row, on a busy machine too
AT_ONCE = 2  # rows


# Fetching: each folder once, by whichever row comes first

LOCKS: dict[str, threading.Lock] = defaultdict(threading.Lock)


def needs(name: str) -> Iterator[str]:
    """The packages that wild.toml names under a name, those of its groups one by one."""
    for word in TABLE["needs"].get(name, "").split():
        yield from [word] if "==" in word else needs(word)


def folders(package: str) -> list[Path]:
    name = package if package in TABLE["needs"] else package.partition("==")[0]
    return [fetched(one) for one in [package, *needs(name)] if "==" in one]


def fetched(package: str) -> Path:
    """The folder that pip puts a package into; it is there whole, or not at all."""
    folder = CACHE / package
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    with LOCKS[package]:
        if not folder.exists():
            CACHE.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(dir=CACHE, ignore_cleanup_errors=True) as part:
                subprocess.run([*pip, part, package], check=True, capture_output=True, text=True)
                Path(part).rename(folder)
    return folder


class StandIn:
    """Makes modules that hold anything, in place of those that are stood in for."""

    def find_spec(self, name, path=None, target=None):
        stands = name.partition(".")[0] in TABLE["stood_in"]
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if stands else None

    def create_module(self, spec):
        return mock.MagicMock(__spec__=spec, __path__=[], __version__="0.28.0", __all__=[])

    def exec_module(self, module):
        pass


# Judging


def judge(row: Row) -> dict[str, Any]:
    """In a process of its own: what check_attention says of a row's class."""
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, StandIn())
    said = check_attention(row.build() if row.unaided else row.build, **row.options)
    return {"kind": said.kind, "step": said.step, "text": said.message, "note": said.note}


def result(name: str) -> dict[str, Any]:
    """What is said of a row, or why nothing is."""
    try:
        path = os.pathsep.join(map(str, [ROOT, *folders(ROWS[name].package)]))
        done = subprocess.run(
            [sys.executable, __file__, "--row", name],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=True,
        )
        return json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        text = (getattr(error, "stderr", None) or str(error)).strip()[-300:]
        return {"kind": "not run", "step": None, "text": text, "note": ""}


def as_expected(row: Row, said: dict[str, Any]) -> bool:
    """Whether a right class passes, or a wrong one is wrong at one of its steps."""
    if row.says:
        return said["kind"] == "unread" and row.says in said["text"]
    if said["kind"] in ("not run", "unread", "failed"):
        return False
    return said["kind"] == "right" if row.is_right else said["step"] in row.steps


def main() -> int:
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(judge(ROWS[sys.argv[2]])))
        return 0
    if sys.argv[1:2] == ["--transformers"]:
        return wild_transformers.main(sys.argv[2:])
    asked = [name for name in ROWS if not sys.argv[1:] or any(w in name for w in sys.argv[1:])]
    form, good = "{:34} {:32} {:24} {:6} {:8} {:4} {:8} {}", 0
    print(form.format("package", "class", "asked", "is", "verdict", "step", "expected", "ok"))
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name, said in zip(asked, pool.map(result, asked), strict=True):
            row = ROWS[name]
            ok = as_expected(row, said)
            good += ok
            expected = " or ".join(map(str, row.steps)) or "-"
            verdict = said["kind"] if said["kind"] in ("right", "not run", "unread") else "wrong"
            truth, step = "right" if row.is_right else "wrong", said["step"] or "-"
            asked_as = row.package, row.name, row.asked
            line = *asked_as, truth, verdict, step, expected, "ok" if ok else "NOT"
            print(form.format(*line), flush=True)
            if not ok or row.source:
                print(f"    {said['text']} {said['note']}")
            if row.source:
                print(f"    told: {row.source}")
    print(f"{good} of {len(asked)} rows as expected")
    return 0 if asked and good == len(asked) else 1


if __name__ == "__main__":
    sys.exit(main())

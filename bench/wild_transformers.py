"""Every attention class of transformers, asked bare: what check_attention says, and how long.

    python bench/in_the_wild.py --transformers [WORDS ...]

Those whose code differs by no more than names count once. Each is asked in a process of its own,
which is stopped after SECONDS, so that a crash is a row like any other. Exit status 1 where one
crashed or was not done in time.
"""

import argparse
import ast
import collections
import importlib
import importlib.metadata
import multiprocessing
import re
import time
from pathlib import Path
from typing import Any

import torch

from eleven_steps.checks import check_attention

SECONDS = 900  # of the wall, for a class, on a busy machine too
FAILED = "crash", "too long"


def classes() -> list[str]:
    """The attention classes of the package, model:Name, one of those that are alike."""
    found = importlib.util.find_spec("transformers")
    if found is None:
        return []
    alike: dict[str, str] = {}
    for path in sorted(Path(found.origin).parent.glob("models/*/modeling_*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef) and node.name.endswith("Attention"):
                code = [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]
                if {"__init__", "forward"} & {function.name for function in code}:
                    name = f"{path.parent.name}.{path.stem}:{node.name}"
                    alike.setdefault(_unnamed(node, code), name)
    return list(alike.values())


def _unnamed(node: ast.ClassDef, code: list[ast.FunctionDef]) -> str:
    """The code of a class without the names of classes, annotations and docstrings."""
    bases = ",".join(ast.unparse(base) for base in node.bases)
    for part in ast.walk(node):
        if isinstance(part, ast.arg):
            part.annotation = None
        if isinstance(part, ast.FunctionDef):
            part.returns = None
            if ast.get_docstring(part) is not None:
                del part.body[0]
    text = "\n".join(ast.unparse(function) for function in code)
    return re.sub(r"\b[A-Z][a-z]\w+", "Name", f"{bases}\n{text}")


def asked(name: str) -> dict[str, Any]:
    """What is said of a class, model.file:Name."""
    place, _, cls = name.partition(":")
    begun = time.process_time()
    try:
        module = importlib.import_module(f"transformers.models.{place}")
        begun = time.process_time()
        said = check_attention(getattr(module, cls))
    except Exception as error:
        return {"is": "crash", "why": f"{type(error).__name__}: {error}", "seconds": 0.0}
    seconds = time.process_time() - begun
    return {"is": verdict(said), "why": said.message, "note": said.note, "seconds": seconds}


def verdict(said: Any) -> str:
    """right, right as something, wrong, or not judged: perhaps right but for what is beside it."""
    instead = re.search(r"It is right with .*?: ask again with `(.*?)`\.", said.message)
    if said.passed or instead:
        return "right" if said.passed else f"right as {instead[1]}"
    if "left aside, norms taken out" in said.message:
        return "not judged, right without"
    if said.kind == "failed":
        return "crash"
    return "not judged" if said.kind == "unread" else "wrong"


def in_a_process(name: str) -> dict[str, Any]:
    """The same in a process of its own; why there is nothing, where it ends otherwise."""
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=lambda: theirs.send(asked(name)), daemon=True
    )
    child.start()
    theirs.close()
    try:
        if ours.poll(SECONDS):
            return ours.recv()
        return {"is": "too long", "why": f"{SECONDS} s", "seconds": float(SECONDS)}
    except EOFError:
        child.join()
        return {"is": "crash", "why": f"exit code {child.exitcode}", "seconds": 0.0}
    finally:
        child.kill()
        child.join()
        ours.close()


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser("python bench/in_the_wild.py --transformers")
    parser.add_argument("words", nargs="*", help="only classes that have one of these in the name")
    given = parser.parse_args(arguments)
    every = [e for e in classes() if not given.words or any(w in e for w in given.words)]
    if not every:
        print("transformers is not installed, or has no such class: nothing was asked")
        return 0
    torch.set_num_threads(1)
    importlib.import_module("transformers.modeling_utils")  # once, for all that come of it
    print(f"transformers {importlib.metadata.version('transformers')}: {len(every)} classes")
    kinds = collections.Counter()
    for name in every:
        row = in_a_process(name)
        kinds[row["is"]] += 1
        print(f"{row['is']:28} {row['seconds']:5.1f} s  {name}", flush=True)
        if not row["is"].startswith("right"):
            print(f"    {row['why'][:300]}")
    for kind, count in kinds.most_common():
        print(f"{count:5} {kind}")
    return int(any(kinds[failed] for failed in FAILED))

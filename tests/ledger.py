"""Ask the judge about every case of ledger.csv, and count by group what it says.

    python tests/ledger.py [--group G] [--every K] [--sealed] [--out FILE]

A row says what is typed in a right class or answer, which step and line a judge should name, and
what the judge said when the row was written. --sealed asks the rows of ledger_sealed.csv. FILE gets
one row for each case asked, with the message.
"""

import argparse
import contextlib
import csv
import functools
import importlib
import io
import itertools
import json
import linecache
import math
import multiprocessing
import re
import sys
import tempfile
import time
import tomllib
import types
from collections import Counter
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eleven_steps import checks

HERE = Path(__file__).parent
FOLDER, NUMBERS = tempfile.TemporaryDirectory(), itertools.count()
LIMIT = 60  # seconds for each case
SAID = "passed", "said_step", "said_line", "mistake", "same"
LAYERS = "W_query", "W_key", "W_value", "out_proj"
FIGURES = "right step", "right line", "wrong that pass", "named, different"
FIGURES += "right that are refused", "no verdict"


def rows(sealed=False):
    """Return the rows of the ledger, or of the part that is opened at the end."""
    text = (HERE / f"ledger{'_sealed' * sealed}.csv").read_text("utf-8")
    return [*csv.DictReader(text.splitlines())]


@functools.cache
def toml(name):
    """Return what is in a TOML file of the tests."""
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


@functools.cache
def style(name):
    """Return a right class, without the comments that say the step of each line."""
    labelled = (toml("ledger")["styles"] | toml("ledger_sealed")["styles"])[name]
    return re.sub(r"  # s\d.*", "", labelled)


@functools.cache
def wrong_lines():
    """Return of each mutant the number of its line, and what is typed there."""
    known = (row for sealed in (False, True) for row in rows(sealed) if row["group"] == "mutants")
    return {row["id"]: (int(row["line"]), row["source"]) for row in known}


@functools.cache
def solutions():
    """Return the function of each solution cell of the notebooks, by exercise."""
    found = {}
    for path in sorted((HERE.parent / "notebooks").rglob("*.ipynb")):
        for cell in json.loads(path.read_text("utf-8"))["cells"]:
            text = "".join(cell["source"])
            asked = re.search(r'\n+assert check\("([\w.]+)", \w+, record=False\)', text)
            if asked and "solution" in cell["metadata"].get("tags", []):
                found[asked[1]] = re.sub(r"(?m)^#.*\n", "", text[: asked.start()]) + "\n"
    return found


def made(group, case):
    """Return the code of a case, None for a class of a file, and in words what is wrong in it."""
    kind, _, number = case.rpartition(" ")
    old = new = ""
    match group:
        case "mutants" | "two_faults":
            lines = style(kind).splitlines(keepends=True)
            chosen = [wrong_lines()[f"mutants {kind} {each}"] for each in number.split("+")]
            for line, typed in chosen:
                lines[line - 1] = lines[line - 1].replace(lines[line - 1].strip(), typed)
            return "".join(lines), "; ".join(typed for _, typed in chosen)
        case "slips":
            source = toml("slips")[kind]["class"]
            _, old, new = toml("slips")[kind]["slips"][int(number)]
        case "answers":
            source, (old, new) = solutions()[kind], toml("ledger")["answers"][kind][int(number)]
        case "solutions":
            source = solutions()[case]
        case "growing":
            _, last, returned, *edit = toml("ledger")["growing"][kind][int(number)]
            begin, last, _ = style(kind).partition(last)
            source = f"{begin}{last}\n        return {returned}\n"
            old, new = edit or ("", "")
        case "right" if kind == "styles":
            source = style(number)
        case "right" if kind == "slips":
            source = toml("slips")[number]["class"]
        case _:
            return None, ""
    assert old in source, f"{case}: {old!r} is not in its source"
    words = " ".join(f"{old} -> {new or 'nothing'}".split()) if old else ""
    return source.replace(old, new) if old else source, words


def built(source):
    """Return the last class or function of a source, which gets a file of its own."""
    name = f"case_{next(NUMBERS)}"
    file = Path(FOLDER.name) / f"{name}.py"
    file.write_text(source, "utf-8")
    einops = importlib.import_module("einops")
    module = sys.modules[name] = types.ModuleType(name)
    given = {"torch": torch, "nn": nn, "F": F, "math": math, "Tensor": Tensor}
    given |= {"rearrange": einops.rearrange, "einsum": einops.einsum, "__file__": str(file)}
    vars(module).update(given)
    exec(compile(source, file, "exec"), vars(module))
    linecache.checkcache(str(file))
    return [*vars(module).values()][-1]


def answer_of(group, case):
    """Return what is handed to the judge."""
    source, _ = made(group, case)
    if source:
        return built(source)
    if group == "planted":
        return checks.wrong_class(case)
    variants = importlib.import_module("attention_variants")
    kind, _, number = case.rpartition(" ")
    if kind == "variants":
        return variants.RIGHT[int(number)]
    texts = [text for text, said in toml("said/classes").items() if said.startswith("passed")]
    base, parts, *_ = eval(texts[int(number)], vars(variants) | {"torch": torch, "nn": nn})
    return type("Mine", (base,), parts)


def packed(mha):
    """Return what a class with one layer for queries, keys and values holds of mha's three."""
    state = dict(mha.named_parameters())
    for part in "weight", "bias":
        three = [state.pop(f"{layer}.{part}", None) for layer in LAYERS[:3]]
        if three[0] is not None:
            state[f"qkv.{part}"] = torch.cat(three)
    return state


def ask(row):
    """Return the judge's verdict on a case, as columns of the ledger."""
    group, _, case = row["id"].partition(" ")
    answer = judged = answer_of(group, case)
    if row["declared"] and hasattr(checks, "declare"):
        judged = checks.declare(build=answer, state=packed)
    if group in ("answers", "solutions", "growing"):
        identifier = "your_class.1" if group == "growing" else case.partition(" ")[0]
        verdict = checks.check(identifier, judged, record=False)
    else:
        verdict = checks.check_attention(judged)
    far = group == "growing" and verdict.kind == "so far"
    step = verdict.reached if far else verdict.step
    found = re.search(r"\b[Ll]ine (\d+)", str(verdict.message))
    line = getattr(verdict, "line", None) or (found[1] if found else "")
    same = ""
    if verdict.mistake and group in ("mutants", "slips", "planted") and not row["declared"]:
        wrong = checks.wrong_class(verdict.mistake)
        same = int(checks.check_attention(answer, reference=wrong).passed)
    columns = int(verdict.passed or far), step or "", line, verdict.mistake or "", same
    return dict(zip(SAID, map(str, columns), strict=True)) | {"message": str(verdict)}


def serve(pipe):
    """Answer one row after the other, in a process of its own."""
    torch.set_num_threads(1)
    while True:
        row = pipe.recv()
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                said = ask(row)
        except BaseException as error:
            said = {"passed": "crash", "message": f"{type(error).__name__}: {error}"}
        pipe.send(said)


def asked(chosen):
    """Yield each row with what the judge says; a judge that ends or hangs gives no verdict."""
    process, fork = None, multiprocessing.get_context("fork")
    for row in chosen:
        if not process:
            pipe, other = fork.Pipe()
            process = fork.Process(target=serve, args=(other,))
            process.start()
            other.close()
        begin = time.perf_counter()
        pipe.send(row)
        try:
            said = pipe.recv() if pipe.poll(LIMIT) else {"passed": "timeout", "message": ""}
        except EOFError:
            said = {"passed": "crash", "message": "The process of the judge ended."}
        if said["passed"] in ("crash", "timeout"):
            process.kill()
            process = None
        took = {"seconds": f"{time.perf_counter() - begin:.2f}"}
        yield row | dict.fromkeys(SAID, "") | said | took
    if process:
        process.kill()


def figures(row):
    """Return which of FIGURES a case counts for."""
    passed, group = row["passed"], row["group"]
    right_line = row["said_line"] in f"{row['line']} {row['line2']}".split()
    right_step = row["said_step"] in f"{row['step']} {row['step2']}".split()
    if group == "answers":
        right_step = not row["said_line"]  # an exercise is about one step
    right = right_line or right_step or (group == "mutants" and row["same"] == "1")
    accepted = passed == "1" and (group != "growing" or right_step)
    holds = {
        "wrong": row["wrong"],
        "right": not row["wrong"],
        "right step": row["wrong"] and passed == "0" and right,
        "right line": row["wrong"] and passed == "0" and right_line,
        "wrong that pass": row["wrong"] and passed == "1",
        "named, different": row["same"] == "0",
        "right that are refused": not row["wrong"] and not accepted,
        "no verdict": passed not in ("0", "1"),
    }
    return [name for name, held in holds.items() if held]


def counts(said):
    """Return by group, and by style for mutants, how many cases count for each figure."""
    table = {}
    for row in said:
        for name in {row["group"], " ".join(row["id"].split()[:2])}:
            if name == row["group"] or row["group"] == "mutants":
                table.setdefault(name, Counter()).update(figures(row))
    return dict(sorted(table.items()))


def summary(said):
    """Return the figures by group as a table to print."""
    head = "wrong", *FIGURES[:4], "right", *FIGURES[4:]
    lines = [f"{'':18}" + "".join(f"{name:>{len(name) + 2}}" for name in head)]
    for group, count in counts(said).items():
        lines.append(f"{group:18}" + "".join(f"{count[name]:>{len(name) + 2}}" for name in head))
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--group")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--sealed", action="store_true")
    parser.add_argument("--out", default="/dev/null")
    options = parser.parse_args()
    chosen = [row for row in rows(options.sealed) if options.group in (None, row["group"])]
    said = [*asked(chosen[:: options.every])]
    with Path(options.out).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*said[0]], lineterminator="\n")
        writer.writeheader()
        writer.writerows(said)
    print(summary(said))


if __name__ == "__main__":
    main()

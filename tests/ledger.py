"""Ask the judge about every case of ledger.csv, and count by group what it says.

    python tests/ledger.py [--group G] [--every K] [--start I] [--sealed] [--out FILE] [--write]

A row says how the code of a case is made, which step and line a judge should name, and what
the judge said when the row was written. --sealed asks the rows of ledger_sealed.csv. FILE.csv
gets one row for each case asked, FILE.json the messages. --write stores the answers in the ledger.
"""

import argparse
import contextlib
import csv
import functools
import importlib
import io
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
from mutations import mutated, mutations
from torch import Tensor, nn
from torch.nn import functional as F

from eleven_steps import checks

HERE = Path(__file__).parent
SAID = "passed", "said_step", "said_line", "mistake", "same"
LIMIT = 60  # seconds for each case
LAYERS = "W_query", "W_key", "W_value"
CASES = [(2, 7, 5, 12, 3, False, 9), (3, 4, 6, 8, 4, True, 4), (1, 6, 10, 6, 1, False, 8)]
CASES += [(2, 5, 8, 8, 2, True, 5), (2, 1, 3, 4, 2, False, 3)]


def rows(sealed=False):
    """Return the rows of the ledger, or of the part that is opened at the end."""
    with (HERE / f"ledger{'_sealed' * sealed}.csv").open(encoding="utf-8", newline="") as file:
        return [*csv.DictReader(file)]


@functools.cache
def toml(name):
    """Return what is in a TOML file of the tests, whose name ends without .toml."""
    return tomllib.loads((HERE / f"{name}.toml").read_text("utf-8"))


@functools.cache
def style(name):
    """Return a labelled right class."""
    return (toml("ledger")["styles"] | toml("ledger_sealed")["styles"])[name]


@functools.cache
def all_mutations(name):
    """Return the mutations of a style."""
    return mutations(style(name))


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


def edited(source, old, new):
    """Return a source with an edit that must fit."""
    assert old in source, f"{old!r} is not in {source}"
    return source.replace(old, new)


def words_of(group, case):
    """Return in words how the code of a case is made, as the column source has it."""
    kind, _, number = case.rpartition(" ")
    match group:
        case "mutants" | "two_faults":
            return "; ".join(all_mutations(kind)[int(each)].words for each in number.split("+"))
        case "slips":
            old, new = toml("slips")[kind]["slips"][int(number)][1:]
        case "answers":
            old, new = toml("ledger")["answers"][kind][int(number)]
        case "growing" if edit := toml("ledger")["growing"][kind][int(number)][3:]:
            old, new = edit
        case _:
            return ""
    return " ".join(f"{old} -> {new or 'nothing'}".split())


def source_of(group, case):
    """Return the code of a case, or None where a case is a class of a file."""
    kind, _, number = case.rpartition(" ")
    match group:
        case "mutants" | "two_faults":
            chosen = (all_mutations(kind)[int(each)] for each in number.split("+"))
            return mutated(style(kind), *chosen)
        case "slips":
            of = toml("slips")[kind]
            return edited(of["class"], *of["slips"][int(number)][1:])
        case "answers":
            edit = toml("ledger")["answers"][kind][int(number)]
            return edited(solutions()[kind], *edit)
        case "solutions":
            return solutions()[case]
        case "growing":
            _, last, returned, *edit = toml("ledger")["growing"][kind][int(number)]
            begun = mutated(style(kind)).partition(last)
            begun = f"{begun[0]}{begun[1]}\n        return {returned}\n"
            return edited(begun, *edit) if edit else begun
        case "right" if kind == "styles":
            return mutated(style(number))
        case "right" if kind == "slips":
            return toml("slips")[number]["class"]


def built(source):
    """Return the last class or function of a source, which has a file of its own."""
    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False, encoding="utf-8") as file:
        file.write(source)
    module = types.ModuleType(Path(file.name).stem)
    module.__file__ = file.name
    sys.modules[module.__name__] = module
    vars(module).update(torch=torch, nn=nn, F=F, math=math, Tensor=Tensor)
    with contextlib.suppress(ImportError):
        einops = importlib.import_module("einops")
        vars(module).update(rearrange=einops.rearrange, einsum=einops.einsum)
    before = {*vars(module)}
    exec(compile(source, file.name, "exec"), vars(module))
    linecache.checkcache(file.name)
    return [value for name, value in vars(module).items() if name not in before][-1]


def object_of(group, case):
    """Return what is handed to the judge."""
    if group == "planted":
        return checks.wrong_class(case)
    source = source_of(group, case)
    if source:
        return built(source)
    variants = importlib.import_module("attention_variants")
    kind, _, number = case.rpartition(" ")
    if kind == "variants":
        return variants.RIGHT[int(number)]
    texts = [text for text, said in toml("said/classes").items() if said.startswith("passed")]
    base, parts, *_ = eval(texts[int(number)], vars(variants) | {"torch": torch, "nn": nn})
    return type("Mine", (base,), parts)


def packed(mha):
    """Return what one layer for queries, keys and values holds of the lecture's three."""
    state = dict(mha.named_parameters())
    for part in ("weight", "bias"):
        tensors = [state.pop(f"{layer}.{part}", None) for layer in LAYERS]
        if tensors[0] is not None:
            state[f"qkv.{part}"] = torch.cat(tensors)
    return state


def ask(row):
    """Return the verdict of the judge on a case, as columns of the ledger."""
    group, case = row["group"], row["id"].partition(" ")[2]
    answer = object_of(group, case)
    declare = getattr(checks, "declare", None)
    if row["declared"] and declare:
        answer = declare(build=answer, state=packed)
    if group in ("answers", "solutions", "growing"):
        identifier = "your_class.1" if group == "growing" else case.partition(" ")[0]
        verdict = checks.check(identifier, answer, record=False)
    else:
        verdict = checks.check_attention(answer)
    passed, step, line = verdict.passed, verdict.step, getattr(verdict, "line", None)
    if group == "growing" and verdict.kind == "so far":
        passed, step = True, verdict.reached
    said = re.search(r"\b[Ll]ine (\d+)", verdict.message)
    line = line or (int(said[1]) if said else "")
    mistake, same = verdict.mistake or "", ""
    if group in ("mutants", "two_faults", "slips") and mistake and not row["declared"]:
        same = int(alike(outputs(checks.wrong_class(mistake)), outputs(answer)))
    message = str(verdict)
    values = int(passed), step or "", line, mistake, same
    return dict(zip(SAID, values, strict=True)) | {"message": message}


def outputs(cls):
    """Return what a class gives at some sizes, where it can be called."""
    found = []
    for b, num_tokens, d_in, d_out, num_heads, qkv_bias, context_length in CASES:
        torch.manual_seed(5)
        numbers = torch.Generator().manual_seed(9)
        try:
            module = cls(d_in, d_out, context_length, 0.0, num_heads, qkv_bias).eval()
            for layer in (*LAYERS, "out_proj"):
                for parameter in getattr(module, layer).parameters():
                    nn.init.normal_(parameter, generator=numbers)
            with torch.no_grad():
                found.append(module(torch.randn(b, num_tokens, d_in, generator=numbers)))
        except Exception as error:
            found.append(error)
    return found


def alike(ones, others):
    """Tell whether two classes give the same outputs, and fail at the same sizes."""
    for one, other in zip(ones, others, strict=True):
        if isinstance(one, Tensor) != isinstance(other, Tensor):
            return False
        if isinstance(one, Tensor) and (
            one.shape != other.shape or not torch.allclose(one, other, 1e-4, 1e-4, True)
        ):
            return False
    return True


def answer_rows(pipe):
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
    """Yield each row with what the judge says now; a case that ends its process is a crash."""
    process = None
    for row in chosen:
        if process is None:
            pipe, other = multiprocessing.Pipe()
            process = multiprocessing.get_context("fork").Process(target=answer_rows, args=(other,))
            process.start()
            other.close()
        begin = time.perf_counter()
        pipe.send(row)
        try:
            said = pipe.recv() if pipe.poll(LIMIT) else {"passed": "timeout"}
        except EOFError:
            said = {"passed": "crash", "message": "the process ended"}
        if said["passed"] == "timeout" or not process.is_alive():
            process.kill()
            process = None
        seconds = round(time.perf_counter() - begin, 2)
        yield row | dict.fromkeys(SAID, "") | {"seconds": seconds, "message": ""} | said
    if process:
        process.kill()


def is_right_step(row):
    """Tell whether a wrong case is refused at its step or its line, or named as what it is."""
    if str(row["passed"]) != "0":
        return False
    steps = f"{row['step']} {row['step2']}".split()
    lines = f"{row['line']} {row['line2']}".split()
    if row["group"] == "answers" and not row["said_line"]:
        return True  # an exercise is about one step
    named = row["group"] == "mutants" and str(row["same"]) == "1"
    return str(row["said_step"]) in steps or str(row["said_line"]) in lines or named


def is_accepted(row):
    """Tell whether a right case passes, and one in progress as far as it goes."""
    reached = row["group"] != "growing" or str(row["said_step"]) == row["step"]
    return str(row["passed"]) == "1" and reached


def counts(said):
    """Return by group how many cases are wrong, and so on: a Counter each."""
    table = {}
    for row in said:
        names = [row["group"]]
        names += [" ".join(row["id"].split()[:2])] * (row["group"] == "mutants")
        for name in names:
            count = table.setdefault(name, Counter())
            passed = str(row["passed"])
            count["no verdict"] += passed not in ("0", "1")
            if row["wrong"]:
                count["wrong"] += 1
                count["right step"] += is_right_step(row)
                count["wrong that pass"] += passed == "1"
            else:
                count["right"] += 1
                count["right that are refused"] += not is_accepted(row)
    return table


def summary(said):
    """Return the figures by group as a table to print."""
    lines = [f"{'':24}{'right step':>16}{'pass':>6}{'refused':>12}{'no verdict':>12}"]
    for name, count in counts(said).items():
        step = f"{count['right step']} of {count['wrong']}" if count["wrong"] else ""
        refused = f"{count['right that are refused']} of {count['right']}" if count["right"] else ""
        passed = count["wrong that pass"] if count["wrong"] else ""
        lines.append(f"{name:24}{step:>16}{passed:>6}{refused:>12}{count['no verdict']:>12}")
    return "\n".join(lines)


def write(path, table):
    """Write rows into a CSV file."""
    with Path(path).open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*table[0]], extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--group")
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--start", type=int, default=0)
    parser.add_argument("--sealed", action="store_true")
    parser.add_argument("--out")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    ledger = rows(options.sealed)
    chosen = [row for row in ledger if options.group in (None, row["group"])]
    said = []
    for row in asked(chosen[options.start :: options.every]):
        said.append(row)
        if options.out:
            short = [each | {"message": each["message"].partition("\n")[0]} for each in said]
            write(f"{options.out.removesuffix('.csv')}.csv", short)
    if options.out:
        messages = {row["id"]: row["message"] for row in said}
        path = Path(f"{options.out.removesuffix('.csv')}.json")
        path.write_text(json.dumps(messages, indent=1, ensure_ascii=False), "utf-8")
    if options.write:
        new = {row["id"]: {name: row[name] for name in ledger[0]} for row in said}
        write(
            HERE / f"ledger{'_sealed' * options.sealed}.csv", [new.get(r["id"], r) for r in ledger]
        )
    print(summary(said))


if __name__ == "__main__":
    main()

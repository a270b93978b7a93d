"""Train the tiny model of notebook 18, and store twelve checkpoints.

    python bench/train.py                       train seed 7, write its checkpoints to data/
    python bench/train.py --seed 3 --report     train another seed, write nothing
    python bench/train.py --seeds 10            seeds 0 to 9 and their controls, to data/seeds.json
    python bench/train.py --seeds 20 --report   seeds 0 to 19, write nothing

A report of one seed ends with one line: the prefix matching score of the best head, the share of
names and of verbs that are right, and the seconds that training took. Of several seeds each has a
line with what eleven_steps.beyond.ablations asks. In a terminal a bar shows how far training is.
"""

import argparse
import json
import math
import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import torch
from safetensors.torch import save
from tqdm import tqdm

from eleven_steps.beyond.ablations import MEASUREMENTS, measure_all
from eleven_steps.beyond.checkpoints import CHECKPOINTS
from eleven_steps.beyond.grammar import Stories, make_stories
from eleven_steps.beyond.tiny import NUM_HEADS, Report, TinyModel, measure, story_loss
from helpers.examples import DATA

SEED = 7
STEPS, BATCH, STORIES = 1000, 64, 8000
RATE, WARM_UP = 0.01, 50  # the learning rate, and the steps it takes to get there
DROPOUT, DROPS_FROM = 0.1, 600  # of weights; the step from which on, once heads have formed
STORED = (0, 50, 100, 150, 200, 250, 300, 400, 500, 600, 800, 1000)
SEEDS = DATA / "seeds.json"
FRESH = 1_000_000  # added to a seed: the seed of stories that training has not seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=SEED, help=f"default {SEED}")
    parser.add_argument(
        "--seeds", type=int, metavar="N", help="all that is asked of seeds 0 to N - 1"
    )
    parser.add_argument("--report", action="store_true", help="measure, write nothing")
    options = parser.parse_args()
    torch.set_num_threads(1)  # tiny tensors: a second thread waits more than it works
    if options.seeds:
        answers = measure_seeds(range(options.seeds))
        if not options.report:
            store_seeds(answers)
    elif options.report:
        model, seconds = timed(options.seed, NUM_HEADS)
        print(line(measure(model, fresh(options.seed)), seconds))
    else:
        store(options.seed)
    return 0


def train(model: TinyModel, stories: Stories, seed: int, steps: int = STEPS) -> Iterator[int]:
    """Train model on stories; yield the number of steps so far, first 0.

    AdamW; the learning rate rises for 50 steps, stays, and sinks to 0 over the second half. Late
    dropout of weights teaches what to say where a head brings nothing, so that a head taken out
    leaves the model undecided and not wrong.
    """
    draw = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=RATE, betas=(0.9, 0.98))
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda i: min(1, (i + 1) / WARM_UP, 2 * (steps - i) / steps)
    )
    yield 0
    for step in range(steps):
        model.train()
        for attention in model.layers:
            attention.dropout.p = DROPOUT if step >= DROPS_FROM else 0.0
        batch = stories[torch.randint(len(stories.tokens), (BATCH,), generator=draw)]
        loss = story_loss(model, batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
        yield step + 1


def fresh(seed: int) -> Stories:
    """Return stories that are not in the training data of a seed."""
    return make_stories(400, FRESH + seed)


def timed(
    seed: int, num_heads: tuple[int, ...], at_step: Callable[[int, TinyModel], None] | None = None
) -> tuple[TinyModel, float]:
    """Train the model of a seed under a progress bar; return it, and the seconds it took."""
    start = time.perf_counter()
    stories = make_stories(STORIES, seed)
    torch.manual_seed(seed)
    model = TinyModel(num_heads)
    what = f"seed {seed}, layers {len(num_heads)}"
    # disable=None: no bar where no terminal is
    for step in tqdm(train(model, stories, seed), what, STEPS + 1, leave=False, disable=None):
        if at_step:
            at_step(step, model)
    return model, time.perf_counter() - start


def line(report: Report, seconds: float) -> str:
    layer, head = report.best
    return (
        f"prefix {report.prefix[layer][head]:.2f} names {report.names:.2f} "
        f"agreement {report.agreement:.2f} seconds {seconds:.0f}"
    )


def measure_seeds(seeds: Iterable[int]) -> dict[int, dict[str, float]]:
    """Train each seed and its control; print and return their measurements."""
    print("seed", *MEASUREMENTS, flush=True)
    answers = {}
    for seed in seeds:
        stories = fresh(seed)
        answers[seed] = measure_all(timed(seed, NUM_HEADS)[0], stories, seed)
        control = measure(timed(seed, NUM_HEADS[:1])[0], stories)
        answers[seed]["control"] = control.names
        row = [f"{answers[seed][name]:{len(name)}.2f}" for name in MEASUREMENTS]
        print(f"{seed:4}", *row, flush=True)
    return answers


def store_seeds(answers: Mapping[int, Mapping[str, float]], path: Path = SEEDS) -> None:
    """Write the measurements of all seeds, one a line; raise if one is not a number."""
    source = f"python bench/train.py --seeds {len(answers)}, {versions()}, {today()}"
    rows = [f"seed {seed}" for seed in answers]
    lines = []
    for name, meaning in MEASUREMENTS.items():
        values = [round(asked[name], 2) for asked in answers.values()]
        entry = {"value": values, "shape": [len(values)], "rows": rows}
        entry |= {"meaning": meaning, "source": source}
        lines.append(f"    {json.dumps(name)}: {json.dumps(entry, allow_nan=False)}")
    about = "What trained tiny models of several seeds can do, whole and with something taken out."
    text = f'{{\n  "about": "{about}",\n  "tensors": {{\n' + ",\n".join(lines) + "\n  }\n}\n"
    path.write_text(text, encoding="utf-8")


def store(seed: int, path: Path = CHECKPOINTS) -> None:
    """Train the model of a seed, and write its checkpoints with seed, date and versions."""
    tensors, reports, stories = {}, {}, fresh(seed)

    def keep(step: int, model: TinyModel) -> None:
        if step in STORED:
            reports[step] = measure(model, stories)
            for name, tensor in model.state_dict().items():
                if not name.endswith("mask"):  # the class makes its mask itself
                    tensors[f"{step}.{name}"] = tensor.half()

    _, seconds = timed(seed, NUM_HEADS, keep)
    control = measure(timed(seed, NUM_HEADS[:1])[0], stories)
    last = reports[STEPS]
    layer, head = last.best
    facts = [
        {"step": step, "loss": round(r.loss, 4), "prefix": round(r.prefix[layer][head], 4)}
        for step, r in reports.items()
    ]
    stored = save(
        tensors,
        metadata={
            "moments": json.dumps(facts),
            "reached": line(last, seconds),
            "control": f"one layer: loss {control.loss_on_all:.2f}, "
            f"loss on names {control.loss:.2f}, names {control.names:.2f}",
            "seed": str(seed),
            "date": today(),
            "versions": versions(),
            "command": f"python bench/train.py --seed {seed}",
        },
    )
    path.write_bytes(stored)  # as readable as other files here: save_file keeps it to its owner
    print(f"{path.name}: {len(facts)} checkpoints, {math.ceil(path.stat().st_size / 1000)} KB")
    print(line(last, seconds))


def today() -> str:
    return datetime.now(UTC).date().isoformat()


def versions() -> str:
    return f"python {platform.python_version()}, torch {torch.__version__}"


if __name__ == "__main__":
    sys.exit(main())

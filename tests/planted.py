"""Mistakes planted in eleven_steps/beyond/variants, each with rows of bench/prove.py that show it.

python tests/planted.py runs those rows once for each mistake and prints a line of JSON for each:
its name, and whether any row was found to differ. A mistake is planted while a process forked for
it imports the changed file, so that nothing on the disk changes and transformers is read only once.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
import tomllib
import traceback
from pathlib import Path

HERE = Path(__file__).parents[1] / "eleven_steps" / "beyond" / "variants"
MISTAKES = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))


class Planting(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one file of the variants with one text replaced."""

    def __init__(self, file: str, old: str, new: str):
        self.path = HERE / f"{file}.py"
        self.name = f"eleven_steps.beyond.variants.{file}"
        source = self.path.read_text("utf-8")
        if source.count(old) != 1:
            raise ValueError(f"{file}.py has {old!r} {source.count(old)} times: once is expected")
        self.source = source.replace(old, new)

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_loader(name, self, origin=str(self.path))
        return None

    def exec_module(self, module):
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), vars(module))


def turns_red(file: str, old: str, new: str, word: str) -> bool:
    """Say whether a row with word in it differs, or cannot be run, with the mistake in place."""
    sys.meta_path.insert(0, Planting(file, old, new))
    import prove

    chosen = [proof for proof in prove.PROOFS if prove.named(proof, [word])]
    if not chosen:
        raise ValueError(f"no row has {word!r} in its name")
    try:
        return any(not equal for _, equal in prove.rows(chosen))
    except Exception:  # bench/prove.py would end with it, and not with status 0
        traceback.print_exc()
        return True


def main(names: list[str]) -> None:
    import torch
    import transformers
    from transformers import AutoModel, DynamicCache  # noqa: F401 - read once, before the forks

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name in names or MISTAKES:
        sys.stdout.flush()
        if not (child := os.fork()):
            try:
                red = turns_red(*MISTAKES[name])
            except Exception as error:
                traceback.print_exc()
                red = f"{type(error).__name__}: {error}"
            print(json.dumps([name, red]), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[2] / "bench")]
    main(sys.argv[1:])

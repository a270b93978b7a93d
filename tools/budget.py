"""Count the lines of each room, and fail where one has more than its budget in pyproject.toml."""

import argparse
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def lines_of(patterns: list[str]) -> int:
    """Return how many lines the files have that git tracks under some patterns."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *patterns], cwd=ROOT, capture_output=True, check=True
    )
    files = (ROOT / name for name in listed.stdout.decode().split("\0") if name)
    return sum(file.read_bytes().count(b"\n") for file in files if file.is_file())


def main() -> int:
    argparse.ArgumentParser(description=__doc__).parse_args()
    budget = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    over = 0
    for room, (most, *patterns) in budget["tool"]["eleven_steps"]["budget"].items():
        lines = lines_of(patterns)
        over |= not lines or lines > most
        print(f"{room:32}{lines:7,} of {most:7,}{'' if 0 < lines <= most else '  over budget'}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())

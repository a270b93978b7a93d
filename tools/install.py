"""Install what the course needs into an environment of its own, and say plainly what is missing.

Usage: python3.11 tools/install.py [--into FOLDER] [REQUIREMENTS], .venv and requirements.txt unless
named. It is read by any Python 3, so that one that is too old hears it from here.
"""

import argparse
import shutil
import subprocess
import sys
import time
from pathlib import Path

NEEDS = (3, 11)
TAKES = {
    "requirements.txt": "torch, JupyterLab and what else the notebooks need",
    "requirements-dev.txt": "what the tests and tools need",
}


def main():  # a type with | would be an error where Python is too old
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", default=".venv", metavar="FOLDER", help="the environment")
    parser.add_argument("requirements", nargs="?", default="requirements.txt")
    options = parser.parse_args()
    if sys.version_info < NEEDS:
        return (
            f"The course needs Python 3.11 or newer, and {sys.executable} is "
            f"{sys.version.split()[0]}. Name another: make PYTHON=python3.11 lab, or without make: "
            "python3.11 tools/install.py"
        )
    folder, is_new = Path(options.into), not Path(options.into).exists()
    what = TAKES.get(options.requirements, options.requirements)
    print(f"Installing {what} into {folder}. It happens once and takes minutes.", flush=True)
    start = time.monotonic()
    scripts, name = ("Scripts", "python.exe") if sys.platform == "win32" else ("bin", "python")
    python = folder / scripts / name
    if (
        not python.exists()
        and subprocess.run([sys.executable, "-m", "venv", str(folder)]).returncode
    ):
        if is_new:
            shutil.rmtree(folder, ignore_errors=True)
        return (
            f"{sys.executable} could not make an environment in {folder}; what it says stands "
            "above. On Debian and Ubuntu its package venv may be missing: python3-venv."
        )
    install = "-m", "pip", "install", "--disable-pip-version-check", "--quiet", "-r"
    if subprocess.run([str(python), *install, options.requirements]).returncode:
        if is_new:  # what is half made would stand in the way of the next start
            shutil.rmtree(folder)
        return (
            f"pip could not install {options.requirements}; what it says stands above. Is this "
            "machine online? Only installing needs a network: start again once it is. Python 3.11 "
            "to 3.13 have all the pinned versions."
        )
    print(f"Installed in {time.monotonic() - start:.0f} seconds.")
    return None


if __name__ == "__main__":
    sys.exit(main())

"""Install what the course needs into an environment of its own, and rebuild a broken one.

Usage: python3.11 tools/install.py [--into FOLDER] [REQUIREMENTS], .venv and requirements.txt unless
named. Nothing happens if everything is installed. The syntax is that of any Python 3, so that a
Python that is too old can report it.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOWEST, ABOVE = (3, 11), (3, 15)
READ_ONLY = (
    "{} cannot be written. Copy or clone the course into a folder of your own and start there. If "
    'the course is installed here already, make OPTIONS="--notebooks DIR" lab keeps your notebooks '
    "in DIR."
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--into", default=".venv", metavar="FOLDER", help="the environment")
    parser.add_argument("requirements", nargs="?", default="requirements.txt")
    options = parser.parse_args()
    folder, requirements = Path(options.into).absolute(), ROOT / options.requirements
    stamp = folder / requirements.stem.replace("requirements", "installed")
    wanted = fingerprint(requirements)
    fault = find_fault(folder)
    if not fault and stamp.exists() and stamp.read_text("utf-8") == wanted:
        return None
    if not LOWEST <= sys.version_info < ABOVE:
        return (
            f"The course runs on Python 3.11 to 3.14, but {sys.executable} is "
            f"{sys.version.split()[0]}. Name another: make PYTHON=python3.11 lab, or without make: "
            "python3.11 tools/install.py"
        )
    try:
        if fault:
            print(f"{fault} The environment is rebuilt.", flush=True)
            shutil.rmtree(folder)
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return READ_ONLY.format(folder)
    what = f"Installing {requirements.name} into {folder}"
    print(f"{what}. It happens once and takes minutes.", flush=True)
    start = time.monotonic()
    if not python_of(folder).exists():
        # The base Python, in case that this one belongs to an environment itself.
        base = getattr(sys, "_base_executable", sys.executable)
        if subprocess.run([base, "-m", "venv", str(folder)]).returncode:
            return (
                f"{base} could not make an environment in {folder}; the reason is printed above. "
                "On Debian and Ubuntu the package python3-venv may be missing."
            )
    install = "-m", "pip", "install", "--disable-pip-version-check", "--quiet"
    lists = "-c", str(ROOT / "constraints.txt"), "-r", str(requirements)
    if subprocess.run([str(python_of(folder)), *install, *lists], cwd=ROOT).returncode:
        return (
            f"pip could not install {options.requirements}; the reason is printed above. Is this "
            "machine online? Only installing needs a network: start again once it is."
        )
    stamp.write_text(wanted, "utf-8")
    print(f"Installed in {time.monotonic() - start:.0f} seconds.")
    return None


def fingerprint(requirements):
    """Return a text that changes with what has to be installed and with the checkout's place."""
    files, listed = [ROOT / "pyproject.toml", ROOT / "constraints.txt"], [requirements]
    for each in listed:  # it grows: one list may begin with another
        lines = each.read_text("utf-8").splitlines()
        listed += [each.parent / line[3:] for line in lines if line.startswith("-r ")]
    texts = [each.read_bytes() for each in files + listed]
    return f"{ROOT}\n{hashlib.sha256(b''.join(texts)).hexdigest()}\n"


def find_fault(folder):
    """Return a sentence that says why an environment cannot be used, or "" if it can."""
    about = folder / "pyvenv.cfg"
    if not about.exists():
        return ""
    made = re.search(r" -m venv (?:--\S+ )*(.+)", about.read_text("utf-8"))
    place = made[1] if made and os.path.isabs(made[1]) else str(folder)
    if not (os.path.exists(place) and os.path.samefile(place, folder)):
        return f"{folder} was made as {place}, and its scripts still point there."
    ask = [str(python_of(folder)), "-c", "import pip"]
    try:
        found = subprocess.run(ask, stderr=subprocess.DEVNULL).returncode == 0
    except OSError:
        return f"The Python that {folder} was made with is gone."
    return "" if found else f"{folder} is incomplete, because making it was interrupted."


def python_of(folder):
    windows = sys.platform == "win32"
    return folder.joinpath(*(("Scripts", "python.exe") if windows else ("bin", "python")))


if __name__ == "__main__":
    sys.exit(main())

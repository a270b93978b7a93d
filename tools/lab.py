"""Open copies of the notebooks in JupyterLab, which the learner may change.

Usage: python tools/lab.py [--notebooks DIR] [JUPYTERLAB OPTION ...]
A copy that exists is never overwritten.
"""

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
from ipykernel.ipkernel import IPythonKernel
from nbformat.sign import NotebookNotary

ROOT = Path(__file__).resolve().parents[1]
MINE = ROOT / "my_notebooks"
PROGRESS = "ELEVEN_STEPS_PROGRESS"  # names the file that remembers what a learner has done
ORIGINAL = "eleven_steps_original"  # where a copy's metadata keep the fingerprint


def copy_missing(course: Path, mine: Path) -> list[Path]:
    """Copy each notebook that is missing in mine; return the paths of all copies."""
    copies = []
    for part in (Path("."), Path("beyond")):
        (mine / part).mkdir(parents=True, exist_ok=True)
        for notebook in sorted((course / part).glob("*.ipynb")):
            copies.append(mine / part / notebook.name)
            if not copies[-1].exists():
                copy(notebook, copies[-1])
    return copies


def copy(notebook: Path, mine: Path) -> None:
    """Copy a notebook, with the language metadata that the kernel would write.

    JupyterLab would write that in when the notebook is opened, and ask to save it on closing. The
    copy remembers which text it is a copy of.
    """
    content = json.loads(notebook.read_text("utf-8"))
    content["metadata"]["language_info"] = IPythonKernel.language_info
    content["metadata"][ORIGINAL] = digest(notebook)
    mine.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def digest(notebook: Path) -> str:
    return hashlib.sha256(notebook.read_bytes()).hexdigest()[:16]


def outdated(course: Path, mine: Path) -> list[Path]:
    """Return the copies in mine whose original has changed since they were copied."""
    found = []
    for copied in sorted(mine.rglob("*.ipynb")):
        name, original = copied.relative_to(mine), None
        with contextlib.suppress(ValueError, AttributeError):  # not JSON, or not a notebook
            original = json.loads(copied.read_text("utf-8")).get("metadata", {}).get(ORIGINAL)
        if original and (course / name).exists() and digest(course / name) != original:
            found.append(name)
    return found


def keep_home_in(mine: Path) -> None:
    """Give Jupyter a home folder in mine if the user's own cannot be written."""
    try:
        tempfile.TemporaryFile(dir=Path.home()).close()
    except (OSError, RuntimeError):
        os.environ["HOME"] = str(mine / ".home")
        print(f"Your home folder cannot be written: Jupyter keeps its settings in {mine}/.home.")


def main() -> None:
    first, *_ = __doc__.partition("\n")
    parser = argparse.ArgumentParser(
        description=first, epilog="Other options are JupyterLab's.", allow_abbrev=False
    )
    parser.add_argument("--notebooks", type=Path, metavar="DIR", help="where your copies are")
    own, options = parser.parse_known_args()
    mine = own.notebooks.expanduser().absolute() if own.notebooks else MINE
    if own.notebooks:
        os.environ.setdefault(PROGRESS, str(mine / "progress.json"))
    try:
        copies = copy_missing(ROOT / "notebooks", mine)
        # Nobody edits this file, and links in the notebooks point to it.
        shutil.copy(ROOT / "notebooks" / "glossary.md", mine)
    except OSError as error:
        sys.exit(
            f"{error.filename or mine} cannot be written ({error.strerror}). Name a folder of your "
            'own for the notebooks: make OPTIONS="--notebooks DIR" lab'
        )
    keep_home_in(mine)
    print(
        f"Your notebooks are in {mine}. They are yours to change: updates never overwrite them. "
        "For a fresh copy of one, delete or rename yours and start again."
    )
    if newer := outdated(ROOT / "notebooks", mine):
        print(
            f"Older than the course: your copies of {', '.join(map(str, newer))}. They are kept as "
            "they are. To get the new ones as well, rename yours and start again."
        )
    with NotebookNotary() as notary:
        for copy in copies:
            notary.sign(nbformat.read(copy, as_version=nbformat.NO_CONVERT))
    # JupyterLab finds the course's settings this way, and your own still come first.
    settings = [os.environ.get("JUPYTER_CONFIG_PATH"), str(ROOT / "tools" / "jupyterlab")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, settings))
    from jupyterlab.labapp import LabApp  # takes a second, and copying does not need it

    # In a container the user is often root, which JupyterLab refuses by default.
    as_root = ["--allow-root"] if getattr(os, "geteuid", lambda: 1)() == 0 else []
    LabApp.launch_instance([*opening(copies[0]), *as_root, *options])


def opening(first: Path) -> list[str]:
    """Return the options that make JupyterLab, and the printed address, open a notebook.

    A person without a browser on the machine follows one of those.
    """
    return [f"--ServerApp.root_dir={first.parent}", f"--LabApp.default_url=/lab/tree/{first.name}"]


if __name__ == "__main__":
    main()

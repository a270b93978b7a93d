"""Copy the course, without its answers, to where submitted notebooks run."""

import compileall
import shutil
from pathlib import Path

import eleven_steps

BESIDE = ("shut_in.py", "served.py", "wire.py")  # what of the grader runs there


def copy_course(folder: Path) -> None:
    """Copy what notebooks import to a folder, and no module with an answer."""
    course = Path(eleven_steps.__file__).parents[1]
    for name in ("helpers", "eleven_steps", "data", "docs"):
        if (course / name).is_dir():
            shutil.copytree(course / name, folder / name, ignore=without_answers)
    for name in BESIDE:
        shutil.copy(Path(__file__).with_name(name), folder)
    (folder / "eleven_steps" / "checks" / "__init__.py").touch()
    compileall.compile_dir(folder, quiet=2)
    folder.chmod(0o755)  # bubblewrap reads it as another user


def without_answers(folder: str, names: list[str]) -> list[str]:
    """Return the names in a folder that are not copied: of the checks everything but run."""
    checks = Path(folder).name == "checks"
    return [name for name in names if name == "__pycache__" or checks and name != "run"]

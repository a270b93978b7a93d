"""Copy the course, without its answers, to where submitted notebooks run."""

import ast
import compileall
import shutil
from pathlib import Path

import helpers


def stage(folder: Path) -> None:
    """Copy what notebooks import to a folder: the helpers and data, and no module with an answer.

    Of the checks it gets the modules that run a notebook and what these import.
    """
    source = Path(helpers.__file__).parent
    ignore = shutil.ignore_patterns("checks", "__pycache__")
    shutil.copytree(source, folder / source.name, ignore=ignore)
    for extra in ("data", "docs"):
        if (source.parent / extra).is_dir():
            shutil.copytree(source.parent / extra, folder / extra)
    checks = folder / source.name / "checks"
    checks.mkdir()
    (checks / "__init__.py").touch()
    for path in needed(source / "checks", "elsewhere"):
        shutil.copy2(path, checks)
    compileall.compile_dir(folder, quiet=2)
    folder.chmod(0o755)  # a container reads it as another user


def needed(checks: Path, name: str) -> set[Path]:
    """Return the files of a module of the checks and of those that it imports, and so on."""
    found: set[Path] = set()
    left = [name]
    while left:
        path = checks / f"{left.pop()}.py"
        if path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module == "helpers.checks":
                left += [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("helpers."):
                left.append(node.module.rpartition(".")[2])
    return found

"""Let another virtual environment see what is installed in this one.

Usage: python tools/see.py ENVIRONMENT, with the Python whose packages are to be seen.
"""

import argparse
import subprocess
import sys
import sysconfig
from pathlib import Path

ASK = "import sysconfig; print(sysconfig.get_path('purelib'))"
SHARED = "lab", "nbconvert"  # of share/jupyter: JupyterLab's pages, nbconvert's templates


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("environment", type=Path, help="the one that is to see it")
    other, ours = parser.parse_args().environment, sysconfig.get_path("purelib")
    python = other / "bin" / "python"
    theirs = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True)
    line = f"import site; site.addsitedir({ours!r})\n"  # reads what is installed to be edited, too
    Path(theirs.stdout.strip(), "course.pth").write_text(line, "utf-8")
    share = other / "share" / "jupyter"
    share.mkdir(parents=True, exist_ok=True)
    for name in SHARED:
        (share / name).unlink(missing_ok=True)
        (share / name).symlink_to(Path(sys.prefix, "share", "jupyter", name).resolve())


if __name__ == "__main__":
    main()

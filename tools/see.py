"""Let another virtual environment see what is installed in this one.

Usage: python tools/see.py ENVIRONMENT, with the Python whose packages are to be seen.
"""

import subprocess
import sys
import sysconfig
from pathlib import Path

ASK = "import sysconfig; print(sysconfig.get_path('purelib'))"


def main() -> None:
    ours = sysconfig.get_path("purelib")
    python = Path(sys.argv[1], "bin", "python")
    theirs = subprocess.run([python, "-c", ASK], capture_output=True, text=True, check=True)
    line = f"import site; site.addsitedir({ours!r})\n"  # reads what is installed to be edited, too
    Path(theirs.stdout.strip(), "course.pth").write_text(line, "utf-8")


if __name__ == "__main__":
    main()

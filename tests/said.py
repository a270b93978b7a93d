"""What the checks say to known answers, whole, as a person has read it: a TOML file for each test.

RENEW_SAID=1 in the environment writes the files anew; what has changed is read in `git diff`.
"""

import os
import tomllib
from pathlib import Path

FOLDER = Path(__file__).parent / "said"


def as_read(name, said):
    """Return what was read of a test; with RENEW_SAID write down what is said now."""
    path = FOLDER / f"{name}.toml"
    if os.environ.get("RENEW_SAID"):
        path.parent.mkdir(exist_ok=True)
        lines = (f"{quoted(answer)} = {quoted(message)}\n" for answer, message in said.items())
        path.write_text("".join(lines), "utf-8")
    return tomllib.loads(path.read_text("utf-8"))


def quoted(text):
    """Return a text as TOML has it, in quotation marks that it does not hold if that goes."""
    if "'" not in text and "\n" not in text:
        return f"'{text}'"
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'

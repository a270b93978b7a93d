"""The small package that the notebooks of Eleven Steps to Multi-Head Attention import.

It holds the class, its trace and the examples. Its files import nothing from
eleven_steps (no pictures, no checks), only each other.
"""

import sys
from importlib import import_module

# The library has these files as eleven_steps.helpers; under both names they are one module.
if __name__ == "helpers":
    for name in ("attention", "examples", "trace"):
        module = import_module(f"eleven_steps.helpers.{name}")
        sys.modules[f"helpers.{name}"] = globals()[name] = module

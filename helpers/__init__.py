"""What the notebooks of Eleven Steps to Multi-Head Attention import, one file per purpose.

The class, its trace, the examples and a table: what a lesson shows or a learner may keep. Nothing
of eleven_steps enters, no picture, no check: each file stands on its own or on its neighbours.
"""

import sys
from importlib import import_module

# The library has these files as eleven_steps.helpers; under both names they are one module.
if __name__ == "helpers":
    for name in ("attention", "examples", "table", "trace"):
        module = import_module(f"eleven_steps.helpers.{name}")
        sys.modules[f"helpers.{name}"] = globals()[name] = module

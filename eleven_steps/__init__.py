"""The course's own library: checks that name mistakes, pictures, sliders, and what goes beyond.

What a lesson calls and does not show enters, each thing in the room whose first lines ask for it.
What a learner is to read never does: that stands in notebooks and helpers. Nor does what only a
maintainer or a teacher runs, which stands in tools and bench.
"""

import os
import sys

# `python -m` looks in the folder it is called from first, also for what torch imports: somebody's
# random.py may be there. It comes last, so that what we need is ours; what is asked about is not.
if sys.argv[:1] == ["-m"] and sys.path[:1] == [os.getcwd()]:
    sys.path.append(sys.path.pop(0))

# Nothing here is imported under the name helpers, which may be somebody else's: it is a package
# of this one. In a copy of the repository its folder stands beside this one, for the notebooks.
_here = os.path.dirname(__file__)
if not os.path.isdir(os.path.join(_here, "helpers")):
    __path__.append(os.path.dirname(_here))


class _OlderNotebook:
    """The last finder, which Python asks for modules that no other finder has found."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Report how to get the new notebook, if a copy of an older one imports what is gone."""
        ours = name.startswith(f"{__name__}.") and not name.rpartition(".")[2].startswith("_")
        if ours or name in ("helpers.errors", "helpers.table"):
            raise ImportError(
                f"This version of the course has no {name}. If this notebook is your copy from an "
                "older version, rename it: make lab then adds the new one.",
                name=name,
            )


sys.meta_path.append(_OlderNotebook)

"""What `pip install -e .` adds to pyproject.toml: notebooks import helpers by its own name.

A copy that is installed has helpers inside eleven_steps, where it is in the way of nobody's own.
"""

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel


class WithHelpers(editable_wheel):
    """Let a Python find helpers in this folder, behind every other package of that name."""

    def run(self):
        """Install as ever, with one package more."""
        self.distribution.packages.append("helpers")
        super().run()


setup(cmdclass={"editable_wheel": WithHelpers})

"""Let `pip install -e .` provide helpers as a package of its own, as the notebooks import it.

An ordinary installation has helpers only inside eleven_steps, where its common name cannot hide
somebody else's package.
"""

from setuptools import setup
from setuptools.command.editable_wheel import editable_wheel


class WithHelpers(editable_wheel):
    """Add helpers to the packages of an editable installation."""

    def run(self):
        """Install the listed packages and helpers."""
        self.distribution.packages.append("helpers")
        super().run()


setup(cmdclass={"editable_wheel": WithHelpers})

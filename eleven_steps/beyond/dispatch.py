"""Observe every torch operation while it runs.

torch documents how, and keeps the class in a module with a private name: only this file names it.
"""

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """Pass every torch operation to __torch_dispatch__ while the mode is active."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # the guard against torch.compile takes seconds to import

"""See every operation of torch as it runs.

torch documents how, and keeps the class in a module with a private name: only this file names it.
"""

from torch.utils._python_dispatch import TorchDispatchMode


class DispatchMode(TorchDispatchMode):
    """Gets every operation below torch's functions in __torch_dispatch__ while it is on."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # what would guard against torch.compile takes seconds to import

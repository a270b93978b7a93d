"""Count the bytes that processes send, from the sizes or while code runs.

A size that is no positive int raises TypeError or ValueError.
"""

import torch
from torch.utils._pytree import tree_leaves

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.helpers.attention import check_sizes

# Operators of torch that send, and the functions of torch.distributed that call them.
NAMES = {
    "c10d::allreduce_": "all_reduce",
    "c10d::send": "send",
    "c10d::alltoall_base_": "all_to_all",
    "_c10d_functional::all_reduce": "all_reduce",
}
SPACES = "c10d::", "_c10d_functional::"
SILENT = "wait", "recv", "_wrap", "monitored", "barrier"  # these send nothing


class Traffic(DispatchMode):
    """Count the bytes that this process passes to torch.distributed while the mode is active.

    The dictionaries calls and handed count calls and bytes by name, such as "all_reduce".
    """

    def __init__(self):
        super().__init__()
        self.calls: dict[str, int] = {}
        self.handed: dict[str, int] = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.name().partition(".")[0]
        if name.startswith(SPACES) and not name.partition("::")[2].startswith(SILENT):
            # The first argument is sent, or is as large as what is sent.
            tensors = [t for t in tree_leaves(args[0]) if isinstance(t, torch.Tensor)]
            name = NAMES.get(name, name)
            self.calls[name] = self.calls.get(name, 0) + 1
            self.handed[name] = self.handed.get(name, 0) + sum(tensor.nbytes for tensor in tensors)
        return func(*args, **(kwargs or {}))


def bytes_of_heads(b: int, num_tokens: int, d_out: int, bytes_each: int = 4) -> int:
    """Return the bytes that each process passes to the all-reduce of a forward pass."""
    check_sizes(b=b, num_tokens=num_tokens, d_out=d_out, bytes_each=bytes_each)
    return b * num_tokens * d_out * bytes_each


def bytes_sent(handed: int, num_processes: int) -> int:
    """Return the bytes that each process sends in a ring all-reduce of `handed` bytes.

    A chunk of 1 / num_processes goes around the ring twice, num_processes - 1 sends each time:
    first to be summed, then to give every process the sum.

    Source: "Bandwidth optimal all-reduce algorithms" (2009).
    """
    check_sizes(handed=handed, num_processes=num_processes)
    return 2 * (num_processes - 1) * handed // num_processes


def bytes_of_ring(
    b: int, num_tokens: int, features: int, num_processes: int, bytes_each: int = 4
) -> int:
    """Return the bytes that each process sends in a forward pass of the ring.

    It sends its own block, keys and values of num_tokens / num_processes tokens, and each block
    that it receives but the last. features are those of all heads of keys together.
    """
    check_sizes(b=b, num_tokens=num_tokens, features=features, bytes_each=bytes_each)
    check_sizes(num_processes=num_processes)
    block = 2 * b * (num_tokens // num_processes) * features * bytes_each
    return (num_processes - 1) * block


def bytes_of_exchange(
    b: int,
    num_tokens: int,
    d_out: int,
    num_processes: int,
    bytes_each: int = 4,
    features: int | None = None,
) -> int:
    """Return the bytes that each process sends when it exchanges heads for tokens and back.

    It sends queries, keys, values and context of num_tokens / num_processes tokens, all but the
    part that stays. features are those of all heads of keys that are sent, d_out by default.
    """
    features = d_out if features is None else features
    check_sizes(b=b, num_tokens=num_tokens, d_out=d_out, bytes_each=bytes_each)
    check_sizes(features=features, num_processes=num_processes)
    here = 2 * b * (num_tokens // num_processes) * (d_out + features) * bytes_each
    return (num_processes - 1) * here // num_processes

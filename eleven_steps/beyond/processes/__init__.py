"""Attention over several processes: split by heads, by tokens, or by one and then the other.

Only torch.distributed is used, on the CPU (gloo) or, where every process has one, on GPUs (nccl).
This room holds attention, and the code that starts and ends processes, but no training.
"""

import torch

NOT_HERE = "A browser runs one process only: run this notebook on your computer, with make lab."
if not torch.distributed.is_available():
    raise ImportError(f"this torch has no torch.distributed. {NOT_HERE}")

from eleven_steps.beyond.processes.exchange import attend_by_exchange, forward_by_exchange
from eleven_steps.beyond.processes.group import Processes
from eleven_steps.beyond.processes.ring import attend_in_ring, forward_in_ring, share_tokens
from eleven_steps.beyond.processes.shared_heads import (
    SharedHeads,
    add_up_copies,
    check_shares,
    parallelize,
    share_heads,
)
from eleven_steps.beyond.processes.traffic import (
    Traffic,
    bytes_of_exchange,
    bytes_of_heads,
    bytes_of_ring,
    bytes_sent,
)

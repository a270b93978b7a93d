"""Attention over several processes: heads cut among them, or tokens; and processes to do it in.

Only torch.distributed is used, on the CPU (gloo) or, where every process has one, on GPUs (nccl).
"""

from eleven_steps.beyond.processes.group import Processes
from eleven_steps.beyond.processes.ring import attend_in_ring, forward_in_ring, share_tokens
from eleven_steps.beyond.processes.shared_heads import (
    SharedHeads,
    check_shares,
    parallelize,
    share_heads,
)
from eleven_steps.beyond.processes.traffic import Traffic, bytes_of_heads, bytes_of_ring, bytes_sent

__all__ = [
    "Processes",
    "SharedHeads",
    "Traffic",
    "attend_in_ring",
    "bytes_of_heads",
    "bytes_of_ring",
    "bytes_sent",
    "check_shares",
    "forward_in_ring",
    "parallelize",
    "share_heads",
    "share_tokens",
]

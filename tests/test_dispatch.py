"""What torch calls by a private name is still there; test_installed.py: it saves seconds."""

import torch

from eleven_steps.beyond.dispatch import DispatchMode


class Names(DispatchMode):
    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, operation, types, args=(), kwargs=None):
        self.names.append(operation._schema.name)
        return operation(*args, **(kwargs or {}))


def test_every_operation_is_seen():
    with Names() as seen:
        torch.nn.functional.softmax(torch.ones(2, 3).T @ torch.ones(2, 3), dim=-1)
    assert [name.removeprefix("aten::") for name in seen.names] == [
        *("ones", "permute", "ones", "mm", "_softmax")
    ]

"""Count what attention costs: parameters, multiplications and memory, by formula and by running.

A size that is no positive int raises TypeError or ValueError.
"""

import weakref
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from torch.utils.flop_counter import FlopCounterMode

from eleven_steps.beyond.dispatch import DispatchMode
from eleven_steps.helpers.attention import check_sizes
from eleven_steps.helpers.examples import load_example


@dataclass(frozen=True)
class Model:
    """Hold the sizes of one published model, whose d_in is its d_out."""

    name: str
    num_heads: int
    d_out: int
    num_layers: int
    context_length: int
    vocabulary: int
    parameters_published: int
    parameters_counted: int
    attention_parameters: int

    @property
    def head_dim(self) -> int:
        """Return how many features a head has."""
        return self.d_out // self.num_heads


def load_models() -> list[Model]:
    """Load the models of data/models.json, GPT-2 from smallest to largest, then GPT-3."""
    models = load_example("models")
    return [
        Model(name, **{size: numbers[place].item() for size, numbers in models.tensors.items()})
        for place, name in enumerate(models.rows["num_heads"])
    ]


def attention_parameters(d_in: int, d_out: int, qkv_bias: bool = False) -> int:
    """Return how many parameters a MultiHeadAttention has, whatever num_heads is.

    W_query, W_key and W_value are d_in x d_out each; out_proj is d_out x d_out and has a bias.
    """
    check_sizes(d_in=d_in, d_out=d_out)
    return 3 * d_in * d_out + d_out * d_out + d_out + (3 * d_out if qkv_bias else 0)


def attention_multiplications(b: int, num_tokens: int, d_in: int, d_out: int) -> tuple[int, int]:
    """Return how often a MultiHeadAttention multiplies: in its layers, and for scores and context.

    The first number, of steps 2 and 11, grows with num_tokens; the second, of steps 5 and 8, with
    its square. Products with masked weights count.
    """
    check_sizes(b=b, num_tokens=num_tokens, d_in=d_in, d_out=d_out)
    layers = b * num_tokens * (3 * d_in * d_out + d_out * d_out)
    return layers, 2 * b * num_tokens * num_tokens * d_out


def weights_memory(b: int, num_heads: int, num_tokens: int, bytes_each: int = 4) -> int:
    """Return the bytes of one layer's weights (b, num_heads, num_tokens, num_tokens).

    A number takes bytes_each bytes: 4 in float32, 2 in float16 and bfloat16.
    """
    check_sizes(b=b, num_heads=num_heads, num_tokens=num_tokens, bytes_each=bytes_each)
    return b * num_heads * num_tokens * num_tokens * bytes_each


def model_parameters(vocabulary: int, context_length: int, d_out: int, num_layers: int) -> int:
    """Return how many parameters a whole GPT-2 or GPT-3 has.

    The embeddings of tokens and positions; in every layer attention with qkv_bias, two linear
    layers that widen each token to 4 * d_out features and back, and two LayerNorms; a last
    LayerNorm. The output layer shares the token embedding and adds none.

    Source: the tensors of GPT-2's published checkpoints.
    """
    check_sizes(vocabulary=vocabulary, context_length=context_length)
    check_sizes(d_out=d_out, num_layers=num_layers)
    attention = attention_parameters(d_out, d_out, qkv_bias=True)
    feed_forward = (d_out * 4 * d_out + 4 * d_out) + (4 * d_out * d_out + d_out)
    layer_norm = 2 * d_out
    layer = attention + feed_forward + 2 * layer_norm
    return (vocabulary + context_length) * d_out + num_layers * layer + layer_norm


def count_parameters(module: nn.Module) -> int:
    """Return how many parameters a module has."""
    return sum(parameter.numel() for parameter in module.parameters())


def count_multiplications(module: nn.Module, x: torch.Tensor) -> int:
    """Run module(x), x (b, num_tokens, d_in); return the multiplications of its matrix products.

    On the device "meta" nothing is computed, and any size is counted at once.

    Source: torch's own counter. It counts floating-point operations, a multiplication and an
    addition for each pair of numbers: half of them are multiplications.
    """
    counter = FlopCounterMode(display=False)
    with torch.no_grad(), counter:
        module(x)
    return counter.get_total_flops() // 2


def count_memory(module: nn.Module, x: torch.Tensor) -> int:
    """Run module(x), x (b, num_tokens, d_in), without gradients; return the most bytes held.

    Parameters, buffers and x do not count, nor what a kernel of torch takes for itself.
    """
    with torch.no_grad(), Held() as held:
        module(x)
    return held.most


class Held(DispatchMode):
    """Count the bytes of tensors made while the mode is active; `most` is the peak."""

    def __init__(self):
        super().__init__()
        self.now = self.most = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.count((args, kwargs), new=False)
        out = func(*args, **(kwargs or {}))
        self.count(out, new=True)
        return out

    def count(self, tensors: object, new: bool) -> None:
        """Count each new storage until it is freed; a view has no storage of its own."""
        for tensor in tree_leaves(tensors):
            if not isinstance(tensor, torch.Tensor):
                continue
            storage = tensor.untyped_storage()
            if storage._cdata not in self.known:
                size = storage.nbytes() if new else 0
                self.known.add(storage._cdata)
                weakref.finalize(storage, self.forget, storage._cdata, size)
                self.now += size
                self.most = max(self.most, self.now)

    def forget(self, key: int, size: int) -> None:
        """Subtract a storage that has been freed."""
        self.known.discard(key)
        self.now -= size


def write_bytes(size: int) -> str:
    """Format a number of bytes in KiB, MiB, GiB or TiB, each 1024 of the one before."""
    unit, count = "bytes", float(size)
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if count < 1024:
            break
        unit, count = larger, count / 1024
    return f"{round(count, 1):g} {unit}"

"""Fill a MultiHeadAttention with the attention weights of a GPT-2 checkpoint."""

import re
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from eleven_steps.helpers.attention import MultiHeadAttention

HEAD_DIM = 64
CONTEXT_LENGTH = 1024
LAYER = r"(transformer\.)?h\.(\d+)\.attn\.c_attn\.weight"
DTYPES = (torch.float32, torch.float64, torch.float16, torch.bfloat16)


def load_attention(
    path: str | Path, layer: int, num_heads: int | None = None
) -> MultiHeadAttention:
    """Return one layer's attention from a GPT-2 checkpoint, in the checkpoint's dtype.

    Args:
        path: a local safetensors file with GPT-2's names, h.N.attn.c_attn and so on, with or
            without the prefix "transformer.". It is read as numbers only: nothing in it runs.
        layer: which layer, from 0.
        num_heads: heads of that layer. The file does not say; unless you do, head_dim is taken to
            be 64, as in every published GPT-2.

    Returns:
        A module with d_in = d_out, qkv_bias=True and dropout 0.0. Its context_length is the number
        of position embeddings in the file, or 1024 if there are none.

    Raises:
        FileNotFoundError: path is not a file.
        TypeError: layer is not an int, or a tensor is not floating-point of 16 bits or more.
        ValueError: the file is not a safetensors file, has no such layer, lacks one of its tensors,
            or a tensor has the wrong size; or d_out does not fit num_heads.

    Source: the names and the layout of GPT-2's published checkpoints, whose layers compute
    x @ weight + bias: nn.Linear stores the transpose of such a weight.
    """
    (wide, wide_bias, out_weight, out_bias), context_length = read_layer(path, layer)
    d = out_bias.numel()
    if num_heads is None:
        if d % HEAD_DIM:
            raise ValueError(
                f"d_out is {d}, not a multiple of GPT-2's head_dim {HEAD_DIM}: say num_heads"
            )
        num_heads = d // HEAD_DIM

    state_dict = {"out_proj.weight": out_weight.T, "out_proj.bias": out_bias}
    for name, weight, bias in zip(
        ("W_query", "W_key", "W_value"), wide.chunk(3, dim=1), wide_bias.chunk(3), strict=True
    ):
        state_dict |= {f"{name}.weight": weight.T, f"{name}.bias": bias}  # (d_out, d_in), (d_out,)
    with torch.device("meta"):  # draws no random numbers for weights that are replaced
        mha = MultiHeadAttention(d, d, context_length, 0.0, num_heads, qkv_bias=True)
    mha = mha.to(wide.dtype).to_empty(device="cpu")
    mha.load_state_dict(state_dict)
    return mha


def read_layer(path: str | Path, layer: int) -> tuple[list[torch.Tensor], int]:
    """Return weight and bias of a layer's c_attn and c_proj, and the file's context_length."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"there is no file {path}: a local safetensors file is expected")
    try:
        file = safe_open(path, framework="pt")
    except SafetensorError as error:
        raise ValueError(f"{path} is not a safetensors file: {error}") from error
    with file:
        names = set(file.keys())
        prefix = layer_prefix(names, layer, path)
        parts = [f"{prefix}h.{layer}.attn.{part}" for part in ("c_attn", "c_proj")]
        wanted = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
        if missing := [name for name in wanted if name not in names]:
            raise ValueError(f"{path} has no {', '.join(missing)}, which must be there")
        tensors = {name: file.get_tensor(name) for name in wanted}
        d = tensors[wanted[-1]].numel()
        check_tensors(tensors, d)
        positions = f"{prefix}wpe.weight"
        shape = file.get_slice(positions).get_shape() if positions in names else [CONTEXT_LENGTH, d]
    if shape[1:] != [d]:
        raise ValueError(f"{positions} has shape {tuple(shape)}: (context_length, {d}) is expected")
    return list(tensors.values()), shape[0]


def check_tensors(tensors: dict[str, torch.Tensor], d: int) -> None:
    """Raise unless c_attn (d, 3d), c_proj (d, d) and their biases fit, in one float dtype."""
    shapes = [(d, 3 * d), (3 * d,), (d, d), (d,)]
    first = next(iter(tensors.values())).dtype
    for (name, tensor), shape in zip(tensors.items(), shapes, strict=True):
        if tensor.shape != shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}: {shape} is expected")
        if tensor.dtype != first or first not in DTYPES:
            expected = first if first in DTYPES else "floating-point of 16 bits or more"
            raise TypeError(f"{name} holds {tensor.dtype}: {expected} is expected")


def layer_prefix(names: set[str], layer: int, path: str | Path) -> str:
    """Return the prefix before h.N in the names; raise if the layer is missing."""
    if not isinstance(layer, int) or isinstance(layer, bool):
        raise TypeError(f"layer is {layer!r} ({type(layer).__name__}): an int is expected")
    found = (re.fullmatch(LAYER, name) for name in names)
    prefixes = {int(match[2]): match[1] or "" for match in found if match}
    if not prefixes:
        raise ValueError(f"{path} has no h.N.attn.c_attn.weight: GPT-2's names are expected")
    if layer not in prefixes:
        known = ", ".join(map(str, sorted(prefixes)))
        raise ValueError(f"layer is {layer}, but {path} has the layers {known}")
    return prefixes[layer]

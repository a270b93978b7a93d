"""Fill a MultiHeadAttention with the attention weights of a GPT-2 checkpoint."""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from eleven_steps.helpers.attention import MultiHeadAttention

HEAD_DIM = 64
CONTEXT_LENGTH = 1024


def load_attention(
    path: str | Path, layer: int, num_heads: int | None = None
) -> MultiHeadAttention:
    """Return one layer's attention from a GPT-2 checkpoint, in the checkpoint's dtype.

    Args:
        path: a local safetensors file with GPT-2's names, h.N.attn.c_attn and so on, with or
            without the prefix "transformer.". It is read as numbers only: nothing in it runs.
        layer: which layer, from 0.
        num_heads: heads of that layer. The file does not hold the number; by default head_dim is
            64, as in every published GPT-2.

    Returns:
        A module with d_in = d_out, qkv_bias=True and dropout 0.0. Its context_length is the number
        of position embeddings in the file, or 1024 if there are none.

    Raises:
        FileNotFoundError: path is not a file.
        ValueError: the file is not a safetensors file or lacks a tensor of the layer, or d_out does
            not fit num_heads.
        RuntimeError: a tensor has the wrong size.

    Source: the names and the layout of GPT-2's published checkpoints, whose layers compute
    x @ weight + bias: nn.Linear stores the transpose of such a weight.
    """
    (wide, wide_bias, out_weight, out_bias), context_length = read_layer(path, layer)
    d = out_bias.numel()
    if num_heads is None and d % HEAD_DIM:
        raise ValueError(
            f"d_out is {d}, no multiple of GPT-2's head_dim {HEAD_DIM}: pass num_heads"
        )
    num_heads = d // HEAD_DIM if num_heads is None else num_heads

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
        prefix = "transformer." if any(name.startswith("transformer.") for name in names) else ""
        parts = [f"{prefix}h.{layer}.attn.{part}" for part in ("c_attn", "c_proj")]
        wanted = [f"{part}.{kind}" for part in parts for kind in ("weight", "bias")]
        if missing := [name for name in wanted if name not in names]:
            known = sorted(name for name in names if name.endswith(".attn.c_attn.weight"))
            raise ValueError(
                f"{path} has no {', '.join(missing)}: the layers of a GPT-2 are expected, and it "
                f"has {', '.join(known) or 'none'}"
            )
        tensors, positions = [file.get_tensor(name) for name in wanted], f"{prefix}wpe.weight"
        has_positions = positions in names
        return tensors, file.get_slice(positions).get_shape()[
            0
        ] if has_positions else CONTEXT_LENGTH

"""Carry questions, arguments and replies from process to process as JSON, never as a pickle.

Only plain data can be sent: numbers, texts, tensors, lists, dictionaries, layers, a case, a reply.
The data may be forged, so decode builds plain values from it or raises.
"""

import base64
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn

from eleven_steps.checks.asking.cases import Case
from eleven_steps.checks.asking.clauses import Reply
from eleven_steps.checks.asking.copies import KEEPABLE, LONGEST, stand_in
from eleven_steps.checks.asking.failures import Failure
from eleven_steps.checks.asking.isolation import attempt, type_name
from helpers.attention import MultiHeadAttention

PLACE = "code", "wrong", "gets", "expected", "hint"  # texts of a verdict about a place
LARGEST_MODULE = 4096  # largest size of a module that is rebuilt
SIZES = "d_in", "d_out", "context_length", "num_heads"
DTYPES = {str(kind): kind for kind in vars(torch).values() if isinstance(kind, torch.dtype)}
KNOWN = {"Case": Case, "Reply": Reply}  # dataclasses that are sent, field by field


def encode(value: Any) -> Any:
    """Return the arguments of a question, or a reply, as data for JSON.

    Anything else is encoded as the name of its type.
    """
    plain = attempt(_encode, value)
    return {"type": type_name(value)} if isinstance(plain, Failure) else plain


def _encode(value: Any) -> Any:
    kind = type(value)
    if value is None or kind in (bool, int, float):
        return value
    if kind is str:
        return value[:LONGEST]
    if value is ...:
        return {"ellipsis": True}
    if kind is list:
        return [encode(item) for item in value]
    if kind in (tuple, torch.Size):
        return {"tuple": [encode(item) for item in value]}
    if kind is dict:
        return {"names": [[encode(name), encode(item)] for name, item in value.items()]}
    if KNOWN.get(kind.__name__) is kind:
        parts = {part.name: encode(getattr(value, part.name)) for part in fields(value)}
        return {"made": kind.__name__, "of": parts}
    if kind is Failure:
        return {"failure": value.text, "line": value.line, "number": value.number}
    if kind is nn.Linear:
        return {"weight": encode(value.weight), "biased": encode(value.bias)}
    if kind is MultiHeadAttention:
        sizes = [int(getattr(value, name)) for name in SIZES]
        biased = value.W_query.bias is not None
        return {"sizes": sizes, "bias": biased, "dropout": float(value.dropout.p)}
    if kind in (torch.Tensor, nn.Parameter):
        return encode_tensor(value.detach())
    if kind is np.ndarray:
        return {"array": encode_tensor(torch.as_tensor(value))}
    return {"type": type_name(value)}


def encode_tensor(tensor: torch.Tensor, most: int = KEEPABLE) -> dict[str, Any]:
    """Return a tensor as data for JSON, or only its shape if it has too many numbers."""
    plain = {"dtype": str(tensor.dtype), "shape": list(tensor.shape)}
    if tensor.is_meta or tensor.numel() > most:
        return plain
    # Strides decide whether a view is possible.
    if not tensor.is_contiguous() and 0 not in tensor.stride():
        plain["strides"] = list(tensor.stride())
    flat = tensor.cpu().resolve_conj().resolve_neg().reshape(-1).contiguous()
    data = flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""
    return plain | {"data": base64.b64encode(data).decode("ascii")}


def decode(plain: Any) -> Any:
    """Return the value that was encoded; any exception may be raised for forged data."""
    if isinstance(plain, list):
        return [decode(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    if "ellipsis" in plain:
        return ...
    if "tuple" in plain:
        return tuple(map(decode, plain["tuple"]))
    if "names" in plain:
        return {decode(name): decode(item) for name, item in plain["names"]}
    if "made" in plain:
        return KNOWN[plain["made"]](**{str(name): decode(v) for name, v in plain["of"].items()})
    if "failure" in plain:
        texts = (str(plain[part])[:300] for part in ("failure", "line"))
        return Failure(*texts, int(plain["number"]))
    if "biased" in plain:
        return _decode_layer(decode(plain["weight"]), decode(plain["biased"]))
    if "sizes" in plain:
        return _decode_module(plain["sizes"], plain["bias"] is True, float(plain["dropout"]))
    if "dtype" in plain:
        return _decode_tensor(**plain)
    if "array" in plain:
        return _decode_tensor(**plain["array"]).numpy()
    return stand_in(str(plain["type"]))


def _decode_tensor(
    dtype: str, shape: list[int], data: str | None = None, strides: list[int] | None = None
) -> torch.Tensor:
    kind = DTYPES[dtype]
    if data is None:  # takes no memory, even if the shape is forged
        return torch.empty(shape, dtype=kind, device="meta")
    numbers = bytearray(base64.b64decode(data, validate=True))
    flat = torch.frombuffer(numbers, dtype=kind) if numbers else torch.empty(0, dtype=kind)
    dense = flat.reshape(shape)
    if strides is None or sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) > KEEPABLE:
        return dense
    return torch.empty_strided(shape, strides, dtype=kind).copy_(dense)


def _decode_layer(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    # On the meta device, because a forged weight without numbers may claim any size.
    layer = nn.Linear(*weight.T.shape, bias=bias is not None, device="meta")
    state = {"weight": weight} | ({} if bias is None else {"bias": bias})
    layer.load_state_dict(state, assign=True)
    return layer


def _decode_module(sizes: list[int], bias: bool, dropout: float) -> MultiHeadAttention:
    small = max(sizes) <= LARGEST_MODULE
    d_in, d_out, context_length, num_heads = sizes if small else (1, 1, 1, 1)
    module = MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads, qkv_bias=bias)
    if not small:  # a forged module may claim any size, and only its sizes are looked at
        vars(module).update(zip(SIZES, map(int, sizes), strict=True))
    return module

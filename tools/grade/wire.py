"""Carry answers and questions from process to process as plain JSON: nothing is ever unpickled.

What cannot be carried arrives as an object that has the name of its type and nothing else. What
came may have been forged: decode makes plain values of it, or raises.
"""

import base64
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import nn

from eleven_steps.checks.run.ask import Pass, Seen
from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.copies import KEEPABLE, LARGEST, stand_in
from eleven_steps.checks.run.isolate import CPU_STRIDED, Failure, attempt, type_name
from eleven_steps.checks.run.making import Facts
from eleven_steps.checks.run.places import Place
from eleven_steps.checks.run.recording import Op, Stop, Trace
from eleven_steps.checks.run.variant import Variant
from helpers.attention import MultiHeadAttention

SHALLOW = 2  # lists in lists: a matrix
DEEP = 9  # what is asked and seen: the sizes that an op of a trace was given
LONGEST = 4000  # things in a list: the calls of a trace
LARGEST_MODULE = 4096  # of each size, to be built anew
SIZES = "d_in", "d_out", "context_length", "num_heads"
DTYPES = {str(kind): kind for kind in vars(torch).values() if isinstance(kind, torch.dtype)}
# Dataclasses that may travel, field by field.
KNOWN = {e.__name__: e for e in (Case, Variant, Pass, Seen, Facts, Trace, Op, Stop, Place)}


def encode(value: Any, depth: int = SHALLOW) -> Any:
    """Return value, an answer, a question or a reply, as what JSON can hold.

    Args:
        value: anything; what cannot be carried arrives as its type's name.
        depth: lists in lists, dictionaries and dataclasses that are carried.
    """
    plain = attempt(_encode, value, depth)
    return _stand_in(value) if isinstance(plain, Failure) else plain


def _stand_in(value: Any) -> dict[str, str]:
    name = attempt(type_name, value)
    return {"type": name if type(name) is str else "object"}


def _encode(value: Any, depth: int) -> Any:
    kind = type(value)
    if value is None or kind in (bool, float):
        return value
    if kind is int:
        return max(min(value, LARGEST), -LARGEST)
    if kind is str:
        return value[:1000]
    if value is ...:
        return {"ellipsis": True}
    if kind in (list, tuple, range, torch.Size) and depth and len(value) <= LONGEST:
        items = [_item(item, depth - 1) for item in value]
        return items if kind is list else {"tuple": items}
    if kind in (set, frozenset) and depth and len(value) <= 1000:
        items = [_item(item, 0) for item in sorted(value)]
        return {"set": items, "frozen": kind is frozenset}  # what a case is made of is hashed
    if kind is dict and depth and len(value) <= 1000:
        items = [[_item(name, 0), _item(item, depth - 1)] for name, item in value.items()]
        return {"names": items}
    if KNOWN.get(kind.__name__) is kind and depth:
        items = ((part.name, getattr(value, part.name)) for part in fields(value))
        return {"made": kind.__name__, "of": {name: _item(v, depth - 1) for name, v in items}}
    if isinstance(value, nn.Linear):
        return {"weight": _encode(value.weight, 0), "biased": _encode(value.bias, 0)}
    if kind is MultiHeadAttention:
        sizes = [getattr(value, name) for name in SIZES]
        biased = value.W_query.bias is not None
        return {"sizes": sizes, "bias": biased, "dropout": float(value.dropout.p)}
    if kind is Failure:
        return {"failure": value.text, "line": value.line, "number": value.number}
    plain = kind in (torch.Tensor, nn.Parameter) and not value.is_quantized
    if plain and (value.is_meta or (value.layout, value.device.type) == CPU_STRIDED):
        return encode_tensor(value.detach())
    if kind is np.ndarray or issubclass(kind, np.generic):
        tensor = torch.as_tensor(np.array(value))
        return {"array": encode_tensor(tensor), "scalar": kind is not np.ndarray}
    return _stand_in(value)


def _item(value: Any, depth: int) -> Any:
    """Encode one thing of several, which takes no other down with it; ours need no care."""
    trusted = (list, tuple, dict, bool, int, float, str, torch.Tensor, *KNOWN.values())
    return (_encode if any(type(value) is kind for kind in trusted) else encode)(value, depth)


def encode_tensor(tensor: torch.Tensor, most: int = KEEPABLE) -> dict[str, Any]:
    """Return a tensor as what JSON can hold; of one with more than most numbers, its shape."""
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
    """Return the value that encode was given; raise anything where plain is forged."""
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
    if "set" in plain:
        return (frozenset if plain["frozen"] is True else set)(map(decode, plain["set"]))
    if "made" in plain:
        return KNOWN[plain["made"]](**{str(name): decode(v) for name, v in plain["of"].items()})
    if "biased" in plain:
        return _decode_layer(decode(plain["weight"]), decode(plain["biased"]))
    if "sizes" in plain:
        return _decode_module(plain["sizes"], plain["bias"] is True, float(plain["dropout"]))
    if "failure" in plain:
        texts = (str(plain[part])[:300] for part in ("failure", "line"))
        return Failure(*texts, int(plain["number"]))
    if "dtype" in plain:
        return _decode_tensor(**plain)
    if "array" in plain:
        array = _decode_tensor(**plain["array"]).numpy()
        return array[()] if plain["scalar"] else array
    return stand_in(str(plain["type"]))


def _decode_tensor(
    dtype: str, shape: list[int], data: str | None = None, strides: list[int] | None = None
) -> torch.Tensor:
    kind = DTYPES[dtype]
    if data is None:  # whatever the shape, this takes no memory
        return torch.empty(shape, dtype=kind, device="meta")
    numbers = bytearray(base64.b64decode(data, validate=True))
    flat = torch.frombuffer(numbers, dtype=kind) if numbers else torch.empty(0, dtype=kind)
    dense = flat.reshape(shape)
    if strides is None or sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) > KEEPABLE:
        return dense
    return torch.empty_strided(shape, strides, dtype=kind).copy_(dense)


def _decode_layer(weight: torch.Tensor, bias: torch.Tensor | None) -> nn.Linear:
    # Made without memory: any size may be claimed, of a weight without numbers too.
    layer = nn.Linear(*weight.T.shape, bias=bias is not None, device="meta")
    state = {"weight": weight} | ({} if bias is None else {"bias": bias})
    layer.load_state_dict(state, assign=True)
    return layer


def _decode_module(sizes: list[int], bias: bool, dropout: float) -> MultiHeadAttention:
    small = max(sizes) <= LARGEST_MODULE
    d_in, d_out, context_length, num_heads = sizes if small else (1, 1, 1, 1)
    module = MultiHeadAttention(d_in, d_out, context_length, dropout, num_heads, qkv_bias=bias)
    if not small:  # any size may be claimed: of this module only the sizes count
        vars(module).update(zip(SIZES, map(int, sizes), strict=True))
    return module

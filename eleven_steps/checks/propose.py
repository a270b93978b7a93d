"""The declaration to paste for a class from elsewhere, filled in as far as names and shapes say."""

import inspect
import re
from typing import Any

from torch import nn

from eleven_steps.checks.asking.failures import Failure, names_read
from eleven_steps.checks.asking.isolation import attempt

LAYERS = {"W_query", "W_key", "W_value"}
# What constructors elsewhere call our sizes.
WORDS = {
    "num_heads": r"n(um)?_?(attention_)?heads?|heads|h",
    "dropout": r"(attn?_?|attention_?)?(dropout|drop|pdrop)(_?(p|prob|rate))?",
    "context_length": r"block_size|context(_length|_size)?|(max_)?seq_len(gth)?|max_len|n_ctx",
    "d_out": r"(n_?|d_?)?(embd?|embed|model|out|hidden)(_?(dim|size))?|dim|d|width|channels",
    "d_in": r"d_in|in_(dim|features)|dim_in",
    "qkv_bias": r"(qkv_)?bias",
}
ROLES = {  # whose numbers a parameter holds, by its name
    "W_query": r"(\b|_)(w_?)?(q|query|queries|to_q)(_?(proj|lin|linear))?(\b|_)",
    "W_key": r"(\b|_)(w_?)?(k|key|keys|to_k)(_?(proj|lin|linear))?(\b|_)",
    "W_value": r"(\b|_)(w_?)?(v|value|values|to_v)(_?(proj|lin|linear))?(\b|_)",
    "packed": r"(qkv|c_attn|in_proj|kqv|query_key_value)",
    "out_proj": r"(out|o|c_proj|proj|dense)",
}
SIZES = {"d_in": 12, "d_out": 12, "context_length": 9, "dropout": 0.0, "num_heads": 3}
FORM = """declare(
    build=lambda d_in, d_out, context_length, dropout, num_heads{bias}: {name}({arguments}),
    state=lambda mha: {{{entries}
    }},
    call=lambda module, x: {call},{one_width}
)"""


def is_lectures(cls: Any) -> bool:
    """Say whether a class is built as the lecture's is, and uses one of its layers' names."""
    if not isinstance(cls, type):
        return attempt(_binds, cls) is True
    functions = [f for base in cls.__mro__ for f in vars(base).values() if inspect.isfunction(f)]
    used = {name for function in functions for name in names_read(function)["called"]}
    return attempt(_binds, cls) is True and bool(used & LAYERS)


def _binds(cls: Any) -> bool:
    inspect.signature(cls).bind(*range(5))
    return True


def proposal(cls: Any) -> str:
    """Return a declaration of a class as code to complete; what is unclear is left as `...`."""
    name = getattr(cls, "__name__", "YourClass")
    arguments = attempt(_arguments, cls)
    arguments = {} if isinstance(arguments, Failure) else arguments
    module = attempt(_built, cls, arguments)
    entries = attempt(_entries, module) if isinstance(module, nn.Module) else []
    if not entries or isinstance(entries, Failure):
        entries = ["# its parameters, each made of mha.W_query.weight, mha.out_proj.bias, ..."]
    given = ", ".join(f"{ours or '...'}" for ours in arguments.values())
    return FORM.format(
        name=name,
        arguments=given or "...",
        bias=", qkv_bias=False" if "qkv_bias" in arguments.values() else "",
        entries="".join(f"\n        {entry}" for entry in entries),
        call=_called(cls),
        one_width="" if "d_in" in arguments.values() else "\n    one_width=True,",
    )


def _arguments(cls: Any) -> dict[str, str]:
    """Each argument that the constructor needs, or that names one of our sizes, with that size."""
    found: dict[str, str] = {}
    for parameter in inspect.signature(cls).parameters.values():
        fits = (ours for ours, words in WORDS.items() if re.fullmatch(words, parameter.name, re.I))
        ours = next((size for size in fits if size not in found.values()), "")
        if ours or parameter.default is parameter.empty:
            found[parameter.name] = ours
    return found


def _built(cls: Any, arguments: dict[str, str]) -> Any:
    sizes = {**SIZES, "qkv_bias": True}
    return cls(**{name: sizes[ours] for name, ours in arguments.items()})


def _entries(module: nn.Module) -> list[str]:
    shapes = {name: tuple(p.shape) for name, p in module.named_parameters()}
    return [f'"{name}": {_made_of(name)},  # {shape}' for name, shape in shapes.items()]


def _made_of(name: str) -> str:
    part = "bias" if name.endswith("bias") else "weight"
    roles = [role for role, words in ROLES.items() if re.search(words, name.lower())]
    if "packed" in roles:
        three = ", ".join(f"mha.{layer}.{part}" for layer in ("W_query", "W_key", "W_value"))
        return f"torch.cat([{three}])"
    return f"mha.{roles[0]}.{part}" if roles else "..."


def _called(cls: Any) -> str:
    forward = attempt(lambda: inspect.signature(cls.forward).parameters.values())
    if isinstance(forward, Failure):
        return "module(x)"
    needed = [p for p in list(forward)[1:] if p.default is p.empty and p.kind in (0, 1)]
    more = [", x" if p.name in ("key", "value", "k", "v") else ", ..." for p in needed[1:]]
    return f"module(x{''.join(more)})"

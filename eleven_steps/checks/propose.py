"""Write a declaration to paste for a class, filled in as far as names and shapes say."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import torch
from torch import nn

from eleven_steps.checks.asking.failures import Failure, names_read
from eleven_steps.checks.asking.isolation import attempt
from eleven_steps.helpers.attention import MultiHeadAttention

LAYERS = {"query": "W_query", "key": "W_key", "value": "W_value"}
# What constructors call our sizes; of two that fit, the first that is not taken yet.
WORDS = {
    "num_heads": r"n(um)?_?(attention_|kv_|key_value_)?heads?|(kv_)?heads|h",
    "dropout": r"(\w+_)?(dropout|drop|pdrop)(_?(p|prob|rate))?|\w*_pdrop",
    "context_length": r"block_size|(max_)?(context|seq)(_?(length|len|size))?|max_(len|t)|n_ctx|"
    r"\w*max_position_embeddings",
    "d_in": r"d_in|dim_in|in(put)?_(dim|features|channels|size)",
    "d_out // num_heads": r"(d_?|dim_?)?head(_?(dim|size))?|d_[kv]|dim_head",
    "d_out": r"(n_?|d_?|h_?)?(embd?|embed|emb|model|out|hidden)(_?(dim|size))?|dim(_(model|out))?|"
    r"d|width|depth|channels|(h|hid|emb(ed(ding)?)?)_?dim|size",
    "True": r"(qkv_|attention_|use_)?bias|batch_first|causal|is_causal",
}
OFTEN = "True", "num_heads"  # values that several arguments may have
# Removes the words of a parameter's name that do not say what it is for.
PARTS = {
    "query": "q|query|queries",
    "key": "k|key|keys",
    "value": "v|value|values",
    "key value": "kv|keyvalue",
    "key query value": "kqv",
    "query key value": "qkv|cattn|in|querykeyvalue|attn",
    "out": "o|out|output|c|dense|unifyheads|",
}
IDLE_WORDS = re.compile(r"weights?|bias|proj(ection)?|linears?|lin|fc|layer|to(?!r)|w|[\d_.]")
SIZES = {"d_in": 12, "d_out": 12, "context_length": 9, "dropout": 0.0, "num_heads": 3}
FORM = """{imports}import torch

from eleven_steps.checks import check_attention, declare

declared = declare(
    build=lambda d_in, d_out, context_length, dropout, num_heads: {name}(
        {arguments}
    ),
    state=lambda mha: {{{entries}
    }},
    call=lambda module, x: {call},{one_width}
)
check_attention(declared)  # with causal=False if no token is hidden, as in an encoder"""


def is_lectures(cls: Any) -> bool:
    """Say whether a class is built as the lecture's is, and uses one of its layers' names."""
    if not isinstance(cls, type):
        return attempt(_binds, cls) is True
    functions = [f for base in cls.__mro__ for f in vars(base).values() if inspect.isfunction(f)]
    used = {name for function in functions for name in names_read(function)["called"]}
    return attempt(_binds, cls) is True and bool(used & {*LAYERS.values()})


def _binds(cls: Any) -> bool:
    inspect.signature(cls).bind(*range(5))
    return True


def proposal(cls: Any) -> str:
    """Return a declaration of a class as code to complete; what is unclear is left as `...`."""
    arguments = attempt(_arguments, cls)
    arguments = {} if isinstance(arguments, Failure) else arguments
    module = attempt(_built, cls, arguments)
    found = attempt(lambda: [*_entries(module)]) if isinstance(module, nn.Module) else []
    if not found or isinstance(found, Failure):
        found = ["# each parameter's name, and the tensor made of mha's parameters that it holds"]
    code = ", ".join(f"{name}={value}" for name, value in arguments.items())
    return FORM.format(
        imports="from types import SimpleNamespace\n\n" if "SimpleNamespace(" in code else "",
        name=getattr(cls, "__name__", "YourClass"),
        arguments=textwrap.fill(code or "...", 84, subsequent_indent=" " * 8),
        entries="".join(f"\n        {entry}" for entry in found),
        call=_call_of(cls, module),
        one_width="" if "d_in" in code else "\n    one_width=True,",
    )


def _arguments(cls: Any) -> dict[str, str]:
    """Return the value for each argument that the constructor needs, or that is one of ours."""
    found: dict[str, str] = {}
    for name, parameter in inspect.signature(cls).parameters.items():
        ours = _size_of(name, found)
        needed = parameter.default is parameter.empty and parameter.kind in (0, 1, 3)
        if needed and ours == "...":
            read = attempt(_read_of, cls, name)
            ours = f"SimpleNamespace({read})" if isinstance(read, str) and read else ours
        if needed or ours != "...":
            found[name] = ours
    return found


def _size_of(name: str, found: dict[str, str]) -> str:
    fits = [ours for ours, words in WORDS.items() if re.fullmatch(words, name.lower())]
    return next((one for one in fits if one in OFTEN or one not in found.values()), "...")


def _read_of(cls: type, name: str) -> str:
    """Return what a constructor reads of a config, as arguments of a SimpleNamespace."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(cls.__init__)))
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == name:
            found[node.attr] = found.get(node.attr) or _size_of(node.attr, found)
    return ", ".join(f"{attribute}={ours}" for attribute, ours in found.items())


def _built(cls: Any, arguments: dict[str, str]) -> Any:
    scope = {**SIZES, "SimpleNamespace": SimpleNamespace}
    given = {name: eval(code, scope) for name, code in arguments.items()}
    return cls(**{name: SIZES["d_out"] if size is ... else size for name, size in given.items()})


def _entries(module: nn.Module) -> Iterator[str]:
    """Return a line for each parameter, with a tensor only if the shapes agree."""
    ours = MultiHeadAttention(*SIZES.values(), qkv_bias=True)
    shapes = {name: tuple(parameter.shape) for name, parameter in module.named_parameters()}
    for name, shape in shapes.items():
        kind = "weight" if len(shape) > 1 else "bias"
        codes = _made_of(_part_of(name), kind), _made_of("query key value", kind)
        for code in (*codes, *(f"{code}.T" for code in codes if kind == "weight")):
            made = attempt(eval, code, {"mha": ours, "torch": torch})
            if isinstance(made, torch.Tensor) and tuple(made.shape) == shape:
                yield f'"{name}": {code},  # {shape}'
                break
        else:
            yield f'"{name}": ...,  # {shape}'


def _part_of(name: str) -> str:
    """Return which of our layers a parameter's name means, as a word of LAYERS."""
    words = [IDLE_WORDS.sub("", word) for word in name.lower().split(".") if not word.isdigit()]
    rest = next((word for word in reversed(words) if word), "")
    return next((part for part, words in PARTS.items() if re.fullmatch(words, rest)), "")


def _made_of(part: str, kind: str) -> str:
    """Return the weights or biases of some of our layers, as code."""
    tensors = [f"mha.{LAYERS.get(word, 'out_proj')}.{kind}" for word in part.split()]
    return tensors[0] if len(tensors) == 1 else f"torch.cat([{', '.join(tensors)}])"


def _call_of(cls: Any, module: Any) -> str:
    """Return the code of a call: x for queries, keys and values, `[0]` of several outputs."""
    forward = attempt(lambda: inspect.signature(cls.forward).parameters.values())
    if isinstance(forward, Failure):
        return "module(x)"
    needed = [p.name for p in [*forward][1:] if p.default is p.empty and p.kind in (0, 1)]
    more = ["..." if "mask" in name else "x" for name in needed[1:]]
    more += [f"{p.name}=..." for p in forward if "mask" in p.name and p.name not in needed]
    code = f"module({', '.join(['x', *more])})"
    x = torch.zeros(2, 4, SIZES["d_in"])
    for mask in (torch.ones(2, 4), torch.ones(4, 4), None):
        out = attempt(module, *[mask if "mask" in name else x for name in needed])
        if isinstance(out, tuple):
            return f"{code}[0]"
    return code

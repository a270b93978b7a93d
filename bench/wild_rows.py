"""What bench/in_the_wild.py judges: a row for each class, with the adapter that builds it.

The classes are of packages, unmodified: those of wild.toml, and below those that take more than it
can say. Each mistake was told in the thread that is its source; all but bark's were mended later.
"""

import pkgutil
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter, Signature
from itertools import accumulate
from pathlib import Path
from types import ModuleType
from typing import Any, Optional

import torch


@dataclass(frozen=True)
class Row:
    """A class of a package, and what is expected of it."""

    package: str  # with its version, as pip takes it
    name: str  # of the class
    steps: tuple[int, ...]  # those that may be named where it is wrong; none where it is right
    source: str  # where the mistake is told, or mended
    build: Callable[..., torch.nn.Module]  # its adapter: asks for our sizes by their names
    unaided: bool  # whether build returns the class itself, to be asked as it is
    says: str  # what is said of it where it cannot be judged, since it raises
    options: dict[str, Any]  # what check_attention is given besides

    @property
    def is_right(self) -> bool:
        return not self.source

    @property
    def asked(self) -> str:
        """How it is asked: bare, with options of the shell, with what is told, or built for it."""
        told = [name for name in ("layers", "call") if name in self.options]
        told += ["--full"] if self.options.get("causal") is False else []
        told += [f"--variant {self.options['variant']}"] if "variant" in self.options else []
        return ", ".join(told or ["bare"]) if self.unaided else "built"


ROWS: dict[str, Row] = {}
HUB = "https://github.com"
OURS = ["d_in", "d_out", "context_length", "dropout", "num_heads", "head_dim", "qkv_bias", "config"]
TABLE = tomllib.loads(Path(__file__).with_name("wild.toml").read_text("utf-8"))


def row(
    package: str,
    name: str,
    steps: tuple[int, ...] = (),
    source: str = "",
    unaided: bool = False,
    says: str = "",
    **options: Any,
) -> Callable:
    """Put the adapter below into ROWS: right, or a release with a mistake at one of these steps."""

    def keep(build: Callable) -> Callable:
        told = unaided, says, options
        ROWS[f"{package} {name}"] = Row(package, name, steps, source, build, *told)
        return build

    return keep


def in_table(
    place: str,
    build: Mapping[str, Any] | None = None,
    first: Sequence[str] = (),
    package: str = "",
    broke: str = "",
    steps: Sequence[int] = (),
    source: str = "",
    named: str = "",
    **options: Any,
) -> None:
    """Put classes into ROWS as wild.toml says."""
    name, is_bare = named or place.partition(":")[2], build is None
    adapter = (lambda: found(place, *first)) if is_bare else builder(place, first, **build)
    if "call" in options:
        options["call"] = CALLS[options["call"]]
    if "layers" in options:  # a table cannot hold None
        options["layers"] = {ours: at or None for ours, at in options["layers"].items()}
    for release, at, told in (package, (), ""), (broke, tuple(steps), f"{HUB}/{source}"):
        if release:
            row(release, name, at, told, unaided=is_bare, **options)(adapter)


def builder(
    place: str,
    first: Sequence[str],
    given: Sequence = (),
    named: Mapping[str, Any] | None = None,
    config: str = "",
) -> Callable[..., torch.nn.Module]:
    """Return the adapter of a class that takes what is given, and what is named."""
    named = named or {}
    asked = [size for size in OURS if size in [*given, *named.values()]]

    def build(**sizes):
        kind = found(place, *first)
        by_place = [sizes.get(value, value) for value in given]
        by_name = {name: sizes.get(value, value) for name, value in named.items()}
        if config:
            return kind(found(f"{place.partition(':')[0]}:{config}")(**by_name), *by_place)
        return kind(*by_place, **by_name)

    build.__signature__ = Signature(Parameter(size, Parameter.KEYWORD_ONLY) for size in asked)
    return build


def found(place: str, *first: str) -> Any:
    """Return the class at "module:Class"; the packages named first are imported bare."""
    bare(*first)
    return pkgutil.resolve_name(place)


# What several adapters share


def a_type(name: str) -> type:
    """What a bare package has under the name of a class; only annotations ask for it."""
    if name[0].isupper():
        return object
    raise AttributeError(name)


def bare(*packages: str) -> None:
    """Let modules of these packages be imported without all that the packages import first."""
    for package in packages:
        for name in accumulate(package.split("."), "{}.{}".format):
            parent, _, last = name.rpartition(".")
            places = sys.modules[parent].__path__ if parent else sys.path
            module = sys.modules.setdefault(name, ModuleType(name))
            module.__path__ = [f"{place}/{last}" for place in places]
            module.__getattr__, module.__version__ = a_type, "0"


def added(x, hidden):
    """A mask (1, 1, num_tokens, num_tokens) that is added to the scores."""
    return x.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)[None, None]


def masked(module, x, hidden):
    return module(x, attention_mask=added(x, hidden))


def turned(module, x, hidden):
    """A call with the cosines and sines of positions, at base 10,000."""
    place = torch.arange(x.shape[1], device=x.device)[:, None]
    turns = place * 1e4 ** -(torch.arange(0, module.head_dim, 2, device=x.device) / module.head_dim)
    turns = torch.cat([turns, turns], -1)[None]
    places = turns.cos().to(x), turns.sin().to(x)
    return module(x, position_embeddings=places, attention_mask=added(x, hidden))


def channels_first(module, x, hidden):
    return module(x.transpose(1, 2)).transpose(1, 2)


CALLS = {call.__name__: call for call in (masked, turned, channels_first)}
for each in TABLE["classes"]:
    in_table(**each)


@row("vit-pytorch==1.26.11", "Attention, its norm taken out", causal=False)
def vit(d_out, num_heads, head_dim):
    module = found("vit_pytorch.vit:Attention")(d_out, num_heads, head_dim)
    module.norm = torch.nn.Identity()  # it takes x through a norm first
    return module


def lengths(module, x, hidden):
    """A call with the number of keys that each query may see."""
    return module(x, x, x, (~hidden).sum(-1)[None].repeat(len(x), 1))


@row("d2l==1.0.3", "MultiHeadAttention", call=lengths)
def d2l(d_out, num_heads, dropout, qkv_bias):
    module = found("d2l.torch:MultiHeadAttention")(d_out, num_heads, dropout, qkv_bias)
    module(*[torch.zeros(1, 2, d_out)] * 3, None)  # its layers are lazy: the first call makes them
    return module


DI_ENGINE = {"qkv": "attention_pre.0", "out_proj": "project.0"}


@row("di-engine==0.5.3", "Attention", layers=DI_ENGINE)
@row(
    "di-engine==0.3.1", "Attention", (6,), f"{HUB}/opendilab/DI-engine/issues/333", layers=DI_ENGINE
)
def di_engine(d_out, num_heads, head_dim, dropout):
    kind = found("ding.torch_utils.network.transformer:Attention", "ding.torch_utils.network")
    return kind(d_out, head_dim, d_out, num_heads, torch.nn.Dropout(dropout))


def twice(module, x, hidden):
    return module(x, x)


@row("torchtune==0.6.1", "MultiHeadAttention", call=twice)
@row(
    "torchtune==0.3.1",
    "MultiHeadAttention",
    (7,),
    f"{HUB}/meta-pytorch/torchtune/issues/1791",
    call=twice,
)
def torchtune(d_out, num_heads, head_dim, dropout, qkv_bias):
    bare("torchtune.modules", "torchtune.utils")
    from torchtune.modules.attention import MultiHeadAttention

    names = "q_proj", "k_proj", "v_proj", "output_proj"
    four = {name: torch.nn.Linear(d_out, d_out, qkv_bias) for name in names}
    sizes = {"embed_dim": d_out, "num_heads": num_heads, "num_kv_heads": num_heads}
    return MultiHeadAttention(**sizes, head_dim=head_dim, **four, attn_dropout=dropout)


def padded(module, x, hidden):
    """A call for each query, whose mask of padding hides what comes after it."""
    b, n, _ = x.shape
    out = module(x.repeat_interleave(n, 0), attn_mask=(~hidden).repeat(b, 1))
    return out.unflatten(0, (b, n))[:, range(n), range(n)]


@row(
    "timm==1.0.7",
    "EvaAttention",
    (6, 7),
    f"{HUB}/huggingface/pytorch-image-models/pull/2236",
    call=padded,
)
def eva(d_out, num_heads, dropout):
    kind = found("timm.models.eva:EvaAttention")
    module = kind(d_out, num_heads, qkv_bias=False, attn_drop=dropout)
    module.fused_attn = False  # the other branch was right
    return module


# Asked as they are: how they are built and called is found out


@row("openai-whisper==20250625", "MultiHeadAttention", unaided=True)
def whisper():
    bare("whisper.decoding", "whisper.transcribe")
    sys.modules["whisper.decoding"].decode = sys.modules["whisper.decoding"].detect_language = None
    sys.modules["whisper.transcribe"].transcribe = None
    return found("whisper.model:MultiHeadAttention")


# Mistakes of current releases, others than of the table


class Module(torch.nn.Module):
    """As fastai's, which a class need not initialise."""

    def __new__(cls, *args, **options):
        self = super().__new__(cls)
        torch.nn.Module.__init__(self)
        return self


@row(
    "tsai==0.4.1",
    "TST._MultiHeadAttention",
    (6,),
    f"{HUB}/timeseriesAI/tsai/blob/0.4.1/tsai/models/TST.py",
    unaided=True,
)
def tsai():
    bare("tsai.models.layers", "tsai.models.utils", "tsai.imports", "tsai.utils")
    names = {"nn": torch.nn, "Module": Module, "Tensor": torch.Tensor, "Optional": Optional}
    vars(sys.modules["tsai.imports"]).update(names, torch=torch, F=torch.nn.functional)
    return found("tsai.models.TST:_MultiHeadAttention")


@row(
    "pytorch-forecasting==1.8.0",
    "AttentionLayer of FullAttention",
    (),
    f"{HUB}/sktime/pytorch-forecasting/blob/v1.8.0/pytorch_forecasting/layers/_attention/"
    "_full_attention.py",
    says="bad operand type for unary -",
    call=lambda module, x, hidden: module(x, x, x, None),
)
def pytorch_forecasting(d_out, num_heads, dropout):
    bare("pytorch_forecasting.layers._attention")
    from pytorch_forecasting.layers._attention._attention_layer import AttentionLayer
    from pytorch_forecasting.layers._attention._full_attention import FullAttention

    return AttentionLayer(FullAttention(attention_dropout=dropout), d_out, num_heads)

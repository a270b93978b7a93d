"""Judge attention as packages ship it, unmodified: right classes, and releases with a mistake.

    python bench/in_the_wild.py [WORDS ...]     # only rows whose package or class has one of these

Each row's package is fetched from the registry into a folder of its own, in the user's cache, and
judged in a process of its own beside the course's torch; torchvision, which no class here computes
with, is stood in for. Exit status 1 if a row is not as expected, or none ran.

The mistakes are told in vit-pytorch's issue 65 and in timm's pulls 1978 and 2236. They are three:
most others that people told of stood in repositories that were never on the registry, or were
written for MXNet, Paddle, TensorFlow or JAX; fuxictr's first release there is after the mend, what
torchtune needs no longer installs, and memory-compressed-attention has a key more than attention.
"""

import importlib.machinery
import inspect
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from eleven_steps.checks import check_attention

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "eleven-steps-in-the-wild"
SECONDS = 300

# What packages need besides to be imported. torch is the course's, and none may bring another.
NEEDS = {
    "transformers": "huggingface-hub tokenizers regex pyyaml tqdm filelock fsspec typer httpx2 "
    "httpcore2 truststore anyio h11 idna click shellingham annotated-doc hf-xet rich",
    "timm": "huggingface-hub pyyaml tqdm filelock fsspec httpx2 httpcore2 truststore "
    "anyio h11 idna click typer shellingham annotated-doc hf-xet rich",
    "x-transformers": "einops einx frozendict loguru torch-einops-utils",
    "vit-pytorch": "einops",
    "labml-nn": "labml==0.4.168 labml-helpers einops",
    "perceiver-pytorch": "einops",
    "self-attention-cv": "einops",
    "d2l": "scipy pandas requests urllib3 charset-normalizer certifi pytz tzdata idna",
}


@dataclass(frozen=True)
class Row:
    """A class of a package, and what is expected of it."""

    package: str  # with its version, as pip takes it
    name: str
    steps: tuple[int, ...]  # that may be named where it is wrong; none where it is right
    adapter: Callable[[], dict[str, Any]]  # what check_attention is given


ROWS: dict[str, Row] = {}


def row(package: str, name: str, steps: tuple[int, ...] = ()) -> Callable:
    """Put an adapter into ROWS; with steps the class is wrong, at one of them."""

    def keep(adapter: Callable) -> Callable:
        ROWS[f"{package} {name}"] = Row(package, name, steps, adapter)
        return adapter

    return keep


# The adapters, five lines each at most. First right classes, then those that shipped a mistake.


@row("llms-from-scratch==1.0.19", "MultiHeadAttention")
def book():
    from llms_from_scratch.ch03 import MultiHeadAttention

    return {"cls": MultiHeadAttention}


@row("llms-from-scratch==1.0.19", "PyTorchMultiHeadAttention")
def book_fused():
    from llms_from_scratch.ch03 import PyTorchMultiHeadAttention

    return {"cls": PyTorchMultiHeadAttention}


@row("transformers==5.23.0", "GPT2Attention")
def gpt2():
    from transformers.models.gpt2 import modeling_gpt2 as gpt2

    config = "n_embd n_head attn_pdrop"
    build = of_config(gpt2.GPT2Attention, gpt2.GPT2Config, config, resid_pdrop=0.0)
    return {"cls": build, "call": lambda module, x, hidden: module(x, None, added(x, hidden))}


@row("transformers==5.23.0", "BertSelfAttention")
def bert():
    from transformers.models.bert import modeling_bert as bert

    config = "hidden_size num_attention_heads attention_probs_dropout_prob"
    layers = {"W_query": "query", "W_key": "key", "W_value": "value", "out_proj": None}
    build = of_config(bert.BertSelfAttention, bert.BertConfig, config)
    return {"cls": build, "layers": layers, "causal": False}


@row("transformers==5.23.0", "LlamaAttention")
def llama():
    from transformers.models.llama import modeling_llama as llama

    build = of_config(llama.LlamaAttention, llama.LlamaConfig, MODERN)
    return {"cls": build, "variant": "rope", "call": turned}


@row("transformers==5.23.0", "Qwen2Attention")
def qwen2():
    from transformers.models.qwen2 import modeling_qwen2 as qwen2

    build = of_config(qwen2.Qwen2Attention, qwen2.Qwen2Config, MODERN)
    return {"cls": build, "variant": "rope", "call": turned}


@row("transformers==5.23.0", "OPTAttention")
def opt():
    from transformers.models.opt import modeling_opt as opt

    build = of_config(
        opt.OPTAttention, opt.OPTConfig, "hidden_size num_attention_heads attention_dropout"
    )
    call = lambda module, x, hidden: module(x, attention_mask=added(x, hidden))  # noqa: E731
    return {"cls": build, "call": call}


@row("transformers==5.23.0", "CLIPAttention")
def clip():
    from transformers.models.clip import modeling_clip as clip

    config = "hidden_size num_attention_heads attention_dropout"
    build = of_config(clip.CLIPAttention, clip.CLIPVisionConfig, config)
    return {"cls": build, "causal": False}


@row("x-transformers==2.31.10", "Attention")
def x_transformers():
    from x_transformers import Attention

    return {
        "cls": lambda d_out, num_heads, head_dim, dropout: Attention(
            d_out, heads=num_heads, dim_head=head_dim, dropout=dropout, causal=True
        )
    }


@row("vit-pytorch==1.26.11", "Attention, its norm taken out")
def vit():
    from vit_pytorch.vit import Attention

    return {
        "cls": lambda d_out, num_heads, head_dim: without_norm(
            Attention(d_out, num_heads, head_dim)
        ),
        "causal": False,
    }


@row("timm==1.0.31", "Attention")
def timm():
    from timm.layers.attention import Attention

    return {
        "cls": lambda d_out, num_heads, qkv_bias, dropout: Attention(
            d_out, num_heads, qkv_bias=qkv_bias, attn_drop=dropout
        ),
        "causal": False,
    }


@row("d2l==1.0.3", "MultiHeadAttention")
def d2l():
    from d2l.torch import MultiHeadAttention

    return {
        "cls": lambda d_out, num_heads, dropout, qkv_bias: seen_once(
            MultiHeadAttention(d_out, num_heads, dropout, qkv_bias), d_out
        ),
        "call": d2l_call,
    }


@row("labml-nn==0.5.1", "MultiHeadAttention")
def labml():
    from labml_nn.transformers.mha import MultiHeadAttention

    return {"cls": MultiHeadAttention}


@row("perceiver-pytorch==0.8.8", "Attention")
def perceiver():
    from perceiver_pytorch.perceiver_pytorch import Attention

    return {
        "cls": lambda d_out, num_heads, head_dim, dropout: Attention(
            d_out, heads=num_heads, dim_head=head_dim, dropout=dropout
        ),
        "causal": False,
    }


@row("self-attention-cv==1.2.3", "MultiHeadSelfAttention")
def self_attention_cv():
    from self_attention_cv.transformer_vanilla.mhsa import MultiHeadSelfAttention

    return {"cls": MultiHeadSelfAttention, "layers": {"qkv": "to_qvk: d 3 h i", "out_proj": "W_0"}}


@row("vit-pytorch==0.6.6", "Attention", steps=(7,))
def vit_wrong():
    from vit_pytorch.vit_pytorch import Attention

    return {
        "cls": lambda d_out, num_heads, head_dim: Attention(d_out, num_heads, head_dim),
        "causal": False,
    }


@row("timm==0.9.7", "Attention", steps=(7,))
def timm_wrong():
    from timm.models.vision_transformer import Attention

    return {
        "cls": lambda d_out, num_heads, qkv_bias, dropout: Attention(
            d_out, num_heads, qkv_bias, attn_drop=dropout
        ),
        "causal": False,
    }


@row("timm==1.0.7", "EvaAttention", steps=(6, 7))
def eva_wrong():
    from timm.models.eva import EvaAttention

    return {"cls": eva_of(EvaAttention), "call": padded_eva}


# What several adapters share

MODERN = (
    "hidden_size num_attention_heads num_key_value_heads head_dim attention_dropout attention_bias"
)
OF_CONFIG = {
    "n_embd": "d_out",
    "hidden_size": "d_out",
    "n_head": "num_heads",
    "num_attention_heads": "num_heads",
    "num_key_value_heads": "num_heads",
    "head_dim": "head_dim",
    "attention_bias": "qkv_bias",
}


def of_config(attention: type, config: type, names: str, **fixed: Any) -> Callable:
    """A function that builds attention from a config of transformers, whose names get our sizes."""

    def build(d_out, num_heads, head_dim, dropout, qkv_bias):
        ours = {"d_out": d_out, "num_heads": num_heads, "head_dim": head_dim, "qkv_bias": qkv_bias}
        given = {name: ours.get(OF_CONFIG.get(name), dropout) for name in names.split()}
        made = config(**given, **fixed, attn_implementation="eager")
        indexed = "layer_idx" in inspect.signature(attention).parameters
        return attention(made, layer_idx=0) if indexed else attention(made)

    return build


def added(x, hidden):
    """A mask (1, 1, num_tokens, num_tokens) that is added to the scores."""
    return x.new_zeros(hidden.shape).masked_fill(hidden, -torch.inf)[None, None]


def turned(module, x, hidden):
    """A call with the cosines and sines of positions, at base 10,000."""
    place = torch.arange(x.shape[1], device=x.device)[:, None]
    angles = place * 1e4 ** -(
        torch.arange(0, module.head_dim, 2, device=x.device) / module.head_dim
    )
    angles = torch.cat([angles, angles], -1).to(x)[None]
    return module(
        x, position_embeddings=(angles.cos(), angles.sin()), attention_mask=added(x, hidden)
    )


def without_norm(module):
    """The same without the norm that it takes x through first."""
    module.norm = torch.nn.Identity()
    return module


def eva_of(attention: type) -> Callable:
    """Builds timm's EvaAttention with one layer for all three, and without fused kernels."""

    def build(d_out, num_heads, dropout):
        none = torch.nn.Identity
        module = attention(d_out, num_heads, False, attn_drop=dropout, norm_layer=none)
        module.fused_attn = False
        return module

    return build


def padded_eva(module, x, hidden):
    """A call for each query, whose mask of padding hides what comes after it."""
    b, n, _ = x.shape
    out = module(x.repeat_interleave(n, 0), attn_mask=(~hidden).repeat(b, 1))
    return out.unflatten(0, (b, n))[:, range(n), range(n)]


def seen_once(module, width):
    """The same after a first call, which makes its layers; they are lazy."""
    module(*[torch.zeros(1, 2, width)] * 3, None)
    return module


def d2l_call(module, x, hidden):
    """A call with the number of keys that each query may see."""
    return module(x, x, x, (~hidden).sum(-1)[None].repeat(len(x), 1))


# Running


def folder(package: str) -> list[Path]:
    """The folders of a package and of what it needs, each fetched once."""
    folders = []
    for each in [package, *NEEDS.get(package.split("==")[0], "").split()]:
        folders.append(CACHE / each)
        if not folders[-1].exists():
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", each]
            part = CACHE / f"{each}.part"
            subprocess.run([*pip, "--upgrade", "--target", part], check=True, capture_output=True)
            part.rename(folders[-1])
    return folders


class StandIn:
    """Makes torchvision and all in it; its compiled part wants the torch it was built with."""

    def find_spec(self, name, path=None, target=None):
        stands = name.partition(".")[0] == "torchvision"
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if stands else None

    def create_module(self, spec):
        return mock.MagicMock(__spec__=spec, __path__=[], __version__="0.28.0", __all__=[])

    def exec_module(self, module):
        pass


def judge(row: Row) -> dict[str, Any]:
    """In a process of its own: what check_attention says of a row's class."""
    warnings.simplefilter("ignore")
    sys.meta_path.insert(0, StandIn())
    outcome = check_attention(**row.adapter())
    return {
        "kind": outcome.kind,
        "step": outcome.step,
        "text": outcome.message,
        "note": outcome.note,
    }


def result(name: str) -> dict[str, Any]:
    """What is said of a row, or why nothing is."""
    try:
        path = os.pathsep.join(map(str, [ROOT, *folder(ROWS[name].package)]))
        command = [sys.executable, __file__, "--row", name]
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except (subprocess.SubprocessError, OSError) as error:
        return {"kind": "not run", "step": None, "text": str(error), "note": ""}
    if done.returncode:
        return {"kind": "not run", "step": None, "text": done.stderr.strip()[-300:], "note": ""}
    return json.loads(done.stdout.splitlines()[-1])


def as_expected(row: Row, said: dict[str, Any]) -> bool:
    """Whether a right class passes, or a wrong one is wrong at one of its steps."""
    if said["kind"] in ("not run", "unread", "failed"):
        return False
    return said["step"] in row.steps if row.steps else said["kind"] == "right"


def main() -> int:
    """Judge the rows that the command line asks for; return the exit status."""
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(judge(ROWS[sys.argv[2]])))
        return 0
    asked = [name for name in ROWS if not sys.argv[1:] or any(w in name for w in sys.argv[1:])]
    form, good = "{:30} {:28} {:6} {:8} {:5} {:9} {}", 0
    print(form.format("package", "class", "is", "verdict", "step", "expected", "ok"))
    for name in asked:
        row, said = ROWS[name], result(name)
        ok = as_expected(row, said)
        good += ok
        expected = " or ".join(map(str, row.steps)) or "-"
        verdict = said["kind"] if said["kind"] in ("right", "not run", "unread") else "wrong"
        truth = "wrong" if row.steps else "right"
        step = said["step"] or "-"
        print(
            form.format(
                row.package, row.name, truth, verdict, step, expected, "ok" if ok else "NOT"
            )
        )
        if not ok or row.steps:
            print(f"    {said['text']} {said['note']}")
    print(f"{good} of {len(asked)} rows as expected")
    return 0 if asked and good == len(asked) else 1


if __name__ == "__main__":
    sys.exit(main())

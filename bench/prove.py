"""Prove eleven_steps.beyond.variants equal to the modules people run: python bench/prove.py

Weights are random, sizes tiny, nothing is loaded. For each change, the module of transformers or
torch gets ours' weights and ours gets the module's; both are given the same input, and the row
shows the largest difference of the two. A module of transformers runs inside its model, so that
positions and masks are the model's own. Exit status 1 if a row is not equal.

transformers casts to float32 in places (softmax, norms, angles). For the float64 figure these casts
lead to float64 instead; nothing else of it is changed.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator

import torch
import transformers
from prove_pairs import PAIRS, torch_pairs
from prove_rows import HEADS, PROOFS, THETA, TOKENS, D, Proof, TorchProof
from torch import nn
from torch.overrides import TorchFunctionMode

from eleven_steps.beyond.variants import Padding, VariantAttention

WITHIN = {torch.float32: 1e-5, torch.float64: 1e-9}
CHUNKS = [[1] * TOKENS, [4, 1, 2, 2], [TOKENS]]  # tokens one by one, in chunks, all at once


def difference(proof: Proof | TorchProof, dtype: torch.dtype) -> float:
    """Return the largest difference of outputs, weights copied both ways."""
    compare = compare_in_model if isinstance(proof, Proof) else compare_with_torch
    return max(compare(proof, dtype, back) for back in (False, True))


def compare_in_model(proof: Proof, dtype: torch.dtype, back: bool) -> float:
    """Run proof's model once, or in chunks with a cache, and ours on what its attention was given.

    back: ours' weights go to the model; else the model's come to ours.
    """
    with casts_to(dtype), torch.no_grad():
        model = build_model(proof).to(dtype).eval()
        (theirs,) = (m for m in model.modules() if type(m).__name__ == f"{proof.model}Attention")
        bias = proof.model in ("GPT2", "GptOss", "Bloom")
        ours = VariantAttention(D, D, 16, 0.0, proof.heads, bias, proof.parts).to(dtype)
        copy_random(PAIRS[proof.model](ours, theirs), back)
        if proof.padding is not None:
            ours = ours.plus(Padding(proof.padding))
        ways = CHUNKS if proof.cache else [[TOKENS]]
        return max(largest(proof, model, theirs, ours, sizes) for sizes in ways)


def largest(proof: Proof, model: nn.Module, theirs: nn.Module, ours, sizes: list[int]) -> float:
    """Return the largest difference while both get the tokens in pieces of the given sizes."""
    given, answered = [], []

    def keep(module, args, options, out):
        given.append(args[0] if args else options["hidden_states"])
        answered.append(out[0] - args[1] if proof.model == "Bloom" else out[0])  # its residual
        raise Answered

    hook = theirs.register_forward_hook(keep, with_kwargs=True)
    run_model(model, proof.padding, sizes, proof.cache is not None)
    hook.remove()
    ours = ours.plus(proof.cache()) if proof.cache else ours
    differences = torch.cat([ours(x) for x in given], dim=1) - torch.cat(answered, dim=1)
    real = differences if proof.padding is None else differences[~proof.padding]
    return real.abs().max().item()


class Answered(Exception):
    """The attention of the only layer has answered: what follows in the model is of no interest."""


def run_model(model: nn.Module, padding, sizes: list[int], cached: bool) -> None:
    """Run a model of transformers over 2 sequences of TOKENS tokens, in pieces."""
    tokens = torch.randint(3, 30, (2, TOKENS), generator=torch.Generator().manual_seed(1))
    kept = transformers.DynamicCache(config=model.config) if cached else None
    for end, size in zip(torch.tensor(sizes).cumsum(0).tolist(), sizes, strict=True):
        mask = None if padding is None else (~padding[:, :end]).long()
        with contextlib.suppress(Answered):
            model(
                tokens[:, end - size : end],
                attention_mask=mask,
                past_key_values=kept,
                use_cache=cached,
            )


def build_model(proof: Proof) -> nn.Module:
    """Return a model of transformers of one layer, tiny, with random weights."""
    named = {"Gemma3": "Gemma3TextConfig"}.get(proof.model, f"{proof.model}Config")
    sizes = {"hidden_size": D, "num_hidden_layers": 1, "num_attention_heads": proof.heads}
    sizes |= {"vocab_size": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
    sizes |= {"query_pre_attn_scalar": D // proof.heads, "head_dim": D // proof.heads}
    if proof.model not in ("GPT2", "Mpt", "Bloom"):
        sizes |= {"intermediate_size": 16, "rope_parameters": THETA}
    if proof.model == "Gemma2":
        sizes["attn_logit_softcapping"] = 0.5
    if proof.model == "Gemma3":
        sizes["rope_parameters"] = {"full_attention": THETA, "sliding_attention": THETA}
    config = getattr(transformers, named)(**sizes | proof.sizes)
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config, attn_implementation="eager")


def compare_with_torch(proof: TorchProof, dtype: torch.dtype, back: bool) -> float:
    """Return the largest difference to nn.MultiheadAttention at tokens that are no padding."""
    torch.manual_seed(1)
    x = torch.randn(2, TOKENS, D).to(dtype)
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=dtype)
    ours = VariantAttention(D, D, 16, 0.0, HEADS, qkv_bias=True, parts=proof.parts(x)).to(dtype)
    with torch.no_grad():
        copy_random(torch_pairs(ours, theirs), back)
        differences = ours(x) - proof.call(theirs, x)
    real = differences if proof.real is None else differences[proof.real]
    return real.abs().max().item()


def copy_random(pairs: Iterable[tuple], back: bool) -> None:
    """Fill one side of each pair (ours, theirs, offset) at random and copy it to the other.

    ours = theirs + offset. Where theirs is None, ours is zero: the module has no such weights.
    """
    for ours, theirs, offset in pairs:
        if theirs is None:
            ours.zero_()
        elif back:
            theirs.copy_(ours.normal_(std=0.4) - offset)
        else:
            ours.copy_(theirs.copy_(torch.randn_like(theirs) * 0.4) + offset)


class casts_to(TorchFunctionMode):
    """Let casts to float32 lead to a dtype instead, while it is entered."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.float:
            return args[0].to(self.dtype)
        wider = [self.dtype if value is torch.float32 else value for value in args]
        options = {
            key: self.dtype if value is torch.float32 else value
            for key, value in (kwargs or {}).items()
        }
        return func(*wider, **options)


def rows(proofs: Iterable[Proof | TorchProof] = PROOFS) -> Iterator[tuple[str, bool]]:
    """Yield a line of text for each proof, and whether it is equal in both dtypes."""
    for proof in proofs:
        found = {dtype: difference(proof, dtype) for dtype in WITHIN}
        equal = all(found[dtype] <= within for dtype, within in WITHIN.items())
        figures = "  ".join(f"{str(dtype)[6:]} {found[dtype]:.1e}" for dtype in found)
        line = f"{proof.change:<16}{proof.module:<36}{figures}"
        yield line if equal else f"{line}  NOT EQUAL", equal


def main() -> int:
    """Print a row for each proof; return 0 if all are equal."""
    torch.set_num_threads(1)
    equal = True
    for line, row_equal in rows():
        print(line, flush=True)
        equal &= row_equal
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())

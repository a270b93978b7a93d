"""Prove eleven_steps.beyond.variants equal to the modules people run: python bench/prove.py

Weights are random, sizes tiny, nothing is loaded. For each change, the module of transformers or
torch gets ours' weights and ours gets the module's; both are given the same input, and the row
shows the largest difference of the two. A module of transformers runs inside its model, so that
positions and masks are the model's own. After the changes comes each model of data/since.json, as
released. Exit status 0 only if all rows are equal: NaN, an empty output or no row at all is not.

transformers casts to float32 in places (softmax, norms, angles). For the float64 figure these casts
lead to float64 instead, and what is made without a dtype has float64; nothing else is changed.
"""

import contextlib
import sys
from collections.abc import Iterable, Iterator

import torch
import transformers
from prove_kinds import HEADS, TOKENS, D, FunctionProof, Proof, TorchProof
from prove_pairs import PAIRS, torch_pairs
from prove_rows import PROOFS
from torch import nn
from torch.overrides import TorchFunctionMode
from transformers.models.minimax.modeling_minimax import MiniMaxCache

from eleven_steps.beyond.compare import worst
from eleven_steps.beyond.variants import Padding, VariantAttention

AnyProof = Proof | TorchProof | FunctionProof
Pair = tuple[torch.Tensor, torch.Tensor]
WITHIN = {torch.float32: 1e-5, torch.float64: 1e-9}


def difference(proof: AnyProof, dtype: torch.dtype) -> float:
    """Return the largest difference of outputs, weights copied both ways; NaN if there is one."""
    return worst(outputs(proof, dtype))


def outputs(proof: AnyProof, dtype: torch.dtype) -> list[Pair]:
    """Return ours' outputs beside those that are to be equal."""
    if isinstance(proof, FunctionProof):
        with casts_to(dtype):
            return list(proof.compare(dtype))
    compare = compare_in_model if isinstance(proof, Proof) else compare_with_torch
    return compare(proof, dtype, back=False) + compare(proof, dtype, back=True)


def compare_in_model(proof: Proof, dtype: torch.dtype, back: bool) -> list[Pair]:
    """Run proof's model each way it is to run, and ours on what its attention was given.

    back: ours' weights go to the model; else the model's come to ours.
    """
    pairs = []
    with casts_to(dtype), torch.no_grad():
        model = build_model(proof).to(dtype).eval()
        (theirs,) = (m for m in model.modules() if type(m).__name__ == f"{proof.model}Attention")
        for cls in proof.classes:
            ours = proof.build(cls).to(dtype)
            copy_random(PAIRS[proof.model](ours, theirs), back, ours, theirs)
            if proof.padding is not None:
                ours = ours.plus(Padding(proof.padding))
            for sizes, cached in proof.ways:
                twin = ours.plus(proof.cache()) if cached else ours
                pairs.append(run_both(proof, model, theirs, twin, sizes, cached))
    return pairs


def run_both(proof: Proof, model: nn.Module, theirs: nn.Module, ours, sizes, cached: bool) -> Pair:
    """Return the outputs at real tokens when both get the tokens in pieces of the given sizes."""
    given, answered = [], []

    def keep(module, args, options, out):
        given.append(args[0] if args else options["hidden_states"])
        answered.append(out[0] - args[1] if proof.model == "Bloom" else out[0])  # its residual
        raise Answered

    hook = theirs.register_forward_hook(keep, with_kwargs=True)
    run_model(model, proof.padding, sizes, cached)
    hook.remove()
    assert [x.shape[1] for x in given] == sizes, f"pieces of {sizes} tokens were to run"
    pair = torch.cat([ours(x) for x in given], dim=1), torch.cat(answered, dim=1)
    return pair if proof.padding is None else tuple(each[~proof.padding] for each in pair)


class Answered(Exception):
    """The attention of the only layer has answered: what follows in the model is of no interest."""


def run_model(model: nn.Module, padding, sizes: list[int], cached: bool) -> None:
    """Run a model of transformers over 2 sequences of TOKENS tokens, in pieces."""
    tokens = torch.randint(3, 30, (2, TOKENS), generator=torch.Generator().manual_seed(1))
    kept = transformers.DynamicCache(config=model.config) if cached else None
    if cached and isinstance(model, transformers.MiniMaxModel):
        kept = MiniMaxCache()
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
    special = {"Gemma3": "Gemma3Text", "Qwen3_5": "Qwen3_5Text", "MiniMaxLightning": "MiniMax"}
    named = f"{special.get(proof.model, proof.model)}Config"
    config = getattr(transformers, named)(**proof.settings())
    torch.manual_seed(0)
    return transformers.AutoModel.from_config(config, attn_implementation="eager")


def compare_with_torch(proof: TorchProof, dtype: torch.dtype, back: bool) -> list[Pair]:
    """Run ours and nn.MultiheadAttention, whose answer counts at tokens that are no padding."""
    torch.manual_seed(1)
    x = torch.randn(2, TOKENS, D).to(dtype)
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=dtype)
    ours = VariantAttention(D, D, 16, 0.0, HEADS, qkv_bias=True, parts=proof.parts(x)).to(dtype)
    with torch.no_grad():
        copy_random(torch_pairs(ours, theirs), back, ours, theirs)
        pair = ours(x), proof.call(theirs, x)
    return [pair if proof.real is None else tuple(each[proof.real] for each in pair)]


def copy_random(pairs: Iterable[tuple], back: bool, *modules: nn.Module) -> None:
    """Fill one side of each pair (ours, theirs, offset) at random and copy it to the other.

    ours = theirs + offset. Both modules must get all their weights so, each once.
    """
    pairs = list(pairs)
    for ours, theirs, offset in pairs:
        std = 2 / ours.shape[-1] ** 0.5 if ours.dim() > 1 else 0.4
        if back:
            theirs.copy_(ours.normal_(std=std) - offset)
        else:
            ours.copy_(theirs.copy_(torch.randn_like(theirs) * std) + offset)
    for module, place in zip(modules, (0, 1), strict=True):
        copied = sum(pair[place].numel() for pair in pairs)
        wanted = sum(weight.numel() for weight in module.parameters())
        assert copied == wanted > 0, f"{copied} of {wanted} weights of {type(module)} are copied"


class casts_to(TorchFunctionMode):
    """While it is entered, casts to float32 lead to a dtype instead, and new tensors have it."""

    def __init__(self, dtype: torch.dtype):
        super().__init__()
        self.dtype = dtype

    def __enter__(self):
        self.default = torch.get_default_dtype()
        torch.set_default_dtype(self.dtype)
        return super().__enter__()

    def __exit__(self, *error):
        torch.set_default_dtype(self.default)
        return super().__exit__(*error)

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is torch.Tensor.float:
            return args[0].to(self.dtype)
        wider = [self.dtype if value is torch.float32 else value for value in args]
        options = {
            key: self.dtype if value is torch.float32 else value
            for key, value in (kwargs or {}).items()
        }
        return func(*wider, **options)


def rows(proofs: Iterable[AnyProof] = PROOFS) -> Iterator[tuple[str, bool]]:
    """Yield a line of text for each proof, and whether it is equal in both dtypes."""
    for proof in proofs:
        apart = {dtype: difference(proof, dtype) for dtype in WITHIN}
        equal = all(apart[dtype] <= within for dtype, within in WITHIN.items())
        figures = "  ".join(f"{str(dtype)[6:]} {apart[dtype]:.1e}" for dtype in apart)
        line = f"{proof.change:<16}{proof.module:<45}{figures}"
        yield line if equal else f"{line}  NOT EQUAL", equal


def main() -> int:
    """Print a row for each proof; return 0 if there are rows and all are equal."""
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    verdicts = []
    for line, equal in rows():
        print(line, flush=True)
        verdicts.append(equal)
    print(f"{sum(verdicts)} of {len(verdicts)} rows are equal")
    return 0 if verdicts and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main())

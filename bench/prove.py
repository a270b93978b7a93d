"""Prove the variants equal to modules of transformers and torch: python bench/prove.py

Weights are random, sizes tiny, nothing is loaded. For each change, the module of transformers or
torch gets our weights and our class gets the module's. Both are given the same input, and the row
shows the largest difference of their outputs. A module of transformers runs inside its model, so
that it gets the model's own positions and masks. If all tokens come at once, the gradients of x and
of each weight are compared as well. After the changes comes each model of data/newer_models.toml.
The exit status is 0 only if all rows are equal. NaN, an empty output or no row at all counts as not
equal. Words choose rows by the names that are printed: python bench/prove.py yarn

transformers casts to float32 in some places (softmax, norms, angles). For the float64 figure these
casts go to float64 instead, and tensors made without a dtype get float64. Nothing else is changed,
and nothing at all in our class.
"""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

import torch
import transformers
from prove_models import MODEL_PROOFS, config_of
from prove_pairs import PAIRS, torch_pairs
from prove_rows import CHANGES, HEADS, TOKENS, D, FunctionProof, Proof, TorchProof, casts_to
from torch import nn
from transformers.models.minimax.modeling_minimax import MiniMaxCache

from eleven_steps.beyond.compare import worst
from eleven_steps.beyond.variants import BorrowedChoice, BorrowedKeys, Padding, VariantAttention
from helpers.attention import future_mask

PROOFS = [*CHANGES, *MODEL_PROOFS]
AnyProof = Proof | TorchProof | FunctionProof
Pair = tuple[torch.Tensor, torch.Tensor]
WITHIN = {torch.float32: 1e-5, torch.float64: 1e-9}


def difference(proof: AnyProof, dtype: torch.dtype) -> float:
    """Return the largest difference of outputs, with parameters copied both ways, or NaN."""
    with torch.no_grad():
        return worst(outputs(proof, dtype))


def outputs(proof: AnyProof, dtype: torch.dtype) -> list[Pair]:
    if isinstance(proof, FunctionProof):
        return list(proof.compare(dtype))
    if isinstance(proof, TorchProof):
        return [*compare_with_torch(proof, dtype, False), *compare_with_torch(proof, dtype, True)]
    with casts_to(dtype):  # a model of one layer, tiny, with random weights
        config = getattr(transformers, config_of(proof.model))(**proof.settings())
        torch.manual_seed(0)
        model = transformers.AutoModel.from_config(config, attn_implementation="eager")
        model = model.to(dtype).eval()
    return [*compare_in_model(proof, model, False), *compare_in_model(proof, model, True)]


def compare_in_model(proof: Proof, model: nn.Module, back: bool) -> list[Pair]:
    """Run the model of a proof in all its ways, and ours on the inputs of its attention.

    back: whether the model gets our weights, or our class the model's. If the model gets them, a
    module with a norm is run with small weights as well, because the epsilon of a norm only shows
    with small numbers.
    """
    kind = f"{proof.model}Attention"
    found = [module for module in model.modules() if type(module).__name__ == kind]
    # The last layer's, where an earlier one lends keys.
    pairs, theirs = [], found[-1 if getattr(proof, "kind", "") == "borrowing" else 0]
    dtype = next(theirs.parameters()).dtype
    ours = proof.build().to(dtype)
    has_norm = any(hasattr(layer, "eps") for layer in ours.modules())
    for small in (False, True) if back and has_norm else (False,):
        copy_random(PAIRS[proof.model](ours, theirs), back, ours, theirs, small)
        for sizes, cached in proof.ways:
            parts = [Padding(proof.padding)] * (proof.padding is not None)
            with_parts = ours.plus(*parts, *([proof.cache()] if cached else []))
            pairs += run_both(proof, model, theirs, with_parts, sizes, cached)
    return pairs


def run_both(
    proof: Proof,
    model: nn.Module,
    theirs: nn.Module,
    ours: VariantAttention,
    sizes: list[int],
    cached: bool,
) -> list[Pair]:
    """Return both outputs at real tokens, with the tokens passed in chunks of these sizes.

    In one piece the gradients are compared as well: of x, and of each weight.
    """
    given, answered, at_once = [], [], len(sizes) == 1

    def take(module, args, options):
        x = (args[0] if args else options["hidden_states"]).detach().requires_grad_()
        given.append(x)
        if borrowed := ours.part(BorrowedKeys):
            (lent,) = options["shared_kv_states"].values()
            borrowed.lender.lent = tuple(kept.detach() for kept in lent)
        if borrowed := ours.part(BorrowedChoice):
            best = options["prev_topk_indices"][:, None].long()
            hidden = torch.ones(len(x), 1, TOKENS, TOKENS, dtype=torch.bool)
            borrowed.lender.hidden = (hidden.scatter(-1, best, False) | future_mask(TOKENS),)
        return ((x, *args[1:]), options) if args else (args, options | {"hidden_states": x})

    def keep(module, args, options, out):
        out = out[0] if isinstance(out, tuple) else out
        answered.append(out - args[1] if proof.model == "Bloom" else out)  # its residual
        raise Answered

    hooks = theirs.register_forward_pre_hook(take, with_kwargs=True)
    after = theirs.register_forward_hook(keep, with_kwargs=True)
    with casts_to(next(theirs.parameters()).dtype), torch.set_grad_enabled(at_once):
        run_model(model, proof.padding, sizes, cached)
    hooks.remove()
    after.remove()
    assert [x.shape[1] for x in given] == sizes, f"pieces of {sizes} tokens were to run"
    real = torch.ones(2, TOKENS, dtype=torch.bool) if proof.padding is None else ~proof.padding
    with torch.set_grad_enabled(at_once):
        out = torch.cat([ours(x) for x in given], dim=1), torch.cat(answered, dim=1)
    pairs = [(out[0][real], out[1][real])]
    if at_once:
        pairs += gradients(given[0], real, (ours, theirs), out, PAIRS[proof.model])
    return pairs


def gradients(x: torch.Tensor, real: torch.Tensor, modules, outs, pair: Callable) -> list[Pair]:
    """Return the gradients of x and of the paired weights, in units of the largest, 1 at least.

    The gradient of out is random at real tokens and 0 at padding. While the weights are paired,
    each holds its gradient in place of its numbers, so that gradients are paired in the same way.
    """
    generator = torch.Generator().manual_seed(2)
    pull = torch.randn(outs[0].shape, generator=generator, dtype=torch.float64).to(x.dtype)
    pull, found, kept = pull / D**0.5 * real[..., None], [], []  # of length 1 or so for a token
    for module, out in zip(modules, outs, strict=True):
        weights = list(module.parameters())
        first, *more = torch.autograd.grad(
            out, [x, *weights], pull, allow_unused=True, retain_graph=True
        )
        found.append(first)
        kept += [(weight, weight.data) for weight in weights]
        for weight, grad in zip(weights, more, strict=True):
            weight.data = torch.zeros_like(weight) if grad is None else grad
    made = [tuple(found), *((one.clone(), other.clone()) for one, other, _ in pair(*modules))]
    for weight, data in kept:
        weight.data = data
    sizes = [max(1.0, float(theirs.detach().abs().max())) for _, theirs in made]
    return [(one / size, other / size) for (one, other), size in zip(made, sizes, strict=True)]


class Answered(Exception):
    """Stop a model once the attention of its only layer has returned."""


def run_model(model: nn.Module, padding, sizes: list[int], cached: bool) -> None:
    """Run a model of transformers over 2 sequences of TOKENS tokens, in chunks."""
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


def compare_with_torch(proof: TorchProof, dtype: torch.dtype, back: bool) -> list[Pair]:
    """Run ours and nn.MultiheadAttention; compare at tokens that are not padding."""
    torch.manual_seed(1)
    x = torch.randn(2, TOKENS, D).to(dtype).requires_grad_()
    theirs = nn.MultiheadAttention(D, HEADS, batch_first=True, dtype=dtype)
    ours = VariantAttention(D, D, 16, 0.0, HEADS, qkv_bias=True, parts=proof.parts(x)).to(dtype)
    copy_random(torch_pairs(ours, theirs), back, ours, theirs)
    real = torch.ones(2, TOKENS, dtype=torch.bool) if proof.real is None else proof.real
    with torch.enable_grad():
        out = ours(x), proof.call(theirs, x)
    pairs = [(out[0][real], out[1][real])]
    if out[1].isfinite().all():  # padding on the left makes torch's output NaN, and its gradients
        pairs += gradients(x, real, (ours, theirs), out, torch_pairs)
    return pairs


@torch.no_grad()
def copy_random(
    pairs: Iterable[tuple], back: bool, ours: nn.Module, theirs: nn.Module, small: bool = False
) -> None:
    """Fill one side of each pair (ours, theirs, offset) at random and copy it to the other.

    ours = theirs + offset. Both modules must get all their weights so, each once. small: the layers
    that read x make numbers a thousand times smaller.
    """
    pairs = list(pairs)
    for mine, other, offset in pairs:
        std = 2 / mine.shape[-1] ** 0.5 if mine.dim() > 1 else 0.4
        if back:
            other.copy_(mine.normal_(std=std) - offset)
        else:
            mine.copy_(other.copy_(torch.randn_like(other) * std) + offset)
    if small:
        for name, weight in ours.named_parameters():
            if name.startswith("W_") and "gate" not in name:
                weight.mul_(1e-3)
        for mine, other, offset in pairs:
            other.copy_(mine - offset)
    for module, place in zip((ours, theirs), (0, 1), strict=True):
        copied = sum(pair[place].numel() for pair in pairs)
        wanted = sum(weight.numel() for weight in module.parameters())
        assert copied == wanted > 0, f"{copied} of {wanted} weights of {type(module)} are copied"


def rows(proofs: Iterable[AnyProof] = PROOFS) -> Iterator[tuple[str, bool]]:
    """Yield a line of text for each proof, and whether it is equal in both dtypes."""
    for proof in proofs:
        apart = {dtype: difference(proof, dtype) for dtype in WITHIN}
        equal = all(apart[dtype] <= within for dtype, within in WITHIN.items())
        figures = "  ".join(f"{str(dtype)[6:]} {apart[dtype]:.1e}" for dtype in apart)
        line = f"{proof.change:<18}{proof.module:<53}{figures}"
        yield line if equal else f"{line}  NOT EQUAL", equal


def main(words: Sequence[str] = ()) -> int:
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    verdicts = []
    asked = words or [""]  # "" is in every name
    chosen = [p for p in PROOFS if any(word in f"{p.change} {p.module}" for word in asked)]
    for line, equal in rows(chosen):
        print(line, flush=True)
        verdicts.append(equal)
    print(f"{sum(verdicts)} of {len(verdicts)} rows are equal")
    return 0 if verdicts and all(verdicts) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

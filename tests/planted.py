"""Mistakes planted in eleven_steps/beyond/variants, each with rows of bench/prove.py that show it.

python tests/planted.py runs those rows once for each mistake and prints a line of JSON for each:
its name, and whether any row was found to differ. A mistake is planted while a process forked for
it imports the changed file, so that nothing on the disk changes and transformers is read only once.
"""

import importlib.abc
import importlib.util
import json
import os
import sys
import traceback
from pathlib import Path

HERE = Path(__file__).parents[1] / "eleven_steps" / "beyond" / "variants"
MISTAKES = {  # name: file, what stands there, what is planted, a word of the rows to run
    # the six that an engineer planted in 2026, unseen by the rows of that day
    "yarn clips its slow pair early": (
        "scaling",
        "2 * len(radian) - 1",
        "len(radian) - 1",
        "yarn, long",
    ),
    "cap by the root of head_dim": (
        "look",
        "limit = self.limit * call.mha.key_dim**0.5",
        "limit = self.limit * call.mha.head_dim**0.5",
        "cap latent",
    ),
    "indexer's norm, eps": (
        "choose",
        "nn.LayerNorm(self.index_dim, eps=1e-6)",
        "nn.LayerNorm(self.index_dim, eps=1e-5)",
        "top keys",
    ),
    "gate without a bias": (
        "weigh",
        "bias=mha.W_query.bias is not None",
        "bias=False",
        "gate, biases",
    ),
    "padding hides all": (
        "look",
        "return (hidden & ~hidden.all(dim=-1, keepdim=True),)",
        "return (hidden,)",
        "padding left",
    ),
    "angles in float32": (
        "turn",
        "exact = torch.promote_types(vectors.dtype, torch.float32)",
        "exact = torch.float32",
        "rope halves",
    ),
    # the others, one for each part at least
    "groups in turn": (
        "project",
        "keys = keys.repeat_interleave(group, dim=1)",
        "keys = keys.repeat(1, group, 1, 1)",
        "gqa",
    ),
    "values in turn": (
        "project",
        "values = values.repeat_interleave(group, dim=1)",
        "values = values.repeat(1, group, 1, 1)",
        "gqa",
    ),
    "latents not normed": (
        "project",
        "mha.latent_norm(latents), shared",
        "latents, shared",
        "latent",
    ),
    "latent's norm, eps": (
        "project",
        "mha.latent_norm = nn.RMSNorm(self.latent_dim, eps=1e-6)",
        "mha.latent_norm = nn.RMSNorm(self.latent_dim, eps=1e-5)",
        "latent",
    ),
    "query latents not normed": (
        "project",
        "call.mha.W_query_up(call.mha.query_latent_norm(latents))",
        "call.mha.W_query_up(latents)",
        "query latent",
    ),
    "keys for values of the other": (
        "project",
        "mha.W_query(call.x), mha.W_key(self.other), mha.W_value(self.other)",
        "mha.W_query(call.x), mha.W_value(self.other), mha.W_key(self.other)",
        "other",
    ),
    "the other is masked": (
        "project",
        "hidden.new_zeros(call.x.shape[1], self.other.shape[1])",
        "hidden.new_ones(call.x.shape[1], self.other.shape[1]).triu(1)",
        "other",
    ),
    "keys get the queries' norm": (
        "turn",
        "call.mha.key_norm(keys), values",
        "call.mha.query_norm(keys), values",
        "norm",
    ),
    "norm's eps": ("turn", "eps: float = 1e-6", "eps: float = 1e-5", "norm"),
    "the other way round": (
        "turn",
        "first * cos - second * sin, second * cos + first * sin",
        "first * cos + second * sin, second * cos - first * sin",
        "rope halves",
    ),
    "positions from 1": (
        "turn",
        "positions = torch.arange(end - vectors.shape[2], end, device=vectors.device)",
        "positions = torch.arange(end - vectors.shape[2], end, device=vectors.device) % 8",
        "rope halves",
    ),
    "the first for the last": (
        "turn",
        "begin = 0 if self.first else",
        "begin = 0 if not self.first else",
        "first turn",
    ),
    "scores not sharpened": (
        "turn",
        "scaled if factor == 1 else scaled * factor**2",
        "scaled if factor == 1 else scaled * factor",
        "yarn",
    ),
    "linear scaling the other way": (
        "scaling",
        "return radian * self.factor",
        "return radian / self.factor",
        "linear scaling",
    ),
    "llama 3 blends from 0": (
        "scaling",
        "(rounds - self.low) / (self.high - self.low)",
        "rounds / self.high",
        "llama3",
    ),
    "yarn blends with a hard edge": (
        "scaling",
        "low, high = math.floor(low), math.ceil(high)",
        "low, high = math.ceil(low), math.ceil(high)",
        "yarn",
    ),
    "slopes in float32": (
        "look",
        "torch.arange(1, above + 1, dtype=torch.float64) / above",
        "torch.arange(1, above + 1) / above",
        "BLOOM",
    ),
    "odd heads first": (
        "look",
        "torch.cat([slopes[1::2], slopes[::2]])",
        "torch.cat([slopes[::2], slopes[1::2]])",
        "alibi",
    ),
    "the cap is hard": (
        "look",
        "limit * torch.tanh(scores / limit)",
        "scores.clamp(-limit, limit)",
        "cap",
    ),
    "encoder still causal": ("look", "torch.zeros_like(hidden)", "hidden", "full"),
    "window one long": (
        "look",
        "hidden.device) >= self.size",
        "hidden.device) > self.size",
        "window",
    ),
    "padding of the first sequence": (
        "look",
        "self.is_padding[:, None, None, : hidden.shape[-1]]",
        "self.is_padding[:1, None, None, : hidden.shape[-1]]",
        "padding right",
    ),
    "indexer without relu": (
        "choose",
        "torch.relu(queries @ keys.transpose(2, 3))",
        "queries @ keys.transpose(2, 3)",
        "top keys",
    ),
    "indexer reads x": (
        "choose",
        "source = mha.query_latent_norm(mha.W_query(call.x))",
        "source = mha.W_query(call.x)",
        "top keys",
    ),
    "the sink keeps its weight": (
        "weigh",
        "torch.cat([scaled, sinks], dim=-1), dim=-1)[..., :-1]",
        "torch.cat([scaled, sinks * 0], dim=-1), dim=-1)[..., :-1]",
        "sinks",
    ),
    "gate by tanh": ("weigh", "torch.sigmoid(", "torch.tanh(", "gate"),
    "new keys first": (
        "keep",
        "zip(self.kept, new, strict=True)",
        "zip(new, self.kept, strict=True)",
        "cache",
    ),
    "the indexer forgets": (
        "keep",
        "self.indexed = (torch.cat([*self.indexed, keys], dim=-2),)",
        "self.indexed = (torch.cat([*(k * 0.5 for k in self.indexed), keys], dim=-2),)",
        "cache top keys",
    ),
    "latents kept raw": (
        "keep",
        "return self.keep(latents, shared)",
        "return self.keep(latents * 2 if self.kept else latents, shared)",
        "cache latent",
    ),
    "linear, not bent": (
        "linear",
        "tuple(map(nn.functional.silu, (queries, keys, values)))",
        "(nn.functional.silu(queries), nn.functional.silu(keys), values)",
        "linear",
    ),
    "linear, norm's eps": (
        "linear",
        "nn.RMSNorm(mha.d_out, eps=1e-6)",
        "nn.RMSNorm(mha.d_out, eps=1e-5)",
        "linear",
    ),
    "the state does not fade": (
        "linear",
        "self.kept, self.past = old * fade[0][..., -1:, :] + new, call.end",
        "self.kept, self.past = old + new, call.end",
        "linear state",
    ),
    "delta rule asks before it fades": (
        "linear",
        "wrong_by = value - key @ state",
        "wrong_by = value - key @ (state / fades[:, :, token, :, None])",
        "delta rule",
    ),
    "the difference keeps the share of the first layer": (
        "weigh",
        "(1 - self.start) * nn.functional.rms_norm",
        "nn.functional.rms_norm",
        "DiffLlama",
    ),
    "the partner's values": (
        "weigh",
        "torch.cat(values.chunk(2, dim=1), dim=-1)",
        "torch.cat(values.chunk(2, dim=1)[::-1], dim=-1)",
        "DiffLlama",
    ),
    "still divided": ("weigh", "scaled * call.mha.key_dim**0.5", "scaled", "Gemma 4 E2B"),
    "a chunk one late": (
        "look",
        "hidden.device) // self.size",
        "hidden.device).add(1) // self.size",
        "chunks",
    ),
    "temperature one early": (
        "turn",
        "call.end - queries.shape[2] + 1, call.end + 1",
        "call.end - queries.shape[2], call.end",
        "temperature",
    ),
    "all pairs turn": ("scaling", "int(self.share * len(radian))", "len(radian)", "Gemma 4 E2B"),
    "blocks by their mean": ("choose", ".amax(dim=-1)", ".mean(dim=-1)", "M3"),
    "one's own block may be hidden": ("choose", "(back < self.local)", "(back < 0)", "M3"),
    "values normed as keys": (
        "share",
        "nn.functional.rms_norm(values, values.shape[-1:], eps=1e-6)",
        "call.mha.key_norm(values)",
        "Gemma 4 12B",
    ),
    "values without a gradient": (
        "share",
        "return queries, keys, keys",
        "return queries, keys, keys.detach()",
        "Gemma 4 12B",
    ),
    "borrowed keys are normed again": (
        "share",
        "return queries, *self.lender.lent",
        "return queries, keys * 1.1, values",
        "borrowing",
    ),
    "not turned back": (
        "share",
        "turned_to(context, -positions)",
        "turned_to(context, positions)",
        "V4",
    ),
    "a pool is seen early": (
        "pool",
        "waiting = pools >= (read // self.size)",
        "waiting = pools > (read // self.size)",
        "V4",
    ),
    "pools at their last token": (
        "pool",
        "places = self.size * torch.arange(pools.shape[2], device=pools.device)",
        "places = self.size * torch.arange(1, pools.shape[2] + 1, device=pools.device) - 1",
        "V4",
    ),
    "pools without an order": (
        "pool",
        'rates = rates + getattr(call.mha, f"{name}_bias")',
        "rates = rates",
        "V4",
    ),
    "a pool's softmax over features": (
        "pool",
        "torch.softmax(rates, dim=2)",
        "torch.softmax(rates, dim=3)",
        "V4",
    ),
    "overlap the wrong half": (
        "pool",
        "torch.cat([nn.functional.pad(before",
        "torch.cat([nn.functional.pad(own",
        "V4",
    ),
    "pools' indexer not turned": (
        "pool",
        "queries, keys = rope.turned(queries, call.end), rope.turned_to(keys, places)",
        "queries = rope.turned(queries, call.end)",
        "V4",
    ),
    "groups of heads in turn": (
        "pool",
        "(self.groups, -1)).unsqueeze(-1)",
        "(-1, self.groups)).mT.unsqueeze(-1)",
        "V4",
    ),
    "delta, queries not of length 1": ("delta", "queries / lengths[0]", "queries", "Kimi"),
    "delta, corrected by itself": ("delta", ".tril(-1) * shares", ".tril(0) * shares", "Kimi"),
    "delta, one fade too many": (
        "delta",
        "total.unsqueeze(3) - total.unsqueeze(2)",
        "total.unsqueeze(3) - total.unsqueeze(2) + fades.unsqueeze(2)",
        "Kimi",
    ),
    "delta, normed over all heads": (
        "delta",
        "normed.flatten(2) *",
        "normed.flatten(2) * 1.001 *",
        "Kimi",
    ),
    "delta, a convolution that looks ahead": (
        "delta",
        "[..., : call.x.shape[1]]",
        "[..., 1 : call.x.shape[1] + 1]",
        "Kimi",
    ),
    "gradients stop at the keys": (
        "module",
        "return self.W_query(call.x), self.W_key(call.x), self.W_value(call.x)",
        "return self.W_query(call.x), self.W_key(call.x.detach()), self.W_value(call.x)",
        "rope halves",
    ),
    "fused, scale of the values": (
        "fused",
        "scale=self.sharpened(call) / self.key_dim**0.5",
        "scale=self.sharpened(call) / self.head_dim**0.5",
        "DeepSeek-V3",
    ),
}


class Planting(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Import one file of the variants with one text replaced."""

    def __init__(self, file: str, old: str, new: str):
        self.path = HERE / f"{file}.py"
        self.name = f"eleven_steps.beyond.variants.{file}"
        source = self.path.read_text("utf-8")
        if source.count(old) != 1:
            raise ValueError(f"{file}.py has {old!r} {source.count(old)} times: once is expected")
        self.source = source.replace(old, new)

    def find_spec(self, name, path=None, target=None):
        if name == self.name:
            return importlib.util.spec_from_loader(name, self, origin=str(self.path))
        return None

    def exec_module(self, module):
        module.__file__ = str(self.path)
        exec(compile(self.source, str(self.path), "exec"), vars(module))


def turns_red(file: str, old: str, new: str, word: str) -> bool:
    """Say whether a row with word in it differs, or cannot be run, with the mistake in place."""
    sys.meta_path.insert(0, Planting(file, old, new))
    import prove

    chosen = [proof for proof in prove.PROOFS if prove.named(proof, [word])]
    if not chosen:
        raise ValueError(f"no row has {word!r} in its name")
    try:
        return any(not equal for _, equal in prove.rows(chosen))
    except Exception:  # bench/prove.py would end with it, and not with status 0
        traceback.print_exc()
        return True


def main(names: list[str]) -> None:
    import torch
    import transformers
    from transformers import AutoModel, DynamicCache  # noqa: F401 - read once, before the forks

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    for name in names or MISTAKES:
        sys.stdout.flush()
        if not (child := os.fork()):
            try:
                red = turns_red(*MISTAKES[name])
            except Exception as error:
                traceback.print_exc()
                red = f"{type(error).__name__}: {error}"
            print(json.dumps([name, red]), flush=True)
            os._exit(0)
        os.waitpid(child, 0)


if __name__ == "__main__":
    sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[2] / "bench")]
    main(sys.argv[1:])

"""Ask an attention class questions from which its first wrong step follows, listed or not.

Every token is fed as a one-hot vector, so that each weight matrix holds the queries, keys or values
of the tokens themselves, and any of them can be chosen. Then one feature of one query, key or value
is changed, and the outputs that change show which head and token it belongs to; and values that
number their tokens make the output spell out the attention weights.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch

from helpers.attention import MultiHeadAttention
from helpers.guard import Failure, attempt
from helpers.looks import NAMES, Sizes, build, close, known, run
from helpers.trace import trace

B, TOKENS, HEADS, HEAD_DIM = 2, 4, 3, 5
D_OUT = HEADS * HEAD_DIM
OFFSET = 16.0  # out_proj's bias while the context is read: an activation lets it pass


@dataclass(frozen=True)
class Finding:
    """What a probe saw: the first wrong step, one or two sentences, numbers to show if any."""

    step: int
    text: str
    theirs: torch.Tensor | None = None
    right: torch.Tensor | None = None
    caption: str = ""


class CannotAsk(Exception):
    """The class fails at the probes' own sizes."""


class Bench:
    """A class with b sequences of one-hot tokens, whose queries, keys and values can be chosen."""

    def __init__(self, cls: Any, b: int, num_tokens: int = TOKENS, qkv_bias: bool = False):
        d_in = b * num_tokens
        sizes = Sizes(b, num_tokens, d_in, D_OUT, HEADS, num_tokens + 2, qkv_bias)
        self.module = build(cls, sizes)
        if isinstance(self.module, Failure):
            raise CannotAsk
        self.shape = b, num_tokens, D_OUT
        self.x = torch.eye(d_in).view(b, num_tokens, d_in)
        self.offset, self.unused = 0.0, False

    def settle(self) -> "Bench":
        """Find out how the context can be read: is out_proj used, does an activation follow?"""
        triple = chosen(self.shape[0])
        eye, left = torch.eye(D_OUT), self.out(*triple, torch.zeros(D_OUT, D_OUT))
        plain, turned = (self.out(*triple, matrix) - left for matrix in (eye, -eye))
        self.unused = close(plain, torch.zeros_like(plain)) and not close(left, 0 * left)
        if not close(plain, turned) and not close(plain, -turned):
            self.offset = OFFSET
        return self

    def out(
        self,
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        matrix: torch.Tensor | None = None,
        bias: float | torch.Tensor | None = None,
        biases: tuple[float, float, float] = (0, 0, 0),
    ) -> torch.Tensor:
        """Output for these queries, keys, values (b, num_tokens, d_out) and this out_proj."""
        layers = [getattr(self.module, name) for name in NAMES]
        with torch.no_grad():
            for layer, each, offset in zip(layers, (queries, keys, values), biases, strict=False):
                layer.weight.copy_(each.expand(self.shape).reshape(-1, D_OUT).T)
                if layer.bias is not None:
                    layer.bias.fill_(offset)
            layers[3].weight.copy_(torch.eye(D_OUT) if matrix is None else matrix)
            if layers[3].bias is not None:
                offset = torch.as_tensor(self.offset if bias is None else bias)
                layers[3].bias.copy_(offset.expand(D_OUT))
        out = run(self.module, self.x)
        if isinstance(out, Failure) or out.shape != self.shape:
            raise CannotAsk
        return out

    def context(self, *chosen: torch.Tensor, **options: Any) -> torch.Tensor:
        """What reaches out_proj, whatever is added after it or left out of it."""
        through = self.out(*chosen, **options)
        if self.unused:
            return through
        return through - self.out(*chosen, matrix=torch.zeros(D_OUT, D_OUT), **options)


def chosen(b: int = B, seed: str = "", scale: float = 0.6) -> tuple[torch.Tensor, ...]:
    """Known random queries, keys and values (b, num_tokens, d_out)."""
    return tuple(known(each + seed, (b, TOKENS, D_OUT), scale) for each in ("q", "k", "v"))


def locate(cls: Any) -> Finding | None:
    """Ask the questions in the order of the steps; the first wrong answer is the finding."""
    for question in (ask_projection, ask_bias, ask_batch, ask_heads_and_weights, ask_out_proj):
        finding = attempt(question, cls)
        if isinstance(finding, Finding):
            return finding
    return None


def ask_projection(cls: Any) -> Finding | None:
    """Step 2: x counts only as x @ weight.T, and each of the three matrices plays its own part."""
    sizes = Sizes(2, 5, 15, 15, 3, 7)
    module = build(cls, sizes)
    if isinstance(module, Failure):
        raise CannotAsk
    x = sizes.input()
    plain = run(module, x)
    turn = torch.linalg.qr(known("turn", (15, 15))).Q
    with torch.no_grad():
        for name in NAMES[:3]:
            layer = getattr(module, name)
            layer.weight.copy_(layer.weight @ turn)
    turned = run(module, x @ turn)
    if isinstance(plain, Failure) or isinstance(turned, Failure):
        raise CannotAsk
    bench = Bench(cls, B).settle()
    nothing = torch.zeros(B, TOKENS, D_OUT)
    if not close(plain, turned, 1e-3):
        residual = bench.out(nothing, nothing, nothing, torch.zeros(D_OUT, D_OUT), 0.0)
        if residual.abs().max() < 1e-4 or residual.isnan().any():
            return Finding(
                2,
                "x reaches the output other than through `W_query(x)`, `W_key(x)` and `W_value(x)`,"
                " or with a weight turned round. Look at the projections: each is the plain layer "
                "applied to the plain x.",
            )
    queries, keys, values = chosen()
    others = chosen(seed="other")
    base = bench.context(queries, keys, values)
    if base.isnan().any():
        return None
    moved = {
        "W_query": bench.context(others[0], keys, values),
        "W_key": bench.context(queries, others[1], values),
        "W_value": bench.context(queries, keys, others[2]),
    }
    counts = {name: not close(base, context) for name, context in moved.items()}
    if not counts["W_value"]:
        return Finding(
            2,
            "W_value does not change the output: the values are `W_value(x)`. Look at where the "
            "values are made and used.",
        )
    gone = bench.context(queries, keys, nothing)
    if not close(gone, torch.zeros_like(gone), 1e-3):
        for name, context in (
            ("W_key", bench.context(queries, nothing, values)),
            ("W_query", bench.context(nothing, keys, values)),
        ):
            if close(context, torch.zeros_like(context), 1e-3):
                return Finding(
                    2,
                    f"{name} makes what the weights gather: the values are `W_value(x)`. Look at "
                    f"the projections and at the context.",
                )
    for name in ("W_query", "W_key"):
        if not counts[name] and any(counts[other] for other in ("W_query", "W_key")):
            part = "queries" if name == "W_query" else "keys"
            return Finding(
                2,
                f"{name} does not change the output: the {part} are `{name}(x)`. Look at the "
                f"projections and the scores.",
            )
    return None


def ask_bias(cls: Any) -> Finding | None:
    """Step 2: a bias does what the same number in every query, key or value would do."""
    bench = Bench(cls, B, qkv_bias=True).settle()
    plain = chosen()
    for index, name in enumerate(NAMES[:3]):
        shift = [0.0, 0.0, 0.0]
        shift[index] = 0.7
        moved = list(plain)
        moved[index] = moved[index] + 0.7
        with_bias = bench.context(*plain, biases=tuple(shift))
        if not close(with_bias, bench.context(*moved), 1e-3):
            return Finding(
                2,
                f"With qkv_bias=True the bias of {name} is not added as it should be. Look at the "
                f"projections: call the layer, `{name}(x)`.",
            )
    return None


def ask_batch(cls: Any) -> Finding | None:
    """Steps 3 and 7: sequences of one batch never meet."""
    bench = Bench(cls, B).settle()
    nothing = torch.zeros(B, TOKENS, D_OUT)
    queries, keys, values = chosen()
    others = tuple(each.clone() for each in (queries, keys, values))
    for each, new in zip(others, chosen(seed="other"), strict=True):
        each[1] = new[1]
    for first, second, step, text in (
        (
            (nothing, nothing, values),
            (nothing, nothing, others[2]),
            3,
            "The values of one sequence reach another sequence of the batch. Look at every view "
            "and reshape: b stays the first size.",
        ),
        (
            (queries, keys, values),
            (others[0], others[1], values),
            7,
            "The queries and keys of one sequence change the weights of another. Look at the axis "
            "of the softmax, and at every view: b stays a size of its own.",
        ),
    ):
        one, other = bench.context(*first)[0], bench.context(*second)[0]
        if not close(one, other):
            return Finding(step, text)
    return None


def ask_heads_and_weights(cls: Any) -> Finding | None:
    """Steps 3 to 10: which features form a head, then what its weights are."""
    maps = Maps(cls)
    shape = ask_heads(maps)
    if shape is not None and shape.step <= 4:
        return shape
    if shape is not None and shape.step >= 9 and maps.placed() is None:
        return shape
    weights = ask_weights(cls, maps if shape is not None else None)
    found = [each for each in (shape, weights) if each is not None]
    return min(found, key=lambda each: each.step, default=None)


class Maps:
    """Which outputs change with each feature of each query, key and value.

    Each of queries, keys, values is (num_tokens, d_out, num_tokens, d_out), True where changing
    the first token's feature changes the second token's output feature.
    """

    def __init__(self, cls: Any):
        count = TOKENS * D_OUT
        base = chosen(1)
        kinds = [each.expand(3 * count + 2, TOKENS, D_OUT).clone() for each in base]
        for kind, each in enumerate(kinds):
            start = 2 + kind * count
            each[start : start + count] += 1.5 * torch.eye(count).view(count, TOKENS, D_OUT)
        bench = Bench(cls, 3 * count + 2)
        bench.offset = Bench(cls, B).settle().offset
        out = bench.out(*kinds)
        self.base = out[1]
        numbers = out.nan_to_num(1e6)
        changed = (numbers[2:] - numbers[1]).abs() > 3e-5
        whole = changed.view(3, TOKENS, D_OUT, TOKENS, D_OUT)
        self.queries, self.keys, self.values = whole

    def features(self, kind: torch.Tensor) -> torch.Tensor:
        """Which feature (d_out) reaches which output feature (d_out), at any token."""
        return kind.any(dim=2).any(dim=0)

    def scattered(self, kind: torch.Tensor, within_heads: bool = False) -> bool:
        """Whether features of one token, or of one head of it, reach outputs of other tokens."""
        rows = kind.any(dim=3).view(TOKENS, -1, HEAD_DIM if within_heads else D_OUT, TOKENS)
        for token_rows in rows.flatten(0, 1):
            reaching = token_rows[token_rows.any(1)]
            if (reaching != reaching[:1]).any():
                return True
        return False

    def relation(self, one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Which features (d_out) of one change an output that features (d_out) of other change."""
        ones = one.transpose(0, 1).reshape(D_OUT, TOKENS, -1).any(1).float()
        per_token = other.permute(1, 0, 2, 3).reshape(D_OUT, TOKENS, -1).any(1).float()
        return (ones @ per_token.T) > 0

    def placed(self) -> torch.Tensor | None:
        """Where the outputs of (token, feature) stand in the flat output, if that can be told."""
        flat = TOKENS * D_OUT
        queries = self.queries.reshape(TOKENS, D_OUT, flat)
        values = self.values.reshape(TOKENS, D_OUT, flat)
        heads = torch.arange(D_OUT) // HEAD_DIM
        places = torch.full((TOKENS, D_OUT), -1)
        for token in range(TOKENS - 1, -1, -1):
            for feature in range(D_OUT):
                reached = values[:, feature].any(0)
                if token:
                    reached = reached & queries[token][heads == heads[feature]].any(0)
                else:
                    taken = torch.zeros(flat, dtype=torch.bool)
                    taken[places[1:, feature]] = True
                    reached = reached & ~taken
                where = reached.nonzero().flatten()
                if len(where) != 1:
                    return None
                places[token, feature] = where
        return places if len(places.unique()) == flat else None


def ask_heads(maps: Maps) -> Finding | None:
    """Steps 3, 4, 9 and 10: each head has its own neighbouring features, before and after."""
    heads = torch.arange(D_OUT) // HEAD_DIM
    same = heads[:, None] == heads
    values = maps.features(maps.values)
    queries, keys = maps.features(maps.queries), maps.features(maps.keys)
    tokens = maps.values.any(dim=3).any(dim=1)
    if maps.base.isnan().any():
        return None
    if not (tokens & ~torch.eye(TOKENS, dtype=torch.bool)).any() and maps.queries.any():
        return Finding(
            4,
            "No token gathers anything from another token: heads meet heads inside each token. Look"
            " at the transpose: queries, keys and values are (b, num_heads, num_tokens, head_dim) "
            "before the scores.",
        )
    untouched = torch.equal(values, torch.eye(D_OUT, dtype=torch.bool))
    view = Finding(
        3,
        "The heads are not made of neighbouring features of one token: head 0 has the first "
        "head_dim features, head 1 the next. Look at the view, (b, num_tokens, num_heads, "
        "head_dim), and the transpose after it.",
    )
    if untouched:
        crossed = (queries & ~same).any() or (keys & ~same).any()
        if maps.scattered(maps.queries) or (crossed and maps.scattered(maps.keys)):
            return view
        if maps.scattered(maps.keys, within_heads=True):
            return Finding(
                5,
                "The keys' tokens and features are mixed up in the scores. Look at the product: "
                "swap the last two dims of keys with `transpose(2, 3)`, which a view or reshape "
                "does not do.",
            )
        if crossed and _all_alike(queries) and _all_alike(keys):
            return Finding(
                5,
                "The scores of one head depend on the queries or keys of another head. Look at the "
                "scores: each head multiplies its own head_dim features only.",
            )
        if crossed:
            return view
        if (same & ~queries)[queries.any(1)].any() or (same & ~keys)[keys.any(1)].any():
            return view
        if queries.any() and keys.any() and not (queries.any(1) & keys.any(1)).all():
            return Finding(
                5,
                "Not all features of the queries and keys count in the scores. Look at the product:"
                " it sums all head_dim features of a head.",
            )
        return None
    placed_at = values.float().sum(1).max() == 1 and values.float().sum(0).max() == 1
    if maps.scattered(maps.values) or maps.scattered(maps.queries):
        inside = maps.relation(maps.queries, maps.values), maps.relation(maps.queries, maps.keys)
        if any((each & ~same).any() for each in inside):
            return view
        return Finding(
            9,
            "The outputs of one token hold the context of several tokens. Look at the step after "
            "the context: swap tokens and heads back, `context.transpose(1, 2)`, before the view.",
        )
    if placed_at:
        place = values.float().argmax(1)
        if torch.equal(queries[:, place], same) and torch.equal(keys[:, place], same):
            return Finding(
                10,
                "The features of the heads are combined in another order: head 0's head_dim "
                "features come first, then head 1's. Look at the view or reshape to (b, "
                "num_tokens, d_out).",
            )
        return view
    return Finding(
        10,
        "The heads are merged into one another: lay them side by side. Look at the view or reshape "
        "to (b, num_tokens, d_out).",
    )


def _all_alike(features: torch.Tensor) -> bool:
    """Whether every feature that counts reaches the same outputs."""
    counting = features[features.any(1)]
    return bool((counting == counting[:1]).all())


def ask_weights(cls: Any, maps: Maps | None) -> Finding | None:
    """Steps 5 to 8: read the weights off the output and hold them against the true scores."""
    bench = Bench(cls, B).settle()
    queries, keys, _ = chosen()
    one_hot = torch.zeros(TOKENS, HEADS, HEAD_DIM)
    one_hot[torch.arange(TOKENS), :, torch.arange(TOKENS)] = 1
    context = bench.context(queries, keys, one_hot.view(TOKENS, D_OUT))
    if maps is not None and (places := maps.placed()) is not None:
        context = context.reshape(B, -1)[:, places.flatten()].view_as(context)
    read = context.view(B, TOKENS, HEADS, HEAD_DIM).transpose(1, 2)[..., :TOKENS]
    scores, right = true_scores(queries, keys)
    return judge_weights(read, scores, right)


def true_scores(queries: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and weights (b, num_heads, num_tokens, num_tokens) of the right class."""
    bench = Bench(MultiHeadAttention, B)
    bench.out(queries, keys, queries)
    steps = {step.name: step.tensors for step in trace(bench.module, bench.x)}
    return steps["scores"]["scores"], steps["softmax"]["weights"]


def judge_weights(read: torch.Tensor, scores: torch.Tensor, right: torch.Tensor) -> Finding | None:
    """Name the first of steps 5 to 8 at which read differs from the right weights.

    Args:
        read: the class's weights, (b, num_heads, num_tokens, num_tokens).
        scores: the true scores, of the same shape.
        right: the true weights, of the same shape.
    """
    if close(read, right, 1e-3):
        return None

    def finding(step: int, text: str) -> Finding:
        return Finding(step, text, read[0, 0], right[0, 0], "weights of the first head")

    past = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    if read.isnan().any():
        return _judge_nan(read, scores, past, finding)
    if _fit(read, right, torch.ones_like(past)) is not None:
        return finding(
            7,
            "The weights go through a softmax again. Look between the mask and the dropout: one "
            "softmax is right.",
        )
    leak = (read.abs() > 1e-5) & ~past
    rows = read.sum(-1)
    row_fit = _fit(read, scores, past)
    if row_fit is not None:
        if leak.any():
            return finding(6, _leak_text(leak))
        if not close(rows, torch.ones_like(rows), 1e-3):
            full = torch.softmax(row_fit * scores, dim=-1)
            if close(read, full * past, 2e-3):
                return finding(
                    6,
                    "The mask comes after the softmax, so the rows of the weights do not sum to 1. "
                    "Look at the mask: set future scores to -inf before the softmax.",
                )
            return finding(
                7,
                f"The rows of the weights sum to {float(rows[0, 0, -1]):.3f}, not to 1. Look at the "
                f"softmax: it runs over the keys (`dim=-1`), and nothing scales the weights after "
                f"it.",
            )
        return finding(7, _scale_text(row_fit))
    upper = ~past | torch.eye(TOKENS, dtype=torch.bool)
    if (
        _fit(read.transpose(2, 3), scores, past) is not None
        and not (read.abs() > 1e-5)[..., ~upper].any()
    ):
        return finding(
            8,
            "The weights are transposed before they meet the values. Look at the context: it is "
            "`weights @ values`.",
        )
    if _fit(read, scores.transpose(2, 3), past) is not None:
        return finding(
            5,
            "Queries and keys have changed places in the scores. Look at the product: it is "
            "`queries @ keys.transpose(2, 3)`.",
        )
    eye = torch.eye(TOKENS)
    for part in (1.0, -1.0):
        if close(read - part * eye, right, 1e-3):
            return finding(
                8,
                "Each token's own values are added to its context. Look at the context: it is "
                "`weights @ values` alone.",
            )
    for masked in (past, torch.ones_like(past)):
        if _fit(read.transpose(2, 3), scores.transpose(2, 3), masked.T) is not None:
            return finding(
                7,
                "The softmax runs over the queries: the columns of the weights sum to 1, not the "
                "rows. Look at the softmax: `dim=-1`.",
            )
    if close(read.sum(1)[..., past], torch.ones_like(read.sum(1)[..., past]), 1e-3):
        return finding(
            7,
            "The weights of the heads sum to 1 together. Look at the softmax: it runs over the "
            "keys, `dim=-1`, for each head alone.",
        )
    if not read[..., past].any() or (leak.any() and not (read.abs() > 1e-5)[..., past].all()):
        return finding(6, _leak_text(leak))
    if _monotone(read, scores, past):
        if leak.any():
            return finding(6, _leak_text(leak))
        return finding(
            7,
            f"The weights grow with the scores but are not their softmax; the last row sums to "
            f"{float(rows[0, 0, -1]):.3f}. Look at the softmax: "
            f"`torch.softmax(scores / head_dim**0.5, dim=-1)`.",
        )
    if leak.any() and close(read, read[:, :, :1].expand_as(read), 1e-3):
        return finding(7, "All tokens have the same weights. Look at the softmax and its axis.")
    return finding(
        5,
        "The weights do not follow the dot products of queries and keys. Look at the scores: "
        "`queries @ keys.transpose(2, 3)`, nothing else.",
    )


def _judge_nan(read, scores, past, finding) -> Finding:
    rows = ~read.isnan().any(-1)
    if rows.any() and not _rows_follow(read, scores, rows):
        return finding(
            7,
            "Some weights are NaN and the others are no softmax over the keys. Look at the softmax:"
            " `dim=-1`.",
        )
    return finding(
        6,
        f"{int((~rows[0, 0]).sum())} of {TOKENS} rows of the weights are NaN: -inf must stand above "
        f"the diagonal only, so that every token keeps at least itself. Look at the mask.",
    )


def _rows_follow(read: torch.Tensor, scores: torch.Tensor, rows: torch.Tensor) -> bool:
    """Whether the rows that are numbers are the softmax of some of their scores."""
    for sequence, head, token in rows.nonzero():
        weights, row = read[sequence, head, token], scores[sequence, head, token]
        used = weights > 1e-6
        if abs(float(weights.sum()) - 1) > 1e-3:
            return False
        if used.sum() > 1:
            ratio = (weights[used].log().diff() / row[used].diff()).nan_to_num()
            if (ratio - ratio[0]).abs().max() > 1e-2 * (1 + ratio[0].abs()):
                return False
    return True


def _fit(read: torch.Tensor, scores: torch.Tensor, past: torch.Tensor) -> float | None:
    """Factor a for which log read is a * scores plus a constant for each row, where past."""
    known_rows = past.expand_as(read)
    if (read[known_rows] <= 1e-9).any():
        return None
    logs = torch.where(known_rows, read.clamp(min=1e-9).log(), torch.nan)
    wanted = torch.where(known_rows, scores, torch.nan)
    logs, wanted = logs - logs.nanmean(-1, True), wanted - wanted.nanmean(-1, True)
    logs, wanted = logs.nan_to_num(), wanted.nan_to_num()
    factor = float((logs * wanted).sum() / (wanted * wanted).sum())
    return factor if close(logs, factor * wanted, 3e-3) and abs(factor) > 1e-3 else None


def _monotone(read: torch.Tensor, scores: torch.Tensor, past: torch.Tensor) -> bool:
    """Whether within each row a higher score always has a higher weight."""
    weights = read[..., :, None] - read[..., None, :]
    order = scores[..., :, None] - scores[..., None, :]
    both = (past[:, :, None] & past[:, None, :]) & (order > 1e-3)
    return bool((weights[both] > -1e-6).all() and (weights[both] > 1e-6).any())


def _leak_text(leak: torch.Tensor) -> str:
    heads = int(leak.any(-1).any(-1).any(0).sum())
    where = "" if heads in (0, HEADS) else f" in {heads} of {HEADS} heads"
    if not leak.any():
        return (
            "Tokens do not see all of their past. Look at the mask: -inf stands strictly above the "
            "diagonal, `triu(diagonal=1)`, and nowhere else."
        )
    return (
        f"Tokens see their future{where}: weights above the diagonal are not 0. Look at the mask: "
        f"-inf stands strictly above the diagonal, before the softmax."
    )


def _scale_text(factor: float) -> str:
    if abs(factor - 1) < 5e-3:
        return (
            "The scores are not scaled: divide them by the square root of head_dim. Look at the "
            "line before the softmax."
        )
    return (
        f"The scores are multiplied by {factor:.4g}; they should be divided by the square root of "
        f"head_dim ({HEAD_DIM}), that is multiplied by {1 / math.sqrt(HEAD_DIM):.4g}. Look at the "
        f"line before the softmax."
    )


def ask_out_proj(cls: Any) -> Finding | None:
    """Step 11: the output is context @ out_proj.weight.T + out_proj.bias and nothing else."""
    bench = Bench(cls, B)
    triple = chosen()
    nothing = torch.zeros(D_OUT, D_OUT)
    left = bench.out(*triple, matrix=nothing, bias=0.0)
    context = bench.out(*triple, bias=0.0) - left
    if not close(left, torch.zeros_like(left), 1e-3):
        if close(context, torch.zeros_like(context), 1e-3):
            return Finding(
                11,
                "out_proj.weight does not change the output. Look at the last line: return "
                "`out_proj(context)`.",
            )
        return Finding(
            11,
            "Something is added to the output besides out_proj: with out_proj set to 0 the output "
            "is not 0. Look at the last lines: return `out_proj(context)` alone.",
        )
    bias = known("bias", (D_OUT,))
    if not close(bench.out(*triple, matrix=nothing, bias=bias), bias.expand_as(context), 1e-3):
        return Finding(
            11,
            "out_proj.bias is not added once to every token. Look at the last line: return "
            "`out_proj(context)`.",
        )
    matrix = known("matrix", (D_OUT, D_OUT), 0.3)
    out = bench.out(*triple, matrix=matrix, bias=0.0)
    if not close(out, context @ matrix.T, 1e-3):
        return Finding(
            11,
            "The output is not the context times out_proj's weight. Look at the last line: return "
            "`out_proj(context)`.",
        )
    return None

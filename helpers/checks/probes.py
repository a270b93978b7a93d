"""Ask an attention class questions from which its first wrong step follows, listed or not.

Every token is fed as a one-hot vector, so that each weight matrix holds the queries, keys or values
of the tokens themselves, and any of them can be chosen. Then one feature of one query, key or value
is changed, and the outputs that change show which head and token it belongs to; and values that
number their tokens make the output spell out the attention weights.
"""

from collections.abc import Callable
from typing import Any

import torch

from helpers.attention import MultiHeadAttention
from helpers.checks.guard import Failure, attempt
from helpers.checks.looks import NAMES, Sizes, build, close, known, run
from helpers.checks.readings import Finding, judge_weights
from helpers.trace import trace

B, TOKENS, HEADS, HEAD_DIM = 2, 4, 3, 5
D_OUT = HEADS * HEAD_DIM
SMALL = 2.0**-8  # a size at which a saturating function is a straight line
OFFSET = 16.0  # out_proj's bias while the context is read: an activation lets it pass


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
        self.offset, self.size, self.gain = 0.0, 1.0, 1.0
        self.unused = self.opaque = self.unreadable = False

    def settle(self) -> "Bench":
        """Find out how the context can be read: is out_proj used, does an activation follow?"""
        triple = chosen(self.shape[0])
        eye, nothing = torch.eye(D_OUT), torch.zeros(D_OUT, D_OUT)
        left = self.out(*triple, nothing)
        plain, turned = (self.out(*triple, matrix) - left for matrix in (eye, -eye))
        self.unused = close(plain, 0 * plain) and not close(left, 0 * left)
        if not close(plain, turned) and not close(plain, -turned):
            self.offset = OFFSET
            left = self.out(*triple, nothing)
            plain = self.out(*triple, eye) - left
        doubled = self.out(*triple, 2 * eye) - left
        self.opaque = not any(close(doubled, factor * plain, 1e-3) for factor in (2, 4))
        if self.opaque:
            self.offset, self.size = 0.0, SMALL
            left = self.out(*triple, nothing)
            plain, doubled = ((self.out(*triple, n * SMALL * eye) - left) / SMALL for n in (1, 2))
            self.unreadable = not close(doubled, 2 * plain, 1e-3)
        ones = self.out(*triple, nothing, 1.0) - self.out(*triple, nothing, 0.0)
        if not self.offset and ones.min() > 0 and close(ones, ones.mean().expand_as(ones)):
            self.gain = float(ones.mean())
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
        layers = [getattr(self.module, name) for name in NAMES if hasattr(self.module, name)]
        with torch.no_grad():
            for layer, each, offset in zip(layers, (queries, keys, values), biases, strict=False):
                layer.weight.copy_(each.expand(self.shape).reshape(-1, D_OUT).T)
                if layer.bias is not None:
                    layer.bias.fill_(offset)
            if len(layers) > 3:
                layers[3].weight.copy_(self.size * torch.eye(D_OUT) if matrix is None else matrix)
            if len(layers) > 3 and layers[3].bias is not None:
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
        around = self.out(*chosen, matrix=torch.zeros(D_OUT, D_OUT), **options)
        return (through - around) / self.size


def chosen(b: int = B, seed: str = "", scale: float = 0.6) -> tuple[torch.Tensor, ...]:
    """Known random queries, keys and values (b, num_tokens, d_out)."""
    return tuple(known(each + seed, (b, TOKENS, D_OUT), scale) for each in ("q", "k", "v"))


def leaks(bench: Bench) -> bool:
    """Whether with all scores 0 the first token gathers the last one's values."""
    nothing = torch.zeros(bench.shape)
    last = torch.eye(TOKENS)[-1, :, None].expand(bench.shape)
    gathered = bench.context(nothing, nothing, last)[:, 0]
    return not close(gathered, 0 * gathered)


def locate(cls: Any) -> Finding | None:
    """Ask the questions in the order of the steps; the first wrong answer is the finding."""
    questions = (ask_projection, ask_bias, ask_batch, ask_heads_and_weights, ask_out_proj)
    bench = attempt(lambda: Bench(cls, B).settle())
    if isinstance(bench, Bench) and bench.unreadable:
        questions = (ask_out_proj,)
    found = []
    for question in questions:
        finding = attempt(question, cls)
        if isinstance(finding, Finding):
            found.append(finding)
            if finding.step <= 4 or question is ask_batch:  # the later questions cannot be read
                break
    return min(found, key=lambda each: each.step, default=None)


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
        if not _reads_values(bench, queries, keys):
            return Finding(
                3,
                "Parts of W_query or W_key end up in the values. Look at where the projections are "
                "cut into queries, keys and values.",
            )
        first = torch.eye(TOKENS)[0, :, None]
        for name, triple in (
            ("W_query", (first * queries, nothing, nothing)),
            ("W_key", (nothing, first * keys, nothing)),
        ):
            spread = bench.context(*triple)[:, 1:]
            if not close(spread, 0 * spread):
                return Finding(
                    2,
                    f"{name} has a part in what the weights gather: the values are `W_value(x)` "
                    f"alone. Look at where the projections are made and cut apart.",
                )
        return Finding(
            8,
            "Something is added to the context besides `weights @ values`: with all values 0 the "
            "context is not 0. Look at the context.",
        )
    for name in ("W_query", "W_key"):
        if not counts[name] and any(counts[other] for other in ("W_query", "W_key")):
            part = "queries" if name == "W_query" else "keys"
            return Finding(
                2,
                f"{name} does not change the output: the {part} are `{name}(x)`. Look at the "
                f"projections and the scores.",
            )
    return ask_values(bench)


def _reads_values(bench: Bench, queries: torch.Tensor, keys: torch.Tensor) -> bool:
    """Whether every feature of the values changes the output."""
    nothing = torch.zeros(B, TOKENS, D_OUT)
    plain = bench.context(queries, keys, nothing)
    one = torch.eye(D_OUT)
    return all(not close(bench.context(queries, keys, nothing + each), plain) for each in one)


def ask_values(bench: Bench) -> Finding | None:
    """Steps 2 and 8: the context is linear in the values."""
    queries, keys, values = chosen()
    others = chosen(seed="other")[2]
    nothing = torch.zeros(B, TOKENS, D_OUT)
    sums = bench.context(queries, keys, values) + bench.context(queries, keys, others)
    whole = bench.context(queries, keys, values + others) + bench.context(queries, keys, nothing)
    if close(sums, whole, 1e-3):
        return None
    early = torch.tensor([1.0, 1.0, 0.0, 0.0])[:, None]
    parts = (early * values, (1 - early) * values, values, nothing)
    one, other, both, none = (bench.context(queries, keys, part) for part in parts)
    if not close(one + other, both + none, 1e-3):
        return Finding(
            8,
            "The context is not plain sums of values: something is applied to it. Look at the "
            "context: it is `weights @ values` alone.",
        )
    return Finding(
        2,
        "Something is applied to the values: they are `W_value(x)` and nothing else. Look at the "
        "projections.",
    )


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
    """Steps 1, 3, 7 and 9: sequences of one batch never meet."""
    bench = Bench(cls, B).settle()
    nothing, ones = torch.zeros(B, TOKENS, D_OUT), torch.ones(B, TOKENS, D_OUT)
    queries, keys, values = chosen()
    for changed in range(B):
        others = [each.clone() for each in (queries, keys, values)]
        for each, new in zip(others, chosen(seed="other"), strict=True):
            each[changed] = new[changed]
        even = [bench.context(nothing, nothing, each)[1 - changed] for each in (values, others[2])]
        if not close(*even):
            return _judge_meeting(bench, others, 1 - changed)
        either = [
            bench.context(*each, values)[1 - changed] for each in ((queries, keys), others[:2])
        ]
        if not close(*either):
            sums = bench.context(queries, keys, ones)
            if leaks(bench):
                return Finding(
                    6,
                    "Tokens see their future, by scores that depend on other sequences. Look at "
                    "the mask: future scores are -inf, whatever the others are.",
                )
            return Finding(
                3 if close(sums, ones, 1e-3) else 7,
                "The queries and keys of one sequence change the weights of another. Look at the "
                "axis of the softmax, and at every view: b stays a size of its own.",
            )
    return None


def _judge_meeting(bench: Bench, others: list[torch.Tensor], watched: int) -> Finding:
    """The values of one sequence reach another, the watched one."""
    queries, keys, values = chosen()
    one = torch.zeros(B, TOKENS, D_OUT)
    one[0, 0] = values[0, 0]
    reached = bench.context(0 * queries, 0 * keys, one).abs().sum(-1) > 1e-4
    if not reached[0, 1:].any() and reached[1, 0] and not reached[1, 1:].any():
        return Finding(
            1,
            "Tokens at the same place in different sequences attend to each other: b and num_tokens"
            " have changed places. Look at where they are read off x, and at every transpose of x.",
        )
    mine = torch.zeros(B, TOKENS, D_OUT)
    mine[watched] = values[watched]
    if close(bench.context(queries, keys, mine), bench.context(*others[:2], mine)):
        return Finding(
            9,
            "The context of one sequence lands in another sequence of the batch. Look at the views "
            "and transposes after the context: b stays the first size.",
        )
    return Finding(
        3,
        "The values of one sequence reach another sequence of the batch. Look at every view and "
        "reshape: b stays the first size.",
    )


def ask_heads_and_weights(cls: Any) -> Finding | None:
    """Steps 3 to 10: which features form a head, then what its weights are."""
    maps = Maps(cls)
    shape = ask_heads(maps)
    if shape is not None and (shape.step <= 4 or shape.step == 8):
        return shape
    if shape is not None and shape.step >= 9 and maps.placed() is None:
        return shape
    weights = ask_weights(cls, maps if shape is not None else None)
    if shape is not None and shape.step == 5 and weights is not None:
        return weights if weights.step > 5 else shape  # weights that follow the scores are proof
    found = [each for each in (shape, weights) if each is not None]
    return min(found, key=lambda each: each.step, default=None)


class Maps:
    """Which outputs change with each feature of each query, key and value.

    Each of queries, keys, values is (num_tokens, d_out, num_tokens, d_out), True where changing
    the first token's feature changes the second token's output feature.
    """

    def __init__(self, cls: Any):
        count = TOKENS * D_OUT
        queries, keys, values = chosen(1)
        base = queries.abs(), keys.abs(), values  # an activation lets them pass
        kinds = [each.expand(3 * count + 2, TOKENS, D_OUT).clone() for each in base]
        for kind, each in enumerate(kinds):
            start = 2 + kind * count
            each[start : start + count] += 1.5 * torch.eye(count).view(count, TOKENS, D_OUT)
        bench = Bench(cls, 3 * count + 2)
        settled = Bench(cls, B).settle()
        bench.offset, bench.size = settled.offset, settled.size
        out = bench.out(*kinds) / bench.size
        self.base = out[1]
        numbers = out.nan_to_num(1e6)
        changed = (numbers[2:] - numbers[1]).abs() > 3e-5
        whole = changed.view(3, TOKENS, D_OUT, TOKENS, D_OUT)
        self.queries, self.keys, self.values = whole
        self.leaks = leaks(Bench(cls, 1).settle())

    def features(self, kind: torch.Tensor) -> torch.Tensor:
        """Which feature (d_out) reaches which output feature (d_out), at any token."""
        return kind.any(dim=2).any(dim=0)

    def scattered(self, kind: torch.Tensor, within_heads: bool = False) -> bool:
        """Whether features of one token, or of one head of it, reach outputs of other tokens."""
        rows = kind.any(dim=3).view(TOKENS, -1, HEAD_DIM if within_heads else D_OUT, TOKENS)
        for each in rows.flatten(0, 1):
            reaching = each[each.any(1)]
            if (reaching != reaching[:1]).any():
                return True
        return False

    def strayed(self, kind: torch.Tensor) -> bool:
        """Whether some feature of a token reaches outputs of other tokens alone."""
        rows = kind.any(dim=3)[1:]  # (num_tokens - 1, d_out, num_tokens)
        own = rows[torch.arange(TOKENS - 1), :, torch.arange(1, TOKENS)]
        return bool((rows.any(2) & ~own).any())

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
    apart = ~torch.eye(TOKENS, dtype=torch.bool)
    if not (tokens & apart).any() and (maps.queries.any(3).any(1) & apart).any():
        return Finding(
            8,
            "No token gathers the values of another token, though the scores of others count. Look "
            "at the context: `weights @ values` sums over the keys.",
        )
    if not (tokens & apart).any() and maps.queries.any():
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
        if maps.strayed(maps.queries) or (crossed and maps.strayed(maps.keys)):
            return view
        if crossed and all(_all_alike(each) or torch.equal(each, same) for each in (queries, keys)):
            return Finding(
                5,
                "The scores of one head depend on the queries or keys of another head. Look at the "
                "scores: each head multiplies its own head_dim features only.",
            )
        if maps.strayed(maps.keys) and maps.scattered(maps.keys, within_heads=True):
            return Finding(
                5,
                "The keys' tokens and features are mixed up in the scores. Look at the product: "
                "swap the last two dims of keys with `transpose(2, 3)`, which a view or reshape "
                "does not do.",
            )
        blocks = queries.view(HEADS, HEAD_DIM, HEADS, HEAD_DIM)
        whole = blocks.any(3).sum(2).eq(1).all() and torch.equal(queries, keys)
        if crossed and whole:
            return Finding(
                8,
                "The weights of one head gather the values of another. Look at the context: it is "
                "`weights @ values`, head by head.",
            )
        if crossed:
            return view
        if (same & ~queries)[queries.any(1)].any() or (same & ~keys)[keys.any(1)].any():
            return view
        if not maps.leaks and queries.any() and not (queries.any(1) & keys.any(1)).all():
            return Finding(
                5,
                "Not all features of the queries and keys count in the scores. Look at the product:"
                " it sums all head_dim features of a head.",
            )
        return None
    if not (values & ~torch.eye(D_OUT, dtype=torch.bool)).any():
        return Finding(
            10,
            "Some features of the heads never reach the output. Look at how the heads are laid side"
            " by side.",
        )
    placed_at = values.float().sum(1).max() == 1 and values.float().sum(0).max() == 1
    if maps.scattered(maps.values) or maps.strayed(maps.queries):
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
    if not values.any(1).all():
        return Finding(
            3,
            "Some features of the values are used by several heads and others by none. Look at how "
            "the features are shared out: head_dim neighbouring ones for each head.",
        )
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
    places = maps.placed() if maps is not None else None
    size = 1.0 if bench.offset else 2.0**-6  # small values pass an activation of the context

    def read(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        one_hot = torch.zeros(TOKENS, HEADS, HEAD_DIM)
        one_hot[torch.arange(TOKENS), :, torch.arange(TOKENS)] = size
        context = bench.context(queries, keys, one_hot.view(TOKENS, D_OUT))
        context = (context - bench.context(queries, keys, 0 * queries)) / size
        if places is not None:
            context = context.reshape(B, -1)[:, places.flatten()].view_as(context)
        return context.view(B, TOKENS, HEADS, HEAD_DIM).transpose(1, 2)[..., :TOKENS]

    for scale in (0.4, 1.2):
        queries, keys, _ = chosen(scale=scale)
        scores, right = true_scores(queries, keys)
        weights = read(queries, keys)
        finding = judge_weights(weights, scores, right)
        if finding is not None and bench.gain != 1:
            finding = judge_weights(weights / bench.gain, scores, right)
        if finding is not None and finding.strange:
            linear = attempt(ask_linear, read, queries, keys)
            return linear if isinstance(linear, Finding) else finding
        if finding is not None:
            return finding
    return None


def ask_linear(
    read: Callable[[torch.Tensor, torch.Tensor], torch.Tensor],
    queries: torch.Tensor,
    keys: torch.Tensor,
) -> Finding | None:
    """Step 2: the scores are linear in the queries and in the keys, as far as weights tell."""
    others = chosen(seed="other", scale=0.4)
    past = torch.ones(TOKENS, TOKENS, dtype=torch.bool).tril()
    zero = torch.zeros_like(queries)

    def logs(queries: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        weights = read(queries, keys)
        if (weights[..., past] <= 1e-9).any():
            raise CannotAsk
        return (weights / weights[..., :1]).clamp(min=1e-9).log() * past

    if max(logs(zero, keys).abs().max(), logs(queries, zero).abs().max()) > 3e-3:
        return None
    for_queries = [logs(each, keys) for each in (queries, others[0], queries + others[0], zero)]
    for_keys = [logs(queries, each) for each in (keys, others[1], keys + others[1], zero)]
    linear = [
        close(one + other, both + none, 3e-3) for one, other, both, none in (for_queries, for_keys)
    ]
    for name, this, that in (("queries", *linear), ("keys", *linear[::-1])):
        if that and not this:
            return Finding(
                2,
                f"Something is applied to the {name}: they are the plain projection of x. Look at "
                f"the projections and at what happens to the {name} before the scores.",
            )
    return None


def true_scores(queries: torch.Tensor, keys: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Scores and weights (b, num_heads, num_tokens, num_tokens) of the right class."""
    bench = Bench(MultiHeadAttention, B)
    bench.out(queries, keys, queries)
    steps = {step.name: step.tensors for step in trace(bench.module, bench.x)}
    return steps["scores"]["scores"], steps["softmax"]["weights"]


def ask_out_proj(cls: Any) -> Finding | None:
    """Step 11: the output is context @ out_proj.weight.T + out_proj.bias and nothing else."""
    bench = Bench(cls, B).settle()
    triple = chosen()
    nothing = torch.zeros(D_OUT, D_OUT)
    if bench.opaque:
        return Finding(
            11,
            "Something is applied to the output after out_proj, or out_proj is applied more than "
            "once. Look at the last lines: return `out_proj(context)`.",
        )
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

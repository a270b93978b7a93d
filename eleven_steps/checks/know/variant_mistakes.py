"""The usual mistakes in what models changed since the lecture: edits of beyond.variants.

VARIANT_MISTAKES maps identifiers to Mistakes, variant by variant.
"""

from eleven_steps.checks.know.mistake import Mistake, at

# As many tokens come out as queries were made.
_TOKENS_OF_OTHER = (
    (
        "queries = queries.view(b, num_tokens, self.num_heads, -1)",
        "queries = queries.view(b, -1, self.num_heads, self.head_dim)",
    ),
    (
        "context = context.contiguous().view(b, num_tokens, self.d_out)",
        "context = context.contiguous().view(b, -1, self.d_out)",
    ),
)

_LIST = (
    # gqa
    at.transpose(
        "kv_heads_tiled",
        "Key heads are dealt out in turn, 0, 1, 0, 1: neighbours share one, so write "
        "`keys.repeat_interleave(group, dim=1)`, and values alike.",
        "Weights trained with neighbours sharing give other numbers, and no shape says so.",
        (
            ("keys = keys.repeat_interleave(group, dim=1)", "keys = keys.repeat(1, group, 1, 1)"),
            (
                "values = values.repeat_interleave(group, dim=1)",
                "values = values.repeat(1, group, 1, 1)",
            ),
        ),
        variant="gqa",
    ),
    at.transpose(
        "values_tiled",
        "Keys are repeated for neighbours, values are dealt out in turn: use "
        "`repeat_interleave` for both.",
        "A head then weighs the tokens by one head and mixes the values of another.",
        (
            (
                "values = values.repeat_interleave(group, dim=1)",
                "values = values.repeat(1, group, 1, 1)",
            ),
        ),
        variant="gqa",
    ),
    # norm
    at.transpose(
        "norm_queries_only",
        "Keys are not normed: norm queries and keys, each with its own weights.",
        "A score is a product of both lengths; one that grows is enough to saturate the softmax.",
        (("call.mha.key_norm(keys), values", "keys, values"),),
        variant="norm",
    ),
    at.transpose(
        "norm_values_too",
        "Values are normed as well: norm queries and keys only.",
        "Values carry what a token offers, its length included.",
        (
            (
                "call.mha.key_norm(keys), values",
                "call.mha.key_norm(keys), call.mha.key_norm(values)",
            ),
        ),
        variant="norm",
    ),
    # rope
    at.transpose(
        "rope_other_pairing",
        'Other features turn together than in the reference: "halves" pairs feature p with p + '
        'head_dim / 2, "neighbours" 2 p with 2 p + 1.',
        "Weights made for one pairing are wrong with the other, a little, at every token but "
        "the first.",
        (('if pairing == "halves" else', 'if pairing != "halves" else'),),
        variant="rope",
    ),
    at.transpose(
        "rope_keys_not_turned",
        "Only queries are turned: turn keys by their own positions too.",
        "A score then depends on where the query stands, not on the distance.",
        (("self.turned(keys, call.end), values", "keys, values"),),
        variant="rope",
    ),
    at.transpose(
        "rope_values_turned",
        "Values are turned as well: turn queries and keys only.",
        "Positions are meant for the scores; the mix of values would turn with them.",
        (
            (
                "self.turned(keys, call.end), values",
                "self.turned(keys, call.end), self.turned(values, call.end)",
            ),
        ),
        variant="rope",
    ),
    at.transpose(
        "rope_opposite_turns",
        "Queries and keys turn in opposite directions: turn both by plus their position.",
        "The angle between them is then the sum of their positions, not the difference.",
        (
            (
                "self.turned(keys, call.end), values",
                "rotate(keys, -torch.arange(call.end - keys.shape[2], call.end), self.base, "
                "self.pairing), values",
            ),
        ),
        variant="rope",
    ),
    at.transpose(
        "rope_angles_half",
        "The angles fall half as fast: pair p of P turns by `base ** (-p / P)`, P = head_dim / 2.",
        "Written with features, it is -2 p / head_dim: the 2 is easily lost.",
        (("device=vectors.device) / pairs\n", "device=vectors.device) / (2 * pairs)\n"),),
        variant="rope",
    ),
    # alibi
    at.scores(
        "alibi_bonus",
        "Distance is rewarded: subtract slope * distance from the scores.",
        "Far tokens get the most weight, the reverse of what is meant.",
        (("return (scores - price,)", "return (scores + price,)"),),
        variant="alibi",
    ),
    at.scores(
        "alibi_divided",
        "The price is divided by sqrt(head_dim): it belongs to the scaled scores, so multiply "
        "it by the root at step 5 or subtract it after the division.",
        "Every head then looks sqrt(head_dim) times as far as its slope says.",
        ((".to(scores) * call.mha.key_dim**0.5", ".to(scores)"),),
        variant="alibi",
    ),
    at.scores(
        "alibi_slopes_reversed",
        "The slopes stand in reverse order: head 0 pays most.",
        "Trained heads rely on their own reach.",
        (
            (
                "alibi_slopes(call.mha.num_heads).to(scores)",
                "alibi_slopes(call.mha.num_heads).flip(0).to(scores)",
            ),
        ),
        variant="alibi",
    ),
    # cap
    at.scores(
        "cap_before_scale",
        "The cap is put on scores that are not scaled yet: cap `scores / head_dim**0.5`.",
        "The limit is then sqrt(head_dim) times lower than meant.",
        (("limit = self.limit * call.mha.key_dim**0.5", "limit = self.limit"),),
        variant="cap",
    ),
    # window
    at.mask(
        "window_one_long",
        "The window holds a token too many: itself and size - 1 before it, so hide distances >= "
        "size.",
        "Texts shorter than the window do not show it.",
        (("hidden.device) >= self.size),)", "hidden.device) > self.size),)"),),
        variant="window",
    ),
    at.mask(
        "window_one_short",
        "The window holds a token too few: itself and size - 1 before it, so hide distances >= "
        "size.",
        "A window of 1 would hide everything.",
        (("hidden.device) >= self.size),)", "hidden.device) >= self.size - 1),)"),),
        variant="window",
    ),
    at.mask(
        "window_instead_of_mask",
        "The window replaces the causal mask: hide the future as well.",
        "A distance below 0 is below any window, so every later token is seen.",
        (("return (hidden | (distances(", "return (hidden & False | (distances("),),
        variant="window",
    ),
    # padding
    at.mask(
        "padding_after_softmax",
        "Padding is hidden after the softmax: set its scores to -inf before.",
        "It took its share of each row; what stays no longer adds up to 1.",
        (
            (
                "hidden = hidden | self.is_padding[:, None, None, : "
                "hidden.shape[-1]].to(hidden.device)",
                "hidden = hidden | False",
            ),
            (
                "weights = self.dropout(weights)  # (b, num_heads, num_tokens, num_keys)",
                "weights = weights.masked_fill(self.part(Padding).is_padding[:, None, None, : "
                "num_keys], 0)\n        weights = self.dropout(weights)",
            ),
        ),
        variant="padding",
    ),
    at.mask(
        "padding_polarity",
        "Real tokens are hidden and padding is seen: is_padding is True where a token is filling.",
        "torch's own modules disagree: key_padding_mask is True for padding, SDPA's attn_mask "
        "for what is seen.",
        (("hidden | self.is_padding[", "hidden | ~self.is_padding["),),
        variant="padding",
    ),
    at.mask(
        "padding_nan",
        "A row where all is hidden becomes NaN: let a query that sees nothing see everything.",
        "Nobody reads its output, but NaN reaches every gradient.",
        (("return (hidden & ~hidden.all(dim=-1, keepdim=True),)", "return (hidden,)"),),
        variant="padding",
    ),
    at.mask(
        "padding_first_sequence",
        "All sequences get the padding of the first: is_padding needs the shape (b, 1, 1, "
        "num_keys).",
        "Real tokens vanish in one sequence, padding is read in another.",
        (
            (
                "self.is_padding[:, None, None, : hidden.shape[-1]]",
                "self.is_padding[:1, None, None, : hidden.shape[-1]]",
            ),
        ),
        variant="padding",
    ),
    # other
    at.mask(
        "other_masked",
        "Keys of the other sequence are hidden by the causal mask: nothing of it lies in the "
        "future.",
        "The first token would see only the first of the other text.",
        (
            (
                "(hidden.new_zeros(call.x.shape[1], self.other.shape[1]),)",
                "(hidden.new_ones(call.x.shape[1], self.other.shape[1]).triu(1),)",
            ),
        ),
        variant="other",
    ),
    at.project(
        "other_queries",
        "Queries come from the other sequence: they come from x, keys and values from the other.",
        "The output has the other text's tokens.",
        (
            (
                "return mha.W_query(call.x), mha.W_key(self.other), mha.W_value(self.other)",
                "return mha.W_query(self.other), mha.W_key(call.x), mha.W_value(call.x)",
            ),
            *_TOKENS_OF_OTHER,
            (
                "(hidden.new_zeros(call.x.shape[1], self.other.shape[1]),)",
                "(hidden.new_zeros(self.other.shape[1], call.x.shape[1]),)",
            ),
        ),
        variant="other",
    ),
    at.project(
        "other_alone",
        "Queries come from the other sequence too, and x has no say: queries come from x.",
        "The output has the other text's tokens, and is the same for every x.",
        (
            (
                "return mha.W_query(call.x), mha.W_key(self.other)",
                "return mha.W_query(self.other), mha.W_key(self.other)",
            ),
            *_TOKENS_OF_OTHER,
            (
                "(hidden.new_zeros(call.x.shape[1], self.other.shape[1]),)",
                "(hidden.new_zeros(self.other.shape[1], self.other.shape[1]),)",
            ),
        ),
        variant="other",
    ),
    at.project(
        "other_values_from_x",
        "Values come from x: keys and values both come from the other sequence.",
        "Weights found for one text would mix tokens of another.",
        (
            (
                "mha.W_key(self.other), mha.W_value(self.other)",
                "mha.W_key(self.other), mha.W_value(call.x[:, : self.other.shape[1]])",
            ),
        ),
        variant="other",
    ),
    # sinks
    at.softmax(
        "sinks_left_out",
        "The sinks take no part in the softmax: append each head's to its rows, and drop its "
        "weight after.",
        "Each row adds up to 1 again, and a head cannot say little.",
        (
            (
                "return torch.softmax(torch.cat([scaled, sinks], dim=-1), dim=-1)[..., :-1]",
                "return torch.softmax(scaled, dim=-1)",
            ),
        ),
        variant="sinks",
    ),
    at.softmax(
        "sinks_divided",
        "The sinks are divided by sqrt(head_dim): they stand beside scores already scaled.",
        "A trained sink then takes another share.",
        (
            (
                "sinks = call.mha.sinks.view(-1, 1, 1)",
                "sinks = (call.mha.sinks / call.mha.key_dim**0.5).view(-1, 1, 1)",
            ),
        ),
        variant="sinks",
    ),
    at.softmax(
        "sinks_dropped_first",
        "The first key's weight is dropped in place of the sink's: the sink was appended last, "
        "so cut `[..., :-1]`.",
        "All weights move one key to the left.",
        (("dim=-1), dim=-1)[..., :-1]", "dim=-1), dim=-1)[..., 1:]"),),
        variant="sinks",
    ),
    # gate
    at.combine(
        "gate_without_sigmoid",
        "The gate is not squeezed: multiply by `torch.sigmoid(W_gate(x))`, from 0 to 1.",
        "Without it the gate can turn signs and has no limit.",
        (
            (
                "context * torch.sigmoid(call.mha.W_gate(call.x))",
                "context * call.mha.W_gate(call.x)",
            ),
        ),
        variant="gate",
    ),
    at.combine(
        "gate_added",
        "The gate is added: multiply the context by it.",
        "A sum cannot silence a head.",
        (("context * torch.sigmoid(", "context + torch.sigmoid("),),
        variant="gate",
    ),
    # latent
    at.project(
        "latent_not_normed",
        "The latent is not normed before keys and values are made from it.",
        "W_key and W_value were trained on latents of one length.",
        (("latents = mha.latent_norm(latents)", "latents = latents"),),
        variant="latent",
    ),
    at.softmax(
        "latent_scale",
        "Scores are divided by sqrt(head_dim): queries and keys have rope_dim features more, so "
        "divide by sqrt(head_dim + rope_dim).",
        "The scale follows the features that meet in a score.",
        (("scaled = masked.div_(self.key_dim**0.5)", "scaled = masked.div_(self.head_dim**0.5)"),),
        variant="latent",
    ),
    at.transpose(
        "latent_all_turned",
        "Features made from the latent are turned too: turn the last rope_dim only.",
        "Keys that depend on the position cannot be made from a latent kept without it.",
        (
            (
                "width = vectors.shape[-1] if self.width is None else self.width",
                "width = vectors.shape[-1]",
            ),
        ),
        variant="latent",
    ),
    # cache
    at.transpose(
        "rope_positions_restart",
        "New tokens are turned by positions from 0: start at the number of tokens kept.",
        "Every new token claims to be the first of the text.",
        (
            (
                "torch.arange(end - vectors.shape[2], end, device=vectors.device)",
                "torch.arange(vectors.shape[2], device=vectors.device)",
            ),
        ),
        variant="cache",
    ),
    at.transpose(
        "cache_wrong_axis",
        "New keys are joined on another axis than the tokens': in (b, num_heads, num_tokens, "
        "head_dim) it is dim -2.",
        "With pieces of equal size nothing complains; heads seem to double.",
        (("torch.cat(pair, dim=-2)", "torch.cat(pair, dim=1)"),),
        variant="cache",
    ),
    at.transpose(
        "cache_new_first",
        "New keys stand before the old ones: join `[kept, new]`.",
        "Masks and positions count from the oldest token.",
        (("zip(self.kept, new, strict=True)", "zip(new, self.kept, strict=True)"),),
        variant="cache",
    ),
    at.transpose(
        "cache_forgets",
        "The cache is not updated: keep the joined keys and values for the next call.",
        "Each call sees the first piece and its own.",
        (("        self.kept = new\n", "        self.kept = self.kept or new\n"),),
        variant="cache",
    ),
    at.mask(
        "cache_mask_top_left",
        "The mask is cut at the top left: new queries stand at the end, so take its rows "
        "`[start:end]`.",
        "The newest token would see the oldest only; `is_causal=True` of torch's SDPA does just "
        "this.",
        (("hidden = self.mask[start:end, :end]", "hidden = self.mask[:num_tokens, :end]"),),
        variant="cache",
    ),
)

VARIANT_MISTAKES: dict[str, Mistake] = {each.identifier: each for each in _LIST}

"""The usual wrong attention classes, each a small edit of the right one's source.

MISTAKES maps identifiers to Mistakes, in the order of the eleven steps. Every lesson that breaks
something, every check that names a mistake, and every test of them reads this one list, and
variant_mistakes.VARIANT_MISTAKES for changes since the lecture.
"""

import difflib
import functools
import inspect
import linecache
import re
import types
import zlib

from eleven_steps.beyond import variants
from eleven_steps.checks.know.fitted import fitted
from eleven_steps.checks.know.mistake import Mistake, at
from eleven_steps.checks.know.variant_mistakes import VARIANT_MISTAKES
from helpers import attention

# Lines of the lecture's class as they stand in eleven_steps.beyond.variants.
_LATER = (
    ("future = self.mask[:num_tokens, :num_tokens]", "hidden = self.mask[start:end, :end]"),
    ("future", "hidden"),
    ("scaled = masked.div_(self.head_dim**0.5)", "scaled = masked.div_(self.key_dim**0.5)"),
    (
        "weights = torch.softmax(scaled, dim=-1)",
        'weights = replacing("softmax", self)(call, scaled)',
    ),
)
_WITHIN = {"cache": "rope"}  # what is kept has been turned
_BETWEEN = "\n\n# the next file\n\n"
_PROJECTED = "num_keys = keys.shape[1]"  # once the three are made, in eleven_steps.beyond.variants


def wrong_class(*identifiers: str, variant: str = "") -> type[attention.MultiHeadAttention]:
    """Build MultiHeadAttention with the named mistakes planted.

    Args:
        identifiers: keys of MISTAKES or VARIANT_MISTAKES; several plant all of them.
        variant: the change that the class is to have, as check_attention calls it; that of the
            mistakes if it is not given.

    Returns:
        A new class; its forward still records its steps, so that a trace shows the wrong numbers.
        With a variant it is built and called as check_attention says.

    Raises:
        KeyError: no mistake has that name.
        ValueError: two of the mistakes change the same line.
    """
    variant = variant or _variant_of(identifiers)
    source = edited_source(*identifiers, variant=variant)
    # A dataclass wants to find the module it is of.
    namespace = vars(attention) | {"__name__": variants.__name__ if variant else "wrong"}
    for piece in source.split(_BETWEEN):
        exec(_compiled(piece), namespace)
    return fitted(namespace, variant) if variant else namespace["MultiHeadAttention"]


@functools.cache
def _compiled(piece: str) -> types.CodeType:
    """The code of a piece of source, which tracebacks show; most mistakes edit one of several."""
    filename = f"<MultiHeadAttention, edited, {zlib.crc32(piece.encode())}>"
    linecache.cache[filename] = (len(piece), None, piece.splitlines(keepends=True), filename)
    return compile(piece, filename, "exec")


def show_lines(*identifiers: str) -> str:
    """Return the right lines (marked -) and the wrong ones (marked +), for printing in a lesson.

    Args and errors as in wrong_class.
    """
    right, wrong = (
        [line.split("  # ")[0].strip() for line in source.splitlines()]
        for source in (edited_source(variant=_variant_of(identifiers)), edited_source(*identifiers))
    )
    changes = difflib.ndiff(right, wrong)
    return "\n".join(line.rstrip() for line in changes if line[:2] in ("- ", "+ "))


def edited_source(*identifiers: str, variant: str = "") -> str:
    """Return the source of MultiHeadAttention and its base with the named mistakes planted.

    With a variant it is that of eleven_steps.beyond.variants as well, whatever the variant.
    """
    variant = variant or _variant_of(identifiers)
    source = _variant_source() if variant else _right_source()
    for identifier in identifiers:
        for old, new in edits_of(identifier, variant):
            if source.count(old) != 1:
                raise ValueError(
                    f"{identifier} changes {old!r}, found {source.count(old)} times after "
                    f"{identifiers}: once is expected"
                )
            source = source.replace(old, new)
    return source


def edits_of(identifier: str, variant: str = "") -> tuple[tuple[str, str], ...]:
    """Return a mistake's edits; one of the lecture's class as it is made in beyond.variants."""
    mistake = named(identifier)
    return tuple(map(_later, mistake.edits)) if variant and not mistake.variant else mistake.edits


def _later(edit: tuple[str, str]) -> tuple[str, str]:
    if edit[0] in (_QUERIES, _KEYS, _VALUES):
        return _PROJECTED, f"{edit[1]}\n        {_PROJECTED}"
    for lecture, later in _LATER:
        edit = tuple(text.replace(lecture, later) for text in edit)
    return edit


def named(identifier: str) -> Mistake:
    """Return the mistake of a name; raise KeyError if there is none."""
    return MISTAKES.get(identifier) or VARIANT_MISTAKES[identifier]


@functools.cache
def mistakes_of(variant: str) -> dict[str, Mistake]:
    """Return what can go wrong with a variant: its own mistakes, then the lecture's."""
    if not variant:
        return MISTAKES
    source = _variant_source()
    some = variant, _WITHIN.get(variant)
    own = {name: each for name, each in VARIANT_MISTAKES.items() if each.variant in some}
    return own | {
        name: each
        for name, each in MISTAKES.items()
        if all(source.count(old) == 1 for old, _ in edits_of(name, variant))
    }


def _variant_of(identifiers: tuple[str, ...]) -> str:
    return next(filter(None, (named(each).variant for each in identifiers)), "")


@functools.cache
def _right_source() -> str:
    source = inspect.getsource(attention)  # of the file: Python parses it whole to find one class
    return source[source.index("class _Causal") : source.index("class CausalAttention")].rstrip()


@functools.cache
def _variant_source() -> str:
    """The source of the parts, and of what VariantAttention takes from the lecture's class."""
    lecture = _right_source()
    own = lecture.index("    def forward(", lecture.index("class MultiHeadAttention"))
    texts = [lecture[:own]]
    for name in ("module", "keep", "look", "turn", "project", "weigh"):
        texts.append(inspect.getsource(getattr(variants, name)))
    return re.sub(r"(?m)^from (helpers|eleven_steps)\b.*\n", "", _BETWEEN.join(texts))


_SIZES = "b, num_tokens, _ = x.shape"
_W_QUERY = "self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)"
_W_KEY = "self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)"
_OUT_PROJ = "self.out_proj = nn.Linear(d_out, d_out)"
_QUERIES = "queries = self.W_query(x)"
_KEYS = "keys = self.W_key(x)"
_VALUES = "values = self.W_value(x)"
_SPLIT = "split = (b, num_tokens, self.num_heads, self.head_dim)"
_SWAP_QUERIES = "queries = queries.transpose(1, 2)"
_SWAP_KEYS = "keys = keys.transpose(1, 2)"
_SWAP_VALUES = "values = values.transpose(1, 2)"
_SCORES = "scores = queries @ keys.transpose(2, 3)"
_FUTURE = "future = self.mask[:num_tokens, :num_tokens]"
_MASKED = "masked = scores.masked_fill_(future, -torch.inf)"
_SCALED = "scaled = masked.div_(self.head_dim**0.5)"
_SOFTMAX = "weights = torch.softmax(scaled, dim=-1)"
_DROPOUT = "weights = self.dropout(weights)"
_CONTEXT = "context = weights @ values"
_REFORMAT = "context = context.transpose(1, 2)"
_COMBINE = "context = context.contiguous().view(b, num_tokens, self.d_out)"
_OUT = "out = self.out_proj(context)"


def _each(old: str, new: str) -> tuple[tuple[str, str], ...]:
    """Spell out an edit of W_query and queries for W_key and keys, W_value and values too."""
    names = ("query", "queries"), ("key", "keys"), ("value", "values")
    return tuple(
        tuple(text.replace("query", one).replace("queries", many) for text in (old, new))
        for one, many in names
    )


_LIST = (
    at.shape(
        "no_super_init",
        "The constructor never calls `super().__init__()`: make it the first line of `__init__`.",
        "Without it nn.Module cannot hold layers, parameters or buffers.",
        (("super().__init__()\n", "pass\n"),),
    ),
    at.shape(
        "sizes_swapped",
        "b and num_tokens are read off x in the wrong order: x is (b, num_tokens, d_in), so write "
        "`b, num_tokens, d_in = x.shape`.",
        "Tokens of different sequences are mixed, and the output has its first two sizes swapped.",
        ((_SIZES, "num_tokens, b, _ = x.shape"),),
    ),
    at.shape(
        "context_length_for_num_tokens",
        "context_length is taken for num_tokens: read num_tokens off `x.shape` in each forward.",
        "context_length is only the most tokens allowed; a shorter text has to work too.",
        ((_SIZES, "b, num_tokens = x.shape[0], self.context_length"),),
    ),
    at.shape(
        "d_out_per_head",
        "Every head is d_out features wide: d_out counts all heads together, so head_dim is "
        "`d_out // num_heads`, and W_query, W_key, W_value are d_in to d_out.",
        "Multi-head attention shares the same d_out features out; more heads cost no parameters.",
        (
            ("self.head_dim = d_out // num_heads", "self.head_dim = d_out"),
            *_each(_W_QUERY, "self.W_query = nn.Linear(d_in, num_heads * d_out, bias=qkv_bias)"),
            (_OUT_PROJ, "self.out_proj = nn.Linear(num_heads * d_out, d_out)"),
            (_COMBINE, "context = context.contiguous().view(b, num_tokens, -1)"),
        ),
    ),
    at.shape(
        "head_dim_not_divided",
        "head_dim is set to d_out: it is `d_out // num_heads`.",
        "The features of all heads together make d_out; the view cannot find num_heads times more.",
        (("self.head_dim = d_out // num_heads", "self.head_dim = d_out"),),
        also=(3,),
    ),
    at.shape(
        "head_dim_from_d_in",
        "head_dim is worked out from d_in: it is `d_out // num_heads`.",
        "The heads share the projected features; only where d_in = d_out does this go unnoticed.",
        (("self.head_dim = d_out // num_heads", "self.head_dim = d_in // num_heads"),),
        also=(3,),
    ),
    at.shape(
        "input_changed",
        "forward changes its input x in place: leave x as it is and give the result a new name.",
        "The caller's tensor is used again, by a residual connection for one.",
        ((_SIZES, _SIZES + "\n        x -= x.mean(dim=-1, keepdim=True)"),),
        also=(2,),
    ),
    at.project(
        "keys_from_W_query",
        "W_query makes the keys too: use `keys = W_key(x)`.",
        "The scores are then symmetric: what one asks, it is asked back; W_key learns nothing.",
        ((_KEYS, "keys = self.W_query(x)"),),
        also=(5,),
    ),
    at.project(
        "queries_from_W_key",
        "W_key makes the queries too: use `queries = W_query(x)`.",
        "The scores are then symmetric: what one asks, it is asked back; W_query learns nothing.",
        ((_QUERIES, "queries = self.W_key(x)"),),
        also=(5,),
    ),
    at.project(
        "queries_from_W_value",
        "W_value makes the queries: use `queries = W_query(x)`.",
        "What a token offers and what it looks for are two things; W_query learns nothing.",
        ((_QUERIES, "queries = self.W_value(x)"),),
        also=(5,),
    ),
    at.project(
        "keys_from_W_value",
        "W_value makes the keys: use `keys = W_key(x)`.",
        "What a token offers and how it is found are two things; W_key learns nothing.",
        ((_KEYS, "keys = self.W_value(x)"),),
        also=(5,),
    ),
    at.project(
        "queries_and_values_swapped",
        "W_query and W_value are swapped: use `queries = W_query(x)` and `values = W_value(x)`.",
        "A trained checkpoint gives nonsense: its matrices play each other's part.",
        ((_QUERIES, "queries = self.W_value(x)"), (_VALUES, "values = self.W_query(x)")),
    ),
    at.project(
        "keys_and_values_swapped",
        "W_key and W_value are swapped: use `keys = W_key(x)` and `values = W_value(x)`.",
        "A trained checkpoint gives nonsense: its matrices play each other's part.",
        ((_KEYS, "keys = self.W_value(x)"), (_VALUES, "values = self.W_key(x)")),
    ),
    at.project(
        "weights_tied",
        "W_query, W_key and W_value are not three layers of their own: build one nn.Linear for "
        "each in the constructor.",
        "One matrix cannot learn what to look for, how to be found and what to offer.",
        ((_W_KEY, "self.W_key = self.W_query"),),
    ),
    at.project(
        "weights_not_transposed",
        "x is multiplied by `.weight` as it is stored, (d_out, d_in): call the layer, `W_query(x)`,"
        " or multiply by `W_query.weight.T`.",
        "Where d_in = d_out it runs and gives other numbers.",
        _each(_QUERIES, "queries = x @ self.W_query.weight"),
    ),
    at.project(
        "d_in_and_d_out_swapped",
        "W_query, W_key and W_value are built as d_out to d_in: `nn.Linear(d_in, d_out)` takes the "
        "input's width first.",
        "x is d_in wide; only where d_in = d_out does this go unnoticed.",
        _each(_W_QUERY, "self.W_query = nn.Linear(d_out, d_in, bias=qkv_bias)"),
    ),
    at.project(
        "projected_to_d_in",
        "W_query, W_key and W_value are built as d_in to d_in: they lead to d_out, "
        "`nn.Linear(d_in, d_out)`.",
        "The heads need d_out features to share; only where d_in = d_out does this go unnoticed.",
        _each(_W_QUERY, "self.W_query = nn.Linear(d_in, d_in, bias=qkv_bias)"),
    ),
    at.project(
        "bias_missing",
        "qkv_bias=True gives no bias: pass `bias=qkv_bias` to W_query, W_key and W_value.",
        "GPT-2's published weights have these biases and would not load.",
        _each(_W_QUERY, "self.W_query = nn.Linear(d_in, d_out, bias=False)"),
    ),
    at.project(
        "bias_always",
        "qkv_bias=False still gives a bias: pass `bias=qkv_bias` to W_query, W_key and W_value.",
        "The lecture's weights have no bias, so the parameters and the random stream differ.",
        _each(_W_QUERY, "self.W_query = nn.Linear(d_in, d_out, bias=True)"),
    ),
    at.project(
        "bias_by_default",
        "Without qkv_bias the layers get a bias: its default is False, in the constructor.",
        "Whoever leaves the argument out gets other parameters than the lecture's.",
        (("qkv_bias: bool = False", "qkv_bias: bool = True"),),
    ),
    at.project(
        "bias_not_added",
        "No bias is added: call the layer itself, as in `W_key(x)`, which adds it.",
        "A bias that is never added never learns.",
        _each(_QUERIES, "queries = x @ self.W_query.weight.T"),
    ),
    at.project(
        "layers_in_plain_list",
        "Layers in a plain list are not registered: keep them as attributes, or in an "
        "`nn.ModuleList`.",
        "parameters() does not list them: no optimizer trains them, no checkpoint saves them.",
        (
            *_each(_W_QUERY, "self.W_query = [nn.Linear(d_in, d_out, bias=qkv_bias)]"),
            *_each(_QUERIES, "queries = self.W_query[0](x)"),
            ("check_input(x, self.W_query, self.context_length)", "pass"),
        ),
    ),
    at.project(
        "queries_detached",
        "The queries are cut out of the gradient: take away `.detach()`, `.data` or `no_grad`.",
        "W_query keeps its random start for ever.",
        ((_QUERIES, "queries = self.W_query(x).detach()"),),
        also=(3, 4),
    ),
    at.project(
        "keys_detached",
        "The keys are cut out of the gradient: take away `.detach()`, `.data` or `no_grad`.",
        "W_key keeps its random start for ever.",
        ((_KEYS, "keys = self.W_key(x).detach()"),),
        also=(3, 4, 5),
    ),
    at.project(
        "values_detached",
        "The values are cut out of the gradient: take away `.detach()`, `.data` or `no_grad`.",
        "W_value keeps its random start for ever.",
        ((_VALUES, "values = self.W_value(x).detach()"),),
        also=(3, 4, 8),
    ),
    at.project(
        "no_grad",
        "forward runs without gradients: take away `no_grad`, `.detach()` or `.data`.",
        "The right numbers come out, and nothing ever learns.",
        (("    def forward(", "    @torch.no_grad()\n    def forward("),),
        also=(11,),
    ),
    at.view(
        "view_straight",
        "The view goes straight to (b, num_heads, num_tokens, head_dim): view to (b, num_tokens, "
        "num_heads, head_dim) first, then swap dims 1 and 2.",
        "A view keeps the order in memory, so each head gets whole tokens and not its features.",
        (
            (_SPLIT, "split = (b, self.num_heads, num_tokens, self.head_dim)"),
            *_each(_SWAP_QUERIES, "queries = queries.contiguous()"),
        ),
        also=(4,),
    ),
    at.view(
        "view_tokens_last",
        "The view goes to (b, num_heads, head_dim, num_tokens): view to (b, num_tokens, num_heads, "
        "head_dim) first, then swap dims 1 and 2.",
        "A view keeps the order in memory, so tokens and features are mixed up.",
        (
            (_SPLIT, "split = (b, self.num_heads, self.head_dim, num_tokens)"),
            *_each(_SWAP_QUERIES, "queries = queries.transpose(2, 3)"),
        ),
        also=(4,),
    ),
    at.view(
        "head_dim_before_heads",
        "The view puts head_dim before num_heads, so each head gets every num_heads-th feature: "
        "view to (b, num_tokens, num_heads, head_dim).",
        "A head's features are neighbours, its rows of the weight; checkpoints rely on it.",
        (
            (_SPLIT, "split = (b, num_tokens, self.head_dim, self.num_heads)"),
            *_each(_SWAP_QUERIES, "queries = queries.permute(0, 3, 1, 2)"),
        ),
        also=(4,),
    ),
    at.view(
        "heads_and_head_dim_swapped",
        "num_heads and head_dim change places, so there are head_dim heads of num_heads features: "
        "view to (b, num_tokens, num_heads, head_dim).",
        "The shapes come out right, with another number of heads than asked for.",
        ((_SPLIT, "split = (b, num_tokens, self.head_dim, self.num_heads)"),),
        also=(1,),
    ),
    at.view(
        "view_mixes_batch",
        "The view puts num_tokens before b: view to (b, num_tokens, num_heads, head_dim).",
        "Tokens of different sequences meet; a batch of one hides it.",
        (
            (_SPLIT, "split = (num_tokens, b, self.num_heads, self.head_dim)"),
            *_each(_SWAP_QUERIES, "queries = queries.permute(1, 2, 0, 3)"),
        ),
        also=(1, 4),
    ),
    at.transpose(
        "no_transpose",
        "The queries, keys and values are not grouped by head: swap dims 1 and 2 of all three, "
        "`transpose(1, 2)`, before the scores.",
        "Heads then attend to heads inside each token, and tokens never meet.",
        _each(_SWAP_QUERIES, "queries = queries.contiguous()"),
    ),
    at.transpose(
        "queries_not_transposed",
        "The queries are not grouped by head: swap their dims 1 and 2, as for keys and values.",
        "`@` pairs the heads of one with the tokens of the other.",
        ((_SWAP_QUERIES, "queries = queries.contiguous()"),),
    ),
    at.transpose(
        "keys_not_transposed",
        "The keys are not grouped by head: swap their dims 1 and 2, as for queries and values.",
        "`@` pairs the heads of one with the tokens of the other.",
        ((_SWAP_KEYS, "keys = keys.contiguous()"),),
    ),
    at.transpose(
        "values_not_transposed",
        "The values are not grouped by head: swap their dims 1 and 2, as for queries and keys.",
        "`@` pairs the tokens of one with the heads of the other.",
        ((_SWAP_VALUES, "values = values.contiguous()"),),
    ),
    at.transpose(
        "features_before_tokens",
        "The transpose swaps dims 1 and 3: swap num_tokens and num_heads, `transpose(1, 2)`.",
        "Features end up where the heads belong.",
        _each(_SWAP_QUERIES, "queries = queries.transpose(1, 3)"),
    ),
    at.transpose(
        "heads_last",
        "The transpose swaps dims 2 and 3: swap num_tokens and num_heads, `transpose(1, 2)`.",
        "Every token becomes a head of its own, and tokens never meet.",
        _each(_SWAP_QUERIES, "queries = queries.transpose(2, 3)"),
    ),
    at.scores(
        "scores_transposed",
        "Queries and keys have changed places: the scores are `queries @ keys.transpose(2, 3)`, "
        "queries from W_query and keys from W_key.",
        "Row i must say what token i looks for; the softmax runs along rows.",
        ((_SCORES, "scores = keys @ queries.transpose(2, 3)"),),
        also=(2,),
    ),
    at.scores(
        "keys_not_flipped",
        "queries and keys are multiplied as they are: swap the last two dims of keys, "
        "`queries @ keys.transpose(2, 3)`.",
        "A score is a dot product over head_dim; only where num_tokens = head_dim does this run.",
        ((_SCORES, "scores = queries @ keys"),),
    ),
    at.scores(
        "keys_viewed",
        "The last two dims of keys are relabelled by a view or reshape: swap them, "
        "`keys.transpose(2, 3)`.",
        "The shape comes out right, but a view keeps the order and mixes tokens with features.",
        ((_SCORES, "scores = queries @ keys.reshape(b, self.num_heads, self.head_dim, -1)"),),
    ),
    at.scores(
        "products_not_summed",
        "queries and keys are multiplied element by element: a score is a dot product, "
        "`queries @ keys.transpose(2, 3)`.",
        "Each token would meet only itself, and head_dim is never summed.",
        ((_SCORES, "scores = queries * keys"),),
    ),
    at.scores(
        "scores_summed_over_heads",
        "All heads use the same scores, summed over all d_out features: keep one matrix of scores "
        "for each head.",
        "Several heads that look at the same tokens are one head.",
        ((_SCORES, _SCORES + "\n        scores = scores.sum(dim=1, keepdim=True)"),),
        also=(3, 4),
    ),
    at.scores(
        "scores_of_first_head",
        "All heads use the first head's scores: keep one matrix of scores for each head.",
        "Several heads that look at the same tokens are one head.",
        ((_SCORES, "scores = queries[:, :1] @ keys[:, :1].transpose(2, 3)"),),
        also=(6, 7, 8),
    ),
    at.scores(
        "scores_as_cosines",
        "Queries and keys are brought to length 1 before the product: a score is the plain dot "
        "product.",
        "Cosines lie between -1 and 1, so the weights stay nearly even.",
        (
            (
                _SCORES,
                "queries, keys = nn.functional.normalize(queries, dim=-1), "
                "nn.functional.normalize(keys, dim=-1)\n        " + _SCORES,
            ),
        ),
    ),
    at.mask(
        "no_mask",
        "No score is masked: set the scores of future tokens to -inf before the softmax, and use "
        "the result (`masked_fill` returns a new tensor).",
        "Every token sees the words it should learn to predict.",
        ((_MASKED, "masked = scores"),),
    ),
    at.mask(
        "mask_inverted",
        "The mask is the wrong way round, it hides the token itself and its past: hide what lies "
        "above the diagonal (`masked_fill` drops where True, torch's SDPA keeps where True).",
        "The last token has nothing left to look at: its row is NaN.",
        ((_MASKED, "masked = scores.masked_fill_(~future, -torch.inf)"),),
    ),
    at.mask(
        "past_masked",
        "The past is masked and the future left open: hide what lies above the diagonal, "
        "`triu(diagonal=1)`.",
        "Every token sees the words it should learn to predict, and none it has read.",
        ((_FUTURE, "future = torch.ones(num_tokens, num_tokens, device=x.device).tril(-1) > 0"),),
    ),
    at.mask(
        "diagonal_masked",
        "The diagonal is masked, so no token sees itself: begin one above the diagonal, "
        "`triu(diagonal=1)`.",
        "The first token has nothing left to look at: its row is NaN.",
        ((_FUTURE, "future = torch.ones(num_tokens, num_tokens, device=x.device).triu(0) > 0"),),
    ),
    at.mask(
        "mask_off_by_one",
        "Every token sees one token of its future: begin the mask one above the diagonal, "
        "`triu(diagonal=1)`.",
        "The next word is the one to be predicted.",
        ((_FUTURE, "future = torch.ones(num_tokens, num_tokens, device=x.device).triu(2) > 0"),),
    ),
    at.mask(
        "mask_zero",
        "Future scores are set to 0, or to a tiny number: set them to -inf.",
        "exp(0) is 1: the future keeps a share of the weights.",
        ((_MASKED, "masked = scores.masked_fill_(future, 0.0)"),),
    ),
    at.mask(
        "mask_too_weak",
        "Future scores are set to a moderate number: set them to -inf.",
        "Other scores may lie below it, and then the future wins.",
        ((_MASKED, "masked = scores.masked_fill_(future, -10.0)"),),
    ),
    at.mask(
        "mask_plus_inf",
        "Future scores are set to +inf: set them to -inf.",
        "The softmax of +inf is NaN.",
        ((_MASKED, "masked = scores.masked_fill_(future, torch.inf)"),),
    ),
    at.mask(
        "mask_times_inf",
        "The mask is multiplied by -inf and added: use `masked_fill(future, -torch.inf)`.",
        "0 times inf is NaN, so the past is lost too.",
        ((_MASKED, "masked = scores + future * -torch.inf"),),
    ),
    at.mask(
        "mask_added",
        "The mask of ones is added to the scores: fill with -inf where it is True, "
        "`masked_fill(future, -torch.inf)`.",
        "Future tokens get a higher score, not none.",
        ((_MASKED, "masked = scores + future"),),
    ),
    at.mask(
        "mask_after_softmax",
        "The mask comes after the softmax: mask the scores with -inf before it.",
        "The rows no longer sum to 1: the first token keeps a small share of itself.",
        ((_MASKED, "masked = scores"), (_SOFTMAX, _SOFTMAX + ".masked_fill(future, 0.0)")),
        also=(7,),
    ),
    at.mask(
        "mask_after_softmax_renormalised",
        "The mask comes after the softmax and the rows are divided by their sum: mask the scores "
        "with -inf before the softmax.",
        "A high score in the future rounds all others to 0, and 0 / 0 is NaN.",
        (
            (_MASKED, "masked = scores"),
            (
                _SOFTMAX,
                _SOFTMAX + ".masked_fill(future, 0.0)\n"
                "        weights = weights / weights.sum(dim=-1, keepdim=True)",
            ),
        ),
        also=(7,),
    ),
    at.mask(
        "mask_not_cut",
        "The mask is not cut to num_tokens: use `mask[:num_tokens, :num_tokens]`.",
        "It is made for context_length tokens; a shorter text has to work too.",
        ((_FUTURE, "future = self.mask"),),
    ),
    at.mask(
        "mask_on_first_head",
        "Only the first head is masked: a mask (num_tokens, num_tokens) broadcasts to all heads.",
        "The other heads see the words they should learn to predict.",
        (
            (
                _MASKED,
                "masked = scores.clone()\n"
                "        masked[:, 0] = scores[:, 0].masked_fill(future, -torch.inf)",
            ),
        ),
    ),
    at.mask(
        "mask_on_first_item",
        "Only the first sequence of the batch is masked: a mask (num_tokens, num_tokens) "
        "broadcasts to the whole batch.",
        "The other sequences see the words they should learn to predict; b = 1 hides it.",
        (
            (
                _MASKED,
                "masked = scores.clone()\n"
                "        masked[0] = scores[0].masked_fill(future, -torch.inf)",
            ),
        ),
    ),
    at.mask(
        "mask_not_registered",
        "The mask is a plain attribute and does not follow `.to(device)`: keep it with "
        '`self.register_buffer("mask", ...)`.',
        "On a GPU the scores and the mask lie on two devices, and forward fails.",
        (
            (
                'self.register_buffer("mask", future_mask(context_length))',
                "self.mask = future_mask(context_length)",
            ),
        ),
    ),
    at.softmax(
        "no_scale",
        "The scores are not scaled: divide them by the square root of head_dim before the softmax.",
        "Long dot products push the softmax to 0 and 1, where its gradient vanishes.",
        ((_SCALED, "scaled = masked"),),
    ),
    at.softmax(
        "scale_sqrt_d_out",
        "The scores are divided by the square root of d_out; it should be the square root of "
        "head_dim. Look at the line before the softmax.",
        "A score sums head_dim products, not d_out, so the weights come out too even.",
        ((_SCALED, "scaled = masked.div_(self.d_out**0.5)"),),
    ),
    at.softmax(
        "scale_sqrt_d_in",
        "The scores are divided by the square root of d_in; it should be the square root of "
        "head_dim. Look at the line before the softmax.",
        "A score sums head_dim products; what the input was as wide as does not matter.",
        ((_SCALED, "scaled = masked.div_(self.d_in**0.5)"),),
    ),
    at.softmax(
        "scale_head_dim",
        "The scores are divided by head_dim; it should be its square root. Look at the line "
        "before the softmax.",
        "The spread of a sum of head_dim products grows with the square root.",
        ((_SCALED, "scaled = masked.div_(self.head_dim)"),),
    ),
    at.softmax(
        "scale_sqrt_num_heads",
        "The scores are divided by the square root of num_heads; it should be the square root of "
        "head_dim. Look at the line before the softmax.",
        "A score sums head_dim products; how many heads there are does not matter.",
        ((_SCALED, "scaled = masked.div_(self.num_heads**0.5)"),),
    ),
    at.softmax(
        "scale_sqrt_num_tokens",
        "The scores are divided by the square root of num_tokens; it should be the square root of "
        "head_dim. Look at the line before the softmax.",
        "The same tokens would get other weights whenever the text grows.",
        ((_SCALED, "scaled = masked.div_(num_tokens**0.5)"),),
    ),
    at.softmax(
        "scale_multiplied",
        "The scores are multiplied by the square root of head_dim; divide by it. Look at the line "
        "before the softmax.",
        "The weights are pushed to 0 and 1, where the gradient vanishes.",
        ((_SCALED, "scaled = masked.mul_(self.head_dim**0.5)"),),
    ),
    at.softmax(
        "scaled_after_softmax",
        "The weights are divided by the square root of head_dim after the softmax: divide the "
        "scores before it.",
        "The rows of the weights no longer sum to 1.",
        ((_SCALED, "scaled = masked"), (_SOFTMAX, _SOFTMAX + " / self.head_dim**0.5")),
    ),
    at.softmax(
        "no_softmax",
        "The scores are used as weights without a softmax: apply `torch.softmax(scaled, dim=-1)`.",
        "Weights are shares: none below 0, and 1 in all.",
        ((_MASKED, "masked = scores.masked_fill_(future, 0.0)"), (_SOFTMAX, "weights = scaled")),
    ),
    at.softmax(
        "sigmoid_for_softmax",
        "Each score goes through a sigmoid: apply `torch.softmax(scaled, dim=-1)`.",
        "A row of weights then sums to anything, so the context grows with the number of tokens.",
        ((_SOFTMAX, "weights = torch.sigmoid(scaled)"),),
    ),
    at.softmax(
        "softmax_twice",
        "The softmax is applied twice: once is right. Look between the mask and the dropout.",
        "The second one levels the weights and gives the future a share again.",
        ((_SOFTMAX, _SOFTMAX + ".softmax(dim=-1)"),),
    ),
    at.softmax(
        "softmax_over_queries",
        "The softmax runs over the queries: run it over the keys, `dim=-1`.",
        "Each token's own weights must sum to 1; here the columns do.",
        ((_SOFTMAX, "weights = torch.softmax(scaled, dim=-2)"),),
    ),
    at.softmax(
        "softmax_over_heads",
        "The softmax runs over the heads (`dim=1`): run it over the keys, `dim=-1`.",
        "The heads compete, and the masked scores are NaN.",
        ((_SOFTMAX, "weights = torch.softmax(scaled, dim=1)"),),
    ),
    at.softmax(
        "softmax_over_batch",
        "The softmax runs over the batch (`dim=0`): run it over the keys, `dim=-1`.",
        "Sequences that have nothing to do with each other compete; masked scores are NaN.",
        ((_SOFTMAX, "weights = torch.softmax(scaled, dim=0)"),),
    ),
    at.softmax(
        "softmax_over_all_pairs",
        "The softmax runs over queries and keys together: run it over the keys alone, `dim=-1`.",
        "Each token's own weights must sum to 1; here all tokens share one sum.",
        ((_SOFTMAX, "weights = torch.softmax(scaled.flatten(2), dim=-1).view_as(scaled)"),),
    ),
    at.softmax(
        "weights_detached",
        "The weights are cut out of the gradient: take away `.detach()`, `.data` or `no_grad`.",
        "W_query and W_key keep their random start for ever.",
        ((_SOFTMAX, _SOFTMAX + ".detach()"),),
        also=(2, 5, 6, 8),
    ),
    at.softmax(
        "dropout_missing",
        "No weight is dropped in training: apply `dropout` to the weights after the softmax.",
        "The dropout asked for has no effect, and the model overfits sooner.",
        ((_DROPOUT, "pass"),),
    ),
    at.softmax(
        "dropout_on_scores",
        "Dropout hits the scores before the softmax: apply it to the weights after the softmax.",
        "A score of 0 is no weight of 0: exp(0) is 1, so nothing is dropped.",
        ((_SCALED, "scaled = self.dropout(masked.div_(self.head_dim**0.5))"), (_DROPOUT, "pass")),
        also=(5, 6),
    ),
    at.softmax(
        "dropout_on_context",
        "Dropout hits the context: apply it to the weights, between the softmax and the context.",
        "It should hide whole tokens from a head, not single features.",
        ((_DROPOUT, "pass"), (_CONTEXT, "context = self.dropout(weights @ values)")),
        also=(8, 9, 10),
    ),
    at.softmax(
        "dropout_on_output",
        "Dropout hits the output: apply it to the weights, between the softmax and the context.",
        "It should hide whole tokens from a head, not single features.",
        ((_DROPOUT, "pass"), (_OUT, "out = self.dropout(self.out_proj(context))")),
        also=(11,),
    ),
    at.softmax(
        "dropout_in_eval",
        "Weights are dropped in eval mode too: use `nn.Dropout`, or pass `training=self.training`.",
        "The same text gives other results each time it is read.",
        ((_DROPOUT, "weights = nn.functional.dropout(weights, self.dropout.p)"),),
    ),
    at.softmax(
        "dropout_inverted",
        "The share dropout is kept and the rest dropped: `nn.Dropout(dropout)` takes the share "
        "that is set to zero.",
        "At 0.1 nine weights in ten are lost.",
        (("nn.Dropout(dropout)", "nn.Dropout(1 - dropout)"),),
    ),
    at.softmax(
        "dropout_not_scaled_up",
        "The weights that dropout keeps are not divided by 1 - dropout: `nn.Dropout` does it.",
        "In training the context is smaller than in eval mode.",
        ((_DROPOUT, _DROPOUT + " * (1 - self.dropout.p if self.training else 1)"),),
    ),
    at.context(
        "keys_for_values",
        "The weights are multiplied with the keys: the context is `weights @ values`, values from "
        "W_value.",
        "Keys say how a token is found, values what it offers; W_value learns nothing.",
        ((_CONTEXT, "context = weights @ keys"),),
        also=(2,),
    ),
    at.context(
        "queries_for_values",
        "The weights are multiplied with the queries: the context is `weights @ values`, values "
        "from W_value.",
        "Queries say what a token looks for, values what it offers; W_value learns nothing.",
        ((_CONTEXT, "context = weights @ queries"),),
        also=(2,),
    ),
    at.context(
        "weights_transposed",
        "The weights are transposed: the context is `weights @ values`.",
        "Each token then gathers from its future, with weights that belong to other tokens.",
        ((_CONTEXT, "context = weights.transpose(2, 3) @ values"),),
    ),
    at.context(
        "values_added",
        "The token's own values are added to the context: the context is `weights @ values`.",
        "A residual connection belongs around the whole attention, not inside it.",
        ((_CONTEXT, "context = weights @ values + values"),),
    ),
    at.context(
        "context_detached",
        "The context is cut out of the gradient: take away `.detach()`, `.data` or `no_grad`.",
        "Only out_proj learns.",
        ((_CONTEXT, "context = (weights @ values).detach()"),),
        also=(9, 10),
    ),
    at.reformat(
        "no_transpose_back",
        "Tokens and heads are not swapped back: `context.transpose(1, 2)` comes before the heads "
        "are combined.",
        "The view then cuts heads across tokens; one head hides it.",
        ((_REFORMAT, "context = context.contiguous()"),),
        also=(10,),
    ),
    at.reformat(
        "features_swapped_back",
        "Features and heads are swapped back: swap tokens and heads, `context.transpose(1, 2)`.",
        "The view then reads features where it expects tokens.",
        ((_REFORMAT, "context = context.transpose(1, 3)"),),
        also=(10,),
    ),
    at.reformat(
        "last_dims_swapped_back",
        "The last two dims are swapped: swap tokens and heads, `context.transpose(1, 2)`.",
        "The view then reads features where it expects tokens.",
        ((_REFORMAT, "context = context.transpose(2, 3)"),),
        also=(10,),
    ),
    at.combine(
        "not_contiguous",
        "view is called on a transposed tensor: make it contiguous first, "
        "`context.contiguous().view(...)`.",
        "A transpose leaves the memory as it was, and a view cannot join what is not side by side.",
        ((_COMBINE, "context = context.view(b, num_tokens, self.d_out)"),),
    ),
    at.combine(
        "heads_interleaved",
        "The features of the heads are interleaved: lay whole heads side by side, "
        "(b, num_tokens, num_heads, head_dim) to (b, num_tokens, d_out).",
        "out_proj and every checkpoint expect head 0's features first, then head 1's.",
        ((_COMBINE, "context = context.transpose(2, 3).reshape(b, num_tokens, self.d_out)"),),
        also=(9,),
    ),
    at.combine(
        "heads_averaged",
        "The heads are averaged: lay them side by side, `view(b, num_tokens, d_out)`.",
        "What tells the heads apart is lost.",
        (
            (_OUT_PROJ, "self.out_proj = nn.Linear(self.head_dim, d_out)"),
            (_COMBINE, "context = context.mean(dim=2)"),
        ),
    ),
    at.combine(
        "heads_summed",
        "The heads are summed: lay them side by side, `view(b, num_tokens, d_out)`.",
        "What tells the heads apart is lost.",
        (
            (_OUT_PROJ, "self.out_proj = nn.Linear(self.head_dim, d_out)"),
            (_COMBINE, "context = context.sum(dim=2)"),
        ),
    ),
    at.out_proj(
        "out_proj_missing",
        "out_proj is never applied: return `out_proj(context)`.",
        "Without it the heads never mix.",
        ((_OUT, "out = context"),),
    ),
    at.out_proj(
        "out_proj_twice",
        "out_proj is applied twice: once is right.",
        "A trained checkpoint gives other numbers.",
        ((_OUT, "out = self.out_proj(self.out_proj(context))"),),
    ),
    at.out_proj(
        "out_proj_transposed",
        "out_proj's weight is used transposed: call the layer, `out_proj(context)`.",
        "The weight is square, so the shape does not tell.",
        ((_OUT, "out = context @ self.out_proj.weight + self.out_proj.bias"),),
    ),
    at.out_proj(
        "out_proj_without_bias",
        "out_proj has no bias: build it as `nn.Linear(d_out, d_out)`.",
        "The lecture's out_proj has one, whatever qkv_bias says.",
        ((_OUT_PROJ, "self.out_proj = nn.Linear(d_out, d_out, bias=False)"),),
    ),
    at.out_proj(
        "out_proj_bias_from_qkv",
        "out_proj's bias depends on qkv_bias: build it as `nn.Linear(d_out, d_out)`.",
        "The lecture's out_proj has a bias, whatever qkv_bias says.",
        ((_OUT_PROJ, "self.out_proj = nn.Linear(d_out, d_out, bias=qkv_bias)"),),
    ),
    at.out_proj(
        "out_proj_bias_not_added",
        "out_proj's bias is never added: call the layer, `out_proj(context)`.",
        "The bias is stored and never learns.",
        ((_OUT, "out = context @ self.out_proj.weight.T"),),
    ),
    at.out_proj(
        "out_proj_to_d_in",
        "out_proj leads back to d_in: build it as `nn.Linear(d_out, d_out)`.",
        "The output is d_out wide; only where d_in = d_out does this go unnoticed.",
        ((_OUT_PROJ, "self.out_proj = nn.Linear(d_out, d_in)"),),
    ),
    at.out_proj(
        "input_added",
        "The input x is added to the output: return `out_proj(context)` alone.",
        "The residual connection belongs to the block around attention, where both widths agree.",
        ((_OUT, "out = self.out_proj(context) + x"),),
    ),
    at.out_proj(
        "context_added",
        "The context is added to the output: return `out_proj(context)` alone.",
        "A trained checkpoint gives other numbers.",
        ((_OUT, "out = self.out_proj(context) + context"),),
    ),
    at.out_proj(
        "tuple_returned",
        "forward returns a tuple: return the output tensor alone.",
        "The next layer expects one tensor (b, num_tokens, d_out).",
        (("return out", "return out, weights"),),
    ),
    at.out_proj(
        "nothing_returned",
        "forward returns nothing: end it with `return out`.",
        "A Python function without return gives None.",
        (("        return out", "        pass"),),
    ),
)

MISTAKES: dict[str, Mistake] = {each.identifier: each for each in _LIST}

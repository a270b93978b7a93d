"""check_attention on classes from elsewhere: read, told, not read."""

import pytest
import torch
from sampled import sampled
from torch import nn

from eleven_steps.checks import check_attention, wrong_class

pytestmark = pytest.mark.usefixtures("one_thread")


def attend(q, k, v, hidden, drop=lambda weights: weights):
    """(b, num_heads, num_tokens, head_dim) each; hidden True where a key must not be seen."""
    scores = q @ k.mT / q.shape[-1] ** 0.5
    return drop(scores.masked_fill(hidden, -torch.inf).softmax(-1)) @ v


def future(x):
    return torch.ones(x.shape[-2], x.shape[-2], dtype=torch.bool, device=x.device).triu(1)


class Fused(nn.Module):
    """One nn.Linear for all three, from a config."""

    def __init__(self, config):
        super().__init__()
        self.heads = config.n_head
        self.c_attn = nn.Linear(config.n_embd, 3 * config.n_embd, bias=config.bias)
        self.c_proj = nn.Linear(config.n_embd, config.n_embd, bias=config.bias)
        self.drop = nn.Dropout(config.attn_pdrop)

    def cut(self, qkv):
        return (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in qkv.chunk(3, -1))

    def forward(self, x):
        q, k, v = self.cut(self.c_attn(x))
        out = attend(q, k, v, future(x), self.drop)
        return self.c_proj(out.transpose(1, 2).flatten(2))


class HeadsFirst(Fused):
    def cut(self, qkv):
        return qkv.unflatten(-1, (self.heads, 3, -1)).permute(3, 0, 2, 1, 4)


class ThreeLast(Fused):
    def cut(self, qkv):
        return qkv.unflatten(-1, (self.heads, -1, 3)).permute(4, 0, 2, 1, 3)


class Twice(Fused):
    """The weights' dropout acts on the output as well, as in the block around attention."""

    def forward(self, x):
        return self.drop(super().forward(x))


class InADictionary(Fused):
    def forward(self, x):
        return {"weights": torch.zeros(len(x), x.shape[1], x.shape[1]), "out": super().forward(x)}


class Conv1D(nn.Module):
    def __init__(self, outputs, inputs):
        super().__init__()
        self.weight, self.bias = (
            nn.Parameter(torch.zeros(inputs, outputs)),
            nn.Parameter(torch.zeros(outputs)),
        )

    def forward(self, x):
        return x @ self.weight + self.bias


class Transposed(Fused):
    def __init__(self, config):
        super().__init__(config)
        self.c_attn, self.c_proj = (
            Conv1D(3 * config.n_embd, config.n_embd),
            Conv1D(config.n_embd, config.n_embd),
        )


class Head(nn.Module):
    def __init__(self, dim, head_dim):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(dim, head_dim, bias=False) for _ in range(3))

    def forward(self, x):
        return attend(self.query(x), self.key(x), self.value(x), future(x))


class ByHead(nn.Module):
    """A weight for each head, no dropout and no biases."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(
            Head(embed_dim, embed_dim // num_heads) for _ in range(num_heads)
        )
        self.proj = nn.Linear(embed_dim, embed_dim)

    def forward(self, x):
        return self.proj(torch.cat([head(x) for head in self.heads], dim=-1))


class Tensors(nn.Module):
    """Raw parameters, heads in front, as einsum likes them; x three times; weights returned too."""

    least = -torch.inf

    def __init__(self, d_model, n_heads, d_head, dropout=0.0):
        super().__init__()
        shape = n_heads, d_model, d_head
        self.W_Q, self.W_K, self.W_V = (nn.Parameter(torch.zeros(shape)) for _ in range(3))
        self.W_O = nn.Parameter(torch.zeros(n_heads, d_head, d_model))
        self.b_O = nn.Parameter(torch.zeros(d_model))
        self.dropout = nn.Dropout(dropout)

    def forward(self, query, key, value, mask=None):
        q, k, v = (
            torch.einsum("bnm,hmd->bhnd", *each)
            for each in ((query, self.W_Q), (key, self.W_K), (value, self.W_V))
        )
        hidden = torch.zeros_like(future(q)) if mask is None else mask == 0
        weights = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(hidden, self.least).softmax(-1)
        out = torch.einsum("bhnd,hdm->bnm", self.dropout(weights) @ v, self.W_O) + self.b_O
        return out, weights


class Even(Fused):
    """Only an even head_dim will do."""

    def __init__(self, config):
        if config.n_embd // config.n_head % 2:
            raise ValueError("head_dim is odd")
        super().__init__(config)


def first(dim, heads, dropout, bias):
    return nn.MultiheadAttention(dim, heads, dropout, bias)


@sampled(
    ("build", "read"),
    [
        (Fused, "qkv = c_attn (3 h d i); out_proj = c_proj; forward(x)"),
        (HeadsFirst, "(h 3 d i)"),
        (ThreeLast, "(h d 3 i)"),
        (Twice, "Left aside, since it acts on the output: drop."),
        (InADictionary, "forward(x)"),
        (Transposed, "qkv = c_attn (i 3 h d); out_proj = c_proj (h d o)"),
        (ByHead, "W_query = heads.*.query"),
        (Tensors, "mask (num_tokens, num_tokens), True where a key is seen"),
        (
            first,
            "qkv = in_proj (3 h d i); out_proj = out_proj; forward(query=x, key=x, value=x",
        ),
        (Even, "d_out = 15, num_heads = 3 (ValueError: head_dim is odd)"),
    ],
)
def test_the_usual_styles_are_read_without_being_told(build, read):
    verdict = check_attention(build)
    assert verdict.passed and read in verdict.note, verdict.note


@pytest.mark.nightly
def test_what_a_class_cannot_have_is_named():
    note = check_attention(ByHead).note
    for lost in "dropout", "W_query.bias", "W_value.bias", "d_in other than d_out":
        assert lost in note
    assert "dropout" not in check_attention(Fused).note


class Unscaled(HeadsFirst):
    def forward(self, x):
        q, k, v = self.cut(self.c_attn(x))
        out = attend(q * q.shape[-1] ** 0.5, k, v, future(x), self.drop)
        return self.c_proj(out.transpose(1, 2).flatten(2))


class OneLayout(Fused):
    """Heads lie otherwise in the keys than in the queries: no layout makes that right."""

    def cut(self, qkv):
        q, k, v = super().cut(qkv)
        return q, k.flip(1), v


class ThreeBeforeTokens(Fused):
    def cut(self, qkv):
        shape = len(qkv), 3, -1, self.heads, qkv.shape[-1] // 3 // self.heads
        return qkv.reshape(shape).transpose(2, 3).unbind(1)


class LastAlone(Twice):
    """Dropout acts on the output, and nowhere else."""

    def forward(self, x):
        q, k, v = self.cut(self.c_attn(x))
        out = attend(q, k, v, future(x))
        return self.drop(self.c_proj(out.transpose(1, 2).flatten(2)))


class TransposedUnscaled(Transposed):
    forward = Unscaled.forward


class Tiny(Tensors):
    """With a mask handed over it is wrong as well."""

    least = 1e-9


class Open(Tensors):
    def forward(self, query, key, value, mask=None):
        return super().forward(query, key, value)


@sampled(
    ("build", "step", "mistake"),
    [
        (Unscaled, 7, "no_scale"),
        (TransposedUnscaled, 7, "no_scale"),
        (LastAlone, 7, "dropout_missing"),
        (OneLayout, 5, None),
        (ThreeBeforeTokens, 3, None),
        (Open, 6, "no_mask"),
        (Tiny, 6, "no_mask"),  # without a mask handed over it hides nothing, and is read so first
    ],
)
def test_no_reading_makes_a_wrong_class_right(build, step, mistake):
    verdict = check_attention(build)
    assert (verdict.step, verdict.mistake) == (step, mistake), verdict


@pytest.mark.nightly
def test_what_hides_nothing_is_right_where_that_is_said():
    verdict = check_attention(Open)
    assert not verdict and "`causal=False`" in verdict.message and "causal" not in verdict.note
    assert check_attention(Open, causal=False).passed
    assert check_attention(Fused, causal=False).mistake == "full_still_causal"


class Listed(nn.Module):
    """The lecture's constructor, and the three layers in a list."""

    name = "qkv"

    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.heads, self.dropout = num_heads, nn.Dropout(dropout)
        three = [nn.Linear(d_in, d_out, bias=qkv_bias) for _ in range(3)]
        self.add_module(self.name, nn.ModuleList(three))
        self.out_proj = nn.Linear(d_out, d_out)

    def cut(self, x):
        three = getattr(self, self.name)
        return (each(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in three)

    def forward(self, x):
        out = self.attend(*self.cut(x), future(x))
        return self.out_proj(out.transpose(1, 2).flatten(2))

    def attend(self, q, k, v, hidden):
        return attend(q, k, v, hidden, self.dropout)


class MaskDropped(Listed):
    def attend(self, q, k, v, hidden):
        scores = q @ k.mT / q.shape[-1] ** 0.5
        scores.masked_fill(hidden, -torch.inf)
        return self.dropout(scores.softmax(-1)) @ v


class TokensFirst(Listed):
    """It raises at the mask, since tokens stand where heads belong."""

    def cut(self, x):
        return (each.transpose(1, 2) for each in super().cut(x))


class Unlisted(Listed):
    name = "many"


def test_a_list_of_three_layers_is_read_where_its_name_says_which():
    verdict = check_attention(Listed)
    assert verdict.passed and "W_key = qkv.1" in verdict.note, verdict
    assert "Name them in `layers`." in check_attention(Unlisted).message


@sampled(
    ("build", "step", "says"),
    [(MaskDropped, 6, "`masked_fill` is dropped"), (TokensFirst, 4, "The error itself comes in")],
)
def test_what_is_read_is_told_where_it_goes_wrong(build, step, says):
    verdict = check_attention(build)
    assert verdict.step == step and says in verdict.message, verdict


class Odd(nn.Module):
    """Names, an order and a call that nobody can guess."""

    def __init__(self, size, count):
        super().__init__()
        self.count = count
        self.alpha, self.beta = nn.Linear(size, 3 * size), nn.Linear(size, size)

    def forward(self, text, extra):
        qkv = self.alpha(text).unflatten(-1, (-1, 3, self.count)).permute(3, 1, 4, 0, 2)
        out = attend(*qkv, extra).permute(2, 0, 1, 3).flatten(2)
        return {"out": self.beta(out)}


def test_what_nobody_can_guess_is_told():
    told = {"qkv": "alpha: d 3 h i", "out_proj": "beta"}
    assert check_attention(Odd).kind == "unread"
    verdict = check_attention(
        lambda d_out, num_heads: Odd(d_out, num_heads),
        layers=told,
        call=lambda odd, x, hidden: odd(x.transpose(0, 1), hidden)["out"].transpose(0, 1),
    )
    assert verdict.passed and "alpha (d 3 h i)" in verdict.note, verdict


def test_what_cannot_be_read_says_why():
    for build, told, why in [
        (Odd, None, "'size' and 'count' are none of our sizes"),
        (Odd, None, "The parameters found are: alpha.weight, alpha.bias, beta"),
        (Odd, None, "say how in `call`"),
        (
            lambda d_out: nn.LayerNorm(d_out),
            None,
            "W_query, W_key, W_value and out_proj is not clear",
        ),
        (lambda d_out: None, None, "NoneType"),
        (Fused, {"qkv": "attn", "out_proj": "c_proj"}, "no layer 'attn'"),
    ]:
        verdict = check_attention(build, layers=told)
        assert verdict.kind == "unread" and why in verdict.message, verdict
    with pytest.raises(ValueError, match="'query'"):
        check_attention(Fused, layers={"query": "c_attn"})


@pytest.mark.nightly
def test_a_class_without_out_proj_is_asked_up_to_step_10():
    class Inner(Fused):
        def __init__(self, config):
            super().__init__(config)
            self.c_proj = nn.Identity()

    verdict = check_attention(Inner)
    assert verdict.passed and "that of step 10" in verdict.note
    assert check_attention(Inner, layers={"qkv": "c_attn", "out_proj": None}).passed


def test_a_failing_assert_shows_the_sentence():
    with pytest.raises(AssertionError, match=r"Step 7 \(softmax\): The scores are not scaled"):
        assert check_attention(wrong_class("no_scale"))


# What stands around attention elsewhere, and a class may do without


class Image(Fused):
    """x is an image, (b, height, width, d_in)."""

    def forward(self, x):
        b, height, width, _ = x.shape
        q, k, v = self.cut(self.c_attn(x.flatten(1, 2)))
        nothing = torch.zeros(height * width, height * width, dtype=torch.bool)
        out = attend(q, k, v, nothing, self.drop)
        return self.c_proj(out.transpose(1, 2).flatten(2)).view(b, height, width, -1)


class NeedsAnother(Fused):
    """Another sequence has a default, with which it does not run."""

    def forward(self, x, encoder_states=None):
        (q, _, _), (_, k, v) = (self.cut(self.c_attn(each)) for each in (x, encoder_states))
        out = attend(q, k, v, future(x), self.drop)
        return self.c_proj(out.transpose(1, 2).flatten(2))


class Summed(Fused):
    """What it is added to comes with x, and so does something that may be None."""

    def forward(self, x, residual: torch.Tensor, gates: torch.Tensor | None):
        return super().forward(x) + residual + (0 if gates is None else gates.sum())


class Relative(Fused):
    """Relative positions, unless its config says otherwise."""

    def __init__(self, config):
        super().__init__(config)
        if config.use_rel_pos:
            raise NotImplementedError


class AllHeadsNormed(Fused):
    """A norm of all queries' features, across heads."""

    def __init__(self, config):
        super().__init__(config)
        self.q_norm = nn.LayerNorm(config.n_embd)

    def cut(self, qkv):
        q, k, v = qkv.chunk(3, -1)
        return super().cut(torch.cat([self.q_norm(q), k, v], -1))


class Refused(Fused):
    """Its config refuses widths that differ, one number for several stages, a rate for a flag."""

    class Config:
        def __init__(
            self,
            n_embd=768,
            n_head=12,
            tower=768,
            num_heads=(1, 12),
            token_dropout=False,
            bias=True,
        ):
            if tower != n_embd or type(num_heads) is int or type(token_dropout) is float:
                raise ValueError("tower is n_embd, num_heads are several, token_dropout is a flag")
            self.n_embd, self.n_head, self.bias, self.attn_pdrop = n_embd, n_head, bias, 0.0

    def __init__(self, config: Config):
        super().__init__(config)


class RefusedTogether(Fused):
    """Its config can be made in no size but its own."""

    class Config:
        def __init__(self, n_embd=768, n_head=12, bias=True):
            if n_embd != 768:
                raise ValueError("n_embd is 768")
            self.n_embd, self.n_head, self.bias, self.attn_pdrop = n_embd, n_head, bias, 0.0

    def __init__(self, config: Config):
        super().__init__(config)


class Packed(Fused):
    """All texts come one after the other, (1, b * num_tokens, d_in), and where each begins."""

    def forward(self, x, cu_seqlens, alibi: torch.Tensor | None):
        if alibi is not None or len(x) != 1:
            raise NotImplementedError
        texts = x.split(cu_seqlens.diff().tolist(), 1)
        return torch.cat([super(Packed, self).forward(each) for each in texts], 1)


class ScaledLinear(nn.Linear):
    def forward(self, x):
        return super().forward(x), 1.0


class ScaledNorm(nn.LayerNorm):
    def forward(self, x):
        return super().forward(x), 1.0


class LayerNormAfter(Fused):
    """A sum with x and a norm around attention, and each layer returns a number besides."""

    def __init__(self, config):
        super().__init__(config)
        self.c_proj = ScaledLinear(config.n_embd, config.n_embd)
        self.norm, self.gain = ScaledNorm(config.n_embd), nn.Parameter(torch.ones(1))

    def forward(self, x):
        q, k, v = self.cut(self.c_attn(x))
        out = attend(q * self.gain, k, v, future(x), self.drop)
        return self.norm(self.c_proj(out.transpose(1, 2).flatten(2))[0] + x), 1.0


@sampled(
    ("build", "causal", "read"),
    [
        (RefusedTogether, True, "qkv = c_attn"),
        (Packed, True, "cu_seqlens, alibi, x (1, b * num_tokens, d_in)"),
        (LayerNormAfter, True, "It has gain besides"),
        (Image, False, "with x (b, 1, num_tokens, d_in)"),
        (NeedsAnother, True, "forward(x=x, encoder_states=x)"),
        (Summed, True, "with residual, gates"),
        (Relative, True, "Built with relative positions False."),
        (Refused, True, "qkv = c_attn"),
    ],
)
def test_what_a_class_may_do_without_is_left_out_and_told(build, causal, read):
    verdict = check_attention(build, causal=causal)
    assert verdict.passed and read in verdict.note, verdict


class Joined(Fused):
    """Keys and values of x and of another sequence, one after the other; dropout is forgotten."""

    def forward(self, x, states):
        q, k, v = self.cut(self.c_attn(x))
        _, more, values = self.cut(self.c_attn(states))
        out = attend(q, torch.cat([k, more], 2), torch.cat([v, values], 2), q.new_zeros(()).bool())
        return self.c_proj(out.transpose(1, 2).flatten(2))


class NormedInPlace(Fused):
    """Queries and keys go through a norm that learns nothing."""

    def __init__(self, config):
        super().__init__(config)
        self.norm = nn.RMSNorm(config.n_embd // config.n_head, elementwise_affine=False)

    def cut(self, qkv):
        q, k, v = super().cut(qkv)
        return self.norm(q), self.norm(k), v


@sampled(("build", "named"), [(Joined, "from x and from states"), (NormedInPlace, "it has norm,")])
def test_what_the_lecture_does_not_have_is_named_and_not_called_wrong(build, named):
    verdict = check_attention(build)
    assert verdict.kind == "unread" and named in verdict.message, verdict


class HiddenTooLate(Fused):
    """What is hidden is set to -inf behind the softmax."""

    def forward(self, x, mask):
        q, k, v = self.cut(self.c_attn(x))
        out = attend(
            q, k, v, q.new_zeros(()).bool(), lambda w: self.drop(w.masked_fill(mask, -torch.inf))
        )
        return self.c_proj(out.transpose(1, 2).flatten(2))


@pytest.mark.nightly
def test_a_call_that_hides_is_not_told_that_nothing_is_hidden():
    verdict = check_attention(HiddenTooLate, call=lambda module, x, hidden: module(x, hidden))
    assert verdict.step == 6 and "hides nothing" in verdict.message, verdict


class OneKey(Fused):
    """One head of keys for all queries, fused; biases of queries and values stand alone."""

    def __init__(self, config):
        super().__init__(config)
        dim = config.n_embd // config.n_head
        self.c_attn = nn.Linear(config.n_embd, config.n_embd + 2 * dim, bias=False)
        self.q_bias = nn.Parameter(torch.zeros(1, 1, config.n_embd))
        self.v_bias = nn.Parameter(torch.zeros(1, 1, dim))

    def cut(self, qkv):
        dim = self.v_bias.shape[-1]
        q, k, v = qkv.split([qkv.shape[-1] - 2 * dim, dim, dim], -1)
        three = q + self.q_bias, k, v + self.v_bias
        return (each.unflatten(-1, (-1, dim)).transpose(1, 2) for each in three)


@pytest.mark.nightly
def test_one_head_of_keys_in_a_fused_weight_is_offered_and_read():
    assert '`variant="gqa:1"`' in check_attention(OneKey).message
    verdict = check_attention(OneKey, "gqa:1")
    assert verdict.passed and "W_value = v_bias" in verdict.note, verdict


class NormedTogether(Fused):
    """All heads of queries are normed as one, and so are those of keys, as in OLMo 2."""

    def __init__(self, config):
        super().__init__(config)
        self.q_norm, self.k_norm = (nn.RMSNorm(config.n_embd, eps=1e-6) for _ in range(2))

    def cut(self, qkv):
        q, k, v = qkv.chunk(3, -1)
        return super().cut(torch.cat([self.q_norm(q), self.k_norm(k), v], -1))


class Rows(Fused):
    """Positions in rows of two: every second row turns a head by half a circle."""

    def rotated(self, t):
        return t * (1 - 2 * (torch.arange(t.shape[2]) // 2 % 2)[:, None])

    def cut(self, qkv):
        q, k, v = super().cut(qkv)
        return self.rotated(q), self.rotated(k), v


class WithoutKernel(Fused):
    """What comes out is 0 where its kernel cannot be loaded."""

    def forward(self, x):
        return 0 * super().forward(x)


@pytest.mark.parametrize(
    ("build", "why"), [(Rows, "where tokens stand"), (WithoutKernel, "the same whatever x is")]
)
def test_what_is_no_attention_of_ours_is_not_judged(build, why):
    verdict = check_attention(build)
    assert verdict.kind == "unread" and why in verdict.message, verdict


@pytest.mark.nightly
def test_norms_over_all_heads_are_offered_and_read():
    assert (
        'over all heads: ask again with `variant="norm:1"`'
        in check_attention(NormedTogether).message
    )
    verdict = check_attention(NormedTogether, "norm:1")
    assert verdict.passed, verdict


@pytest.mark.nightly
def test_what_takes_part_besides_is_named_and_the_rest_is_judged():
    verdict = check_attention(AllHeadsNormed)
    assert verdict.kind == "unread" and "q_norm.weight" in verdict.message
    assert "it gives what is right:" in verdict.message

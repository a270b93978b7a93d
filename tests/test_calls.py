"""How a class is called is found out: alone, with a mask, tokens first, in pieces; all is said."""

import json
import subprocess
import sys
from dataclasses import dataclass

import pytest
import torch
from attention_variants import Base
from sampled import sampled
from test_shell import ROOT
from torch import nn

from eleven_steps.checks import __main__ as shell
from eleven_steps.checks import check_attention

pytestmark = pytest.mark.usefixtures("one_thread")


class Attention(nn.Module):
    """A mask of its own, and one that may be handed over besides."""

    first, root, least = 1, 0.5, -torch.inf  # where the mask begins, what scores are divided by

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, attention_mask=None):
        return self.attend(x, attention_mask)[0]

    def attend(self, x, mask=None, past=None, earlier=0):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.mT / q.shape[-1] ** self.root
        new = k.shape[2] - q.shape[2] - earlier
        future = torch.ones_like(scores, dtype=torch.bool).triu(self.first + new)
        scores = self.given(scores.masked_fill(future, self.least), mask)
        return self.proj((self.weigh(scores) @ v).transpose(1, 2).flatten(2)), (k, v)

    def given(self, scores, mask):
        return scores if mask is None else scores + mask

    def weigh(self, scores):
        return scores.softmax(-1)


class OffByOne(Attention):
    first = 2


class Unscaled(Attention):
    root = 0


class MaskInstead(Attention):
    """The mask that is handed over takes the place of its own, and hides too little."""

    def given(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask == 0, 1e-9)


class Ignores(Attention):
    def given(self, scores, mask):
        return scores


class Open(Attention):
    """No mask of its own."""

    first = 10**6


class OpenUnscaled(Open):
    def given(self, scores, mask):
        return scores * scores.shape[1] if mask is None else scores + mask


class InPlaceOfIts(Attention):
    """The mask that is handed over takes the place of its own, and is as right."""

    def forward(self, x, attn_mask=None):
        self.first = 1 if attn_mask is None else 10**6
        return self.attend(x, attn_mask)[0]


class Alone(Attention):
    """A mask of a kind that is not known: of lengths, (b,)."""

    def given(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.view(len(scores)), 0)


class Kept(Attention):
    """Keys and values of the text so far may be handed over."""

    def forward(self, x, kv_cache=None, use_cache=False):
        out, kept = self.attend(x, past=kv_cache)
        return (out, kept) if use_cache else out


class KeptAnyway(Attention):
    """The same under other names, side by side in one tensor."""

    def forward(self, x, layer_past=None):
        out, kept = self.attend(x, past=layer_past)
        return out, torch.stack(kept)


class KeptLate(Kept):
    """With keys kept, the mask begins one place too early."""

    def forward(self, x, kv_cache=None, use_cache=False):
        out, kept = self.attend(x, past=kv_cache, earlier=int(kv_cache is not None))
        return out, kept


class NeverKept(Attention):
    def forward(self, x, past=None, context=None):
        return self.attend(x)[0]


class TokensFirst(nn.Module):
    """As nn.MultiheadAttention without batch_first."""

    def __init__(self, dim, heads):
        super().__init__()
        self.inner = nn.MultiheadAttention(dim, heads)

    def forward(self, x):
        future = torch.ones(len(x), len(x)).triu(1).bool()
        return self.inner(x, x, x, attn_mask=future)[0]


class Filled(Open):
    """Told which tokens are filling, True for these."""

    first = 1

    def forward(self, x, key_padding_mask=None):
        return self.attend(x, key_padding_mask)[0]

    def given(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None], -torch.inf)


class FilledOtherwise(Filled):
    def given(self, scores, mask):
        return super().given(scores, None if mask is None else ~mask)


class FilledAlone(Filled):
    """Filling is hidden, and the future no more."""

    def attend(self, x, mask=None):
        self.first = 1 if mask is None else 10**6
        return super().attend(x, mask)


class FilledInverted(FilledAlone):
    """Filling is hidden where tokens are seen, and seen where later tokens are hidden."""

    def given(self, scores, mask):
        if mask is None:
            return scores
        later = torch.ones_like(scores).triu(1).bool()
        return scores.masked_fill(later ^ mask[:, None, None], -1e9)


class FilledForNothing(Filled):
    given = Ignores.given


class FilledOrAdded(Filled):
    """What is not bool is added."""

    def given(self, scores, mask):
        if mask is None or mask.dtype is torch.bool:
            return super().given(scores, mask)
        return scores + mask[:, None, None]


class FilledInX(Filled):
    """Filling is put out in the x of the caller."""

    def attend(self, x, mask=None):
        return super().attend(x if mask is None else x.masked_fill_(mask[..., None], 0), mask)


class KeptInX(Kept):
    """As it is, but where keys are kept."""

    def attend(self, x, mask=None, past=None, earlier=0):
        out = super().attend(x, mask, past, earlier)
        if past is not None:
            x.zero_()
        return out


class LecturesLayers(Base):
    """The lecture's names and another constructor."""

    def __init__(self, dim, heads, block_size):
        super().__init__(dim, dim, block_size, 0.0, heads)


class LecturesIgnores(Base):
    def forward(self, x, attention_mask=None):
        return super().forward(x)


class FilledAsBefore(Filled):
    """A mask is kept for each shape."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.kept = {}

    def given(self, scores, mask):
        key = scores.shape, mask is None, scores.device
        return scores + self.kept.setdefault(key, super().given(torch.zeros_like(scores), mask))


class KeyMaskAlone(FilledAlone):
    def forward(self, x, key_mask=None):
        return self.attend(x, key_mask)[0]


class Documents(Attention):
    """Told of which document each token is."""

    def forward(self, x, doc_ids=None):
        return self.attend(x, doc_ids)[0]

    def given(self, scores, mask):
        hides = None if mask is None else self.apart(mask[:, None, None], mask[:, None, :, None])
        return scores if hides is None else scores.masked_fill(hides, -torch.inf)

    def apart(self, keys, queries):
        return keys != queries


class DocumentsEarlier(Documents):
    def apart(self, keys, queries):
        return keys > queries


class OpenWithoutGrad(Attention):
    def forward(self, x):
        self.first = 1 if torch.is_grad_enabled() else 10**6
        return self.attend(x)[0]


class OwnHeads(nn.Module):
    """Heads as wide as the constructor is told."""

    divided = False

    def __init__(self, dim, heads, head_dim):
        super().__init__()
        self.heads, self.scale = heads, (dim // heads if self.divided else head_dim) ** -0.5
        self.qkv, self.proj = nn.Linear(dim, 3 * heads * head_dim), nn.Linear(heads * head_dim, dim)

    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale)
        return self.proj(out.transpose(1, 2).flatten(2))


class OwnHeadsDivided(OwnHeads):
    divided = True


class KeptOrFilled(Kept):
    """What is filling is told of the text so far; a piece of one token does not look."""

    def forward(self, x, pad_mask=None, past=None):
        return self.attend(x, pad_mask if x.shape[1] > self.alone else None, past)

    def given(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask[:, None, None], -1e9)

    alone = 1


class KeptAndFilled(KeptOrFilled):
    alone = 0


class BegunWithOne(Attention):
    """A mask that is made for one token is not made again."""

    first, hides = 10**6, None

    def given(self, scores, mask):
        n = scores.shape[-1]
        if self.hides is None or n > len(self.hides) > 1:
            self.hides = torch.ones(n, n).triu(1).bool()
        return super().given(scores.masked_fill(self.hides[:n, :n], -torch.inf), mask)


class ByPlace(Attention):
    def forward(self, *given, **named):
        self.first = 1 if given else 2
        return self.attend(given[0] if given else named["x"])[0]


class ByName(Attention):
    def forward(self, *, x):
        return self.attend(x)[0]


class EitherOrder(Attention):
    def __init__(self, dim, heads, batch_first=True):
        super().__init__(dim, heads)
        self.batch_first = batch_first

    def forward(self, x):
        return self.attend(x)[0] if self.batch_first else self.turned(x)

    def turned(self, x):
        return self.attend(x.transpose(0, 1))[0].transpose(0, 1)


class OneOrder(EitherOrder):
    """With tokens first sequences are mixed."""

    def turned(self, x):
        return self.attend(x.reshape(x.shape[1], x.shape[0], -1))[0].reshape(x.shape)


class TokensFirstUnscaled(EitherOrder):
    root = 0

    def __init__(self, dim, heads):
        super().__init__(dim, heads, False)


class Merged(Attention):
    """An update of low rank goes into the weights each time that eval() is called."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.low, self.up = nn.Linear(dim, 2), nn.Parameter(torch.zeros(3 * dim, 2))

    def train(self, mode=True):
        if not mode:
            self.qkv.weight.data += self.up.detach() @ self.low.weight.detach()
        return super().train(mode)


class HeadsOfAll(Attention):
    """How many heads there are is kept on the class: the module made last says it for all."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        del self.heads
        type(self).heads = heads


class NotInState(Attention):
    """A factor drawn at first, of a parameter that begins at 0, is neither parameter nor buffer."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.drawn, self.low = float(torch.rand(())), nn.Parameter(torch.zeros(()), False)

    def given(self, scores, mask):
        place = torch.arange(scores.shape[-1], device=scores.device)
        return super().given(scores + self.low * self.drawn * place, mask)


class Softmax(torch.autograd.Function):
    """A softmax that keeps its result on its module."""

    @staticmethod
    def forward(ctx, scores, module):
        ctx.module, module.kept = module, scores.softmax(-1)
        return module.kept.clone()

    @staticmethod
    def backward(ctx, grad):
        kept = ctx.module.kept
        return kept * (grad - (grad * kept).sum(-1, True)), None


class SavedOnItself(Attention):
    def weigh(self, scores):
        return Softmax.apply(scores, self)


class Loads(Attention):
    """A state of three layers is put together to one."""

    order = "qkv"

    def _load_from_state_dict(self, state, prefix, *more):
        names = [f"{prefix}{name}_proj.weight" for name in self.order]
        if all(name in state for name in names):
            state[prefix + "qkv.weight"] = torch.cat([state.pop(name) for name in names])
        super()._load_from_state_dict(state, prefix, *more)


class LoadsOtherwise(Loads):
    order = "kqv"


class LoadsUnknown(Loads):
    order = "xyz"


class LoadsTurned(Attention):
    """A state of Conv1D's, (in, out), is known by its shapes."""

    def _load_from_state_dict(self, state, prefix, *more):
        for name in ("qkv.weight", "proj.weight"):
            if state[prefix + name].shape != self.get_parameter(name).shape:
                state[prefix + name] = state[prefix + name].mT
        super()._load_from_state_dict(state, prefix, *more)


class Checkpointed(Attention):
    """As it is, but where gradients are made from checkpoints."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.gradient_checkpointing = False

    def attend(self, *more, **named):
        self.first = 10**6 if self.gradient_checkpointing and self.training else 1
        return super().attend(*more, **named)


class NotReset(Attention):
    """Keys of the last call stay in eval mode; train() forgets them."""

    kept = None

    def train(self, mode=True):
        self.kept = None
        return super().train(mode)

    def forward(self, x):
        past = self.kept if self.kept is not None and len(self.kept[0]) == len(x) else None
        out, kept = self.attend(x, past=past)
        self.kept = None if self.training else kept
        return out


class SharedDefault(Attention):
    """A default that all calls share."""

    def forward(self, x, use_cache=False, cache={}):  # noqa: B006
        out, kept = self.attend(x, past=cache.get("kv"))
        cache |= {"kv": kept} if use_cache else {}
        return out


class OtherText(Attention):
    """A head gets the mask of another text."""

    def given(self, scores, mask):
        if mask is None or mask.dim() < 3:
            return scores if mask is None else scores.masked_fill(mask, -torch.inf)
        hides = mask.repeat(self.heads, 1, 1).view_as(scores)
        return scores.masked_fill(hides, -torch.inf)


class EitherMask(Attention):
    """(num_tokens, num_tokens) or (b, num_tokens), True where a key is hidden."""

    def given(self, scores, mask):
        if mask is not None and len(mask) != mask.shape[1]:
            mask = mask[:, None, None]
        return scores if mask is None else scores.masked_fill(mask, -1e9)


class FilledDictRight(Attention):
    """A dict may be handed over, which forward fills."""

    alone = 0  # a text of so many tokens is taken for a whole one

    def forward(self, x, cache=None):
        past = None if cache is None or x.shape[1] == self.alone else cache.get("kv")
        out, kept = self.attend(x, past=past)
        if cache is not None:
            cache["kv"] = kept
        return out


class FilledDict(FilledDictRight):
    alone = 1


class Counted(Attention):
    """What is kept lies in the module; a start says how many tokens came before."""

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.kept = {}

    def forward(self, x, start_pos=0):
        past = [each[:, :, :start_pos] for each in self.kept["kv"]] if start_pos else None
        out, kept = self.attend(x, past=past)
        self.kept["kv"] = [each.detach() for each in kept]
        return out


class CountedByAll(Counted):
    def __init__(self, dim, heads, kept={}):  # noqa: B006
        super().__init__(dim, heads)
        self.kept = kept


class Stored(Counted):
    """A flag says that the text goes on; `reset_cache` ends it."""

    def forward(self, x, use_cache=False):
        out, kept = self.attend(x, past=self.kept.get("kv") if use_cache else None)
        self.kept |= {"kv": kept} if use_cache else {}
        return out

    def reset_cache(self):
        self.kept = {}


class StoredForGood(Stored):
    def reset_cache(self):
        pass


class WithoutBatch(Attention):
    axis = 0

    def forward(self, x):
        whole = x if x.dim() == 3 else x.unsqueeze(self.axis)
        return self.attend(whole)[0].view_as(x)


class WithoutBatchBehind(WithoutBatch):
    axis = 1


class FilledWithoutGrad(Filled):
    """Where no gradients are wanted, what is filling takes the place of the mask."""

    def attend(self, x, mask=None):
        self.first = 1 if mask is None or torch.is_grad_enabled() else 10**6
        return super().attend(x, mask)


class MaskOfTruths(InPlaceOfIts):
    """A mask of numbers is made one of True and False."""

    def given(self, scores, mask):
        if mask is not None and mask.is_floating_point():
            mask = mask > self.most
        return scores if mask is None else scores.masked_fill(~mask, -torch.inf)

    most = -1e30


class MaskOfTruthsBelow(MaskOfTruths):
    most = -1e3


class Three(Attention):
    """Queries, keys and values may be made of an input each."""

    def forward(self, query, key=None, value=None):
        return self.of_three(
            query, query if key is None else key, query if value is None else value
        )

    def of_three(self, *given):
        three = [self.qkv(x).chunk(3, -1)[i] for i, x in enumerate(given)]
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in three)
        out = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.proj(out.transpose(1, 2).flatten(2))


class ThreeSwapped(Three):
    def of_three(self, query, key, value):
        return super().of_three(query, value, key)


class ThreeInOtherOrder(Three):
    def forward(self, query, value=None, key=None):
        return super().forward(query, key, value)


class Lengths(Open):
    """Told how many tokens of each text are no filling; nothing else is hidden."""

    more = 0

    def forward(self, x, lengths=None):
        return self.attend(x, None if lengths is None else lengths + self.more)[0]

    def given(self, scores, mask):
        place = torch.arange(scores.shape[-1])
        hides = None if mask is None else (place >= mask[:, None])[:, None, None]
        return scores if hides is None else scores.masked_fill(hides, -torch.inf)


class LengthsOfMore(Lengths):
    more = 1


class OfOneText(Filled):
    """One text that is given as many is attended to once."""

    def attend(self, x, mask=None):
        if len(x) > 1 and x.stride(0) == 0:
            out, kept = super().attend(x[:1], mask if mask is None else mask[:1])
            return out.expand_as(x), kept
        return super().attend(x, mask)


class OfLast(Attention):
    """What lies in memory once is taken for a text of its own."""

    def attend(self, x, mask=None):
        return super().attend(x.flip(1) if len(x) > 1 and x.stride(0) == 0 else x, mask)


class OneStore(Attention):
    """What is kept lies in memory taken once."""

    def forward(self, x, past=None):
        out, kept = self.attend(x, past=past)
        n = kept[0].shape[2]
        if past is None:
            self.store = [torch.empty(*e.shape[:2], 2048, e.shape[3]).to(e) for e in kept]
        views = [
            store[:, :, :n].copy_(new.detach()) for store, new in zip(self.store, kept, strict=True)
        ]
        return out, tuple(views)


class Shown(Attention):
    """The weights may be asked for; they are made once more."""

    ends = 1

    def forward(self, x, return_attention=False):
        q, k, _ = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        weights = scores.masked_fill(torch.ones_like(scores).triu(self.ends).bool(), -torch.inf)
        return (self.attend(x)[0], weights.softmax(-1)) if return_attention else self.attend(x)[0]


class ShownOpen(Shown):
    ends = 10**6


class ShownUnscaled(Attention):
    """The path that returns its weights is one of its own."""

    def forward(self, x, need_weights=True):
        self.root = 0.5 if need_weights else 0
        return self.attend(x)[0]


class ShownInX(Attention):
    def forward(self, x, output_attentions=False):
        out = self.attend(x)[0]
        return out, x.zero_() if output_attentions else None


class Turned(Kept):
    """RoPE by positions of its own, which go on where keys are kept."""

    def attend(self, x, mask=None, past=None, earlier=0):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        begin = 0 if past is None else past[0].shape[2] - self.lost
        q, k = (self.turn(each, begin) for each in (q, k))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.mT / q.shape[-1] ** 0.5
        future = torch.ones_like(scores).triu(1 + k.shape[2] - q.shape[2]).bool()
        out = scores.masked_fill(future, -torch.inf).softmax(-1) @ v
        return self.proj(out.transpose(1, 2).flatten(2)), (k, v)

    lost, theta = 0, 1e4

    def turn(self, x, begin):
        half = x.shape[-1] // 2
        angle = self.angle(torch.arange(begin, begin + x.shape[2])[:, None], half)
        one, two = x[..., :half], x[..., half:]
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def angle(self, place, half):
        return place * self.theta ** (-torch.arange(half) / half)


class Whole(Turned):
    """Keeps nothing."""

    def forward(self, x):
        return self.attend(x)[0]


class TurnedFromTheStart(Turned):
    """New tokens are turned as if the text began with them, less one."""

    lost = 1


class CopiedBase(Turned):
    """A copy makes its angles of the usual base."""

    def __init__(self, dim, heads, theta=1e4):
        super().__init__(dim, heads)
        self.theta = theta

    def __setstate__(self, state):
        super().__setstate__(state | {"theta": 1e4})


class Complex(Turned):
    def __init__(self, dim, heads, max_len):
        super().__init__(dim, heads)
        turns = 1e4 ** (-torch.arange(0, dim // heads, 2) * heads / dim)
        angles = torch.arange(max_len)[:, None] * turns
        self.register_buffer("turns", torch.polar(torch.ones_like(angles), angles))

    def turn(self, x, begin):
        pairs = (
            torch.complex(*x.to(self.turns.real).chunk(2, -1)) * self.turns[begin:][: x.shape[2]]
        )
        return torch.cat([pairs.real, pairs.imag], -1).to(x)


class PositionsOfOne(Turned):
    """Every text is turned by the positions of the first."""

    def forward(self, x, position_ids=None):
        self.place = position_ids
        return self.attend(x)[0]

    def angle(self, place, half):
        return super().angle(place if self.place is None else self.of(self.place), half)

    def of(self, ids):
        return ids[0, :, None]


class PositionsOfEach(PositionsOfOne):
    def of(self, ids):
        return ids[:, None, :, None]


class OneTable(Turned):
    """Angles of one base are kept for all modules, whatever theirs."""

    table = {}

    def __init__(self, dim, heads, theta=1e4):
        super().__init__(dim, heads)
        self.theta = theta

    def angle(self, place, half):
        made = super().angle(place, half)
        return self.table.setdefault((len(place), int(place[0]), half), made)


class GrowingBase(Turned):
    """The base grows with the longest text, and stays so."""

    def __init__(self, dim, heads, max_len=2048):
        super().__init__(dim, heads)
        self.longest = max_len

    def angle(self, place, half):
        if len(place) > self.longest:
            self.theta, self.longest = self.theta * len(place) / self.longest, len(place)
        return super().angle(place, half)


class OneMask(Attention):
    """Masks are kept by length for all modules, whatever their window."""

    kept, first = {}, 10**6

    def __init__(self, dim, heads, window=4096):
        super().__init__(dim, heads)
        self.window = window

    def given(self, scores, mask):
        ones = torch.ones_like(scores[0, 0]).bool()
        key = len(ones), ones.device
        hides = self.kept.setdefault(key, ones.triu(1) | ones.tril(-self.window))
        return super().given(scores.masked_fill(hides, -torch.inf), mask)


@dataclass
class Config:
    hidden_size: int = 64
    num_heads: int = 4
    sliding_window: int = 4096


class OneMaskOfConfig(OneMask):
    kept = {}

    def __init__(self, config: Config):
        super().__init__(config.hidden_size, config.num_heads, config.sliding_window)


class OwnMask(OneMask):
    def __init__(self, dim, heads, window=4096):
        super().__init__(dim, heads, window)
        self.kept = {}


class CoarseMask(Attention):
    """A mask from positions that are numbers of the weights' dtype."""

    def given(self, scores, mask):
        place = torch.arange(scores.shape[-1]).to(scores)
        return super().given(scores.masked_fill(place > place[:, None], -torch.inf), mask)

    first = 10**6


class CoarsePositions(Turned):
    """Positions are numbers of the weights' dtype."""

    def angle(self, place, half):
        return super().angle(place.to(self.qkv.weight.dtype), half)


def asked(cls):
    """The verdict of a class, or of one with a change and the change's name."""
    return check_attention(*cls) if isinstance(cls, tuple) else check_attention(cls)


@sampled(
    ("cls", "said"),
    [
        (Attention, "Right where `attention_mask` is handed over, too."),
        (InPlaceOfIts, "one that hides padding alone shows the future."),
        (Open, "Right without a mask, too, where it hides nothing."),
        (Alone, "not tried: attention_mask."),
        (LecturesLayers, "Read as"),
        (Documents, "Read as"),
        (OwnHeads, "Read as"),
        (KeptAndFilled, "`pad_mask` says what is filling, too: True where a key is hidden."),
        (Kept, "Right in pieces, too, where `kv_cache` gets"),
        (KeptAnyway, "Right in pieces, too, where `layer_past` gets"),
        (NeverKept, "not tried: past, context."),
        (Filled, "`key_padding_mask` says what is filling, too: True where a key is hidden."),
        (
            FilledOtherwise,
            "`key_padding_mask` says what is filling, too: True where a key is seen.",
        ),
        (ByName, "forward(x=x)"),
        (Counted, "where `start_pos` gets how many tokens came before."),
        (Stored, "where `use_cache` gets True with every piece."),
        (WithoutBatch, "forward(x)"),
        (Three, "forward(x)"),
        ((Lengths, "full"), "how many tokens are none"),
        (FilledDictRight, "where `cache` gets one dict for all pieces of a text"),
        (Shown, "The weights returned with return_attention are those that were used."),
        (EitherOrder, "Built with batch_first True as well as with batch_first False."),
        (TokensFirst, "forward((num_tokens, b, d_in))"),
        (Loads, "Right where `attention_mask`"),
        (LoadsUnknown, "Not tried: other names in a state"),
        (OwnMask, "Right"),
        ((Whole, "rope"), ""),
        ((Turned, "rope"), ""),
        ((Turned, "cache"), ""),
    ],
)
def test_a_right_class_is_right_in_every_way_to_call_it_and_told_what_was_tried(cls, said):
    verdict = asked(cls)
    assert verdict.passed and said in str(verdict), verdict
    assert verdict.message.startswith("Right where tokens come first") is (cls is TokensFirst)


@sampled(
    ("cls", "step", "said"),
    [
        (FilledAlone, 6, "not with one that hides nothing"),
        (FilledForNothing, 6, "not with one that hides a token"),
        (FilledInverted, 6, "Without `key_padding_mask` it is right, but not with one"),
        (FilledOrAdded, 6, "but not where it holds integers, 1 and 0"),
        (FilledInX, 1, "Where `key_padding_mask` is handed over, forward changes its input x"),
        (KeptInX, 1, "Where `kv_cache` is handed over, forward changes its input x"),
        (LecturesIgnores, 6, "what `attention_mask` holds changes nothing"),
        (FilledAsBefore, 6, "another one of the same shape gets what was made for the first"),
        (KeyMaskAlone, 6, "Without `key_mask` it is right, but not with one"),
        (DocumentsEarlier, 6, "tells documents apart, a document gives something else than alone"),
        (OpenWithoutGrad, 6, "Where gradients are on it is right; under `torch.no_grad()`"),
        (OwnHeadsDivided, 7, "but not with one of its own, 16 in place of 8"),
        (KeptOrFilled, 6, "In pieces it is right, and with `pad_mask` as well, but not with both"),
        (BegunWithOne, None, "After a shorter text the same x gives something else."),
        (ByPlace, None, "Called by name, forward(x=x)"),
        (OneOrder, None, "It takes x with tokens first, (num_tokens, b, d_in)."),
        (TokensFirstUnscaled, 7, "It takes x with tokens first, (num_tokens, b, d_in). Step 7"),
        (OffByOne, 6, "Every token sees one token of its future"),
        (Unscaled, 7, "The scores are not scaled"),
        (MaskInstead, 6, "Called as forward(x) it is right, but not as forward(x, attention_mask"),
        (OpenUnscaled, None, "it is right, but not as forward(x). "),
        (Ignores, 6, "what `attention_mask` holds changes nothing"),
        (OtherText, 6, "not where it is (b, num_tokens, num_tokens) and hides more"),
        (EitherMask, 6, "With as many texts as tokens filling is taken for the other"),
        (CountedByAll, None, "not where another module reads a text in between"),
        (StoredForGood, None, "but a second one is not after `reset_cache()`"),
        (WithoutBatchBehind, 1, "A text without its batch axis"),
        (FilledWithoutGrad, 6, "Without `key_padding_mask` it is right, but not with one"),
        (MaskOfTruths, 6, "not with -10,000 in place of -inf"),
        (MaskOfTruthsBelow, 6, "but not where it holds other numbers"),
        (ThreeSwapped, 2, "where `key` and `value` are each another tensor"),
        (ThreeInOtherOrder, 2, "takes `value` before `key`"),
        ((LengthsOfMore, "full"), 6, "how many tokens of each text are no filling"),
        (OfOneText, 6, "not where x is one text that `expand` makes a batch of"),
        (OfLast, None, "Where x is one text that `expand` makes a batch of"),
        (FilledDict, None, "where `cache` gets one dict for all pieces of a text"),
        (OneStore, None, "not where a text goes on in two ways from the same `past`"),
        (Merged, None, "Where `eval()` is called a second time"),
        (HeadsOfAll, None, "Once another module of the class was made"),
        (NotInState, None, "A module that has loaded the `state_dict()` of another"),
        (SavedOnItself, None, "Where the module is called a second time before"),
        (LoadsOtherwise, None, "that its own load hook knows, such as"),
        (LoadsTurned, None, "but leaves a square one as it is"),
        (Checkpointed, None, "With `gradient_checkpointing = True` the output is another one"),
        (NotReset, None, "The same x a second time gives something else"),
        (SharedDefault, None, "With `use_cache=True` forward writes into the default of `cache`"),
        (ShownUnscaled, None, "With `need_weights=False` the output is another one"),
        (ShownInX, 1, "Where `output_attentions=True` is handed over, forward changes its input x"),
        (ShownOpen, 7, "the weights returned with `return_attention=True` are not those"),
        (OneMask, None, "with another window, was called"),
        (OneMaskOfConfig, None, "with another window, was called"),
        (CoarseMask, None, "In bfloat16 a text of 498 tokens lets a token"),
        ((OneTable, "rope"), None, "a second module turns positions as the first does, at base 10"),
        ((GrowingBase, "rope"), None, "After a text longer than `context_length` the x of before"),
        ((CoarsePositions, "rope"), None, "In bfloat16 a text of 500 tokens gives another output"),
        ((TurnedFromTheStart, "rope"), None, "not in pieces"),
        ((TurnedFromTheStart, "cache"), None, "not in pieces"),
        (KeptLate, None, "not in pieces: where `kv_cache` gets"),
    ],
)
def test_no_way_to_call_a_class_hides_what_is_wrong_in_another(cls, step, said):
    verdict = asked(cls)
    assert not verdict and verdict.kind in ("mistake", "value") and said in verdict.message, verdict
    assert step in (None, verdict.step)


@pytest.mark.parametrize("cls", [nn.Identity, nn.LSTM, nn.LayerNorm, nn.ReLU, nn.Bilinear])
def test_what_is_no_attention_is_not_judged(cls):
    assert check_attention(cls).kind == "unread"
    assert check_attention(cls, causal=False).kind == "unread"


MODEL = """
from torch import nn
import torch
class NoOut(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.qkv = heads, nn.Linear(dim, 3 * dim)
    def forward(self, x):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        s = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
        return (s @ v).transpose(1, 2).flatten(2)
class Concat(NoOut):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.w_concat = nn.Linear(dim, dim)
    def forward(self, x):
        return self.w_concat(super().forward(x))
class Greek(NoOut):
    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.alpha, self.beta = nn.Linear(dim, dim), nn.Linear(dim, dim)
    def forward(self, x):
        return self.beta(super().forward(x))
"""


@pytest.mark.nightly
def test_a_variant_that_hands_something_over_is_asked_for_by_name():
    right = check_attention(Filled, "padding")
    assert "Adapted" not in right.message + right.note
    assert check_attention(Attention, "padding").kind == "unread"
    assert check_attention(Whole, "cache").kind == "unread"


@sampled(
    ("name", "options", "verdict", "says"),
    [
        ("Concat", ["--full"], "right", ""),
        ("NoOut", ["--full", "--layers", "out_proj=None"], "right", ""),
        ("Greek", ["--full", "--layers", "out_proj=beta"], "right", ""),
        ("Greek", ["--full"], "not judged", "out_proj is not clear: name them in `--layers LAYER="),
        ("Concat", [], "wrong", "ask again with `--full`"),
    ],
)
def test_the_shell_says_in_its_own_words_what_is_missing(
    name, options, verdict, says, tmp_path, capsys
):
    (tmp_path / "model.py").write_text(MODEL)
    shell.main([f"{tmp_path}/model.py:{name}", "--json", *options])
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == verdict and says in told["message"]
    assert (told["message"] + told["note"]).count("--full") == ("--full" in says)


@pytest.mark.nightly
def test_a_first_gpt_of_transformers_off_by_one_is_wrong(tmp_path):
    """With an optional attention_mask beside a buffer of its own: see bench/in_the_wild.py."""
    pytest.importorskip("transformers")
    code = (
        "import torch, eleven_steps.checks as c\n"
        "from transformers.models.openai.modeling_openai import Attention, OpenAIGPTConfig\n"
        "def build(d_out, num_heads, first=0):\n"
        "    drops = dict(attn_pdrop=0.0, resid_pdrop=0.0)\n"
        "    config = OpenAIGPTConfig(n_embd=d_out, n_head=num_heads, n_positions=64, **drops)\n"
        "    module = Attention(d_out, 64, config, scale=True)\n"
        "    module.bias = torch.ones(64, 64).tril(first)[None, None]\n"
        "    return module\n"
        "print(bool(c.check_attention(build)))\n"
        "off = lambda d_out, num_heads: build(d_out, num_heads, 1)\n"
        "print(c.check_attention(off).mistakes)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], cwd=ROOT, text=True, capture_output=True)
    assert ran.stdout.split("\n")[:2] == ["True", "('mask_off_by_one',)"], ran.stderr

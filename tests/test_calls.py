"""How a class is called is found out: alone, with a mask, tokens first, in pieces; all is said.

Each line of said/calls.toml is a class of this file with parts written otherwise, and perhaps the
change since the lecture that it has; what is said of it stands there whole.
"""

import json
from dataclasses import dataclass

import pytest
import torch
from attention_variants import Base  # noqa: F401 - said/calls.toml
from said import typed, verdict_on
from sampled import sampled, whole
from test_shell import MODEL
from torch import nn

from eleven_steps.checks import __main__ as shell
from eleven_steps.checks import check_attention

OPEN = 10**6  # so far ahead every mask hides nothing


class Attention(nn.Module):
    """A mask of its own, and one that may be handed over besides."""

    first, root, least = 1, 0.5, -torch.inf  # where the mask begins, what scores are divided by

    def __init__(self, dim, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(dim, 3 * dim), nn.Linear(dim, dim)

    def forward(self, x, attention_mask=None):
        return self.attend(x, attention_mask)[0]

    def attend(self, x, mask=None, past=None, shift=0):
        """The output, and keys and values to keep; the mask begins so many places later."""
        q, k, v = self.three(x, past)
        weights = self.weights(q, k, mask, shift)
        return self.proj((weights @ v).transpose(1, 2).flatten(2)), (k, v)

    def three(self, x, past=None):
        q, k, v = self.qkv(x).unflatten(-1, (3, self.heads, -1)).permute(2, 0, 3, 1, 4)
        q, k = (self.turn(each, 0 if past is None else past[0].shape[2]) for each in (q, k))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        return q, k, v

    def turn(self, x, begin):
        return x

    def weights(self, q, k, mask=None, shift=0):
        scores = q @ k.mT / self.scale(q)
        begin = self.first + k.shape[2] - q.shape[2] + shift
        future = torch.ones_like(scores, dtype=torch.bool).triu(begin)
        scores = self.besides(scores.masked_fill(future, self.least))
        return self.weigh(scores if mask is None else self.given(scores, mask))

    def scale(self, q):
        return q.shape[-1] ** self.root

    def besides(self, scores):
        return scores

    def given(self, scores, mask):
        return scores + mask

    def weigh(self, scores):
        return scores.softmax(-1)


def given(hides, least=-torch.inf):
    """What is made of scores with a mask that was handed over: where it hides they are least."""
    return lambda self, scores, mask: scores.masked_fill(hides(mask), least)


def of_keys(mask):
    """(b, num_tokens) for all heads and queries."""
    return mask[:, None, None]


def named(name, instead=False):
    """A forward whose mask has another name, and perhaps takes the place of its own."""
    shift = f"{OPEN} * ({name} is not None)" if instead else "0"
    return typed(f"lambda s, x, {name}=None: s.attend(x, {name}, shift={shift})[0]", {}, "eval")


class OwnHeads(Attention):
    """Heads as wide as the constructor is told."""

    def __init__(self, dim, heads, head_dim):
        super().__init__(dim, heads)
        width = heads * head_dim
        self.qkv, self.proj = nn.Linear(dim, 3 * width), nn.Linear(width, dim)


class Storing(Attention):
    """A store is kept in the module."""

    fresh = dict

    def __init__(self, dim, heads):
        super().__init__(dim, heads)
        self.store = self.fresh()


class Counted(Storing):
    """A start says how many tokens came before."""

    def forward(self, x, start_pos=0):
        past = [each[:, :, :start_pos] for each in self.store["kv"]] if start_pos else None
        out, kept = self.attend(x, past=past)
        self.store["kv"] = [each.detach() for each in kept]
        return out


class Stored(Storing):
    """A flag says that the text goes on; `reset_cache` ends it."""

    def forward(self, x, use_cache=False):
        out, kept = self.attend(x, past=self.store.get("kv") if use_cache else None)
        self.store |= {"kv": kept} if use_cache else {}
        return out

    def reset_cache(self):
        self.store = {}


class FilledDict(Attention):
    """A dict may be handed over, which forward fills."""

    alone = 0  # a text of so many tokens is taken for a whole one

    def forward(self, x, cache=None):
        past = None if cache is None or x.shape[1] == self.alone else cache.get("kv")
        out, kept = self.attend(x, past=past)
        if cache is not None:
            cache["kv"] = kept
        return out


class SharedDefault(Attention):
    """A default that all calls share."""

    def forward(self, x, use_cache=False, cache={}):  # noqa: B006
        out, kept = self.attend(x, past=cache.get("kv"))
        cache |= {"kv": kept} if use_cache else {}
        return out


class NotReset(Storing):
    """Keys of the last call stay in eval mode; train() forgets them."""

    def train(self, mode=True):
        self.store = {}
        return super().train(mode)

    def forward(self, x):
        past = self.store.get(len(x))
        out, kept = self.attend(x, past=past)
        self.store = {} if self.training else {len(x): kept}
        return out


class OneStore(Attention):
    """What is kept lies in memory taken once."""

    def forward(self, x, past=None):
        out, kept = self.attend(x, past=past)
        n = kept[0].shape[2]
        if past is None:
            self.store = [torch.empty(*e.shape[:2], 2048, e.shape[3]).to(e) for e in kept]
        pairs = zip(self.store, kept, strict=True)
        return out, tuple(store[:, :, :n].copy_(new.detach()) for store, new in pairs)


class BegunWithOne(Attention):
    """A mask that is made for one token is not made again."""

    first, hides = OPEN, None

    def besides(self, scores):
        n = scores.shape[-1]
        if self.hides is None or n > len(self.hides) > 1:
            self.hides = torch.ones(n, n).triu(1).bool()
        return scores.masked_fill(self.hides[:n, :n], -torch.inf)


class EitherOrder(Attention):
    def __init__(self, dim, heads, batch_first=True):
        super().__init__(dim, heads)
        self.batch_first = batch_first

    def forward(self, x):
        return self.attend(x)[0] if self.batch_first else self.turned(x)

    def turned(self, x):
        return self.attend(x.transpose(0, 1))[0].transpose(0, 1)


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

    def besides(self, scores):
        place = torch.arange(scores.shape[-1], device=scores.device)
        return scores + self.low * self.drawn * place


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


class Loads(Attention):
    """A state of three layers is put together to one."""

    order = "qkv"

    def _load_from_state_dict(self, state, prefix, *more):
        names = [f"{prefix}{name}_proj.weight" for name in self.order]
        if all(name in state for name in names):
            state[prefix + "qkv.weight"] = torch.cat([state.pop(name) for name in names])
        super()._load_from_state_dict(state, prefix, *more)


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

    def forward(self, x):
        return self.attend(x, shift=OPEN * (self.gradient_checkpointing and self.training))[0]


class Three(Attention):
    """Queries, keys and values may be made of an input each."""

    def forward(self, query, key=None, value=None):
        given = query, query if key is None else key, query if value is None else value
        three = [self.qkv(x).chunk(3, -1)[i] for i, x in enumerate(given)]
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in three)
        return self.proj((self.weights(q, k) @ v).transpose(1, 2).flatten(2))


class OfInputs(Attention):
    """Keys and values may be made of other inputs, whose mask is for these alone."""

    def forward(self, x, inputs=None, inputs_mask=None):
        other, mask = (x, None) if inputs is None else (inputs, inputs_mask)
        q, k, v = (self.qkv(e).chunk(3, -1)[i] for i, e in enumerate((x, other, other)))
        q, k, v = (each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in (q, k, v))
        weights = self.weights(q, k, self.read(mask))
        return self.proj((weights @ v).transpose(1, 2).flatten(2))

    def read(self, mask):
        return mask

    def given(self, scores, mask):
        return scores.masked_fill(mask[:, None, None], -torch.inf)


class Kept(Attention):
    """Keys and values of the text so far may be handed over."""

    def forward(self, x, kv_cache=None, use_cache=False):
        out, kept = self.attend(x, past=kv_cache)
        return (out, kept) if use_cache else out


class Turned(Kept):
    """RoPE by positions of its own, which go on where keys are kept."""

    lost, theta = 0, 1e4

    def turn(self, x, begin):
        begin, half = begin and begin - self.lost, x.shape[-1] // 2
        angle = self.angle(torch.arange(begin, begin + x.shape[2])[:, None], half)
        one, two = x[..., :half], x[..., half:]
        cos, sin = angle.cos().to(x), angle.sin().to(x)
        return torch.cat([one * cos - two * sin, two * cos + one * sin], -1)

    def angle(self, place, half):
        return place * self.theta ** (-torch.arange(half) / half)


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

    kept, first = {}, OPEN

    def __init__(self, dim, heads, window=4096):
        super().__init__(dim, heads)
        self.window = window

    def besides(self, scores):
        ones = torch.ones_like(scores[0, 0]).bool()
        key = len(ones), ones.device
        hides = self.kept.setdefault(key, ones.triu(1) | ones.tril(-self.window))
        return scores.masked_fill(hides, -torch.inf)


class OwnMask(OneMask):
    def __init__(self, dim, heads, window=4096):
        super().__init__(dim, heads, window)
        self.kept = {}


@dataclass
class Config:
    hidden_size: int = 64
    num_heads: int = 4
    sliding_window: int = 4096


class OneMaskOfConfig(OneMask):
    kept = {}

    def __init__(self, config: Config):
        super().__init__(config.hidden_size, config.num_heads, config.sliding_window)


test_no_way_to_call_a_class_hides_what_is_wrong_in_another = whole(
    "calls", lambda answer: verdict_on(answer, globals())
)


@pytest.mark.parametrize("cls", [nn.Identity, nn.LSTM, nn.LayerNorm, nn.ReLU, nn.Bilinear])
def test_what_is_no_attention_is_not_judged(cls):
    assert check_attention(cls).kind == "unread"
    assert check_attention(cls, causal=False).kind == "unread"


OTHER_ENDS = {
    "Concat": [("proj", "w_concat")],
    "Greek": [("self.heads =", "self.beta = nn.Linear(dim, dim)\n        self.heads ="),
              ("self.proj =", "self.alpha ="), ("proj", "beta")],
}  # fmt: skip


@sampled(
    ("name", "options", "verdict", "says"),
    [
        ("Concat", ["--full"], "right", ""),
        ("Greek", ["--full", "--layers", "out_proj=beta"], "right", ""),
        ("Greek", ["--full"], "not judged", "out_proj is not clear: name them in `--layers LAYER="),
        ("Concat", [], "wrong", "ask again with `--full`"),
    ],
)
def test_the_shell_says_in_its_own_words_what_is_missing(
    name, options, verdict, says, tmp_path, capsys
):
    source = MODEL.replace("self.hide(", "(")
    for old, new in OTHER_ENDS[name]:
        source = source.replace(old, new)
    (tmp_path / "model.py").write_text(source)
    shell.main([f"{tmp_path}/model.py:Attention", "--json", *options])
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == verdict and says in told["message"]
    assert (told["message"] + told["note"]).count("--full") == ("--full" in says)

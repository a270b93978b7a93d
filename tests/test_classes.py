"""check_attention on flaws that plain outputs hide, and on right classes that look odd."""

import warnings

import pytest
import torch
from attention_variants import Base, Sdpa, causal, softmax
from torch import nn
from torch.nn import functional as F

from eleven_steps.checks import check, check_attention

every = pytest.mark.parametrize


class TrainedMask(Base):
    def make_mask(self, block_size):
        self.mask = nn.Parameter(torch.full((block_size, block_size), -torch.inf).triu(1))

    def hide(self, scores):
        return scores + self.mask[: scores.size(-1), : scores.size(-1)]


class TrainedMaskOfAnotherName(TrainedMask):
    def make_mask(self, block_size):
        self.future = nn.Parameter(torch.full((block_size, block_size), -torch.inf).triu(1))

    def hide(self, scores):
        return scores + self.future[: scores.size(-1), : scores.size(-1)]


class NeverBack(Base):
    def attend(self, q, k, v):
        return self.drop(softmax(causal(self, q, k).float())) @ v


class ManySequences(Base):
    def forward(self, x):
        out = super().forward(x)
        return torch.cat([out[:8], out[: len(out) - 8]]) if len(out) > 8 else out


class KeepsEarlierCalls(Base):
    def project(self, x):
        q, k, v = super().project(x)
        kept = vars(self).setdefault("kept", [])
        v = v + sum(kept)
        kept.append(v.mean().detach())
        return q, k, v


class DrawsWeights(Base):
    def project(self, x):
        q, k, v = super().project(x)
        return q, k, v @ torch.randn(v.size(-1), v.size(-1))


class InitialisesInForward(Base):
    def project(self, x):
        nn.init.normal_(self.W_value.weight)
        return super().project(x)


class CausalInTraining(Sdpa):
    def attend(self, q, k, v):
        p = self.drop.p if self.training else 0.0
        return F.scaled_dot_product_attention(q, k, v, dropout_p=p, is_causal=self.training)


class ProjectedTwice(Base):
    def __init__(self, d_in, d_out, block_size, dropout, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, block_size, dropout, num_heads, qkv_bias)
        self.mha = nn.MultiheadAttention(d_out, num_heads, dropout, batch_first=True)

    def forward(self, x):
        future = torch.ones(x.size(1), x.size(1), dtype=torch.bool, device=x.device).triu(1)
        return self.out_proj(self.mha(*self.project(x), attn_mask=future)[0])


class OwnValueOnly(Base):
    def attend(self, q, k, v):
        weights = self.drop(softmax(causal(self, q, k)))
        return torch.einsum("bhqk,bqhd->bqhd", weights, v.transpose(1, 2)).transpose(1, 2)


class OneHeadPastOutProj(Base):
    def forward(self, x):
        q, k, v = (self.split(each) for each in self.project(x))
        context = self.merge(self.attend(q, k, v))
        width = self.n_embd // self.n_head
        return torch.cat([context[..., :width], self.out_proj(context)[..., width:]], -1)


class Residual(Base):
    def forward(self, x):
        out = super().forward(x)
        return out + x if out.shape == x.shape else out


class HalfScores(Base):
    def attend(self, q, k, v):
        scores = (q.bfloat16() @ k.bfloat16().mT).to(q.dtype)
        return self.drop(softmax(self.hide(scores / k.size(-1) ** 0.5))) @ v


class OtherOrder(Base):
    def __init__(self, d_in, d_out, dropout, block_size, num_heads, qkv_bias=False):
        super().__init__(d_in, d_out, block_size, dropout, num_heads, qkv_bias)


class FixedDevice(Base):
    def hide(self, scores):
        n = scores.size(-1)
        return scores.masked_fill(self.below[0, 0, :n, :n].to("cpu") == 0, -torch.inf)


class PlainMask(Base):
    def make_mask(self, block_size):
        self.below = torch.ones(1, 1, block_size, block_size).tril()


# The steps that may be named, what is said and what must not be said.
FLAWED = [
    (TrainedMask, {6}, "register_buffer", "future"),
    (TrainedMaskOfAnotherName, {6}, "register_buffer", "future"),
    (NeverBack, {5, 7}, "After `.double()`", "outputs"),
    (ManySequences, {11}, "right at other sizes", "eval"),
    (KeepsEarlierCalls, {None, 2}, "kept", "dropped"),
    (DrawsWeights, {None, 2}, "drawn anew", "dropped"),
    (InitialisesInForward, {2}, "", "dropped"),
    (CausalInTraining, {6}, "future", "no score is masked"),
    (ProjectedTwice, {2}, "", "None"),
    (OwnValueOnly, {8}, "context", "scores`"),
    (OneHeadPastOutProj, {11}, "out_proj", "heads"),
    (Residual, {11}, "right at other sizes", "The heads"),
    (HalfScores, {5}, "scores", "softmax"),
    (OtherOrder, {1}, "", "argument"),
    (FixedDevice, {6}, "On a GPU it would fail", "attribute"),
    (PlainMask, {6}, "register_buffer", "`.cpu()`"),
]


@every(("cls", "steps", "said", "unsaid"), FLAWED, ids=lambda each: getattr(each, "__name__", ""))
def test_a_flaw_is_put_at_its_step_and_nothing_else_is_claimed(cls, steps, said, unsaid):
    verdict = check_attention(cls)
    assert not verdict.passed
    assert verdict.step in steps, verdict
    assert said in verdict.message and unsaid not in verdict.message, verdict


@every("cls", [cls for cls, *_ in FLAWED[::3]], ids=lambda cls: cls.__name__)
def test_the_exercise_passes_no_class_that_check_attention_objects_to(cls):
    outcome = check("your_class.1", cls, record=False)
    assert not outcome.passed and "constructor is right" not in outcome.message, outcome


class VmapOverHeads(Base):
    def attend(self, q, k, v):
        def head(q, k, v):
            return self.drop(softmax(self.hide(q @ k.mT / k.size(-1) ** 0.5)[0])) @ v

        return torch.vmap(head, in_dims=1, out_dims=1, randomness="different")(q, k, v)


class VmapOverBatch(Base):
    def forward(self, x):
        def one(x):
            return Base.forward(self, x[None])[0]

        return torch.vmap(one, randomness="different")(x)


def weigh(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    future = torch.ones(q.size(2), q.size(2), dtype=torch.bool, device=q.device).triu(1)
    scores = (q @ k.transpose(2, 3)).masked_fill(future, float("-inf"))
    return torch.softmax(scores / k.size(3) ** 0.5, dim=-1)


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    SCRIPTED = torch.jit.script(weigh)


class Scripted(Base):
    def attend(self, q, k, v):
        return self.drop(SCRIPTED(q, k)) @ v


@every("cls", [VmapOverHeads, VmapOverBatch, Scripted], ids=lambda cls: cls.__name__)
def test_a_right_class_is_right_however_it_is_written(cls):
    verdict = check_attention(cls)
    assert verdict.passed, verdict

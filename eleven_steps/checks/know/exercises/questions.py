"""The exercises that are answered with a number, with a letter, with an order of lines, or a test.

QUESTIONS holds those of questions.toml by name. QUIZZES are those that belong to no step, in the
order of the course; the others are among tasks.TASKS.
"""

from typing import Any

from eleven_steps.checks.know.catalogue import edited_source
from eleven_steps.checks.know.exercises.kinds import Catch, Choose, Explain, Line, Order, Quiz
from eleven_steps.checks.know.sentences import read

TOPICS = ("tensors", "why", "find", "foresee", "the_order", "the_test")


def question(
    identifier: str, slips: list[list] = (), lines: dict[str, list] | None = None, **rest: Any
) -> Explain | Choose | Order:
    """Make an exercise of what a TOML file says of it."""
    if lines:
        return Order(identifier, {letter: Line(*line) for letter, line in lines.items()})
    told = {}
    for first, *rest_of in slips:  # further wrong answers, then what is said of all of them
        said = tuple(each for each in rest_of if type(each) is str)
        for wrong in (first, *rest_of[: -len(said)]):
            told[tuples(wrong)] = said[0] if len(said) == 1 else said
    kind = Choose if type(rest["answer"]) is str else Explain
    return kind(identifier, slips=told, **{name: tuples(value) for name, value in rest.items()})


def tuples(value: Any) -> Any:
    """Return lists in lists as tuples in tuples."""
    return tuple(map(tuples, value)) if type(value) is list else value


QUESTIONS = {
    name: question(name, **entry) for name, entry in read("exercises/questions.toml").items()
}

# The classes that a learner's test is tried on: ten wrong ones, and three right ones.
WRONG = (
    "keys_from_W_query",
    "view_straight",
    "view_mixes_batch",
    "no_mask",
    "mask_off_by_one",
    "mask_not_cut",
    "scale_sqrt_d_out",
    "dropout_in_eval",
    "no_transpose_back",
    "heads_interleaved",
)

_FUSED = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.num_heads = num_heads
        self.dropout = nn.Dropout(dropout)
        self.out_proj = nn.Linear(d_out, d_out)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)

    def forward(self, x):
        layers = self.W_query, self.W_key, self.W_value
        heads = (layer(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2) for layer in layers)
        share = self.dropout.p if self.training else 0.0
        attend = nn.functional.scaled_dot_product_attention
        context = attend(*heads, dropout_p=share, is_causal=True)
        return self.out_proj(context.transpose(1, 2).flatten(2))
"""

_LOOPED = """
class MultiHeadAttention(nn.Module):
    def __init__(self, d_in, d_out, context_length, dropout, num_heads, qkv_bias=False):
        super().__init__()
        self.width = d_out // num_heads
        self.W_key = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_query = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.W_value = nn.Linear(d_in, d_out, bias=qkv_bias)
        self.out_proj = nn.Linear(d_out, d_out)
        self.dropout = nn.Dropout(dropout)
        self.register_buffer("past", torch.ones(context_length, context_length).tril())

    def forward(self, x):
        hidden = self.past[: x.shape[1], : x.shape[1]] == 0
        cut = (layer(x).split(self.width, -1) for layer in (self.W_query, self.W_key, self.W_value))
        contexts = []
        for queries, keys, values in zip(*cut):
            scores = torch.einsum("bqd,bkd->bqk", queries / self.width**0.5, keys)
            weights = scores.masked_fill(hidden, -torch.inf).softmax(-1)
            contexts.append(self.dropout(weights) @ values)
        return self.out_proj(torch.cat(contexts, -1))
"""

RIGHT = {
    "the course's own class": "",
    "a class that stores no mask and lets torch's fused function attend": _FUSED,
    "a class that loops over its heads and draws its weights in another order": _LOOPED,
}


REDRAWN = "the course's own class, its weights drawn from another random stream"


def source_of(name: str) -> list[str]:
    """Return the lines of a class, by a key of RIGHT, REDRAWN, or an identifier of a mistake."""
    if name == REDRAWN:
        before = "super().__init__()\n        torch.rand(1)"
        return edited_source().replace("super().__init__()", before, 1).strip().splitlines()
    source = RIGHT[name] if name in RIGHT else edited_source(name)
    return (source or edited_source()).strip().splitlines()


_EVERY: list[Quiz | Explain] = [*QUESTIONS.values(), Catch("the_test.1")]
QUIZZES: dict[str, Quiz | Explain] = {
    each.identifier: each
    for topic in TOPICS
    for each in _EVERY
    if each.identifier.partition(".")[0] == topic
}

"""The exercises of other kinds: to choose, to foresee, to put in order, to write a test.

MORE maps identifiers to tasks, in the order of the course.
"""

from collections.abc import Callable
from itertools import product

from eleven_steps.checks.know.exercises.kinds import Catch, Choose, Explain, Further, Line, Order

FORWARD = Order(
    "the_order.1",
    {
        "A": Line("context = context.contiguous().view(b, num_tokens, self.d_out)", 10),
        "B": Line("scores = queries @ keys.transpose(2, 3)", 5),
        "C": Line(
            "weights = torch.softmax(masked / self.d_out**0.5, dim=-1)", 7, "scale_sqrt_d_out"
        ),
        "D": Line("queries, keys, values = (each.transpose(1, 2) for each in three)", 4),
        "E": Line(
            "masked = scores.masked_fill(~self.mask[:num_tokens, :num_tokens], -torch.inf)",
            6,
            "mask_inverted",
        ),
        "F": Line("return self.out_proj(context)", 11),
        "G": Line("three = self.W_query(x), self.W_key(x), self.W_value(x)", 2),
        "H": Line("scores = keys @ queries.transpose(2, 3)", 5, "scores_transposed"),
        "I": Line("b, num_tokens, d_in = x.shape", 1),
        "J": Line(
            "queries, keys, values = (each.view(b, self.num_heads, num_tokens, -1) "
            "for each in three)",
            3,
            "view_straight",
        ),
        "K": Line("weights = torch.softmax(masked / self.head_dim**0.5, dim=-1)", 7),
        "L": Line("context = context.transpose(1, 2)", 9),
        "M": Line("three = [each.view(b, num_tokens, self.num_heads, -1) for each in three]", 3),
        "N": Line("context = context.view(b, num_tokens, self.d_out)", 10, "not_contiguous"),
        "O": Line("context = weights @ values", 8),
        "P": Line(
            "masked = scores.masked_fill(self.mask[:num_tokens, :num_tokens], -torch.inf)", 6
        ),
        "Q": Line("context = weights.transpose(2, 3) @ values", 8, "weights_transposed"),
    },
)


def _each(share: Callable[[int, int], float]) -> tuple[tuple[float, ...], ...]:
    """The matrix (3, 4) of share(row, column), where 4 * row + column stands in `table`."""
    return tuple(tuple(share(row, column) for column in range(4)) for row in range(3))


_LIST: tuple[Further | Explain, ...] = (
    Explain(
        "tensors.1",
        (2, 1, 5),
        {
            (2, 1, 7, 5): "That is `x[:, None]`: its sum has one axis fewer.",
            (2, 7, 5): "That sums the new axis away: it is axis 1, and the tokens are axis 2 now.",
            (2, 1, 7): "That sums over features: they are axis 3 now.",
            (2, 5): "The axis of length 1 is not summed away: it stays.",
            (1, 2, 5): "The colon stands for axis 0, so the new axis comes behind it.",
        },
    ),
    Explain(
        "tensors.2",
        (2, 3),
        {
            (1, 2): "That swaps heads and tokens: rows of 4 do not meet columns of 4 yet.",
            (1, 3): "That swaps heads and features: in front the heads have to stay.",
            (0, 1): "That swaps sequences and heads: the last two axes are what `@` multiplies.",
        },
        also=tuple(pair for pair in product((2, 3, -2, -1), repeat=2) if sum(pair) % 2),
        whole=True,
    ),
    Explain(
        "tensors.3",
        _each(lambda row, column: (4 * row + column) / (4 * row + 3)),
        {
            _each(lambda row, column: (4 * row + column) / 11): "That divides by the largest "
            "number of all: each row has its own.",
            _each(lambda row, column: (4 * row + column) / (8 + column)): "That divides by the "
            "largest number of each column: `dim=-1` runs along a row.",
            _each(lambda row, column: (4 * row + column) / (16 * row + 6)): "That divides by the "
            "sum of each row: `amax` gives the largest number.",
        },
    ),
    Explain(
        "tensors.4",
        (9, 1, 4),
        {
            (6, 1, 4): "The strides are right. Row 1, column 2 of u was row 2, column 1 before.",
            (5, 1, 4): "The strides are right. 5 is what `view(4, 3)` would have there.",
            (5, 3, 1): "That is `view(4, 3)`: a transpose walks the list in another order.",
            (6, 4, 1): "That is the matrix before its transpose.",
            (9, 4, 1): "The number is right. The transpose swaps the strides as well.",
        },
    ),
    Explain(
        "tensors.5",
        6,
        {
            294: "That is how many scores there are: each number of `future` serves one a head.",
            49: "That is how many numbers `future` has.",
            3: "That is once for each head: there are two sequences.",
            2: "That is once for each sequence: each has three heads.",
            1: "It is used again wherever an axis of it is missing.",
        },
    ),
    Explain(
        "why.1",
        (3, 2),
        {
            (12, 8): "That weighs by exp(score): divide by the sum, so that the weights sum to 1.",
            (4, 8): "That is the plain sum: take each value by its weight.",
            (2, 4): "That is the plain mean: take each value by its weight.",
            (1, 6): "The weights are the other way round: the larger score gets the larger one.",
        },
    ),
    Choose(
        "find.1",
        "B",
        {
            "A": "Columns would add up to 1 then. Add up a row of what came.",
            "C": "Without a scale hidden keys get 0 all the same: exp(-inf) is 0.",
            "D": "Row 0 has one score, -0.053, and two zeros then: nearly a third for each key.",
        },
    ),
    Choose(
        "find.2",
        "D",
        {
            "A": "That is right: token 0's row would hold 000 to 003, then 100 to 103.",
            "B": (
                "That takes the heads in turns: 000, 100, 001. What came takes tokens in turns.",
                "heads_interleaved",
            ),
            "C": (
                "That reads head 0 as it lies: 000 to 003, then 010. What came begins 000, 010.",
                "no_transpose_back",
            ),
        },
    ),
    Explain(
        "foresee.1",
        21,
        {
            36: "That counts the hidden ones too, and their weight is 0.",
            15: "That leaves out what each token gives itself.",
            6: "That counts one for each row: a row has as many as its query may look at.",
        },
    ),
    Explain(
        "foresee.2",
        1,
        {
            2: "With two heads, head 1 of token 0 lies behind all of head 0: a jump.",
            12: "With head_dim = 1 there are as many heads as features, and all of them swap.",
            0: "There is no attention without a head.",
        },
    ),
    Explain(
        "foresee.3",
        8,
        {
            2: "That is one head's part of the row: a row of the context holds all heads.",
            4: "That is the number of heads: each of them gives head_dim features.",
            64: "That is the whole matrix: one number of out meets one column.",
        },
    ),
    FORWARD,
    Catch("the_test.1"),
)

MORE: dict[str, Further | Explain] = {task.identifier: task for task in _LIST}

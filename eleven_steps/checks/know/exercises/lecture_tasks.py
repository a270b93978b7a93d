"""What each exercise asks: what a learner's function gets, what is right, which slips are usual.

TASKS maps identifiers to tasks, in the order of the course.
"""

from collections.abc import Callable

import torch

from eleven_steps.checks.know.exercises.kinds import Explain, Grow, Slip, Task, Write, catalogued
from eleven_steps.checks.know.exercises.many_tasks import LEARN, MANY
from eleven_steps.checks.know.exercises.since_tasks import SINCE
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.run.cases import PLACES, Case


def _each(step: str, *names: str) -> Callable[[Scene], Parts]:
    """Return what reads these tensors of a step off a scene."""
    return lambda scene: tuple(scene[step][name] for name in names)


_QKV = ("queries", "keys", "values")
_VIEWS = ("view_straight", "view_tokens_last", "view_mixes_batch")
_SCORES = (
    "keys_not_flipped",
    "keys_viewed",
    "products_not_summed",
    "scores_summed_over_heads",
    "scores_of_first_head",
    "scores_as_cosines",
    Slip(
        "The scores are already divided by the square root of head_dim: leave that to step 7.",
        lambda s: (s["scores"]["scores"] / s.case.head_dim**0.5,),
    ),
)
_MASKS = (
    "mask_inverted",
    "past_masked",
    "diagonal_masked",
    "mask_off_by_one",
    "mask_zero",
    "mask_too_weak",
    "mask_plus_inf",
    "mask_times_inf",
    "mask_added",
    "mask_not_cut",
    catalogued(  # the same in a new tensor, where torch words its error differently
        "mask_not_cut", lambda s: (s["scores"]["scores"].masked_fill(s.module.mask, 0),)
    ),
    "mask_on_first_head",
    "mask_on_first_item",
    Slip(
        "Scores that are 0 are hidden, wherever they stand: a token of the past may score 0 too. "
        "Let the mask say what is hidden.",
        lambda s: ((past := s["scores"]["scores"].tril()).masked_fill(past == 0, -torch.inf),),
    ),
)
_MASK_PLACES = (
    *PLACES,
    Case(2, 4, 5, 12, 3, 6, scale=0.0, called="where every score is 0"),
)
_SOFTMAXES = (
    "no_scale",
    "scale_head_dim",
    "scale_sqrt_num_heads",
    "scale_sqrt_num_tokens",
    "scale_multiplied",
    "scaled_after_softmax",
    catalogued("no_softmax", lambda s: (s["mask"]["masked"] / s.case.head_dim**0.5,)),
    "sigmoid_for_softmax",
    "softmax_twice",
    "softmax_over_queries",
    "softmax_over_heads",
    "softmax_over_batch",
    "softmax_over_all_pairs",
)
_CONTEXTS = (
    "values_added",
    Slip(
        "weights and values are multiplied element by element: a token's context is a sum over "
        "tokens, a matrix product.",
        lambda s: (s["softmax"]["weights"] * s["transpose"]["values"],),
    ),
)
_REFORMATS = ("no_transpose_back", "features_swapped_back", "last_dims_swapped_back")
_RESHAPED = Slip(
    "The numbers are only read in another shape: `view` and `reshape` keep their order in memory, "
    "so tokens and heads are mixed up. Swap the two axes.",
    lambda s: (s["context"]["context"].reshape(s["reformat"]["context"].shape),),
)
_COMBINES = ("not_contiguous", "heads_interleaved", "heads_averaged", "heads_summed")
_OUTS = ("out_proj_missing", "out_proj_twice", "out_proj_bias_not_added", "context_added")

_LIST: tuple[Task, ...] = (
    Write(
        "shape.1",
        lambda s: (s["shape"]["x"], s.case.d_out, s.case.num_heads),
        ("b", "num_tokens", "head_dim"),
        (
            catalogued("sizes_swapped", lambda s: (s.case.num_tokens, s.case.b, s.case.head_dim)),
            catalogued(
                "head_dim_not_divided", lambda s: (s.case.b, s.case.num_tokens, s.case.d_out)
            ),
            catalogued(
                "head_dim_from_d_in",
                lambda s: (s.case.b, s.case.num_tokens, s.case.d_in // s.case.num_heads),
            ),
        ),
        right=lambda s: (s.case.b, s.case.num_tokens, s.case.head_dim),
    ),
    Explain(
        "shape.2",
        64,
        {
            768: ("That is d_out: the heads share it.", "head_dim_not_divided"),
            9216: ("That gives every head d_out features: the heads share them.", "d_out_per_head"),
            12: "12 is the number of heads; the question is how many features each of them gets.",
        },
    ),
    Write(
        "shape.3",
        lambda s: (s["shape"]["x"], s.case.d_out, s.case.num_heads),
        ("head_dim",),
        (catalogued("head_dim_not_divided", lambda s: (s.case.d_out,)),),
        planted=catalogued("head_dim_from_d_in", lambda s: (s.case.d_in // s.case.num_heads,)),
        right=lambda s: (s.case.head_dim,),
    ),
    Write(
        "project.1",
        lambda s: (s["shape"]["x"], s.module.W_query, s.module.W_key, s.module.W_value),
        _QKV,
        (
            "keys_from_W_query",
            "queries_from_W_key",
            "queries_from_W_value",
            "keys_from_W_value",
            "queries_and_values_swapped",
            "keys_and_values_swapped",
            "weights_not_transposed",
            "bias_not_added",
            Slip(
                "W_query and W_key have changed places: W_query makes the queries, W_key the keys.",
                _each("project", "keys", "queries", "values"),
            ),
        ),
    ),
    Explain(
        "project.2",
        1_769_472,
        {
            589_824: "That is one of the three layers.",
            147_456: "That is one head's share of the three layers.",
            2_304: "That is how many features come out; each layer has 768 x 768 weights.",
            21_233_664: (
                "That gives every head layers as wide as d_out: the heads share them.",
                "d_out_per_head",
            ),
            1_771_776: "That counts biases too; without qkv_bias there are none.",
            2_359_296: "That counts out_proj too: three layers are asked for.",
        },
    ),
    Write(
        "project.3",
        lambda s: (s["shape"]["x"], s.module.W_key),
        ("keys",),
        ("bias_not_added",),
        planted="weights_not_transposed",
    ),
    Write(
        "view.1",
        lambda s: (s["project"]["queries"], s.case.num_heads),
        ("queries",),
        (*_VIEWS, "heads_and_head_dim_swapped"),
    ),
    Explain(
        "view.2",
        6,
        {
            7: ("That deals the features out to the heads one by one.", "head_dim_before_heads"),
            2: "That one belongs to head 0: heads are counted from 0.",
            10: "That one belongs to head 2: heads are counted from 0.",
            5: "That is feature 1 of head 1 with head_dim = 4: features are counted from 0.",
            9: "That is head 2, feature 1: the head is named first.",
        },
    ),
    Write(
        "view.3",
        lambda s: (s["project"]["values"], s.case.num_heads),
        ("values",),
        _VIEWS,
        planted="heads_and_head_dim_swapped",
    ),
    Write(
        "transpose.1",
        _each("view", "queries"),
        ("queries",),
        ("no_transpose", "features_before_tokens", "heads_last", "view_straight"),
    ),
    Explain(
        "transpose.2",
        12,
        {
            4: "That is one step along num_heads. The transpose moves no number in memory.",
            28: "A copy with the heads in one piece would walk so; the transpose copies nothing.",
            84: "That is one step along b.",
            1: "That is one step along head_dim.",
        },
    ),
    Write(
        "transpose.3",
        _each("view", *_QKV),
        _QKV,
        ("no_transpose", "queries_not_transposed", "values_not_transposed"),
        planted="keys_not_transposed",
    ),
    Write(
        "scores.1",
        _each("transpose", "queries", "keys"),
        ("scores",),
        ("scores_transposed", *_SCORES),
    ),
    Explain(
        "scores.2",
        43,
        {
            22: ("That is query 0 with key 1: a row belongs to a query.", "scores_transposed"),
            39: (
                "That multiplies query 1 with a column of the keys, not with a key.",
                "keys_not_flipped",
            ),
            19: "That is query 0 with key 0.",
            50: "That is query 1 with key 1.",
        },
    ),
    Write(
        "scores.3",
        _each("transpose", "queries", "keys"),
        ("scores",),
        _SCORES,
        planted="scores_transposed",
    ),
    Write(
        "mask.1",
        lambda s: (s["scores"]["scores"], s.module.mask),
        ("masked",),
        ("no_mask", *_MASKS),
        places=_MASK_PLACES,
    ),
    Explain(
        "mask.2",
        10,
        {
            15: ("That hides every token from itself too.", "diagonal_masked"),
            6: ("That leaves every token one of its future to see.", "mask_off_by_one"),
            20: "That hides the past as well: only the future is hidden.",
            25: "That hides everything: a token sees itself and its past.",
        },
    ),
    Write(
        "mask.3",
        lambda s: (s["scores"]["scores"], s.module.mask),
        ("masked",),
        _MASKS,
        planted="no_mask",
        places=_MASK_PLACES,
    ),
    Write(
        "softmax.1",
        lambda s: (s["mask"]["masked"], s.case.head_dim),
        ("weights",),
        _SOFTMAXES,
    ),
    Explain(
        "softmax.2",
        8,
        {
            32: "That is half of head_dim: in Python `64**1/2` is (64**1) / 2.",
            0.125: "That is what to multiply by; what the scores are divided by is asked for.",
            64: ("That is head_dim; its square root is asked for.", "scale_head_dim"),
            768**0.5: (
                "That is the square root of d_out: a score sums head_dim products.",
                "scale_sqrt_d_out",
            ),
            12**0.5: (
                "That is the square root of num_heads: a score sums head_dim products.",
                "scale_sqrt_num_heads",
            ),
        },
    ),
    Write(
        "softmax.3",
        lambda s: (s["mask"]["masked"], s.case.d_out, s.case.num_heads),
        ("weights",),
        _SOFTMAXES,
        planted="scale_sqrt_d_out",
    ),
    Write(
        "context.1",
        lambda s: (s["softmax"]["weights"], s["transpose"]["values"]),
        ("context",),
        ("weights_transposed", *_CONTEXTS),
    ),
    Explain(
        "context.2",
        (1, 3),
        {
            (4, 4): "That is the plain mean: take each token's values by its weight.",
            (12, 12): "That is the plain sum: take each token's values by its weight.",
            (3, 1): "The two are the other way round: token 0 has weight 0.25.",
            (0, 4): "Those are token 1's own values: it takes token 0's as well, by their weight.",
        },
    ),
    Write(
        "context.3",
        lambda s: (s["softmax"]["weights"], s["transpose"]["values"]),
        ("context",),
        _CONTEXTS,
        planted="weights_transposed",
    ),
    Write("reformat.1", _each("context", "context"), ("context",), (*_REFORMATS, _RESHAPED)),
    Explain(
        "reformat.2",
        25,
        {
            1: "They stand side by side in the new shape. In memory nothing has moved.",
            28: "That is from a head's first feature to the next head's first.",
            31: "That is 28 + 3: from the last feature on, 3 places of head 0 lie behind you.",
            4: "That is from a token to the next, within one head.",
        },
    ),
    Write("reformat.3", _each("context", "context"), ("context",), _REFORMATS, planted=_RESHAPED),
    Write(
        "combine.1",
        _each("reformat", "context"),
        ("context",),
        (
            *_COMBINES,
            Slip(
                "Tokens and heads are swapped once more: step 9 has put the tokens first.",
                lambda s: (s["context"]["context"].reshape(s["combine"]["context"].shape),),
            ),
        ),
    ),
    Explain(
        "combine.2",
        (1, 2, 3, 4, 5, 6),
        {
            (5, 6, 3, 4, 1, 2): "The heads are in the other order: head 0 comes first.",
            (4, 5, 6, 1, 2, 3): "The heads are in the other order: head 0 comes first.",
            (1, 3, 5, 2, 4, 6): (
                "That takes the heads in turns: they stay whole.",
                "heads_interleaved",
            ),
            (3, 4): ("That averages the heads: they are laid side by side.", "heads_averaged"),
            (9, 12): ("That adds the heads up: they are laid side by side.", "heads_summed"),
        },
    ),
    Write(
        "combine.3",
        _each("context", "context"),
        ("context",),
        _COMBINES,
        planted="no_transpose_back",
    ),
    Write(
        "out_proj.1",
        lambda s: (s["context"]["context"], s.module.out_proj),
        ("out",),
        (
            *_OUTS,
            "out_proj_transposed",
            "no_transpose_back",
            "not_contiguous",
            "heads_interleaved",
        ),
    ),
    Explain(
        "out_proj.2",
        2_360_064,
        {
            2_359_296: "Almost: one layer of the four has a bias.",
            1_769_472: ("That leaves out_proj out.", "out_proj_missing"),
            590_592: "That is out_proj alone.",
            21_824_256: "That counts the three layers once for each head: the heads share them.",
            3_408_640: "That counts the mask too: it is a buffer, nothing learned.",
            2_362_368: "That gives the other three layers a bias; without qkv_bias they have none.",
        },
    ),
    Write(
        "out_proj.3",
        lambda s: (s["combine"]["context"], s.module.out_proj),
        ("out",),
        _OUTS,
        planted="out_proj_transposed",
    ),
    Grow("your_class.1"),
)

_EVERY = (*_LIST, *LEARN, *SINCE, *MANY)
TASKS: dict[str, Task] = {task.identifier: task for task in _EVERY}

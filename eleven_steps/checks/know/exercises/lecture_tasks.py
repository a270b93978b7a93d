"""What each exercise asks: what a learner's function gets, what is right, which slips are usual.

TASKS maps identifiers to tasks, in the order of the course.
"""

from collections.abc import Callable, Iterator

import torch

from eleven_steps.checks.know.exercises.kinds import Grow, Slip, Task, Write, slip
from eleven_steps.checks.know.exercises.many_tasks import LEARN, MANY
from eleven_steps.checks.know.exercises.questions import QUESTIONS
from eleven_steps.checks.know.exercises.since_tasks import SINCE
from eleven_steps.checks.know.right import Parts, Scene
from eleven_steps.checks.run.cases import TASK_CASES, Case
from helpers.trace import STEPS


def _each(step: str, *names: str) -> Callable[[Scene], Parts]:
    """Return what reads these tensors of a step off a scene."""
    return lambda scene: tuple(scene[step][name] for name in names)


_QKV = ("queries", "keys", "values")
_VIEWS = ("view_straight", "view_tokens_last", "view_mixes_batch")


def _dealt(name: str) -> Slip:
    """Return the slip of a view that deals the features out to the heads in turns."""
    return slip(
        "head_dim_before_heads",
        lambda s: s["project"][name].unflatten(-1, (-1, s.case.num_heads)).transpose(2, 3),
    )


_SCORES = (
    "keys_not_flipped",
    "keys_viewed",
    "products_not_summed",
    "scores_summed_over_heads",
    "scores_of_first_head",
    "scores_as_cosines",
    slip("already_divided", lambda s: s["scores"]["scores"] / s.case.head_dim**0.5),
)


def _future(scene: Scene) -> torch.Tensor:
    """Return the mask, cut to the tokens there are."""
    return scene.module.mask[: scene.case.num_tokens, : scene.case.num_tokens]


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
    slip(  # the same in a new tensor, where torch words its error differently
        "mask_not_cut", lambda s: s["scores"]["scores"].masked_fill(s.module.mask, -torch.inf)
    ),
    "mask_on_first_head",
    "mask_on_first_item",
    slip("mask_multiplied", lambda s: s["scores"]["scores"] * _future(s)),
    slip(
        "mask_after_softmax",
        lambda s: s["scores"]["scores"].softmax(-1).masked_fill(_future(s), 0),
    ),
    slip(
        "zeros_hidden",
        lambda s: (past := s["scores"]["scores"].tril()).masked_fill(past == 0, -torch.inf),
    ),
)
_MASK_CASES = (*TASK_CASES, Case(2, 4, 5, 12, 3, 6, scale=0.0, called="where every score is 0"))
_SOFTMAXES = (
    "no_scale",
    "scale_head_dim",
    "scale_sqrt_num_heads",
    "scale_sqrt_num_tokens",
    "scale_multiplied",
    "scaled_after_softmax",
    slip("no_softmax", lambda s: s["mask"]["masked"] / s.case.head_dim**0.5),
    slip("no_exp", lambda s: (m := s["mask"]["masked"] / s.case.head_dim**0.5) / m.sum(-1, True)),
    slip("half_is_divided", lambda s: (s["mask"]["masked"] / s.case.head_dim / 2).softmax(-1)),
    "sigmoid_for_softmax",
    "softmax_twice",
    "softmax_over_queries",
    "softmax_over_heads",
    "softmax_over_batch",
    "softmax_over_all_pairs",
)
_CONTEXTS = (
    "values_added",
    slip("weights_times_values", lambda s: s["softmax"]["weights"] * s["transpose"]["values"]),
)
_REFORMATS = ("no_transpose_back", "features_swapped_back", "last_dims_swapped_back")
_RESHAPED = slip(
    "only_read_otherwise", lambda s: s["context"]["context"].reshape(s["reformat"]["context"].shape)
)
_COMBINES = ("not_contiguous", "heads_interleaved", "heads_averaged", "heads_summed")
_OUTS = ("out_proj_missing", "out_proj_twice", "out_proj_bias_not_added", "context_added")

_LIST: tuple[Task, ...] = (
    Write(
        "shape.1",
        lambda s: (s["shape"]["x"], s.case.d_out, s.case.num_heads),
        ("b", "num_tokens", "head_dim"),
        (
            slip("sizes_swapped", lambda s: (s.case.num_tokens, s.case.b, s.case.head_dim)),
            slip("head_dim_not_divided", lambda s: (s.case.b, s.case.num_tokens, s.case.d_out)),
            slip(
                "head_dim_from_d_in",
                lambda s: (s.case.b, s.case.num_tokens, s.case.d_in // s.case.num_heads),
            ),
        ),
        right=lambda s: (s.case.b, s.case.num_tokens, s.case.head_dim),
    ),
    Write(
        "shape.3",
        lambda s: (s["shape"]["x"], s.case.d_out, s.case.num_heads),
        ("head_dim",),
        (slip("head_dim_not_divided", lambda s: s.case.d_out),),
        planted=slip("head_dim_from_d_in", lambda s: s.case.d_in // s.case.num_heads),
        right=lambda s: s.case.head_dim,
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
            slip("queries_and_keys_changed", _each("project", "keys", "queries", "values")),
        ),
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
        (*_VIEWS, "heads_and_head_dim_swapped", _dealt("queries")),
    ),
    Write(
        "view.3",
        lambda s: (s["project"]["values"], s.case.num_heads),
        ("values",),
        (*_VIEWS, _dealt("values")),
        planted="heads_and_head_dim_swapped",
    ),
    Write(
        "transpose.1",
        _each("view", "queries"),
        ("queries",),
        (
            "no_transpose",
            "features_before_tokens",
            "heads_last",
            slip(
                "only_read_otherwise",
                lambda s: s["view"]["queries"].reshape(s["transpose"]["queries"].shape),
            ),
        ),
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
        cases=_MASK_CASES,
    ),
    Write(
        "mask.3",
        lambda s: (s["scores"]["scores"], s.module.mask),
        ("masked",),
        _MASKS,
        planted="no_mask",
        cases=_MASK_CASES,
    ),
    Write("softmax.1", lambda s: (s["mask"]["masked"], s.case.head_dim), ("weights",), _SOFTMAXES),
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
    Write(
        "context.3",
        lambda s: (s["softmax"]["weights"], s["transpose"]["values"]),
        ("context",),
        _CONTEXTS,
        planted="weights_transposed",
    ),
    Write("reformat.1", _each("context", "context"), ("context",), (*_REFORMATS, _RESHAPED)),
    Write("reformat.3", _each("context", "context"), ("context",), _REFORMATS, planted=_RESHAPED),
    Write(
        "combine.1",
        _each("reformat", "context"),
        ("context",),
        (
            *_COMBINES,
            slip(
                "swapped_once_more",
                lambda s: s["context"]["context"].reshape(s["combine"]["context"].shape),
            ),
        ),
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
        (*_OUTS, "out_proj_transposed", "no_transpose_back", "not_contiguous", "heads_interleaved"),
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


def _in_order() -> Iterator[Task]:
    """Every task, group by group: what is before the dot; within a group by number."""
    every = [*_LIST, *LEARN, *SINCE, *MANY, *QUESTIONS.values()]
    for group in (*STEPS, "your_class", "learn", "since", "many"):
        own = [task for task in every if task.identifier.partition(".")[0] == group]
        yield from sorted(own, key=lambda task: int(task.identifier.partition(".")[2]))


TASKS: dict[str, Task] = {task.identifier: task for task in _in_order()}

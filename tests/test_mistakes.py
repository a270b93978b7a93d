import pytest
import torch

from eleven_steps.checks.know.catalogue import MISTAKES, VARIANT_MISTAKES, show_lines, wrong_class
from eleven_steps.checks.run.contract import VARIANTS
from helpers.attention import MultiHeadAttention
from helpers.trace import STEPS


def build(cls, d_in, d_out, context_length, dropout, num_heads, **bias):
    torch.manual_seed(3)
    try:
        return cls(d_in, d_out, context_length, dropout, num_heads, **bias)
    except (AttributeError, TypeError, ValueError) as error:
        return error


def outcome(module, x):
    """The output, or the error's text."""
    if isinstance(module, Exception):
        return repr(module)
    torch.manual_seed(4)
    try:
        return module(x.clone())
    except (AttributeError, RuntimeError, TypeError, ValueError) as error:
        return repr(error)


def same(one, other):
    if type(one) is not type(other) or not isinstance(one, torch.Tensor):
        return isinstance(one, str) and one == other
    if one.shape != other.shape:
        return False
    return torch.allclose(one, other, atol=1e-6, equal_nan=True)


def fingerprint(cls):
    """Everything seen of a class: outputs at several sizes, training, gradients, parameters."""
    x = torch.randn(2, 7, 5, generator=torch.Generator().manual_seed(0))
    narrow, square = build(cls, 5, 12, 9, 0.0, 3), build(cls, 5, 12, 7, 0.5, 3, qkv_bias=True)
    seen = [outcome(narrow, x), outcome(square, x)]
    seen.append(
        outcome(build(cls, 12, 12, 9, 0.0, 3, qkv_bias=True), torch.cat([x, x, x], 2)[..., 3:])
    )
    seen.append(outcome(build(cls, 5, 20, 7, 0.0, 5, qkv_bias=False), x[:, :5]))
    seen.append(outcome(build(cls, 5, 20, 7, 0.0, 4, qkv_bias=False), x[:, :5]))
    large = 40 * torch.eye(5)[None]
    seen.append(outcome(build(cls, 5, 12, 9, 0.0, 3), 20 * large))
    if not isinstance(square, Exception):
        seen.append(outcome(square.eval(), x))
    if not isinstance(narrow, Exception):
        seen.append(str(sorted(narrow.state_dict())))
        if isinstance(out := outcome(narrow, x), torch.Tensor):
            if out.requires_grad:
                out.square().sum().backward()
            seen += [repr(parameter.grad) for parameter in narrow.parameters()]
    return seen


@pytest.fixture(scope="module")
def fingerprints(one_thread):
    return {each: fingerprint(wrong_class(each)) for each in MISTAKES}


def test_without_a_mistake_the_class_is_the_right_one():
    pairs = zip(fingerprint(wrong_class()), fingerprint(MultiHeadAttention), strict=True)
    assert all(same(one, other) for one, other in pairs)


def test_every_mistake_is_another_function(fingerprints):
    every = fingerprints | {"right": fingerprint(MultiHeadAttention)}
    names = list(every)
    for index, one in enumerate(names):
        for other in names[:index]:
            alike = len(every[one]) == len(every[other]) and all(
                map(same, every[one], every[other])
            )
            assert not alike, f"{one} and {other} come to the same"


def test_all_eleven_steps_have_mistakes_in_order():
    steps = [mistake.step for mistake in MISTAKES.values()]
    assert steps == sorted(steps)
    assert set(steps) == set(range(1, len(STEPS) + 1))
    made_in = [mistake.variant for mistake in VARIANT_MISTAKES.values()]
    assert made_in == sorted(made_in, key=list(VARIANTS).index)
    for identifier, mistake in (MISTAKES | VARIANT_MISTAKES).items():
        assert identifier == mistake.identifier
        assert set(mistake.steps) <= set(range(1, 12))
        assert len(set(mistake.steps)) == len(mistake.steps)
        assert mistake.sentence.endswith(".") and mistake.why.endswith(".")
        assert "+ " in show_lines(identifier)


def test_the_lines_are_shown_side_by_side():
    assert show_lines("no_scale") == (
        "- scaled = masked.div_(self.head_dim**0.5)\n+ scaled = masked"
    )


def test_two_mistakes_can_be_planted_at_once():
    source = show_lines("no_scale", "no_mask")
    assert "+ scaled = masked" in source and "+ masked = scores" in source

"""Look for a tensor of the right class among others, number by number.

All numbers of a case are random, so that each of them says which token, head and feature it is of.
"""

from collections.abc import Iterable

import torch

from eleven_steps.checks.run.cases import Case, close

NEAR = 2e-5  # of the same number, computed in another order


def place(
    tensor: torch.Tensor, right: torch.Tensor, factors: Iterable[float] = (1.0,)
) -> tuple[torch.Tensor, float] | None:
    """Say where each number of a tensor stands in the right one, and by what it is scaled.

    Args:
        tensor: any shape.
        right: the right numbers, all different.
        factors: by which the tensor may be scaled as a whole, besides the ratio of the largest.

    Returns:
        (places in the flat right tensor, in tensor's shape; the factor), or None where some
        number is not among the right ones.
    """
    if not tensor.numel() or not tensor.isfinite().all():
        return None
    largest = float(tensor.abs().max() / right.abs().max())
    values, order = right.flatten().sort()
    for factor in (*factors, largest):
        if factor < 1e-6:
            continue
        flat = tensor.flatten() / factor
        after = torch.searchsorted(values, flat).clamp(1, max(1, len(values) - 1))
        after = after.clamp(max=len(values) - 1)
        before = (after - 1).clamp(min=0)
        nearer = (values[after] - flat).abs() < (flat - values[before]).abs()
        nearest = torch.where(nearer, after, before)
        if ((values[nearest] - flat).abs() <= NEAR * (1 + right.abs().max())).all():
            return order[nearest].view_as(tensor), factor
    return None


def contained(right: torch.Tensor, tensors: list[torch.Tensor], factors: Iterable[float]) -> bool:
    """Whether every right number is among the tensors' numbers, scaled by one of the factors."""
    flat = [each.flatten() for each in tensors]
    pool = torch.cat(flat) if flat else torch.empty(0)
    pool = pool[pool.abs() <= 1.01 * right.abs().max()]  # what is farther out, -1e9 say, is none
    return len(pool) > 0 and any(place(right * each, pool) is not None for each in factors)


def exact(tensors: list[torch.Tensor], right: torch.Tensor, shaped: bool = True) -> bool:
    """Whether a tensor is the right one, scaled or not; if shaped, its shape counts too."""
    wanted = right.flatten()
    finite = wanted.isfinite()
    for each in tensors:
        if each.numel() != right.numel() or shaped and each.shape != right.shape:
            continue
        flat = each.flatten()
        factor = float(flat[finite] @ wanted[finite] / wanted[finite].square().sum())
        if factor > 1e-4 and close(flat / factor, wanted):
            return True
    return False


def arranged(places: torch.Tensor, case: Case) -> str:
    """Say how matrices (..., tokens, features) of queries, keys or values are laid out.

    Args:
        places: in the flat (b, num_tokens, d_out).
        case: the sizes.

    Returns:
        right; part (not all features of a head); repeated (some heads twice, others missing);
        order (tokens in another order); heads joined; sequences (tokens of one place in different
        sequences meet); mixed.
    """
    token, feature = places // case.d_out, places % case.d_out
    head, within = feature // case.head_dim, feature % case.head_dim
    rows, columns = places.shape[-2:]
    if columns == case.d_out > case.head_dim and (token == token[..., :1]).all():
        return "heads joined"
    if (token != token[..., :1]).any() or (head != head[..., :1, :1]).any():
        return "mixed"
    sequence, number = token // case.num_tokens, token % case.num_tokens
    if rows == case.b and rows != case.num_tokens:
        return "sequences"
    if (sequence != sequence[..., :1, :1]).any():
        return "mixed"
    if (within != torch.arange(columns)).any():
        ascending = columns == 1 or (within.diff(dim=-1) > 0).all()
        return "part" if columns < case.head_dim and ascending else "mixed"
    if rows > 1 and (number[..., 0].diff(dim=-1) != 1).any():
        return "order"
    if columns < case.head_dim:
        return "part"
    heads = (sequence * case.num_heads + head)[..., 0, 0].flatten()
    return "right" if len(heads.unique()) == len(heads) else "repeated"


def joined(places: torch.Tensor, case: Case) -> str:
    """Say how rows (..., d_out) of the combined context are laid out.

    Args:
        places: in the flat context (b, num_heads, num_tokens, head_dim).
        case: the sizes.

    Returns:
        right; tokens (a row holds several tokens, or stands at another's place); features.
    """
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    origin = torch.arange(b * n * h * d).view(b, h, n, d).transpose(1, 2).reshape(b * n, h * d)
    token_of = torch.empty(b * n * h * d, dtype=torch.long)
    token_of[origin] = torch.arange(b * n)[:, None].expand_as(origin)
    rows = places.reshape(-1, places.shape[-1])
    tokens = token_of[rows]
    if len(rows) != b * n or (tokens != torch.arange(len(rows))[:, None]).any():
        return "tokens"
    return "right" if rows.shape == origin.shape and torch.equal(rows, origin) else "features"

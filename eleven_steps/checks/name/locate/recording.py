"""A recorded forward beside the right one: what of each step is among its tensors."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import torch

from eleven_steps.checks.know.right import Scene, play
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.facts import Record
from eleven_steps.checks.run.recorder import Call, Held

NEAR = 2e-5  # of the same number, computed in another order
PRODUCTS = ("mm", "bmm", "mul", "mul_", "addmm", "baddbmm", "addbmm", "dot", "mv", "_trilinear")
NAMES = {"W_query": "queries", "W_key": "keys", "W_value": "values"}


@dataclass(frozen=True)
class Product:
    """A product of two tensors that are made of x: what was handed on to it."""

    left: Held
    right: Held
    call: Call

    @property
    def layers(self) -> frozenset[str]:
        """The layers that either side is made of."""
        return self.left.made_of | self.right.made_of


class Recording:
    """A recorded forward beside the right one: what there is of each step, looked up once."""

    def __init__(self, record: Record, case: Case):
        self.record, self.case = record, case
        self.right: Scene = play(case)
        self.factors = (1.0, case.head_dim**-0.5, case.head_dim**-0.25)

    @cached_property
    def held(self) -> list[Held]:
        """Every tensor that was recorded, in order, with what it is made of."""
        return [held for call in self.record.calls for held in call.gave]

    @cached_property
    def tensors(self) -> list[torch.Tensor]:
        """Every tensor that was recorded, in order."""
        return [held.tensor for held in self.held]

    def made(self, name: str) -> bool:
        """Whether the right queries, keys or values of step 2 are there."""
        wanted = self.right["project"][name]
        layers = {layer for layer, made in NAMES.items() if made == name}, {*NAMES}  # or fused
        pieces = [held.tensor for held in self.held if held.made_of in layers]
        return exact(self.tensors, wanted, False) or contained(wanted, pieces, self.factors)

    def reached(self, step: str, name: str) -> bool:
        """Whether the right tensor of a step is there, in its shape."""
        return exact(self.tensors, self.right[step][name])

    def done(self, step: str) -> bool:
        """Whether all right tensors of a step are there, in their shapes."""
        return all(self.reached(step, name) for name in self.right[step])

    def there(self, step: str, name: str) -> bool:
        """Whether the right numbers of a step are there, in whatever pieces and order."""
        wanted = self.right[step][name]
        scaled = self.factors if step == "scores" else (1.0,)
        context = [h for h in self.held if "W_value" in h.made_of and "out_proj" not in h.made_of]
        pieces = [h.tensor for h in context] if step == "context" else self.of_scores
        return exact(self.tensors, wanted, False) or contained(wanted, pieces, scaled)

    @cached_property
    def products(self) -> list[Product]:
        """Every product of two tensors that are made of x, layers aside."""
        products = []
        for call in (each for each in self.record.calls if each.name in PRODUCTS):
            given = [h for h in call.given if h.made_of and not self._is_layer(h.tensor)]
            if len(given) == 2:
                products.append(Product(*given, call))
        return products

    def _is_layer(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is a layer's weight or bias, or a piece of it."""
        weights = torch.cat([each.detach().flatten() for each in self.right.module.parameters()])
        return tensor.numel() <= len(weights) and place(tensor, weights) is not None

    @cached_property
    def scores(self) -> list[Product]:
        """The products that make scores: of tensors, none of which is made of scores."""
        sides = [(each.left.made_of, each.right.made_of) for each in self.products]
        if not sides or {"W_query", "W_key"} in sides[0]:  # made of both already, by no product
            return []
        first, pairs = self.products[0].layers, zip(self.products, sides, strict=True)
        return [product for product, both in pairs if not any(each >= first for each in both)]

    @property
    def by_element(self) -> bool:
        """Whether the scores are sums of products that are taken number by number."""
        return bool(self.scores) and self.scores[0].call.name.startswith("mul")

    @cached_property
    def scores_there(self) -> bool:
        """Whether the right scores are there: whole, or in pieces whose rows run over keys."""
        wanted, tokens = self.right["scores"]["scores"], self.case.num_tokens
        if exact(self.tensors, wanted, False):
            return True
        if not self.there("scores", "scores") or not self.scores:
            return False
        pieces = [place(each.call.gave[0].tensor, wanted, self.factors) for each in self.scores]
        return self.by_element or all(
            piece and (piece[0] % tokens == torch.arange(piece[0].shape[-1])).all()
            for piece in pieces
        )

    @cached_property
    def of_scores(self) -> list[torch.Tensor]:
        """Every tensor that is made of queries and keys and not of values."""
        return [each.tensor for each in self.held if each.made_of == {"W_query", "W_key"}]

    @cached_property
    def gathers(self) -> list[Product]:
        """The products of weights and values, the weights on the left."""
        met = frozenset().union(*(product.layers for product in self.scores))
        of_scores = met or frozenset(("W_query", "W_key"))
        gathers = []
        for each in self.products:
            made = [side.made_of for side in (each.left, each.right)]
            sides = [each >= of_scores and "W_value" not in each - of_scores for each in made]
            if sides == [True, False]:
                gathers.append(each)
            elif sides == [False, True]:
                gathers.append(Product(each.right, each.left, each.call))
        return gathers

    def in_order(self, pieces: list[torch.Tensor]) -> torch.Tensor | None:
        """The weights (b * num_heads, num_tokens, num_tokens), head by head of each sequence.

        They may come in pieces, and in the order in which a class folds or loops: the scores that
        were made before, piece by piece, say which is which.
        """
        square = self.case.num_tokens, self.case.num_tokens
        made = [product.call.gave[0].tensor for product in self.scores]
        if not pieces or any(each.shape[-2:] != square for each in (*made, *pieces)):
            return None
        matrices = torch.cat([each.reshape(-1, *square) for each in pieces])
        if len(matrices) != self.case.b * self.case.num_heads:
            return None
        scores = [place(each, self.right["scores"]["scores"], self.factors) for each in made]
        if None in scores:
            return matrices
        order = torch.cat([places.reshape(-1, *square)[:, 0, 0] for places, _ in scores])
        order = order // (square[0] * square[1])
        if not len(order.unique()) == len(order) == len(matrices):
            return matrices
        in_order = torch.empty_like(matrices)
        in_order[order] = matrices
        return in_order

    @cached_property
    def last(self) -> list[torch.Tensor]:
        """What is handed to out_proj, in one piece or several."""
        handed = []
        for call in self.record.calls:
            layer = [h for h in call.given if h.made_of == {"out_proj"}]
            context = [h for h in call.given if h.made_of and "out_proj" not in h.made_of]
            if layer and context and call.name in PRODUCTS:
                handed.append(context[0].tensor)
        return handed


# One tensor among others' numbers: all are random, so each says which token and feature it is of.


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
    if not (tensor.numel() and tensor.isfinite().all()):
        return None
    largest = float(tensor.abs().max() / right.abs().max())
    values, order = right.flatten().sort()
    for factor in (*factors, largest):
        if factor < 1e-6:
            continue
        flat = tensor.flatten() / factor
        after = torch.searchsorted(values, flat).clamp(min(1, len(values) - 1), len(values) - 1)
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
    wanted, finite = right.flatten(), right.flatten().isfinite()
    some, largest = wanted[finite], int(wanted.masked_fill(~finite, 0).abs().argmax())
    for each in tensors:
        if each.numel() != right.numel() or shaped and each.shape != right.shape:
            continue
        flat = each.flatten()
        factor = float(flat[finite] @ some / some.square().sum())
        near = factor > 1e-4 and abs(flat[largest] / factor / wanted[largest] - 1) < 1e-2
        if near and close(flat / factor, wanted):  # the largest alone tells most of them apart
            return True
    return False


def arranged(places: torch.Tensor, case: Case) -> str:
    """Say how matrices (..., tokens, features) of queries, keys or values are laid out.

    Args:
        places: in the flat (b, num_tokens, d_out).
        case: the sizes.

    Returns:
        right; part (not all features of a head); repeated (some heads twice, others missing); order
        (of tokens); shared (all heads, but not of all sequences); heads joined; sequences (tokens
        of one place in different sequences meet); mingled (tokens of several); mixed.
    """
    if places.shape[-2] > case.num_tokens and places.shape[-2] % case.num_tokens == 0:
        places = places.unflatten(-2, (-1, case.num_tokens))  # heads one below the other
    token, feature = places // case.d_out, places % case.d_out
    head, within = feature // case.head_dim, feature % case.head_dim
    rows, columns = places.shape[-2:]
    if columns == case.d_out > case.head_dim and (token == token[..., :1]).all():
        return "heads joined"
    if (token != token[..., :1]).any() or (head != head[..., :1, :1]).any():
        return "mixed"
    sequence, number = token // case.num_tokens, token % case.num_tokens
    if (sequence != sequence[..., :1, :1]).any():
        kind = "sequences" if rows == case.b != case.num_tokens else "mingled"
        return kind if kind == "sequences" or (within == torch.arange(columns)).all() else "mixed"
    if (within != torch.arange(columns)).any():
        ascending = columns == 1 or (within.diff(dim=-1) > 0).all()
        return "part" if columns < case.head_dim and ascending else "mixed"
    if rows > 1 and (number[..., 0].diff(dim=-1) != 1).any():
        return "order"
    if columns < case.head_dim:
        return "part"
    heads = heads_of(places, case)
    if len(heads.unique()) == len(heads):
        return "right"
    return "shared" if len((heads % case.num_heads).unique()) == case.num_heads else "repeated"


def heads_of(places: torch.Tensor, case: Case) -> torch.Tensor:
    """The head, counted through the batch, that each matrix (tokens, features) is of."""
    first, sequence = places[..., 0, 0].flatten(), case.num_tokens * case.d_out
    return first // sequence * case.num_heads + first % case.d_out // case.head_dim


def joined(places: torch.Tensor, case: Case) -> str:
    """Say how rows (..., d_out) of the combined context are laid out.

    Args:
        places: in the flat context (b, num_heads, num_tokens, head_dim).
        case: the sizes.

    Returns:
        right; sequences (a row holds another sequence's context); tokens (that of several); order
        (one's, at another's place); features; or "1, 0, 2", the heads in their own other order.
    """
    b, n, h, d = case.b, case.num_tokens, case.num_heads, case.head_dim
    rows = places.reshape(-1, h * d) if places.numel() == b * n * h * d else places[:0]
    head, token, within = rows // (n * d), rows // d % n, rows % d
    own = torch.arange(len(rows))[:, None]
    if (head // h != own // n).any():
        return "sequences"
    if not len(rows) or (token != token[:, :1]).any():
        return "tokens"
    if (token != own % n).any():
        return "order"
    lying = (head % h)[:, ::d]
    whole = (head % h == lying.repeat_interleave(d, 1)) & (within == torch.arange(d).repeat(h))
    if not whole.all() or (lying != lying[0]).any():
        return "features"
    order = lying[0].tolist()
    return "right" if order == sorted(set(order)) else ", ".join(map(str, order))

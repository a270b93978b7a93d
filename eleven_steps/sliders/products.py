"""Show the block of columns of a product that makes one head's queries, as a film."""

from eleven_steps.pictures import Picture, Shown, draw_product
from eleven_steps.sliders.film import Film, film
from eleven_steps.sliders.lesson import run, tokens


def explore_blocks() -> Film:
    """Move num_heads and the head whose block of W_query makes that head's queries."""
    return film(
        block_at, {"num_heads": 2}, num_heads=(1, 2, 3, 6), head=lambda num_heads: range(num_heads)
    )


def block_at(num_heads: int, head: int) -> Picture:
    """Draw one head's queries = x @ its columns of W_query."""
    mha, steps = run(6, num_heads)
    block = mha.W_query.weight.detach().chunk(num_heads)[head].T
    return draw_product(
        Shown(tokens()[0], "x", "num_tokens d_in"),
        Shown(block, f"block {head} of W_query", "d_in head_dim", only_head=head),
        Shown(
            steps["transpose"]["queries"][0, head],
            f"queries of head {head}",
            "num_tokens head_dim",
            only_head=head,
        ),
        row=1,
        column=0,
    )

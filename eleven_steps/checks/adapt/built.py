"""How a constructor of somebody else's is called: which of our sizes each parameter asks for."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

# What a size is called elsewhere. A width is that of x and of the output, both at once.
WORDS = {
    "d_in": "d_in dim_in in_dim input_dim d_input input_size in_features",
    "d_out": "d_out dim d_model n_embd embed_dim emb_dim embedding_dim embed_size emb_size emb "
    "hidden_size hidden_dim model_dim dim_out out_dim d_embed n_hidden num_hiddens width channels",
    "num_heads": "num_heads n_heads n_head heads nhead nheads num_head num_attention_heads h",
    "head_dim": "head_dim dim_head d_k d_v d_head d_key d_value d_kv head_size attention_head_size",
    "context_length": "context_length block_size n_ctx max_len max_length seq_len max_seq_len "
    "max_seq_length n_positions max_position_embeddings context_size",
    "dropout": "dropout attn_drop attn_dropout dropout_p dropout_prob dropout_rate attn_pdrop "
    "attention_dropout attention_probs_dropout_prob p_drop drop",
    "qkv_bias": "qkv_bias bias use_bias add_bias attention_bias",
    "causal": "causal is_causal masked is_decoder autoregressive",
}
# Dropout of the output, which the lecture's class does not have.
NOTHING = "proj_drop resid_drop resid_pdrop resid_dropout out_drop proj_dropout hidden_dropout_prob"
SIZE_OF = {word: size for size, words in WORDS.items() for word in words.split()}
SIZE_OF |= dict.fromkeys(NOTHING.split(), "nothing")
CONFIGS = {"config", "cfg", "args", "conf", "hparams", "params", "opt"}

Build = Callable[..., Any]


class Config(dict):
    """Our sizes under every name, as keys and as attributes; it remembers which were asked for."""

    def __init__(self, sizes: dict[str, Any]):
        super().__init__({w: sizes[size] for w, size in SIZE_OF.items() if size in sizes})
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        self.asked.add(SIZE_OF[name])
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name not in self:
            raise AttributeError(name)
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        """As a dictionary's get."""
        return self[name] if name in self else default  # noqa: SIM401, that is this function


def built(build: Build, sizes: dict[str, Any]) -> tuple[Any, set[str]]:
    """Call a constructor, or a function that builds, with the sizes that its parameters ask for.

    Args:
        build: its parameters bear our names, or usual ones; a config gets all of them.
        sizes: by our names.

    Returns:
        (what it returns, the names of the sizes that it asked for).

    Raises:
        TypeError: a parameter without a default asks for something else.
    """
    asked, positional, named = set(), [], {}
    config = Config(sizes)
    for parameter in _parameters(build):
        size = SIZE_OF.get(parameter.name, parameter.name)
        if size in sizes:
            asked.add(size)
            value = sizes[size]
        elif parameter.name in CONFIGS and parameter.default is parameter.empty:
            value = config
        elif parameter.default is parameter.empty:
            raise TypeError(f"{parameter.name!r} is none of our sizes")
        else:
            continue
        if parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(value)
        else:
            named[parameter.name] = value
    made = build(*positional, **named)
    return made, (asked | config.asked) - {"nothing"}


def needs(build: Build) -> list[str]:
    """The parameters without a default."""
    return [each.name for each in _parameters(build) if each.default is each.empty]


def _parameters(build: Build) -> Iterator[inspect.Parameter]:
    for parameter in inspect.signature(build).parameters.values():
        if parameter.kind not in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            yield parameter

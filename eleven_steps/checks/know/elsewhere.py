"""The lecture's lines as eleven_steps.beyond.variants has them, and what a change rules out."""

import re
from collections.abc import Mapping

# What each line's words are called there.
_WORDS = {
    "softmax": {"future": "hidden", "self.head_dim": "self.key_dim"},
    "scaled": {"self.head_dim": "self.key_dim"},
    "scores": {"self.head_dim": "self.key_dim"},
    "masked": {"future": "hidden"},
    "future": {"num_tokens": "end"},
}
_VIEWS = {
    "queries": {"head_dim": "key_dim"},
    "keys": {"num_tokens": "num_keys", "num_heads": "num_kv_heads", "head_dim": "key_dim"},
    "values": {"num_tokens": "num_keys", "num_heads": "num_kv_heads"},
}
_PROJECTIONS = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
_FEW_HEADS = "nn.Linear(mha.d_in, self.num_kv_heads * mha.head_dim, bias=bias)"  # of GroupedHeads
_LAYER = {
    "num_heads * d_out": "d_out",  # head_dim is d_out then
    "d_out": "self.num_kv_heads * mha.head_dim",
    "d_in": "mha.d_in",
    "qkv_bias": "bias",
}
_WEIGHTS = 'weights = replacing("softmax", self)(call, scaled)'
_BUFFER = 'self.register_buffer("mask", future_mask(context_length))'
_BUILDERS = {"gqa", "other", "gate", "latent"}
_IN_PARTS = {"self": "call.mha", "num_tokens": "scores.shape[-2]"}


def in_variants(edits: Mapping[str, str], lines: Mapping[str, str], source: str) -> dict[str, str]:
    """Return what edits of the lecture's lines are in the source of the variants.

    Args:
        edits: by the name of a line, or by its text.
        lines: the lecture's, by name.
        source: of eleven_steps.beyond.variants.
    """
    found: dict[str, str] = {}
    for line, new in edits.items():
        old, made = lines.get(line, line), new.partition(" = ")[2]
        words = _WORDS.get(line, {})
        if line in _PROJECTIONS:  # of x, of another sequence, of a latent
            for call in re.finditer(rf"\b(self|mha)\.{_PROJECTIONS[line]}\(([\w.]+)\)", source):
                found[call[0]] = _worded(made, {"self": call[1], "x": call[2]})
        elif line == "split":
            for name, sizes in _VIEWS.items():
                right, other = (_worded(text, sizes) for text in (old, new))
                view = f"{name} = {name}.view("
                found[right.replace("split = (", view)] = other.replace("split = (", view)
        elif line == "future":
            whole = _worded(made, words)
            found["hidden = self.mask[start:end, :end]"] = f"hidden = ({whole})[start:end]"
        elif line == "softmax" and old in new:
            found[_WEIGHTS] = _worded(new.replace(old, _WEIGHTS), words)
        elif line == "softmax":
            for scaled in "scaled", "torch.cat([scaled, sinks], dim=-1)":
                found[f"torch.softmax({scaled}, dim=-1)"] = made.replace("scaled", scaled)
        else:
            found[_worded(old, words)] = _worded(new, words)
        if line == "scaled" and (root := _root(made)):  # by which parts undo the division
            found["call.mha.key_dim**0.5"] = _worded(_worded(root, words), _IN_PARTS)
        if line in ("W_key", "W_value"):
            found[_FEW_HEADS] = _worded(made, _LAYER)
    return found


def _worded(text: str, words: Mapping[str, str]) -> str:
    """Return a text with some words in place of others."""
    for word, other in words.items():
        text = re.sub(rf"\b{re.escape(word)}\b", other, text)
    return text


def _root(scaled: str) -> str:
    """Return what scores are divided by in a line, where it is that and no more."""
    form = re.fullmatch(r"masked(?:\.(div|mul)_\((.*)\))?", scaled)
    if not form:
        return ""
    return {None: "1", "div": form[2], "mul": f"1 / {form[2]}"}[form[1]]


def refused(identifier: str, step: str, edits: Mapping[str, str], changes: tuple[str, ...]) -> str:
    """Return why a mistake of the lecture cannot be made where there are changes, or nothing."""
    hiding_nothing = {"full", "other"} & {*changes}
    if "linear" in changes and step in ("mask", "softmax"):
        return "linear has no softmax, and step 6 hides nothing from one"
    if hiding_nothing and {"future", _BUFFER} & edits.keys():
        return "there is no mask of the future"
    if hiding_nothing and step == "mask" and identifier != "scores_lost":
        return "" if "padding" in changes else "nothing is hidden"
    if identifier == "weights_tied" and {"gqa", "latent"} & {*changes}:
        return "W_query and W_key are of different sizes, so they cannot be one layer"
    if identifier == "layers_in_plain_list" and (builder := _BUILDERS & {*changes}):
        return f"{min(builder)} asks these layers for their sizes, and a list has none"
    if "latent" in changes and identifier in ("d_in_and_d_out_swapped", "projected_to_d_in"):
        return "latent builds these layers between other widths"
    if identifier == "mask_after_softmax_renormalised" and (small := {"norm", "cap"} & {*changes}):
        return f"{min(small)} keeps the scores small, so rows divided by their sum are right again"
    return ""

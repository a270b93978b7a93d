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
_HEADS = {
    "queries": {"self.head_dim": "self.key_dim"},
    "keys": {"self.num_heads": "self.num_kv_heads", "self.head_dim": "self.key_dim"},
    "values": {"self.num_heads": "self.num_kv_heads"},
}
_PROJECTIONS = {"queries": "W_query", "keys": "W_key", "values": "W_value"}
_FEW_HEADS = re.compile(r"nn\.Linear\(mha\.d_in, (.+), bias=bias\)")  # the first: of GroupedHeads
_WEIGHTS = 'weights = replacing("softmax", self)(call, scaled)'
_IN_PARTS = {"self": "call.mha", "num_tokens": "scores.shape[-2]"}


def in_variants(edits: Mapping[str, str], lines: Mapping[str, str], source: str) -> dict[str, str]:
    """Return what edits, by a line's name or its text, are in eleven_steps.beyond.variants."""
    found: dict[str, str] = {}
    for line, new in edits.items():
        old, made = lines.get(line, line), new.partition(" = ")[2]
        words = _WORDS.get(line, {})
        if line in _PROJECTIONS:  # of x, of another sequence, of a latent
            for call in re.finditer(rf"\b(self|mha)\.{_PROJECTIONS[line]}\(([\w.]+)\)", source):
                found[call[0]] = _worded(made, {"self": call[1], "x": call[2]})
        elif line == "split":
            for name, heads in _HEADS.items():
                view = re.search(rf"{name} = {name}\.\w+\(.*_heads.*\)", source)[0]
                sizes = _worded(new, heads | {"num_tokens": f"{name}.shape[1]"})
                found[view] = sizes.replace("split = ", f"{name} = {name}.view")
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
        if line in ("W_key", "W_value"):  # which gqa builds anew
            layer = _FEW_HEADS.search(source)
            sizes = {"num_heads * d_out": "d_out", "d_out": layer[1], "d_in": "mha.d_in"}
            found[layer[0]] = _worded(made, sizes | {"qkv_bias": "bias"})
    return found


def _worded(text: str, words: Mapping[str, str]) -> str:
    for word, other in words.items():
        text = re.sub(rf"\b{re.escape(word)}\b", other, text)
    return text


def _root(scaled: str) -> str:
    """Return what scores are divided by in a line, where it is that and no more."""
    form = re.fullmatch(r"masked(?:\.(div|mul)_\((.*)\))?", scaled)
    if not form:
        return ""
    return {None: "1", "div": form[2], "mul": f"1 / {form[2]}"}[form[1]]


_OTHER_WIDTHS = "latent", "these layers are built between other widths"
_RULED_OUT = {  # beside which changes mistakes make no sense, and why
    "weights_tied": ("gqa latent", "W_query and W_key differ in size and cannot be one layer"),
    "layers_in_plain_list": (
        "gqa other gate latent",
        "the constructor asks these layers for their sizes, and a list has none",
    ),
    "d_in_and_d_out_swapped": _OTHER_WIDTHS,
    "projected_to_d_in": _OTHER_WIDTHS,
    "mask_after_softmax_renormalised": ("norm cap", "no score grows so large that it shows"),
    "padding_after_softmax": ("linear", "linear has no softmax"),
    "padding_nan": ("full other sinks linear", "no row of weights is without a number"),
}
_OF_THE_FUTURE = {"future", 'self.register_buffer("mask", future_mask(context_length))'}


def ruled_out(name: str, changes: tuple[str, ...]) -> str:
    """Return why a mistake makes no sense beside some changes, or nothing where it does."""
    beside, reason = _RULED_OUT.get(name, ("", ""))
    return reason if {*beside.split()} & {*changes} else ""


def has_no_place(name: str, step: str, edits: Mapping[str, str], changes: tuple[str, ...]) -> str:
    """Return why what a mistake of the lecture changes is not there beside changes, or nothing."""
    if "linear" in changes and step in ("mask", "softmax"):
        return "linear has no softmax, and no scores are hidden from one"
    if "unscaled" in changes and "scaled" in edits:
        return "the scores are not divided"
    if not {"full", "other"} & {*changes}:
        return ""
    if _OF_THE_FUTURE & edits.keys():
        return "no mask of the future is made"
    nothing_hidden = "padding" not in changes and step == "mask" and name != "scores_lost"
    return "nothing is hidden" if nothing_hidden else ""

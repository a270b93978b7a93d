"""What torch's words mean, where that is always so, and a name that is read before it is made."""

import re

from eleven_steps.checks.judge.path import Walk
from eleven_steps.checks.judge.roles import kind
from eleven_steps.checks.judge.tried import parsed, set_in
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.recording import Stop

REDUCE = {"sum", "mean", "amax", "amin", "norm", "logsumexp", "std", "var"}

# What torch says, and our word for it, where that is always so.
EXPLAINED = {
    "view size is not compatible": "moved_before_view",
    "'NoneType'": "is_none",
    "shape of the mask": "picked_by_mask",
    "must be a matrix": "matrices_alone",
    "must be a 3D tensor": "matrices_alone",
    "'Linear'": "layer_called",
    "must be Tensor, not int": "number_for_tensor",
    "length of the desired ordering": "every_axis",
    "bitwise_xor": "no_power",
    "selected index k out of range": "topk_at_most",
    "1D tensors expected": "rows_alone",
    "got (Tensor, str": "text_for_number",
    "Softmax.__init__()": "built_then_called",
    "but got float": "whole_sizes",
    "'float' object": "whole_sizes",
    "transpose() takes 2": "two_axes_alone",
    'required "forward"': "no_forward",
    "forward() missing": "x_alone",
}


def hint_of(error: str, walked: Walk | None = None) -> str:
    """What torch's words mean, where that is always so."""
    hint = next((wording(name) for said, name in EXPLAINED.items() if said in error), "")
    op = walked.trace.ops[-1] if walked and walked.trace.ops else None
    if hint or not op or not op.failed:
        return hint
    if (
        "is invalid for input" in error
        and op.place
        and re.search(r"\((\d+, )+\d+\)", op.place.text)
    ):
        return wording("sizes_typed")
    return _axis_lost(walked)


def _axis_lost(walked: Walk) -> str:
    """Say which call has taken an axis away that the failing one needs, if one has."""
    op, tensors = walked.trace.ops[-1], walked.trace.tensors
    most = max((tensors[i].dim() for i in op.given), default=0)
    for index in op.given:
        while tensors[index].dim() < most and index in walked.makers:
            made = walked.trace.ops[walked.makers[index][0]]
            if not made.given:
                break
            index = made.given[0]
            if kind(made) in REDUCE and tensors[index].dim() == most:
                return wording("kept_axis", name=kind(made))
    return ""


def unbound(error: str, walked: Walk) -> str:
    """Where a name is made that is read before; else what torch's or Python's words mean."""
    lost, stop = re.search(r"(?:variable|name) '(\w+)'", error), walked.trace.stop
    if stop and stop.place and (several := _several(walked, stop)):
        return several
    if not lost or not stop or not stop.place:
        return hint_of(error)
    if lost[1] in stop.several:
        return ""
    lines = [n + walked.trace.first - 1 for n, _ in set_in(parsed(walked.trace.source), lost[1])]
    if lines and min(lines) >= stop.place.line:
        name = "made_here" if min(lines) == stop.place.line else "made_later"
        return wording(name, name=lost[1], line=min(lines))
    return ""


def _several(walked: Walk, stop: Stop) -> str:
    """Which name of the line stands for several tensors where one is wanted."""
    for name, each in stop.several.items():
        if re.search(rf"\b{name}\b", stop.place.expression) and (
            made := walked.makers.get(each[-1])
        ):
            place = walked.trace.ops[made[0]].place
            line = wording("of_line", line=place.line) if place else ""
            return wording("is_several", name=name, count=len(each), line=line)
    return ""

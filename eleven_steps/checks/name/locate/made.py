"""What forward makes: of a right tensor by a usual thing, or numbers of half precision."""

from dataclasses import replace

import torch

from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.causes import applied
from eleven_steps.checks.name.locate.recording import NAMES, Recording
from eleven_steps.checks.name.say import Finding, say, together

HALVES = torch.bfloat16, torch.float16


def rounded(recording: Recording) -> Finding | None:
    """Where numbers become such as half precision has: they are random, so none is by itself."""
    for held in recording.held:
        some = held.tensor[held.tensor.isfinite() & (held.tensor % 0.125 != 0)]
        kinds = (k for k in HALVES if torch.equal(some.to(k).to(some.dtype), some))
        if held.made_of and len(some) > 8 and (kind := next(kinds, None)):
            step = 11 if "out_proj" in held.made_of else 8
            if held.made_of <= {"W_query", "W_key"}:
                step = 7 if recording.scores_there else 5
            if len(held.made_of) == 1:
                name = NAMES.get(*held.made_of)
                step = step if name is None or recording.reached("transpose", name) else 2
            return say("in_half", step, dtype=kind)
    return None


def with_cause(recording: Recording, finding: Finding, name: str, *rights: torch.Tensor) -> Finding:
    """Add to a finding what forward makes of a right tensor, by whatever name, if it makes it."""
    tensors = [each.squeeze() for each in reversed(recording.tensors) if each.dim() > 1]
    tensors = [each for each in tensors if each.dim() > 1]
    for right in rights:
        if code := applied([*tensors, *(each.mT for each in tensors)], right, name):
            return replace(finding, text=together(finding.text, wording("is_made", code=code)))
    return finding

"""Say what a learner's code raised, with torch's sizes as letters."""

import itertools
import math
import re
from dataclasses import replace

from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.name.say import Finding, say, together
from eleven_steps.checks.run.cases import Case
from eleven_steps.checks.run.isolate import Failure

# Where torch's own words say that the rows of one matrix do not fit the columns of another. Its
# mat1 may be the right operand: a weight `@` a tensor of more axes it turns, and swaps the two.
PRODUCTS = {
    r"mat1 and mat2 shapes .*\(\d+x(\d+) and (\d+)x\d+\)": "rows_or_columns",
    r"batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]": "rows_meet_columns",
}
# What else torch says, and our word for it.
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
}


def say_raised(what: str, failure: Failure, case: Case, step: int | None = None) -> Finding:
    """Say what a learner's function or forward raised, and which letters its sizes are."""
    line = wording("in_the_line", line=failure.line) if failure.line else ""
    raised = say("raises", step, what=what, error=failure.text, where=case.where, line=line)
    said = legend(failure.text, case)
    if "must match the size" in failure.text and "keepdim" not in failure.line:
        lost = re.search(r"\.(sum|mean|amax|norm|std)\(", failure.line)
        said = together(said, wording("drops_axis", name=lost[1]) if lost else "")
    return replace(raised, text=together(raised.text, said), case=case)


def legend(text: str, case: Case) -> str:
    """Say which letters the sizes in an error's text are, where all sizes differ."""
    for said, name in EXPLAINED.items():
        if said in text:
            return wording(name)
    if "TypeError" in text:  # these are counts of arguments
        return ""
    for pattern, name in PRODUCTS.items():
        if found := re.search(pattern, text):
            one, other = (_with_letter(int(size), case) for size in found.groups())
            return wording(name, one=one, other=other)
    if found := re.search(r"shape '\[([\d, ]+)\]' is invalid for input of size (\d+)", text):
        held = math.prod(map(int, found[1].split(",")))
        return wording("shape_holds", held=held, size=found[2])
    axis = ""
    if found := re.search(r"a \((\d+)\) must .* b \((\d+)\) at non-singleton dimension (\d)", text):
        axis = wording("axes_differ", one=found[1], other=found[2], axis=found[3])
    text = re.sub(r"(pos|position|argument|dim|dimension|index) \d+", "", text)  # no sizes
    numbers = dict.fromkeys(int(each) for each in re.findall(r"(?<![\w.])\d+(?![\w.])", text))
    named = ((n, lettered(n, case)) for n in numbers if n > 1)
    sizes = ", ".join(f"{n} is {name}" for n, name in named if name)
    return together(axis, wording("here", sizes=sizes) if sizes else "")


def lettered(size: int, case: Case) -> str:
    """The letter of a size, or the product of letters that it is, if only one comes to it."""
    letters = case.letters
    if case.context_length == case.num_tokens:
        del letters["context_length"]
    if len({*letters.values()}) < len(letters):
        return ""
    parts = "num_tokens", "num_heads", "head_dim"
    groups = [(name,) for name in letters]
    groups += [g for count in (2, 3) for g in itertools.combinations(parts, count)]
    fitting = [g for g in groups if math.prod(letters[name] for name in g) == size]
    return " * ".join(fitting[0]) if fitting else ""


def _with_letter(size: int, case: Case) -> str:
    name = lettered(size, case)
    return f"{size} ({name})" if name else str(size)

"""Follow one number through the eleven steps: what it comes from, where it goes."""

from collections.abc import Sequence

from eleven_steps.pictures.panels import OPERATIONS, ROWS, SPACE, line, named, panel, row
from eleven_steps.pictures.reach import Followed, find, reach
from eleven_steps.pictures.svg import Drawing, Picture, below, number, picture
from eleven_steps.pictures.tensors import TracedStep

MOST = 20_000  # numbers in a tensor: more would not fit a panel as cells


def draw_follow(
    trace: Sequence[TracedStep], name: str, index: Sequence[int], steps: Sequence[str] = ()
) -> Picture:
    """Draw the steps with only the numbers that one number comes from or touches.

    Args:
        trace: the eleven steps of a trace.
        name: "view.queries" for the queries of step 3; the name alone where no other tensor of
            as many axes has it, as in "scores".
        index: where in that tensor the number stands.
        steps: names of the steps to draw; all eleven where it is empty.

    Raises:
        ValueError: there is no such tensor, index or step, or the tensors are too large to draw
            cell by cell.
    """
    if unknown := [step for step in steps if step not in OPERATIONS]:
        raise ValueError(f"no step is called {unknown[0]!r}: expected {', '.join(OPERATIONS)}")
    key, index = find(trace, name, index)
    for step in trace:
        for each, numbers in step.tensors.items():
            if numbers.is_meta or numbers.numel() > MOST:
                raise ValueError(
                    f"{each} at step {step.name} has shape {step.letters} = "
                    f"{tuple(numbers.shape)}: numbers are expected, at most {MOST}"
                )
    followed = Followed(key, index, reach(trace, key, index))
    by_name = {step.name: step for step in trace}
    num_heads = by_name["view"].tensors["queries"].shape[2]
    start, tensor = key.split(".")
    value = number(by_name[start].tensors[tensor][index].item())
    what = f"{tensor}[{', '.join(map(str, index))}] = {value}"

    drawn = [by_name[each] for each in steps or by_name]
    side, idle = {}, set()
    if steps:
        idle = {each for step in drawn for each in step.tensors}
        idle -= {
            each for step in drawn for each in step.tensors if followed.at(step.name, each).any()
        }
    else:
        side = side_panels(f"{what} at step {by_name[start].number}, {start}")
    rows = []
    for names in [steps[i : i + 3] for i in range(0, len(steps), 3)] or ROWS:
        panels = [panel(by_name[each], num_heads, followed, idle) for each in names]
        rows.append(row(panels + [side[each] for each in names if each in side]))
    facts = (
        f"step {step.number} {step.name}: {each} {followed.found(step.name, each, numbers)}"
        for step in drawn
        for each, numbers in step.tensors.items()
    )
    return picture(below(rows, gap=SPACE), f"{what} {followed.finding()}", "; ".join(facts) + ".")


def side_panels(what: str) -> dict[str, list[Drawing]]:
    """Say which number is followed, beside step 1, and how to read the picture, beside step 11."""
    above = (
        f"{what}, is framed where it stands.",
        "Earlier steps show what it comes from, later steps what it touches.",
        "The empty cells have nothing to do with it.",
    )
    beneath = (
        "Beside a name: how many of its numbers are left.",
        "Where one is left: its index, then its place in storage.",
        "view, transpose, reformat and combine move it; the other steps mix.",
    )
    return {
        "shape": [below([named("The number"), *map(line, above)], gap=3)],
        "out_proj": [below([named("How to read it"), *map(line, beneath)], gap=3)],
    }

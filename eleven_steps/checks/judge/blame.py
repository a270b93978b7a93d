"""Trace a class in a case and find where it leaves the right way.

A difference is found in one case, and asked for again in another, of other sizes and numbers. Where
that one shows another, it is said that it is so in the one case.
"""

from dataclasses import dataclass, replace
from typing import Any

import torch

from eleven_steps.checks.judge.differ import differ
from eleven_steps.checks.judge.path import Difference, Walk, walk
from eleven_steps.checks.judge.read import right_of
from eleven_steps.checks.know.catalogue import Mistake, mistakes_of
from eleven_steps.checks.know.right import play
from eleven_steps.checks.run.ask import ask
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.isolate import Failure, clock_paused
from eleven_steps.checks.run.recording import Trace
from eleven_steps.helpers.trace import STEPS


@dataclass(frozen=True)
class Blame:
    """A difference with the walk it was found on."""

    walked: Walk
    found: Difference | None

    @property
    def raised(self) -> bool:
        """Whether the run was stopped by an error."""
        return self.walked.trace.stop is not None

    def step_of(self, mistake: Mistake) -> int:
        """The step of a mistake, or an earlier one of its steps where it is made here."""
        step = self.found.step if self.found else mistake.step
        here = step in mistake.steps and not self.walked.reached(STEPS[step - 1])
        return min(step, mistake.step) if here else mistake.step

    def unspoilt(self, name: str) -> bool:
        """Whether what a mistake would have spoilt is there, and right, and the fault elsewhere."""
        if self.found and self.found.step == mistakes_of(self.walked.right.case.variant)[name].step:
            return False
        case = self.walked.right.case
        step = STEPS[mistakes_of(case.variant)[name].step - 1]
        wrong, right = play(case, name).steps.get(step, {}), play(case)[step]
        spoilt = [n for n, t in right.items() if n not in wrong or not close(wrong[n], t)]
        ours = self.walked.right.scene[step]
        return bool(spoilt) and all(self.walked.own(ours[n]) is not None for n in spoilt)


def blamed(cls: Any, case: Case, out: torch.Tensor | Failure | None = None) -> Blame | None:
    """Trace a class in a case and find its first difference; None where it cannot be traced.

    Args:
        cls: the class.
        case: where.
        out: what it gives there in float32; in double precision it must do the same.
    """
    for double in (True, False):
        trace = ask(cls, "trace", case, double)
        if not isinstance(trace, Trace):
            continue
        if not double or out is None or (trace.stop is None) != isinstance(out, Failure):
            with clock_paused():
                walked = walk(trace, right_of(case, double))
                return Blame(walked, differ(walked))
    return None


def holds(blame: Blame, other: Blame | None) -> bool:
    """Whether another case shows the same difference at the same place."""
    if other is None or other.found is None or blame.found is None:
        return False
    one, two = blame.found, other.found
    return (one.step, one.reason, one.place and one.place.line) == (
        two.step,
        two.reason,
        two.place and two.place.line,
    )


def plainly(blame: Blame) -> Blame:
    """The same as the line that raised has it, whatever step it is for."""
    ops, stop = blame.walked.trace.ops, blame.walked.trace.stop
    last = len(ops) - 1
    if ops and ops[-1].failed:
        found = Difference(blame.walked.roles[last], "torch", last, ops[-1].place)
    else:
        found = Difference(1, "name", None, stop.place if stop else None)
    return replace(blame, found=found)

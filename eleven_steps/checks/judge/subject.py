"""A class that is asked, and the claims that come of it."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from eleven_steps.checks.adapt.adapted import cases_for
from eleven_steps.checks.judge.constructor import shapes_of
from eleven_steps.checks.judge.say import Finding, say
from eleven_steps.checks.run.ask import once
from eleven_steps.checks.run.cases import Case, close
from eleven_steps.checks.run.facts import Built, Pass, Seen, Shapes
from eleven_steps.checks.run.isolate import Failure


@dataclass(frozen=True)
class Claim:
    """What a question comes to: a sentence, and what stands in its braces.

    Args:
        name: of the sentence, or of a catalogued mistake.
        step: where it is, if not at its usual step.
        values: what is filled in.
        mistake: that it is, where the sentence has another name.
    """

    name: str
    step: int | None = None
    values: dict[str, Any] = field(default_factory=dict)
    mistake: str = ""

    def said(self) -> Finding:
        """The claim in words."""
        finding = say(self.name, self.step, **self.values)
        return replace(finding, mistake=self.mistake, kind="mistake") if self.mistake else finding


class Subject:
    """A class that is asked, and what was found in it so far.

    Args:
        cls: a class with the lecture's constructor and layers.
        built: what its constructor makes, by qkv_bias.
        variant: the change since the lecture that it is to have.
    """

    def __init__(self, cls: Any, built: Built, variant: str = ""):
        self.cls, self.built, self.variant = cls, built, variant
        self.changes = variant.split(",")
        self.shapes: Shapes = built[True].shapes
        self.cases = cases_for(cls, variant)
        self.found: set[str] = set()  # names of probes, or outputs
        self._seen: dict[Case, Seen] = {}

    def plain(self, case: Case) -> Case:
        """The case with biases that only this class or only the right one has set to 0."""
        own, right = self.built[case.qkv_bias].shapes, shapes_of(self.variant)[case.qkv_bias]
        return replace(case, without=frozenset(right.keys() ^ own.keys()))

    def seen(self, case: Case) -> Seen:
        """What is seen of the class in a case."""
        if case not in self._seen:
            self._seen[case] = once(self.cls, self.plain(case), Pass())[0]
        return self._seen[case]

    @property
    def every_seen(self) -> list[Seen]:
        """What was seen so far, in all cases."""
        return [*self._seen.values()]

    def out(self, case: Case) -> torch.Tensor | Failure:
        """Output of the class."""
        return self.seen(case).out

    def outs(self, case: Case, *passes: Pass, dropout: float = 0.0) -> list[Any]:
        """Outputs of one module in several passes in a row."""
        return [each.out for each in once(self.cls, self.plain(case), *passes, dropout=dropout)]

    def leaks(self, case: Case | None = None, **options: Any) -> bool | None:
        """Whether the last token moves the output of others; None if it fails.

        Args:
            case: the main one if None.
            options: of the Pass, train=True for one.
        """
        case = case or self.cases.main
        other = case.x
        other[:, -1] += 1
        one, two = self.outs(case, Pass(**options), Pass(other, **options))
        if isinstance(one, Failure) or isinstance(two, Failure):
            return None
        return not close(one[:, :-1], two[:, :-1])

    def other(self, case: Case) -> Case:
        """A case of other sizes, in which a claim is made again; the same with other numbers."""
        fitting = [e for e in self.cases.every if e.num_tokens > 3 and e.b > 1 and e != case]
        sized = [e for e in fitting if (e.d_in, e.d_out) != (case.d_in, case.d_out)]
        return sized[-1] if sized else replace(case, seed=case.seed + 1)


Question = Callable[[Subject, Case], Claim | None]

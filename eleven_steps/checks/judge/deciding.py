"""Which size decides, where a class is right in some cases and wrong in others.

From a case that is wrong one letter at a time takes the value of a case that is right. Where the
output is right then, it is that letter which decides: nothing else was changed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from eleven_steps.checks.adapt.adapted import takes
from eleven_steps.checks.judge.say import say
from eleven_steps.checks.judge.subject import Subject
from eleven_steps.checks.know.right import play
from eleven_steps.checks.know.sentences import wording
from eleven_steps.checks.run.cases import Case, close


def decided(subject: Subject, wrong: Sequence[Case], case: Case, where: str) -> str:
    """Say where a class that is right in the main case is wrong, and what decides it.

    Args:
        subject: the class.
        wrong: the cases in which it is.
        case: the one that is spoken of.
        where: that one in words.
    """
    main = subject.cases.main
    if main in wrong:
        return ""
    changes = [each for each, moved in _moved(case, main) if _right(subject, moved)]
    if case.d_in == case.d_out and "d_in" in changes:  # the others only make the output wider
        changes = [each for each in changes if each in ("qkv_bias", "d_in")]
    if changes == ["qkv_bias"]:
        return say("right_without_bias").text
    values = {name: getattr(main, name) for name in changes}
    told = " or ".join(f"{name} to {value}" for name, value in values.items())
    hint = wording("changed_alone", changes=told) if told else ""
    return " ".join(filter(None, (say("right_elsewhere", where=where).text, hint)))


def _moved(case: Case, main: Case) -> Iterator[tuple[str, Case]]:
    """Each letter with the case in which it alone is as in the main one."""
    for name in ("qkv_bias", "b", "num_tokens", "d_in", "num_heads", "head_dim", "context_length"):
        letters = {each: getattr(case, each) for each in ("num_heads", "head_dim", "num_tokens")}
        if getattr(case, name) == getattr(main, name):
            continue
        new = {name: getattr(main, name)} if name != "head_dim" else {}
        letters |= {name: getattr(main, name)}
        room = max(new.get("context_length", case.context_length), letters["num_tokens"])
        d_out = letters["num_heads"] * letters["head_dim"]
        yield name, replace(case, **new | {"d_out": d_out, "context_length": room})


def _right(subject: Subject, case: Case) -> bool:
    return takes(subject.cls, case) and close(subject.out(case), play(subject.plain(case)).out)

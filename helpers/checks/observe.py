"""Run what a learner wrote as a question asks, and tell what came as plain data."""

import copy
from typing import Any

from helpers.checks.guard import attempt, kept_state
from helpers.checks.plain import decode_argument, encode


def reply(answer: Any, question: dict) -> dict:
    """Answer one question about a learner's object.

    Args:
        answer: what was handed to check.
        question: {"kind": "value"}, or {"kind": "call", "arguments": [...]}, a list of arguments
            for each call.
    """
    if question["kind"] == "value" or not callable(answer):
        return {"value": encode(answer), "callable": callable(answer)}
    returned = []
    for each in question["arguments"]:
        arguments = copy.deepcopy([decode_argument(argument) for argument in each])
        with kept_state():
            returned.append(encode(attempt(answer, *arguments)))
    return {"returned": returned}

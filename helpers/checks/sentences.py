"""Put sizes behind letters, so that a sentence can be followed with numbers."""

import re

from helpers.checks.cases import MAIN, Case


def letters(case: Case) -> str:
    """The lecture's letters and their sizes in one line, b aside."""
    return ", ".join(f"{name} = {size}" for name, size in case.letters.items() if name != "b")


def with_numbers(sentence: str, case: Case = MAIN) -> str:
    """Put the sizes of a case behind the letters of a sentence about square roots."""
    if "square root" not in sentence:
        return sentence
    for name, size in case.letters.items():
        sentence = re.sub(rf"\b{name}\b(?! \()", f"{name} ({size})", sentence, count=1)
    return sentence

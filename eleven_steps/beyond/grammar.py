"""Make the sentences that the tiny model learns from: a small grammar, and words as numbers.

A story is a row of short sentences. Two things in it can be predicted by looking back:

    names      "Anna met Bert . ... Anna met"  ->  "Bert"; so do lists, "Cleo Dora Emil ."
    agreement  "the dogs near the old tree"    ->  "run", not "runs": the first noun decides
"""

import random
import re
from dataclasses import dataclass

import torch

CONTEXT_LENGTH = 40

NAMES = (
    *("Anna", "Bert", "Cleo", "Dora", "Emil", "Frida"),
    *("Gus", "Hana", "Ivan", "Jana", "Kofi", "Lena"),
)
MEETINGS = ("met", "saw", "called", "thanked", "helped", "heard")
SINGULAR = ("dog", "cat", "bird", "tree", "house", "boat")
PLURAL = tuple(f"{noun}s" for noun in SINGULAR)
VERBS = ("runs", "sleeps", "waits", "falls")  # singular
VERBS_OF_MANY = ("run", "sleep", "wait", "fall")
PLACES = ("near", "behind", "beside")
LOOKS = ("old", "small", "red")
WORDS = (
    *(".", "the"),
    *(*NAMES, *MEETINGS, *SINGULAR, *PLURAL, *VERBS, *VERBS_OF_MANY, *PLACES, *LOOKS),
)
NUMBERS = {word: number for number, word in enumerate(WORDS)}

# Kinds of words: free, a repeated word, a repeated name of a meeting, a verb that agrees.
FREE, AGAIN, NAME, VERB = range(4)
Sentence = list[tuple[str, int]]  # words with their kinds


@dataclass(frozen=True)
class Stories:
    """Store stories as numbers, with the kind of each word."""

    tokens: torch.Tensor  # (b, num_tokens), numbers of WORDS
    kinds: torch.Tensor  # (b, num_tokens), FREE, AGAIN, NAME or VERB

    def __getitem__(self, which: torch.Tensor | slice) -> "Stories":
        """Return some of the stories."""
        return Stories(self.tokens[which], self.kinds[which])


def make_stories(b: int, seed: int) -> Stories:
    """Make b stories of CONTEXT_LENGTH + 1 words, so that CONTEXT_LENGTH words have a next word.

    The same seed makes the same stories; who meets whom, and after how many words a name comes
    back, is drawn anew for each.
    """
    draw = random.Random(seed)
    stories = [make_story(draw) for _ in range(b)]
    return Stories(
        torch.tensor([[NUMBERS[word] for word, _ in story] for story in stories]),
        torch.tensor([[kind for _, kind in story] for story in stories]),
    )


def make_story(draw: random.Random) -> Sentence:
    """Make one story: two meetings and a list, each appearing twice, and sentences with verbs."""
    names, meetings = draw.sample(NAMES, len(NAMES)), draw.sample(MEETINGS, 2)
    told = [(names.pop(), meeting, names.pop()) for meeting in meetings]
    told.append(tuple(names[: draw.choice((3, 4, 5))]))
    order = [*told, *told, *[None] * draw.choice((1, 2))]
    draw.shuffle(order)
    story: Sentence = []
    known = set()
    for words in order:
        story += agreeing(draw) if words is None else telling(words, again=words in known)
        known.add(words)
    while len(story) <= CONTEXT_LENGTH:
        story += agreeing(draw)
    return story[: CONTEXT_LENGTH + 1]


def telling(words: tuple[str, ...], again: bool) -> Sentence:
    """Return a meeting or a list of names; when repeated, only its first word is free."""
    kinds = [FREE] * len(words)
    if again:
        kinds = [FREE, *[AGAIN] * (len(words) - 1)]
        if words[1] in MEETINGS:
            kinds[2] = NAME
    return [*zip(words, kinds, strict=True), (".", FREE)]


def agreeing(draw: random.Random) -> Sentence:
    """Return "the dogs near the old tree run .": one or two nouns come before the verb.

    Each noun is singular or plural; only the first one decides which verb is right.
    """
    many = draw.random() < 0.5
    words = noun_phrase(draw, PLURAL if many else SINGULAR)
    for _ in range(draw.choice((1, 1, 2))):
        words += [draw.choice(PLACES), *noun_phrase(draw, SINGULAR + PLURAL)]
    verb = draw.choice(VERBS_OF_MANY if many else VERBS)
    return [*((word, FREE) for word in words), (verb, VERB), (".", FREE)]


def noun_phrase(draw: random.Random, nouns: tuple[str, ...]) -> list[str]:
    """Return "the tree" or "the old tree"."""
    look = [draw.choice(LOOKS)] if draw.random() < 0.4 else []
    return ["the", *look, draw.choice(nouns)]


def read(sentence: str) -> torch.Tensor:
    """Turn a sentence into tokens (1, num_tokens): "Anna met Bert ." or "Anna met Bert."."""
    words = re.findall(r"\w+|[^\w\s]", sentence)
    words = [word.lower() if word.lower() in NUMBERS else word for word in words]
    if unknown := [word for word in dict.fromkeys(words) if word not in NUMBERS]:
        raise ValueError(
            f"the model does not know {', '.join(unknown)}: it knows {' '.join(WORDS)}"
        )
    if not 1 <= len(words) <= CONTEXT_LENGTH:
        raise ValueError(
            f"the sentence has {len(words)} words: from 1 to {CONTEXT_LENGTH} are expected"
        )
    return torch.tensor([[NUMBERS[word] for word in words]])


def write(tokens: torch.Tensor) -> list[str]:
    """Turn tokens (num_tokens,) into words."""
    return [WORDS[token] for token in tokens.tolist()]

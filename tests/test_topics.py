"""Every topic of the lecture has its place: a notebook, and in it the words or numbers for it."""

import json
from collections import Counter
from itertools import pairwise
from pathlib import Path

import renew

TOPICS = json.loads(Path(__file__).with_name("topics.json").read_text("utf-8"))
# How many topics each section of the lecture has; one that is dropped is missed here.
SECTIONS = {
    "1 the eleven steps": 22,
    "2 the class": 9,
    "3 published tensors": 9,
    "4 intuition": 16,
    "5 exercises": 11,
    "6 real models": 7,
    "7 what the lecturer insists on": 3,
    "8 beyond the lecture": 5,
    "9 since the lecture": 27,
}


def told(notebook):
    """Return every text that a notebook shows: sources, printed texts, values, errors, pictures."""
    texts = []
    for cell in renew.read(renew.COURSE[notebook]).cells:
        texts.append(cell.source)
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            texts += [output.get("text", ""), output.get("evalue", "")]
            texts += [data.get("text/plain", ""), data.get("image/svg+xml", "")]
    return texts


def test_every_topic_has_its_place():
    texts = {name: told(name) for name in {topic["notebook"] for topic in TOPICS}}
    assert [t for t in TOPICS if not any(t["shows"] in text for text in texts[t["notebook"]])] == []


def test_no_topic_is_dropped_and_none_stands_twice():
    assert Counter(topic["section"] for topic in TOPICS) == SECTIONS
    assert all(a["section"] <= b["section"] for a, b in pairwise(TOPICS))
    assert all(set(topic) == {"section", "topic", "notebook", "shows"} for topic in TOPICS)
    for field in ("topic", "shows"):
        assert len({topic[field] for topic in TOPICS}) == len(TOPICS)


def test_every_notebook_carries_a_topic():
    every = set(renew.COURSE)
    assert {topic["notebook"] for topic in TOPICS} == every

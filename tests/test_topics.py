"""Every topic of the lecture has its place: a notebook, and in it the words or numbers for it."""

import json
from pathlib import Path

import renew

TOPICS = json.loads(Path(__file__).with_name("topics.json").read_text("utf-8"))


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

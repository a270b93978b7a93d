"""Draw docs/story.svg, which moves: how one word goes through one head of the trained model.

Usage: python tools/draw_story.py [--to FILE]

Styles alone move it, so it moves in an <img>. Each part comes in at its second and stays. So the
end has the whole story, and the end is all that is shown where a reader wants no motion.
"""

import argparse
from html import escape
from pathlib import Path

from eleven_steps.beyond.checkpoints import load_sentence
from eleven_steps.beyond.grammar import WORDS
from eleven_steps.beyond.grammar import read as tokens
from eleven_steps.pictures import HEAD_COLOURS

PAGE = Path(__file__).resolve().parents[1] / "docs" / "story.svg"
WIDTH, HEIGHT, SECONDS, LAST = 1012, 600, 26, 24.5  # at the last second all goes, to begin again
LEFT, RIGHT, BASELINE = 286, 984, 216  # of what is drawn; where bars stand
WORD, SLOT = 97, 936  # from word to word; the middle of where the next one goes
LABELS = (
    (0.2, 56, "1  shape", "Six words. Which one comes next?"),
    (1.8, 104, "2–4  project, view, transpose", "The keys of all, the query of one"),
    (4.8, 196, "5  scores", "Does the query fit the keys?"),
    (9.0, 268, "6  mask", "What comes later is hidden"),
    (11.0, 344, "7  softmax", "The scores become shares of 1"),
    (14.0, 420, "8  context", "As much of each value as its share"),
    (17.0, 506, "9–11  reformat, combine, out_proj", "Put the heads side by side, mix them"),
)
STYLE = """
svg { color-scheme: light dark; --paper: #fbfaf6; --ink: #1d1d22; --soft: #6b6860; --line: #d5d0c2;
  --own: OWN; --other: OTHER; --query: #6a2be0; }
@media (prefers-color-scheme: dark) { svg { --paper: #14151a; --ink: #eceae3; --soft: #a19f96;
  --line: #3b3c45; --own: #f0b34a; --other: #7aa2ff; --query: #c9afff; } }
text { font: 13px system-ui, sans-serif; fill: var(--ink); text-anchor: middle; }
.word { font-size: 25px; font-weight: 650; } .soft { fill: var(--soft); }
.step { font-weight: 650; } .step, .start { text-anchor: start; }
.own { fill: var(--own); } .other { fill: var(--other); } .query { fill: var(--query); }
.on { fill: #14151a; font-weight: 650; } .paper { fill: var(--paper); }
.line { fill: none; stroke: var(--line); } .way { fill: none; stroke: var(--ink); }
.in { animation: 26s ease-in-out infinite both; }
@media (prefers-reduced-motion: reduce) { .in { animation: none !important; } }
"""


class Story:
    """The elements so far, and the motions that they share."""

    def __init__(self):
        self.body, self.motions = [], {}

    def show(self, at: float, svg: str, start: str = "none", origin: str = "0 0") -> None:
        """Let svg come in at a second, from where start, a transform, puts it."""
        begins, stands, stays, gone = (
            f"{100 * second / SECONDS:.2f}%" for second in (at, at + 0.7, LAST, LAST + 0.8)
        )
        motion = (
            f"0%, {begins}, {gone}, 100% {{ opacity: 0; transform: {start} }} "
            f"{stands}, {stays} {{ opacity: 1; transform: none }}"
        )
        name = self.motions.setdefault(motion, f"m{len(self.motions)}")
        style = f"animation-name: {name}; transform-origin: {origin}"
        self.body.append(f'<g class="in" style="{style}">{svg}</g>')


def text(x: float, y: float, words: str, kind: str = "") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}">{escape(words)}</text>'


def rect(x: float, y: float, width: float, height: float, kind: str, more: str = "") -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} {more}/>'


def stripes(x: float, y: float, width: float, height: float, numbers, kind: str) -> str:
    """Draw a vector: a stripe a number, the stronger the larger it is."""
    each, largest = width / len(numbers), max(map(abs, numbers))
    return "".join(
        rect(x + i * each, y, each + 0.2, height, kind, f'opacity="{abs(v) / largest:.2f}"')
        for i, v in enumerate(numbers)
    )


def tell_scores(story: Story, places, keys, query, scores) -> None:
    """Show the keys, lay the query over each, and let the bars of the scores grow."""
    asked = [stripes(place - 40, 110, 80, 12, query, "query") for place in places]
    for j, place in enumerate(places):
        key = stripes(place - 40, 88, 80, 18, keys[j], "own")
        story.show(1.8 + 0.1 * j, key, "translateY(-16px)")
    story.show(3.2, asked[-1], "translateY(-30px)")
    story.show(4.8, f'<path class="line" d="M{LEFT} {BASELINE}H{places[-1] + 44}"/>')
    for j, (place, score) in enumerate(zip(places, scores, strict=True)):
        second, height = 5.0 + 0.5 * j, 60 * score / max(map(abs, scores))
        if place != places[-1]:
            story.show(second, asked[j], f"translateX({places[-1] - place}px)")
        bar = rect(place - 22, BASELINE - max(height, 0), 44, abs(height), "own", 'rx="2"')
        story.show(second + 0.4, bar, "scaleY(0)", f"0 {BASELINE}px")
        number = f"{score:.1f}".replace("-", "−")
        story.show(second + 0.6, text(place, BASELINE + (17 if height > 0 else -8), number))
    hidden = rect(SLOT - 46, 84, 92, 196, "soft", 'rx="6" opacity="0.3"')
    story.show(9.0, hidden + text(SLOT, 186, "−∞", "soft"), "scaleY(0)", "0 84px")


def tell_shares(story: Story, places, words, shares, values) -> None:
    """Pour the bars into a ribbon of length 1, and let each value come as tall as its share."""
    reached, height = float(LEFT), 400.0
    for x, word, share, value in zip(places, words, shares, values, strict=True):
        width, end = share * (RIGHT - LEFT), reached + share * (RIGHT - LEFT)
        if share > 0.01:  # less is no pixel wide
            bow = f"M{x - 22} 240C{x - 22} 300 {reached:.1f} 280 {reached:.1f} 330H{end:.1f}"
            bow += f"C{end:.1f} 280 {x + 22} 300 {x + 22} 240Z"
            story.show(11.0, rect(reached, 330, width, 30, "own"), "scaleX(0)", f"{x}px 0")
            story.show(11.4, f'<path class="own" opacity="0.18" d="{bow}"/>')
            story.show(11.6, text(reached + width / 2, 350, f"{word} {share:.0%}", "on"))
            part = stripes(LEFT, height, RIGHT - LEFT, 44 * share, value, "own")
            story.show(14.0, part, "translateY(-50px)")
        reached, height = end, height + 44 * share


def draw() -> str:
    """Return the story as SVG."""
    read, story = load_sentence(), Story()
    words, own, at = read.words, read.head, {step.name: step.tensors for step in read.steps}
    query, keys = (at["transpose"][name][0, own].tolist() for name in ("queries", "keys"))
    chances = read.model(tokens(" ".join(words)))[0, -1].detach().softmax(-1)
    guess = WORDS[int(chances.argmax())]
    places = [LEFT + 42 + WORD * j for j in range(len(words))]
    for place, word in zip(places, words, strict=True):
        kind = "word query" if place == places[-1] else "word"
        story.body.append(text(place, 64, word, kind))
    story.body.append(rect(SLOT - 46, 36, 92, 40, "line", 'rx="8" stroke-dasharray="5 5"'))
    story.show(0.5, text(SLOT, 63, "?", "word soft"))
    for second, y, name, said in LABELS:
        story.show(second, text(24, y, name, "step") + text(24, y + 19, said, "soft start"))
    tell_scores(story, places, keys, query[-1], at["scores"]["scores"][0, own, -1].tolist())
    shares, values = at["softmax"]["weights"][0, own, -1], at["transpose"]["values"][0, own]
    tell_shares(story, places, words, shares.tolist(), values.tolist())
    half = (RIGHT - LEFT) / 2 - 4
    for head, numbers in enumerate(at["context"]["context"][0, :, -1].tolist()):
        place, second = (RIGHT - half, 17.8) if head else (LEFT, 17.0)
        part = stripes(place, 486, half, 44, numbers, "own" if head == own else "other")
        part += text(place + half / 2, 548, f"head {head}: {len(numbers)} numbers", "soft")
        story.show(second, part, "translateY(-50px)")
    way = f"M{RIGHT + 4} 508H{RIGHT + 16}V56H{SLOT + 50}m7 -5l-7 5l7 5"
    story.show(19.4, f'<path class="way" d="{way}"/>')
    answer = rect(SLOT - 44, 38, 88, 36, "paper", 'rx="7"') + text(SLOT, 64, guess, "word own")
    story.show(20.2, answer, "scale(0.6)", f"{SLOT}px 56px")
    said = f"The model's next word: “{guess}”, with {float(chances.max()):.0%}"
    story.show(20.8, text(LEFT, 582, said, "step"))
    style = STYLE.replace("OWN", HEAD_COLOURS[own]).replace("OTHER", HEAD_COLOURS[1 - own])
    style += "".join(f"@keyframes {name} {{ {m} }}\n" for m, name in story.motions.items())
    title = f"{' '.join(words)} … One head attends to {guess}, and the model writes {guess}."
    top = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">'
    paper = rect(0, 0, WIDTH, HEIGHT, "paper", 'rx="14"')
    lines = top, f"<title>{escape(title)}</title>", f"<style>{style}</style>", paper, *story.body
    return "\n".join([*lines, "</svg>\n"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--to", type=Path, default=PAGE, metavar="FILE")
    parser.parse_args().to.write_text(draw(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()

"""The stage in a page without a kernel, and in JupyterLab: its numbers, its places, its hand."""

import random
import re

import alone
import numpy as np
import pytest
import torch
from axe import check_axe
from playwright.sync_api import expect
from test_pictures import luminance
from waits import in_page

from eleven_steps.beyond.checkpoints import load_sentence
from eleven_steps.beyond.grammar import WORDS
from eleven_steps.sliders.stage import explore_stage, module_of, sizes_of, unpacked

BEGIN = """window.stage = new Stage(el, window.data);
Object.assign(window, { around, nameOf, leftBy, ordered, LEFT });"""

MET = "Anna met Bert . Anna met"

# Where cells and words of all steps lie: off the stage, on one another, too small, to be scrolled;
# or so that no step uses the room that all of them have. 12 numbers in a row are scrolled on
# a phone.
AUDIT = in_page("audit")


# How high it is at each step and where its playhead lies, which a hand may hold; and whether a
# title is cut, also where letters are a fifth wider.
HEIGHTS = in_page("heights")

# The numbers of all cells that can be found, by name.
CELLS = """() => Object.fromEntries([...document.querySelectorAll('[data-cell]:not([hidden])')]
  .map(e => [e.dataset.cell, e.dataset.value]))"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """A page without a kernel, with both scenes."""
    return alone.write(tmp_path_factory.mktemp("stage"), explore_stage("scores", "both"), BEGIN)


@pytest.fixture
def stage(page, address):
    """The stage at step 5, before it happens, checked by hand."""
    return opened(page, address)


def opened(page, address, scene="whiteboard"):
    stage = alone.visit(page, address).locator("[data-stage]")
    expect(stage).to_have_attribute("data-step", "5")
    page.evaluate("scene => scene === 'whiteboard' ? stage.choose(scene) : null", scene)
    return stage


def test_words_are_swapped_and_read_as_the_model_reads_them(stage, page):
    page.get_by_role("button", name="one word").click()
    following = stage.locator(".next")
    expect(following).to_contain_text("Bert0.99")
    for sentence in (
        "Anna met Dora . Anna met",
        "Cleo met Dora . Cleo met",
        "the dogs near old tree met",
    ):
        for i, word in enumerate(sentence.split()):
            spoken = stage.locator(f"[data-word='{i}']")
            if spoken.get_attribute("aria-pressed") == "false":
                spoken.press("Enter")  # its arcs, and once more: the words that may stand here
            spoken.press("Enter")
            stage.locator(".list").get_by_role("button", name=word, exact=True).click()
            expect(spoken).to_have_text(word)
        read = load_sentence(sentence)
        x = torch.tensor(page.evaluate("Array.from(stage.input)"))
        assert x.isfinite().all()
        assert torch.allclose(x, read.steps[0].tensors["x"].flatten(), atol=1e-5)
        tokens = torch.tensor([[WORDS.index(word) for word in sentence.split()]])
        share, best = read.model(tokens)[0, -1].softmax(dim=-1).max(dim=-1)
        expect(following).to_contain_text(f"{WORDS[best]}{share:.2f}")
    stage.get_by_text("Back to the start").click()
    expect(stage.locator("[data-word='2']")).to_have_text("Bert")
    expect(following).to_contain_text("Bert0.99")
    assert not page.faults


# What two parts of a frame call themselves alike: the second is drawn in the place of the first.
TWICE = """() => {
  const { pen } = stage.story, { put } = pen;
  window.twice = [];
  pen.put = (name, ...more) => {
    if (pen.parts.get(name)?.frame === pen.frame) twice.push(name);
    put.call(pen, name, ...more);
  };
}"""


@pytest.mark.parametrize("sentence", (MET, "Anna met Bert . Anna met Lena . Anna met"))
def test_what_is_shown_of_one_word_is_what_the_class_makes(page, address, sentence):
    stage, steps = opened(page, address, "sentence"), load_sentence(sentence).steps
    tokens = len(sentence.split())
    page.evaluate("tokens => stage.set({ tokens })", tokens)
    page.evaluate(TWICE)
    for asked, head in ((tokens - 1, 1), (2, 0)):
        page.evaluate("([i, h]) => (stage.follow(h), stage.ask(i))", [asked, head])
        for number, step in enumerate(steps, 1):
            page.evaluate("n => stage.playhead.show(n - 0.6)", number)  # before the press
            given = {cell.split(".")[0] for cell in page.evaluate(CELLS)}
            new = (
                set(step.tensors) - set(steps[max(number - 2, 0)].tensors) if number > 1 else set()
            )
            assert not given & new, "what stands there answers the question"
            page.evaluate("n => (stage.playhead.show(n), stage.paint())", number)
            shown, seen = page.evaluate(CELLS), set()
            for cell, value in shown.items():
                name, *index = cell.split(".")
                made = next(s.tensors[name] for s in steps[number - 1 :: -1] if name in s.tensors)
                right = made[tuple(map(int, index))].item()
                assert float(value) == pytest.approx(right, abs=2e-4), (number, cell)
                seen.add(name)
            assert set(step.tensors) <= seen | {"values"}, (number, seen)
    assert page.evaluate("twice") == []
    for scope in "head", "all":  # nothing is asked that is not shown
        page.evaluate("scope => stage.zoom(scope)", scope)
        page.evaluate("for (let p = 1; p < 11; p += 0.3) (stage.playhead.show(p), stage.paint())")
    page.evaluate("stage.zoom('word')")
    expect(stage).to_have_attribute("data-scope", "word")
    page.evaluate("stage.playhead.show(7)")
    check_axe(page)
    assert page.faults == []


# What a hand does (it may move a score), which step it sees then, and what is said there.
HAND = """window.cell = (...of) => stage.list.find((one) =>
  one.kind === 'scores' && `${[one.h, one.r, one.c]}` === `${of}`);
window.move = (to, ...of) => { stage.hand.take(cell(...of)); stage.hand.move(to); }; 0"""
SAID = (
    ("stage.ask(0)", 11, ".title", r"numbers of a row\.$"),
    ("stage.turn('1,1'), stage.speaking().swapped(2, 'Emil')", 11, ".next", "was Emil 1.00"),
    ("stage.hand.divide(16), stage.point(cell(1, 5, 2))", 7, ".card", r"/ 16\.0"),
    ("stage.zoom('all'), move(0.5, 0, 4, 1), stage.zoom('word')", 7, ".title", "“met” gives 100 %"),
    ("stage.ask(1), stage.playhead.show(6), move(41, 1, 1, 2)", 8, "text", "100 % of Bert"),
    ("stage.turn('1,1')", 8, ".title", "its context is all 0"),
    ("stage.playhead.show(5), move(-99, 1, 5, 2)", 11, ".title", "The model says “Hana”"),
    ("stage.choose('whiteboard'), stage.set({ heads: 1 })", 10, ".title", "nothing to copy"),
)


def test_what_is_said_is_of_what_is_drawn(page, address):
    stage = opened(page, address, "sentence")
    page.evaluate(HAND)
    for act, step, place, says in SAID:
        page.evaluate(f"stage.choose('sentence'), stage.playhead.show({step}), {act}")
        page.evaluate(f"stage.pointed || stage.playhead.show({step}), stage.paint()")
        said = stage.locator(f"{place}:visible", has_text=re.compile(says))
        expect(said, act).not_to_have_count(0)
        if "1,1" in act:  # a head that is off hands nothing over
            expect(stage.locator("text:visible", has_text="% of")).to_have_count(0)
    assert page.faults == []


NIGHTLY = [pytest.param(width, marks=pytest.mark.nightly) for width in (946, 640)]


@pytest.mark.parametrize("width", (1280, *NIGHTLY, 390))
def test_nothing_lies_off_the_stage_or_on_other_words(chromium, address, width):
    page = chromium.new_page(viewport={"width": width, "height": 900})
    opened(page, address)
    assert page.evaluate(AUDIT.replace("TOKENS", "[1, 3, 6]")) == []
    page.evaluate("window.stage.choose('sentence'), stage.zoom('all')")
    assert page.evaluate(AUDIT.replace("TOKENS", "[1, 6]")) == []
    assert page.faults == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert len(page.evaluate(HEIGHTS)) == 1
    if width == 1280:
        assert page.locator("[data-stage]").bounding_box()["height"] <= 680
        page.evaluate("window.stage.choose('whiteboard')")
        assert page.locator("[data-stage]").bounding_box()["height"] <= 600
    page.close()


@pytest.mark.parametrize("scheme", ("light", "dark"))
def test_what_can_be_dragged_looks_like_it(page, address, scheme):
    page.emulate_media(color_scheme=scheme)
    opened(page, address)
    colours = page.evaluate("""['paper', 'grey', 'hold'].map(name => {
      const { pen } = stage.painter;
      pen.fillStyle = stage.painter[name];
      return pen.fillStyle;
    })""")
    paper, grey, accent = ([int(each[i : i + 2], 16) for i in (1, 3, 5)] for each in colours)
    strongest = [(a + b) / 2 for a, b in zip(paper, grey, strict=True)]
    for ground in (paper, strongest):
        low, high = sorted(luminance(np.array(colour)) for colour in (accent, ground))
        assert (high + 0.05) / (low + 0.05) >= 3


def test_a_number_of_x_is_dragged_and_given_back(page, stage):
    page.evaluate("stage.playhead.show(5)")
    before, room = page.evaluate(CELLS), stage.bounding_box()
    x = stage.locator("[data-cell='x.0.1.2']")
    box = x.bounding_box()
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + 9, box["y"] - 51)
    expect(x).to_have_attribute("data-value", "1.24")
    expect(stage.locator(".card")).to_contain_text("0.64 → 1.24")
    expect(stage.locator(".card")).to_contain_text("here it moves 28 of 72 numbers")
    expect(stage.locator(".card")).not_to_contain_text("cannot")
    assert stage.bounding_box() == room and x.bounding_box() == box, "nothing jumps at a touch"
    after = page.evaluate(CELLS)
    page.mouse.up()
    moved = {name for name in before if before[name] != after[name]}
    # At step 5 a key reaches queries that will not see it: they are covered only in step 6.
    assert {"scores.0.0.1.1", "queries.0.0.1.0", "keys.0.1.1.2"} <= moved
    assert not any(name.startswith("queries.0.0.0") for name in moved)
    page.evaluate("window.stage.playhead.show(11)")
    out = page.evaluate(CELLS)
    page.get_by_role("button", name="Back to the start").click()
    first = page.evaluate(CELLS)
    reached = {name for name in out if out[name] != first[name]}
    assert reached >= {"x.0.1.2", *(f"out.0.{i}.{f}" for i in (1, 2) for f in range(6))}
    assert not any(name.startswith(("out.0.0", "context.0.0", "x.0.0")) for name in reached)
    page.evaluate("window.stage.playhead.show(10.7)")  # midway: what is pressed is there, and taken
    page.mouse.move(box["x"] + 9, box["y"] + 9)
    page.mouse.down()
    page.mouse.move(box["x"] + 9, box["y"] - 21)
    expect(x).to_have_attribute("data-value", "0.94")
    expect(stage).to_have_attribute("data-answered", "true")
    page.mouse.up()
    assert page.faults == []


# For each number of x: what is framed, and what moves with it; both by name.
REACHED = in_page("reached")


def test_what_is_framed_is_what_moves(page, stage):
    for step in range(2, 12):
        cells = page.evaluate(REACHED, step)
        assert len(cells) == 18
        for k, (framed, moved, said) in enumerate(cells):
            assert framed == moved and framed
            if step == 5 and k >= 12:  # no mask yet: a key of the last token meets every query
                assert "scores.0.0.0.2" in framed and "cannot" not in said
            elif step in (6, 11) and k >= 12:
                assert "tokens 0 to 1 cannot see it" in said


def test_keys_change_a_number_and_move_the_playhead(page, stage):
    x = stage.locator("[data-cell='x.0.0.0']")
    x.focus()
    expect(x).to_have_attribute("role", "slider")
    page.keyboard.press("ArrowUp")
    expect(x).to_have_attribute("aria-valuetext", "0.53")
    page.keyboard.press("Escape")
    expect(x).to_have_attribute("aria-valuetext", "0.43")
    page.keyboard.press("ArrowRight")
    expect(stage.locator("[data-cell='x.0.0.1']")).to_be_focused()
    playhead = stage.get_by_role("slider", name="Playhead")
    playhead.focus()
    page.keyboard.press("ArrowLeft")
    expect(stage).to_have_attribute("data-step", "4")
    page.keyboard.press("End")
    expect(stage).to_have_attribute("data-step", "11")
    expect(stage.locator(".title")).to_contain_text("In every number of out")
    page.keyboard.press("Home")
    expect(playhead).to_have_attribute("aria-valuenow", "1")
    playhead.press("End")
    expect(stage).to_have_attribute("data-step", "11")
    playhead.press("Tab")
    expect(stage.locator(".card")).to_contain_text("[0, 0, 0]")


def test_the_title_asks_before_and_answers_after(page, stage):
    page.emulate_media(reduced_motion="reduce")
    title = stage.locator(".title")
    expect(title).to_contain_text("?")
    page.get_by_role("button", name="Play step 5").click()
    expect(title).to_contain_text("18 scores")
    page.get_by_role("button", name="Play step 6").click()
    expect(stage).to_have_attribute("data-step", "6")
    page.get_by_role("slider", name="num_tokens").press("ArrowRight")
    expect(title).to_contain_text("6 of 16")
    check_axe(page)


# For numbers taken at random at a step: what it is called, what it is made, and all that follows.
WHAT_IFS = in_page("what_ifs")


def test_a_what_if_is_the_class_continued_from_the_changed_tensor(page, stage):
    generator, scene = random.Random(1), page.evaluate("window.data.scenes.whiteboard")
    before = page.evaluate("JSON.stringify(stage.made)")
    # All sizes that can be chosen, one after the other at another step.
    for k, (d_out, heads, tokens) in enumerate(sizes_of(scene)):
        step, picks = k % 11 + 1, [[generator.random(), generator.random()] for _ in range(3)]
        sizes = {"dOut": d_out, "heads": heads, "tokens": tokens}
        x = unpacked(scene["x"]).view(-1, scene["dIn"])[:tokens]
        for (title, cell), value, left, every in page.evaluate(WHAT_IFS, [step, picks, sizes]):
            name, *index = cell.split(".")
            module, index = module_of(scene, d_out, heads), tuple(map(int, index))
            assert f"What if {name}" in title and title.count("?") == 1
            if left == 0:  # what the page shows of a matrix is turned
                with torch.no_grad():
                    getattr(module, name).weight[index[::-1]] = value
            for k, (made, wanted) in enumerate(
                zip(every, continued(module, x[None], left, name, index, value), strict=True)
            ):
                for numbers, right in zip(made, wanted, strict=True):
                    numbers = torch.tensor([float(number) for number in numbers])
                    assert torch.allclose(numbers, right.flatten(), atol=1e-5), (cell, k + 1)
    page.evaluate("stage.set({ dOut: 6, heads: 2, tokens: 3 })")
    assert page.evaluate("JSON.stringify(stage.made)") == before and not page.faults


def continued(module, x, left, name, index, value):
    """Run the class, with one number of a step changed under way; return what each step made."""
    every = []

    def record(step, **tensors):
        if left == len(every) + 1:
            tensors[name][index] = value
        every.append([tensor.clone() for tensor in tensors.values()])

    with torch.no_grad():
        module(x.clone(), record=record)
    return every


def test_escape_puts_back_one_number_and_the_title_says_what_if(page, stage):
    page.evaluate("window.stage.playhead.show(6)")
    first = page.evaluate(CELLS)
    for name in ("masked.0.0.2.1", "masked.0.1.1.0"):
        stage.locator(f"[data-cell='{name}']").focus()
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Shift+ArrowUp")
    expect(stage.locator(".title")).to_contain_text(
        "What if masked[0, 1, 1, 0] were 2.37, with 1 other"
    )
    stage.locator("[data-cell='masked.0.0.2.1']").focus()
    page.keyboard.press("Escape")
    expect(stage.locator(".title mark")).to_have_text("2.37")
    after = page.evaluate(CELLS)
    assert {name for name in first if first[name] != after[name]} == {"masked.0.1.1.0"}
    stage.get_by_role("slider", name="Playhead").focus()
    page.keyboard.press("Escape")
    expect(stage.locator(".title")).not_to_contain_text("What if")
    assert page.evaluate(CELLS) == first
    future = stage.locator("[data-cell='masked.0.0.0.2']")  # what if token 0 could see token 2?
    future.focus()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Escape")
    assert page.evaluate(CELLS) == first and not page.faults


# What the browser itself counts as a shift of the layout.
SHIFTS = """window.shifts = [];
new PerformanceObserver(list => shifts.push(...list.getEntries().map(shift => shift.value)))
  .observe({ type: 'layout-shift', buffered: true });"""


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.nightly)])
def test_nothing_shifts_while_a_step_plays(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    opened(page, address)
    page.evaluate("stage.choose('sentence'), stage.playhead.show(6.4)")
    page.evaluate("new Promise(go => setTimeout(go, 200))")
    page.evaluate("shifts.length = 0, new Promise(go => stage.playhead.go(7, 900, go))")
    page.evaluate("new Promise(go => setTimeout(go, 200))")
    assert page.evaluate("shifts") == []


def test_the_divisor_moves_the_weights_of_all_heads_and_the_next_word(page, stage):
    page.evaluate("stage.choose('sentence'), stage.set({ tokens: 10 }), stage.zoom('all')")
    page.evaluate("stage.playhead.show(7)")
    expect(stage.locator(".next")).to_contain_text("Bert0.64")
    stage.get_by_role("slider", name="divide by").fill("0")  # the logarithm of 1: no division
    masked = torch.tensor(page.evaluate("Array.from(stage.made[6].masked)")).view(2, 10, 10)
    shown = torch.tensor(page.evaluate("Array.from(stage.made[7].weights)")).view(2, 10, 10)
    assert torch.allclose(shown, torch.softmax(masked, dim=-1), atol=1e-6)
    expect(stage.locator(".title")).to_contain_text("What if the divisor were 1.00")
    expect(stage.locator(".tile.moved")).to_have_count(5)
    stage.get_by_text("Back to the start").click()
    expect(stage.locator(".next")).to_contain_text("Bert0.64")
    assert not page.faults


# A stage in a notebook, where check then shows two verdicts: one right, one still open.
PASSED = """() => {
  const notebook = document.body.appendChild(document.createElement('div'));
  notebook.className = 'jp-Notebook';
  new stage.constructor(notebook.appendChild(document.createElement('div')), window.data);
  for (const [name, colour] of [['scores.1', 'success'], ['mask.1', 'info']])
    notebook.insertAdjacentHTML('beforeend', `<div role="group" aria-label="Verdict: ${name}"
      style="border-left:4px solid var(--jp-${colour}-color1,#757575)">${name}</div>`);
}"""


def test_the_strip_lights_up_when_check_shows_that_an_exercise_is_right(page, stage):
    page.evaluate(PASSED)
    lit = page.locator(".jp-Notebook .tile:has(.done)")
    expect(lit).to_have_count(1)
    expect(lit).to_contain_text("5 scores")
    assert not page.faults


def test_a_finger_drags(phone, address):
    stage = opened(phone, address)
    box = stage.locator("[data-cell='x.0.0.0']").bounding_box()
    x, y = box["x"] + 9, box["y"] + 9
    touch = phone.context.new_cdp_session(phone)
    for kind, points in (("Start", [(x, y)]), ("Move", [(x, y - 30)]), ("End", [])):
        points = [{"x": a, "y": b} for a, b in points]
        touch.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
    expect(stage.locator("[data-cell='x.0.0.0']")).to_have_attribute("data-value", "0.73")

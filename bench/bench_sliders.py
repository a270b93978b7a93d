"""Measure how fast sliders answer in JupyterLab: the course's films beside interact with pyplot.

Usage: python bench/bench_sliders.py [--presses N]
Prints, for each: from a key press to the new picture painted (p50 and p95), and from the last of
20 fast presses to the right picture. Both draw the same tensors; presses alternate between them.
Then: of a stage, from a key press on a number of x to the second frame after it, when all steps'
numbers are painted; of a tip that is dragged, from a step to the picture painted that Python drew
for it. Beside each: how many times as long a key press takes with interact.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "browser"))
from lab_page import CHROMIUM, QUIET, open_notebook, run_all, serving

STAGE = "sliders.explore_stage()"
TIP = "sliders.explore_angle()"
FILM = "from eleven_steps import sliders\nsliders.explore_blocks()"
INTERACT = """
import matplotlib.pyplot as plt
from ipywidgets import SelectionSlider, interact
from eleven_steps.sliders import run, tokens

def draw(num_heads):
    mha, steps = run(num_heads=num_heads)
    block = mha.W_query.weight.detach().chunk(num_heads)[0].T
    queries = steps["transpose"]["queries"][0, 0]
    figure, panels = plt.subplots(1, 3, figsize=(9, 3))
    for panel, drawn in zip(panels, (tokens()[0], block, queries)):
        panel.imshow(drawn, vmin=-1, vmax=1)
        for row, numbers in enumerate(drawn.tolist()):
            for column, number in enumerate(numbers):
                panel.text(column, row, f"{number:.2f}", ha="center")
    plt.show()

interact(draw, num_heads=SelectionSlider(options=[1, 2, 3, 6], value=2))
""".strip()
HANDLE = ":is(input[type=range], [role=slider]):visible"

# Watches one output: notes when a key goes down, and when a frame with another picture is painted.
WATCH = """output => {
  const shown = () => {
    const all = [...output.querySelectorAll('svg[role=img], img')].filter(e => e.checkVisibility());
    return all.map(e => e.src ?? e.getAttribute('aria-label')).join();
  };
  const state = output.bench = {press: 0, paints: [], empty: 0, last: shown(), heights: new Set()};
  output.addEventListener('keydown', () => { state.press = performance.now(); }, true);
  const frame = () => {
    const now = shown();
    if (!now) state.empty += 1;
    state.heights.add(output.offsetHeight);
    if (now && now !== state.last) {
      state.last = now;
      const press = state.press;
      requestAnimationFrame(() => state.paints.push([press, performance.now()]));
    }
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
}"""

# Notes how long each key press takes until the second frame, and the number's value by then.
WATCH_KEYS = """number => {
  number.bench = [];
  number.addEventListener('keydown', () => {
    const start = performance.now(), before = number.dataset.value;
    requestAnimationFrame(() => requestAnimationFrame(() => {
      if (number.dataset.value !== before) number.bench.push(['key', performance.now() - start]);
    }));
  }, true);
}"""

# Watches parts of a picture: how long from a pointer's move until what it changed is painted.
WATCH_PARTS = """(board, parts) => {
  let moved = 0;
  board.bench = [];
  board.addEventListener('pointermove', () => { moved = performance.now(); }, true);
  for (const [what, where] of Object.entries(parts)) new MutationObserver(() => {
    const start = moved;
    requestAnimationFrame(() => {
      const after = new MessageChannel();  // its message comes once the frame is painted
      after.port1.onmessage = () => board.bench.push([what, performance.now() - start]);
      after.port2.postMessage(0);
    });
  }).observe(board.querySelector(where),
    {subtree: true, childList: true, attributes: true, attributeFilter: ['d']});
}"""


def main() -> None:
    """Serve a notebook with both sliders, press keys, print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--presses", type=int, default=40, help="single presses for each slider")
    options = parser.parse_args()
    if not CHROMIUM:
        sys.exit("no chromium on this machine: install it (Debian: apt-get install chromium)")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        sources = FILM, INTERACT, STAGE, TIP
        with serving(Path(folder), "bench.ipynb", sources) as address:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
            page = browser.new_page(viewport={"width": 1280, "height": 1400})
            open_notebook(page, address, "bench.ipynb")
            run_all(page)
            page.wait_for_timeout(3000)
            usual = report(page, options.presses)
            print("\nunder the hand          p50 ms  p95 ms  measured  interact takes")
            report_stage(page, options.presses, usual)
            report_tip(page, options.presses, usual)
            browser.close()


def report(page, presses: int) -> float:
    """Press keys on both sliders in turn, print what was measured, return interact's median."""
    areas = {
        name: page.locator(".jp-CodeCell").nth(index).locator(".jp-OutputArea").first
        for index, name in enumerate(("film", "interact and pyplot"))
    }
    for area in areas.values():
        area.evaluate(WATCH)
    single = {name: [] for name in areas}
    settled = {name: [] for name in areas}
    for press in range(presses):
        for name, area in areas.items():
            key = "ArrowLeft" if press % 2 else "ArrowRight"
            single[name].append(one_press(page, area, key))
    for _ in range(5):
        for name, area in areas.items():
            settled[name].append(drag(page, area))
    print("slider                  p50 ms  p95 ms  settles ms  empty frames  heights")
    for name, area in areas.items():
        cuts = statistics.quantiles(single[name], n=20, method="inclusive")
        state = area.evaluate("o => [o.bench.empty, o.bench.heights.size]")
        print(
            f"{name:22}{statistics.median(single[name]):8.0f}{cuts[18]:8.0f}"
            f"{statistics.median(settled[name]):12.0f}{state[0]:14}{state[1]:9}"
        )
    film, usual = (statistics.median(single[name]) for name in areas)
    print(f"interact takes {usual / film:.1f} times as long")
    return usual


def one_press(page, area, key: str) -> float:
    """Press a key and return the milliseconds until another picture is painted."""
    area.evaluate("o => { o.bench.paints = []; }")
    handle = area.locator(HANDLE).first
    handle.focus()
    page.keyboard.press(key)
    page.wait_for_function("o => o.bench.paints.length", arg=area.element_handle())
    (press, paint), *_ = area.evaluate("o => o.bench.paints")
    page.wait_for_timeout(150)
    return paint - press


def drag(page, area) -> float:
    """Press 20 keys 30 ms apart; return the milliseconds from the last to the last new picture."""
    handle = area.locator(HANDLE).first
    handle.focus()
    page.keyboard.press("Home")
    page.wait_for_timeout(1000)
    area.evaluate("o => { o.bench.paints = []; }")
    for press in range(20):
        page.keyboard.press("ArrowLeft" if press // 2 % 2 else "ArrowRight")
        page.wait_for_timeout(30)
    page.wait_for_timeout(2000)
    last, paint = area.evaluate("o => [o.bench.press, o.bench.paints.at(-1)[1]]")
    return paint - last


def report_stage(page, times: int, usual: float) -> None:
    """Press arrow keys on a number of x; print how long it took until all was painted."""
    number = page.locator("[data-stage] [data-cell='x.0.1.1']")
    number.focus()
    number.evaluate(WATCH_KEYS)
    for turn in range(times):
        page.keyboard.press("ArrowUp" if turn % 6 < 3 else "ArrowDown")
        page.wait_for_timeout(60)
    tell(number, ["key"], usual)


def report_tip(page, times: int, usual: float) -> None:
    """Drag the tip of a vector; print how long it took until its picture was painted."""
    picture, ring = page.locator(".drag"), page.locator(".drag .handle")
    ring.scroll_into_view_if_needed()
    parts = {"drag a tip": ".drawn"}
    picture.evaluate(WATCH_PARTS, parts)
    pull(page, ring, times)
    tell(picture, parts, usual)


def pull(page, part, times: int) -> None:
    """Drag something sideways, step by step."""
    box = part.bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for turn in range(times):
        page.mouse.move(x - 11 - 10 * (turn % 9), y)
        page.wait_for_timeout(150)
    page.mouse.up()


def tell(board, parts, usual: float) -> None:
    """Print what was measured of each part, and how many times as long interact takes."""
    measured = board.evaluate("board => board.bench")
    for what in parts:
        times_taken = [took for name, took in measured if name == what]
        cuts = statistics.quantiles(times_taken, n=20, method="inclusive")
        median = statistics.median(times_taken)
        ratio = f"{usual / median:10.1f} times"
        print(f"{what:22}{median:8.0f}{cuts[18]:8.0f}{len(times_taken):10}{ratio}")


if __name__ == "__main__":
    main()

"""Measure how fast the stage answers, beside another page that does the same, in one run.

Usage: python bench/bench_stage.py [PAGE.html]
Real keys change a number of x at step 5, then a bar of the lever (ours alone); printed is the time
from the key to the second frame, how long scripts run in it (listeners to the key, and frames: not
the miniatures, which come later), and how many frames a second are drawn while the playhead is
dragged. PAGE offers window.stageApi with
set({d, H, n}) and setP(step), and numbers of x as [data-cell="x.0.i.j"]; rounds alternate.
"""

import json
import statistics
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "browser"))
from lab_page import CHROMIUM, QUIET
from test_stage_in_browser import PAGE

from eleven_steps.sliders import explore_stage

ROUNDS, KEYS = 4, 25
SIZES = ({"d": 6, "H": 2, "n": 3}, {"d": 12, "H": 3, "n": 6})
OURS = """window.stageApi = {setP: p => stage.playhead.show(p),
  set: ({d, H, n}) => stage.set({dOut: d, heads: H, tokens: n})};"""
# Scripts are timed where they are called: by a key, or by a frame.
WATCH = """(() => {
  const frame = requestAnimationFrame.bind(window), listen = EventTarget.prototype.addEventListener;
  let ran = 0;
  const timed = act => function (...given) {
    const start = performance.now();
    try { return act.apply(this, given); } finally { ran += performance.now() - start; }
  };
  window.requestAnimationFrame = act => frame(timed(act));
  EventTarget.prototype.addEventListener = function (type, act, ...more) {
    listen.call(this, type, type === 'keydown' ? timed(act) : act, ...more);
  };
  window.times = [];
  listen.call(window, 'keydown', () => {
    const start = performance.now();
    ran = 0;
    frame(() => frame(() => times.push([performance.now() - start, ran])));
  }, true);
})()"""
FRAMES = """() => new Promise(say => {
  let frames = 0, began = performance.now();
  const turn = now => {
    frames += 1;
    stageApi.setP(1 + 10 * Math.abs(((now - began) / 4000) % 2 - 1));
    now - began < 4000 ? requestAnimationFrame(turn) : say(frames / (now - began) * 1000);
  };
  requestAnimationFrame(turn);
})"""


def main() -> None:
    """Measure both pages in turn, print the table."""
    stage = explore_stage()
    text = PAGE.format(css=stage._css, js=stage._esm, data=json.dumps(dict(stage.data)))
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        here = Path(folder) / "stage.html"
        here.write_text(text.replace("</script>", OURS + "</script>"), "utf-8")
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        pages = {}
        for path in (here, *map(Path, sys.argv[1:])):
            pages[path.name] = page = browser.new_page(viewport={"width": 1100, "height": 720})
            page.add_init_script(WATCH)
            page.goto(path.resolve().as_uri())
        print("page, sizes: key to second frame p50, p95, scripts p50 (ms); frames a second")
        for sizes in SIZES:
            times, frames = {name: [] for name in pages}, {name: [] for name in pages}
            bars = []
            for _ in range(ROUNDS):
                for name, page in pages.items():
                    measure(page, sizes, times[name], frames[name])
                pull(pages[here.name], bars)
            for name in pages:
                whole, scripts = zip(*times[name], strict=True)
                cuts, ran = statistics.quantiles(whole, n=20), statistics.median(scripts)
                says = f"{cuts[9]:.1f} {cuts[18]:.1f} {ran:.1f}; {max(frames[name]):.0f}"
                print(f"{name} {sizes}: {says}")
            cuts = statistics.quantiles([whole for whole, _ in bars], n=20)
            print(f"a bar of the lever {sizes}: {cuts[9]:.1f} {cuts[18]:.1f}")
        browser.close()


def measure(page, sizes, times, frames):
    """Take one round: keys, then a drag of the playhead."""
    page.bring_to_front()
    page.evaluate("sizes => { stageApi.set(sizes); stageApi.setP(5); times.length = 0; }", sizes)
    page.locator("[data-cell='x.0.1.1']").focus()
    for key in range(KEYS):
        page.keyboard.press("ArrowUp" if key % 6 < 3 else "ArrowDown")
        page.wait_for_timeout(60)
    times += page.evaluate("times.slice(2)")
    frames.append(page.evaluate(FRAMES))


def pull(page, times):
    """Take one round at a bar of the lever."""
    page.evaluate("stageApi.setP(7)")
    page.wait_for_timeout(300)
    page.locator(".lever .bar").first.focus()
    page.evaluate("times.length = 0")
    for key in range(KEYS):
        page.keyboard.press("ArrowUp" if key % 6 < 3 else "ArrowDown")
        page.wait_for_timeout(60)
    times += page.evaluate("times.slice(2)")


if __name__ == "__main__":
    main()

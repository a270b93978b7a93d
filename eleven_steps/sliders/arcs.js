// A sentence whose words answer. Python drew all arcs and wrote all words: this chooses among them.

const HOW = "Arcs lead from a word to those it reads, the thicker the larger the share. Point at a " +
  "word, or come here with Tab and use the arrow keys. Click or Enter pins it.";
const WORDS = 480; // pixels: what words get beside a small drawing
const PINNED = "This word is pinned: click it again, or press Escape, to free it.";

function render({ model, el }) {
  const told = model.get("told"), last = told.length - 1;
  const id = `arcs-${Math.random().toString(36).slice(2)}`;
  const board = made("div", { className: "sheet", tabIndex: 0, role: "application",
    innerHTML: `<div>${model.get("svg")}</div>` });
  const words = made("div", { ariaLive: "off" }), help = made("p", { className: "help", id });
  board.setAttribute("aria-describedby", id);
  board.ariaLabel = `Words to point at. ${board.querySelector("title").textContent}`;
  el.classList.add("live", "arcs");
  el.replaceChildren(board, made("div", { className: "told" }, words), help);
  const it = { board, words, current: null, pinned: false, rest: model.get("start") };
  const parts = [...board.querySelectorAll(".shares, .reads")], svg = board.querySelector("svg");
  const faded = board.querySelector(".reads[opacity]")?.getAttribute("opacity");
  const tell = (i) => words.replaceChildren(...told[i].map((each) => made("p", { textContent: each })));
  const say = (pinned) => { help.textContent = pinned ? PINNED : HOW; };
  it.show = (i) => {
    for (const part of parts) {
      const own = Number(part.dataset.word) === i;
      if (part.matches(".reads")) part.setAttribute("opacity", own ? 1 : faded);
      else part.setAttribute("display", own ? "inline" : "none");
    }
    tell(i);
    say(it.pinned);
    el.classList.toggle("pinned", it.pinned);
  };
  onPoint(it, word, (key) => {
    const { current } = it;
    const i = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last }[key];
    if (i === undefined) return false;
    if (told[i]) turnTo(it, i); // what is pinned moves along
    board.querySelectorAll(".word")[it.current].scrollIntoView({ block: "nearest", inline: "nearest" });
    return true;
  });
  pin(it, null);
  return onRoom(el, (room) => {
    fit(svg, room);
    el.style.setProperty("--wide", `${Math.max(svg.viewBox.baseVal.width, WORDS)}px`);
    steady([words], told.keys(), tell);
    steady([help], [true, false], say);
    it.show(it.current);
  });
}

// The word under a pointer, or null.
function word(event) {
  const found = event.target.closest(".word");
  return found ? Number(found.dataset.word) : null;
}

export default answering(render);

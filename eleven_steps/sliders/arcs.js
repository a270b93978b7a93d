// A sentence whose words answer. Python drew all arcs and wrote all words: this chooses among them.

const HOW = "Arcs lead from a word to those it reads, the thicker the larger the share. Point at a " +
  "word, or come here with Tab and use the arrow keys. Click or Enter pins it.";
const WORDS = 480; // pixels: what words get beside a small drawing
const PINNED = "This word is pinned: click it again, or press Escape, to free it.";

function render({ model, el }) {
  const told = model.get("told"), start = model.get("start"), last = told.length - 1;
  const it = { ...build(el, model.get("svg"), told), current: null, pinned: false, rest: start };
  const parts = [...it.board.querySelectorAll(".shares, .reads")];
  const faded = it.board.querySelector(".reads[opacity]")?.getAttribute("opacity");
  it.show = (i) => {
    for (const part of parts) {
      const own = Number(part.dataset.word) === i;
      if (part.matches(".reads")) part.setAttribute("opacity", own ? 1 : faded);
      else part.setAttribute("display", own ? "inline" : "none");
    }
    it.words.replaceChildren(...lines(told[i]));
    el.classList.toggle("pinned", it.pinned);
    it.help.textContent = it.pinned ? PINNED : HOW;
  };
  onPoint(it, word, (key) => {
    const { current } = it;
    const i = { ArrowLeft: current - 1, ArrowRight: current + 1, Home: 0, End: last }[key];
    if (i === undefined) return false;
    if (told[i]) turnTo(it, i); // what is pinned moves along
    it.board.querySelectorAll(".word")[it.current]
      .scrollIntoView({ block: "nearest", inline: "nearest" });
    return true;
  });
  pin(it, null);
  const svg = it.board.querySelector("svg");
  return onRoom(el, (room) => {
    fit(svg, room);
    el.style.setProperty("--wide", `${Math.max(svg.viewBox.baseVal.width, WORDS)}px`);
  });
}

// The parts of the page: a sheet that takes the keys, with the drawing, a card with words, and help.
// What is not shown now keeps its room in the card, so that nothing below it jumps.
function build(el, svg, told) {
  const id = `arcs-${Math.random().toString(36).slice(2)}`;
  el.classList.add("arcs");
  el.innerHTML =
    `<div class="sheet" tabindex="0" role="application" aria-describedby="${id}">` +
    `<div>${svg}</div></div>` +
    `<div class="told"><div aria-live="off"></div></div><p class="help" id="${id}"></p>`;
  const [board, stack, help] = el.children;
  board.setAttribute("aria-label", `Words to point at. ${board.querySelector("title").textContent}`);
  for (const each of told) {
    const room = document.createElement("div");
    room.ariaHidden = "true";
    room.append(...lines(each));
    stack.append(room);
  }
  return { board, words: stack.firstChild, help };
}

function lines(texts) {
  return texts.map((each) => Object.assign(document.createElement("p"), { textContent: each }));
}

// The word under a pointer, or null.
function word(event) {
  const found = event.target.closest(".word");
  return found ? Number(found.dataset.word) : null;
}

export default { render };

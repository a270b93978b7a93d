// A sentence whose words answer. Python drew all arcs and wrote all words: this chooses among them.

const HOW = "Arcs lead from a word to those it reads, the thicker the larger the share. Point at a " +
  "word, or come here with Tab and use the arrow keys. Click or Enter pins it.";
const PINNED = "This word is pinned: click it again, or press Escape, to free it.";

function render({ model, el }) {
  const told = model.get("told"), start = model.get("start"), last = told.length - 1;
  const { sheet, card, help } = build(el, model.get("svg"), told);
  const parts = [...sheet.querySelectorAll(".shares, .reads")];
  const faded = sheet.querySelector(".reads[opacity]")?.getAttribute("opacity");
  let current = null, pinned = false;
  const show = (i) => {
    if (i === current) return;
    current = i;
    for (const part of parts) {
      const own = Number(part.dataset.word) === i;
      if (part.matches(".reads")) part.setAttribute("opacity", own ? 1 : faded);
      else part.setAttribute("display", own ? "inline" : "none");
    }
    card.replaceChildren(...lines(told[i]));
  };
  const pin = (i) => {
    pinned = i !== null;
    el.classList.toggle("pinned", pinned);
    help.textContent = pinned ? PINNED : HOW;
    show(pinned ? i : start);
  };
  const press = (i) => pin(pinned && i === current ? null : i);
  const ways = {
    ArrowLeft: () => show(Math.max(current - 1, 0)),
    ArrowRight: () => show(Math.min(current + 1, last)),
    Home: () => show(0),
    End: () => show(last),
    Enter: () => press(current),
    " ": () => press(current),
    Escape: () => pin(null),
  };
  sheet.addEventListener("pointermove", (event) => {
    const i = word(event);
    if (!pinned && event.pointerType !== "touch") show(i ?? start);
  });
  sheet.addEventListener("pointerleave", () => { if (!pinned) show(start); });
  sheet.addEventListener("click", (event) => {
    const i = word(event);
    if (i === null) pin(null);
    else press(i);
  });
  sheet.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // a letter typed here is no command to the notebook
    if (!ways[event.key]) return;
    event.preventDefault();
    ways[event.key]();
    sheet.querySelectorAll(".word")[current].scrollIntoView({ block: "nearest", inline: "nearest" });
  });
  // Where a mouse points, everything would be read aloud; with the keys, what is asked for.
  sheet.addEventListener("focus", () => { card.ariaLive = "polite"; });
  sheet.addEventListener("blur", () => { card.ariaLive = "off"; if (!pinned) show(start); });
  pin(null);
}

// The parts of the page: a sheet that takes the keys, with the drawing, a card with words, and help.
// What is not shown now keeps its room in the card, so that nothing below it jumps.
function build(el, svg, told) {
  const id = `arcs-${Math.random().toString(36).slice(2)}`;
  el.classList.add("arcs");
  el.innerHTML =
    `<div class="sheet" tabindex="0" role="application" aria-describedby="${id}">${svg}</div>` +
    `<div class="told"><div aria-live="off"></div></div><p class="help" id="${id}"></p>`;
  const [sheet, stack, help] = el.children;
  sheet.setAttribute("aria-label", `Words to point at. ${sheet.querySelector("title").textContent}`);
  for (const each of told) {
    const room = document.createElement("div");
    room.ariaHidden = "true";
    room.append(...lines(each));
    stack.append(room);
  }
  return { sheet, card: stack.firstChild, help };
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

// Code and its map, linked: a line or a card that is pointed at lights up with all of its step, the
// steps it comes from and goes to are framed, and what Python says of it stands below.

const HOW = "Point at a line or at a step of the map, or come here with Tab and use the arrow keys: " +
  "what belongs together lights up. Solid frames: it comes from there. Dashed frames: it goes " +
  "there. Click or Enter pins, Escape frees.";

// What is shown of it now stands in one object, "it".
function render({ model, el }) {
  el.classList.add("live", "linked");
  el.innerHTML = model.get("page");
  const every = (which) => [...el.querySelectorAll(which)];
  const it = {
    board: el.querySelector(".board"), told: model.get("told"), words: el.querySelector(".words"),
    columns: [every(".line[data-told]"), every(".card")], framed: every("[data-step]"),
    current: null, pinned: false, show: (part) => show(it, part),
  };
  it.parts = it.columns.flat();
  for (const [first] of it.columns) first.tabIndex = 0;
  el.querySelector(".help").textContent = HOW;
  listen(it);
  pin(it, null);
}

// Point at a line or a card, or at nothing.
function show(it, part) {
  const told = it.told[part?.dataset.told];
  it.board.classList.toggle("telling", part !== null);
  for (const each of it.framed) {
    const step = Number(each.dataset.step);
    each.classList.toggle("own", told?.step === step);
    each.classList.toggle("from", Boolean(told?.from.includes(step)));
    each.classList.toggle("to", Boolean(told?.to.includes(step)));
  }
  for (const each of it.parts) {
    each.classList.toggle("here", each === part);
    each.setAttribute("aria-pressed", it.pinned && each === part);
  }
  [...it.words.children].forEach((line, k) => { line.textContent = told?.words[k] ?? ""; });
  if (it.pinned) part.scrollIntoView({ block: "nearest" }); // out from under the words
}

const partAt = (event) => event.target.closest("[data-told]");

function listen(it) {
  onPoint(it, (event) => {
    const part = partAt(event);
    if (event.type !== "click") return part ?? undefined;
    return part?.matches(".line") && !getSelection().isCollapsed ? undefined : part; // to be copied
  }, (key, event) => partAt(event) && keyed(it, partAt(event), key));
  it.board.addEventListener("pointerleave", () => {
    const focused = it.parts.find((each) => each === document.activeElement);
    if (!it.pinned && focused) turnTo(it, focused);
  });
  it.board.addEventListener("focusin", (event) => {
    const part = partAt(event);
    if (!part) return;
    for (const each of it.columns.find((column) => column.includes(part))) {
      each.tabIndex = each === part ? 0 : -1;
    }
    if (!it.pinned) turnTo(it, part);
  });
}

// Do what a key asks for; say whether it asked for anything.
function keyed(it, part, key) {
  const column = it.columns.find((each) => each.includes(part)), at = column.indexOf(part);
  const [lines, cards] = it.columns, { step } = it.told[part.dataset.told];
  const of = (each) => it.told[each.dataset.told].step === step;
  const next = {
    ArrowUp: column[at - 1], ArrowDown: column[at + 1], Home: column[0], End: column.at(-1),
    ArrowRight: column === lines ? cards.find(of) : null,
    ArrowLeft: column === cards ? lines.find(of) : null,
  };
  if (key in next) {
    next[key]?.focus();
    if (next[key] && next[key] !== it.current) turnTo(it, next[key]); // what is pinned moves along
    return true;
  }
  if (key !== "Enter" && key !== " ") return false;
  press(it, part);
  return true;
}

export default answering(render);

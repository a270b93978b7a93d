// Pictures whose numbers answer to a finger: this finds the cells, marks what Python says belongs
// together, shows Python's words, and asks Python when a number is dragged.

const HOW = "Point at a number, or come here with Tab and use the arrow keys. " +
  "Click or Enter pins it, Escape frees it. Solid frames: it comes from these. " +
  "Dashed frames: it goes to these. A dot product that is pinned shows its pairs one by one: " +
  "click it again, or press Enter.";
const drag = (what) => ` Drag a number of ${what} sideways, or press + and -: all steps follow.`;
const STILL = " Numbers cannot be dragged here, for no kernel runs.";
const PACE = 600; // milliseconds for a pair of a dot product
const PER_PIXEL = 0.01, PER_KEY = 0.1; // what a dragged number changes by

// A picture whose numbers answer. What is shown of it now stands in one object, "it".
function render({ model, el }) {
  const board = build(el, model.get("svg")), svg = board.querySelector("svg");
  const book = model.get("book");
  const it = {
    board, svg, book, told: model.get("told").slice(), ...find(svg, book.starts),
    related: unpack(book.links, book.count), marks: overlay(svg),
    card: board.querySelector(".card"), help: el.querySelector(".help"),
    current: null, pinned: false, held: null, live: false, turn: 0,
  };
  const asking = ask(model, (answer) => follow(it, answer), () => alive(it, false));
  it.change = (i, value) => asking({ at: i, value: Math.round(value * 100) / 100 });
  it.movable = (i) => it.live && i !== null && i < book.movable;
  listenToPointer(it);
  listenToKeys(it);
  const scrolled = () => { if (it.current !== null) dock(it); };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  it.help.textContent = HOW;
  asking({});
  const watch = new ResizeObserver(() => place(it, el.clientWidth - 2 * MARGIN));
  watch.observe(el);
  return () => {
    watch.disconnect();
    document.removeEventListener("scroll", scrolled, { capture: true });
  };
}

// Lay the picture out for a place so wide, and find again where its cells are.
function place(it, room) {
  if (room <= 0 || it.room === room) return;
  it.room = room;
  fit(it.svg, room);
  Object.assign(it, find(it.svg, it.book.starts));
  show(it, it.current);
}

// Point at a number, or at none.
function show(it, i) {
  clearTimeout(it.turn);
  it.current = i;
  it.card.hidden = i === null;
  const kin = (list) => (i === null ? [] : it.related[i][list].filter((j) => it.cells[j]));
  draw(it.marks, it.cells, i, kin("from"), kin("to"));
  if (i === null) return;
  say(it);
  dock(it);
}

function say({ card, told, current }) {
  [...card.children].forEach((line, k) => { line.textContent = told[current][k]; });
}

function pin(it, i) {
  it.pinned = i !== null;
  if (i !== it.current) show(it, i);
}

function free(it) {
  pin(it, null);
  show(it, null);
}

// Pin a number; if it is pinned and a dot product, show its pairs.
function press(it, i) {
  if (!it.pinned || i !== it.current) return pin(it, i);
  show(it, i);
  meet(it);
}

// Pair by pair: the two numbers that meet, and the sum as far as it is.
function meet(it) {
  const [, sum] = it.told[it.current][1].match(/^(.*) = /) ?? [], pairs = it.book.pairs[it.current];
  if (!sum || !pairs?.flat().every((i) => it.cells[i])) return;
  const terms = sum.split(" + "), line = it.card.children[1];
  const next = (k) => {
    const over = k === pairs.length;
    it.marks.pair.setAttribute("d", over ? "" : pairs[k].map((i) => outline(it.cells[i])).join(""));
    if (over) return say(it);
    line.textContent = terms.slice(0, k + 1).join(" + ") + (k + 1 < pairs.length ? " + ..." : "");
    it.turn = setTimeout(next, PACE, k + 1);
  };
  next(0);
}

// Take over what the kernel answered: numbers that changed, or words.
function follow(it, answer) {
  Object.assign(it.told, answer.words);
  for (const [i, [text, opacity]] of Object.entries(answer.cells ?? {})) {
    if (!it.cells[i]) continue;
    it.cells[i].text.textContent = text;
    it.cells[i].box.setAttribute("fill-opacity", opacity);
  }
  if (it.current !== null) say(it);
  alive(it, true);
}

// Say whether numbers can be dragged, where some are drawn that could be.
function alive(it, live) {
  it.live = live;
  it.board.classList.toggle("live", live);
  it.help.textContent = HOW + (it.cells[0] ? (live ? drag(it.book.what) : STILL) : "");
}

function listenToPointer(it) {
  const { board, cells } = it;
  const hit = (event) => under(it.grids, it.svg, event);
  board.addEventListener("pointermove", (event) => {
    const { held } = it;
    if (held && !held.done) {
      const far = event.clientX - held.x;
      held.moved ||= Math.abs(far) >= 4;
      if (held.moved) it.change(held.at, held.value + far * PER_PIXEL);
    } else if (!it.pinned && event.pointerType !== "touch") {
      const i = hit(event);
      if (i !== it.current) show(it, i);
      board.classList.toggle("movable", it.movable(i));
    }
  });
  board.addEventListener("pointerleave", () => { if (!it.pinned && !it.held) show(it, null); });
  board.addEventListener("pointerdown", (event) => {
    const i = hit(event);
    it.held = null;
    if (!it.movable(i)) return;
    it.held = { at: i, x: event.clientX, value: Number(cells[i].text.textContent) };
    board.setPointerCapture(event.pointerId);
    pin(it, i);
  });
  board.addEventListener("pointerup", () => { it.held = it.held?.moved ? { done: true } : null; });
  board.addEventListener("pointercancel", () => { it.held = null; });
  board.addEventListener("click", (event) => {
    const i = hit(event), dragged = it.held?.done;
    it.held = null;
    if (dragged) return;
    if (i === null) free(it);
    else press(it, i);
  });
}

function listenToKeys(it) {
  const { board, card } = it;
  board.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // a letter typed here is no command to the notebook
    if (keyed(it, event.key)) event.preventDefault();
  });
  // Where a mouse points, everything would be read aloud; with the keys, what is asked for.
  board.addEventListener("focus", () => { card.ariaLive = "polite"; });
  board.addEventListener("blur", () => { card.ariaLive = "off"; if (!it.pinned) show(it, null); });
}

// Do what a key asks for; say whether it asked for anything.
function keyed(it, key) {
  const { cells, current } = it;
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (way) {
    const i = current === null ? Number(Object.keys(cells)[0]) : nearest(cells, current, way);
    if (i !== null) show(it, i);
  } else if (key === "Escape") free(it);
  else if (key === "Enter" || key === " ") { if (current !== null) press(it, current); }
  else if ("+=-".includes(key) && it.movable(current)) {
    const value = Number(cells[current].text.textContent);
    it.change(current, value + (key === "-" ? -PER_KEY : PER_KEY));
  } else return false;
  return true;
}

// The parts of the page: a board that takes the keys, the drawing, a card with words.
function build(el, svg) {
  const id = `touch-${Math.random().toString(36).slice(2)}`;
  el.classList.add("touch");
  el.innerHTML = `<div class="board" tabindex="0" role="application" aria-describedby="${id}">` +
    `<div>${svg}</div><p class="help" id="${id}"></p>` +
    `<div class="card" aria-live="off" hidden><p></p><p></p></div></div>`;
  const board = el.firstChild;
  board.setAttribute("aria-label", `Numbers to touch. ${svg.match(/<title>(.*?)<\/title>/)[1]}`);
  return board;
}

// Where every cell stands in the drawing, and its parts.
function find(svg, starts) {
  const cells = [], grids = [];
  for (const group of svg.querySelectorAll("[data-tensor]")) {
    let [left, top, width, height, columns] = group.dataset.where.split(" ").map(Number);
    for (let each = group; each !== svg; each = each.parentNode) {
      const [x, y] = each.getAttribute("transform")?.match(/-?[\d.]+/g).map(Number) ?? [0, 0];
      left += x;
      top += y;
    }
    const first = starts[group.dataset.tensor] + Number(group.dataset.first);
    const boxes = [...group.firstChild.children];
    const texts = [...group.lastChild.children];
    boxes.forEach((box, k) => {
      const x = left + (k % columns) * width, y = top + Math.floor(k / columns) * height;
      cells[first + k] = { x, y, width, height, box, text: texts[k] };
    });
    grids.push({ left, top, width, height, columns, rows: boxes.length / columns, first });
  }
  return { cells, grids };
}

// The number under a pointer, or null.
function under(grids, svg, event) {
  const box = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / box.width;
  const x = (event.clientX - box.left) * scale, y = (event.clientY - box.top) * scale;
  for (const { left, top, width, height, columns, rows, first } of grids) {
    const column = Math.floor((x - left) / width), row = Math.floor((y - top) / height);
    if (column >= 0 && column < columns && row >= 0 && row < rows) {
      return first + row * columns + column;
    }
  }
  return null;
}

// For each number those it comes from, which stand before it, and those it goes to.
function unpack(links, count) {
  const bits = Uint8Array.from(atob(links), (c) => c.charCodeAt(0));
  const related = Array.from({ length: count }, () => ({ from: [], to: [] }));
  for (let i = 0; i < count; i++) {
    for (let j = 0; j < i; j++) {
      const at = i * count + j;
      if (bits[at >> 3] & (128 >> (at & 7))) {
        related[i].from.push(j);
        related[j].to.push(i);
      }
    }
  }
  return related;
}

function overlay(svg) {
  return Object.fromEntries(["veil", "from", "to", "own", "pair"].map((name) => {
    const path = document.createElementNS(svg.namespaceURI, "path");
    path.setAttribute("class", `mark-${name}`);
    return [name, svg.appendChild(path)];
  }));
}

// The outline of a cell, or of a little more.
function outline({ x, y, width, height }, more = 0) {
  const [wide, high] = [width + 2 * more, height + 2 * more];
  return `M${x - more} ${y - more}h${wide}v${high}h${-wide}z`;
}

function draw(marks, cells, own, from = [], to = []) {
  const box = (i, more = 0) => outline(cells[i], more);
  const touched = new Set([own, ...from, ...to]);
  const rest = own === null ? [] : [...cells.keys()].filter((i) => cells[i] && !touched.has(i));
  marks.veil.setAttribute("d", rest.map((i) => box(i, 0.5)).join(""));
  marks.from.setAttribute("d", from.map((i) => box(i)).join(""));
  marks.to.setAttribute("d", to.map((i) => box(i)).join(""));
  marks.pair.setAttribute("d", "");
  marks.own.setAttribute("d", own === null ? "" : box(own));
}

// Keep the card where it is seen: over the help, or at the edge of what is in sight.
function dock(it) {
  const { card, svg } = it, cell = it.cells[it.current];
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  it.frames ??= around(svg);
  let above = 0, below = window.innerHeight;
  for (const frame of it.frames.map((each) => each.getBoundingClientRect())) {
    if (frame.height < 50) continue;
    above = Math.max(above, frame.top);
    below = Math.min(below, frame.bottom);
  }
  const high = card.offsetHeight;
  const low = Math.min(below - box.top - high, box.height);
  const up = Math.max(above - box.top, 0);
  const hides = (cell.y + cell.height) * scale > low && cell.y * scale < low + high;
  card.style.top = `${hides && up + high < cell.y * scale ? up : Math.max(low, 0)}px`;
}

// Everything around the drawing that may cut it off.
function around(svg) {
  const found = [];
  for (let each = svg.parentElement; each; each = each.parentElement) {
    if (/auto|scroll|hidden/.test(getComputedStyle(each).overflowY)) found.push(each);
  }
  return found;
}

// The nearest cell in a direction; what lies aside counts thrice.
function nearest(cells, current, [right, down]) {
  const middle = (cell) => [cell.x + cell.width / 2, cell.y + cell.height / 2];
  const [x0, y0] = middle(cells[current]);
  let best = null, least = Infinity;
  cells.forEach((cell, i) => {
    const [x, y] = middle(cell);
    const ahead = (x - x0) * right + (y - y0) * down;
    const aside = Math.abs((x - x0) * down) + Math.abs((y - y0) * right);
    if (ahead > 1 && ahead + 3 * aside < least) [best, least] = [i, ahead + 3 * aside];
  });
  return best;
}

export default { render };

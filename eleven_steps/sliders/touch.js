// Pictures whose numbers answer to a finger: this finds the cells, marks what Python says belongs
// together, shows Python's words, and asks Python when a number is dragged.

const HOW = "Point at a number, or come here with Tab and use the arrow keys. " +
  "Click or Enter pins it, Escape frees it. Solid frames: it comes from these. " +
  "Dashed frames: it goes to these. A dot product that is pinned shows its pairs one by one: " +
  "click it again, or press Enter.";
const drag = (what) => ` Drag a number of ${what} sideways, or press + and -: all steps follow.`;
const PACE = 600; // milliseconds for a pair of a dot product
const PER_PIXEL = 0.01, PER_KEY = 0.1; // what a dragged number changes by

// A picture whose numbers answer. What is shown of it now stands in one object, "it".
function render({ model, el }) {
  const board = build(el, model.get("svg")), svg = board.querySelector("svg");
  const book = model.get("book");
  const it = {
    board, svg, book, told: model.get("told").slice(), ...find(svg, book.starts),
    related: unpack(book.links, book.count), marks: overlay(svg),
    words: board.querySelector(".card"), help: el.querySelector(".help"),
    current: null, pinned: false, asked: null, dragged: false, live: false, turn: 0,
    show: () => show(it), again: () => meet(it),
  };
  const asking = ask(model, (...answer) => follow(it, ...answer), () => alive(it, false));
  it.change = (at, value) => {
    it.asked = { at, value: Math.round(value * 100) / 100 };
    asking(it.asked);
  };
  it.movable = (i) => it.live && i !== null && i < book.movable;
  listen(it);
  it.back = wayBack(el, asking);
  const scrolled = () => { if (it.current !== null) dock(it); };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  it.help.textContent = HOW;
  asking({});
  const stop = onRoom(el, (room) => place(it, room));
  return () => {
    stop();
    document.removeEventListener("scroll", scrolled, { capture: true });
  };
}

// Lay the picture out for a place so wide, and find again where its cells are.
function place(it, room) {
  if (it.room === room) return;
  it.room = room;
  fit(it.svg, room);
  Object.assign(it, find(it.svg, it.book.starts));
  show(it);
}

// Show what belongs to the number that is pointed at, if one is.
function show(it) {
  const i = it.current;
  clearTimeout(it.turn);
  it.words.hidden = i === null;
  const kin = (list) => (i === null ? [] : it.related[i][list].filter((j) => it.cells[j]));
  draw(it.marks, it.cells, i, kin("from"), kin("to"));
  if (i === null) return;
  say(it);
  dock(it);
}

// Write the words of a number; no pair of it is shown any longer.
function say({ words, told, current, turn, marks }) {
  clearTimeout(turn);
  marks.pair.setAttribute("d", "");
  [...words.children].forEach((line, k) => { line.textContent = told[current][k]; });
}

// Pair by pair: the two numbers that meet, and the sum as far as it is.
function meet(it) {
  show(it);
  const [, sum] = it.told[it.current][1].match(/^(.*) = /) ?? [], pairs = it.book.pairs[it.current];
  if (!sum || !pairs?.flat().every((i) => it.cells[i])) return;
  const terms = sum.split(" + "), line = it.words.children[1];
  const next = (k) => {
    if (k === pairs.length) return say(it);
    it.marks.pair.setAttribute("d", pairs[k].map((i) => outline(it.cells[i])).join(""));
    line.textContent = terms.slice(0, k + 1).join(" + ") + (k + 1 < pairs.length ? " + ..." : "");
    it.turn = setTimeout(next, PACE, k + 1);
  };
  next(0);
}

// Take over what the kernel answered: numbers that changed, or words.
function follow(it, answer, pending) {
  if (!pending) it.asked = null;
  Object.assign(it.told, answer.words);
  for (const [i, [text, opacity]] of Object.entries(answer.cells ?? {})) {
    if (!it.cells[i]) continue;
    it.cells[i].text.textContent = text;
    it.cells[i].box.setAttribute("fill-opacity", opacity);
  }
  if (it.current in (answer.words ?? {})) say(it);
  if ("moved" in answer && it.cells[0]) it.back(answer.moved);
  alive(it, true);
}

// Say whether numbers can be dragged, where some are drawn that could be.
function alive(it, live) {
  it.live = live;
  if (!live) it.asked = null;
  it.board.classList.toggle("live", live);
  it.help.textContent = HOW + (it.cells[0] ? (live ? drag(it.book.what) : ` ${NO_KERNEL}`) : "");
}

function listen(it) {
  const hit = (event) => under(it.grids, it.svg, event);
  it.value = (i) => (it.asked?.at === i ? it.asked.value : Number(it.cells[i].text.textContent));
  onDrag(it.board, (event) => {
    const i = hit(event);
    it.dragged = false;
    if (!it.movable(i)) return null;
    pin(it, i);
    return { at: i, value: it.value(i) };
  }, (held, far) => {
    it.dragged ||= Math.abs(far) >= 4;
    if (it.dragged) it.change(held.at, held.value + far * PER_PIXEL);
  });
  it.board.addEventListener("pointermove", (event) => {
    if (!it.pinned) it.board.classList.toggle("movable", it.movable(hit(event)));
  });
  const find = (event) => (event.type === "click" && it.dragged ? undefined : hit(event));
  onPoint(it, find, (key) => keyed(it, key));
}

// Do what a key asks for; say whether it asked for anything.
function keyed(it, key) {
  const { cells, current } = it;
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (way) {
    const i = current === null ? Number(Object.keys(cells)[0]) : nearest(cells, current, way);
    if (i !== null) turnTo(it, i); // what is pinned moves along
  } else if ("+=-".includes(key) && it.movable(current)) {
    it.change(current, it.value(current) + (key === "-" ? -PER_KEY : PER_KEY));
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
      const [x, y] = shift(each);
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
  marks.own.setAttribute("d", own === null ? "" : box(own));
}

// Keep the card where it is seen: over the help, or at the edge of what is in sight.
function dock(it) {
  const { words, svg } = it, cell = it.cells[it.current];
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  it.frames ??= around(svg);
  let above = 0, below = window.innerHeight;
  for (const frame of it.frames.map((each) => each.getBoundingClientRect())) {
    if (frame.height < 50) continue;
    above = Math.max(above, frame.top);
    below = Math.min(below, frame.bottom);
  }
  const high = words.offsetHeight;
  const low = Math.min(below - box.top - high, box.height);
  const up = Math.max(above - box.top, 0);
  const hides = (cell.y + cell.height) * scale > low && cell.y * scale < low + high;
  words.style.top = `${hides && up + high < cell.y * scale ? up : Math.max(low, 0)}px`;
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

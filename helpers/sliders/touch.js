// One script for all pictures whose numbers answer to a finger: it finds the cells, marks what
// Python says belongs together, shows Python's words, and asks Python when a number is dragged.

const HOW = "Point at a number, or come here with Tab and use the arrow keys. " +
  "Click or Enter pins it, Escape frees it. Solid frames: it comes from these. " +
  "Dashed frames: it goes to these. A dot product that is pinned shows its pairs one by one: " +
  "click it again, or press Enter.";
const drag = (what) => ` Drag a number of ${what} sideways, or press + and -: all steps follow.`;
const STILL = " Numbers cannot be dragged here, for no kernel runs.";
const PATIENCE = 2000; // milliseconds until a kernel that does not answer counts as none
const PACE = 600; // milliseconds for a pair of a dot product
const PER_PIXEL = 0.01, PER_KEY = 0.1; // what a dragged number changes by

function render({ model, el }) {
  return model.get("ways") ? glide(model, el) : touch(model, el);
}

function touch(model, el) {
  const board = build(el, model.get("svg"));
  const svg = board.querySelector("svg");
  const book = model.get("book"), told = model.get("told").slice();
  const { cells, grids } = find(svg, book.starts);
  const related = unpack(book.links, book.count);
  const marks = overlay(svg), card = board.querySelector(".card");
  const help = el.querySelector(".help");
  let current = null, pinned = false, held = null, live = false;

  let turn = 0;
  const meet = () => { // pair by pair: the two that meet, and the sum as far as it is
    const [, ...sum] = told[current][1].match(/^(.*) (= .*)$/) ?? [], met = book.pairs[current];
    if (!met?.every((pair) => pair.every((i) => cells[i])) || !sum.length) return;
    const terms = sum[0].split(" + ");
    let k = 0;
    const next = () => {
      const over = k >= met.length;
      marks.pair.setAttribute("d", over ? "" : met[k].map((i) => outline(cells[i])).join(""));
      k += 1;
      card.children[1].textContent = over ? told[current][1] :
        `${terms.slice(0, k).join(" + ")}${k < met.length ? " + ..." : ""}`;
      turn = over ? 0 : setTimeout(next, PACE);
    };
    next();
  };
  const show = (i) => {
    clearTimeout(turn);
    marks.pair.setAttribute("d", "");
    current = i;
    board.classList.toggle("pointed", i !== null);
    card.hidden = i === null;
    if (i === null) return draw(marks, cells, null);
    const from = related[i].from.filter((j) => cells[j]);
    const to = related[i].to.filter((j) => cells[j]);
    draw(marks, cells, i, from, to);
    say(i);
    dock(card, svg, cells[i]);
  };
  const say = (i) => {
    card.children[0].textContent = told[i][0];
    card.children[1].textContent = told[i][1];
  };
  const pin = (i) => {
    pinned = i !== null;
    board.classList.toggle("pinned", pinned);
    if (i !== current) show(i);
  };
  const press = (i) => { if (pinned && i === current) { show(i); meet(); } else pin(i); };
  const free = () => { pin(null); show(null); };
  const movable = (i) => live && i !== null && i < book.movable;

  const asking = ask(model, (answer) => {
    live = true;
    for (const [i, [text, opacity, words]] of Object.entries(answer.cells ?? {})) {
      told[i] = words;
      if (!cells[i]) continue;
      cells[i].text.textContent = text;
      cells[i].box.setAttribute("fill-opacity", opacity);
    }
    if (current !== null) say(current);
    help.textContent = HOW + (cells[0] ? drag(book.what) : "");
    board.classList.add("live");
  }, () => {
    live = false;
    board.classList.remove("live");
    help.textContent = HOW + (cells[0] ? STILL : "");
  });
  const change = (i, value) => asking({ at: i, value: Math.round(value * 100) / 100 });

  const hit = (event) => under(grids, svg, event);
  board.addEventListener("pointermove", (event) => {
    if (held && !held.done) {
      const far = event.clientX - held.x;
      if (!held.moved && Math.abs(far) < 4) return;
      held.moved = true;
      change(held.at, held.value + far * PER_PIXEL);
    } else if (!pinned && event.pointerType !== "touch") {
      const i = hit(event);
      if (i !== current) show(i);
      board.classList.toggle("movable", movable(i));
    }
  });
  board.addEventListener("pointerleave", () => { if (!pinned && !held) show(null); });
  board.addEventListener("pointerdown", (event) => {
    const i = hit(event);
    if (!movable(i)) return;
    held = { at: i, x: event.clientX, value: Number(cells[i].text.textContent), moved: false };
    board.setPointerCapture(event.pointerId);
    pin(i);
  });
  board.addEventListener("pointerup", () => { held = held?.moved ? { done: true } : null; });
  board.addEventListener("pointercancel", () => { held = null; });
  board.addEventListener("click", (event) => {
    if (held?.done) { held = null; return; }
    const i = hit(event);
    if (i === null) free();
    else press(i);
  });
  board.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // a letter typed here is no command to the notebook
    const i = keyed(event.key, cells, current, movable(current) && change);
    if (event.key === "Escape") free();
    else if (event.key === "Enter" || event.key === " ") {
      if (current !== null) press(current);
    } else if (i === undefined) return;
    else if (i !== null) { if (pinned) pin(i); show(i); }
    event.preventDefault();
  });
  // Where a mouse points, everything would be read aloud; with the keys, what is asked for.
  board.addEventListener("focus", () => { card.ariaLive = "polite"; });
  board.addEventListener("blur", () => { card.ariaLive = "off"; if (!pinned) show(null); });
  const scrolled = () => { if (current !== null) dock(card, svg, cells[current]); };
  document.addEventListener("scroll", scrolled, { capture: true, passive: true });
  help.textContent = HOW;
  asking({});
  return () => document.removeEventListener("scroll", scrolled, { capture: true });
}

// The parts of the page: a board that takes the keys, the drawing, a card with words.
function build(el, svg) {
  const id = `touch-${Math.random().toString(36).slice(2)}`;
  el.classList.add("touch");
  el.innerHTML = `<div class="board" tabindex="0" role="application" aria-describedby="${id}">` +
    `${svg}<p class="help" id="${id}"></p>` +
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
  marks.own.setAttribute("d", own === null ? "" : box(own));
}

// Keep the card where it is seen: over the help, or at the edge of what is in sight.
function dock(card, svg, cell) {
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  let above = 0, below = window.innerHeight;
  for (let each = svg.parentElement; each; each = each.parentElement) {
    if (!/auto|scroll|hidden/.test(getComputedStyle(each).overflowY)) continue;
    const frame = each.getBoundingClientRect();
    if (frame.height < 50) continue;
    above = Math.max(above, frame.top);
    below = Math.min(below, frame.bottom);
  }
  const high = card.offsetHeight;
  const whole = svg.parentElement.getBoundingClientRect().height;
  const low = Math.min(below - box.top - high, Math.max(box.height, whole - high)), up = Math.max(above - box.top, 0);
  const hides = (cell.y + cell.height) * scale > low && cell.y * scale < low + high;
  card.style.top = `${hides && up + high < cell.y * scale ? up : Math.max(low, 0)}px`;
}

// What a key does: the next number in its direction, null where it did its work, else undefined.
function keyed(key, cells, current, change) {
  const way = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[key];
  if (way && current === null) return Number(Object.keys(cells)[0]);
  if (way) return nearest(cells, current, way);
  if (key === "Escape" || key === "Enter" || key === " ") return null;
  if (!change || !"+=-".includes(key)) return undefined;
  change(current, Number(cells[current].text.textContent) + (key === "-" ? -PER_KEY : PER_KEY));
  return null;
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

// Send a question at a time, then the newest of those that came meanwhile.
function ask(model, answered, silent) {
  let waiting = null, next = null, turn = 0;
  const send = (question) => {
    turn += 1;
    waiting = setTimeout(() => { waiting = next = null; silent(); }, PATIENCE);
    try {
      model.send({ ...question, turn });
    } catch {
      clearTimeout(waiting);
      waiting = null;
      silent();
    }
  };
  model.on("msg:custom", (answer) => {
    if (answer.turn !== turn) return;
    clearTimeout(waiting);
    waiting = null;
    answered(answer);
    if (next) send(next);
    next = null;
  });
  return (question) => { if (waiting) next = question; else send(question); };
}

// A step as motion: a slider from before to after, and a button that plays it once.
function glide(model, el) {
  const ways = model.get("ways"), svg = model.get("svg");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  el.classList.add("touch");
  el.innerHTML = `<div class="controls"><button type="button">Play</button>` +
    `<label>before <input type="range" min="0" max="1" value="0"> after</label></div>${svg}`;
  const [button, slider] = el.querySelectorAll("button, input");
  const cells = [...el.querySelectorAll(".moves")];
  const fading = { before: (t) => Math.max(1 - 3 * t, 0), after: (t) => Math.max(3 * t - 2, 0) };
  // Those that go the same way go together, one group after the other, so that an eye can follow.
  const groups = [...new Set(ways.map(String))];
  const late = ways.map((way) => 0.6 * groups.indexOf(String(way)) / Math.max(groups.length - 1, 1));
  slider.setAttribute("aria-label", "from before to after");
  const pace = () => { slider.step = still.matches ? 1 : 0.01; };
  const show = (t) => {
    slider.value = t;
    slider.setAttribute("aria-valuetext", t <= 0 ? "before" : t >= 1 ? "after" :
      `${Math.round(100 * t)} percent of the way`);
    cells.forEach((cell, i) => {
      const [x, y] = ways[i], far = Math.min(Math.max((t - late[i]) / 0.4, 0), 1);
      if (x || y) cell.setAttribute("transform", `translate(${x * far} ${y * far})`);
    });
    for (const [name, fade] of Object.entries(fading)) {
      el.querySelectorAll(`.${name}`).forEach((each) => each.setAttribute("opacity", fade(t)));
    }
    button.textContent = t >= 1 ? "Play back" : "Play";
  };
  let frame = 0;
  const stop = () => cancelAnimationFrame(frame);
  const play = () => {
    stop();
    const from = Number(slider.value), to = from >= 1 ? 0 : 1, start = performance.now();
    if (still.matches) return show(to);
    const next = (now) => {
      const share = Math.min((now - start) / 1800, 1);
      show(from + (to - from) * share);
      if (share < 1) frame = requestAnimationFrame(next);
    };
    frame = requestAnimationFrame(next);
  };
  button.addEventListener("click", play);
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  el.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && event.key !== "Tab") event.stopPropagation();
  });
  still.addEventListener("change", pace);
  pace();
  show(0);
  return () => { stop(); still.removeEventListener("change", pace); };
}

export default { render };

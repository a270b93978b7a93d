// Lines to break by hand: Python worked out what each choice of them comes to; this chooses among
// them, and lists what one lamp alone has seen, or none.

const LAMPS = ["shape", "numbers", "sentence"], SCRUB = 24; // pixels of a drag, for each text
const KEYS = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1, Enter: 1, " ": 1 };
const SIGNS = { true: "✗", false: "✓", null: "–" };
const SAYS = { true: "wrong", false: "fine", null: "cannot tell" };

function render({ model, el }) {
  const data = model.get("data"), right = data.states[0], tried = new Set();
  el.classList.add("break");
  el.innerHTML = `<div class="lines"></div>
    <p class="help">Click a framed part, drag it up or down, or use the arrow keys. <button type="button"
    >Back to the right line${data.lines[1] ? "s" : ""}</button></p>
    <div class="lamps">${LAMPS.map((name) => `<section data-lamp="${name}"><h4></h4><p></p><div></div>
      </section>`).join("")}</div>
    <p class="why" aria-live="polite"></p><p class="count"></p>
    <div class="tried" tabindex="0" role="group" aria-label="What you have tried"><table></table></div>`;
  const [lines, help, lamps, why, count, list] = el.children, back = help.lastElementChild;
  let { chosen } = right;
  const show = (state) => {
    parts.forEach((part, k) => part.show(state.chosen[k]));
    LAMPS.forEach((name, k) => lit(lamps.children[k], name, state, k));
    why.textContent = state.why.join(" ");
    back.disabled = state === right;
  };
  const choose = (wanted) => {
    chosen = wanted;
    const state = data.states.find((each) => `${each.chosen}` === `${chosen}`);
    show(state);
    if (state !== right) tried.add(state);
    const by = (most) => [...tried].filter((each) => seenBy(each) === most).length;
    count.textContent = `Tried: ${tried.size} of ${data.states.length - 1}. ` +
      `Seen by one lamp alone: ${by(1)}. By none: ${by(0)}.`;
    list.firstChild.replaceChildren(...[...tried].reverse().map((each) =>
      row(data.lines, each, each === state, choose)));
  };
  const lit = (lamp, name, state, k) => {
    const notices = state.notices[k], [title, says, seen] = lamp.children;
    lamp.dataset.notices = notices;
    title.textContent = `${SIGNS[notices]} ${name}: ${SAYS[notices]}`;
    says.textContent = state.says[k];
    if (name === "numbers") {
      const now = state === right || !state.tables.length ? [] : [tables("now", state.tables)];
      seen.replaceChildren(tables("right", right.tables), ...now);
    }
    if (name === "sentence") seen.replaceChildren(...sentence(data.words, state.word));
  };
  const parts = data.lines.map((line, k) => written(lines, line, k, () => chosen[k], (text) =>
    choose(chosen.map((each, i) => (i === k ? (text + line.texts.length) % line.texts.length : each)))));
  back.addEventListener("click", () => { choose(right.chosen); parts[0].focus(); });
  onKeys(list, () => false);
  choose(chosen);
  return onRoom(el, () => { // the room of the tallest choice, so that nothing jumps
    const all = [lines, lamps, why], high = all.map(() => 0);
    all.forEach((each) => { each.style.minHeight = ""; });
    for (const state of data.states) {
      show(state);
      all.forEach((each, k) => { high[k] = Math.max(high[k], each.offsetHeight); });
    }
    all.forEach((each, k) => { each.style.minHeight = `${high[k]}px`; });
    choose(chosen);
  });
}

const seenBy = ({ notices }) => notices.filter((each) => each).length;

// A line of code, with the part of it that can be changed.
function written(lines, { before, after, texts }, k, now, turn) {
  const row = lines.appendChild(document.createElement("div")), part = document.createElement("span");
  Object.assign(part, { className: "part", tabIndex: 0, role: "slider", ariaValueMin: 0,
    ariaValueMax: texts.length - 1, ariaLabel: `line ${k + 1}: ${before.trim()}` });
  row.append(before, part, after);
  let dragged = false;
  onDrag(part, () => {
    part.focus();
    dragged = false;
    return { from: now() };
  }, ({ from }, right, up) => {
    const by = Math.round(-up / SCRUB);
    dragged ||= by !== 0;
    const text = (from + by % texts.length + texts.length) % texts.length;
    if (text !== now()) turn(text);
  }, () => { if (!dragged) turn(now() + 1); });
  onKeys(part, (key) => {
    const to = { Home: 0, End: texts.length - 1 }[key] ?? now() + KEYS[key];
    if (Number.isNaN(to)) return false;
    turn(to);
    return true;
  });
  return {
    focus: () => part.focus(),
    show: (at) => {
      part.replaceChildren(texts[at] || "nothing", Object.assign(document.createElement("small"),
        { textContent: `${at + 1}/${texts.length}` }));
      part.classList.toggle("wrong", at > 0);
      part.ariaValueNow = at;
      part.setAttribute("aria-valuetext", texts[at] || "nothing");
    },
  };
}

// The sentence with its next word, and a bar as long as the word's share.
function sentence(words, word) {
  const line = Object.assign(document.createElement("p"), { textContent: `${words.join(" ")} ` });
  const next = line.appendChild(document.createElement("b")), bar = document.createElement("div");
  const [text, share] = word ?? ["?", 0];
  next.textContent = text;
  bar.className = "bar";
  bar.style.setProperty("--share", share);
  return [line, bar];
}

// A row of what was tried: the changed lines, which lead back there, and what each lamp said.
function row(lines, state, current, choose) {
  const tr = document.createElement("tr"), button = document.createElement("button");
  Object.assign(button, { type: "button", ariaCurrent: String(current) });
  button.textContent = lines.map(({ before, texts, after }, k) =>
    state.chosen[k] && `${before}${texts[state.chosen[k]]}${after}`).filter(Boolean).join("   ");
  button.addEventListener("click", () => choose(state.chosen));
  tr.classList.toggle("few", seenBy(state) < 2);
  tr.insertCell().append(button);
  LAMPS.forEach((name, k) => { tr.insertCell().textContent = `${SIGNS[state.notices[k]]} ${name}`; });
  return tr;
}

export default { render };

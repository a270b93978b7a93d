// The stage's page: what is around the numbers, and an element over each of them.

const PLACES = ["title", "why", "choices", "back", "steps", "code", "knobs", "words", "one", "strip",
  "through", "share", "handle", "board", "field", "cells", "drawn", "card"]; // parts of the page by their class
const SCOPES = { word: "one word", head: "all words", all: "all heads", hand: "check by hand" };
const SIZES = { heads: "num_heads", dOut: "d_out", tokens: "num_tokens" };

const SIGNS = Object.fromEntries(Object.entries({ done: "✓", wrong: "✗", next: "…" }).map(([is, sign]) =>
  [is, ` <b class="${is}" role="img" aria-label="${is}">${sign}</b>`]));

const placed = ([x, y, w, h]) => `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;

class StagePage {
  constructor(it, el) {
    const { steps, scenes, done = [] } = it.data, names = Object.keys(scenes);
    const { open, state } = it.own ?? {};
    const tile = ({ name, letters }, k) => `<div class="tile${k < it.end ? "" : " dark"}"
      title="${letters}">${
      SIGNS[done.includes(name) ? "done" : k + 1 === open ? state : ""] ?? ""} ${k + 1} <span>${
      name}</span><small></small></div>`;
    const knob = ([key, name]) => `<label><span>${name}</span><input type="range" min="0"
      aria-label="${name}" data-size="${key}"><output></output></label>`;
    const scopes = !scenes.sentence ? [] : Object.entries(SCOPES).filter(([scope]) => scope !== "hand" || names[1])
      .map(([scope, text]) => `<button class="scope" data-scope="${scope}">${text}</button>`);
    el.classList.add("live");
    el.insertAdjacentHTML("beforeend", `<div class="stage" data-stage role="group"
        data-lm-suppress-shortcuts="true"
        aria-label="The stage: eleven steps of multi-head attention, one after the other">
      <div class="top"><div class="title" aria-live="polite"></div>
        <div class="choices"><button class="steps"${it.data.large ? "" : " hidden"}></button><button
          class="back">Back to the start</button>${scopes.join("")}</div></div>
      <p class="why"></p><div class="through" role="group" aria-label="the head that is followed"></div>
      <div class="desk"><pre class="code" tabindex="0"></pre>
        <div class="words"></div><label class="share">divide by <input type="range" min="-0.7" max="2.8"
          step="0.01" aria-label="divide by"><output></output></label>
        <div class="knobs">${Object.entries(SIZES).map(knob).join("")}</div></div>
      <div class="foot"><button class="one"></button>
        <div class="strip" tabindex="0" role="slider" aria-label="Playhead: step" aria-valuemin="1"
          aria-valuemax="11"><div class="tiles">${steps.map(tile).join("")}</div><div class="handle"></div></div></div>
      <div class="board" role="group" aria-label="Numbers: Tab goes to a tensor, left and right through it, up and down
        change one"><div class="field"><canvas></canvas><svg class="drawn" aria-hidden="true"></svg>
        <div class="cells"></div></div></div>
      <div class="card" aria-live="off"></div></div>`);
    const root = el.lastChild, part = (name) => root.querySelector(`.${name}`);
    this.it = it; this.root = root;
    for (const name of PLACES) this[name] = part(name);
    this.tiles = [...root.querySelectorAll(".tile")]; this.canvas = root.querySelector("canvas");
    this.open(Boolean(it.data.large));
    for (const [k, head] of it.data.colours.entries())
      root.style.setProperty(`--tone${k}`, `light-dark(${head}, oklch(from ${head} calc(0.4 + l / 2) c h))`);
    const slide = this.share.querySelector("input");
    slide.oninput = (event) => {
      event.stopPropagation();
      const root = Math.sqrt(it.headDim), by = Math.exp(slide.value);
      it.hand.divide(Math.abs(Math.log(by / root)) < 0.06 ? root : by);
    };
    this.elements = []; // by the number of their cell
    this.watch();
    this.moving = false; // whether cells are on their way
    this.forget();
  }

  // Where the sentence is the page, its steps are one press away, and so is the way back.
  open(large) {
    this.root.dataset.large = large;
    this.steps.textContent = large ? "The eleven steps of this sentence" : "Arcs";
  }

  // A step's tile lights up as soon as its exercise is passed: the card of its verdict says so.
  watch() {
    const { root, it } = this, notebook = root.closest(".jp-Notebook"), { steps } = it.data;
    this.passed = new MutationObserver((changes) => changes.every(({ target }) => root.contains(target)) ||
      this.tiles.forEach((tile, k) => {
        const card = notebook.querySelector(`[aria-label="Verdict: ${steps[k].name}.1"][style*="success"]`);
        if (card && !tile.querySelector(".done")) tile.insertAdjacentHTML("afterbegin", SIGNS.done);
      }));
    if (notebook && !it.own) this.passed.observe(notebook, { childList: true, subtree: true });
  }

  // What stands on the page is written anew.
  forget() { this.covered = this.said = this.titled = this.told = null; }

  clear() {
    if (this.cells.contains(document.activeElement)) this.strip.focus({ preventScroll: true });
    this.elements = []; this.cells.replaceChildren();
  }

  // The sentence of a scene that has one.
  spell() {
    const { it } = this, { colours } = it.data;
    this.words.hidden = !it.words;
    if (it.words) this.sentence ??= new Sentence(this.words, it.speaking(), colours);
  }

  // What comes next, and whether there is anything to put back.
  foretell() {
    const { it } = this, { moved, words, swapped, off } = it;
    if (words) this.sentence.draw();
    const first = Math.min(...[...moved.values()].map(({ step }) => step));
    this.tiles.forEach((tile, k) => tile.classList.toggle("moved", k + 1 >= first)); // what follows from a change
    this.back.disabled = !moved.size && !off.size && !swapped;
  }

  // The title asks, and answers once the step has happened.
  say() {
    const { it } = this, n = it.step, answered = it.p >= n - 1e-6, { name, code } = it.data.steps[n - 1];
    const title = `<b>${n} ${name}</b> ${titled(it, n, answered)}`, key = `${n} ${answered}`;
    this.beside(n);
    if (title !== this.titled) {
      this.title.innerHTML = this.titled = title;
      this.title.classList.remove("long"); // a long one is set smaller: none is cut
      if (this.title.scrollHeight > this.title.clientHeight + 2) this.title.classList.add("long");
    }
    if (key !== this.said) {
      this.said = key;
      this.root.dataset.step = n; this.root.dataset.answered = answered;
      this.code.textContent = it.own?.code || code;
      this.code.scrollTop = 16 * ((it.own?.lines[n - 1] ?? 0) - 3); // a line is 16 pixels high
      this.strip.setAttribute("aria-valuenow", n);
      this.strip.setAttribute("aria-valuetext", `step ${n}, ${name}: ${answered ? "done" : "before it"}`);
      this.tiles.forEach((tile, k) => tile.classList.toggle("on", k + 1 === n));
      it.playhead.mark(it.playhead.running);
      if (!it.pointed && !it.hand.hold && !(answered && it.playhead.running)) this.tell(); // the last sum stays
    }
    this.cover();
  }

  // What stands beside the story of a word: why a step is there, and what the scores are divided by.
  beside(n) {
    const { it } = this, by = it.divisor, [slide, output] = this.share.children;
    const { off, total = 1 } = n === 8 ? found(it) : {}, why = off ? "A head that is off adds nothing to what follows."
      : Math.abs(total - 1) > 0.005 ? "These weights do not add up to 1, so the context is no average." : WHY[n];
    if (this.why.textContent !== why) this.why.textContent = why;
    this.share.style.visibility = n === 7 ? "" : "hidden";
    if (n !== 7) return;
    slide.value = Math.log(by);
    output.textContent = written(by) + (it.moved.has("divisor") ? "" : ` = √${it.headDim}`);
    slide.setAttribute("aria-valuetext", output.textContent);
  }

  // The card: what is said of a number, or how to begin.
  tell(text = "") {
    const frames = this.it.narrow ? "" : ": where it comes from (solid) and goes (dashed)";
    const drag = this.it.own ? "" : " Drag it: what if it were another?";
    const html = text || `<i>Point at a number${frames}.${drag}</i>`;
    if (html !== this.told) this.card.innerHTML = this.told = html;
  }

  // Lay an element over each number of the step, where it comes to rest.
  cover() {
    const { it } = this, n = it.step, { need, index } = it.steps[n], stops = new Set(), key = `${n} ${it.p === n}`;
    this.moving = it.p !== n && Math.abs(it.p - n + 1 - TURN) > 1e-6;
    this.cells.classList.toggle("moving", this.moving);
    if (this.covered === key || it.playhead.scrubbing) return;
    this.covered = key;
    const shown = it.steps[n].shown.filter(({ kind }) => it.p === n || !isNew(kind, n)); // no answer before the press
    this.field.style.width = need > it.laid + 1 ? `${need}px` : "";
    const here = new Set(shown.map(({ k }) => k)); // what is not hidden for a moment keeps the focus
    this.elements.forEach((element, k) => { element.hidden = !here.has(k); });
    for (const cell of shown) {
      const element = this.elements[cell.k] ??= this.cells.appendChild(
        Object.assign(document.createElement("i"), { k: cell.k }));
      element.style.cssText = placed(it.steps[n].at(cell.k));
      element.dataset.cell = [nameOf(cell.kind, n), ...index[cell.k]].join(".");
      const differs = n === it.own?.open && it.differs[nameOf(cell.kind, n)]?.[cell.at];
      element.className = `${cell.kind}${differs ? " wrong" : ""}${it.movable(cell, n) ? " movable" : ""}`;
      if (element.tabIndex !== 0) element.tabIndex = -1;
      if (!stops.has(cell.kind)) this.tabbed(cell); // one stop a tensor, arrow keys go on from there
      stops.add(cell.kind);
    }
    this.worth();
  }

  // A ribbon's parts lie elsewhere once its shares have changed.
  shares() {
    const laid = this.it.steps[this.it.step];
    for (const { kind, k } of laid.shown) if (kind === "scores" &&
      this.elements[k]) this.elements[k].style.cssText = placed(laid.at(k));
  }

  // Let Tab go to this number, the one of its tensor.
  tabbed(cell) {
    for (const element of this.elements) {
      if (element?.tabIndex === 0 && element.k !== cell.k &&
        this.it.list[element.k].kind === cell.kind) element.tabIndex = -1;
    }
    const element = this.elements[cell.k];
    element.tabIndex = 0;
    element.setAttribute("role", "slider");
    element.setAttribute("aria-readonly", !this.it.movable(cell));
    element.setAttribute("aria-label", `${this.it.called(cell, this.it.step)}, step ${this.it.step}`);
    this.spoken(element, this.it.value(cell, this.it.step));
  }

  // Write the values of all numbers into their elements.
  worth() {
    const { it } = this;
    for (const cell of it.steps[it.step].shown) {
      const element = this.elements[cell.k], value = it.value(cell, it.step);
      const text = value === -Infinity ? "-inf" : String(value);
      if (!element || element.dataset.value === text) continue;
      element.dataset.value = text;
      if (element.role) this.spoken(element, value);
    }
  }

  spoken(element, value) {
    element.setAttribute("aria-valuenow", isFinite(value) ? Number(value.toFixed(6)) : -1e9);
    element.setAttribute("aria-valuetext", written(value).replace("−", "minus ").replace("∞", "infinity"));
  }

  // Sliders for the sizes, over what is legal, and buttons for the scenes.
  sizes() {
    const { scene, sizes, name, reader } = this.it, legal = { heads: scene.heads[sizes.dOut],
      dOut: Object.keys(scene.heads).map(Number), tokens: range(scene.most, (i) => i + 1) };
    this.tiles.forEach((tile, k) => { tile.lastChild.textContent = this.it.shape(k + 1).shape; });
    for (const input of this.knobs.querySelectorAll("input")) {
      const key = input.dataset.size, values = legal[key];
      Object.assign(input, { values, max: values.length - 1, value: values.indexOf(sizes[key]) });
      input.parentNode.hidden = !values[1] || Boolean(reader); // where there is nothing to choose
      input.setAttribute("aria-valuetext", sizes[key]);
      input.nextSibling.textContent = sizes[key];
    }
    const { scope, head } = this.it, { names, colours } = this.it.data, scoped = reader ? scope : "hand";
    for (const one of this.choices.querySelectorAll(".scope")) one.ariaPressed = String(one.dataset.scope === scoped);
    const held = [...this.through.children].indexOf(document.activeElement);
    this.through.innerHTML = !reader ? ""
      : "Follow " + range(sizes.heads, (h) => `<button data-head="${h}" aria-pressed="${h === head}"
      style="--head:${colours[h]}"><b>${names[1][h]}</b> head ${h}</button>`).join("") + (this.it.swapped ? ""
      : `<button data-meets="1" aria-pressed="${sizes.tokens > 6}">Anna also met Lena</button>`);
    this.through.children[held]?.focus();
  }
}

// The stage: the eleven steps of multi-head attention as one picture under the hand. Python hands
// over weights, an input and the lines of code; everything else is worked out here, without a
// kernel. Numbers are painted on a canvas; over each lies an element that can be found and held.

const PER_PIXEL = 0.01, PER_KEY = 0.1; // what a number that is held changes by
const SECONDS = { 1: 2.4, 2: 6, 5: 7, 6: 2.4, 7: 3, 8: 6, 11: 6 }; // 3, 4, 9, 10: by their rows
const PAUSE = 1600; // milliseconds between steps, to read what was found
const STILL = matchMedia("(prefers-reduced-motion: reduce)");
const SIZES = { heads: "num_heads", dOut: "d_out", tokens: "num_tokens" };

class Stage {
  constructor(el, data) {
    this.data = data; this.own = data.own; // of a class of one's own: how far it has come
    const { open, tensors } = this.own ?? {};
    this.end = !open ? LAST : tensors ? open : open - 1 + TURN;
    this.page(el); this.painter = new Painter(this, this.canvas, this.small);
    this.look(); this.listen(); this.paced(1);
    this.p = data.steps.findIndex(({ name }) => name === data.step) + (data.answered ? 1 : TURN);
    this.choose(data.scene);
  }

  // Take a scene as it comes: its x and weights, which a hand may change, stand here anew.
  choose(name) {
    this.name = name; this.scene = { ...this.data.scenes[name] };
    this.reader = this.scene.model && new Reader(this.scene.model);
    this.wide = this.scene.dIn > 12; // too wide for numbers: features are colours
    this.sizes = { ...this.scene.start, dIn: this.scene.dIn };
    this.begin(); this.set();
  }

  begin() {
    this.scene.words &&= [...this.data.scenes[this.name].words]; // as they were at first
    this.input = floats(this.scene.x); this.spell();
    this.every = Object.fromEntries(
      Object.entries(this.scene.weights).map(([dOut, each]) => [dOut, decoded(each)]));
    this.far = 2 * Math.max(1, Math.ceil(strongest(this.input))); // as far as a hand may go
    this.back.disabled = true;
  }

  // Build everything for these sizes; the number of heads has to divide d_out.
  set(sizes = {}) {
    Object.assign(this.sizes, sizes);
    const legal = this.scene.heads[this.sizes.dOut];
    if (!legal.includes(this.sizes.heads)) {
      this.sizes.heads = Math.max(...legal.filter((each) => each <= this.sizes.heads));
    }
    this.release(); this.point(null);
    this.headDim = this.sizes.dOut / this.sizes.heads; this.forms = forms(this.sizes);
    Object.assign(this, cells(this.forms));
    if (this.cells.contains(document.activeElement)) this.board.focus({ preventScroll: true });
    this.elements = []; this.cells.replaceChildren();
    this.compute();
    this.most = Object.fromEntries(Object.entries({ ...this.weights, ...this.tensors })
      .map(([name, each]) => [name, strongest(each)]));
    const parts = Math.max(...PARTS.map((name) => this.most[name])), masked = this.most.scores;
    Object.assign(this.most, { queries: parts, keys: parts, values: parts, masked, weights: 1 });
    this.tiles.forEach((tile, k) => { tile.lastChild.textContent = this.shape(k + 1).shape; });
    this.sliders(); this.arrange();
  }

  // A select for each word, and below them what comes next.
  spell() {
    const { words = [] } = this.scene, option = (word) => `<option>${word}</option>`;
    const all = this.reader?.vocabulary.map(option).join("");
    const select = (_, i) => `<select aria-label="word ${i}" data-word="${i}">${all}</select>`;
    this.words.innerHTML = words.map(select).join("");
    words.forEach((word, i) => { this.words.children[i].value = word; });
  }

  // Swap a word: the model reads the sentence anew.
  swap(i, word) {
    this.scene.words[i] = word; this.input = this.reader.read(this.scene.words);
    this.back.disabled = false; this.set();
  }

  get step() { return Math.max(1, Math.ceil(this.p - 1e-6)); }

  compute() {
    this.weights = this.every[this.sizes.dOut];
    this.tensors = forward(this.input, this.weights, this.sizes);
    this.mine = { ...this.tensors }; this.differs = {};
    const { tokens } = this.sizes;
    const next = this.reader?.next(this.input, this.tensors.out, tokens - 1) ?? [];
    const said = next.map(([word, share]) => `<b style="--share:${share}">${word} ${share.toFixed(2)}</b>`);
    this.next.innerHTML = said.length ? `next word: ${said.join(" ")}` : "";
    for (const [name, { numbers, differs }] of Object.entries(this.own?.tensors ?? {})) {
      const [own, to, off] = [floats(numbers), new Float64Array(differs.length), []];
      ordered(this.forms[LEFT[this.end][1]]).forEach((k, i) => [to[k], off[k]] = [own[i], differs[i]]);
      this.mine[name] = to; this.differs[name] = off;
    }
  }

  // What stands at a step: where one's own class is not right, what it has made.
  standing(step) { return step === this.own?.open ? this.mine : this.tensors; }

  look() {
    this.painter.look(this.root, this.data.colours); this.ink = getComputedStyle(this.root).color;
    this.least = Math.ceil(LEAST_FONT * this.painter.shortEm / 0.92);
  }

  // Lay everything out for the room there is.
  arrange() {
    this.laid = this.board.clientWidth; this.room = this.laid || 1068; this.narrow = this.room < 760;
    Object.assign(this, arrange(this));
    this.painter.resize(this.painter.pen, this.across, this.high);
    this.painter.resize(this.painter.small, this.strip.clientWidth, STRIP);
    this.covered = this.said = null;
    this.say(); this.soon(); this.later(0);
  }

  soon() { this.frame ??= requestAnimationFrame(() => { this.frame = null; this.paint(); }); }

  later(wait) {
    this.waiting ??= setTimeout(() => {
      this.waiting = null; this.painter.miniatures(this.strip.clientWidth / LAST);
    }, wait);
  }

  paint() {
    this.painter.paint();
    const n = this.step, early = n === 1 ? 1 : clamp((this.p - n + 1) / TURN);
    const at = this.scrubbing ? this.p : n - 1 + early; // before a step happens it frames its tile
    this.handle.style.transform = `translateX(${100 * (Math.max(at, 1) - 1)}%)`;
  }

  // ------------------------------------------------------------------------------- words

  width(text, font) { return this.painter.width(text, font); }
  word(i) { return this.scene.words ? this.scene.words[i] : String(i); }
  token(i) { return this.scene.words ? `“${this.scene.words[i]}”` : `token ${i}`; }

  // The shape that a step leaves, in numbers and in the letters of the lecture.
  shape(step) {
    const { letters } = this.data.steps[step - 1], { dIn, dOut, heads, tokens } = this.sizes;
    const sizes = { b: 1, num_tokens: tokens, d_in: dIn, d_out: dOut, num_heads: heads,
      head_dim: this.headDim };
    return { letters, shape: letters.replace(/\w+/g, (letter) => sizes[letter]) };
  }

  value({ kind, at }, step, tensors = this.standing(step)) {
    return (this.weights[kind] ?? tensors[nameOf(kind, step)])[at];
  }

  // By how much a number differs from what it was when one was taken hold of.
  change(cell, step) {
    const { hold } = this;
    if (!hold) return 0;
    const now = this.value(cell, step);
    const before = cell === hold.cell ? hold.before : this.value(cell, step, hold.tensors);
    return now === before ? 0 : now - before;
  }

  called({ kind, k }, step) {
    const name = nameOf(kind, step);
    return `${name}${name === "out_proj" ? ".weight.T" : ""}[${this.steps[step].index[k].join(", ")}]`;
  }

  facts() {
    return { ...this.sizes, dim: this.headDim, shares: this.tensors.weights, token: (i) => this.token(i) };
  }

  // The title asks, and answers once the step has happened.
  say() {
    const n = this.step, answered = this.p >= n - 1e-6, { name, code } = this.data.steps[n - 1];
    const found = answered && this.yours(n, name) || TITLES[n][+answered](this.facts());
    const title = `<b>${n} ${name}</b> ${found}`, key = `${n} ${answered}`;
    if (title !== this.titled) this.title.innerHTML = this.titled = title;
    if (key !== this.said) {
      this.said = key;
      Object.assign(this.root.dataset, { step: n, answered });
      this.code.textContent = code;
      this.strip.setAttribute("aria-valuenow", n);
      this.strip.setAttribute("aria-valuetext", `step ${n}, ${name}: ${answered ? "done" : "before it"}`);
      this.tiles.forEach((tile, k) => tile.classList.toggle("on", k + 1 === n));
      this.playing(this.running);
      if (!this.pointed && !this.hold && !(answered && this.running)) this.tell(); // the last sum stays
    }
    this.cover();
  }

  // What is said of a step of one's own class, where it is not just as the course's.
  yours(n, name) {
    const { open, other } = this.own ?? {};
    if (other?.includes(name)) return "Your code takes another way, without this tensor.";
    if (n !== open) return "";
    const framed = Object.values(this.differs).some((each) => each.includes(1));
    return framed ? "Yours: the framed numbers are not right."
      : "Yours: these are right; what is not is said above.";
  }

  // The card: what is said of a number, or how to begin.
  tell(text = "") {
    const frames = this.narrow ? "" : ": where it comes from (solid frames), where it goes (dashed)";
    const drag = this.own ? "" : " Drag an underlined one up or down.";
    const html = text || `<i>Point at a number${frames}.${drag}</i>`;
    if (html !== this.told) this.card.innerHTML = this.told = html;
  }

  // While a number is made, its arithmetic stands on the card.
  forming(cell) { if (!this.hold) this.tell(this.explain(cell, this.step)); }

  // A number and its arithmetic in one line.
  explain(cell, step) {
    const { kind, r, c, at } = cell, { tokens } = this.sizes, text = written(this.value(cell, step));
    const pairs = factors(this, cell, step), most = Math.max(3, Math.floor(this.room / 175));
    const product = (pair) => pair.map((each) => written(this.value(each, step))).join("·");
    const few = pairs.slice(0, most).map(product).join(" + ");
    const more = pairs.length > most ? ` + … (${pairs.length} products)` : "";
    const bias = kind === "out" ? ` + ${written(this.weights.bias[c])}`.replace("+ −", "− ") : "";
    const says = {
      x: () => `feature ${c} of ${this.token(r)}; ` + (step === 5 ? "no mask yet: every query meets its key"
        : `it reaches ${this.token(r)}${step > 5 && r < tokens - 1 ? " and those after it" : ""}`),
      masked: () => (c > r ? `${this.token(c)} comes after ${this.token(r)}`
        : `the score stays: ${this.token(c)} is not after ${this.token(r)}`),
      weights: () => {
        const row = this.tensors.masked.subarray(at - c, at + r + 1 - c), most = Math.max(...row);
        const part = (v) => written(Math.exp((v - most) / Math.sqrt(this.headDim)));
        const all = Array.from(row, part).join(" + ");
        const each = `each exp((score − ${written(most)}) / √${this.headDim})`;
        return c > r ? "exp(−∞) = 0" : `${part(row[c])} / (${all}), ${each}`;
      },
    }[nameOf(kind, step)] ?? (() => (kind.includes("_") ? "learned; the same for every token"
      : `feature ${c} of ${this.token(r)}` + (FACTORS[step] ? `, made in step ${kind === "context" ? 8 : 2}`
        : ": the same number as before, only its place is new")));
    const mine = step === this.own?.open && nameOf(kind, step) in this.differs;
    const why = mine ? `: right is ${written(this.value(cell, step, this.tensors))}`
      : pairs.length ? ` = ${few}${more}${bias}` : `: ${says()}`;
    return `<b>${this.called(cell, step)} = ${text}</b>${why}`;
  }

  // ------------------------------------------------------------------------------- hand

  movable({ kind }, step = this.step) {
    return !this.own && (kind === "x" || step === 2 && kind.startsWith("W_"));
  }

  point(cell) {
    if (this.pointed === cell) return;
    this.pointed = cell; this.kin = cell && this.relatives(cell, this.step);
    if (!this.hold) this.tell(cell ? this.explain(cell, this.step) : "");
    this.soon();
  }

  // The places of what a cell comes from and goes to at a step.
  relatives(cell, step) {
    const laid = this.steps[step], of = (each) => factors(this, each, step).flat();
    const row = ({ kind, h, r }) => step === 7 && kind === cell.kind && h === cell.h && r === cell.r;
    const ghosts = laid.ghosts.filter((k) => k === cell.k || row(this.list[k])), from = of(cell);
    const other = this.movable(cell, step) && this.moved(cell);
    const moves = (each) => each !== cell && this.value(each, step) !== this.value(each, step, other);
    const reaches = other ? moves : (each) => of(each).includes(cell);
    const framed = (which) => joined(laid.shown.filter(which).map(({ k }) => laid.at(k)));
    return { to: framed(reaches), from: [...framed((each) => from.includes(each)),
      ...joined(ghosts.map((k) => laid.at(k, laid.start)))] };
  }

  // All numbers as they would be with another number here.
  moved({ kind, at }) {
    const list = this.weights[kind] ?? this.input, before = list[at];
    list[at] += 1;
    const tensors = forward(this.input, this.weights, this.sizes);
    list[at] = before;
    return tensors;
  }

  // Take hold of a number: what was before stays known for as long as it is held.
  take(cell) {
    clearTimeout(this.letting);
    if (this.hold?.cell === cell) return;
    this.release(); this.rush();
    this.hold = { cell, tensors: this.tensors, before: this.value(cell, this.step) };
    this.report(); this.soon();
  }

  put({ kind, at }, value) {
    (this.weights[kind] ?? this.input)[at] = value;
    this.anew();
  }

  anew() { this.compute(); this.worth(); this.say(); this.soon(); this.later(40); }

  // Set the number that is held; everything after it follows.
  move(value) {
    const { cell } = this.hold;
    this.put(cell, Math.round(clamp(value, -this.far, this.far) * 100) / 100);
    this.back.disabled = false;
    this.report();
  }

  // Say what a change does here.
  report() {
    const { step } = this, { cell, before } = this.hold, now = this.value(cell, step), delta = now - before;
    const made = this.steps[step].shown.filter(({ kind }) => kind !== "x" && !kind.includes("_"));
    const moved = made.filter((each) => Math.abs(this.change(each, step)) > 1e-9).length;
    const way = delta < 0 ? "down" : "up", blind = cell.kind !== "x" || cell.r === 0 || step < 6 ? ""
      : `; ${cell.r > 1 ? `tokens 0 to ${cell.r - 1} cannot` : "token 0 cannot"} see it`;
    this.tell(`<b>${this.called(cell, step)}</b> ${written(before)} → <b>${written(now)}</b> ` +
      `<span class="${way}">${delta < 0 ? "▼ −" : "▲ +"}${Math.abs(delta).toFixed(2)}</span> ` +
      (step > 1 ? `<i>here it moves ${moved} of ${count(made.length, "number")}${blind}</i>` : ""));
    const [x, y, w, h] = this.steps[step].at(cell.k);
    const left = x > 130 ? x - 104 : x + w + 4; // beside it, and off what stands at its row
    const textContent = `${written(before)} → ${written(now)}`;
    Object.assign(this.call, { textContent, className: `call ${way}`, hidden: false });
    this.call.style.transform = `translate(${left}px, ${y + h / 2 - 11}px)`;
  }

  release() {
    if (!this.hold) return;
    this.hold = this.pointed = null; this.call.hidden = true;
    this.tell(); this.soon(); this.later(40);
  }

  // Escape takes back what is held; else, and by the button, all numbers are as at first.
  undo(all = !this.hold) {
    if (!all) this.put(this.hold.cell, this.hold.before);
    this.release();
    const words = `${this.scene.words}`;
    if (all) this.begin();
    if (words !== `${this.scene.words}`) this.set();
    else this.anew();
  }

  // What a key does here; whether it did anything.
  key(key, { shiftKey, target }) {
    const cell = this.list[target.k], by = { ArrowUp: 1, ArrowDown: -1, PageUp: 1, PageDown: -1 }[key];
    const aside = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (target.matches("input, select, button")) return false;
    if (key === "Escape") this.undo();
    else if (key === " ") this.running ? this.stop() : this.play();
    else if (cell && by) {
      this.take(cell);
      this.move(this.value(cell, this.step) + by * PER_KEY * (shiftKey ? 5 : 1));
      this.letting = setTimeout(() => { this.release(); this.point(cell); }, 1500);
    } else if (cell && aside) {
      const next = this.elements[target.k + aside];
      if (next?.hidden !== false || this.list[next.k].kind !== cell.kind) return true;
      this.tabbed(this.list[next.k]);
      next.focus();
    } else if (target === this.board && (by || aside)) this.wander(aside ?? 0, -(by ?? 0));
    else if (target !== this.strip) return false;
    else if (by || aside) this.skip(by ?? aside);
    else if (key === "Home" || key === "End") this.go(key === "Home" ? 1 : LAST, 0);
    else return false;
    return true;
  }

  // Point at the nearest number in a direction.
  wander(dx, dy) {
    this.rush();
    const laid = this.steps[this.step], [x, y] = this.pointed ? laid.at(this.pointed.k) : [0, 0];
    const far = ({ k }) => {
      const right = laid.at(k)[0] - x, down = laid.at(k)[1] - y, along = right * dx + down * dy;
      return along > 3 ? along + 3 * Math.abs(right * dy + down * dx) : Infinity;
    };
    const best = laid.shown.reduce((one, other) => (far(other) < far(one) ? other : one));
    this.card.ariaLive = "polite";
    if (!(far(best) < Infinity)) return;
    this.point(best);
    if (this.movable(best)) this.tabbed(best);
  }

  // Let Tab go to this number, the one of its tensor.
  tabbed({ kind, k }) {
    for (const each of this.elements) {
      if (each?.tabIndex === 0 && this.list[each.k].kind === kind) each.tabIndex = -1;
    }
    this.elements[k].tabIndex = 0;
  }

  // ------------------------------------------------------------------------------- playhead

  show(p) {
    const before = this.step;
    this.p = clamp(p, TURN, this.end);
    if (before !== this.step || this.p === this.step) this.point(null);
    this.say(); this.soon();
  }

  go(to, time, then) {
    this.stop(this.running); this.release();
    const from = this.p, whole = STILL.matches ? 0 : time;
    let began;
    const tick = (now) => {
      began ??= now;
      const s = whole ? clamp((now - began) / whole) : 1;
      this.motion = s < 1 ? requestAnimationFrame(tick) : null;
      this.show(s === 1 ? to : from + (to - from) * s);
      if (s === 1) then?.();
    };
    this.motion = requestAnimationFrame(tick);
  }

  // Let the step happen that stands open, or the next one; "on" goes on to the last.
  play(on = false) {
    if (this.p >= this.end) this.show(TURN);
    const to = Math.floor(this.p + 1e-6) + 1, seconds = SECONDS[to] ?? 1.4 + 0.45 * pieces(this, to);
    this.playing(on ? "all" : "step");
    this.go(to, 1000 * seconds * (to - this.p) / this.speed, () => {
      if (!on || to >= this.end) return this.playing(null);
      this.turn = setTimeout(() => this.play(true), PAUSE / this.speed);
    });
  }

  stop(running = null) {
    cancelAnimationFrame(this.motion); clearTimeout(this.turn);
    this.motion = null; this.playing(running);
  }

  playing(which) {
    this.running = which;
    const n = this.p >= this.end ? 1 : Math.floor(this.p + 1e-6) + 1;
    this.one.textContent = which === "step" ? "❚❚ Stop" : `▶ Play step ${which ? this.step : n}`;
    this.one.disabled = this.all.disabled = this.end <= TURN;
    this.all.textContent = which === "all" ? "❚❚ Stop" : "▶▶ Play on";
  }

  paced(speed) {
    this.speed = speed;
    this.pace.textContent = `speed ${speed === 0.5 ? "½" : speed}×`;
  }

  // To the end of what is happening, for a hand that does not wait.
  rush() {
    this.stop();
    if (this.p !== this.step) this.show(this.step);
  }

  skip(by) {
    if (this.motion && by > 0) this.rush();
    this.stop();
    if (by < 0) this.go(Math.max(TURN, this.step - 1), 300 / this.speed);
    else if (this.p < this.end) this.play();
  }

  // ------------------------------------------------------------------------------- page

  page(el) {
    const { steps, scenes, done = [] } = this.data, names = Object.keys(scenes);
    const signs = { done: "✓", wrong: "✗", next: "…" }, { open, state } = this.own ?? {};
    const sign = (is) => (is ? ` <b class="${is}" role="img" aria-label="${is}">${signs[is]}</b>` : "");
    const tile = ({ name, letters }, k) => `<div class="tile${k < this.end ? "" : " dark"}"
      title="${letters}">${k + 1} <span>${name}</span>
      ${sign(done.includes(name) ? "done" : k + 1 === open ? state : "")}<small></small></div>`;
    const knob = ([key, name]) => `<label><span>${name}</span><input type="range" min="0"
      aria-label="${name}" data-size="${key}"><output></output></label>`;
    const choices = names[1] ? names.map((name) => `<button>${name}</button>`) : [];
    el.classList.add("live");
    el.insertAdjacentHTML("beforeend", `<div class="stage" data-stage role="group"
        data-lm-suppress-shortcuts="true"
        aria-label="The stage: eleven steps of multi-head attention, one after the other">
      <div class="top"><div class="title" aria-live="polite"></div>
        <div class="choices">${choices.join("")}<button class="back">Back to the start</button></div></div>
      <div class="desk"><pre class="code" tabindex="0"></pre>
        <div class="knobs"><div class="words"></div><output class="next"></output>
          ${Object.entries(SIZES).map(knob).join("")}</div></div>
      <div class="foot"><div class="buttons"><button class="one"></button><button class="all"></button>
        <button class="pace"></button></div>
        <div class="strip" tabindex="0" role="slider" aria-label="Playhead: step" aria-valuemin="1"
          aria-valuemax="11"><canvas></canvas><div class="tiles">${steps.map(tile).join("")}</div>
        <div class="handle"></div></div></div>
      <div class="board" tabindex="0" role="application"
        aria-label="Numbers: arrow keys point at them, Tab goes to those that can be changed">
        <div class="field"><canvas></canvas><div class="cells"></div>
        <div class="call" hidden></div></div></div>
      <div class="card" aria-live="off"></div></div>`);
    this.root = el.lastChild;
    const parts = "words next title choices code back knobs board field cells card one all pace strip " +
      "handle call";
    for (const name of parts.split(" ")) this[name] = this.root.querySelector(`.${name}`);
    this.tiles = [...this.root.querySelectorAll(".tile")];
    [this.small, this.canvas] = this.root.querySelectorAll("canvas");
  }

  // Lay an element over each number of the step, where it comes to rest.
  cover() {
    const n = this.step, { shown, need, index } = this.steps[n], stops = new Set();
    this.moving = this.p !== n && Math.abs(this.p - n + 1 - TURN) > 1e-6;
    this.cells.classList.toggle("moving", this.moving);
    if (this.covered === n || this.scrubbing) return;
    this.covered = n;
    this.field.style.width = `${need}px`;
    const here = new Set(shown.map(({ k }) => k)); // what is not hidden for a moment keeps the focus
    this.elements.forEach((each, k) => { each.hidden = !here.has(k); });
    for (const cell of shown) {
      const [x, y, w, h] = this.steps[n].at(cell.k);
      const each = this.elements[cell.k] ??= this.cells.appendChild(
        Object.assign(document.createElement("i"), { k: cell.k }));
      each.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
      each.dataset.cell = [nameOf(cell.kind, n), ...index[cell.k]].join(".");
      const differs = n === this.own?.open && this.differs[nameOf(cell.kind, n)]?.[cell.at];
      each.classList.toggle("wrong", Boolean(differs));
      if (!this.movable(cell, n)) continue;
      each.setAttribute("role", "slider");
      each.tabIndex = stops.has(cell.kind) ? -1 : 0; // one stop a tensor, arrow keys go on from there
      stops.add(cell.kind);
      each.setAttribute("aria-label", `${this.called(cell, n)}, step ${n}`);
    }
    this.worth();
  }

  // Write the values of all numbers into their elements.
  worth() {
    for (const cell of this.steps[this.step].shown) {
      const each = this.elements[cell.k], value = this.value(cell, this.step);
      const text = value === -Infinity ? "-inf" : String(value);
      if (!each || each.dataset.value === text) continue;
      each.dataset.value = text;
      if (!this.movable(cell)) continue;
      each.setAttribute("aria-valuenow", text);
      each.setAttribute("aria-valuetext", written(value).replace("−", "minus "));
    }
  }

  // Sliders for the sizes, over what is legal, and buttons for the scenes.
  sliders() {
    const { scene, sizes } = this, legal = { heads: scene.heads[sizes.dOut],
      dOut: Object.keys(scene.heads).map(Number), tokens: range(scene.most, (i) => i + 1) };
    for (const input of this.knobs.querySelectorAll("input")) {
      const key = input.dataset.size, values = legal[key];
      Object.assign(input, { values, max: values.length - 1, value: values.indexOf(sizes[key]),
        disabled: !values[1] });
      input.parentNode.hidden = Boolean(this.reader) && input.disabled; // as it was trained
      input.setAttribute("aria-valuetext", sizes[key]);
      input.nextSibling.textContent = sizes[key];
    }
    for (const select of this.words.children) select.disabled = select.dataset.word >= sizes.tokens;
    for (const button of this.choices.querySelectorAll(":not(.back)")) {
      button.setAttribute("aria-pressed", button.textContent === this.name);
    }
  }

  listen() {
    const { board, strip, root } = this, cellOf = ({ target }) => this.list[target.k] ?? null;
    onKeys(root, (key, event) => this.key(key, event));
    const take = (event) => {
      if (this.moving) this.rush(); // what is on its way is there at once, and can be taken
      const target = document.elementFromPoint(event.clientX, event.clientY), cell = cellOf({ target });
      this.point(cell);
      if (!cell || !this.movable(cell)) return null;
      event.preventDefault();
      target.focus({ preventScroll: true });
      this.take(cell);
      return this.held = { value: this.value(cell, this.step) };
    };
    const letGo = () => { this.held = null; this.release(); };
    onDrag(board, take, ({ value }, right, up) => this.hold && this.move(value + up * PER_PIXEL), letGo);
    board.addEventListener("pointerover", (event) => this.held || this.point(cellOf(event)));
    board.addEventListener("pointerleave", ({ pointerType }) => // what a finger tapped stays
      this.held || pointerType === "touch" || this.point(null));
    board.addEventListener("focusin", (event) => {
      const keys = event.target.matches(":focus-visible");
      this.card.ariaLive = keys ? "polite" : "off";
      if (keys) this.point(cellOf(event));
    });
    board.addEventListener("focusout", () => {
      clearTimeout(this.letting);
      if (!this.held) this.release();
      this.point(null);
    });
    onDrag(strip, ({ clientX }) => this.scrubbing = { x: clientX, moved: false }, (held, right) => {
      if (!held.moved && Math.abs(right) < 4) return;
      if (!held.moved) this.stop();
      Object.assign(held, { moved: true, right });
      this.show(this.reached(held.x + right));
    }, () => {
      const { moved, x, right = 0 } = this.scrubbing;
      const to = clamp(Math.round(this.reached(x + right)), 1, LAST);
      this.scrubbing = null; this.stop();
      if (moved) this.go(to, 220);
      else this.go(to - 1 + TURN, 260);
    });
    root.addEventListener("input", ({ target: { dataset, values, value } }) =>
      (dataset.word ? this.swap(Number(dataset.word), value) : this.set({ [dataset.size]: values[value] })));
    root.addEventListener("click", ({ target }) => {
      if (target === this.one || target === this.all) {
        this.running ? this.stop() : this.play(target === this.all);
      } else if (target === this.pace) this.paced({ 1: 2, 2: 0.5, 0.5: 1 }[this.speed]);
      else if (target === this.back) { this.undo(true); this.board.focus({ preventScroll: true }); }
      else if (target.parentNode === this.choices && target.textContent !== this.name) {
        this.choose(target.textContent);
      }
    });
    const again = () => { if (this.steps && board.clientWidth) { this.look(); this.arrange(); } };
    const room = new ResizeObserver(() => board.clientWidth !== this.laid && again());
    room.observe(root);
    // The ink changes with the theme, however it is changed, and once its style sheet is there; what is
    // out of sight is not told, and looks when it is back.
    root.addEventListener("transitionend", (event) => event.target === root && again());
    const sight = new IntersectionObserver(() => this.ink !== getComputedStyle(root).color && again());
    sight.observe(root);
    this.leave = () => { this.stop(); room.disconnect(); sight.disconnect(); };
  }

  reached(x) {
    const { left, width } = this.strip.getBoundingClientRect();
    return (x - left) / width * LAST + 0.5;
  }
}

// What each step asks before it happens, and what is found.
const TITLES = [null,
  [() => "Which sizes does the code read from x, and which were chosen before?",
    ({ tokens, dIn, dOut, heads, dim }) => `Read: b = 1, num_tokens = ${tokens}, d_in = ${dIn}. ` +
      `Chosen: head_dim = ${dOut} / ${heads} = ${dim}.`],
  [() => "One token plays three parts. How many numbers of x make one number of queries?",
    ({ dIn }) => `All ${dIn} numbers of one row of x make each number of queries. No other row does.`],
  [({ dOut, heads }) => `How does a row of ${dOut} become ${count(heads, "head")} without changing a number?`,
    ({ dim, heads }) => `The first ${count(dim, "feature")} of a row: head 0` +
      `${heads > 1 ? `, the next ${dim}: head 1` : ""}. Not one number changed.`],
  [() => "Each head wants its tokens side by side. Which two axes have to swap?",
    ({ tokens, dim }) => `Axes 1 and 2 have swapped: each head is a matrix of its own, ${tokens} × ${dim}.`],
  [() => "How well does what a token looks for fit what each token shows?",
    ({ heads, tokens }) => "Every query met every key in its own head: " +
      `${heads} × ${tokens} × ${tokens} = ${count(heads * tokens ** 2, "score")}.`],
  [() => "Which scores look into the future?",
    ({ tokens }) => (tokens === 1 ? "None: one token alone has no future." : "All above the diagonal: " +
      `${tokens * (tokens - 1) / 2} of ${tokens ** 2} in each head. They become −∞.`)],
  [() => "How does a row of scores become shares of one whole?",
    (facts) => `Each row is shares of 1 (rounded here)${most(facts, "gives", "to")}.`],
  [() => "What does a token take home from itself and those before it?",
    (facts) => `Values in these shares${most(facts, "takes", "from")}.`],
  [() => "The heads are done. Whose numbers should lie side by side now?",
    () => "Axes 1 and 2 have swapped back: all that is of one token lies together again."],
  [({ heads, dim, dOut }) => `How does a token's row get ${heads} × ${dim} = ${dOut} features again?`,
    ({ dim }) => `Heads side by side: the first ${count(dim, "feature")} from head 0. No number changed.`],
  [({ heads }) => (heads > 1 ? "So far no head knows of another. Where do they meet?"
    : "What is left to do with the context of one head?"),
    ({ dOut }) => `Each number of out mixes all ${dOut} numbers of its token's context, from every head.`]];

// How much the last token gives to whom, in the head where it gives most to another.
function most({ tokens, heads, shares, token }, gives, to) {
  const last = tokens - 1;
  if (!last) return "; one token alone has only itself";
  const all = range(heads, (h) => range(last, (j) => [shares[(h * tokens + last) * tokens + j], h, j]));
  const [share, head, from] = all.flat().reduce((one, other) => (other[0] > one[0] ? other : one));
  return `: in head ${head}, ${token(last)} ${gives} ${Math.round(100 * share)} % ${to} ${token(from)}`;
}

// Put the stage into an element of any page: data as eleven_steps.sliders.stage hands it over.
function mount(el, data) { return new Stage(el, data); }

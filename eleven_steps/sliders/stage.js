// The stage: the eleven steps of multi-head attention as one picture under the hand. Python hands
// over weights, an input and the lines of code; everything else is worked out here, without a
// kernel. Numbers are painted on a canvas; over each lies an element that can be found and held.

// What the stage shows, and what was changed: other modules put it on the page, say it and move it.
class Stage {
  constructor(el, data) { // in an element of any page: data as eleven_steps.sliders.stage hands it over
    this.data = data; this.own = data.own; // of a class of one's own: how far it has come
    this.frame = null; // in which it will be painted
    this.pointed = this.kin = null; // the number under the pointer, and where its relatives are
    const { open, tensors } = this.own ?? {};
    this.end = !open ? LAST : tensors ? open : open - 1 + TURN;
    this.page = new StagePage(this, el);
    this.root = this.page.root;
    this.painter = new Painter(this, this.page.canvas);
    this.playhead = new Playhead(this); this.hand = new Hand(this);
    this.story = new Story(this, this.page.drawn); this.memory = new Memory(this);
    this.look(); this.listen();
    this.playhead.p = data.steps.findIndex(({ name }) => name === data.step) + (data.answered ? 1 : TURN);
    this.wish = "word"; // one word through one head, all words through it, or all heads
    this.choose(data.scene);
  }

  get p() { return this.playhead.p; }
  get step() { return this.playhead.step; }
  get entry() { return this.page.one.offsetParent ? this.page.one : this.page.steps; } // what one presses next
  get scope() { return this.words ? this.wish : "all"; }
  get seen() { return this.scope === "head" ? [this.head] : range(this.sizes.heads); } // heads that are drawn

  // Take a scene as it comes: its words, and what a hand may move in it, stand here anew.
  choose(name) {
    this.name = name; this.scene = { ...this.data.scenes[name] };
    this.reader = this.scene.model && new Reader(this.scene.model);
    this.wide = this.scene.dIn > 12; // too wide for numbers: features are colours
    this.every = Object.fromEntries(
      Object.entries(this.scene.weights).map(([dOut, layer]) => [dOut, decoded(layer)]));
    this.sizes = { ...this.scene.start, dIn: this.scene.dIn };
    this.head = this.sizes.heads - 1; // that is followed
    this.begin();
  }

  // As the scene is by itself, at the sizes that it has now.
  begin() {
    this.words = this.scene.words && [...this.scene.words];
    this.input = floats(this.scene.x);
    this.off = new Set(); // heads that are switched off, "layer,head"
    this.query = this.scene.asked ?? null; // the word that is asked, the last one if none is
    this.moved = new Map(); // the numbers that a hand has moved, the newest last
    this.page.spell(); this.set();
  }

  // Build everything for these sizes; the number of heads has to divide d_out.
  set(sizes = {}) {
    for (const [key, { step }] of sizes.tokens || sizes.dOut || sizes.heads ? this.moved : []) {
      if (step !== 1) this.moved.delete(key); // only a number of x has its place at any size
    }
    Object.assign(this.sizes, sizes);
    const legal = this.scene.heads[this.sizes.dOut];
    if (!legal.includes(this.sizes.heads)) {
      this.sizes.heads = Math.max(...legal.filter((many) => many <= this.sizes.heads));
    }
    this.head = Math.min(this.head, this.sizes.heads - 1);
    this.hand.release(); this.point(null);
    this.headDim = this.sizes.dOut / this.sizes.heads; this.forms = forms(this.sizes);
    const { list, first } = cells(this.forms);
    this.list = list; this.first = first;
    if (this.own?.shape) this.forms.own = formOf(this.own.shape);
    this.page.clear();
    if (this.reader) { // what the sentence is by itself: of what a hand has changed one tells what it was
      const { tokens, dOut } = this.sizes, x = this.reader.read(this.words.slice(0, tokens)),
        made = forward(x, this.every[dOut], this.sizes);
      [this.whole] = this.reader.next(x, made[LAST].out, tokens - 1);
      for (const one of this.moved.values()) one.was = made[one.step][one.name][one.at] ?? one.was;
    }
    this.compute();
    this.most = Object.fromEntries(
      Object.entries({ ...this.made[5], ...this.made[LAST] }).map(([name, tensor]) => [name, strongest(tensor)]));
    Object.assign(this.most, { masked: this.most.scores, weights: 1 });
    this.page.sizes(); this.arrange();
  }

  get jumps() { return this.sizes.heads > 1 && this.sizes.tokens > 1; } // whether a row lies in pieces after step 9
  get swapped() { return `${this.words}` !== `${this.scene.words}`; }

  // Switch a head off, or on again; that of the first layer changes what comes in.
  turn(head) {
    if (!this.off.delete(head)) this.off.add(head);
    this.anew();
  }

  offIn(layer) {
    return [...this.off].filter((name) => name.startsWith(`${layer},`)).map((name) => Number(name.split(",")[1]));
  }

  // What the sentence shows: every head of both layers, and hears.
  speaking() {
    const rowOf = (made, h) => { // of the word that is asked, in one head
      const { tokens } = this.sizes, i = (h * tokens + this.asked) * tokens;
      return made[7].weights.subarray(i, i + this.asked + 1);
    };
    const heads = (layer, many, made) => range(many, (head) =>
      ({ layer, head, row: rowOf(made, head), off: this.off.has(`${layer},${head}`) }));
    return {
      read: () => ({ words: this.words.slice(0, this.sizes.tokens), names: this.data.names, query: this.asked,
        next: this.next, whatIf: this.moved.size > 0, arcs: this.root.dataset.large === "true",
        before: this.off.size || this.moved.size ? this.whole : null, vocabulary: this.reader.vocabulary,
        heads: [...heads(0, this.reader.heads, this.reader.made),
          ...heads(1, this.sizes.heads, this.mine)] }),
      asked: (i) => this.ask(i),
      swapped: (i, word) => { this.words[i] = word; this.set(); }, // what was moved stays so
      switched: (k) => this.turn(k < this.reader.heads ? `0,${k}` : `1,${k - this.reader.heads}`),
    };
  }

  ask(i) { this.query = i; this.relay(); }

  // Where the sentence is the page, show all its steps, or the sentence alone again.
  unfold() {
    const large = this.root.dataset.large !== "true", { page, playhead, scene: { start } } = this;
    if (this.sizes.tokens > start.tokens) this.set(start); // one line has room for so many
    playhead.stop(); page.open(large); this.zoom("word"); playhead.show(TURN);
    this.entry.focus({ preventScroll: true }); this.root.scrollIntoView({ block: "nearest" });
  }

  // Another word or another head: what is drawn of one word is of others now.
  relay() {
    this.point(null);
    if (this.scope === "word") this.steps = this.story.arrange();
    this.page.forget(); this.page.sentence?.draw(); this.page.say(); this.soon();
  }

  // Follow another head; look at one word, all words or all heads.
  follow(head) {
    this.head = head;
    this.scope === "head" ? this.arrange() : this.relay();
    this.page.sizes();
  }

  zoom(scope) {
    this.hand.release(); this.point(null); this.wish = scope;
    if (this.name !== "sentence") return this.choose("sentence");
    this.page.clear(); this.arrange(); this.page.sizes();
  }

  get asked() { return Math.min(this.query ?? Infinity, this.sizes.tokens - 1); }

  compute() {
    const moved = [...this.moved.values()];
    this.places = new Set(moved.map(({ at }) => at)); // in the flat lists: whose place is another has not been moved
    if (this.reader) this.input = this.reader.read(this.words.slice(0, this.sizes.tokens), { off: this.offIn(0) });
    this.made = this.forward(moved); this.mine = this.made; this.differs = {};
    const { tokens } = this.sizes, { x, out } = this.made[LAST];
    this.next = this.reader?.next(x, out, tokens - 1) ?? [];
    for (const [name, { numbers, differs }] of Object.entries(this.own?.tensors ?? {})) {
      const [own, to, off] = [floats(numbers), new Float64Array(differs.length), []];
      ordered(this.forms[this.lies(this.end)]).forEach((k, i) => [to[k], off[k]] = [own[i], differs[i]]);
      this.mine = this.mine.with(this.end, { ...this.mine[this.end], [name]: to }); this.differs[name] = off;
    }
  }

  forward(moved) {
    const { divisor } = this;
    return forward(this.input, this.every[this.sizes.dOut], this.sizes, { moved, divisor, off: this.offIn(1) });
  }

  // What scores are divided by: a hand may change it as well.
  get divisor() { return this.moved.get("divisor")?.value ?? Math.sqrt(this.headDim); }

  anew() {
    this.compute(); this.page.worth(); this.page.say(); this.page.foretell();
    if (this.scope === "word" && this.step > 6) { this.steps = this.story.arrange(); this.page.shares(); }
    this.soon();
  }

  look() {
    this.painter.look(this.root, this.data.colours); this.ink = getComputedStyle(this.root).color;
    this.least = Math.ceil(LEAST_FONT * this.painter.shortEm / 0.92);
  }

  // Lay everything out for the room there is.
  arrange() {
    const { board } = this.page;
    this.laid = board.clientWidth; this.room = this.laid || 1068; this.narrow = this.room < 760;
    const { steps, across, high } = arrange(this);
    Object.assign(this, { across, high: this.scope === "word" ? STORY : high });
    this.steps = this.scope === "word" ? this.story.arrange() : steps;
    this.root.dataset.scope = this.scope;
    this.painter.resize(this.painter.pen, across, high);
    board.style.height = `${this.high}px`;
    this.page.forget(); this.page.say(); this.page.foretell();
    this.soon();
  }

  soon() { this.frame ??= requestAnimationFrame(() => { this.frame = null; this.paint(); }); }

  paint() {
    if (this.scope !== "word") this.painter.paint();
    this.story.draw(this.p); this.playhead.put();
  }

  // ------------------------------------------------------------------------------- numbers

  width(text, font) { return this.painter.width(text, font); }
  word(i) { return (this.words ?? this.scene.names)?.[i] ?? String(i); }
  token(i) { return isNaN(this.word(i)) ? `“${this.word(i)}”` : `token ${i}`; }

  // How the axes lie after a step; a class of one's own may have left another shape.
  lies(step) { return this.own?.shape && step === this.end ? "own" : LEFT[step][1]; }

  // The shape that a step leaves, in numbers and in the letters of the lecture.
  shape(step) {
    if (this.lies(step) === "own") return { letters: "as your class has it", shape: `(${this.own.shape.join(", ")})` };
    const { letters } = this.data.steps[step - 1], { dIn, dOut, heads, tokens } = this.sizes;
    const sizes = { b: 1, num_tokens: tokens, d_in: dIn, d_out: dOut, num_heads: heads,
      head_dim: this.headDim };
    return { letters, shape: letters.replace(/\w+/g, (letter) => sizes[letter]) };
  }

  value({ kind, at }, step, made = this.mine) { return made[step][nameOf(kind, step)][at]; }

  // By how much a number differs from what it was when one was taken hold of.
  change(cell, step) {
    const { hold } = this.hand;
    if (!hold) return 0;
    const now = this.value(cell, step), before = this.value(cell, step, hold.made);
    return now === before ? 0 : now - before;
  }

  called({ kind, k }, step) {
    const name = nameOf(kind, step);
    return `${name}${name === "out_proj" ? ".weight.T" : ""}[${this.steps[step].index[k].join(", ")}]`;
  }

  // The name under which a cell's number is kept once a hand has moved it at a step.
  keyOf({ kind, at }, step) { return `${leftBy(kind, step)} ${nameOf(kind, step)} ${at}`; }
  whatIf(cell, step) { return this.places.has(cell.at) ? this.moved.get(this.keyOf(cell, step)) : undefined; }

  // Whether a hand may move a number: not what a class of one's own has made, nor what only waits.
  movable({ kind }, step = this.step) {
    return !this.own && (kind !== "values" || step < 5 || step > 7);
  }

  // ------------------------------------------------------------------------------- pointing

  point(cell) {
    if (this.pointed === cell) return;
    this.pointed = cell; this.kin = cell && this.relatives(cell, this.step);
    if (!this.hand.hold) this.page.tell(cell ? explained(this, cell, this.step) : "");
    this.soon();
  }

  // The places of what a cell comes from and goes to at a step.
  relatives(cell, step) {
    const laid = this.steps[step], of = (near) => factors(this, near, step).flat();
    const row = ({ kind, h, r }) => step === 7 && kind === cell.kind && h === cell.h && r === cell.r;
    const ghosts = laid.ghosts.filter((k) => k === cell.k || row(this.list[k])), from = of(cell);
    const other = this.movable(cell, step) && this.otherwise(cell, step);
    const moves = (near) => near !== cell && this.value(near, step) !== this.value(near, step, other);
    const reaches = other ? moves : (near) => of(near).includes(cell);
    const framed = (which) => joined(laid.shown.filter(which).map(({ k }) => laid.at(k)));
    const places = from.sort((one, two) => one.k - two.k).map(({ k }) => laid.at(k)).filter(([, , w]) => w);
    return { to: framed(reaches), from: [...joined(places), ...joined(ghosts.map((k) => laid.at(k, laid.start)))] };
  }

  // All numbers as they would be with another number here.
  otherwise(cell, step) {
    const before = this.value(cell, step), name = nameOf(cell.kind, step);
    const value = (isFinite(before) ? before : 0) + 1;
    return this.forward([...this.moved.values(), { step: leftBy(cell.kind, step), name, at: cell.at, value }]);
  }

  listen() {
    const { board } = this.page;
    onKeys(this.root, (key, event) => this.hand.key(key, event));
    this.hand.listen(board); this.playhead.listen(this.page.strip);
    this.root.addEventListener("input", ({ target: { dataset, values, value } }) =>
      this.set({ [dataset.size]: values[value] }));
    this.root.addEventListener("click", ({ target }) => {
      const { one, back, steps } = this.page,
        { head, scope, meets } = target.closest("button")?.dataset ?? {};
      if (target === steps) this.unfold();
      else if (meets) {
        this.set({ tokens: this.sizes.tokens === this.scene.most ? 6 : this.scene.most });
        this.ask(this.sizes.tokens - 1);
      } else if (target.closest(".through")) this.follow(Number(head));
      else if (scope === "hand") this.choose("whiteboard");
      else if (scope) this.zoom(scope);
      else if (target === one) this.playhead.toggle();
      else if (target === back) { this.begin(); this.entry.focus({ preventScroll: true }); }
    });
    const again = () => { if (this.steps && board.clientWidth) { this.look(); this.arrange(); } };
    const room = new ResizeObserver(() => board.clientWidth !== this.laid && again());
    room.observe(this.root);
    // The ink changes with the theme, however it is changed, and once its style sheet is there; what is
    // out of sight is not told, and looks when it is back.
    this.root.addEventListener("transitionend", (event) => event.target === this.root && again());
    const sight = new IntersectionObserver(() => this.ink !== getComputedStyle(this.root).color && again());
    sight.observe(this.root);
    this.leave = () => {
      this.playhead.stop();
      for (const watch of [room, sight, this.page.passed]) watch.disconnect();
    };
  }
}

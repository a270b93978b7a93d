// The story of one word: its way through one head, drawn under the words of a sentence. What stands
// where at a moment is said once, in strips; numbers that a hand may take lie where a strip rests.

const STORY = 344, PANEL = 216, CLOTH = 200; // pixels: its height, where its lower part begins, its curtain's height
const SIDE = 54, NEAR = 24; // pixels for the words at its left; a strip's height

// An SVG whose parts are kept by their names: only what has changed is written.
class Drawing {
  constructor(svg) {
    this.parts = new Map(); this.frame = 0;
    this.layers = range(4, () => svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "g")));
  }

  put(name, tag, attributes, text, layer = 1) {
    let part = this.parts.get(name);
    if (!part) {
      const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
      this.parts.set(name, part = { element: this.layers[layer].appendChild(element), was: {} });
    }
    part.frame = this.frame;
    for (const [key, value] of Object.entries({ display: "", ...attributes })) {
      const told = typeof value === "number" ? Math.round(value * 100) / 100 : value;
      if (part.was[key] !== told) part.element.setAttribute(key, part.was[key] = told);
    }
    if (text !== undefined && part.text !== text) part.element.textContent = part.text = text;
  }

  box(name, [x, y, width, height], more, layer) {
    this.put(name, "rect", { x, y, width: Math.max(0, width), height: Math.max(0, height), ...more }, undefined, layer);
  }

  words(name, text, x, y, more = {}) { this.put(name, "text", { x, y, ...more }, text, 3); }

  // Numbers as bars from the middle line of a box: up if they are positive, down if not.
  spark(name, [x, y, w, h], numbers, most, fill, opacity = 1, layer = 1) {
    if (layer < 2) this.box(`${name} under`, [x, y, w, h], { fill, opacity: 0.11 * opacity, rx: 2 }, layer);
    const step = w / numbers.length, wide = Math.max(0.6, step - (step > 2.6 ? 1 : 0.35)), middle = y + h / 2;
    const d = Array.from(numbers, (number, k) => {
      const high = (clamp(number / most, -1, 1) * h / 2 || 0.4).toFixed(1);
      return `M${(x + k * step).toFixed(1)} ${middle.toFixed(1)}v${-high}h${wide.toFixed(2)}v${high}z`;
    }).join("");
    this.put(name, "path", { d, fill, opacity }, undefined, layer);
  }

  draw(what) { // what is not put again is out of sight
    this.frame++; what();
    for (const { element, was, frame } of this.parts.values()) {
      if (frame !== this.frame && was.display !== "none") element.setAttribute("display", was.display = "none");
    }
  }
}

class Story {
  constructor(it, svg) { this.it = it; this.svg = svg; this.pen = new Drawing(svg); }

  // How a step is getting ready, and how far it has happened, from 0 to 1.
  along(n) { return Math.round(1e6 * (this.p - n + 1)) / 1e6; }
  ready(n) { return ease(clamp(this.along(n) / TURN)); }
  done(n) { return ease(clamp((this.along(n) - TURN) / (1 - TURN))); }

  get wide() { return this.it.room; }
  get column() { return (this.wide - SIDE - 8) / this.it.sizes.tokens; }
  get all() { return [SIDE, this.wide - SIDE - 8]; } // from where, how wide
  middle(i) { return SIDE + (i + 0.5) * this.column; }
  tone(h) { return `var(--tone${h})`; }

  // The strips of a moment: of a token i the features from..to of a kind, where they lie, how clearly.
  strips() {
    const { it } = this, { tokens, heads, dOut, dIn } = it.sizes, { asked: q, head, headDim: dim } = it;
    const [left, whole] = this.all, high = Math.min(0.9 * this.column, 112), list = [];
    const put = (kind, i, from, to, at, opacity, more) => opacity > 0.01 &&
      list.push({ kind, i, from, to, at, opacity, ...more });
    const at = (i, y, high2 = NEAR) => [this.middle(i) - high / 2, y, high, high2];
    const [r, f] = [(n) => this.ready(n), (n) => this.done(n)];
    for (let i = 0; i < tokens; i++) {
      put("x", i, 0, dIn, at(i, 8), (1 - r(3)) * (i === q || this.p < 1.01 ? 1 : 0.45));
      PARTS.forEach((kind, k) => range(heads, (h) => {
        const part = high / heads, own = h === head, grows = own ? r(5) : 0,
          gone = own ? 1 : 1 - Math.max(0.85 * f(4), r(5));
        const later = kind === "keys" ? 1 - r(7) : kind === "queries" ? 1 - r(7) : 1 - r(5),
          again = kind === "values" && own ? r(8) * (1 - r(9)) : 0;
        const y = kind === "values" && this.p > 6 ? 8 : 42 + 32 * k + ({ keys: -66, queries: 4 }[kind] ?? 0) * r(5);
        const place = at(i, y), mine = kind !== "queries" || i === q ? 1 : 0.22 * (1 - r(5));
        const from = place[0] + part * h;
        put(kind, i, h * dim, (h + 1) * dim, [from + (place[0] - from) * grows, y, part + (high - part) * grows, NEAR],
          Math.max(f(2) * gone * later * mine, again), { h: f(3) > 0.02 ? h : -1, shade: f(3) });
      }));
    }
    // After the heads: rows of their contexts, and in the end one row.
    range(heads, (h) => {
      const [x, half] = this.table(h, 44 * (1 - f(10))), [apart, wide] = this.table(h), row = 104 / tokens;
      for (let i = 0; i < tokens; i++) {
        put("context", i, h * dim, (h + 1) * dim, [apart, 18 + i * row, wide, row - 2],
          r(9) * (1 - r(11)) * (i === q ? 1 : 0.4), { h, name: "table", quiet: this.p > 9.01 });
      }
      const copied = f(10), from = 18 + q * row, to = 150 - 138 * r(11);
      put("context", q, h * dim, (h + 1) * dim, [x, from + (to - from) * copied, half, row - 2 + (42 - row) * copied],
        copied && 1, { h, name: "row", quiet: this.p < 9.5 });
      if (h === head) put("context", q, h * dim, (h + 1) * dim, [left, 260, whole, 80], f(8) * (1 - r(9)),
        { h, name: "sum", scale: "values" }); // as its parts, so that one sees them add up
    });
    return list;
  }

  // What a step's numbers rest on, as the board's steps are laid out: for elements over them.
  arrange() {
    const { it } = this, { tokens } = it.sizes, before = this.p;
    const steps = range(LAST + 1, (n) => {
      this.p = n;
      const laid = { shown: [], ghosts: [], labels: [], index: [], start: null, need: this.wide, high: STORY };
      const rest = new Float32Array(4 * it.list.length);
      laid.at = (k, places = rest) => places?.subarray(4 * k, 4 * k + 4) ?? [0, 0, 0, 0];
      const lay = (kind, at, place) => {
        const k = it.first[kind] + at, { h, r, c } = it.list[k];
        rest.set(place, 4 * k); laid.shown.push(it.list[k]);
        const lies = LEFT[leftBy(kind, n)][1], e = c % it.headDim;
        laid.index[k] = { token: [0, r, h, e], head: [0, h, r, e], square: [0, h, r, c] }[lies] ?? [0, r, c];
      };
      if (n) for (const { kind, i, from, to, at, opacity, quiet } of this.strips()) {
        if (opacity < 0.2 || quiet) continue;
        const across = it.sizes[kind === "x" ? "dIn" : "dOut"], step = at[2] / (to - from);
        for (let c = from; c < to; c++) lay(kind, i * across + c, [at[0] + (c - from) * step, at[1], step, at[3]]);
      }
      if (n > 4 && n < 9) range(tokens, (j) => {
        const place = n < 7 ? [this.middle(j) - 0.46 * this.column, 74, 0.92 * this.column, 130] : this.segment(j);
        lay("scores", (it.head * tokens + it.asked) * tokens + j, place);
      });
      if (n === LAST) range(it.sizes.dOut, (c) => lay("out", it.asked * it.sizes.dOut + c, this.stripe(c)));
      return laid;
    });
    this.p = before;
    return steps;
  }

  // Where the table of a head lies, and how wide it is.
  table(h, gap = 44) {
    const [left, whole] = this.all, { heads } = this.it.sizes, wide = (whole - gap * (heads - 1)) / heads;
    return [left + h * (wide + gap), wide];
  }

  stripe(c) {
    const [left, whole] = this.all, step = whole / this.it.sizes.dOut;
    return [left + c * step, 74, step, 44];
  }

  // The row of the word that is asked, in its head, of what a step has left.
  row(step, name, made = this.it.mine) {
    const { asked, head, sizes: { tokens } } = this.it;
    return rowIn(made[step][name], tokens, head, asked);
  }

  // The part of a ribbon of length 1 that a word gets, with what softmax has made of it or other shares.
  segment(j, y = 120, high = 32, shares = this.row(7, "weights")) {
    const [left, whole] = this.all, total = Math.max(1, sum([...shares])); // of 1
    return [left + whole * sum([...shares.subarray(0, j)]) / total, y, Math.max(0.8, whole * shares[j] / total), high];
  }

  draw(p) {
    this.p = p;
    this.pen.draw(() => {
      if (this.it.scope === "word") this.tell();
      this.it.memory.draw(this.pen, p);
    });
  }

  tell() {
    const { it, pen } = this, { dOut } = it.sizes, { asked: q, head } = it, [left, whole] = this.all;
    const [r, f] = [(n) => this.ready(n), (n) => this.done(n)];
    for (const { kind, i, from, to, at, opacity, h = -1, shade = 1, name = "", scale = kind } of this.strips()) {
      const across = it.sizes[kind === "x" ? "dIn" : "dOut"], step = Math.max(it.step, 1);
      const numbers = this.now(kind, step).subarray(i * across + from, i * across + to);
      const part = Math.round(100 * shade);
      const fill = h < 0 ? "var(--soft)" : `color-mix(in srgb, ${this.tone(h)} ${part}%, var(--soft))`;
      pen.spark(`${kind} ${i} ${from} ${name}`, at, numbers, it.most[scale], fill, opacity);
    }
    this.sides(r, f);
    this.rulers(f(1) * (1 - r(2)));
    this.ask(r, f);
    if (this.p > 4 + TURN && r(7) < 1 || this.p > 6) this.bars(r, f);
    if (this.p > 7 && !it.off.has(`1,${head}`)) this.mix(r, f); // a head that is off hands nothing over
    if (r(9) && r(11) < 1) this.joins(f(9) * (1 - r(11)), r(9) * (1 - r(11)));
    if (f(11)) this.meet(f(11));
    const n = it.step, u = f(n);
    if ([2, 5, LAST].includes(n) && u) this.panel(u);
    const open = { 1: [100, 132], 2: [42, 96], 5: [86, 120], 7: [PANEL, 60], 8: [166, 176], 10: [146, 46],
      11: [74, 44] }[n];
    if (open && !u && this.p < n) { // what has not happened yet
      const opacity = clamp(3 * this.along(n) / TURN - 2);
      pen.box("open", [left, open[0], whole, open[1]], { class: "open", opacity }, 2);
      pen.words("open?", "?", left + whole / 2, open[0] + open[1] / 2 + 8, { class: "ask", opacity });
    }
    const { pointed, kin, steps } = it;
    if (pointed && kin && this.p === n && !it.hand.hold) {
      const mark = (name, places) => places.filter((place) => place[2] > 0).forEach(([x, y, w, h], k) =>
        pen.box(`${name} ${k}`, [x - 1, y - 1, w + 2, h + 2], { class: name }, 2));
      mark("mark", [...kin.from, steps[n].at(pointed.k)]); mark("mark to", kin.to);
    }
  }

  // What a kind holds at a step, or as long as it waits for one, at the step that made it.
  now(kind, step) {
    const { mine } = this.it, made = MADE.findIndex((kinds) => kinds.includes(kind));
    return mine[Math.max(step, made)][kind];
  }

  // What stands at the left of the strips.
  sides(r, f) {
    const say = (name, text, y, opacity, font = 13) => opacity > 0.01 && this.pen.words(`side ${name}`, text,
      SIDE - 8, y, { opacity, fill: "var(--soft)", class: "end", "font-size": font });
    say("x", "x", 24, 1 - r(3));
    say("queries", "query", 58 + 4 * r(5), f(2) * (1 - r(7)));
    say("keys", "keys", 90 - 66 * r(5), f(2) * (1 - r(7)));
    say("values", "values", this.p > 6 ? 24 : 122, Math.max(f(2) * (1 - r(5)), r(8) * (1 - r(9))));
    say("scores", "scores", 154, f(5) * (1 - 2 * f(7)));
    say("weights", "weights", 141, (2 * f(7) - 1) * (1 - r(9)));
    say("context", "context", 304, f(8) * (1 - r(9)));
    say("row", "context", 176 - 138 * r(11), f(10));
    say("out", "out", 100, f(11));
    const { tokens } = this.it.sizes, tables = r(9) * (1 - r(11));
    const row = 104 / tokens, font = Math.min(13, row + 0.6);
    range(tokens, (i) => say(`row ${i}`, this.it.word(i), 17 + 0.3 * font + (i + 0.5) * row, tables, font));
  }

  // Rulers measure x: sequences, tokens, features.
  rulers(u) {
    if (u < 0.01) return;
    const { it, pen } = this, { tokens, dIn } = it.sizes, [left, whole] = this.all, q = it.asked;
    const rule = (name, from, long, y, parts, text) => {
      const w = long * clamp(u * 1.3), ticks = range(parts + 1,
        (k) => from + long * k / parts).filter((x) => x <= from + w + 0.1);
      pen.put(`rule ${name}`, "path", { d: `M${from} ${y}h${w}${ticks.map((x) => `M${x} ${y - 5}v10`).join("")}`,
        class: "rule" });
      pen.words(`ruled ${name}`, text, from + long / 2, y + 20, { class: "strong", opacity: clamp(3 * u - 2) });
    };
    rule("tokens", left, whole, 50, tokens, `num_tokens = ${tokens}`);
    const row = it.mine[1].x.subarray(q * dIn, (q + 1) * dIn);
    pen.spark("row", [left, 110, whole, 96], row, it.most.x, "var(--soft)", u);
    const x = this.middle(q);
    pen.put("lens", "path", { d: `M${x - 20} 34L${left} 112M${x + 20} 34L${left + whole} 112`, class: "rule faint",
      opacity: 0.5 * u });
    rule("features", left, whole, 222, dIn, `d_in = ${dIn}: the row of ${it.token(q)}`);
    pen.words("batch", "b = 1: this one text", left + whole / 2, 286, { class: "soft", opacity: clamp(3 * u - 2) });
  }

  // The query goes along the keys.
  ask(r, f) {
    const { it, pen } = this, { tokens, dOut } = it.sizes, { asked: q, head, headDim: dim } = it, u = f(5);
    if (u <= 0 || r(7) >= 1) return;
    const high = Math.min(0.9 * this.column, 112),
      numbers = this.now("queries", it.step).subarray(q * dOut + head * dim, q * dOut + (head + 1) * dim);
    for (let j = 0; j < tokens; j++) {
      const on = j === q ? 0 : clamp(u * (tokens + 1) - j) * (1 - r(7)) * 0.55;
      if (on) pen.spark(`asks ${j}`, [this.middle(j) - high / 2, 46, high, NEAR], numbers, it.most.queries,
        this.tone(head), on);
    }
  }

  // Bars of scores; what comes later is cut off; then all pour into a ribbon of length 1.
  bars(r, f) {
    const { it, pen } = this, { tokens } = it.sizes, { asked: q, head } = it, base = 144;
    const scores = this.row(5, "scores"), masked = this.row(6, "masked"), weights = this.row(7, "weights");
    const live = it.step > 5 ? masked : scores, most = Math.max(it.most.scores, 1e-6),
      wide = Math.min(46, 0.6 * this.column);
    const root = it.divisor, small = f(7) ? 1 - (1 - 1 / root) * clamp(f(7) / 0.35) : 1,
      s = ease(clamp((f(7) - 0.35) / 0.65)), away = 1 - r(9);
    const flown = f(6), font = this.column < 46 ? 11 : 13;
    for (let j = 0; j < tokens; j++) {
      const up = clamp(f(5) * (tokens + 1) - j), hidden = live[j] === -Infinity || flown > 0 && masked[j] === -Infinity;
      const score = hidden ? scores[j] : live[j], x = this.middle(j),
        high = clamp(score / most, -1, 1) * 62 * up * small;
      const from = [x - wide / 2, Math.min(base, base - high), wide, Math.abs(high)], to = this.segment(j);
      const gone = hidden ? 1 - flown : 1, shown = up * gone * away;
      if (shown > 0.01) {
        pen.box(`bar ${j}`, between(from, to, s),
          { fill: this.tone(head), "fill-opacity": 1 - 0.5 * s, opacity: shown, rx: 2 });
        if (s && weights[j] > 0.002) this.pour(j, to, s * away);
      }
      if (up > 0.5 && s < 1) pen.words(`score ${j}`, hidden && flown > 0.5 ? "−∞" : written(score * small), x,
        hidden && flown > 0.5 ? base - 8 : high >= 0 ? base + 18 : base - 8,
          { opacity: (2 * up - 1) * (1 - s) * away, "font-size": font });
      if (s > 0.7 && to[2] > 22) pen.words(`share ${j}`, this.share(j, to[2], weights[j]), to[0] + to[2] / 2, 141,
        { opacity: (s - 0.7) / 0.3 * away, "font-size": font });
      if (hidden && flown && s < 1) { // the curtain, and what reached for it
        pen.box(`curtain ${j}`, [x - this.column / 2 + 2, 2, this.column - 4, CLOTH * flown],
          { class: "curtain", opacity: (1 - s) * away }, 2);
      }
    }
    if (it.step === 6 && q < tokens - 1) this.reach(r(6), flown);
    pen.put("floor", "path", { d: `M${SIDE} ${base}H${this.wide - 8}`, class: "rule faint",
      opacity: f(5) * (1 - s) });
    if (f(7) > 0 && r(8) < 1) pen.words("root", `÷ ${written(root)}`, this.all[0] + this.all[1], 66,
      { class: "end strong", opacity: clamp(3 * f(7)) * (1 - s) });
    if (s && r(8) < 1) this.undivided(masked, s * (1 - r(8)), font);
    if (s) pen.box("whole", [this.all[0], 120, this.all[1] / Math.max(1, sum([...weights])), 32],
      { class: "frame", opacity: s * away });
  }

  share(j, wide, weight) {
    const word = this.it.word(j), per = `${Math.round(100 * weight)} %`;
    return wide > 7.5 * (word.length + per.length) ? `${word} ${per}` : wide > 34 ? per : "";
  }

  // From a word to its part of the ribbon.
  pour(j, [x, y, w], opacity) {
    const from = this.middle(j), top = this.p > 7 + TURN ? 36 : 4, bend = top + 0.6 * (y - top);
    const [a, b] = [from - 4, from + 4], end = x + w;
    this.pen.put(`pour ${j}`, "path", { fill: this.tone(this.it.head), opacity: 0.2 * opacity, d: `M${a} ${top}` +
      `C${a} ${bend} ${x} ${bend - 14} ${x} ${y}H${end}C${end} ${bend - 14} ${b} ${bend} ${b} ${top}Z` }, undefined, 0);
  }

  // What a word reaches for before the curtain falls.
  reach(ready, fallen) {
    const { it, pen } = this, q = it.asked, from = this.middle(q), masked = this.row(6, "masked");
    for (let j = q + 1; j < masked.length; j++) {
      const to = from + (this.middle(j) - from) * ready;
      pen.put(`reach ${j}`, "path", { d: `M${from} 212Q${(from + to) / 2} ${222 + 18 * (j - q)} ${to} 212`,
        class: "reach", opacity: 1 - 0.5 * fallen }, undefined, 2);
      if (fallen > 0.6 && masked[j] === -Infinity) pen.words(`cut ${j}`, "✗", to, 216, { class: "wrong" });
    }
  }

  // The same ribbon without the division, below.
  undivided(masked, opacity, font) {
    const { it, pen } = this, shares = sharesOf(masked, 1);
    for (let j = 0; j < shares.length; j++) {
      if (!shares[j]) continue;
      const at = this.segment(j, 216, 20, shares);
      pen.box(`bare ${j}`, at, { fill: this.tone(it.head), "fill-opacity": 0.28, opacity });
      pen.words(`bare ${j} said`, at[2] > 22 ? this.share(j, at[2], shares[j]) : "", at[0] + at[2] / 2, 231,
        { opacity, "font-size": font });
    }
    pen.box("bare", [this.all[0], 216, this.all[1], 20], { class: "frame", opacity });
    pen.words("bare said", `without the division by √${it.headDim}`, this.all[0], 208,
      { class: "start soft", opacity });
  }

  // Values, each as tall as its share, and their sum.
  mix(r, f) {
    const { it, pen } = this, { tokens, dOut } = it.sizes, { asked: q, head, headDim: dim } = it,
      weights = this.row(7, "weights"), all = 80 / Math.max(1, sum([...weights]));
    const [left, whole] = this.all, high = Math.min(0.9 * this.column, 112), u = f(8), away = 1 - r(9);
    let y = 170;
    for (let j = 0; j < tokens && u; j++) {
      const tall = all * weights[j], s = ease(clamp(u * (tokens + 1) - j));
      const at = between([this.middle(j) - high / 2, 8, high, NEAR], [left, y, whole, tall], s);
      const values = this.now("values", 8).subarray(j * dOut + head * dim, j * dOut + (head + 1) * dim);
      if (tall > 0.6) pen.spark(`takes ${j}`, at, values, it.most.values, this.tone(head), s * away);
      if (tall > 14 && s > 0.8) pen.words(`takes ${j} said`, `${Math.round(100 * weights[j])} % of ${it.word(j)}`,
        left + 4, y + 11, { class: "start", opacity: away });
      y += tall;
    }
    if (u > 0.6) pen.put("sum", "path", { d: `M${left} 255h${whole}`, class: "rule faint",
      opacity: (u - 0.6) * 2.5 * away });
  }

  // All that is of one word is read as one row, though it lies in two tables.
  joins(u, tables) {
    const { it, pen } = this, { heads, tokens } = it.sizes, row = 104 / tokens, y = 18 + (it.asked + 0.5) * row - 1;
    for (let h = 0; h < heads; h++) {
      const [x, wide] = this.table(h);
      pen.box(`of ${h}`, [x - 2, y - row / 2, wide + 4, row], { class: "mark", opacity: u });
      if (h) pen.put(`joins ${h}`, "path", { d: `M${x - 42} ${y}h${40 * u}`, class: "thread" });
      pen.words(`table ${h}`, `head ${h}`, x, 13, { class: "start", fill: this.tone(h), opacity: tables });
    }
  }

  // In each number of out the heads meet: its colour says how much of each is in it.
  meet(u) {
    const { it, pen } = this, { dOut } = it.sizes, q = it.asked,
      out = it.mine[LAST].out.subarray(q * dOut, (q + 1) * dOut), groups = {};
    out.forEach((number, c) => {
      if (c > u * dOut) return;
      const parts = [0, 1].map((h) => Math.abs(this.part(c, h))),
        mixed = Math.round(10 * parts[1] / (parts[0] + parts[1])); // none of either: not a number
      (groups[mixed] ??= new Float64Array(dOut))[c] = number;
    });
    const [left, whole] = this.all;
    for (const [mixed, numbers] of Object.entries(groups)) pen.spark(`out ${mixed}`, [left, 74, whole, 44], numbers,
      it.most.out, isNaN(mixed) ? "var(--soft)"
        : `color-mix(in oklab, ${this.tone(1)} ${10 * mixed}%, ${this.tone(0)})`, 1, 2);
  }

  // What a head gives to a number of out.
  part(c, h) {
    const { asked: q, headDim: dim, sizes: { dOut }, mine } = this.it, { out_proj: last } = mine[0],
      { context } = mine[10];
    return sum(range(dim, (e) => last[c * dOut + h * dim + e] * context[q * dOut + h * dim + e]));
  }

  // A row meets a column, factor by factor: products of both signs, and what is left of them.
  panel(u) {
    const { it, pen } = this, n = it.step, { dOut, tokens } = it.sizes, { asked: q, head, headDim: dim } = it;
    const sweep = Math.min(tokens - 1, Math.floor(u * (tokens + 1))), row = this.row(5, "scores"),
      best = row.indexOf(Math.max(...row));
    const pointed = this.p === n && it.pointed && MADE[n].includes(it.pointed.kind) ? it.pointed : null;
    const score = (j) => it.list[it.first.scores + (head * tokens + q) * tokens + j];
    const made = pointed ?? (n === 5 ? score(u < 1 ? sweep : best)
      : it.list[it.first[n === 2 ? "queries" : "out"] + q * dOut + (n === 2 ? head * dim : 0)]);
    if (it.whatIf(made, n)) return; // no sum of products: a hand has set it
    const factorsOf = (cell) => factors(it, cell, n).map((pair) => pair.map((one) => it.value(one, n)));
    const numbers = factorsOf(made);
    const v = n === 5 && u < 1 ? clamp((u * (tokens + 1)) % 1 * 1.4) : u,
      products = numbers.map(([a, b], k) => (k < v * numbers.length ? a * b : 0));
    const ends = (n === 5 ? range(tokens, (j) => factorsOf(score(j))) : [numbers])
      .map((pairs) => pairs.map(([a, b]) => a * b)); // what each sum ends with: one scale for all of a step
    const split = (all) => [1, -1].map((way) => sum(all.map((v) => Math.max(0, way * v))));
    const [left, all] = this.all, whole = all - (it.narrow ? 118 : 150),
      top = PANEL - (n === 5 ? 0 : n === 2 ? 58 : 80), low = n === 5 ? 30 : 40;
    const most = [0, 1].map((k) => strongest(numbers.map((pair) => pair[k]))),
      tone = (k) => (n === 5 ? this.tone(head) : "var(--soft)");
    const names = { 2: [`${it.token(made.r)} in x`, `column ${made.c} of ${MATRICES[PARTS.indexOf(made.kind)]}`],
      5: [`query of ${it.token(made.r)}`, `key of ${it.token(made.c)}`],
      11: [`context of ${it.token(made.r)}`, `column ${made.c} of out_proj`] }[n];
    const byHead = (name, y, high, all, most) => range(it.sizes.heads, (h) => pen.spark(`${name} ${h}`,
      [left + whole * h / it.sizes.heads, y, whole / it.sizes.heads, high], all.slice(h * dim, (h + 1) * dim),
      most, this.tone(h)));
    [0, 1].forEach((k) => {
      const y = top + k * (NEAR + 4);
      if (n === LAST && !k) byHead("factor 0", y, NEAR, numbers.map((pair) => pair[0]), most[0]);
      else pen.spark(`factor ${k}`, [left, y, whole, NEAR], numbers.map((pair) => pair[k]), most[k], tone(k),
        k ? 0.6 : 1);
      if (it.narrow) pen.words(`factor ${k} said`, names[k].split(" ")[0], SIDE - 8, y + 16, { class: "end soft" });
      else pen.words(`factor ${k} said`, names[k], left + whole + 10, y + 16, { class: "start soft" });
    });
    const middle = top + 2 * (NEAR + 4) + low, big = strongest(ends.flat()), [up, down] = split(products);
    if (n === LAST) byHead("product", middle - low, 2 * low, products, big);
    else pen.spark("product", [left, middle - low, whole, 2 * low], products, big, n === 5 ? tone(0) : "var(--ink)");
    pen.put("zero", "path", { d: `M${left} ${middle}h${whole}`, class: "rule faint" });
    // What is above the line, what is below it, and the rest: the two cancel.
    const unit = 2 * low / Math.max(...ends.flatMap(split), 1e-9), x = left + whole + 12, foot = middle + low,
      rest = up - down, bias = n === LAST ? it.made[0].bias[made.c] : 0;
    const none = foot - Math.max(0, -rest) * unit; // where nothing is left
    pen.box("up", [x, none - up * unit, 12, up * unit], { class: "sum" });
    pen.box("down", [x + 14, none - up * unit, 12, down * unit], { class: "sum less" });
    pen.box("rest", [x + 28, none - Math.max(0, rest) * unit, 12, Math.abs(rest) * unit],
      { fill: n === 5 ? this.tone(head) : "var(--ink)" });
    const say = [`+${written(up)}`, written(-down), `= ${written(rest + bias)}`];
    if (bias) say.splice(2, 0, `${bias < 0 ? "−" : "+"}${written(Math.abs(bias))} bias`);
    say.forEach((text, k) => pen.words(`sum ${k}`, text, x + 46, middle - 20 + 18 * k,
      { class: k === say.length - 1 ? "start strong" : "start soft" }));
  }
}

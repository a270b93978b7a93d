// The stage: the eleven steps of multi-head attention as one picture under the hand. Python hands
// over weights, an input and the lines of code; everything else is worked out here, without a
// kernel. Numbers are painted on a canvas; over each lies an element that can be found and held.
//   arithmetic, cells, layout, motion, paint, words, hand, page

const LAST = 11;
const TURN = 0.4; // of a step: until then its operands come, afterwards it happens
const MATRICES = ["W_query", "W_key", "W_value"], PARTS = ["queries", "keys", "values"];
const MADE = { 2: PARTS, 5: ["scores"], 8: ["context"], 11: ["out"] }; // new numbers, by step
const LEAST_FONT = 11, LEAST_HIGH = 17.5, LARGEST = 76, HEAT = 6; // pixels; HEAT: cells of colour only
const PER_PIXEL = 0.01, PER_KEY = 0.1; // what a number that is held changes by
const SECONDS = { 1: 2.4, 2: 4.2, 3: 2.6, 4: 2.4, 5: 4.6, 6: 2.4, 7: 3, 8: 4.6, 9: 2.4, 10: 2.4, 11: 3.6 };
const PAUSE = 1600; // milliseconds between steps, to read what was found
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

const clamp = (v, low = 0, high = 1) => Math.min(high, Math.max(low, v));
const ease = (t) => (t <= 0 ? 0 : t >= 1 ? 1 : t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
const range = (count, each = (i) => i) => Array.from({ length: count }, (_, i) => each(i));
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const sum = (list) => list.reduce((a, b) => a + b, 0);
const floats = (text) =>
  new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer);

// ---------------------------------------------------------------------------- arithmetic

// All that the eleven steps make of x, flat: queries to values and context token by token.
export function forward(x, weights, { dIn, dOut, heads, tokens }) {
  const wide = dOut / heads, root = Math.sqrt(wide);
  const linear = (from, matrix, into, bias) => {
    const to = new Float64Array(tokens * dOut);
    for (let i = 0; i < tokens; i++) {
      for (let f = 0; f < dOut; f++) {
        let total = bias ? bias[f] : 0;
        for (let j = 0; j < into; j++) total += matrix[f * into + j] * from[i * into + j];
        to[i * dOut + f] = total;
      }
    }
    return to;
  };
  const queries = linear(x, weights.W_query, dIn), keys = linear(x, weights.W_key, dIn);
  const values = linear(x, weights.W_value, dIn), context = new Float64Array(tokens * dOut);
  const table = () => new Float64Array(heads * tokens * tokens);
  const scores = table(), masked = table().fill(-Infinity), shares = table();
  for (let h = 0; h < heads; h++) {
    for (let i = 0; i < tokens; i++) {
      const row = (h * tokens + i) * tokens;
      for (let j = 0; j < tokens; j++) {
        for (let f = h * wide; f < (h + 1) * wide; f++) {
          scores[row + j] += queries[i * dOut + f] * keys[j * dOut + f];
        }
        if (j <= i) masked[row + j] = scores[row + j];
      }
      const most = Math.max(...masked.subarray(row, row + i + 1));
      let whole = 0;
      for (let j = 0; j <= i; j++) whole += shares[row + j] = Math.exp((masked[row + j] - most) / root);
      for (let j = 0; j <= i; j++) {
        shares[row + j] /= whole;
        for (let f = h * wide; f < (h + 1) * wide; f++) {
          context[i * dOut + f] += shares[row + j] * values[j * dOut + f];
        }
      }
    }
  }
  const out = linear(context, weights.out_proj, dOut, weights.bias);
  return { x, queries, keys, values, scores, masked, weights: shares, context, out };
}

// What a step is made of, its numbers in the order that torch has them in: for the proof.
export function trace(scene, sizes, x) {
  const every = forward(x, decoded(scene.weights[sizes.dOut]), { ...sizes, dIn: scene.dIn });
  const { dOut, heads, tokens } = sizes, wide = dOut / heads;
  const apart = (flat) => range(heads, (h) => range(tokens, (i) =>
    Array.from(flat.subarray(i * dOut + h * wide, i * dOut + (h + 1) * wide)))).flat(2);
  const three = (how) => Object.fromEntries(PARTS.map((name) => [name, how(every[name])]));
  const one = (name, how = Array.from) => ({ [name]: how(every[name]) });
  return [one("x"), three(Array.from), three(Array.from), three(apart), one("scores"),
    { masked: Array.from(every.masked, (v) => (v === -Infinity ? "-inf" : v)) }, one("weights"),
    one("context", apart), one("context"), one("context"), one("out")];
}

function decoded(weights) {
  return Object.fromEntries(Object.entries(weights).map(([name, text]) => [name, Float64Array.from(floats(text))]));
}

// As the pictures of the course write numbers: five characters at the most.
function written(value, short = false) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const text = size < 0.005 ? "0.00" : value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return (short ? text.replace(/^(-?)0\./, "$1.") : text).replace("-", "−");
}

// -------------------------------------------------------------------- layout: blocks and words

// A step is a tree: blocks of cells and lines of words, in grids whose tracks fit what is in them.
const grid = (rows, gapX = 0, gapY = 0) => ({ rows, gapX, gapY });
const row = (kids, gap = 0) => grid([kids], gap);
const col = (kids, gap = 0) => grid(kids.map((kid) => [kid]), 0, gap);
const split = (kids, lines, gapX, gapY) => {
  const most = Math.ceil(kids.length / lines);
  return grid(range(Math.ceil(kids.length / most), (k) => kids.slice(k * most, (k + 1) * most)), gapX, gapY);
};

// How large a node gets where cells have these sizes.
function measure(node, sizes) {
  if (node.across !== undefined) {
    node.cellWide = sizes[node.wide] ?? node.wide;
    node.cellHigh = sizes[node.high] ?? node.high;
    const below = Math.max(0, node.footWide - node.left);
    node.w = node.left + Math.max(node.across * node.cellWide, node.titleWide, below) + node.right;
    node.h = node.top + node.down * (node.cellHigh + node.between) + node.bottom;
  } else if (node.rows) {
    node.tracks = [];
    node.lines = node.rows.map((kids) => Math.max(0, ...kids.map((kid, c) => {
      if (!kid) return 0;
      measure(kid, sizes);
      node.tracks[c] = Math.max(node.tracks[c] ?? 0, kid.w);
      return kid.h;
    })));
    node.tracks = Array.from(node.tracks, (w) => w ?? 0);
    node.w = sum(node.tracks) + node.gapX * (node.tracks.length - 1);
    node.h = sum(node.lines) + node.gapY * (node.lines.length - 1);
  }
}

// Put a node at its place; "leaf" is called for each block and line of words in it.
function place(node, x, y, leaf) {
  if (!node.rows) return leaf(node, x, y);
  let top = y;
  node.rows.forEach((kids, r) => {
    let left = x;
    kids.forEach((kid, c) => {
      const spare = kid && node.lines[r] - kid.h;
      const aside = kid && { middle: 0.5, end: 1 }[kid.align] * (node.tracks[c] - kid.w) || 0;
      if (kid) place(kid, left + aside, top + (kid.low ? spare : spare / 2), leaf);
      left += node.tracks[c] + node.gapX;
    });
    top += node.lines[r] + node.gapY;
  });
}

class Stage {
  constructor(el, data, options = {}) {
    this.data = data;
    this.found = new Set();
    this.speed = 1;
    this.page(el);
    this.look();
    const step = options.step ?? data.step;
    this.p = (data.steps.findIndex((each) => each.name === step) + 1 || Number(step)) - 1;
    this.p += data.answered || options.answered ? 1 : TURN;
    this.choose(options.scene ?? data.scene);
  }

  // Take a scene as it comes: its x and weights, which a hand may change, stand here anew.
  choose(name) {
    this.name = name;
    this.scene = this.data.scenes[name];
    const { start, dIn } = this.scene;
    this.wide = dIn > 12; // too wide for numbers: features are colours
    this.sizes = { ...start, dIn };
    this.every = Object.fromEntries(
      Object.entries(this.scene.weights).map(([dOut, each]) => [dOut, decoded(each)]));
    this.input = Float64Array.from(floats(this.scene.x));
    this.changed = false;
    this.build();
  }

  get weights() { return this.every[this.sizes.dOut]; }

  // Work everything out for these sizes.
  set(sizes = {}) {
    Object.assign(this.sizes, sizes);
    const legal = this.scene.heads[this.sizes.dOut];
    if (!legal.includes(this.sizes.heads)) {
      this.sizes.heads = Math.max(...legal.filter((each) => each <= this.sizes.heads));
    }
    this.build();
  }

  compute() {
    this.tensors = forward(this.input, this.weights, this.sizes);
  }

  // ------------------------------------------------------------------------------- cells

  // One cell for each number of x, of the matrices and of what is made; those that a step takes
  // over from the one before have a ghost, which stays where they came from.
  build() {
    this.release();
    this.point(null);
    const { dIn, dOut, heads, tokens } = this.sizes;
    this.headDim = dOut / heads;
    this.compute();
    this.cells = [];
    this.first = {};
    const add = (kind, rows, columns, head, ghost = false, table = 1) => {
      this.first[ghost ? `~${kind}` : kind] = this.cells.length;
      for (let at = 0; at < table * rows * columns; at++) {
        const r = Math.floor(at / columns) % rows, c = at % columns;
        this.cells.push({ kind, ghost, at, r, c, h: head(Math.floor(at / columns / rows), c) });
      }
    };
    const none = () => -1, byFeature = (_, c) => Math.floor(c / this.headDim);
    for (const ghost of [true, false]) {
      for (const kind of [...PARTS, "context"]) add(kind, tokens, dOut, byFeature, ghost);
      add("scores", tokens, tokens, (h) => h, ghost, heads);
    }
    if (!this.wide) for (const kind of MATRICES) add(kind, dIn, dOut, none);
    if (!this.wide) add("out_proj", dOut, dOut, none);
    add("out", tokens, dOut, none);
    add("x", tokens, dIn, none);
    this.limits();
    this.arrange();
    this.overlay();
    this.sliders();
    this.say();
    this.soon();
  }

  // What is the strongest colour of each kind.
  limits() {
    const most = (list) => Math.max(1e-6, ...list.map(Math.abs).filter(isFinite));
    const { tensors, weights } = this, parts = most(PARTS.map((name) => most(Array.from(tensors[name]))));
    this.most = { x: most(Array.from(tensors.x)), out_proj: most(Array.from(weights.out_proj)) };
    for (const name of PARTS) this.most[name] = parts;
    for (const name of MATRICES) this.most[name] = most(Array.from(weights[name]));
    for (const name of ["scores", "context", "out"]) this.most[name] = most(Array.from(tensors[name]));
  }

  index(kind, at, ghost = false) { return this.first[ghost ? `~${kind}` : kind] + at; }

  // The name that a cell's tensor has at a step, and the cell's index in it there.
  tensor({ kind, ghost }, step) {
    const then = ghost ? step - 1 : step;
    return kind !== "scores" ? kind : then <= 5 ? "scores" : then === 6 ? "masked" : "weights";
  }

  indices(cell, step) {
    const { kind, r, c, h } = cell, then = cell.ghost ? step - 1 : step;
    if (kind === "scores") return [0, h, r, c];
    if (kind.includes("_")) return [r, c];
    if (kind === "x" || kind === "out" || then <= 2 || then >= 10) return [0, r, c];
    const e = c % this.headDim;
    return then === 3 || then === 9 ? [0, r, h, e] : [0, h, r, e];
  }

  matrix({ kind, r, c }) { return c * (kind === "out_proj" ? this.sizes.dOut : this.sizes.dIn) + r; }

  value(cell, step) {
    if (cell.kind.includes("_")) return this.weights[cell.kind][this.matrix(cell)];
    return this.tensors[this.tensor(cell, step)][cell.at];
  }

  called(cell, step) {
    const name = this.tensor(cell, step);
    return `${name}${name === "out_proj" ? ".weight.T" : ""}[${this.indices(cell, step).join(", ")}]`;
  }

  movable(cell, step = this.step) { return cell.kind === "x" || step === 2 && cell.kind.startsWith("W_"); }

  get step() { return Math.max(1, Math.ceil(this.p - 1e-6)); }

  word(i) { return this.scene.words ? this.scene.words[i] : String(i); }

  // ------------------------------------------------------------------------------ layout

  width(text, font = "words") {
    const key = font + text;
    if (!this.widths.has(key)) {
      this.pen.font = this.fonts[font];
      this.widths.set(key, Math.ceil(this.pen.measureText(text).width));
    }
    return this.widths.get(key);
  }

  // A block of cells: "at" says which number of its kind lies at (r, c).
  block(kind, down, across, at, wide, high, more = {}) {
    const { rows = [], columns = [], title = "", foot = "", ghost = false, between = 0 } = more;
    const side = rows.length ? Math.max(...rows.map((text) => this.width(text))) + 6 : 0;
    return { kind, down, across, at, wide, high, ...more, ghost, between, rows: null, names: rows, columns,
      title, foot, titleWide: title ? this.width(title, "bold") + 16 : 0, footWide: foot ? this.width(foot) : 0,
      left: more.side ? 0 : side, right: more.side ? side : 0, bottom: foot ? 18 : 0,
      top: (title ? 20 : 0) + (columns.length ? 16 : 0) };
  }

  // Lines of words, each of parts [text, font].
  words(lines, more = {}) {
    const wide = (line) => sum(line.map(([text, font]) => this.width(text, font)));
    return { text: lines, w: Math.max(...lines.map(wide)) + (more.head >= 0 ? 18 : 2), h: 16 * lines.length, ...more };
  }

  header(name, step, more = {}) {
    const letters = this.data.steps[step - 1].letters, { dIn, dOut, heads, tokens } = this.sizes;
    const sizes = { b: 1, num_tokens: tokens, d_in: dIn, d_out: dOut, num_heads: heads, head_dim: this.headDim };
    const shape = letters.replace(/\w+/g, (letter) => sizes[letter]);
    if (more.short) return this.words([[[name, "bold"]], [[shape, "code"]]]);
    return this.words([[[`${name} `, "bold"], [shape, "code"]], [[letters, "code"]]], more);
  }

  arrow(sign, word = "") {
    const [above, below] = word.split(" ").map((each) => each && [[each, "words"]]);
    return this.words([above, [[sign, "sign"]], below].filter(Boolean), { align: "middle" });
  }

  feature(size) { return !this.wide ? size : size === "wi" ? 2.5 : this.narrow ? 4 : 5; }

  // A tensor laid out as rows of tokens, as one block a token, as one block a head.
  byRow(kind, size, more = {}) {
    const { tokens, dOut } = this.sizes;
    return this.block(kind, tokens, dOut, (i, f) => i * dOut + f, this.feature(`w${size}`), `h${size}`, more);
  }

  byToken(kind, size, lines, more = {}) {
    const { tokens, dOut, heads } = this.sizes;
    return split(range(tokens, (i) => this.block(kind, heads, this.headDim,
      (h, e) => i * dOut + h * this.headDim + e, this.feature(`w${size}`), `h${size}`,
      { ...more, card: -1, foot: more.ghost ? "" : this.scene.words ? this.word(i) : `token ${i}` })),
    lines, more.ghost ? 5 : this.sizes.tokens > 4 ? 6 : 10, 6);
  }

  byHead(kind, size, lines, more = {}) {
    const { tokens, dOut, heads } = this.sizes;
    return split(range(heads, (h) => this.block(kind, tokens, this.headDim,
      (i, e) => i * dOut + h * this.headDim + e, this.feature(`w${size}`), `h${size}`,
      { ...more, card: h, rows: more.names && h === 0 ? range(tokens, (i) => this.word(i)) : [],
        title: more.titles ? `head ${h}` : "" })), lines, 14, 8);
  }

  squares(size, lines, more = {}) {
    const { tokens, heads } = this.sizes;
    return split(range(heads, (h) => this.block("scores", tokens, tokens, (i, j) => (h * tokens + i) * tokens + j,
      `w${size}`, `h${size}`, { ...more, card: h, title: more.ghost && !more.titles ? "" : `head ${h}`,
        rows: more.ghost || h ? [] : range(tokens, (i) => this.word(i)),
        columns: more.columns ? range(tokens, (j) => this.word(j)) : [] })), lines, 22, 8);
  }

  // x as it stays at the side from step 2 on, with the values while they wait.
  dock(step) {
    const { tokens, dIn } = this.sizes, names = range(tokens, (i) => this.word(i));
    const wide = this.wide ? 5 : this.narrow ? 30 : 33;
    const x = this.block("x", tokens, dIn, (i, j) => i * dIn + j, wide, this.wide ? 18 : 21, { rows: names });
    const parts = [col([this.header("x", 1), x, this.words([[["drag a number of x, or ↑ ↓", "words"]]],
      { hint: true })], 3)];
    if (step > 4 && step < 8) {
      const name = this.narrow ? "values wait" : "values wait for step 8";
      const values = this.byRow("values", 0, { ghost: false });
      parts.push(col([this.words([[[name, "words"]]]), { ...values, wide: this.wide ? 2.5 : 7, high: 6 }], 3));
    }
    if (this.scene.words && (step === 7 || step === 8)) parts.push(this.arcsBlock());
    return this.narrow ? split(parts, parts.some((part) => part.arcs) ? parts.length : 1, 14, 8) : col(parts, 16);
  }

  arcsBlock() {
    const step = Math.max(40, ...this.scene.words.map((word) => this.width(word) + 10));
    return { arcs: step, w: step * this.sizes.tokens, h: 132, out: true };
  }

  // What step 5 and 8 do in each head: one factor at the left, one above, the product between them.
  product(step, lines) {
    const { tokens, dOut, heads } = this.sizes, names = range(tokens, (i) => this.word(i)), dim = this.headDim;
    const [first, second, made] = step === 5 ? ["queries", "keysᵀ", "scores"] : ["weights", "values", "context"];
    const part = (kind, h) => (i, e) => i * dOut + h * dim + e;
    const square = (h) => (i, j) => (h * tokens + i) * tokens + j;
    return split(range(heads, (h) => {
      const corner = this.words([[[`head ${h}`, "bold"]], [["", "words"]], [[first, "words"]]], { low: true, head: h });
      const above = step === 5
        ? this.block("keys", dim, tokens, (e, j) => part("keys", h)(j, e), "wo", this.feature("hi"), { columns: names })
        : this.block("values", tokens, dim, part("values", h), this.feature("wo"), "hi", { rows: names, side: true });
      above.title = second;
      above.top += 18;
      above.titleWide = this.width(second);
      above.plain = true;
      const left = step === 5
        ? this.block("queries", tokens, dim, part("queries", h), this.wide ? 5 : "wi", "ho", { rows: names })
        : this.block("scores", tokens, tokens, square(h), "wi", "ho", { rows: names, shares: true });
      const right = step === 5
        ? this.block("scores", tokens, tokens, square(h), "wo", "ho", { card: h, out: true, foot: made })
        : this.block("context", tokens, dim, part("context", h), this.feature("wo"), "ho",
          { card: h, out: true, foot: made });
      left.bottom = right.bottom;
      return grid([[corner, above], [left, right]], 6, 6);
    }), lines, 26, 10);
  }

  // The tree of a step; "flow" says whether what comes out lies beside what goes in, or below it.
  tree(step, flow, lines) {
    const { dIn, dOut, tokens, heads } = this.sizes, names = range(tokens, (i) => this.word(i));
    const beside = (kids, gap) => (flow === "row" ? row(kids, gap) : col(kids, gap));
    const to = flow === "row" ? "→" : "↓", out = { out: true };
    const bands = (head, into, outOf) => {
      const made = this.header("queries, keys, values", step, { out: step > 2 });
      const rows = PARTS.map((kind, k) => [into(kind, k),
        this.arrow("→", step === 2 && this.narrow ? `${MATRICES[k]} ${kind}` : kind), outOf(kind)]);
      if (this.narrow) return col([made, grid(rows, 8, 6)], 6);
      return grid([[head, null, made], ...rows], 12, 5);
    };
    const pair = (into, outOf) => beside([col(into, 6), this.arrow(to), col(outOf, 6)], flow === "row" ? 16 : 4);
    switch (step) {
      case 1: return this.opening(beside, names);
      case 2: {
        const matrix = (_, k) => (this.wide ? this.words([[[MATRICES[k], "bold"]], [[`${dIn * dOut} numbers,`, "words"]],
          [["learned", "words"]]]) : this.block(MATRICES[k], dIn, dOut, (j, f) => j * dOut + f, "wi", "hi"));
        const head = this.words([[["W_query, W_key, W_value", "bold"]], [[`(${dIn}, ${dOut}) `, "code"],
          [this.wide ? "" : "drag, too", "hint"]]]);
        return bands(head, matrix, (kind) => this.byRow(kind, "o", { out: true, rows: names, side: true }));
      }
      case 3: return bands(this.header("come in", 2, { short: true }), (kind) => this.byRow(kind, "i", { ghost: true }),
        (kind) => this.byToken(kind, "o", lines, out));
      case 4: return bands(this.header("come in", 3, { short: true }), (kind) => this.byToken(kind, "i", lines, { ghost: true }),
        (kind) => this.byHead(kind, "o", lines, { ...out, titles: kind === "queries" && lines === 1, names: true }));
      case 5: return col([beside([this.header("queries, keys", 4), this.header("scores", 5, out)], flow === "row" ? 40 : 2),
        this.product(5, lines)], 8);
      case 6: return pair([this.header("scores", 5), this.squares("i", 1, { ghost: true })],
        [this.header("masked", 6), this.squares("o", lines, { ...out, columns: tokens < 9 })]);
      case 7: return pair([this.header("masked", 6), this.squares("i", 1, { ghost: true })],
        [this.header("weights", 7), this.squares("o", lines, { ...out, between: 11, shares: true, columns: true })]);
      case 8: return col([beside([this.header("weights", 7), this.header("context", 8, out)],
        flow === "row" ? 28 : 2), this.product(8, lines)], 8);
      case 9: return pair([this.header("context", 8), this.byHead("context", "i", 1, { ghost: true, titles: true })],
        [this.header("context", 9, out), this.byToken("context", "o", lines, out)]);
      case 10: return pair([this.header("context", 9), this.byToken("context", "i", lines, { ghost: true })],
        [this.header("context", 10, out), this.byRow("context", "o", { ...out, rows: names, side: true, heads }),
        ]);
      default: {
        const bias = "and a bias is added", shape = [[["out_proj ", "bold"], [`(${dOut}, ${dOut})`, "code"]], [[bias, "words"]]];
        const corner = col([this.header("context", 10), this.words(shape, { low: true, align: "end" })], 10);
        const matrix = this.wide ? this.words([[[`${dOut * dOut} numbers, learned`, "words"]]])
          : this.block("out_proj", dOut, dOut, (f, g) => f * dOut + g, "wo", "hi");
        return grid([[corner, matrix], [this.byRow("context", "o", { rows: names }), this.byRow("out", "o", out)],
          [null, this.header("out", 11, out)]], 12, 8);
      }
    }
  }

  // Step 1: x alone, and what the code reads from its shape.
  opening(beside, names) {
    const { tokens, dIn, dOut, heads } = this.sizes;
    const x = this.block("x", tokens, dIn, (i, j) => i * dIn + j, this.wide ? Math.min(12, this.room / 60) : "wo", "ho",
      { rows: this.scene.words ? names : names.map((i) => `token ${i}`) });
    const line = (fact, why) => [this.words([[[fact, "code"]]], { out: true }), this.words([[[why, "words"]]], { out: true })];
    const facts = grid([line("b = 1", "sequences: one here"), line(`num_tokens = ${tokens}`, "rows of x"),
      line(`d_in = ${dIn}`, "columns of x"), line(`d_out = ${dOut}`, "chosen when the module was built"),
      line(`num_heads = ${heads}`, "chosen: it must divide d_out"),
      line(`head_dim = ${this.headDim}`, `d_out / num_heads = ${dOut} / ${heads}`)], 16, 9);
    return beside([col([this.header("x", 1), x, this.words([[["drag a number up or down, or ↑ ↓", "words"]]],
      { hint: true })], 6), facts], 44);
  }

  // Find for a step the largest cells that fit: beside or below each other, in lines, with numbers
  // in what comes in or, if need be, its colours alone.
  fit(step, width, height) {
    const longest = Math.max(0, ...(this.scene.words ?? []).map((word) => this.width(word) + 2));
    const least = Math.max(this.least, longest);
    let best = null;
    for (const lines of [1, 2, 3]) {
      for (const flow of ["row", "col"]) {
        const tree = this.tree(step, flow, lines);
        for (const [across, down] of [[1, 1], [0, 1], [1, 0], [0, 0]]) {
          const sizes = (w) => {
            const high = Math.max(LEAST_HIGH, 0.64 * w);
            return { wo: w, ho: high, wi: across ? Math.max(least, 0.8 * w) : HEAT,
              hi: down ? Math.max(LEAST_HIGH, 0.8 * high) : this.wide ? 5 : HEAT };
          };
          let low = 4, high = LARGEST;
          for (let k = 0; k < 7; k++) {
            const w = k ? (low + high) / 2 : LARGEST;
            measure(tree, sizes(w));
            if (tree.w <= width && tree.h <= height) low = w;
            else high = w;
            if (low === LARGEST) break;
          }
          measure(tree, sizes(low));
          const over = tree.w > width + 1 || tree.h > height + 1 ? 200 : 0;
          const score = Math.min(low, 70) + 100 * (low >= least) + 22 * (across + down) - over;
          if (!best || score > best.score + 0.5) best = { tree, sizes: sizes(low), score, low };
        }
      }
      if (best.low >= 1.15 * least && best.score > 100) break;
    }
    measure(best.tree, best.sizes);
    return best;
  }

  // Lay out every step for the room there is, and find how far each cell travels.
  arrange() {
    this.room = this.board.clientWidth || 1068;
    this.narrow = this.room < 760;
    this.root.classList.toggle("narrow", this.narrow);
    this.root.classList.toggle("slim", this.room < 500);
    const tall = this.narrow ? 660 : 390;
    const plans = range(LAST, (k) => {
      const step = k + 1, dock = step > 1 && this.dock(step);
      if (dock) measure(dock, {});
      const aside = dock && !this.narrow ? dock.w + 20 : 0;
      const above = dock && this.narrow ? dock.h + 16 : 0;
      let width = this.room - aside - 10, plan = this.fit(step, width, tall - above - 8);
      for (let more = 1; plan.score < 100 && more < 5; more++) {
        width *= 1.25; // it has to be scrolled
        plan = this.fit(step, width, tall - above - 8);
      }
      return { ...plan, dock, aside, above, need: Math.max(this.room, aside + plan.tree.w + 10, (dock.w ?? 0) + 4) };
    });
    const need = Math.max(...plans.map((plan) => Math.max(plan.above + plan.tree.h, plan.dock.h ?? 0) + 10));
    this.high = this.narrow ? Math.max(this.high ?? 0, need) : tall; // it grows, and never jumps back
    const total = this.cells.length;
    this.steps = [null];
    plans.forEach((plan, k) => {
      const laid = { rest: new Float32Array(5 * total), labels: [], slots: [], bars: [], arcs: null, need: plan.need };
      const leaf = (node, x, y) => this.lay(laid, node, x, y);
      if (plan.dock) place(plan.dock, 2, this.narrow ? 2 : Math.max(2, this.dockTop(plan.dock)), leaf);
      const left = plan.aside + Math.max(4, (Math.min(plan.need, this.room) - plan.aside - plan.tree.w) / 2);
      const spare = this.high - plan.above - plan.tree.h;
      place(plan.tree, left, plan.above + Math.max(2, this.narrow ? Math.min(spare / 2, 20) : spare / 2), leaf);
      this.steps.push(laid);
    });
    this.starts();
    this.resize();
    this.label();
  }

  dockTop(dock) {
    return this.wide ? 2 : Math.min(70, (this.high - dock.h) / 2);
  }

  lay(laid, node, x, y) {
    const { rest, labels, slots, bars } = laid;
    if (node.arcs) {
      laid.arcs = { ...node, x, y };
    } else if (node.text) {
      labels.push({ ...node, x, y });
    } else {
      const left = x + node.left, top = y + node.top, { cellWide: w, cellHigh: h, between, kind, ghost } = node;
      const wide = w * node.across, high = node.down * (h + between);
      for (let r = 0; r < node.down; r++) {
        for (let c = 0; c < node.across; c++) {
          const place = [left + c * w, top + r * (h + between), w, h, ghost ? 0.6 : 1];
          rest.set(place, 5 * this.index(kind, node.at(r, c), ghost));
        }
      }
      if (node.card !== undefined || node.out) slots.push({ x: left - 3, y: top - 3, w: wide + 6, h: high + 6,
        card: node.card, out: node.out });
      if (node.between) bars.push({ x: left, y: top, w: wide, h, each: h + between, card: node.card });
      const say = (text, tx, ty, tw, more) => labels.push({ text: [[[text, "words"]]], x: tx, y: ty, w: tw, h: 16, ...more });
      if (h >= 13) node.names.forEach((name, r) => {
        const ty = top + r * (h + between) + (h - 16) / 2;
        if (node.side) say(name, left + wide + 6, ty, node.right, {});
        else say(name, x, ty, node.left - 6, { end: true });
      });
      const fit = node.columns.every((name) => this.width(name) <= w);
      if (fit) node.columns.forEach((name, c) => say(name, left + c * w, top - 17, w, { mid: true }));
      if (node.foot) say(node.foot, left, top + high + 4, Math.max(wide, node.footWide), { out: node.out, mid: wide > node.footWide });
      if (node.title) {
        labels.push({ text: [[[node.title, node.plain ? "words" : "bold"]]], x: left, y, w: node.titleWide, h: 16,
          head: node.plain ? undefined : node.card });
      }
    }
  }

  // Where cells are when a step begins to happen: those that it takes over where their ghosts will
  // stay, its operands where they will be, and nothing of what it makes.
  starts() {
    const ghosts = Object.keys(this.first).filter((kind) => kind[0] === "~").map((kind) => kind.slice(1));
    for (let n = 1; n <= LAST; n++) {
      const { rest } = this.steps[n], start = this.steps[n].start = rest.slice(), before = this.steps[n - 1]?.rest;
      const each = (kind, act) => {
        for (let k = this.first[kind]; this.cells[k]?.kind === kind && !this.cells[k].ghost; k++) act(k);
      };
      for (const kind of MADE[n] ?? []) each(kind, (k) => { start[5 * k + 4] = 0; });
      for (const kind of ghosts) {
        each(kind, (k) => {
          const ghost = this.index(kind, this.cells[k].at, true);
          if (!rest[5 * ghost + 4]) return;
          start.set(rest.subarray(5 * ghost, 5 * ghost + 4), 5 * k);
          start[5 * ghost + 4] = 0;
        });
      }
      const seen = (k) => rest[5 * k + 4] || start[5 * k + 4] || before?.[5 * k + 4];
      this.steps[n].active = range(this.cells.length).filter(seen);
      this.steps[n].shown = this.steps[n].active.filter((k) => rest[5 * k + 4]);
    }
  }

  // ------------------------------------------------------------------------------ motion

  // How far a cell has come of its way in step n, whose happening is at u from 0 to 1.
  progress(cell, n, u) {
    const { tokens, heads } = this.sizes, { kind, r, h } = cell, part = (i, of) => (of > 1 ? i / (of - 1) : 0);
    if (cell.ghost) return clamp(3 * u);
    if (MADE[n]?.includes(kind)) {
      return n === 8 ? +(u >= (r + 0.97) / tokens) : clamp(5 * (this.sweep(n, u) - this.order(cell, n) - 0.8));
    }
    if (n === 3) return ease(clamp((u - 0.25) / 0.75 - 0.5 * part(r, tokens)) / 0.5);
    if (n === 4) return ease((u - 0.42 * part(h, heads)) / 0.58);
    if (n === 6) return ease(u / 0.45);
    if (n === 7) return ease(u / 0.35);
    if (n === 9) return ease((u - 0.45 * part(r, tokens)) / 0.55);
    if (n === 10) return ease(clamp((u / 0.75 - 0.4 * part(r, tokens)) / 0.6));
    return ease(3 * u);
  }

  // Numbers are made one by one, the first ones slowly: how many stand at u, and when one's turn is.
  sweep(n, u) {
    const { tokens, dOut } = this.sizes, all = tokens * (n === 5 ? tokens : dOut);
    return all * u ** Math.max(1, Math.log(all) / Math.log(5)) + (u >= 1);
  }

  order({ r, c }, n) { return r * (n === 5 ? this.sizes.tokens : this.sizes.dOut) + c; }

  // Where cell k is when the playhead stands in step n at t: x, y, width, height, opacity in "now".
  where(k, n, t) {
    const { rest, start } = this.steps[n], now = this.now;
    let from = start, to = rest, s = 0;
    if (t < TURN) [from, to, s] = [this.steps[n - 1]?.rest ?? start, start, ease(t / TURN)];
    else if (t < 1) s = this.progress(this.cells[k], n, (t - TURN) / (1 - TURN));
    else s = 1;
    const seen = from[5 * k + 4], then = to[5 * k + 4];
    for (let z = 0; z < 4; z++) {
      const a = seen ? from[5 * k + z] : to[5 * k + z], b = then ? to[5 * k + z] : a;
      now[z] = a + (b - a) * s;
    }
    now[4] = seen + (then - seen) * s;
    if (t > TURN && t < 1 && (n === 3 || n === 10) && !this.cells[k].ghost && s < 1) { // a gap opens
      const u = (t - TURN) / (1 - TURN), gap = n === 3 ? 14 * ease(4 * u) * (1 - s) : 22 * s * (1 - ease((u - 0.75) / 0.25));
      if (PARTS.includes(this.cells[k].kind) || n === 10) now[0] += this.cells[k].h * gap;
    } else if (n === 10 && t > TURN && t < 1 && this.cells[k].kind === "context" && !this.cells[k].ghost) {
      now[0] += this.cells[k].h * 22 * (1 - ease(((t - TURN) / (1 - TURN) - 0.75) / 0.25));
    }
    return now;
  }

  // Whether a cell shows already what its step makes of it: −∞ once its tile lies, a share once its
  // row fills.
  settled({ kind, ghost, r, c }, n, u) {
    if (kind !== "scores" || ghost || u >= 1) return true;
    const { tokens } = this.sizes;
    return n === 6 ? u >= this.landing(r, c) + 0.3 : n === 7 ? clamp((u - 0.4) / 0.6) * tokens >= r + 0.5 : true;
  }

  landing(r, c) { return 0.42 + 0.26 * (1 - (c - r) / this.sizes.tokens); }

  // -------------------------------------------------------------------------------- paint

  soon() {
    this.frame ??= requestAnimationFrame(() => {
      this.frame = null;
      this.paint();
    });
  }

  paint() {
    const n = this.step, t = this.p - n + 1, u = clamp((t - TURN) / (1 - TURN)), { pen } = this;
    const { active, shown, rest, slots } = this.steps[n];
    pen.setTransform(this.dots, 0, 0, this.dots, 0, 0);
    pen.globalAlpha = 1;
    pen.fillStyle = this.paper;
    pen.fillRect(0, 0, this.across, this.high);
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    this.font = null;
    if (t >= TURN - 0.1 || t === 1) for (const slot of slots) this.slot(slot, t >= 1 ? 1 : clamp((t - TURN + 0.1) * 10), u);
    const resting = t >= 1;
    for (const k of resting ? shown : active) {
      const at = resting ? rest.subarray(5 * k, 5 * k + 5) : this.where(k, n, t);
      if (at[4] > 0.02) this.square(k, at, this.settled(this.cells[k], n, u) ? n : n - 1);
    }
    pen.globalAlpha = 1;
    if (u > 0 && u < 1) this.act(n, t, u);
    this.shares(n, t, u);
    if (this.steps[n].arcs && u > 0.4) this.arcs(this.steps[n].arcs, clamp((u - 0.4) * 3));
    if (resting) this.marks(rest);
    this.follow(n, t);
  }

  slot({ x, y, w, h, card, out, heads }, o, u) {
    const { pen } = this;
    pen.globalAlpha = o * (out && u < 1 ? 1 : 0.8);
    pen.strokeStyle = card >= 0 ? this.heads[card] : this.line;
    pen.lineWidth = 1.5;
    pen.setLineDash(out && u < 1 ? [4, 4] : []);
    pen.beginPath();
    pen.roundRect(x, y, w, h, 6);
    pen.stroke();
    pen.setLineDash([]);
    if (out && u === 0) this.write("?", x + w / 2, y + h / 2, Math.min(24, h * 0.6), this.soft);
  }

  write(text, x, y, size, colour, bold = "", most) {
    const font = `${bold} ${size}px ${this.family}`;
    if (font !== this.font) this.pen.font = this.font = font;
    this.pen.fillStyle = colour;
    this.pen.fillText(text, x, y, most);
  }

  // How large a number is written in a cell, and whether without its leading zero.
  sizeOf(w, h) {
    const full = Math.min(0.63 * h, (w - 4) / this.em);
    if (full >= LEAST_FONT) return [Math.min(Math.floor(2 * full) / 2, 21), false];
    const short = Math.min(0.63 * h, (w - 1.5) / this.shortEm / 0.9);
    return [short >= LEAST_FONT ? Math.floor(2 * short) / 2 : 0, true];
  }

  square(k, [x, y, w, h, o], step) {
    const { pen } = this, cell = this.cells[k], value = this.value(cell, step), heat = w < 16 || h < 14;
    const delta = this.hold ? value - this.hold.value(cell, step) : 0, moved = this.hold && Math.abs(delta) > 1e-9;
    const dark = value === -Infinity, weights = cell.kind === "scores" && this.tensor(cell, step) === "weights";
    const strength = dark ? 0 : Math.min(1, Math.abs(value) / (weights ? 1 : this.most[cell.kind]));
    const level = Math.round(20 * strength);
    const size = moved ? Math.min(1, Math.abs(delta) / (0.6 * (weights ? 0.5 : this.most[cell.kind]))) : 0;
    pen.globalAlpha = o;
    pen.fillStyle = moved ? this.tints[delta > 0 ? "up" : "down"][4 + Math.round(16 * size)]
      : this.hold ? this.band : dark ? this.dark : (heat ? this.strong : this.tints)[cell.h][level];
    const gap = heat ? (w > 6 ? 0.7 : 0.25) : 1;
    if (heat) pen.fillRect(x + gap / 2, y + gap / 2, w - gap, h - gap);
    else {
      pen.beginPath();
      pen.roundRect(x + 0.5, y + 0.5, w - 1, h - 1, 3);
      pen.fill();
    }
    if (moved && h >= 12) { // which way, and how far
      const long = Math.max(2, size * (h / 2 - 2));
      pen.fillStyle = delta > 0 ? this.up : this.down;
      pen.fillRect(x + w - 4, delta > 0 ? y + h / 2 - long : y + h / 2, 3, long);
    }
    if (this.sized !== w + h / 1000) {
      this.sized = w + h / 1000;
      [this.fontSize, this.short] = this.sizeOf(w, h);
      this.tight = this.short || moved ? w - 1.5 : undefined; // a little narrower than the font is
    }
    if (!this.fontSize) return;
    if (this.movable(cell)) this.grip(x, y, w, h);
    const text = written(value, this.short), middle = x + w / 2;
    const colour = dark && !this.hold ? this.paper : this.hold && !moved ? this.soft : this.ink;
    if (moved && h >= 30) {
      this.write(written(this.hold.value(cell, step), this.short), middle, y + h * 0.27, LEAST_FONT, this.soft);
      this.write(text, middle, y + h * 0.68, Math.min(this.fontSize, 0.5 * h), this.ink, "bold");
    } else this.write(text, middle, y + h / 2 + 0.5, this.fontSize, colour, moved ? "bold" : "", this.tight);
  }

  // What may be dragged has a line under it, as a link has.
  grip(x, y, w, h) {
    this.pen.fillStyle = this.accent;
    this.pen.fillRect(x + 4, y + h - 3, w - 8, 1.5);
  }

  // What flies while a step happens.
  act(n, t, u) {
    const { tokens, dOut, dIn, heads } = this.sizes, dim = this.headDim;
    const at = (kind, flat) => Float32Array.from(this.where(this.index(kind, flat), n, t));
    const frame = (list) => this.frameAround(list);
    if (n === 1) {
      const i = Math.floor(u * 2 * tokens), j = Math.floor((2 * u - 1) * dIn);
      frame(u < 0.5 ? range(dIn, (c) => at("x", i * dIn + c)) : range(tokens, (r) => at("x", r * dIn + j)));
    } else if (n === 2 || n === 5 || n === 11) {
      const done = Math.min(this.sweep(n, u), tokens * (n === 5 ? tokens : dOut) - 1e-6);
      const turn = Math.floor(done), s = done - turn, width = n === 5 ? tokens : dOut;
      const i = Math.floor(turn / width), f = turn % width;
      if (n === 5) {
        for (let h = 0; h < heads; h++) {
          const to = at("scores", (h * tokens + i) * tokens + f);
          const one = range(dim, (e) => at("queries", i * dOut + h * dim + e));
          const other = range(dim, (e) => at("keys", f * dOut + h * dim + e));
          [...one, ...other].forEach((from, e) => this.chip(from, to, s, h, (e % dim) / dim));
          [one, other, [to]].forEach(frame);
        }
        return;
      }
      const length = n === 2 ? dIn : dOut, source = n === 2 ? "x" : "context";
      const from = range(length, (j) => at(source, i * length + j));
      frame(from);
      (n === 2 ? PARTS : ["out"]).forEach((kind, z) => {
        const to = at(kind, i * dOut + f), matrix = n === 2 ? MATRICES[z] : "out_proj";
        const column = this.wide ? [to] : range(length, (j) => at(matrix, j * dOut + f));
        from.forEach((each, j) => (s < 0.5 || this.wide ? this.chip(each, column[j] ?? to, this.wide ? s : 2 * s, n === 11 ? Math.floor(j / dim) : -1)
          : this.chip(column[j], to, 2 * s - 1, n === 11 ? Math.floor(j / dim) : -1)));
        [column, [to]].forEach(frame);
      });
    } else if (n === 6) {
      for (let k = this.first.scores; k < this.first.scores + heads * tokens * tokens; k++) {
        const { r, c } = this.cells[k], fallen = (u - this.landing(r, c)) / 0.3;
        if (c <= r || fallen <= 0 || fallen >= 1) continue;
        const [x, y, w, h] = this.where(k, n, t);
        this.pen.globalAlpha = Math.min(1, 2 * fallen);
        this.pen.fillStyle = this.dark;
        this.pen.fillRect(x + 0.5, y - 90 * (1 - ease(fallen)) + 0.5, w - 1, h - 1);
        this.pen.globalAlpha = 1;
      }
    } else if (n === 8) this.stack(u, at, frame);
  }

  // Step 8: value rows, each as high as its weight, stack up to a row of context.
  stack(u, at, frame) {
    const { tokens, dOut, heads } = this.sizes, dim = this.headDim;
    const i = Math.min(tokens - 1, Math.floor(u * tokens)), own = u * tokens - i, turn = own * (i + 1) / 0.94;
    for (let h = 0; h < heads; h++) {
      const row = (h * tokens + i) * tokens;
      let below = 0;
      for (let j = 0; j <= Math.min(i, Math.floor(turn)); j++) {
        const s = ease(clamp((turn - j) / 0.8)), weight = this.tensors.weights[row + j];
        for (let e = 0; e < dim; e++) {
          const from = at("values", j * dOut + h * dim + e), to = at("context", i * dOut + h * dim + e);
          const high = from[3] * (1 - s) + to[3] * weight * s;
          this.pen.fillStyle = this.strong[h][18 - Math.round(12 * j / tokens)];
          this.pen.fillRect(from[0] + (to[0] - from[0]) * s + 1,
            from[1] * (1 - s) + (to[1] + to[3] * (1 - below - weight)) * s, from[2] * (1 - s) + to[2] * s - 2, high - 0.5);
        }
        below += weight;
      }
      const j = Math.min(i, Math.floor(turn));
      frame([at("scores", row + j)]);
      frame(range(dim, (e) => at("values", j * dOut + h * dim + e)));
    }
  }

  chip(from, to, s, head, share = 0.3) {
    const e = ease(s), size = 6 + 2 * (1 - e);
    const x = from[0] + from[2] / 2, y = from[1] + from[3] / 2;
    this.pen.fillStyle = head < 0 ? this.accent : this.heads[head];
    this.pen.globalAlpha = 0.9;
    this.pen.fillRect(x + (to[0] + to[2] * (0.3 + 0.4 * share) - x) * e - size / 2,
      y + (to[1] + to[3] / 2 - y) * e - size / 2, size, size);
    this.pen.globalAlpha = 1;
  }

  frameAround(list, dash = [], colour = this.ink) {
    const left = Math.min(...list.map((each) => each[0])), top = Math.min(...list.map((each) => each[1]));
    const right = Math.max(...list.map((each) => each[0] + each[2])), low = Math.max(...list.map((each) => each[1] + each[3]));
    this.pen.strokeStyle = colour;
    this.pen.lineWidth = 2;
    this.pen.setLineDash(dash);
    this.pen.strokeRect(left - 1, top - 1, right - left + 2, low - top + 2);
    this.pen.setLineDash([]);
  }

  // Rows that fill up to one: long bars under the weights of step 7, short ones in step 8.
  shares(n, t, u) {
    const { tokens } = this.sizes, list = n === 7 ? this.steps[7].bars : n === 8 && t < TURN ? this.steps[7].bars : [];
    const fade = n === 8 ? 1 - t / TURN : 1, turn = n === 8 ? tokens : clamp((u - 0.4) / 0.6) * tokens;
    list.forEach((bar, h) => {
      for (let i = 0; i < tokens; i++) {
        let reached = 0;
        for (let j = 0; j <= i; j++) {
          const share = this.tensors.weights[(h * tokens + i) * tokens + j];
          const long = clamp(clamp(turn - i) - reached, 0, share) * bar.w;
          this.pen.globalAlpha = fade;
          this.pen.fillStyle = this.strong[h][18 - Math.round(13 * j / tokens)];
          if (long > 0.5) this.pen.fillRect(bar.x + reached * bar.w, bar.y + i * bar.each + bar.h + 1.5, long - 0.7, 7);
          reached += share;
        }
      }
    });
    this.pen.globalAlpha = 1;
  }

  // Whom the words read: an arc to each, as thick as its share; heads by turns above and below.
  arcs({ x, y, arcs: step, h: high }, o) {
    const { tokens, heads } = this.sizes, { pen } = this, middle = y + high / 2;
    const query = this.pointed?.kind === "scores" || this.pointed?.kind === "context" ? this.pointed.r : tokens - 1;
    const at = (i) => x + step * (i + 0.5);
    for (let h = 0; h < heads; h++) {
      for (let j = 0; j <= query; j++) {
        const share = this.tensors.weights[(h * tokens + query) * tokens + j], up = h % 2 ? 1 : -1;
        if (share < 0.01) continue;
        const reach = Math.max(0.35, (query - j) / tokens) * (high / 2 - 14);
        pen.globalAlpha = o;
        pen.strokeStyle = this.heads[h];
        pen.lineWidth = 1 + 8 * share;
        pen.beginPath();
        pen.moveTo(at(query), middle + up * 10);
        const turn = middle + up * (10 + 1.3 * reach), aside = query === j ? 22 : 0;
        pen.bezierCurveTo(at(query) + aside, turn, at(j) - aside, turn, at(j), middle + up * 10);
        pen.stroke();
      }
      this.write(`head ${h}`, x + 20, h % 2 ? y + high - 8 : y + 8, 12, this.ink);
    }
    for (let i = 0; i < tokens; i++) this.write(this.word(i), at(i), middle, 13, i === query ? this.ink : this.soft, i === query ? "bold" : "");
    pen.globalAlpha = 1;
  }

  // What a number that is pointed at comes from (solid) and goes to (dashed).
  marks(rest) {
    if (!this.pointed || this.hold) return;
    const at = (k) => rest.subarray(5 * k, 5 * k + 5), seen = (k) => rest[5 * k + 4] > 0;
    for (const k of this.kin.from.filter(seen)) this.frameAround([at(k)], [], this.accent);
    for (const k of this.kin.to.filter(seen)) this.frameAround([at(k)], [3, 2]);
    this.frameAround([at(this.cells.indexOf(this.pointed))].map(([x, y, w, h]) => [x - 1, y - 1, w + 2, h + 2]));
  }

  // Every step in small, as it is now: what changes under a hand lights up here as well.
  miniatures() {
    const { strip, small: pen } = this, wide = strip.clientWidth / LAST, high = 50;
    if (!wide) return;
    pen.setTransform(this.dots, 0, 0, this.dots, 0, 0);
    pen.clearRect(0, 0, wide * LAST, high);
    for (let n = 1; n <= LAST; n++) {
      const { rest, shown } = this.steps[n];
      const list = this.steps[n].mini ??= this.smaller(n, wide, high);
      for (const [k, x, y, w, h] of list) {
        const cell = this.cells[k], value = this.value(cell, n);
        const delta = this.hold ? value - this.hold.value(cell, n) : 0, moved = Math.abs(delta) > 1e-9;
        const full = this.tensor(cell, n) === "weights" ? 1 : this.most[cell.kind];
        const level = 3 + Math.round(17 * Math.min(1, Math.abs(value) / full));
        pen.fillStyle = moved ? (delta > 0 ? this.up : this.down) : this.hold ? this.band
          : value === -Infinity ? this.dark : this.strong[cell.h][level];
        pen.fillRect(x + wide * (n - 1), y, w, h);
      }
    }
  }

  smaller(n, wide, high) {
    const { rest, shown } = this.steps[n];
    const made = n === 1 ? ["x"] : n < 5 ? PARTS : n < 8 ? ["scores"] : n < 11 ? ["context"] : ["out"];
    const list = shown.filter((k) => !this.cells[k].ghost && made.includes(this.cells[k].kind));
    let [left, top, right, low] = [1e9, 1e9, 0, 0];
    for (const k of list) {
      const [x, y, w, h] = rest.subarray(5 * k, 5 * k + 4);
      [left, top, right, low] = [Math.min(left, x), Math.min(top, y), Math.max(right, x + w), Math.max(low, y + h)];
    }
    const scale = Math.min((wide - 12) / (right - left), (high - 10) / (low - top));
    const aside = (wide - (right - left) * scale) / 2, above = (high - (low - top) * scale) / 2;
    return list.map((k) => {
      const [x, y, w, h] = rest.subarray(5 * k, 5 * k + 4), gap = scale * w > 3 ? 0.6 : 0.1;
      return [k, aside + (x - left) * scale, above + (y - top) * scale, Math.max(0.6, w * scale - gap), Math.max(0.6, h * scale - gap)];
    });
  }

  // Whatever goes with the playhead and is no number: words fade, the frame of the strip moves.
  follow(n, t) {
    const before = clamp(1 - t / TURN), coming = n === 1 ? 1 : clamp(t / TURN), then = clamp((t - 0.88) / 0.12);
    for (let k = 1; k <= LAST; k++) {
      const [into, out] = this.layers[k];
      const shown = k === n ? [coming, then] : k === n - 1 ? [before, before] : [0, 0];
      [into, out].forEach((layer, z) => {
        if (layer.o !== shown[z]) layer.style.opacity = layer.o = shown[z];
        const off = !shown[z];
        if (layer.off !== off) layer.style.visibility = (layer.off = off) ? "hidden" : "";
      });
    }
    const at = `translateX(${(Math.max(this.p, 1) - 1) * this.strip.clientWidth / LAST}px)`;
    if (this.handle.at !== at) this.handle.style.transform = this.handle.at = at;
  }

  // -------------------------------------------------------------------------------- words

  // The title asks, and answers once the step has happened.
  say() {
    const n = this.step, answered = this.p >= n - 1e-6, { name, code } = this.data.steps[n - 1];
    const key = [n, answered, this.name, ...Object.values(this.sizes)].join();
    if (key === this.says) return;
    if (this.told !== n) this.code.textContent = code;
    this.told = n;
    this.says = key;
    this.root.dataset.step = n;
    this.root.dataset.answered = answered;
    this.title.innerHTML = `<b>${n} ${name}</b> ${(answered ? FOUND : ASK)[n](this)}`;
    this.handle.parentNode.setAttribute("aria-valuenow", n);
    this.handle.parentNode.setAttribute("aria-valuetext", `step ${n}, ${name}: ${answered ? "done" : "before it"}`);
    this.tiles.forEach((tile, k) => tile.classList.toggle("on", k + 1 === n));
    this.playing(this.running);
    if (!this.pointed && !this.hold) this.tell();
    this.cover();
  }

  // The card: what is said of a number, or how to begin.
  tell(text = "") {
    this.card.innerHTML = text || `<i>Point at a number${this.narrow ? ""
      : ": where it comes from (solid frames), where it goes (dashed)"}. Drag an underlined one up or down.</i>`;
  }

  // What a cell comes from and goes to at a step, and its arithmetic in one line.
  explain(cell, step) {
    const { tokens, dOut, dIn, heads } = this.sizes, { kind, r, c, h, at, ghost } = cell, dim = this.headDim;
    const from = [], to = [], value = this.value(cell, step), then = ghost ? step - 1 : step;
    const add = (list, name, flats, old = false) => list.push(...flats.map((flat) => this.index(name, flat, old)));
    const has = (name) => this.first[name] !== undefined;
    const products = (pairs, more = "") => {
      const few = pairs.slice(0, this.narrow ? 3 : pairs.length > 6 ? 5 : 6);
      const rest = pairs.length > few.length ? ` + … (${pairs.length} products)` : "";
      return `${few.map(([a, b]) => `${written(a)}·${written(b)}`).join(" + ")}${rest}${more} = <b>${written(value)}</b>`;
    };
    const same = "the same number as before: only its place is new";
    const square = (i, j, head = h) => (head * tokens + i) * tokens + j, later = range(tokens).filter((i) => i >= r);
    let how = "";
    if (kind === "x") {
      for (const part of PARTS) add(to, part, range(dOut, (f) => r * dOut + f));
      for (const part of ["context", "out"]) add(to, part, later.flatMap((i) => range(dOut, (f) => i * dOut + f)));
      how = `${written(value)}, feature ${c} of ${this.token(r)}; it reaches ${tokens > r + 1 ? `${this.token(r)} and those after it` : this.token(r)}`;
    } else if (kind.includes("_")) {
      add(to, kind === "out_proj" ? "out" : PARTS[MATRICES.indexOf(kind)], range(tokens, (i) => i * dOut + c));
      how = `${written(value)}, learned; the same for every token`;
    } else if (PARTS.includes(kind)) {
      const z = PARTS.indexOf(kind), matrix = this.weights[MATRICES[z]];
      if (step === 2) add(from, "x", range(dIn, (j) => r * dIn + j));
      if (step === 2 && has(MATRICES[z])) add(from, MATRICES[z], range(dIn, (j) => j * dOut + c));
      if (kind === "queries") add(to, "scores", range(tokens, (j) => square(r, j)));
      else add(to, kind === "keys" ? "scores" : "context", kind === "keys" ? range(tokens, (i) => square(i, r)) : later.map((i) => i * dOut + c));
      if (step === 3 || step === 4) add(ghost ? to : from, kind, [at], !ghost);
      how = then === 3 || then === 4 ? `${written(value)}, ${same}`
        : products(range(dIn, (j) => [this.input[r * dIn + j], matrix[c * dIn + j]]));
    } else if (kind === "scores") {
      if (step === 5) for (const part of ["queries", "keys"]) add(from, part, range(dim, (e) => (part === "keys" ? c : r) * dOut + h * dim + e));
      if (step === 8) add(to, "context", range(dim, (e) => r * dOut + h * dim + e));
      if (ghost) add(to, "scores", step === 6 ? [at] : range(tokens, (j) => square(r, j)));
      else if (step === 6) add(from, "scores", [at], true);
      else if (step === 7) add(from, "scores", range(r + 1, (j) => square(r, j)), true);
      const { queries, keys, masked } = this.tensors;
      const power = (j) => Math.exp((masked[square(r, j)] - Math.max(...later.slice(0, 0), ...range(r + 1, (k) => masked[square(r, k)]))) / Math.sqrt(dim));
      if (then <= 5) how = products(range(dim, (e) => [queries[r * dOut + h * dim + e], keys[c * dOut + h * dim + e]]));
      else if (c > r) how = then === 6 ? `−∞, for ${this.token(c)} comes after ${this.token(r)}` : "exp(−∞) = <b>0.00</b>";
      else if (then === 6) how = `${written(value)}, the score stays: ${this.token(c)} is not after ${this.token(r)}`;
      else how = `exp(${written(masked[at])} / √${dim}) / the sum of exp over its row = <b>${written(value)}</b>`;
    } else if (kind === "context") {
      if (step === 8) add(from, "scores", range(r + 1, (j) => square(r, j)));
      if (step === 8) add(from, "values", range(r + 1, (j) => j * dOut + c));
      if (step === 11) add(to, "out", range(dOut, (g) => r * dOut + g));
      if (step === 9 || step === 10) add(ghost ? to : from, kind, [at], !ghost);
      how = then > 8 ? `${written(value)}, ${same}`
        : products(range(r + 1, (j) => [this.tensors.weights[square(r, j)], this.tensors.values[j * dOut + c]]));
    } else {
      add(from, "context", range(dOut, (f) => r * dOut + f));
      if (has("out_proj")) add(from, "out_proj", range(dOut, (f) => f * dOut + c));
      how = products(range(dOut, (f) => [this.tensors.context[r * dOut + f], this.weights.out_proj[c * dOut + f]]),
        ` + ${written(this.weights.bias[c])}`);
    }
    return { from, to, text: `<b>${this.called(cell, step)}</b> = ${how}` };
  }

  token(i) { return this.scene.words ? `“${this.scene.words[i]}”` : `token ${i}`; }

  // --------------------------------------------------------------------------------- hand

  point(cell) {
    if (this.pointed === cell) return;
    this.pointed = cell;
    this.kin = cell && this.explain(cell, this.step);
    if (!this.hold) this.tell(cell ? this.kin.text : "");
    this.soon();
  }

  // Take hold of a number: what was before stays known for as long as it is held.
  take(cell) {
    if (this.hold?.cell === cell) return;
    this.release();
    this.rush();
    const old = this.tensors, before = this.value(cell, this.step);
    const tensor = (other, step) => old[this.tensor(other, step)];
    this.hold = { cell, before, input: this.input.slice(), value: (other, step) =>
      other.kind === "x" ? this.hold.input[other.at] : other === cell ? before
        : other.kind.includes("_") ? this.value(other, step) : tensor(other, step)[other.at] };
    this.root.classList.add("held");
  }

  // Set the number that is held; everything after it follows.
  move(value) {
    const { cell } = this.hold, most = 2 * Math.max(1, Math.ceil(this.most[cell.kind]));
    const now = Math.round(clamp(value, -most, most) * 100) / 100;
    if (cell.kind === "x") this.input[cell.at] = now;
    else this.weights[cell.kind][this.matrix(cell)] = now;
    this.changed = true;
    this.back.hidden = false;
    this.compute();
    this.soon();
    this.report();
  }

  // Say what a change does here, and write the new numbers where they can be found.
  report() {
    const { cell, before } = this.hold, now = this.value(cell, this.step), delta = now - before;
    let moved = 0, all = 0;
    for (const k of this.steps[this.step].shown) {
      const each = this.cells[k];
      if (each.ghost || each.kind === "x" || each.kind.includes("_")) continue;
      all += 1;
      moved += Math.abs(this.value(each, this.step) - this.hold.value(each, this.step)) > 1e-9;
    }
    const sign = `${delta < 0 ? "−" : "+"}${Math.abs(delta).toFixed(2)}`;
    const blind = cell.kind === "x" && cell.r > 0 && this.step > 1
      ? `; ${cell.r > 1 ? `tokens 0 to ${cell.r - 1} cannot` : "token 0 cannot"} see it` : "";
    this.tell(`<b>${this.called(cell, this.step)}</b> ${written(before)} → <b>${written(now)}</b> ` +
      `<span class="${delta < 0 ? "down" : "up"}">${delta < 0 ? "▼" : "▲"} ${sign}</span> ` +
      (this.step > 1 ? `<i>here it moves ${moved} of ${count(all, "number")}${blind}</i>` : ""));
    const rest = this.steps[this.step].rest, k = this.cells.indexOf(cell);
    this.call.textContent = `${written(before)} → ${written(now)}`;
    this.call.className = `call ${delta < 0 ? "down" : "up"}`;
    const left = clamp(rest[5 * k] + rest[5 * k + 2] / 2 - 60, 0, this.across - 120);
    this.call.style.transform = `translate(${left}px, ${Math.max(0, rest[5 * k + 1] - 26)}px)`;
    this.call.hidden = false;
    this.worth();
    this.later(() => this.miniatures(), 40);
  }

  release() {
    if (!this.hold) return;
    this.hold = null;
    this.call.hidden = true;
    this.root.classList.remove("held");
    this.pointed = null;
    this.kin = null;
    this.tell();
    this.soon();
    this.later(() => this.miniatures(), 40);
  }

  // All numbers as they were at first; Escape takes back the one that is held.
  undo() {
    if (this.hold) {
      const { cell, before } = this.hold;
      if (cell.kind === "x") this.input[cell.at] = before;
      else this.weights[cell.kind][this.matrix(cell)] = before;
      this.release();
      this.compute();
      this.worth();
    } else this.reset();
  }

  reset() {
    this.hold = null;
    this.release();
    const { scene, sizes } = this;
    this.input = Float64Array.from(floats(scene.x));
    for (const dOut in this.every) this.every[dOut] = decoded(scene.weights[dOut]);
    this.compute();
    this.changed = false;
    this.back.hidden = true;
    this.worth();
    this.miniatures();
    this.tell();
    this.soon();
  }

  later(act, wait) {
    this.waiting ??= setTimeout(() => { this.waiting = null; act(); }, wait);
  }

  // ------------------------------------------------------------------------------ playhead

  show(p) {
    const before = this.step;
    this.p = clamp(p, TURN, LAST);
    if (before !== this.step || this.p === this.step) this.point(null);
    this.say();
    this.soon();
  }

  go(to, time, then) {
    cancelAnimationFrame(this.motion);
    clearTimeout(this.next);
    if (STILL.matches) time = 0;
    const from = this.p;
    let began;
    this.release();
    const tick = (now) => {
      began ??= now;
      const s = time ? clamp((now - began) / time) : 1;
      this.show(s === 1 ? to : from + (to - from) * s);
      if (s < 1) this.motion = requestAnimationFrame(tick);
      else {
        this.motion = null;
        then?.();
      }
    };
    this.target = to;
    this.motion = requestAnimationFrame(tick);
  }

  // Let the step happen that stands open, or the next one; "on" goes on to the last.
  play(on = false) {
    if (this.p >= LAST) this.show(TURN);
    const to = Math.floor(this.p + 1e-6) + 1;
    this.playing(on ? "all" : "step");
    this.go(to, 1000 * SECONDS[to] * (to - this.p) / this.speed, () => {
      if (!on || to === LAST) return this.playing(null);
      this.next = setTimeout(() => this.play(true), PAUSE / this.speed);
    });
  }

  stop() {
    cancelAnimationFrame(this.motion);
    clearTimeout(this.next);
    this.motion = null;
    this.playing(null);
  }

  playing(which) {
    this.running = which;
    const next = Math.min(LAST, Math.floor(this.p + 1e-6) + 1), n = this.p >= LAST ? 1 : next;
    this.one.textContent = which === "step" ? "❚❚ Stop" : `▶ Step ${which ? this.step : n}`;
    this.all.textContent = which === "all" ? "❚❚ Stop" : "▶▶ All";
  }

  // To the end of what is happening, for a hand that does not wait.
  rush() {
    this.stop();
    if (this.p !== this.step) this.show(this.step);
  }

  skip(by) {
    const n = this.step;
    if (this.motion && by > 0) this.show(this.step);
    this.stop();
    if (by > 0) return this.p < LAST && this.play();
    this.go(Math.max(TURN, n - 1), 300 / this.speed);
  }

  // --------------------------------------------------------------------------------- page

  page(el) {
    const make = (tag, name, more = {}) => Object.assign(document.createElement(tag), { className: name }, more);
    const { data } = this;
    this.root = make("div", "stage");
    this.root.dataset.stage = "";
    this.root.setAttribute("role", "group");
    this.root.setAttribute("aria-label", "The stage: eleven steps of multi-head attention, one after the other");
    this.root.setAttribute("data-lm-suppress-shortcuts", "true"); // keys pressed here are none of JupyterLab's
    this.root.innerHTML = `<div class="top"><div class="title" aria-live="polite"></div><div class="choices"></div></div>
      <div class="desk"><pre class="code"></pre><button class="back" hidden>Back to the start</button>
        <div class="knobs"></div></div>
      <div class="board" tabindex="0" role="application"><div class="field"><canvas></canvas>
        <div class="labels" aria-hidden="true"></div><div class="cells"></div><div class="call" hidden></div></div></div>
      <div class="card" aria-live="off"></div>
      <div class="foot"><div class="buttons"><button class="one"></button><button class="all"></button>
        <button class="pace" aria-label="speed"></button></div>
        <div class="strip" tabindex="0" role="slider" aria-label="Playhead: step" aria-valuemin="1" aria-valuemax="11">
        <canvas></canvas><div class="tiles"></div><div class="handle"></div></div></div>`;
    const part = (name) => this.root.querySelector(name);
    for (const name of ["title", "choices", "code", "back", "knobs", "board", "field", "cells", "card", "strip", "handle", "call"]) {
      this[`${name}`] = part(`.${name}`);
    }
    [this.one, this.all, this.pace] = part(".buttons").children;
    this.board.setAttribute("aria-label", "Numbers: arrow keys point at them, Tab goes to those that can be changed");
    part(".tiles").append(...data.steps.map(({ name }, k) => make("div", "tile", { innerHTML: `${k + 1} <span>${name}</span>` })));
    this.tiles = [...part(".tiles").children];
    this.canvas = part(".field > canvas");
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.small = part(".strip > canvas").getContext("2d");
    this.layers = [null, ...data.steps.map(() => [0, 1].map(() => part(".labels").appendChild(make("div", "layer"))))];
    this.now = new Float32Array(5);
    this.elements = [];
    el.append(this.root);
    this.listen();
  }

  // The colours and fonts of the page, as a canvas needs them: mixed, and without variables.
  look() {
    const style = getComputedStyle(this.root), { pen } = this;
    const colour = (name) => {
      pen.fillStyle = "#808080";
      pen.fillStyle = style.getPropertyValue(name).trim();
      const [, hex] = /^#(\w{6})$/.exec(pen.fillStyle) ?? [];
      const [r, g, b, a = 1] = hex ? [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)) : pen.fillStyle.match(/[\d.]+/g).map(Number);
      return { r, g, b, a };
    };
    const mix = (one, other, s) => `rgb(${["r", "g", "b"].map((z) => Math.round(one[z] + (other[z] - one[z]) * s))})`;
    const paper = colour("--paper"), ink = colour("--ink");
    const solid = (name) => mix(paper, colour(name), colour(name).a);
    this.paper = mix(paper, paper, 0);
    this.ink = solid("--ink");
    for (const name of ["soft", "line", "accent", "up", "down", "band"]) this[name] = solid(`--${name}`);
    this.dark = mix(paper, ink, 0.78);
    const ramp = (each, most) => range(21, (k) => mix(paper, each, 0.05 + (most - 0.05) * k / 20));
    this.heads = this.data.colours.map((each) => each);
    this.tints = { up: ramp(colour("--up"), 0.5), down: ramp(colour("--down"), 0.5), [-1]: ramp(colour("--grey"), 0.55) };
    this.strong = { [-1]: ramp(colour("--grey"), 1) }; // where no number has to be read through it
    this.data.colours.forEach((each, h) => {
      this.root.style.setProperty("--head", each);
      this.tints[h] = ramp(colour("--head"), 0.5);
      this.strong[h] = ramp(colour("--head"), 1);
    });
    this.family = style.getPropertyValue("--digits");
    this.fonts = { words: `12px ${this.family}`, bold: `bold 13px ${this.family}`, code: `11.5px ${style.getPropertyValue("--code")}`,
      sign: `22px ${this.family}`, hint: `12px ${this.family}` };
    this.widths = new Map();
    pen.font = `100px ${this.family}`;
    this.em = pen.measureText("−0.00").width / 100;
    this.shortEm = pen.measureText("−.00").width / 100;
    this.least = Math.ceil(LEAST_FONT * this.shortEm * 0.9 + 1.5);
  }

  resize() {
    this.dots = window.devicePixelRatio || 1;
    this.across = Math.max(...this.steps.slice(1).map((each) => each.need));
    const fit = (canvas, w, h) => {
      [canvas.width, canvas.height] = [w * this.dots, h * this.dots];
      canvas.style.cssText = `width:${w}px;height:${h}px`;
    };
    fit(this.canvas, this.across, this.high);
    fit(this.small.canvas, this.strip.clientWidth, 50);
    this.board.style.height = `${this.high}px`;
    this.later(() => this.miniatures(), 0);
  }

  // The words of every step, in two layers: of what comes in, and of what has come out.
  label() {
    const line = (parts) => parts.map(([text, font]) => `<span class="${font}">${text}</span>`).join("");
    for (let n = 1; n <= LAST; n++) {
      const html = ["", ""];
      for (const { text, x, y, w, mid, end, head, out, hint } of this.steps[n].labels) {
        const kind = `label${mid ? " mid" : ""}${end ? " end" : ""}${hint ? " hint" : ""}${head >= 0 ? " head" : ""}`;
        const colour = head >= 0 ? `;--head:${this.heads[head]}` : "";
        html[out ? 1 : 0] += `<div class="${kind}" style="left:${x.toFixed(1)}px;top:${y.toFixed(1)}px;width:${Math.ceil(w)}px${colour}">` +
          `${text.map((parts) => `<div>${line(parts) || "&nbsp;"}</div>`).join("")}</div>`;
      }
      this.layers[n].forEach((layer, z) => { layer.innerHTML = html[z]; });
    }
  }

  // Elements for all cells; where they lie is said when a step comes to rest.
  overlay() {
    this.cells_ = null;
    this.cells2 = null;
    this.elements = [];
    this.laid = null;
    this.root.querySelector(".cells").replaceChildren();
  }

  // Lay an element over each number of the step.
  cover() {
    const n = this.step, { rest, shown } = this.steps[n], key = this.says;
    const board = this.root.querySelector(".cells");
    board.classList.toggle("moving", this.p !== n && Math.abs(this.p - n + 1 - TURN) > 1e-6);
    if (this.laid === n || this.scrubbing) return;
    this.laid = n;
    this.field.style.width = `${this.steps[n].need}px`;
    this.board.classList.toggle("scrolled", this.steps[n].need > this.room + 1);
    const seen = new Set(shown), fresh = document.createDocumentFragment(), roving = new Set();
    for (const k of shown) {
      const cell = this.cells[k], [x, y, w, h] = rest.subarray(5 * k, 5 * k + 4);
      if (cell.ghost) continue;
      const each = this.elements[k] ??= fresh.appendChild(document.createElement("i"));
      each.k = k;
      each.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
      each.dataset.cell = [this.tensor(cell, n), ...this.indices(cell, n)].join(".");
      if (!this.movable(cell, n)) continue;
      each.setAttribute("role", "slider");
      each.tabIndex = roving.has(cell.kind) ? -1 : 0; // one stop a tensor, arrow keys go on from there
      roving.add(cell.kind);
      each.setAttribute("aria-label", `${this.called(cell, n)}, step ${n}`);
    }
    this.elements.forEach((each, k) => {
      const hidden = !seen.has(k);
      if (each.hidden !== hidden) each.hidden = hidden;
    });
    board.append(fresh);
    this.worth();
  }

  // Write the values of all numbers into their elements.
  worth() {
    const n = this.step;
    for (const k of this.steps[n].shown) {
      const each = this.elements[k], cell = this.cells[k];
      if (!each) continue;
      const value = this.value(cell, n), text = value === -Infinity ? "-inf" : String(value);
      if (each.dataset.value === text) continue;
      each.dataset.value = text;
      if (!this.movable(cell, n)) continue;
      each.setAttribute("aria-valuenow", text);
      each.setAttribute("aria-valuetext", written(value).replace("−", "minus "));
    }
  }

  // Sliders for the sizes, over what is legal.
  sliders() {
    const { scene, sizes } = this, names = { heads: "num_heads", dOut: "d_out", tokens: "num_tokens" };
    const legal = { heads: scene.heads[sizes.dOut], dOut: Object.keys(scene.heads).map(Number), tokens: range(scene.most, (i) => i + 1) };
    if (!this.inputs) {
      this.inputs = {};
      const scenes = Object.keys(this.data.scenes);
      if (scenes.length > 1) {
        this.choices.innerHTML = scenes.map((name) => `<button>${name}</button>`).join("");
      }
      this.knobs.innerHTML = Object.entries(names).map(([key, name]) => `<label><span>${name}</span><input type="range" min="0" data-size="${key}"><output></output></label>`).join("");
      for (const input of this.knobs.querySelectorAll("input")) {
        this.inputs[input.dataset.size] = input;
        input.setAttribute("aria-label", names[input.dataset.size]);
        input.addEventListener("input", () => this.set({ [input.dataset.size]: input.legal[input.value] }));
      }
      this.scenes = [...this.choices.children];
      for (const button of this.scenes) button.addEventListener("click", () => this.choose(button.textContent));
    }
    for (const [key, input] of Object.entries(this.inputs)) {
      input.legal = legal[key];
      input.max = legal[key].length - 1;
      input.value = legal[key].indexOf(sizes[key]);
      input.disabled = legal[key].length < 2;
      input.setAttribute("aria-valuetext", sizes[key]);
      input.nextSibling.textContent = sizes[key];
    }
    for (const button of this.scenes) button.setAttribute("aria-pressed", button.textContent === this.name);
  }

  listen() {
    const { board, strip, root } = this, cellOf = (event) => this.cells[event.target.k] ?? null;
    board.addEventListener("pointerover", (event) => this.held || this.point(cellOf(event)));
    board.addEventListener("pointerleave", () => this.held || this.point(null));
    board.addEventListener("pointerdown", (event) => {
      const cell = cellOf(event);
      if (event.button || !cell) return;
      this.point(cell);
      if (!this.movable(cell)) return;
      event.preventDefault();
      event.target.focus({ preventScroll: true });
      this.take(cell);
      this.held = { id: event.pointerId, y: event.clientY, value: this.value(cell, this.step) };
      this.move(this.held.value);
      board.setPointerCapture(event.pointerId);
    });
    board.addEventListener("pointermove", (event) => {
      if (this.held?.id === event.pointerId) this.move(this.held.value + (this.held.y - event.clientY) * PER_PIXEL);
    });
    board.addEventListener("lostpointercapture", () => {
      this.held = null;
      this.release();
    });
    board.addEventListener("focusin", (event) => {
      this.card.ariaLive = event.target.matches(":focus-visible") ? "polite" : "off";
      if (event.target.matches(":focus-visible")) this.point(cellOf(event));
    });
    board.addEventListener("focusout", () => {
      clearTimeout(this.letting);
      if (!this.held) this.release();
      this.point(null);
    });
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
      event.stopPropagation();
      if (this.key(event)) event.preventDefault();
    });
    strip.addEventListener("pointerdown", (event) => {
      if (event.button) return;
      strip.setPointerCapture(event.pointerId);
      this.scrubbing = { x: event.clientX, moved: false, was: this.step };
    });
    strip.addEventListener("pointermove", (event) => {
      if (!this.scrubbing) return;
      if (!this.scrubbing.moved) {
        if (Math.abs(event.clientX - this.scrubbing.x) < 4) return;
        this.stop();
        this.scrubbing.moved = true;
      }
      this.show(this.reached(event));
    });
    strip.addEventListener("lostpointercapture", (event) => {
      const { moved } = this.scrubbing ?? {}, to = clamp(Math.round(this.reached(event)), 1, LAST);
      this.scrubbing = null;
      this.stop();
      if (moved) this.go(to, 220);
      else this.go(to - 1 + TURN, 260, () => this.play());
    });
    this.one.addEventListener("click", () => (this.running ? this.stop() : this.play()));
    this.all.addEventListener("click", () => (this.running ? this.stop() : this.play(true)));
    this.pace.addEventListener("click", () => this.paced({ 1: 2, 2: 0.5, 0.5: 1 }[this.speed]));
    this.back.addEventListener("click", () => this.reset());
    this.paced(1);
    const anew = () => { this.look(); this.arrange(); this.laid = null; this.cover(); this.soon(); };
    this.sizes_ = new ResizeObserver(() => this.steps && this.board.clientWidth && this.board.clientWidth !== this.room && anew());
    this.sizes_.observe(root);
    this.theme = new MutationObserver(anew);
    for (const each of [document.body, document.documentElement]) {
      this.theme.observe(each, { attributeFilter: ["data-jp-theme-light", "data-jp-theme-name", "data-theme", "class"] });
    }
    this.dark_ = matchMedia("(prefers-color-scheme: dark)");
    this.dark_.addEventListener("change", anew);
    this.stopListening = () => {
      this.stop();
      this.sizes_.disconnect();
      this.theme.disconnect();
      this.dark_.removeEventListener("change", anew);
    };
  }

  reached(event) {
    const { left, width } = this.strip.getBoundingClientRect();
    return (event.clientX - left) / width * LAST + 0.5;
  }

  paced(speed) {
    this.speed = speed;
    this.pace.textContent = { 0.5: "½ ×", 1: "1 ×", 2: "2 ×" }[speed];
    this.pace.setAttribute("aria-label", `speed ${this.pace.textContent}`);
  }

  // What a key does here; whether it did anything.
  key({ key, shiftKey, target }) {
    const cell = this.cells[target.k], by = { ArrowUp: 1, ArrowDown: -1 }[key], aside = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (target.matches("input, button")) return false;
    if (key === "Escape") return this.hold || this.changed ? (this.undo(), true) : (this.point(null), true);
    if (key === " ") return this.running ? this.stop() : this.play(), true;
    if (cell && this.movable(cell) && by) {
      this.take(cell);
      this.move(this.value(cell, this.step) + by * PER_KEY * (shiftKey ? 5 : 1));
      clearTimeout(this.letting);
      this.letting = setTimeout(() => { this.release(); if (document.activeElement === target) this.point(cell); }, 1500);
      return true;
    }
    if (cell && aside) {
      const next = this.elements[target.k + aside];
      if (next && !next.hidden && this.cells[target.k + aside].kind === cell.kind) {
        target.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
      return true;
    }
    if (target === this.board && (by || aside)) return this.wander(aside ?? 0, -(by ?? 0)), true;
    if (target !== this.strip) return false;
    if (by || aside) this.skip(by ?? aside);
    else if (key === "Home" || key === "End") this.go(key === "Home" ? 1 : LAST, 0);
    else return false;
    return true;
  }

  // Point at the nearest number in a direction.
  wander(dx, dy) {
    this.rush();
    const { rest, shown } = this.steps[this.step], at = (k) => rest.subarray(5 * k, 5 * k + 4);
    const [x, y] = this.pointed ? at(this.cells.indexOf(this.pointed)) : [0, 0];
    let best = null, least = 1e9;
    for (const k of shown) {
      const along = (at(k)[0] - x) * dx + (at(k)[1] - y) * dy, off = Math.abs((at(k)[0] - x) * dy) + Math.abs((at(k)[1] - y) * dx);
      if (along > 3 && along + 3 * off < least) [best, least] = [k, along + 3 * off];
    }
    this.card.ariaLive = "polite";
    if (best !== null) this.point(this.cells[best]);
  }
}

const ASK = [
  "",
  () => "Which sizes does the code read from x, and which were chosen before?",
  () => "One token plays three parts. How many numbers of x make one number of queries?",
  ({ sizes }) => `How does a row of ${sizes.dOut} become ${count(sizes.heads, "head")} without changing a number?`,
  () => "Each head wants its tokens side by side. Which two axes have to swap?",
  () => "How well does what a token looks for fit what each token shows?",
  () => "Which scores look into the future?",
  () => "How does a row of scores become shares of one whole?",
  () => "What does a token take home from itself and those before it?",
  () => "The heads are done. Whose numbers should lie side by side now?",
  ({ sizes, headDim }) => `How do ${count(sizes.heads, "head")} of ${headDim} become one row of ${sizes.dOut}?`,
  () => "So far no head knows of another. Where do they meet?",
];

const FOUND = [
  "",
  ({ sizes, headDim }) => `Read: b = 1, num_tokens = ${sizes.tokens}, d_in = ${sizes.dIn}. Chosen: head_dim = ${sizes.dOut} / ${sizes.heads} = ${headDim}.`,
  ({ sizes }) => `All ${sizes.dIn} numbers of one row of x make each number of queries. No other row does.`,
  ({ sizes, headDim }) => `Features 0 to ${headDim - 1} are head 0${sizes.heads > 1 ? `, the next ${headDim} head 1` : ""}. Not one number changed.`,
  ({ sizes, headDim }) => `Axes 1 and 2 have swapped: each head is a matrix of its own, ${sizes.tokens} × ${headDim}.`,
  ({ sizes: { heads, tokens } }) => `Every query met every key in its own head: ${heads} × ${tokens} × ${tokens} = ${heads * tokens ** 2} scores.`,
  ({ sizes: { tokens } }) => `All above the diagonal: ${tokens * (tokens - 1) / 2} of ${tokens ** 2} in each head. They become −∞.`,
  (it) => `Every row fills up to exactly 1, and −∞ gets nothing. ${it.token(0)[0] === "“" ? it.token(0) : "Token 0"} has only itself.`,
  (it) => mixture(it),
  () => "Each token's heads: axes 1 and 2 have swapped back. No number changed.",
  ({ headDim }) => `They click together: features 0 to ${headDim - 1} come from head 0. No number changed.`,
  ({ sizes }) => `Here: each number of out mixes all ${sizes.dOut} of its token's context, of all heads.`,
];

// What the last token takes from whom, in the head where it takes most from another.
function mixture(it) {
  const { tokens, heads } = it.sizes, last = tokens - 1;
  if (!last) return "One token alone: its context is its own row of values.";
  let best = [0, 0, 0];
  for (let h = 0; h < heads; h++) {
    for (let j = 0; j < last; j++) {
      const share = it.tensors.weights[(h * tokens + last) * tokens + j];
      if (share > best[0]) best = [share, h, j];
    }
  }
  return `A mixture: in head ${best[1]}, ${it.token(last)} takes ${Math.round(100 * best[0])} % from the values of ${it.token(best[2])}.`;
}

// Put the stage into an element of any page: data as eleven_steps.sliders.stage hands it over.
export function mount(el, data, options = {}) {
  return new Stage(el, data, options);
}

function render({ model, el }) {
  const stage = mount(el, model.get("data"));
  return () => stage.stopListening();
}

export default { render };

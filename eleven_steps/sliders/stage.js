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
const STRIP = 50; // pixels: how high the miniatures are
const PAUSE = 1600; // milliseconds between steps, to read what was found
const STILL = matchMedia("(prefers-reduced-motion: reduce)");

const clamp = (v, low = 0, high = 1) => Math.min(high, Math.max(low, v));
const ease = (t) => (t <= 0 ? 0 : t >= 1 ? 1 : t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
const range = (count, each = (i) => i) => Array.from({ length: count }, (_, i) => each(i));
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const sum = (list) => list.reduce((a, b) => a + b, 0);
const floats = (text) =>
  Float64Array.from(new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));

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

function decoded(weights) { // "W_query.weight" is W_query here, "out_proj.bias" bias
  const short = (name) => (name.endsWith("bias") ? "bias" : name.split(".")[0]);
  return Object.fromEntries(Object.entries(weights).map(([name, text]) => [short(name), floats(text)]));
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
    this.data = data; this.found = new Set();
    this.speed = 1; this.page(el); this.look();
    const step = options.step ?? data.step;
    this.p = (data.steps.findIndex((each) => each.name === step) + 1 || Number(step)) - 1;
    this.p += data.answered || options.answered ? 1 : TURN;
    this.choose(options.scene ?? data.scene);
  }

  // Take a scene as it comes: its x and weights, which a hand may change, stand here anew.
  choose(name) {
    this.name = name; this.scene = this.data.scenes[name];
    const { start, dIn } = this.scene;
    this.wide = dIn > 12; // too wide for numbers: features are colours
    this.sizes = { ...start, dIn };
    this.begin(); this.build();
  }

  begin() {
    this.input = floats(this.scene.x);
    this.every = Object.fromEntries(
      Object.entries(this.scene.weights).map(([dOut, each]) => [dOut, decoded(each)]));
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

  compute() { this.tensors = forward(this.input, this.weights, this.sizes); }

  // ------------------------------------------------------------------------------- cells

  // One cell for each number of x, of the matrices and of what is made; those that a step takes
  // over from the one before have a ghost, which stays where they came from.
  build() {
    this.release(); this.point(null);
    const { dIn, dOut, heads, tokens } = this.sizes;
    this.headDim = dOut / heads; this.compute(); this.cells = [];
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
    this.limits(); this.arrange();
    this.elements = []; this.over.replaceChildren();
    this.covered = null; this.sliders();
    this.say(); this.soon();
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
      title, foot, titleWide: title ? this.width(title, "bold") + 16 : 0, footWide: foot ? this.width(foot)
        : 0,
      left: more.side ? 0 : side, right: more.side ? side : 0, bottom: foot ? 18 : 0,
      top: (title ? 20 : 0) + (columns.length ? 16 : 0) };
  }

  // Lines of words, each of parts [text, font].
  words(lines, more = {}) {
    const wide = (line) => sum(line.map(([text, font]) => this.width(text, font)));
    return { text: lines, w: Math.max(...lines.map(wide)) + (more.head >= 0 ? 18 : 2), h: 16 * lines.length,
      ...more };
  }

  header(name, step, more = {}) {
    const letters = this.data.steps[step - 1].letters, { dIn, dOut, heads, tokens } = this.sizes;
    const sizes = { b: 1, num_tokens: tokens, d_in: dIn, d_out: dOut, num_heads: heads,
      head_dim: this.headDim };
    const shape = letters.replace(/\w+/g, (letter) => sizes[letter]);
    if (more.short) return this.words([[[name, "bold"]], [[shape, "code"]]]);
    return this.words([[[`${name} `, "bold"], [shape, "code"]], [[letters, "code"]]], more);
  }

  arrow(sign, word = "") {
    const [above, below] = word.split(" ").map((each) => each && [[each, "words"]]);
    return this.words([above, [[sign, "sign"]], below].filter(Boolean), { align: "middle", out: true });
  }

  feature(size) { return !this.wide ? size : size === "wi" ? 2.5 : this.narrow ? 4 : 4.5; }

  // A tensor laid out as rows of tokens, as one block a token, as one block a head.
  byRow(kind, size, more = {}) {
    const { tokens, dOut } = this.sizes;
    return this.block(kind, tokens, dOut, (i, f) => i * dOut + f, this.feature(`w${size}`), `h${size}`, more);
  }

  byToken(kind, size, lines, more = {}) {
    const { tokens, dOut, heads } = this.sizes;
    return split(range(tokens, (i) => this.block(kind, heads, this.headDim,
      (h, e) => i * dOut + h * this.headDim + e, this.feature(`w${size}`), `h${size}`,
      { ...more, card: -1, foot: more.ghost || tokens > 4 && ["queries", "keys"].includes(kind) ? ""
        : this.scene.words ? this.word(i) : `token ${i}` })),
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
    return split(range(heads, (h) => this.block("scores", tokens, tokens,
      (i, j) => (h * tokens + i) * tokens + j,
      `w${size}`, `h${size}`, { ...more, card: h, title: more.ghost && !more.titles ? "" : `head ${h}`,
        rows: more.ghost || h ? [] : range(tokens, (i) => this.word(i)),
        columns: more.columns ? range(tokens, (j) => this.word(j)) : [] })), lines, 22, 8);
  }

  // x as it stays at the side from step 2 on, with the values while they wait.
  dock(step) {
    const { tokens, dIn } = this.sizes, names = range(tokens, (i) => this.word(i));
    const wide = this.wide ? (this.narrow ? 4 : 5) : this.narrow ? 30 : 33;
    const x = this.block("x", tokens, dIn, (i, j) => i * dIn + j, wide, this.wide ? 18 : 21, { rows: names });
    const parts = [col([this.header("x", 1), x, this.words([[["drag a number of x, or ↑ ↓", "words"]]],
      { hint: true })], 3)];
    if (step > 4 && step < 8) {
      const name = this.narrow ? "values wait" : "values wait for step 8";
      const values = this.byRow("values", 0, { ghost: false });
      parts.push(col([this.words([[[name, "words"]]]), { ...values, wide: this.wide ? 2.5 : 7, high: 6 }],
        3));
    }
    if (this.scene.words && (step === 7 || step === 8)) parts.push(this.arcsBlock());
    return this.narrow ? split(parts, parts.some((part) => part.arcs) ? parts.length : 1, 14, 8)
      : col(parts, 16);
  }

  arcsBlock() {
    const step = Math.max(40, ...this.scene.words.map((word) => this.width(word) + 10));
    return { arcs: step, w: step * this.sizes.tokens, h: 132, out: true };
  }

  // What step 5 and 8 do in each head: one factor at the left, one above, the product between them.
  product(step, lines) {
    const { tokens, dOut, heads } = this.sizes, names = range(tokens, (i) => this.word(i)),
      dim = this.headDim;
    const [first, second, made] = step === 5 ? ["queries", "keysᵀ", "scores"] : ["weights", "values",
      "context"];
    const part = (kind, h) => (i, e) => i * dOut + h * dim + e;
    const square = (h) => (i, j) => (h * tokens + i) * tokens + j;
    return split(range(heads, (h) => {
      const corner = this.words([[[`head ${h}`, "bold"]], [["", "words"]], [[first, "words"]]],
        { low: true, head: h });
      const above = step === 5
        ? this.block("keys", dim, tokens, (e, j) => part("keys", h)(j, e), "wo", this.feature("hi"),
          { columns: names })
        : this.block("values", tokens, dim, part("values", h), this.feature("wo"), "hi",
          { rows: names, side: true });
      above.title = second; above.top += 18;
      above.titleWide = this.width(second); above.plain = true;
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
    const pair = (into, outOf) => beside([col(into, 6), this.arrow(to), col(outOf, 6)],
      flow === "row" ? 16 : 4);
    switch (step) {
      case 1: return this.opening(beside, names);
      case 2: {
        const matrix = (_, k) => (this.wide ? this.words([[[MATRICES[k], "bold"]],
          [[`${dIn * dOut} numbers,`, "words"]],
          [["learned", "words"]]]) : this.block(MATRICES[k], dIn, dOut, (j, f) => j * dOut + f, "wm", "hm"));
        const head = this.words([[["W_query, W_key, W_value", "bold"]], [[`(${dIn}, ${dOut}) `, "code"],
          [this.wide ? "" : "drag, too", "hint"]]]);
        return bands(head, matrix, (kind) => this.byRow(kind, "o", { out: true, rows: names, side: true }));
      }
      case 3: return bands(this.header("come in", 2, { short: true }),
        (kind) => this.byRow(kind, "i", { ghost: true }),
        (kind) => this.byToken(kind, "o", lines, out));
      case 4: return bands(this.header("come in", 3, { short: true }),
        (kind) => this.byToken(kind, "i", lines, { ghost: true }),
        (kind) => this.byHead(kind, "o", lines, { ...out, titles: kind === "queries" && lines === 1,
          names: true }));
      case 5: return col([beside([this.header("queries, keys", 4), this.header("scores", 5, out)],
        flow === "row" ? 40 : 2),
        this.product(5, lines)], 8);
      case 6: return pair([this.header("scores", 5), this.squares("i", 1, { ghost: true })],
        [this.header("masked", 6, out), this.squares("o", lines, { ...out, columns: tokens < 9 })]);
      case 7: return pair([this.header("masked", 6), this.squares("i", 1, { ghost: true })],
        [this.header("weights", 7, out), this.squares("o", lines,
          { ...out, between: 11, shares: true, columns: true })]);
      case 8: return col([beside([this.header("weights", 7), this.header("context", 8, out)],
        flow === "row" ? 28 : 2), this.product(8, lines)], 8);
      case 9: return pair([this.header("context", 8),
        this.byHead("context", "i", 1, { ghost: true, titles: true })],
        [this.header("context", 9, out), this.byToken("context", "o", lines, out)]);
      case 10: return pair([this.header("context", 9), this.byToken("context", "i", lines, { ghost: true })],
        [this.header("context", 10, out), this.byRow("context", "o",
          { ...out, rows: names, side: true, heads }),
        ]);
      default: {
        const bias = "and a bias is added", shape = [[["out_proj ", "bold"], [`(${dOut}, ${dOut})`, "code"]],
          [[bias, "words"]]];
        const corner = col([this.header("context", 10), this.words(shape, { low: true, align: "end" })], 10);
        const matrix = this.wide ? this.words([[[`${dOut * dOut} numbers, learned`, "words"]]])
          : this.block("out_proj", dOut, dOut, (f, g) => f * dOut + g, "wo", "hm");
        return grid([[corner, matrix], [this.byRow("context", "o", { rows: names }),
          this.byRow("out", "o", out)],
          [null, this.header("out", 11, out)]], 12, 8);
      }
    }
  }

  // Step 1: x alone, and what the code reads from its shape.
  opening(beside, names) {
    const { tokens, dIn, dOut, heads } = this.sizes;
    const x = this.block("x", tokens, dIn, (i, j) => i * dIn + j, this.wide ? Math.min(12, this.room / 60)
      : "wo", "ho",
      { rows: this.scene.words ? names : names.map((i) => `token ${i}`) });
    const line = (fact, why) => [this.words([[[fact, "code"]]], { out: true }),
      this.words([[[why, "words"]]], { out: true })];
    const facts = grid([line("b = 1", "sequences: one here"), line(`num_tokens = ${tokens}`, "rows of x"),
      line(`d_in = ${dIn}`, "columns of x"), line(`d_out = ${dOut}`, "chosen when the module was built"),
      line(`num_heads = ${heads}`, "chosen: it must divide d_out"),
      line(`head_dim = ${this.headDim}`, `d_out / num_heads = ${dOut} / ${heads}`)], 16, 9);
    return beside([col([this.header("x", 1), x, this.words([[["drag a number up or down, or ↑ ↓", "words"]]],
      { hint: true })], 6), facts], 44);
  }

  // Find for a step the largest cells that fit: beside or below each other, in lines, with numbers
  // in what comes in or, if need be, its colours alone; nothing, if a number would be illegible.
  fit(step, width, height) {
    const names = step > 4 && step < 9 && this.scene.words || []; // they stand over columns
    const least = Math.max(this.least, ...names.map((word) => this.width(word) + 2));
    let best = null;
    for (const [lines, flow] of [[1, "row"], [1, "col"], [2, "row"], [2, "col"], [3, "row"], [3, "col"]]) {
      if (lines > 1 && flow === "row" && best?.w >= 1.15 * least) break;
      const tree = this.tree(step, flow, lines);
      for (const [across, down] of [[1, 1], [0, 1], [1, 0], [0, 0]]) {
        const sizes = (w) => {
          const high = Math.max(LEAST_HIGH, 0.64 * w);
          return { wo: w, ho: high, wi: across ? Math.max(least, 0.8 * w) : HEAT,
            hi: down ? Math.max(LEAST_HIGH, 0.8 * high) : this.wide ? 5 : HEAT,
            wm: across ? least : 2 * HEAT, hm: down ? LEAST_HIGH : HEAT };
        };
        const fits = (w) => {
          measure(tree, sizes(w));
          return tree.w <= width && tree.h <= height;
        };
        if (!fits(least)) continue;
        let w = least;
        for (let by = (LARGEST - least) / 2; by > 1; by /= 2) if (fits(w + by)) w += by;
        const score = w + 22 * (across + down);
        if (!best || score > best.score + 0.5) best = { tree, sizes: sizes(w), score, w };
      }
    }
    if (best) measure(best.tree, best.sizes);
    return best;
  }

  // Lay out every step for the room there is, and find how far each cell travels.
  arrange() {
    this.room = this.board.clientWidth || 1068; this.narrow = this.room < 760;
    this.root.classList.toggle("narrow", this.narrow);
    this.root.classList.toggle("close", this.room < 960);
    this.root.classList.toggle("slim", this.room < 500);
    const tall = this.narrow ? 660 : 390;
    const plans = range(LAST, (k) => {
      const step = k + 1, dock = step > 1 && this.dock(step);
      if (dock) measure(dock, {});
      const aside = dock && !this.narrow ? dock.w + 20 : 0, above = dock && this.narrow ? dock.h + 16 : 0;
      let plan = null; // where nothing fits it has to be scrolled
      for (let more = 1; !plan; more *= 1.25) {
        plan = this.fit(step, (this.room - aside - 10) * more, (tall - above - 8) * Math.max(1, more / 2));
      }
      return { ...plan, dock, aside, above, need: Math.max(this.room, aside + plan.tree.w + 10,
        (dock.w ?? 0) + 4) };
    });
    const need = Math.max(...plans.map((plan) => Math.max(plan.above + plan.tree.h, plan.dock.h ?? 0) + 10));
    this.high = this.narrow ? Math.max(this.high ?? 0, need) : tall; // it grows, and never jumps back
    const total = this.cells.length;
    this.steps = [null];
    plans.forEach((plan, k) => {
      const laid = { rest: new Float32Array(5 * total), labels: [], slots: [], bars: [], arcs: null,
        need: plan.need };
      const leaf = (node, x, y) => this.lay(laid, node, x, y);
      if (plan.dock) place(plan.dock, 2, this.narrow ? 2 : Math.max(2, this.dockTop(plan.dock)), leaf);
      const left = plan.aside + Math.max(4, (Math.min(plan.need, this.room) - plan.aside - plan.tree.w) / 2);
      const spare = this.high - plan.above - plan.tree.h;
      place(plan.tree, left, plan.above + Math.max(2, this.narrow ? Math.min(spare / 2, 20) : spare / 2),
        leaf);
      this.steps.push(laid);
    });
    this.starts(); this.resize(); this.label();
  }

  dockTop(dock) { return this.wide ? 2 : Math.min(70, (this.high - dock.h) / 2); }

  lay(laid, node, x, y) {
    const { rest, labels, slots, bars } = laid;
    if (node.arcs) {
      laid.arcs = { ...node, x, y };
    } else if (node.text) {
      labels.push({ ...node, x, y });
    } else {
      const left = x + node.left, top = y + node.top,
        { cellWide: w, cellHigh: h, between, kind, ghost } = node;
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
      const say = (text, tx, ty, tw, more) => labels.push({ text: [[[text, "words"]]], x: tx, y: ty, w: tw,
        h: 16, ...more });
      if (h >= 13) node.names.forEach((name, r) => {
        const ty = top + r * (h + between) + (h - 16) / 2;
        if (node.side) say(name, left + wide + 6, ty, node.right, { out: node.out });
        else say(name, x, ty, node.left - 6, { end: true, out: node.out });
      });
      const fit = node.columns.every((name) => this.width(name) <= w);
      if (fit) node.columns.forEach((name, c) => say(name, left + c * w, top - 17, w,
        { mid: true, out: node.out }));
      if (node.foot) say(node.foot, left, top + high + 4, Math.max(wide, node.footWide),
        { out: node.out, mid: wide > node.footWide });
      if (node.title) {
        labels.push({ text: [[[node.title, node.plain ? "words" : "bold"]]], x: left, y, w: node.titleWide,
          h: 16,
          head: node.plain ? undefined : node.card });
      }
    }
  }

  // Where cells are when a step begins to happen: those that it takes over where their ghosts will
  // stay, its operands where they will be, and nothing of what it makes.
  starts() {
    const ghosts = Object.keys(this.first).filter((kind) => kind[0] === "~").map((kind) => kind.slice(1));
    for (let n = 1; n <= LAST; n++) {
      const { rest } = this.steps[n], start = this.steps[n].start = rest.slice(),
        before = this.steps[n - 1]?.rest;
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
    const { tokens, heads } = this.sizes, { kind, r, h } = cell,
      part = (i, of) => (of > 1 ? i / (of - 1) : 0);
    if (cell.ghost) return clamp(3 * u);
    if (n === 8 && kind === "context") return +(u >= (r + 0.97) / tokens);
    if (MADE[n]?.includes(kind)) return clamp(5 * (this.sweep(n, u) - this.order(cell, n) - 0.8));
    if (n === 3) return ease((clamp((u - 0.25) / 0.75) - 0.5 * part(r, tokens)) / 0.5);
    if (n === 4) return ease((u - 0.42 * part(h, heads)) / 0.58);
    if (n === 9) return ease((u - 0.45 * part(r, tokens)) / 0.55);
    if (n === 10) return ease((u / 0.75 - 0.4 * part(r, tokens)) / 0.6);
    return ease(u / { 6: 0.45, 7: 0.35 }[n] || 3 * u);
  }

  // Numbers are made one by one, the first ones slowly: how many stand at u, and when one's turn is.
  sweep(n, u) {
    const all = this.sizes.tokens * (n === 5 ? this.sizes.tokens : this.sizes.dOut);
    return all * u ** Math.max(1, Math.log(all) / Math.log(5)) + (u >= 1);
  }

  order({ r, c }, n) { return r * (n === 5 ? this.sizes.tokens : this.sizes.dOut) + c; }

  // Where cell k is when step n has come as far as t: x, y, width, height, opacity.
  where(k, n, t) {
    const { rest, start } = this.steps[n], { now } = this, u = clamp((t - TURN) / (1 - TURN)),
      cell = this.cells[k];
    const [from, to, s] = t < TURN ? [this.steps[n - 1]?.rest ?? start, start, ease(t / TURN)]
      : [start, rest, t < 1 ? this.progress(cell, n, u) : 1];
    const seen = from[5 * k + 4], then = to[5 * k + 4];
    for (let z = 0; z < 4; z++) {
      const a = seen ? from[5 * k + z] : to[5 * k + z];
      now[z] = a + ((then ? to[5 * k + z] : a) - a) * s;
    }
    now[4] = seen + (then - seen) * s;
    if (u > 0 && u < 1 && !cell.ghost && (n === 3 && PARTS.includes(cell.kind) || n === 10
      && cell.kind === "context")) {
      // A gap.
      now[0] += cell.h * (n === 3 ? 14 * ease(4 * u) * (1 - s) : 22 * s * (1 - ease((u - 0.75) / 0.25)));
    }
    return now;
  }

  // Whether a cell shows what its step makes of it: −∞ once its tile lies, a share once its row fills.
  settled({ kind, ghost, r, c }, n, u) {
    if (kind !== "scores" || ghost || u >= 1) return true;
    if (n === 7) return clamp((u - 0.4) / 0.6) * this.sizes.tokens >= r + 0.5;
    return n !== 6 || u >= this.landing(r, c) + 0.3;
  }

  landing(r, c) { return 0.42 + 0.26 * (1 - (c - r) / this.sizes.tokens); }

  // -------------------------------------------------------------------------------- paint

  soon() { this.frame ??= requestAnimationFrame(() => { this.frame = null; this.paint(); }); }

  paint() {
    const n = this.step, t = this.p - n + 1, u = clamp((t - TURN) / (1 - TURN)), { pen } = this,
      resting = t >= 1;
    const { active, shown, rest, slots, arcs } = this.steps[n];
    pen.setTransform(this.dots, 0, 0, this.dots, 0, 0);
    this.fill(0, 0, this.across, this.high, this.paper);
    Object.assign(pen, { textAlign: "center", textBaseline: "middle" });
    this.font = null;
    for (const slot of slots) this.slot(slot, clamp((t - TURN + 0.1) * 10), u);
    for (const k of resting ? shown : active) {
      const at = resting ? rest.subarray(5 * k, 5 * k + 5) : this.where(k, n, t);
      if (at[4] > 0.02) this.square(k, at, this.settled(this.cells[k], n, u) ? n : n - 1);
    }
    pen.globalAlpha = 1;
    if (u > 0 && u < 1) this.act(n, t, u);
    if (n === 7 || n === 8 && t < TURN) this.bars(n, t, u);
    if (arcs && u > 0.4) this.arcs(arcs, clamp((u - 0.4) * 3));
    if (resting) this.marks(rest);
    this.follow(n, t);
  }

  fill(x, y, w, h, colour, opacity = 1) {
    this.pen.globalAlpha = opacity; this.pen.fillStyle = colour; this.pen.fillRect(x, y, w, h);
  }

  write(text, x, y, size, colour, bold = "", most) {
    const font = `${bold} ${size}px ${this.family}`;
    if (font !== this.font) this.pen.font = this.font = font;
    this.pen.fillStyle = colour; this.pen.fillText(text, x, y, most);
  }

  // Where something will come to lie: dashed, and a question, until it does.
  slot({ x, y, w, h, card, out }, o, u) {
    const { pen } = this;
    pen.globalAlpha = o;
    Object.assign(pen, { strokeStyle: card >= 0 ? this.heads[card] : this.line, lineWidth: 1.5 });
    pen.setLineDash(out && u < 1 ? [4, 4] : []); pen.beginPath();
    pen.roundRect(x, y, w, h, 6); pen.stroke(); pen.setLineDash([]);
    if (out && u === 0) this.write("?", x + w / 2, y + h / 2, Math.min(24, h * 0.6), this.soft);
  }

  // How large a number is written in a cell, and whether without its leading zero.
  sizeOf(w, h) {
    const full = Math.min(0.63 * h, (w - 4) / this.em),
      short = Math.min(0.63 * h, (w - 1.5) / this.shortEm / 0.9);
    if (full >= LEAST_FONT) return [Math.min(Math.floor(2 * full) / 2, 21), false];
    return [short >= LEAST_FONT ? Math.min(Math.floor(2 * short) / 2, 12) : 0, true];
  }

  square(k, [x, y, w, h, o], step) {
    const { pen, hold } = this, cell = this.cells[k], value = this.value(cell, step), heat = w < 16 || h < 14;
    const delta = hold ? value - hold.value(cell, step) : 0, moved = Math.abs(delta) > 1e-9,
      dark = value === -Infinity;
    const most = this.tensor(cell, step) === "weights" ? 1 : this.most[cell.kind],
      size = Math.min(1, Math.abs(delta) / most / 0.5);
    const level = dark ? 0 : Math.round(20 * Math.min(1, Math.abs(value) / most));
    pen.globalAlpha = o;
    pen.fillStyle = moved ? this.tints[delta > 0 ? "up" : "down"][4 + Math.round(16 * size)]
      : hold ? this.band : dark ? this.dark : (heat ? this.strong : this.tints)[cell.h][level];
    if (heat) pen.fillRect(x, y, w - (w > 6 ? 0.7 : 0.25), h - (h > 6 ? 0.7 : 0.25));
    else {
      pen.beginPath(); pen.roundRect(x + 0.5, y + 0.5, w - 1, h - 1, 3); pen.fill();
    }
    if (moved && h >= 12) { // which way, and how far
      const long = Math.max(2, size * (h / 2 - 2));
      this.fill(x + w - 4, y + h / 2 - (delta > 0 ? long : 0), 3, long, delta > 0 ? this.up : this.down, o);
    }
    if (this.sized !== w + h / 1000) {
      this.sized = w + h / 1000;
      [this.fontSize, this.short] = this.sizeOf(w, h);
    }
    if (!this.fontSize) return;
    // As a link is underlined.
    if (this.movable(cell)) this.fill(x + 4, y + h - 3, w - 8, 1.5, this.accent, o);
    const two = moved && h >= 30, size2 = two ? Math.min(this.fontSize, 0.5 * h) : this.fontSize;
    if (two) this.write(written(hold.value(cell, step), this.short), x + w / 2, y + h * 0.27, LEAST_FONT,
      this.soft);
    this.write(written(value, this.short), x + w / 2, y + h * (two ? 0.68 : 0.51), size2,
      dark && !hold ? this.paper : hold && !moved ? this.soft : this.ink, moved ? "bold" : "",
      this.short || moved ? w - 1.5 : undefined); // if need be a little narrower than the font is
  }

  // What flies while a step happens.
  act(n, t, u) {
    const { tokens, dOut, dIn, heads } = this.sizes, dim = this.headDim, wide = n === 5 ? tokens : dOut;
    const at = (kind, flat) => Float32Array.from(this.where(this.index(kind, flat), n, t));
    const row = (kind, i, length) => range(length, (j) => at(kind, i * length + j));
    const done = Math.min(this.sweep(n, u), tokens * wide - 1e-6), s = done % 1;
    const i = Math.floor(done / wide), f = Math.floor(done) % wide;
    if (n === 1) { // rows are counted, then columns
      if (u < 0.5) this.frameAround(row("x", Math.floor(u * 2 * tokens), dIn));
      else this.frameAround(range(tokens, (r) => at("x", r * dIn + Math.floor((2 * u - 1) * dIn))));
    } else if (n === 5) { // a row and a column meet and collapse
      for (let h = 0; h < heads; h++) {
        const to = at("scores", (h * tokens + i) * tokens + f),
          part = (kind, r) => row(kind, r, dOut).slice(h * dim, (h + 1) * dim);
        const both = [part("queries", i), part("keys", f)];
        for (const each of both) each.forEach((from, e) => this.chip(from, to, s, h, e / dim));
        [...both, [to]].forEach((each) => this.frameAround(each));
      }
    } else if (n === 2 || n === 11) { // a row goes through a column of the matrix
      const length = n === 2 ? dIn : dOut, from = row(n === 2 ? "x" : "context", i, length);
      this.frameAround(from);
      (n === 2 ? PARTS : ["out"]).forEach((kind, z) => {
        const to = at(kind, i * dOut + f), matrix = n === 2 ? MATRICES[z] : "out_proj";
        const column = this.wide ? from.map(() => to) : range(length, (j) => at(matrix, j * dOut + f));
        from.forEach((each, j) => this.chip(...(s < 0.5 ? [each, column[j], 2 * s]
          : [column[j], to, 2 * s - 1]),
          n === 11 ? Math.floor(j / dim) : -1));
        [column, [to]].forEach((each) => this.frameAround(each));
      });
    } else if (n === 6) { // the triangle falls
      for (let k = this.first.scores; k < this.first.scores + heads * tokens * tokens; k++) {
        const { r, c } = this.cells[k], fallen = (u - this.landing(r, c)) / 0.3;
        if (c <= r || fallen <= 0 || fallen >= 1) continue;
        const [x, y, w, h] = this.where(k, n, t);
        this.fill(x + 0.5, y - 70 * (1 - ease(fallen)) + 0.5, w - 1, h - 1, this.dark,
          Math.min(1, 2 * fallen));
      }
    } else if (n === 8) this.stack(u, at);
    this.pen.globalAlpha = 1;
  }

  // Step 8: rows of values, each as high as its weight, stack up to a row of context.
  stack(u, at) {
    const { tokens, dOut, heads } = this.sizes, dim = this.headDim,
      i = Math.min(tokens - 1, Math.floor(u * tokens));
    const turn = (u * tokens - i) * (i + 1) / 0.94, last = Math.min(i, Math.floor(turn));
    for (let h = 0; h < heads; h++) {
      const first = (h * tokens + i) * tokens, value = (j) => range(dim,
        (e) => at("values", j * dOut + h * dim + e));
      for (let j = 0, below = 0; j <= last; j++) {
        const s = ease((turn - j) / 0.8), weight = this.tensors.weights[first + j],
          go = (a, b) => a + (b - a) * s;
        value(j).forEach((from, e) => {
          const to = at("context", i * dOut + h * dim + e);
          this.fill(go(from[0], to[0]) + 1, go(from[1], to[1] + to[3] * (1 - below - weight)),
            go(from[2], to[2]) - 2,
            go(from[3], to[3] * weight) - 0.5, this.strong[h][18 - Math.round(12 * j / tokens)]);
        });
        below += weight;
      }
      [[at("scores", first + last)], value(last)].forEach((each) => this.frameAround(each));
    }
  }

  chip(from, to, s, head, share = 0.3) {
    if (!s) return; // what has not left yet covers no digit
    const e = ease(s), size = 8 - 2 * e, x = from[0] + from[2] / 2, y = from[1] + from[3] / 2;
    this.fill(x + (to[0] + to[2] * (0.3 + 0.4 * share) - x) * e - size / 2,
      y + (to[1] + to[3] / 2 - y) * e - size / 2,
      size, size, head < 0 ? this.accent : this.heads[head], 0.9);
  }

  frameAround(list, dash = [], colour = this.ink) {
    const [x, y] = [0, 1].map((z) => Math.min(...list.map((each) => each[z])) - 1);
    const [right, low] = [0, 1].map((z) => Math.max(...list.map((each) => each[z] + each[z + 2])) + 1);
    Object.assign(this.pen, { strokeStyle: colour, lineWidth: 2, globalAlpha: 1 });
    this.pen.setLineDash(dash); this.pen.strokeRect(x, y, right - x, low - y);
    this.pen.setLineDash([]);
  }

  // Rows that fill up to one, under the weights of step 7.
  bars(n, t, u) {
    const { tokens } = this.sizes, turn = n === 8 ? tokens : clamp((u - 0.4) / 0.6) * tokens;
    this.steps[7].bars.forEach((bar, h) => {
      for (let i = 0; i < tokens; i++) {
        for (let j = 0, reached = 0; j <= i; j++) {
          const share = this.tensors.weights[(h * tokens + i) * tokens + j],
            long = clamp(clamp(turn - i) - reached, 0, share);
          if (long * bar.w > 0.5) {
            this.fill(bar.x + reached * bar.w, bar.y + i * bar.each + bar.h + 1.5, long * bar.w - 0.7, 7,
              this.strong[h][18 - Math.round(13 * j / tokens)], n === 8 ? 1 - t / TURN : 1);
          }
          reached += share;
        }
      }
    });
  }

  // Whom a word reads, the one pointed at or the last: arcs as thick as shares, heads above and below.
  arcs({ x, y, arcs: step, h: high }, o) {
    const { tokens, heads } = this.sizes, { pen, pointed } = this, middle = y + high / 2;
    const query = ["scores", "context"].includes(pointed?.kind) ? pointed.r : tokens - 1,
      at = (i) => x + step * (i + 0.5);
    for (let h = 0; h < heads; h++) {
      const side = h % 2 ? 1 : -1, from = middle + side * 10;
      for (let j = 0; j <= query; j++) {
        const share = this.tensors.weights[(h * tokens + query) * tokens + j], aside = query === j ? 22 : 0;
        const turn = from + side * 1.3 * Math.max(0.35, (query - j) / tokens) * (high / 2 - 14);
        if (share < 0.01) continue;
        Object.assign(pen, { globalAlpha: o, strokeStyle: this.heads[h], lineWidth: 1 + 8 * share });
        pen.beginPath(); pen.moveTo(at(query), from);
        pen.bezierCurveTo(at(query) + aside, turn, at(j) - aside, turn, at(j), from);
        pen.stroke();
      }
      this.write(`head ${h}`, x + 24, h % 2 ? y + high - 8 : y + 8, 12, this.ink);
    }
    for (let i = 0; i < tokens; i++) {
      this.write(this.word(i), at(i), middle, 13, i === query ? this.ink : this.soft,
        i === query ? "bold" : "");
    }
    pen.globalAlpha = 1;
  }

  // What a number that is pointed at comes from (solid) and goes to (dashed).
  marks(rest) {
    if (!this.pointed || this.hold) return;
    const at = (k) => rest.subarray(5 * k, 5 * k + 5), seen = (k) => rest[5 * k + 4] > 0;
    for (const k of this.kin.from.filter(seen)) this.frameAround([at(k)], [], this.accent);
    for (const k of this.kin.to.filter(seen)) this.frameAround([at(k)], [3, 2]);
    const [x, y, w, h] = at(this.cells.indexOf(this.pointed));
    this.frameAround([[x - 1, y - 1, w + 2, h + 2]]);
  }

  // Every step in small, as it is now: what changes under a hand lights up here as well.
  miniatures() {
    const { small: pen, hold } = this, wide = this.strip.clientWidth / LAST;
    pen.setTransform(this.dots, 0, 0, this.dots, 0, 0); pen.clearRect(0, 0, wide * LAST, STRIP);
    for (let n = 1; n <= LAST; n++) {
      for (const [k, x, y, w, h] of this.steps[n].mini ??= this.smaller(n, wide)) {
        const cell = this.cells[k], value = this.value(cell, n), delta = hold ? value - hold.value(cell, n)
          : 0;
        const most = this.tensor(cell, n) === "weights" ? 1 : this.most[cell.kind];
        pen.fillStyle = Math.abs(delta) > 1e-9 ? (delta > 0 ? this.up : this.down) : hold ? this.line
          : value === -Infinity ? this.dark : this.strong[cell.h][3
            + Math.round(17 * Math.min(1, Math.abs(value) / most))];
        pen.fillRect(x, y, w, h);
      }
    }
  }

  // What a step makes, made smaller to fit its place in the strip.
  smaller(n, wide) {
    const { rest, shown } = this.steps[n], at = (k) => rest.subarray(5 * k, 5 * k + 4);
    const made = n === 1 ? ["x"] : n < 5 ? PARTS : n < 8 ? ["scores"] : n < 11 ? ["context"] : ["out"];
    const list = shown.filter((k) => !this.cells[k].ghost && made.includes(this.cells[k].kind));
    const [x, y] = [0, 1].map((z) => Math.min(...list.map((k) => at(k)[z])));
    const [right, low] = [0, 1].map((z) => Math.max(...list.map((k) => at(k)[z] + at(k)[z + 2])));
    const scale = Math.min((wide - 12) / (right - x), (STRIP - 10) / (low - y));
    const left = wide * (n - 1) + (wide - (right - x) * scale) / 2, top = (STRIP - (low - y) * scale) / 2;
    const inner = (size) => Math.max(0.6, size * scale - (size * scale > 3 ? 0.6 : 0.1));
    return list.map((k) => [k, left + (at(k)[0] - x) * scale, top + (at(k)[1] - y) * scale, inner(at(k)[2]),
      inner(at(k)[3])]);
  }

  // What goes with the playhead and is no number: words fade, the frame of the strip moves.
  follow(n, t) {
    const going = clamp(1 - t / TURN), coming = n === 1 ? 1 : clamp(t / TURN);
    for (let k = 1; k <= LAST; k++) {
      const shown = k === n ? [coming, clamp((t - 0.88) / 0.12)] : k === n - 1 ? [going, going] : [0, 0];
      this.layers[k].forEach((layer, z) => {
        if (layer.shown === shown[z]) return;
        layer.shown = shown[z];
        layer.style.cssText = `opacity:${shown[z]};visibility:${shown[z] ? "visible" : "hidden"}`;
      });
    }
    const at = this.scrubbing ? this.p : n - 1 + coming; // before a step happens it frames its tile
    this.handle.style.transform = `translateX(${100 * (Math.max(at, 1) - 1)}%)`;
  }

  // -------------------------------------------------------------------------------- words

  // The title asks, and answers once the step has happened.
  say() {
    const n = this.step, answered = this.p >= n - 1e-6, { name, code } = this.data.steps[n - 1];
    const key = [n, answered, this.name, ...Object.values(this.sizes)].join();
    if (key === this.said) return this.cover();
    this.said = key;
    Object.assign(this.root.dataset, { step: n, answered });
    this.code.textContent = code;
    this.title.innerHTML = `<b>${n} ${name}</b> ${(answered ? FOUND : ASK)[n](this)}`;
    this.strip.setAttribute("aria-valuenow", n);
    this.strip.setAttribute("aria-valuetext", `step ${n}, ${name}: ${answered ? "done" : "before it"}`);
    this.tiles.forEach((tile, k) => tile.classList.toggle("on", k + 1 === n));
    this.playing(this.running);
    if (!this.pointed && !this.hold) this.tell();
    this.cover();
  }

  // The card: what is said of a number, or how to begin.
  tell(text = "") {
    const frames = this.narrow ? "" : ": where it comes from (solid frames), where it goes (dashed)";
    this.card.innerHTML = text || `<i>Point at a number${frames}. Drag an underlined one up or down.</i>`;
  }

  token(i) { return this.scene.words ? `“${this.scene.words[i]}”` : `token ${i}`; }

  // Whether one number goes into another at a step; of x, also what lies beyond.
  feeds(one, other, step) {
    const own = one.h === other.h, { kind, r, c } = one, key = `${kind} ${other.kind}`;
    if (kind === other.kind) { // a ghost, and what became of it
      return one.ghost && !other.ghost && (step === 7 && kind === "scores" ? own && r === other.r && c <= r
        : one.at === other.at);
    }
    if (one.ghost || other.ghost) return false;
    if (kind === "x") return PARTS.includes(other.kind) ? r === other.r
      : ["context", "out"].includes(other.kind) && r <= other.r;
    if (MATRICES.includes(kind)) return MATRICES.indexOf(kind) === PARTS.indexOf(other.kind) && c === other.c;
    return { "queries scores": own && r === other.r, "keys scores": own && r === other.c,
      "context out": r === other.r,
      "scores context": own && r === other.r && c <= r, "values context": c === other.c && r <= other.r,
      "out_proj out": c === other.c }[key] ?? false;
  }

  // What a cell comes from and goes to at a step, and its arithmetic in one line.
  explain(cell, step) {
    const { tokens, dOut, dIn, heads } = this.sizes, { kind, r, c, h, at, ghost } = cell, dim = this.headDim;
    const { input, tensors, weights } = this, value = this.value(cell, step), then = ghost ? step - 1 : step;
    const text = written(value), head = range(dim, (e) => h * dim + e), places = range(dOut),
      before = range(r + 1);
    const square = (i, j) => (h * tokens + i) * tokens + j, of = (i) => (f) => i * dOut + f;
    const products = (pairs, more = "") => {
      const few = pairs.slice(0, this.narrow ? 3 : pairs.length > 6 ? 5
        : 6).map(([a, b]) => `${written(a)}·${written(b)}`);
      const rest = pairs.length > few.length ? ` + … (${pairs.length} products)` : "";
      return `${few.join(" + ")}${rest}${more} = <b>${text}</b>`;
    };
    const same = `${text}, the same number as before: only its place is new`;
    const words = {
      x: () =>
        `${text}, feature ${c} of ${this.token(r)}; it reaches ${this.token(r)}` +
        (tokens > r + 1 ? " and those after it" : ""),
      matrix: () => `${text}, learned; the same for every token`,
      part: () => (then > 2 && then < 5 ? same
        : products(range(dIn, (j) => [input[r * dIn + j],
          weights[MATRICES[PARTS.indexOf(kind)]][c * dIn + j]]))),
      scores: () => products(head.map((f) => [tensors.queries[of(r)(f)], tensors.keys[of(c)(f)]])),
      masked: () => (c > r ? `−∞, for ${this.token(c)} comes after ${this.token(r)}`
        : `${text}, the score stays: ${this.token(c)} is not after ${this.token(r)}`),
      weights: () =>
        `exp(${written(tensors.masked[at])} / √${dim}) / the sum of exp over its row = <b>${text}</b>`,
      context: () => (then > 8 ? same : products(before.map((j) => [tensors.weights[square(r, j)],
        tensors.values[of(j)(c)]]))),
      out: () => products(places.map((f) => [tensors.context[of(r)(f)], weights.out_proj[of(c)(f)]]),
        ` + ${written(weights.bias[c])}`),
    };
    const key = kind.includes("_") ? "matrix" : PARTS.includes(kind) ? "part" : this.tensor(cell, step);
    const { shown } = this.steps[step], kin = (fits) => shown.filter((k) => this.cells[k] !== cell
      && fits(this.cells[k]));
    return { from: kin((other) => this.feeds(other, cell, step)),
      to: kin((other) => this.feeds(cell, other, step)),
      text: `<b>${this.called(cell, step)}</b> = ${words[key]()}` };
  }

  // --------------------------------------------------------------------------------- hand

  point(cell) {
    if (this.pointed === cell) return;
    this.pointed = cell; this.kin = cell && this.explain(cell, this.step);
    if (!this.hold) this.tell(cell ? this.kin.text : "");
    this.soon();
  }

  // Take hold of a number: what was before stays known for as long as it is held.
  take(cell) {
    if (this.hold?.cell === cell) return;
    this.release(); this.rush();
    const { tensors } = this, before = this.value(cell, this.step), input = this.input.slice();
    this.hold = { cell, before, value: (other, step) => (other.kind === "x" ? input[other.at]
      : other === cell ? before
      : other.kind.includes("_") ? this.value(other, step) : tensors[this.tensor(other, step)][other.at]) };
  }

  put(cell, value) {
    if (cell.kind === "x") this.input[cell.at] = value;
    else this.weights[cell.kind][this.matrix(cell)] = value;
    this.compute(); this.soon();
  }

  // Set the number that is held; everything after it follows.
  move(value) {
    const { cell } = this.hold, most = 2 * Math.max(1, Math.ceil(this.most[cell.kind]));
    this.put(cell, Math.round(clamp(value, -most, most) * 100) / 100); this.back.hidden = false;
    this.report();
  }

  // Say what a change does here, and write the new numbers where they can be found.
  report() {
    const { hold, step } = this, { cell, before } = hold, now = this.value(cell, step), delta = now - before;
    const made = this.steps[step].shown.map((k) => this.cells[k]).filter(({ kind, ghost }) => !ghost
      && kind !== "x" && !kind.includes("_"));
    const moved = made.filter((each) => Math.abs(this.value(each, step) - hold.value(each,
      step)) > 1e-9).length;
    const way = delta < 0 ? "down" : "up", blind = cell.kind !== "x" || cell.r === 0 ? ""
      : `; ${cell.r > 1 ? `tokens 0 to ${cell.r - 1} cannot` : "token 0 cannot"} see it`;
    this.tell(`<b>${this.called(cell, step)}</b> ${written(before)} → <b>${written(now)}</b> ` +
      `<span class="${way}">` +
      `${delta < 0 ? "▼ −" : "▲ +"}${Math.abs(delta).toFixed(2)}</span> ` +
      (step > 1 ? `<i>here it moves ${moved} of ${count(made.length, "number")}${blind}</i>` : ""));
    const [x, y, w] = this.steps[step].rest.subarray(5 * this.cells.indexOf(cell));
    Object.assign(this.call, { textContent: `${written(before)} → ${written(now)}`, className: `call ${way}`,
      hidden: false });
    const left = clamp(x + w / 2 - 60, 0, this.across - 120);
    this.call.style.transform = `translate(${left}px, ${Math.max(0, y - 26)}px)`;
    this.worth(); this.later(() => this.miniatures(), 40);
  }

  release() {
    if (!this.hold) return;
    this.hold = this.pointed = this.kin = null; this.call.hidden = true;
    this.tell(); this.soon(); this.later(() => this.miniatures(), 40);
  }

  // Escape takes back what is held; else, and by the button, all numbers are as at first.
  undo(all = !this.hold) {
    if (!all) this.put(this.hold.cell, this.hold.before);
    this.release();
    if (all) {
      this.begin(); this.back.hidden = true;
    }
    this.compute(); this.worth();
    this.soon(); this.later(() => this.miniatures(), 40);
  }

  later(act, wait) { this.waiting ??= setTimeout(() => { this.waiting = null; act(); }, wait); }

  // ------------------------------------------------------------------------------ playhead

  show(p) {
    const before = this.step;
    this.p = clamp(p, TURN, LAST);
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
    if (this.p >= LAST) this.show(TURN);
    const to = Math.floor(this.p + 1e-6) + 1;
    this.playing(on ? "all" : "step");
    this.go(to, 1000 * SECONDS[to] * (to - this.p) / this.speed, () => {
      if (!on || to === LAST) return this.playing(null);
      this.next = setTimeout(() => this.play(true), PAUSE / this.speed);
    });
  }

  stop(running = null) {
    cancelAnimationFrame(this.motion); clearTimeout(this.next);
    this.motion = null; this.playing(running);
  }

  playing(which) {
    this.running = which;
    const n = this.p >= LAST ? 1 : Math.floor(this.p + 1e-6) + 1;
    this.one.textContent = which === "step" ? "❚❚ Stop" : `▶ Step ${which ? this.step : n}`;
    this.all.textContent = which === "all" ? "❚❚ Stop" : "▶▶ All";
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
    else if (this.p < LAST) this.play();
  }

  // --------------------------------------------------------------------------------- page

  page(el) {
    const { data } = this;
    this.root = document.createElement("div");
    this.root.innerHTML = `<div class="top">
      <div class="title" aria-live="polite"></div><div class="choices"></div></div>
      <div class="desk"><pre class="code" tabindex="0"></pre>
        <button class="back" hidden>Back to the start</button>
        <div class="knobs"></div></div>
      <div class="board" tabindex="0" role="application"
        aria-label="Numbers: arrow keys point at them, Tab goes to those that can be changed">
        <div class="field"><canvas></canvas>
        <div aria-hidden="true">${"<div class=layer></div>".repeat(2 * LAST)}</div>
        <div class="cells"></div><div class="call" hidden></div></div></div>
      <div class="card" aria-live="off"></div>
      <div class="foot"><div class="buttons"><button class="one"></button><button class="all"></button>
        <button class="pace"></button></div>
        <div class="strip" tabindex="0" role="slider" aria-label="Playhead: step"
          aria-valuemin="1" aria-valuemax="11">
        <canvas></canvas><div class="tiles">${data.steps.map(({ name }, k) =>
    `<div class="tile">${k + 1} <span>${name}</span></div>`).join("")}</div>
        <div class="handle"></div></div></div>`;
    const names = "title choices code back knobs board field card one all pace strip handle call".split(" ");
    for (const name of names) this[name] = this.root.querySelector(`.${name}`);
    this.over = this.root.querySelector(".cells");
    this.tiles = [...this.root.querySelectorAll(".tile")];
    this.canvas = this.root.querySelector("canvas");
    this.pen = this.canvas.getContext("2d", { alpha: false });
    this.small = this.strip.querySelector("canvas").getContext("2d");
    const layers = [...this.root.querySelectorAll(".layer")];
    this.layers = [null, ...data.steps.map((_, k) => layers.slice(2 * k, 2 * k + 2))];
    this.now = new Float32Array(5);
    const said = { role: "group",
      "aria-label": "The stage: eleven steps of multi-head attention, one after the other",
      class: "stage", "data-stage": "", "data-lm-suppress-shortcuts": true }; // keys are none of JupyterLab's
    for (const [name, value] of Object.entries(said)) this.root.setAttribute(name, value);
    el.append(this.root);
    this.listen();
  }

  // The colours and fonts of the page, as a canvas needs them: mixed, and without variables.
  look() {
    const style = getComputedStyle(this.root), { pen } = this;
    const colour = (name) => {
      pen.fillStyle = name[0] === "-" ? style.getPropertyValue(name).trim() : name;
      const hex = pen.fillStyle[0] === "#" && [1, 3, 5].map((k) => parseInt(pen.fillStyle.slice(k, k + 2),
        16));
      return hex || pen.fillStyle.match(/[\d.]+/g).map(Number);
    };
    const paper = colour("--paper");
    const mix = (one, other, s) =>
      `rgb(${[0, 1, 2].map((z) => Math.round(one[z] + (other[z] - one[z]) * s))})`;
    const ramp = (name, most) => range(21, (k) => mix(paper, colour(name), 0.05 + (most - 0.05) * k / 20));
    for (const name of ["paper", "ink", "soft", "line", "accent", "up", "down", "band"]) {
      this[name] = mix(paper, colour(`--${name}`), colour(`--${name}`)[3] ?? 1);
    }
    this.dark = mix(paper, colour("--ink"), 0.78); this.heads = this.data.colours;
    this.tints = { up: ramp("--up", 0.5), down: ramp("--down", 0.5), [-1]: ramp("--grey", 0.55) };
    this.strong = { [-1]: ramp("--grey", 1) }; // where no number has to be read through it
    this.heads.forEach((each, h) => [this.tints[h], this.strong[h]] = [ramp(each, 0.5), ramp(each, 1)]);
    this.family = style.getPropertyValue("--digits");
    const words = `12px ${this.family}`, code = `11.5px ${style.getPropertyValue("--code")}`;
    this.fonts = { words, hint: words, bold: `bold 13px ${this.family}`, code, sign: `22px ${this.family}` };
    this.widths = new Map();
    pen.font = `100px ${this.family}`;
    this.em = pen.measureText("−0.00").width / 100;
    this.shortEm = pen.measureText("−.00").width / 100;
    this.least = Math.ceil(LEAST_FONT * this.shortEm * 0.9 + 1.5);
  }

  resize() {
    this.dots = window.devicePixelRatio || 1;
    this.across = Math.max(...this.steps.slice(1).map((each) => each.need));
    const sizes = [[this.canvas, this.across, this.high], [this.small.canvas, this.strip.clientWidth, STRIP]];
    for (const [canvas, width, height] of sizes) {
      Object.assign(canvas, { width: width * this.dots, height: height * this.dots });
      canvas.style.cssText = `width:${width}px;height:${height}px`;
    }
    this.board.style.height = `${this.high}px`;
    this.later(() => this.miniatures(), 0);
  }

  // The words of every step, in two layers: of what comes in, and of what has come out.
  label() {
    for (let n = 1; n <= LAST; n++) {
      const html = ["", ""];
      for (const { text, x, y, w, mid, end, head, out, hint } of this.steps[n].labels) {
        const kind = ["label", mid && "mid", end && "end", hint && "hint",
          head >= 0 && "head"].filter(Boolean).join(" ");
        const line = (parts) => parts.map(([each, font]) => `<span class="${font}">${each}</span>`).join("")
          || "&nbsp;";
        const at = `left:${x.toFixed(1)}px;top:${y.toFixed(1)}px;width:${Math.ceil(w)}px`;
        html[out ? 1 : 0] += `<div class="${kind}" style="${at}` +
          `;--head:${this.heads[head]}">${text.map((parts) => `<div>${line(parts)}</div>`).join("")}</div>`;
      }
      this.layers[n].forEach((layer, z) => { layer.innerHTML = html[z]; });
    }
  }

  // Lay an element over each number of the step, where it comes to rest.
  cover() {
    const n = this.step, { rest, shown, need } = this.steps[n], seen = new Set(shown), stops = new Set();
    this.over.classList.toggle("moving", this.p !== n && Math.abs(this.p - n + 1 - TURN) > 1e-6);
    if (this.covered === n || this.scrubbing) return;
    this.covered = n;
    this.field.style.width = `${need}px`;
    this.board.classList.toggle("scrolled", need > this.room + 1);
    for (const k of shown) {
      const cell = this.cells[k], [x, y, w, h] = rest.subarray(5 * k, 5 * k + 4);
      if (cell.ghost) continue;
      const each = this.elements[k] ??= this.over.appendChild(Object.assign(document.createElement("i"),
        { k }));
      each.style.cssText = `left:${x}px;top:${y}px;width:${w}px;height:${h}px`;
      each.dataset.cell = [this.tensor(cell, n), ...this.indices(cell, n)].join(".");
      if (!this.movable(cell, n)) continue;
      each.setAttribute("role", "slider");
      each.tabIndex = stops.has(cell.kind) ? -1 : 0; // one stop a tensor, arrow keys go on from there
      stops.add(cell.kind);
      each.setAttribute("aria-label", `${this.called(cell, n)}, step ${n}`);
    }
    this.elements.forEach((each, k) => { each.hidden = !seen.has(k); });
    this.worth();
  }

  // Write the values of all numbers into their elements.
  worth() {
    for (const k of this.steps[this.step].shown) {
      const each = this.elements[k], cell = this.cells[k], value = each && this.value(cell, this.step);
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
    const { scene, sizes } = this, names = { heads: "num_heads", dOut: "d_out", tokens: "num_tokens" };
    const legal = { heads: scene.heads[sizes.dOut], dOut: Object.keys(scene.heads).map(Number),
      tokens: range(scene.most, (i) => i + 1) };
    if (!this.knobs.children.length) {
      const scenes = Object.keys(this.data.scenes);
      if (scenes[1]) this.choices.innerHTML = scenes.map((name) => `<button>${name}</button>`).join("");
      this.knobs.innerHTML = Object.entries(names).map(([key, name]) => `<label><span>${name}</span>
        <input type="range" min="0" aria-label="${name}" data-size="${key}"
        ><output></output></label>`).join("");
    }
    for (const input of this.knobs.querySelectorAll("input")) {
      const key = input.dataset.size, values = legal[key];
      Object.assign(input, { values, max: values.length - 1, value: values.indexOf(sizes[key]),
        disabled: !values[1] });
      input.setAttribute("aria-valuetext", sizes[key]);
      input.nextSibling.textContent = sizes[key];
    }
    for (const button of this.choices.children) button.setAttribute("aria-pressed",
      button.textContent === this.name);
  }

  listen() {
    const { board, strip } = this, cellOf = (event) => this.cells[event.target.k] ?? null;
    const on = (part, acts) => Object.entries(acts).forEach(([name, act]) => part.addEventListener(name,
      act));
    on(board, {
      pointerover: (event) => this.held || this.point(cellOf(event)),
      pointerleave: () => this.held || this.point(null),
      pointerdown: (event) => {
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
      },
      pointermove: (event) => this.held?.id === event.pointerId
        && this.move(this.held.value + (this.held.y - event.clientY) * PER_PIXEL),
      lostpointercapture: () => {
        this.held = null; this.release();
      },
      focusin: (event) => {
        this.card.ariaLive = event.target.matches(":focus-visible") ? "polite" : "off";
        if (event.target.matches(":focus-visible")) this.point(cellOf(event));
      },
      focusout: () => {
        clearTimeout(this.letting);
        if (!this.held) this.release();
        this.point(null);
      },
    });
    on(this.root, {
      keydown: (event) => {
        if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
        event.stopPropagation();
        if (this.key(event)) event.preventDefault();
      },
      input: ({ target }) => this.set({ [target.dataset.size]: target.values[target.value] }),
      click: ({ target }) => {
        if (target === this.one || target === this.all) this.running ? this.stop()
          : this.play(target === this.all);
        else if (target === this.pace) this.paced({ 1: 2, 2: 0.5, 0.5: 1 }[this.speed]);
        else if (target === this.back) this.undo(true);
        else if (target.parentNode === this.choices) this.choose(target.textContent);
      },
    });
    on(strip, {
      pointerdown: (event) => {
        if (event.button) return;
        strip.setPointerCapture(event.pointerId);
        this.scrubbing = { x: event.clientX, moved: false };
      },
      pointermove: (event) => {
        if (!this.scrubbing) return;
        if (!this.scrubbing.moved && Math.abs(event.clientX - this.scrubbing.x) < 4) return;
        if (!this.scrubbing.moved) this.stop();
        this.scrubbing.moved = true; this.show(this.reached(event));
      },
      lostpointercapture: (event) => {
        const { moved } = this.scrubbing ?? {}, to = clamp(Math.round(this.reached(event)), 1, LAST);
        this.scrubbing = null; this.stop();
        if (moved) this.go(to, 220);
        else this.go(to - 1 + TURN, 260, () => this.play());
      },
    });
    this.paced(1);
    const anew = () => {
      if (!this.steps || !board.clientWidth) return;
      this.look(); this.arrange();
      this.covered = null; this.cover(); this.soon();
    };
    const room = new ResizeObserver(() => board.clientWidth !== this.room && anew());
    room.observe(this.root);
    // The ink changes with the theme, however it is changed, and once its style sheet is there.
    this.root.addEventListener("transitionend", (event) => event.target === this.root && anew());
    this.leave = () => { this.stop(); room.disconnect(); };
  }

  reached(event) {
    const { left, width } = this.strip.getBoundingClientRect();
    return (event.clientX - left) / width * LAST + 0.5;
  }

  paced(speed) {
    this.speed = speed;
    this.pace.textContent = `speed ${{ 0.5: "½", 1: "1", 2: "2" }[speed]}`;
  }

  // What a key does here; whether it did anything.
  key({ key, shiftKey, target }) {
    const cell = this.cells[target.k], by = { ArrowUp: 1, ArrowDown: -1 }[key],
      aside = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (target.matches("input, button")) return false;
    if (key === "Escape") this.undo();
    else if (key === " ") this.running ? this.stop() : this.play();
    else if (cell && by) {
      this.take(cell);
      this.move(this.value(cell, this.step) + by * PER_KEY * (shiftKey ? 5 : 1));
      clearTimeout(this.letting);
      this.letting = setTimeout(() => { this.release(); this.point(cell); }, 1500);
    } else if (cell && aside) {
      const next = this.elements[target.k + aside];
      if (next?.hidden !== false || this.cells[next.k].kind !== cell.kind) return true;
      [target.tabIndex, next.tabIndex] = [-1, 0];
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
    const { rest, shown } = this.steps[this.step], at = (k) => rest.subarray(5 * k, 5 * k + 2);
    const [x, y] = this.pointed ? at(this.cells.indexOf(this.pointed)) : [0, 0];
    const far = (k) => {
      const [right, down] = [at(k)[0] - x, at(k)[1] - y], along = right * dx + down * dy;
      return along > 3 ? along + 3 * Math.abs(right * dy + down * dx) : Infinity;
    };
    const best = shown.reduce((one, other) => (far(other) < far(one) ? other : one));
    this.card.ariaLive = "polite";
    if (far(best) < Infinity) this.point(this.cells[best]);
  }
}

const ASK = ["",
  () => "Which sizes does the code read from x, and which were chosen before?",
  () => "One token plays three parts. How many numbers of x make one number of queries?",
  ({ sizes }) =>
    `How does a row of ${sizes.dOut} become ${count(sizes.heads, "head")} without changing a number?`,
  () => "Each head wants its tokens side by side. Which two axes have to swap?",
  () => "How well does what a token looks for fit what each token shows?",
  () => "Which scores look into the future?",
  () => "How does a row of scores become shares of one whole?",
  () => "What does a token take home from itself and those before it?",
  () => "The heads are done. Whose numbers should lie side by side now?",
  ({ sizes, headDim }) =>
    `How do ${count(sizes.heads, "head")} of ${headDim} become one row of ${sizes.dOut}?`,
  () => "So far no head knows of another. Where do they meet?"];

const FOUND = ["",
  ({ sizes: { dIn, dOut, heads, tokens }, headDim }) =>
    `Read: b = 1, num_tokens = ${tokens}, d_in = ${dIn}. Chosen: head_dim = ${dOut} / ${heads} = ${headDim}.`,
  ({ sizes }) => `All ${sizes.dIn} numbers of one row of x make each number of queries. No other row does.`,
  ({ sizes, headDim }) =>
    `Features 0 to ${headDim - 1} are head 0${sizes.heads > 1 ? `, the next ${headDim} head 1` : ""}. ` +
    "Not one number changed.",
  ({ sizes, headDim }) =>
    `Axes 1 and 2 have swapped: each head is a matrix of its own, ${sizes.tokens} × ${headDim}.`,
  ({ sizes: { heads, tokens } }) =>
    `Every query met every key in its own head: ${heads} × ${tokens} × ${tokens} = ` +
    `${heads * tokens ** 2} scores.`,
  ({ sizes: { tokens } }) =>
    `All above the diagonal: ${tokens * (tokens - 1) / 2} of ${tokens ** 2} in each head. They become −∞.`,
  (it) =>
    `Every row fills up to exactly 1; −∞ gets nothing. ${it.token(0).replace("t", "T")} has only itself.`,
  (it) => mixture(it),
  () => "Axes 1 and 2 have swapped back: each token's heads lie together again.",
  ({ headDim }) => `They click together: features 0 to ${headDim - 1} come from head 0. No number changed.`,
  ({ sizes }) => `Here: each number of out mixes all ${sizes.dOut} of its token's context, of all heads.`];

// What the last token takes from whom, in the head where it takes most from another.
function mixture({ sizes: { tokens, heads }, tensors, token, scene }) {
  const last = tokens - 1, name = (i) => token.call({ scene }, i);
  if (!last) return "One token alone: its context is its own row of values.";
  const all = range(heads, (h) => range(last, (j) => [tensors.weights[(h * tokens + last) * tokens + j], h,
    j])).flat();
  const [share, head, from] = all.reduce((one, other) => (other[0] > one[0] ? other : one));
  const part = `${Math.round(100 * share)} % from the values of ${name(from)}`;
  return `A mixture: in head ${head}, ${name(last)} takes ${part}.`;
}

// Put the stage into an element of any page: data as eleven_steps.sliders.stage hands it over.
export function mount(el, data, options = {}) { return new Stage(el, data, options); }

export default {
  render({ model, el }) {
    const stage = mount(el, model.get("data"));
    return () => stage.leave();
  },
};

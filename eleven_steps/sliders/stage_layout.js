// Where the stage's cells and words lie at each step. A step is a tree: blocks of cells and lines of
// words, in grids whose tracks fit what is in them; its cells are as large as the room allows.

const LEAST_FONT = 11, LEAST_HIGH = 17.5, LARGEST = 76, HEAT = 6; // pixels; HEAT: cells of colour only
const LINE = 16, TALL = 387, NARROW = 1000; // pixels; NARROW: width and height together

const grid = (rows, gapX = 0, gapY = 0) => ({ rows, gapX, gapY });
const row = (kids, gap = 0) => grid([kids], gap);
const col = (kids, gap = 0) => grid(kids.map((kid) => [kid]), 0, gap);
const inLines = (kids, lines, gapX, gapY) => {
  const most = Math.ceil(kids.length / lines);
  return grid(range(Math.ceil(kids.length / most), (k) => kids.slice(k * most, (k + 1) * most)), gapX, gapY);
};

// How large a node gets where cells have these sizes.
function measure(node, sizes) {
  if (node.form) {
    node.cell = [sizes[node.wide] ?? node.wide, sizes[node.high] ?? node.high];
    node.inner = [node.form.columns * node.cell[0], node.form.rows * (node.cell[1] + node.between)];
    node.w = node.left + Math.max(node.inner[0], node.least);
    node.h = node.top + node.inner[1] + node.bottom;
  } else if (node.rows) {
    node.tracks = [];
    node.lines = node.rows.map((kids) => Math.max(0, ...kids.map((kid, c) => {
      if (kid) measure(kid, sizes);
      node.tracks[c] = Math.max(node.tracks[c] ?? 0, kid?.w ?? 0);
      return kid?.h ?? 0;
    })));
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
      if (kid) place(kid, left, top + (kid.low ? spare : spare / 2), leaf);
      left += node.tracks[c] + node.gapX;
    });
    top += node.lines[r] + node.gapY;
  });
}

// The nodes of a stage's steps, in the sizes that it has now.
class Plan {
  constructor(it) {
    Object.assign(this, it.sizes);
    this.it = it; this.dim = it.headDim; this.narrow = it.narrow; this.colours = it.wide;
    this.names = range(this.tokens, (i) => it.word(i));
  }

  // Lines of words, each of parts [text, font].
  words(lines, more = {}) {
    const wide = lines.map((line) => sum(line.map(([text, font]) => this.it.width(text, font))));
    return { text: lines, w: Math.max(...wide) + (more.head >= 0 ? 16 : 0), h: LINE * lines.length, ...more };
  }

  // What a step's tensor is called, and its shape in numbers and in letters.
  header(name, step, more = {}) {
    const { shape, letters } = this.it.shape(step);
    return this.words([[[`${name} `, "bold"], [shape, "code"]], [[letters, "code"]]], more);
  }

  hint() {
    const text = `drag a ${this.colours ? "strip" : "number"}, or ↑ ↓`;
    return this.words([[[this.it.own ? "" : text, "hint"]]]);
  }

  // A block of cells with names at its rows and columns, a title above and a foot below.
  block(kind, lies, b, wide, high, more = {}) {
    const { rows = [], columns = [], title = "", foot = "", between = 0 } = more;
    const width = (text, font) => (text ? this.it.width(text, font) : 0);
    return { kind, form: this.it.forms[lies], b, wide, high, ...more, names: rows, columns, title, foot,
      between, rows: null, least: title ? width(title, "bold") + 18 : 0,
      left: Math.max(0, ...rows.map((text) => this.it.width(text) + 6)),
      top: (title ? 20 : 0) + (columns.length ? LINE : 0), bottom: foot ? LINE + 2 : 0 };
  }

  // A tensor as its axes lie: one block, one a token, or one a head with the head's colour.
  tensor(kind, lies, size, lines, more) {
    const { blocks } = this.it.forms[lies], most = Math.ceil(blocks / lines);
    const token = lies === "token", head = lies === "head" || lies === "square", { titles = true } = more;
    const each = (b) => this.block(kind, lies, b, this.wide(size, lies), `h${size}`, { ...more,
      card: head ? b : -1,
      rows: token || more.ghost || lies === "matrix" || b % most ? [] : this.names,
      columns: lies === "square" && more.out ? this.names : [],
      foot: token && titles ? this.it.scene.words?.[b] ?? `token ${b}` : "",
      title: head && titles ? `head ${b}` : "" });
    return inLines(range(blocks, each), lines, head ? 14 : 8, 8);
  }

  // Features of a scene too wide for numbers are colours, a few pixels wide.
  wide(size, lies) {
    return !this.colours || ["square", "turned"].includes(lies) ? `w${size}` : size === "i" ? 2.5 : 4;
  }

  // x as it stays at hand, with the values while they wait, and whom a word reads.
  dock(step) {
    const wide = this.colours ? 4 : this.narrow ? 30 : 35;
    const x = this.block("x", "x", 0, wide, this.colours ? 18 : 21, { rows: this.names });
    const parts = [col([this.header("x", 1), x, this.hint()], 4)];
    if (step > 4 && step < 8) {
      const waiting = this.block("values", "row", 0, this.colours ? 2.5 : 7, 6);
      const until = this.narrow ? "values wait" : "values wait for step 8";
      parts.push(col([this.words([[[until, "words"]]]), waiting], 4));
    }
    if (this.it.scene.words && (step === 7 || step === 8)) {
      const each = Math.max(40, ...this.names.map((word) => this.it.width(word) + 10));
      parts.push({ arcs: each, w: each * this.tokens, h: 132, out: true });
    }
    return this.narrow ? inLines(parts, parts.at(-1).arcs ? parts.length : 1, 14, 8) : col(parts, 18);
  }

  // The tree of a step; what comes out lies beside what comes in, or below it.
  tree(step, beside, lines) {
    if (step === 1) return this.opening(beside);
    return FACTORS[step] && step > 2 ? this.product(step, beside, lines) : this.pair(step, beside, lines);
  }

  opening(beside) {
    const x = this.block("x", "x", 0, this.colours ? Math.min(12, this.it.room / 60) : "wo", "ho",
      { rows: this.it.scene.words ? this.names : this.names.map((i) => `token ${i}`) });
    const facts = [["b = 1", "sequences: one here"], [`num_tokens = ${this.tokens}`, "rows of x"],
      [`d_in = ${this.dIn}`, "columns of x"], [`d_out = ${this.dOut}`, "chosen when the module was built"],
      [`num_heads = ${this.heads}`, "chosen: it must divide d_out"],
      [`head_dim = ${this.dim}`, `d_out / num_heads = ${this.dOut} / ${this.heads}`]];
    const table = grid(facts.map(([fact, why]) => [this.words([[[fact, "code"]]], { out: true }),
      this.words([[[why, "words"]]], { out: true })]), 16, 9);
    const left = col([this.header("x", 1), x, this.hint()], 6);
    return beside ? row([left, table], 44) : col([left, table], 44);
  }

  // What comes in and what comes out, for each tensor; into step 2 come the matrices.
  pair(step, beside, lines) {
    const matrix = step === 2, [made, to] = LEFT[step];
    const [before, from] = matrix ? [MATRICES, "matrix"] : LEFT[step - 1];
    const many = made.length > 1, several = beside ? 1 : lines, cells = matrix && !this.colours;
    const shape = matrix ? `(${this.dIn}, ${this.dOut})` : this.it.shape(step - 1).shape;
    const rows = made.map((name, k) => {
      const arrow = [cells && before[k], beside || many ? "→" : "↓", many && name].filter(Boolean)
        .map((text) => [[text, text.length > 1 ? "words" : "sign"]]);
      return [matrix && !cells ? this.words([[[before[k], "bold"]], [[`${shape}, learned`, "words"]]])
        : this.tensor(kindOf(before[k]), from, matrix ? "m" : "i", several,
          { ghost: !matrix, titles: !many || k === (from === "token" ? 2 : 0) }),
      this.words(arrow, { out: true, align: "center" }),
      this.tensor(kindOf(name), to, "o", lines, { out: true, between: step === 7 ? 11 : 0,
        titles: !many || k === (to === "token" ? 2 : 0) })];
    });
    const drag = [cells && !this.it.own ? " drag, too" : "", "hint"];
    const first = many ? this.words([[[before.join(", "), "bold"]], [[shape, "code"], drag]])
      : this.header(before[0], step - 1);
    const last = this.header(made.join(", "), step, { out: true });
    if (beside) return grid([[first, null, last], ...rows], 14, many ? 5 : 6);
    return col(many ? [last, grid(rows, 8, 6)] : [first, ...rows[0].slice(0, 2), last, rows[0][2]], 6);
  }

  // In each head a row of one tensor meets a column of another: one lies at the left, one above.
  product(step, beside, lines) {
    const [[first, a], [second, b]] = FACTORS[step], [[made], to] = LEFT[step], byHead = to !== "row";
    const out = { out: true }, shape = `(${this.dOut}, ${this.dOut})`;
    const title = byHead ? second.replace("keys", "keysᵀ") : `out_proj ${shape}, and a bias`;
    const each = (h) => {
      const head = byHead ? h : -1, names = { rows: this.names };
      const above = this.colours && !byHead ? this.words([[[title, "words"]]])
        : this.block(second, b, h, this.wide("o", b), this.colours && b === "turned" ? 4 : "hi",
          { title, plain: true, columns: b === "turned" ? this.names : [], ...(step === 8 ? names : {}) });
      const left = this.block(first, a, h, this.wide("i", a), "ho", names);
      const right = this.block(kindOf(made), to, h, this.wide("o", to), "ho",
        { ...out, card: head, foot: made });
      right.left = above.left ?? 0;
      left.bottom = right.bottom;
      const corner = this.words([[[byHead ? `head ${h}` : "", "bold"]], [[nameOf(first, step), "words"]]],
        { low: true, head });
      return grid([[corner, above], [left, right]], 8, 8);
    };
    const coming = LEFT[step - 1][0].slice(0, 2).join(", "), blocks = range(this.it.forms[to].blocks, each);
    const heads = [this.header(coming, step - 1), this.header(made, step, out)];
    return col([beside ? row(heads, 40) : col(heads, 2), inLines(blocks, lines, 26, 12)], 10);
  }
}

// The tree of a step in the largest cells that fit, with numbers in what comes in or, only if need
// be, its colours alone; beside or below each other, in few lines; null if nothing fits.
function fit(plan, step, width, height) {
  const { it, colours } = plan, named = step > 4 && step < 9 && it.scene.words || []; // over columns
  const least = Math.max(it.least, ...named.map((word) => it.width(word) + 2));
  const flows = range(it.narrow ? 12 : 6, (k) => [1 + (k >> 1), k % 2 === 0]); // lines, and whether beside
  const trees = flows.map(([lines, beside]) => plan.tree(step, beside, lines));
  const products = [[1, 1], [0, 1], [1, 0], [0, 0]], pairs = [[1, 1], [0, 0]];
  for (const [across, down] of FACTORS[step] && step > 2 ? products : pairs) {
    const find = (w) => trees.find((tree) => {
      const ho = Math.max(LEAST_HIGH, 0.64 * w), heat = colours ? 5 : HEAT;
      const hi = down ? Math.max(LEAST_HIGH, 0.8 * ho) : heat;
      measure(tree, { wo: w, ho, wi: across ? Math.max(least, 0.8 * w) : HEAT, hi,
        wm: across ? it.least : 2 * HEAT, hm: down ? LEAST_HIGH : HEAT });
      return tree.w <= width && tree.h <= height;
    });
    if (!find(least)) continue;
    let w = least;
    for (let by = (LARGEST - least) / 2; by > 1; by /= 2) if (find(w + by)) w += by;
    return find(w);
  }
  return null;
}

// Lay out every step for the room there is: the places of its cells when it begins to happen and
// when it is over, its words and frames, and how wide and high all of that is.
function arrange(it, before) {
  const plan = new Plan(it), { room, narrow } = it, tall = narrow ? Math.max(TALL, NARROW - room) : TALL;
  const plans = range(LAST, (k) => {
    const dock = k > 0 && plan.dock(k + 1);
    if (dock) measure(dock, {});
    const aside = dock && !narrow ? dock.w + 24 : 0, above = dock && narrow ? dock.h + 18 : 0;
    let tree = null; // where nothing fits it has to be scrolled
    for (let more = 1; !tree; more *= 1.25) { // narrow, it grows downwards as long as that helps
      const [wider, higher] = narrow ? [Math.max(1, more / 4), more] : [more, Math.max(1, more / 2)];
      tree = fit(plan, k + 1, (room - aside - 10) * wider, tall * higher - above - 4);
    }
    return { tree, dock, aside, above, need: Math.max(room, aside + tree.w + 10, (dock.w ?? 0) + 4) };
  });
  const need = Math.max(...plans.map(({ above, tree, dock }) => Math.max(above + tree.h, dock.h ?? 0) + 10));
  const high = narrow ? Math.max(before, need) : tall; // it grows, and never jumps back
  const steps = plans.map(({ dock, tree, aside, above, need: wide }) => {
    const laid = new Laid(it, wide);
    if (dock) place(dock, 2, narrow ? 2 : Math.max(2, Math.min(60, (high - dock.h) / 2)), laid.leaf);
    const spare = high - above - tree.h;
    place(tree, aside + Math.max(4, (Math.min(wide, room) - aside - tree.w) / 2),
      above + Math.max(2, narrow ? Math.min(spare / 2, 20) : spare / 2), laid.leaf);
    return laid;
  });
  steps.unshift(null);
  steps.slice(1).forEach((laid, k) => laid.begin(k + 1, steps[k]?.rest));
  return { steps, high, across: Math.max(...plans.map((each) => each.need)) };
}

// One step laid out. Places are x, y, width, height by cell; what is not there has no width.
class Laid {
  constructor(it, need) {
    this.it = it; this.need = need;
    this.rest = new Float32Array(4 * it.list.length);
    this.start = new Float32Array(4 * it.list.length);
    Object.assign(this, { ghosts: [], index: [], labels: [], slots: [], bars: [], arcs: null });
    this.leaf = (node, x, y) => {
      if (node.arcs) this.arcs = { ...node, x, y };
      else if (node.text) {
        node.text.forEach((parts, line) =>
          this.say(parts, x, y + line * LINE, node.w, { ...node, head: line ? undefined : node.head }));
      } else this.block(node, x + node.left, y + node.top, x, y);
    };
  }

  // A line of words, from x or aligned in a width; with a head its colour stands before it.
  say(parts, x, y, w, { align, out, head }) {
    const indent = head >= 0 ? 16 : 0;
    const wide = indent + sum(parts.map(([text, font]) => this.it.width(text, font)));
    const aside = { right: w - wide, center: (w - wide) / 2 }[align] ?? 0;
    if (wide > indent) this.labels.push({ parts, x: x + aside, y, wide, indent, out, head });
  }

  block(node, left, top, x, y) {
    const { form, kind, b, ghost, card, out, cell: [w, h], inner: [wide, high], between } = node;
    for (let r = 0; r < form.rows; r++) {
      for (let c = 0; c < form.columns; c++) {
        const k = this.it.first[kind] + form.at(b, r, c);
        (ghost ? this.start : this.rest).set([left + c * w, top + r * (h + between), w, h], 4 * k);
        if (ghost) this.ghosts.push(k);
        else this.index[k] = form.index(b, r, c);
      }
    }
    if (card !== undefined) {
      this.slots.push({ x: left - 2, y: top - 2, w: wide + 4, h: high + 4, card, out });
    }
    if (between) this.bars.push({ x: left, y: top + h + 1.5, w: wide, each: h + between });
    const say = (text, tx, ty, wide, align) => this.say([[text, "words"]], tx, ty, wide, { align, out });
    if (h >= 13) {
      const down = (r) => top + r * (h + between) + (h - LINE) / 2;
      node.names.forEach((name, r) => say(name, x, down(r), node.left - 6, "right"));
    }
    if (node.columns.every((name) => this.it.width(name) <= w)) {
      node.columns.forEach((name, c) => say(name, left + c * w, top - 18, w, "center"));
    }
    if (this.it.width(node.foot) <= wide + 4) say(node.foot, left, top + high + 4, wide, "center");
    if (node.plain) say(node.title, left, y);
    else this.say([[node.title, "bold"]], left, y, node.least, { out, head: card });
  }

  // Where cells are when the step begins to happen: those that travel where their ghosts will stay,
  // operands where they will be, and nothing of what it makes.
  begin(step, before) {
    const made = FACTORS[step] ? LEFT[step][0].map(kindOf) : [], { rest, start } = this;
    const seen = (k) => (places) => places?.[4 * k + 2];
    for (const { kind, k } of this.it.list) {
      if (!seen(k)(start) && !made.includes(kind)) start.set(this.at(k), 4 * k);
    }
    this.active = this.it.list.filter(({ k }) => [rest, start, before].some(seen(k)));
    this.shown = this.active.filter(({ k }) => seen(k)(rest));
  }

  at(k, places = this.rest) { return places.subarray(4 * k, 4 * k + 4); }
}

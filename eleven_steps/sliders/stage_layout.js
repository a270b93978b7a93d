// Where the stage's cells and words lie at each step. A step is a tree: blocks of cells and lines of
// words, in grids whose tracks fit what is in them; its cells are as large as the room allows.

const LEAST_FONT = 11, LEAST_HIGH = 17, LARGEST = 96; // pixels
const LINE = 16, TALL = 364, NARROW = 840; // pixels; NARROW: width and height together

// Whether what comes in shows digits across and down, and how large its cells are where it does not.
const INPUTS = [[1, 1], [0, 1, 6], [1, 0, 6], [0, 0, 6], [0, 0, 3]];

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
    node.inner = [node.form.columns * node.cell[0], node.form.rows * node.cell[1]];
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

  head(h) { return this.heads > 1 ? `head ${h}` : ""; } // where there are others

  // A block of cells with names at its rows and columns, a title above and a foot below.
  block(kind, lies, b, wide, high, more = {}) {
    const { names = [], columns = [], title = "", foot = "" } = more;
    return { kind, form: this.it.forms[lies], b, wide, high, ...more, names, columns, title, foot,
      least: title ? this.it.width(title, "bold") + 18 : 0,
      left: Math.max(0, ...names.map((text) => this.it.width(text) + 6)),
      top: (title ? 20 : 0) + (columns.length ? LINE : 0), bottom: foot ? LINE + 2 : 0 };
  }

  // A tensor as its axes lie: one block, one a token, or one a head with the head's colour.
  tensor(kind, lies, size, lines, more) {
    const token = lies === "token", head = lies === "head" || lies === "square", { titles = true } = more;
    const list = head ? this.it.seen : range(this.it.forms[lies].blocks), most = Math.ceil(list.length / lines);
    const ofBlock = (b) => this.block(kind, lies, b, this.wide(size, lies), `h${size}`, { ...more,
      card: head ? b : -1,
      names: token || more.ghost || ["matrix", "own"].includes(lies) || b % most ? [] : this.names,
      columns: lies === "square" && (more.out || more.stays) ? this.names : [],
      foot: token && titles ? this.it.token(b) : "",
      title: head && titles ? this.head(b) : "" });
    return inLines(list.map(ofBlock), lines, head ? 14 : 6, 8);
  }

  // Features of a scene too wide for numbers are colours, a few pixels wide.
  wide(size, lies) {
    return !this.colours || ["square", "turned"].includes(lies) ? `w${size}` : size === "i" ? 2.5 : 4;
  }

  // x as it stays at hand, with the values while they wait.
  dock(step) {
    const wide = this.colours ? 2.5 : this.narrow ? 30 : 35, { names } = this;
    const x = this.block("x", "x", 0, wide, this.colours ? 18 : 21, { names });
    const parts = [col([this.header("x", 1), x], 4)];
    if (step > 4 && step < 8 && !this.narrow && !this.it.data.large) {
      const index = (b, i, f) => [0, Math.floor(f / this.dim), i, f % this.dim]; // as they are by now
      const waiting = this.block("values", "row", 0, this.colours ? 2.5 : 7, 6, { index });
      parts.push(col([this.words([[["values wait for step 8", "words"]]]), waiting], 4));
    }
    return this.narrow ? inLines(parts, 1, 14, 8) : col(parts, 18);
  }

  // Whether rows meet columns at a step, so that one lies at the left and one above.
  meets(step) { return FACTORS[step] && step > 2; }

  // The trees that a step may have: what comes out beside what comes in, or below it; in some lines.
  trees(step) {
    const lies = [step, step - 1 || 1].map((n) => this.it.forms[this.it.lies(n)].blocks);
    const tree = step === 1 ? "opening" : this.meets(step) ? "product" : "pair";
    return range(2 * Math.max(...lies), (k) => this[tree](step, k % 2 === 0, 1 + (k >> 1)));
  }

  opening() {
    const x = this.block("x", "x", 0, this.colours ? Math.min(12, this.it.room / 60) : "wo", "ho",
      { names: range(this.tokens, (i) => this.it.token(i)) });
    return col([this.header("x", 1), x], 6);
  }

  // What comes in and what comes out, for each tensor; into step 2 come the matrices.
  pair(step, beside, lines) {
    const matrix = step === 2, [made] = LEFT[step], to = this.it.lies(step);
    const [before, from] = matrix ? [MATRICES, "matrix"] : LEFT[step - 1];
    const many = made.length > 1, cells = matrix && !this.colours, phone = this.it.room < 480 && !matrix;
    const shape = matrix ? `(${this.dIn}, ${this.dOut})` : this.it.shape(step - 1).shape;
    const titled = (k, lies) => ({ titles: !many || k === (lies === "token" ? 2 : 0) });
    const [had, has] = [from, to].map((lies) => this.it.forms[lies]); // above, as wide as what is below
    const across = Math.floor(Math.ceil(has.blocks / lines) * has.columns / had.columns / 0.8) || 1;
    const several = beside ? lines : Math.min(lines, Math.ceil(had.blocks / across));
    const rows = made.map((name, k) => {
      const arrow = [matrix && before[k], beside ? "→" : "↓", many && name].filter(Boolean)
        .map((text) => [[text, text.length > 1 ? "words" : "sign"]]);
      return [matrix && !cells ? null // learned, and too many to be seen
        : this.tensor(kindOf(before[k]), from, matrix ? "m" : "i", several,
          { ghost: !matrix, ...titled(k, from) }),
      this.words(phone ? [arrow.flat()] : arrow, { out: true, align: "center" }),
      this.tensor(kindOf(name), to, "o", lines,
        { out: true, ...titled(k, to) })];
    });
    const first = many ? this.words([[[before.join(", "), "bold"]], [[shape, "code"]]])
      : this.header(before[0], step - 1);
    const last = this.header(made.join(", "), step, { out: true });
    if (beside) return grid([[first, null, last], ...rows], 14, 8);
    if (!many) return col([first, ...rows[0].slice(0, 2), last, rows[0][2]], 6);
    return col([last, ...rows.flatMap(([from, arrow, to]) => [(phone ? col : row)([from, arrow], 8), to])], 6);
  }

  // In each head a row of one tensor meets a column of another: one lies at the left, one above.
  product(step, beside, lines) {
    const [[first, a], [second, b]] = FACTORS[step], [[made], to] = LEFT[step], byHead = to !== "row";
    const out = { out: true }, shape = `(${this.dOut}, ${this.dOut})`;
    const title = byHead ? second.replace("keys", "keysᵀ") : `out_proj ${shape}, and a bias`;
    const ofHead = (h) => {
      const head = byHead ? h : -1, names = { names: this.names };
      const above = this.colours && !byHead ? this.words([[[title, "words"]]])
        : this.block(second, b, h, this.wide("o", b), this.colours && b === "turned" ? 4 : "hi",
          { title, plain: true, columns: b === "turned" ? this.names : [], ...(step === 8 ? names : {}) });
      const left = this.block(first, a, h, this.wide("i", a), "ho", names);
      const right = this.block(kindOf(made), to, h, this.wide("o", to), "ho",
        { ...out, card: head, foot: lines === 1 ? made : "" });
      right.left = above.left ?? 0;
      left.bottom = right.bottom;
      const corner = this.words([[[byHead ? this.head(h) : "", "bold"]], [[nameOf(first, step), "words"]]],
        { low: true, head: this.heads > 1 ? head : -1 });
      return grid([[corner, above], [left, right]], 8, 8);
    };
    const coming = LEFT[step - 1][0].slice(0, 2).join(", "), blocks = (byHead ? this.it.seen : [0]).map(ofHead);
    const heads = [this.header(coming, step - 1), this.header(made, step, out)];
    return col([beside ? row(heads, 40) : col(heads, 2), inLines(blocks, lines, 26, 12)], 10);
  }
}

// The tree of a step in cells as large as they may be: what comes in with digits if that fits, beside
// or above what comes out, in few lines. Where nothing fits there is more room downwards.
function fit(plan, step, width, height) {
  const { it, colours } = plan, words = step > 4 && step < 9 ? plan.names : []; // over columns
  const least = Math.max(it.least, ...words.map((word) => it.width(word) + 2));
  const strips = colours && (step < 5 || step > 8); // features as strips, their words beside them
  const trees = plan.trees(step), inputs = INPUTS.filter(([a, b]) => a === b || plan.meets(step));
  const sized = (tree, w, [across, down, heat]) => {
    const ho = strips ? 13 + 0.64 * (w - least) : Math.max(LEAST_HIGH, 0.64 * w),
      wi = across ? Math.max(least, 0.8 * w) : heat;
    const hi = strips ? Math.max(11, 0.8 * ho) : down ? Math.max(LEAST_HIGH, 0.8 * ho) : colours ? 5 : heat;
    measure(tree,
      { wo: w, ho, wi, hi, wm: across ? it.least : 2 * heat, hm: down ? LEAST_HIGH : heat });
    return tree;
  };
  const room = Math.max(width, Math.min(...trees.map((tree) => sized(tree, least, INPUTS.at(-1)).w)));
  const wanted = Math.max(height, 200);
  for (let most = wanted; ; most *= 1.2) for (const input of inputs) {
    const fits = (tree, w) => sized(tree, w, input).w <= room && tree.h <= most;
    const small = trees.filter((tree) => fits(tree, least));
    if (most > wanted && small[0]) return sized(small.reduce((one, other) => (other.h < one.h ? other : one)), least,
      input);
    const sizes = small.map((tree) => {
      let w = least;
      for (let by = (LARGEST - least) / 2; by > 1; by /= 2) if (fits(tree, w + by)) w += by;
      return w;
    });
    const k = sizes.findIndex((w) => w > 0.85 * Math.max(...sizes));
    if (k >= 0) return sized(small[k], sizes[k], input);
  }
}

// A step beside, or below, x: the dock of x, and the tree in the room that this leaves.
function docked(plan, step, tall) {
  const { room, narrow } = plan.it, dock = step > 1 ? plan.dock(step) : col([]);
  measure(dock, {});
  const aside = !narrow && dock.w && dock.w + 24, above = narrow && dock.h && dock.h + 18;
  const tree = fit(plan, step, room - aside - 8, tall - above - 10);
  return { dock, aside, above, tree, need: above + tree.h + 10 };
}

// Lay out every step for the room there is: the places of its cells when it begins to happen and
// when it is over, its words and frames, and how wide and high all of that is.
function arrange(it) {
  const plan = new Plan(it), { room, narrow } = it, tall = narrow ? Math.max(TALL, NARROW - room) : TALL;
  const chosen = range(LAST, (k) => docked(plan, k + 1, tall - it.memory.room(k + 1))), steps = [null];
  const high = Math.max(narrow ? 0 : tall,
    ...chosen.map(({ need, dock }, k) => Math.max(need, dock.h) + it.memory.room(k + 1)));
  chosen.forEach(({ dock, aside, above, tree, need }, k) => { // all are as high as the highest: nothing below moves
    const wide = Math.max(room, aside + tree.w + 8, dock.w + 4), laid = new Laid(it, wide, high);
    const seen = Math.max(tall - it.memory.room(k + 1), need); // what fits into a window stands in its middle
    place(dock, 2, narrow ? 2 : Math.max(2, Math.min(60, (seen - dock.h) / 2)), laid.leaf);
    place(tree, aside + Math.max(4, (Math.min(wide, room) - aside - tree.w) / 2),
      above + Math.max(2, narrow ? 8 : (seen - above - tree.h) / 2), laid.leaf);
    laid.begin(k + 1, steps[k]);
    steps.push(laid);
  });
  return { steps, across: Math.max(...steps.slice(1).map(({ need }) => need)), high };
}

// One step laid out. Places are x, y, width, height by cell; what is not there has no width.
class Laid {
  constructor(it, need, high) {
    Object.assign(this, { it, need, high });
    this.rest = new Float32Array(4 * it.list.length);
    this.start = new Float32Array(4 * it.list.length);
    Object.assign(this, { ghosts: [], index: [], labels: [], slots: [] });
    this.leaf = (node, x, y) => {
      if (node.text) {
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
    const { form, kind, b, ghost, card, out, cell: [w, h], inner: [wide, high] } = node;
    for (let r = 0; r < form.rows; r++) {
      for (let c = 0; c < form.columns; c++) {
        const k = this.it.first[kind] + form.at(b, r, c);
        (ghost ? this.start : this.rest).set([left + c * w, top + r * h, w, h], 4 * k);
        if (ghost) this.ghosts.push(k);
        else this.index[k] = (node.index ?? form.index)(b, r, c);
      }
    }
    if (card !== undefined) {
      this.slots.push({ x: left - 2, y: top - 2, w: wide + 4, h: high + 4, card, out });
    }
    const say = (text, tx, ty, wide, align) => this.say([[text, "words"]], tx, ty, wide, { align, out });
    if (h >= 13) {
      const down = (r) => top + r * h + (h - LINE) / 2;
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
    const { rest, start } = this;
    for (const label of this.labels) { // words that stand there already do not blink
      label.stays = before?.labels.some(({ parts, x, y }) =>
        x === label.x && y === label.y && `${parts}` === `${label.parts}`);
    }
    const seen = (k) => (places) => places?.[4 * k + 2];
    for (const { kind, k } of this.it.list) {
      if (!seen(k)(start) && !MADE[step].includes(kind)) start.set(this.at(k), 4 * k);
    }
    this.active = this.it.list.filter((cell) => [rest, start, before?.rest].some(seen(cell.k)));
    this.shown = this.active.filter(({ k }) => seen(k)(rest));
  }

  at(k, places = this.rest) { return places.subarray(4 * k, 4 * k + 4); }
}

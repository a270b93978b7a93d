// What the stage's numbers are: the arithmetic of the eleven steps, how the axes of each tensor lie,
// the cells, and what each is made of. Without a page, and without a kernel.

const LAST = 11;
const PARTS = ["queries", "keys", "values"], MATRICES = ["W_query", "W_key", "W_value"];

// What each step leaves: its tensors, and which of the forms below their axes have then.
const LEFT = [null, [["x"], "x"], [PARTS, "row"], [PARTS, "token"], [PARTS, "head"],
  [["scores"], "square"], [["masked"], "square"], [["weights"], "square"],
  [["context"], "head"], [["context"], "token"], [["context"], "row"], [["out"], "row"]];

// The steps that make new numbers, each of a row of one tensor and a column of another.
const FACTORS = {
  2: [["x", "x"], ["W_query", "matrix"]], 5: [["queries", "head"], ["keys", "turned"]],
  8: [["scores", "square"], ["values", "head"]], 11: [["context", "row"], ["out_proj", "last"]],
};

const clamp = (v, low = 0, high = 1) => Math.min(high, Math.max(low, v));
const range = (count, make = (i) => i) => Array.from({ length: count }, (_, i) => make(i));
const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
const sum = (list) => list.reduce((a, b) => a + b, 0);
const strongest = (list) => Math.max(1e-6, ...Array.from(list, Math.abs).filter(isFinite));
const ease = (t) => (t <= 0 ? 0 : t >= 1 ? 1 : t < 0.5 ? 4 * t ** 3 : 1 - (2 - 2 * t) ** 3 / 2);
const between = (a, b, s) => a.map((v, z) => v + (b[z] - v) * s);
const floats = (text) =>
  Float64Array.from(new Float32Array(Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer));

// All that the eleven steps make of x, flat, queries to values and context token by token: a list with
// what stands after each step by name, before them the weights. A number that was moved stands in the
// place of what its step made, and everything after it follows. A head that is off adds nothing.
function forward(x, weights, { dIn, dOut, heads, tokens }, { moved = [], divisor, off = [] } = {}) {
  const wide = dOut / heads, root = divisor ?? Math.sqrt(wide), made = [];
  const leave = (step, tensors) => {
    const left = { ...made.at(-1), ...tensors };
    for (const number of moved) {
      if (number.step !== step || !(number.at < left[number.name].length)) continue;
      if (left[number.name] === tensors[number.name]) left[number.name] = left[number.name].slice();
      left[number.name][number.at] = number.value;
    }
    made.push(left);
    return left;
  };
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
  const table = () => new Float64Array(heads * tokens * tokens);
  const every = (act) => {
    for (let h = 0; h < heads; h++) for (let i = 0; i < tokens; i++) act(h, i, (h * tokens + i) * tokens);
  };
  const { out_proj: last, bias, ...matrices } = leave(0, weights), start = leave(1, { x: x.slice() });
  let now = leave(2, Object.fromEntries(
    PARTS.map((name, k) => [name, linear(start.x, matrices[MATRICES[k]], dIn)])));
  for (const step of [3, 4]) now = leave(step, Object.fromEntries(PARTS.map((name) => [name, now[name]])));
  const { queries, keys, values } = now, scores = table();
  every((h, i, row) => {
    for (let j = 0; j < tokens; j++) {
      for (let f = h * wide; f < (h + 1) * wide; f++) {
        scores[row + j] += queries[i * dOut + f] * keys[j * dOut + f];
      }
    }
  });
  const masked = leave(5, { scores }).scores.slice();
  every((h, i, row) => masked.fill(-Infinity, row + i + 1, row + tokens));
  now = leave(6, { masked });
  const shares = table();
  every((h, i, row) => shares.set(sharesOf(now.masked.subarray(row, row + tokens), root), row));
  const context = new Float64Array(tokens * dOut), { weights: mixed } = leave(7, { weights: shares });
  every((h, i, row) => {
    for (let j = 0; j < tokens; j++) {
      for (let f = h * wide; mixed[row + j] && !off.includes(h) && f < (h + 1) * wide; f++) {
        context[i * dOut + f] += mixed[row + j] * values[j * dOut + f];
      }
    }
  });
  now = leave(8, { context });
  for (const step of [9, 10]) now = leave(step, { context: now.context });
  leave(LAST, { out: linear(now.context, last, dOut, bias) });
  return made;
}

// The shares that softmax makes of a row of scores.
function sharesOf(scores, divisor) {
  const most = Math.max(...scores), parts = scores.map((score) => Math.exp((score - most) / divisor));
  const whole = sum(parts);
  return parts.map((part) => part / whole);
}

const rowIn = (flat, tokens, h, r) => flat.subarray((h * tokens + r) * tokens, (h * tokens + r + 1) * tokens);

function decoded(weights) { // "W_query.weight" is W_query here, "out_proj.bias" bias
  const short = (name) => (name.endsWith("bias") ? "bias" : name.split(".")[0]);
  return Object.fromEntries(Object.entries(weights).map(([name, text]) => [short(name), floats(text)]));
}

// How the axes of a tensor may lie: so many blocks of rows and columns, where a number of them
// stands in the flat list, and its index in torch.
function forms({ dIn, dOut, heads, tokens }) {
  const dim = dOut / heads;
  const form = (blocks, rows, columns, at, index) => ({ blocks, rows, columns, at, index });
  const three = (b, r, c) => [0, r, c], four = (b, r, c) => [0, b, r, c], two = (b, r, c) => [r, c];
  const part = (i, h, e) => i * dOut + h * dim + e;
  return {
    x: form(1, tokens, dIn, (_, i, j) => i * dIn + j, three),
    row: form(1, tokens, dOut, (_, i, f) => i * dOut + f, three),
    token: form(tokens, heads, dim, part, four),
    head: form(heads, tokens, dim, (h, i, e) => part(i, h, e), four),
    turned: form(heads, dim, tokens, (h, e, i) => part(i, h, e), (h, e, i) => [0, h, i, e]),
    square: form(heads, tokens, tokens, (h, i, j) => (h * tokens + i) * tokens + j, four),
    matrix: form(1, dIn, dOut, (_, j, f) => f * dIn + j, two),
    last: form(1, dOut, dOut, (_, j, f) => f * dOut + j, two),
  };
}

// A tensor of another shape, (b, rows, columns) or (b, blocks, rows, columns), number by number.
const formOf = (shape) => {
  const [rows, columns] = shape.slice(-2), four = shape.length === 4;
  return { blocks: four ? shape[1] : 1, rows, columns, at: (b, r, c) => (b * rows + r) * columns + c,
    index: (b, r, c) => (four ? [0, b, r, c] : [0, r, c]) };
};

// Where the numbers of a tensor stand in the flat list, in the order that torch has them in.
const ordered = ({ blocks, rows, columns, at }) =>
  range(blocks, (b) => range(rows, (r) => range(columns, (c) => at(b, r, c)))).flat(2);

// As the pictures of the course write numbers: five characters at the most.
function written(value, short = false) {
  if (value === -Infinity) return "−∞";
  const size = Math.abs(value);
  const text = size < 0.005 ? "0.00" : value.toFixed(size < 9.995 ? 2 : size < 99.95 ? 1 : 0);
  return (short ? text.replace(/^(-?)0\./, "$1.") : text).replace("-", "−");
}

// The kind of cells that a tensor is of, and the name that its tensor has after a step.
const kindOf = (name) => (name === "masked" || name === "weights" ? "scores" : name);

function nameOf(kind, step) {
  return kind !== "scores" || step <= 5 ? kind : step === 6 ? "masked" : "weights";
}

// The step that left what a kind of cells shows at a step; weights were there before the first.
function leftBy(kind, step) {
  const name = nameOf(kind, step);
  for (let n = step; n > 0; n--) if (LEFT[n][0].includes(name)) return n;
  return 0;
}

// The kinds that a step makes anew.
const MADE = LEFT.map((left, step) => (FACTORS[step] ? left[0].map(kindOf) : []));

// Whether a step's numbers of a kind are new: made by it, masked or squeezed.
const isNew = (kind, step) => MADE[step].includes(kind) || kind === "scores" && [6, 7].includes(step);

// How the numbers of each kind lie, in the order that they are painted in.
const KINDS = { ...Object.fromEntries([...PARTS, "context"].map((name) => [name, "head"])), scores: "square",
  ...Object.fromEntries(MATRICES.map((name) => [name, "matrix"])), out_proj: "last", out: "row", x: "x" };

// One cell for each number: what it is of, its place in the flat list, token or row r, feature or
// key c, head h (-1: of none). A score stays one cell while it is masked and made a share.
function cells(forms) {
  const list = [], first = {};
  for (const [kind, lies] of Object.entries(KINDS)) {
    const { blocks, rows, columns, at } = forms[lies], from = first[kind] = list.length;
    const byHead = lies === "head" || lies === "square";
    for (let b = 0; b < blocks; b++) for (let r = 0; r < rows; r++) for (let j = 0; j < columns; j++) {
      const place = at(b, r, j), c = lies === "head" ? b * columns + j : j;
      list[from + place] = { kind, at: place, k: from + place, r, c, h: byHead ? b : -1 };
    }
  }
  return { list, first };
}

// What a cell is the sum of products of at a step, pair by pair: cells of a row and of a column. A
// token takes nothing from those after it, unless a hand let it see them.
function factors({ forms, first, list, headDim, made, off, sizes: { tokens } }, { kind, r, c, h }, step) {
  if (!MADE[step].includes(kind) || step === 8 && off.has(`1,${h}`)) return []; // a head that is off adds nothing
  const [[one, a], [other, b]] = FACTORS[step], matrix = MATRICES[PARTS.indexOf(kind)] ?? other;
  const column = step === 8 ? c % headDim : c, from = (h * tokens + r) * tokens;
  const inner = step !== 8 ? forms[a].columns
    : Math.max(r, made[7].weights.subarray(from, from + tokens).findLastIndex((share) => share)) + 1;
  return range(inner, (j) => [list[first[one] + forms[a].at(h, r, j)],
    list[first[matrix] + forms[b].at(h, j, column)]]);
}

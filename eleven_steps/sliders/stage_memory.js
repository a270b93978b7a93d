// The memory ribbon: the numbers of a tensor in the order of storage, and the thread that reads them.
// Steps 3, 4 and 9 only set strides: the thread changes, no number moves. Step 10 writes the ribbon anew.

const FAILS = 0.45; // of step 10: as long view stumbles over the old order
const MEMORY = 104, MEMORIES = { 3: "values", 4: "values", 9: "context", 10: "context" }; // pixels; whose numbers

class Memory {
  constructor(it) { this.it = it; }

  // How high a step's ribbon is: none if the step does not change how memory is read, nor for a class
  // of one's own, whose memory is not known.
  room(step) { return MEMORIES[step] && !this.it.own ? MEMORY : 0; }

  // Pieces of memory, a head of a token each, in the order of storage: of step 9 head by head.
  pieces(byHead) {
    const { tokens, heads } = this.it.sizes;
    return byHead ? range(heads, (h) => range(tokens, (i) => ({ i, h }))).flat()
      : range(tokens, (i) => range(heads, (h) => ({ i, h }))).flat();
  }

  // Sizes and strides before and after a step, as torch says them.
  strides(step, after) {
    const { tokens, heads, dOut } = this.it.sizes, dim = this.it.headDim, all = tokens * dOut;
    return { 3: after ? [all, dOut, dim, 1] : [all, dOut, 1], 4: after ? [all, dim, dOut, 1] : [all, dOut, dim, 1],
      9: after ? [all, dim, tokens * dim, 1] : [all, tokens * dim, dim, 1],
        10: after ? [all, dOut, 1] : [all, dim, tokens * dim, 1] }[step];
  }

  draw(pen, p) {
    const { it } = this, step = it.step, kind = MEMORIES[step];
    if (!this.room(step)) return;
    const u = clamp(Math.round(1e6 * (p - step + 1 - TURN)) / 1e6 / (1 - TURN)), word = it.scope === "word",
      [left, whole] = word ? it.story.all : [8, Math.min(it.laid, it.room) - 16];
    const top = word ? PANEL : it.high - MEMORY, { dOut, tokens, heads } = it.sizes, dim = it.headDim,
      many = tokens * heads;
    const stored = this.pieces(step > 8), copies = step === 10 && it.jumps,
      copy = copies ? ease(clamp((u - FAILS) / 0.5)) : 0, fails = copies && u > 0 && u < FAILS;
    const reads = step === 3 || step === 10 ? this.pieces(false) : this.pieces(step === 4); // once the step is over
    const piece = whole / many, ribbon = top + 44, high = 26, name = ({ i, h }) => `${i} ${h}`;
    const placeOf = (list) => Object.fromEntries(list.map((one, k) => [name(one), left + k * piece]));
    const at = placeOf(stored), to = placeOf(this.pieces(false)),
      tone = (h) => (step === 3 && u < 0.05 ? "var(--soft)" : it.story.tone(h));
    const values = it.mine[step][kind];
    for (const one of stored) {
      const from = at[name(one)], s = ease(clamp(copy * (many + 3) - this.pieces(false).findIndex((each) =>
        name(each) === name(one)), 0, 3) / 3);
      const x = from + (to[name(one)] - from) * s, y = ribbon - Math.sin(Math.PI * s) * 24,
        mine = !word || one.i === it.asked;
      const numbers = values.subarray(one.i * dOut + one.h * dim, one.i * dOut + (one.h + 1) * dim);
      pen.box(`cloth ${name(one)}`, [x + 0.5, y, piece - 1, high],
        { fill: tone(one.h), "fill-opacity": mine ? 0.3 : 0.13 });
      if (piece / dim > 30) numbers.forEach((number, e) =>
        pen.words(`stored ${name(one)} ${e}`, written(number), x + (e + 0.5) * piece / dim, y + 18,
          { "font-size": 12 }));
      else pen.spark(`stored ${name(one)}`, [x + 1, y + 1, piece - 2, high - 2], numbers, it.most[kind], tone(one.h),
        mine ? 1 : 0.45);
      const apart = step > 8 && s < 0.5, owner = this.it.word(one.i);
      if (one.h === 0 || apart) pen.words(`owner ${name(one)}`, apart && piece < 32 ? owner[0] : owner,
        x + piece / 2 * (apart ? 1 : heads), ribbon + high + 14,
        { class: "soft", "font-size": 11, opacity: step > 8 ? Math.abs(1 - 2 * s) : 1 });
    }
    for (let k = 1; k < many; k++) if (step > 3 || stored[k].h) { // a fence before each piece
      const drop = step === 3 ? ease(clamp(2 * u)) : 1;
      pen.put(`post ${k}`, "path", { d: `M${left + k * piece} ${ribbon - 5}v${(high + 6) * drop}`,
        class: stored[k].h && step < 5 ? "fence" : "rule faint", opacity: drop * (1 - copy) });
    }
    this.thread(pen, { step, u, fails, copy, left, piece, ribbon, reads, before: this.pieces(step === 9), at, to, name,
      many });
    const now = this.strides(step, u > (step === 10 ? 0.9 : 0.3)), shapes = `strides (${now.join(", ")})`;
    if (!word || step > 8)
      pen.words("strides", shapes, left + whole, top + (it.narrow ? 4 : MEMORY - 6), { class: "end code" });
    pen.words("memory", this.says(step, u, fails, kind), left, top + MEMORY - 6,
      { class: fails ? "start wrong" : "start" });
  }

  says(step, u, fails, kind) {
    if (!u || step !== 10 && u < 0.15) return `${kind} in memory, read along the line`;
    if (fails) return "view fails: one stride cannot go +1, +1, then jump";
    const { jumps, sizes: { heads } } = this.it;
    if (step === 10) return jumps ? "contiguous() writes them anew, as they are read" : "in order: nothing to copy";
    return { 3: heads > 1 ? "a fence between the heads" : "one head, no fence", 4: "read head by head now",
      9: `read word by word${jumps ? ", in jumps" : ""}` }[step] + ": no number moves";
  }

  // The thread goes from piece to piece: where the next one does not lie beside it, it jumps.
  thread(pen, { step, u, fails, copy, left, piece, ribbon, reads, before, at, to, name, many }) {
    const flat = step === 3 ? u < 0.3 : step === 10 && copy > 0.95; // a row is a whole token
    const draw = (key, order, places, shown, cut = many) => order.forEach((one, k) => {
      const from = places[name(one)], next = order[k + 1] && places[name(order[k + 1])], lies = k < cut;
      if (!lies || shown < 0.01) return;
      pen.put(`${key} along ${k}`, "path",
        { d: `M${from + 3} ${ribbon - 3}h${piece - 6}`, class: "thread", opacity: shown }, undefined, 2);
      if (next === undefined || k + 1 >= cut) return;
      const a = from + piece - 3, b = next + 3, near = Math.abs(b - a) < 10,
        rise = near ? (flat && order[k + 1].i === one.i ? 0 : 6) : Math.min(38, 12 + Math.abs(b - a) * 0.1);
      const y = ribbon - 3, top = y - rise;
      pen.put(`${key} to ${k}`, "path", { d: `M${a} ${y}C${a} ${top} ${b} ${top} ${b} ${y}`,
        class: near ? "thread" : "thread jump",
        opacity: near || this.it.scope !== "word" || one.i === this.it.asked ? shown : 0.35 * shown }, undefined, 2);
    });
    if (step === 3) return draw("thread", reads, at, 1);
    if (step === 10) {
      if (copy > 0.95) return draw("new", reads, to, 1);
      draw("thread", reads, at, 1 - copy * 0.8, fails ? 1 : many);
      if (fails) { // as far as one stride goes
        const x = at[name(reads[0])] + piece;
        pen.put("stumbles", "path", { d: `M${x - 3} ${ribbon - 3}q8 -18 16 0`, class: "stumbles" }, undefined, 2);
        pen.words("stumbles said", "✗", x + 16, ribbon - 14, { class: "wrong" });
      }
      return;
    }
    const s = clamp(u / 0.9);
    draw("old", before, at, clamp(1 - 2 * s));
    draw("new", reads, at, s > 0 ? 1 : 0, Math.ceil(s * many));
  }
}

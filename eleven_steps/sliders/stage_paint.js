// How the stage is painted: where cells are on their way, what happens between them, what is marked.

const TURN = 0.4; // of a step: until then its operands come, afterwards it happens
const COVERED = 0.45, TWO_HIGH = 26; // how strong the colour of −∞ is; pixels that two numbers need

const around = (boxes) => {
  const [x, y] = [0, 1].map((z) => Math.min(...boxes.map((box) => box[z])));
  return [x, y, ...[0, 1].map((z) => Math.max(...boxes.map((box) => box[z] + box[z + 2])) - [x, y][z])];
};

// Places in a row or a column as one: cells may be too small for frames of their own.
function joined(places) {
  const frames = [];
  for (const place of places) {
    const last = frames.at(-1), apart = last ? last.map((v, z) => Math.abs(v - place[z])) : [];
    const grows = [0, 1].find((z) => apart[1 - z] < 0.1 && apart[3 - z] < 0.1 &&
      Math.abs(last[z] + last[z + 2] - place[z]) < 0.1);
    if (grows === undefined) frames.push([...place]);
    else last[grows + 2] += place[grows + 2];
  }
  return frames;
}

const STAY = new Set([3, 4, 9]); // no number moves in memory, so none does here: it is read at another place

// Numbers are made one by one, the first ones slowly: how many stand at u.
function sweep({ sizes: { tokens, dOut } }, n, u) {
  const all = tokens * (n === 5 ? tokens : dOut);
  return all * u ** Math.max(1, Math.log(all) / Math.log(2.5)) + (u >= 1);
}

// How far a cell has come of its way in step n, whose happening is at u from 0 to 1.
function progress(it, { kind, r, c }, n, u) {
  const { tokens, dOut } = it.sizes, made = MADE[n].includes(kind);
  if (made) return clamp(5 * (sweep(it, n, u) - r * (n === 5 ? tokens : dOut) - c - 0.8));
  return ease(n === 10 ? (u - FAILS) / (1 - FAILS) : 2.5 * u); // view has failed first
}

// Where a cell is at a moment: x, y, width, height, opacity.
function where(it, { n, t, u, laid, before }, cell) {
  const { now } = it.painter, at = 4 * cell.k, early = t < TURN;
  const from = early ? before?.rest ?? laid.start : laid.start, to = early ? laid.start : laid.rest;
  const s = early ? ease(t / TURN) : t < 1 ? progress(it, cell, n, u) : 1;
  const seen = from[at + 2] > 0, then = to[at + 2] > 0,
    stays = STAY.has(n) && !early && (laid.stays ??= new Set(laid.ghosts)).has(cell.k);
  for (let z = 0; z < 4; z++) {
    const a = seen ? from[at + z] : to[at + z];
    now[z] = a + ((then ? to[at + z] : a) - a) * (stays ? 1 : s);
  }
  now[4] = stays ? s : seen + (then - seen) * s;
  now[5] = s;
  return now;
}

// Whether a cell shows what its step makes of it: −∞ once its tile lies, a share once its row fills.
function settled({ sizes: { tokens } }, { kind, r, c }, n, u) {
  if (kind !== "scores" || u >= 1) return true;
  if (n === 7) return u * tokens >= r + 0.5;
  return n !== 6 || u >= landing(tokens, r, c) + 0.3;
}

const landing = (tokens, r, c) => 0.42 + 0.26 * (1 - (c - r) / tokens);

class Painter {
  constructor(it, canvas) {
    this.it = it;
    this.pen = canvas.getContext("2d", { alpha: false });
    this.now = new Float32Array(6); // where a cell is, its opacity, and how far it has come
  }

  // The colours and fonts of the page, as a canvas needs them.
  look(root, heads) {
    const { canvas } = this.pen, read = (name) => getComputedStyle(root).getPropertyValue(`--${name}`);
    for (const name of ["paper", "ink", "soft", "line", "hold", "right", "wrong", "band", "grey"]) {
      canvas.style.color = `var(--${name})`;
      this[name] = getComputedStyle(canvas).color;
    }
    this.heads = heads.map((_, k) => { // lighter in the dark
      canvas.style.color = `var(--tone${k})`;
      return getComputedStyle(canvas).color;
    });
    this.family = read("digits");
    const words = `12px ${this.family}`;
    this.fonts = { words, bold: `bold 13px ${this.family}`, code: `12px ${read("code")}`,
      sign: `22px ${this.family}` };
    this.inks = { words: this.soft, bold: this.ink, code: this.ink, sign: this.soft };
    this.widths = new Map();
    this.pen.font = `100px ${this.family}`;
    [this.em, this.shortEm] = ["−0.00", "−.00"].map((text) => this.pen.measureText(text).width / 100);
  }

  width(text, font = "words") {
    const key = font + text;
    if (!this.widths.has(key)) {
      this.pen.font = this.fonts[font];
      this.widths.set(key, Math.ceil(this.pen.measureText(text).width));
    }
    return this.widths.get(key);
  }

  resize(pen, width, height) {
    this.dots = window.devicePixelRatio || 1;
    Object.assign(pen.canvas, { width: width * this.dots, height: height * this.dots });
    pen.canvas.style.cssText = `width:${width}px;height:${height}px`;
  }

  paint() {
    const { it, pen } = this, n = it.step, t = Math.round(1e6 * (it.p - n + 1)) / 1e6;
    const u = clamp((t - TURN) / (1 - TURN)), laid = it.steps[n], before = it.steps[n - 1];
    const moment = { n, t, u, laid, before }, going = clamp(1 - 2 * t / TURN); // words go, others come
    const coming = n === 1 ? 1 : clamp(2 * t / TURN - 1);
    pen.setTransform(this.dots, 0, 0, this.dots, 0, 0);
    this.fill(0, 0, it.across, it.high, this.paper);
    pen.textBaseline = "middle";
    this.font = this.sized = null; this.moving = t < 1;
    if (before && going) this.labels(before, going, going);
    this.labels(laid, coming, clamp((t - 0.88) / 0.12));
    pen.textAlign = "center";
    for (const slot of laid.slots) this.slot(slot, clamp((t - TURN + 0.1) * 10), u);
    if (u > 0) for (const k of laid.ghosts)
      this.square(it.list[k], ...laid.at(k, laid.start), 0.9 * clamp(3 * u), n - 1);
    for (const cell of t < 1 ? laid.active : laid.shown) {
      const [x, y, w, h, o] = where(it, moment, cell);
      if (o > 0.02) this.square(cell, x, y, w, h, o, settled(it, cell, n, u) ? n : n - 1);
    }
    if (u > 0 && u < 1) this.act(moment);
    if ([5, 7, 8].includes(n) && n !== it.own?.open && t >= 1) { // the row that the title speaks of
      const { h, r } = noted(it), row = laid.shown.filter((one) => one.kind === "scores" && one.h === h && one.r === r);
      this.frame(around(row.map(({ k }) => laid.at(k))), this.hold);
    }
    if (t >= 1) this.marks(laid);
    pen.globalAlpha = 1;
  }

  fill(x, y, w, h, colour, opacity = 1) {
    this.pen.globalAlpha = opacity; this.pen.fillStyle = colour; this.pen.fillRect(x, y, w, h);
  }

  write(text, x, y, font, colour, most) {
    if (font !== this.font) this.pen.font = this.font = font;
    this.pen.fillStyle = colour; this.pen.fillText(text, x, y, most);
  }

  frame([x, y, w, h], colour = this.ink, dash = [], inside = 0) {
    if (!w) return; // what is not shown has none
    const { pen } = this;
    if (inside) this.fill(x, y, w, h, colour, inside);
    Object.assign(pen, { strokeStyle: colour, lineWidth: 2, globalAlpha: 1 });
    pen.setLineDash(dash); pen.strokeRect(x - 1, y - 1, w + 2, h + 2); pen.setLineDash([]);
  }

  // The words of a step: of what comes in, and of what has come out.
  labels(laid, coming, made) {
    this.pen.textAlign = "left";
    for (const { parts, x, y, indent, out, head, stays } of laid.labels) {
      const opacity = out ? made : stays ? 1 : coming;
      if (!opacity) continue;
      if (indent) this.fill(x, y + 3, 10, 10, this.heads[head], opacity);
      this.pen.globalAlpha = opacity;
      let left = x + indent;
      for (const [text, font] of parts) {
        this.write(text, left, y + LINE / 2, this.fonts[font], this.inks[font]);
        left += this.width(text, font);
      }
    }
  }

  // Where something will come to lie: dashed, and a question, until it does.
  slot({ x, y, w, h, card, out }, opacity, u) {
    const { pen } = this;
    Object.assign(pen, { globalAlpha: opacity, strokeStyle: this.heads[card] ?? this.line, lineWidth: 1.5 });
    pen.setLineDash(out && u < 1 ? [4, 4] : []); pen.beginPath();
    pen.roundRect(x, y, w, h, 6); pen.stroke(); pen.setLineDash([]);
    const font = `${Math.min(24, h * 0.6)}px ${this.family}`;
    if (out && u === 0) this.write("?", x + w / 2, y + h / 2, font, this.soft);
  }

  // The font a number is written in where cells are so large, and whether without its leading zero.
  sizeOf(w, h) {
    if (this.sized?.[0] === w && this.sized[1] === h) return this.sized[2];
    const full = Math.min(0.65 * h, 0.8 * w / this.em), short = Math.min(0.65 * h, 0.92 * w / this.shortEm);
    const size = full >= LEAST_FONT ? Math.min(full, 21) : short >= LEAST_FONT ? Math.min(short, 12) : 0;
    this.sized = [w, h, [Math.floor(2 * size) / 2, full < LEAST_FONT]];
    return this.sized[2];
  }

  // The colour of a number and how strong it is: by its size, or pale where a low score gets little weight.
  shade(cell, step, value, delta) {
    const name = nameOf(cell.kind, step), most = this.it.most[name], size = Math.abs(delta);
    if (size && written(value) !== written(value - delta)) return [delta > 0 ? this.right : this.wrong,
      0.1 + 0.4 * clamp(2 * size / most)];
    if (this.it.hand.hold) return [this.band, 1];
    if (value === -Infinity) return [this.soft, COVERED];
    const share = ["scores", "masked"].includes(name) ? (value / most + 1) / 2 : Math.abs(value) / most;
    return [step > 2 && this.heads[cell.h] || this.grey, 0.03 + 0.47 * clamp(share)];
  }

  // One number: its colour, stronger where no digits have to be read through it, and its digits.
  square(cell, x, y, w, h, opacity, step) {
    const { it, pen } = this, value = it.value(cell, step), delta = it.change(cell, step);
    const heat = w < 16 || h < 14, gap = w > 6 ? 0.7 : 0.25;
    const [colour, strength] = this.shade(cell, step, value, delta);
    if (this.moving) { // on its way a cell covers what lies under it
      this.fill(x + 0.5, y + 0.5, w - 1, h - 1, this.paper, opacity);
    }
    pen.globalAlpha = opacity * (heat && strength < 0.6 ? 2 * strength : strength);
    pen.fillStyle = colour;
    if (heat) pen.fillRect(x, y, w - gap, h - gap);
    else {
      pen.beginPath(); pen.roundRect(x + 0.5, y + 0.5, w - 1, h - 1, 3); pen.fill();
      this.digits(cell, value, delta, x, y, w, h, opacity, strength);
    }
    if (it.moved.size && it.whatIf(cell, step)) { // a what-if has a frame of its own
      pen.strokeStyle = this.hold; pen.lineWidth = 2; pen.globalAlpha = opacity;
      pen.strokeRect(x + 1, y + 1, w - 2, h - 2);
    }
  }

  digits(cell, value, delta, x, y, w, h, opacity, strength) {
    const { it, pen } = this, moved = delta && written(value) !== written(value - delta),
      [size, short] = this.sizeOf(w, h);
    pen.globalAlpha = opacity;
    if (moved) { // which way, and how far
      const long = Math.max(2, (strength - 0.1) * 2.5 * (h / 2 - 2)), up = delta > 0;
      this.fill(x + w - 4, y + h / 2 - (up ? long : 0), 3, long, up ? this.right : this.wrong, opacity);
    }
    if (!size) return;
    if (it.movable(cell) && (cell.kind === "x" || cell.kind.startsWith("W_"))) { // as a link is underlined
      this.fill(x + 4, y + h - 3, w - 8, 1.5, this.hold, opacity);
    }
    const text = written(value, short), before = written(value - delta, short);
    const two = moved && h >= 30 && text !== before, middle = x + w / 2;
    const own = it.own && it.differs[nameOf(cell.kind, it.own.open)]?.[cell.at] &&
      it.value(cell, it.own.open) === value;
    if (own && h >= TWO_HIGH && !this.moving) { // a class's own number, and the right one under it
      this.write(text, middle, y + h * 0.32, `bold ${Math.min(size, 0.45 * h)}px ${this.family}`, this.wrong, w - 2);
      return this.write(written(it.value(cell, it.own.open, it.made)), middle, y + h * 0.74,
        `${LEAST_FONT}px ${this.family}`, this.right);
    }
    const px = (size) => `${size}px ${this.family}`;
    if (two) this.write(before, middle, y + h * 0.27, px(LEAST_FONT), this.soft);
    const font = moved ? `bold ${px(two ? Math.min(size, 0.5 * h) : size)}` : px(size);
    const ink = it.hand.hold && !moved ? this.soft : this.ink;
    this.write(text, middle, y + h * (two ? 0.68 : 0.51), font, ink, w - 2);
  }

  // What happens between cells while a step does: a row and a column meet and become a number.
  act(moment) {
    const { it } = this, { n, u } = moment, { tokens, dOut } = it.sizes;
    const at = (cell) => [...where(it, moment, cell)].slice(0, 4);
    const of = (kind, k) => it.list[it.first[kind] + k];
    if (!FACTORS[n]) return;
    const wide = n === 5 ? tokens : dOut, done = Math.min(sweep(it, n, u), tokens * wide - 1e-6);
    const k = Math.floor(done), s = ease((done % 1 - 0.3) / 0.5);
    const blocks = (n === 5 ? range(it.sizes.heads, (h) => of("scores", h * tokens * tokens + k))
      : LEFT[n][0].map((kind) => of(kind, k))).filter((made) => moment.laid.index[made.k]); // of one head, or of all
    for (const made of blocks) {
      const pairs = factors(it, made, n), to = [...moment.laid.at(made.k)];
      if (!pairs[0]) continue; // of a head that is off
      const many = Math.ceil(pairs.length * clamp((done % 1) / 0.7)), [one, other] = pairs[Math.max(0, many - 1)];
      for (const side of [0, 1]) {
        const from = around(pairs.map((pair) => at(pair[side])));
        if (!from[2]) continue;
        this.frame(from);
        if (s > 0) this.frame(between(from, to, s), this.heads[made.h] ?? this.hold, [], 0.15);
      }
      for (const cell of [one, other]) this.frame(at(cell), this.heads[one.h] ?? this.hold, [], 0.25);
      this.frame(to);
      if (done % 1 < 0.8 && to[2] > 20) { // the products, added one by one
        const reached = sum(pairs.slice(0, many).map(([a, b]) => it.value(a, n) * it.value(b, n)));
        this.write(written(reached, to[2] < 40), to[0] + to[2] / 2, to[1] + to[3] / 2, this.fonts.bold, this.hold,
          to[2] - 2);
      }
    }
    if (blocks[0] && !it.hand.hold) it.page.tell(explained(it, blocks[0], n)); // the arithmetic of what is made
  }

  // What a number that is pointed at comes from (solid) and goes to (dashed).
  marks(laid) {
    const { it } = this;
    if (!it.pointed || it.hand.hold) return;
    for (const place of it.kin.from) this.frame(place, this.hold);
    for (const place of it.kin.to) this.frame(place, this.ink, [3, 2]);
    const [x, y, w, h] = laid.at(it.pointed.k);
    this.frame([x - 1, y - 1, w + 2, h + 2]);
  }
}

// Softmax as a lever: a row of scores as bars, taken through five moments by a playhead. Any bar can be
// taken hold of at any moment, and what they are divided by: the weights follow.

const MOMENTS = 5, LYING = 26, BEFORE = 4; // at 4 the weights are there; then comes dropout, in training
const UP = 84, DEEP = 64, TOP = 24, FLOOR = TOP + UP + DEEP, WORDS = FLOOR + 12; // pixels

const told = (k, { root, top, wide, falls, bare, most }) => [
  falls ? "Scores of words that come later become −∞: they fall through the floor."
    : "No word comes later here: no score becomes −∞.",
  `All bars are divided by ${root}. Without it the largest takes ${bare} %, with it ${bare === most ? "as much" : `${most} %`}.`,
  `The largest, ${top}, is taken off all: that changes no weight. Then exp bends each bar up: none is below 0.`,
  `End to end the bars are ${wide} long. ${wide === "1.00" ? "That is 1: each" : "Squeezed to 1, each"} is a weight.`,
  "In training, dropout takes some weights away and doubles the rest.",
][k];

// Parts of a row at a moment t: what stands in sight of each score, and its bar. Pure arithmetic.
function leverAt(t, { scores, masked, divisor, kept }) {
  const scaled = masked.map((score) => score / divisor), top = Math.max(...scaled);
  const powers = scaled.map((score) => Math.exp(score - top)), whole = sum(powers);
  const weights = powers.map((power) => power / whole), dropped = weights.map((weight, j) => weight * (kept?.[j] ?? 1));
  const stages = [scores, masked, scaled, powers, weights, dropped];
  const off = scaled.map((score) => score - top), k = Math.min(Math.floor(t + 1e-9), MOMENTS);
  return { scaled, top, off, powers, whole, weights, dropped, numbers: stages[Math.round(t)], k };
}

class Lever {
  // says: read() returns the row as it is now, { words, scores, masked, root, divisor, kept, colour, far }, and
  // t, the moment; moved(j, score), divided(divisor), trained(on) and went(t) hear a hand.
  constructor(el, says) {
    this.says = says; this.el = el;
    const names = ["mask", "divide", "exp", "sum to 1", "dropout"];
    el.classList.add("lever");
    el.innerHTML = `<div class="moments" role="group" aria-label="moments of the softmax">${
      names.map((name) => `<button>${name}</button>`).join("")}</div>
      <svg role="group" aria-label="scores as bars"><path class="rule"></path><path class="curve"></path>
        <g class="bars"></g><path class="end"></path><text class="sum"></text><text class="of"></text></svg><p class="moment"></p>
      <label>divide by <input type="range" min="-1.4" max="2.8" step="0.01" aria-label="divide by">
        <output></output></label><label><input type="checkbox"> training</label>`;
    const part = (name) => el.querySelector(name);
    this.svg = part("svg"); this.group = part(".bars"); this.said = part(".moment");
    this.rule = part(".rule"); this.curve = part(".curve"); this.end = part(".end"); this.sum = part(".sum");
    this.of = part(".of");
    this.slider = part("[type=range]"); this.output = part("output"); this.check = part("[type=checkbox]");
    this.buttons = [...el.querySelectorAll("button")]; this.parts = [];
    // of each score: its group, bar, number, word and dot
    this.buttons.forEach((button, k) => { button.onclick = () => {
      if (k + 1 === MOMENTS && !this.check.checked) says.trained(true);
      says.went(k + 1);
    }; });
    this.slider.oninput = (event) => { // sticks at the root
      event.stopPropagation();
      const by = Math.exp(this.slider.value), { root } = says.read();
      says.divided(Math.abs(Math.log(by / root)) < 0.06 ? root : by);
    };
    this.check.oninput = (event) => {
      event.stopPropagation(); says.trained(this.check.checked);
      says.went(this.check.checked ? MOMENTS : BEFORE);
    };
  }

  row(words) { // elements for so many scores, kept while a hand is on them
    if (this.parts.length === words.length) return;
    this.group.innerHTML = words.map(() => `<g class="bar" tabindex="0" role="slider"><rect class="hit"/>
      <rect class="ink" rx="2"/><text class="number"/><text class="word"/></g><circle r="4"/>`).join("");
    const dots = this.group.querySelectorAll("circle");
    this.parts = [...this.group.querySelectorAll("g")].map((g, j) => {
      const [hit, ink, number, word] = g.children;
      const move = (score) => { this.held = j; this.says.moved(j, score); };
      onDrag(g, (event) => {
        const { masked } = this.says.read();
        event.preventDefault(); event.stopPropagation(); g.focus({ preventScroll: true });
        return isFinite(masked[j]) && { score: masked[j], unit: this.unit };
      }, ({ score, unit }, right, up) => move(score + up / unit), () => this.says.letGo?.());
      onKeys(g, (key, { shiftKey }) => {
        const by = { ArrowUp: 1, ArrowDown: -1 }[key], { masked, far } = this.says.read();
        if (key === "Escape") return this.says.back(j);
        if (by && isFinite(masked[j])) move(masked[j] + by * far / 40 * (shiftKey ? 5 : 1));
        return Boolean(by);
      });
      return { g, hit, ink, number, word, dot: dots[j] };
    });
  }

  draw(wide = this.wide) {
    const row = this.says.read(), { words, scores, masked, root, divisor, t, colour } = row, n = words.length;
    const now = leverAt(t, row), { scaled, off, powers, whole, weights } = now;
    this.wide = wide; this.row(words);
    const curveWide = Math.min(120, wide * 0.26), column = Math.min(80, (wide - curveWide - 10) / n),
      bar = column * 0.6;
    const base = TOP + UP, most = Math.max(2, ...masked.filter(isFinite).map(Math.abs));
    const unit = DEEP / most, zoom = DEEP / Math.max(4, ...off.filter(isFinite).map((below) => -below));
    const line = wide * 0.46, loose = Math.min(line, (wide - 70) / whole); // pixels for 1, before and after
    const part = (from) => ease(clamp(t - from)), half = (from) => ease(clamp(2 * (t - from)));
    this.unit = unit;
    // Squeezed, 1 is as long as the line; before, the bars lie as long as they stood.
    const one = t <= 3.5 ? loose : loose + (line / whole - loose) * half(3.5), lies = half(3);
    let x = 4, reached = 0;
    const texts = Array.from(now.numbers, (number) => written(number)),
      longest = Math.max(...texts.map((text) => text.length));
    const share = (by) => { const { weights } = leverAt(t, { ...row, divisor: by });
    return Math.round(100 * Math.max(...weights)); };
    this.parts.forEach(({ g, hit, ink, number, word, dot }, j) => {
      const live = isFinite(masked[j]), middle = 4 + column * (j + 0.5), fallen = live ? 0 : part(0);
      const heights = [scores[j] * unit, live ? scores[j] * unit : 0, scaled[j] * unit, off[j] * zoom, powers[j] * UP];
      let h = scores[j] * unit;
      if (live && t > 1) h = heights[1] + (heights[2] - heights[1]) * part(1);
      if (live && t > 2) h = heights[2] + (heights[3] - heights[2]) * half(2);
      if (live && t > 2.5) h = heights[3] + (heights[4] - heights[3]) * half(2.5);
      const kept = 1 + ((row.kept?.[j] ?? 1) - 1) * part(BEFORE), long = live ? powers[j] * one * kept : 0;
      const stands = [middle - bar / 2, Math.min(base, base - h) + fallen * 2 * DEEP, bar, Math.max(Math.abs(h), 1.5)];
      const down = [x, FLOOR - LYING - 20, Math.max(long - 1, 0.5), LYING];
      const [left, top, w, high] = between(stands, down, live ? lies : 0);
      x += long; reached += long;
      set(ink, { x: left, y: top, width: w, height: high, fill: colour,
        opacity: live ? 0.4 + 0.6 * (t > 3 ? Math.sqrt(weights[j]) : 1) : 0.5 * (1 - fallen) });
      const area = lies > 0.5 && w > 3 ? [left, TOP, w, WORDS + 26 - TOP]
        : [middle - column / 2, 0, column, WORDS + 26];
      const under = middle + (left + w / 2 - middle) * lies, said = lies < 0.5 || w > 26 ? 1 : 0;
      // a label stands under its bar
      set(hit, { x: area[0], y: area[1], width: Math.max(area[2], 1), height: area[3] });
      set(number, { x: under, opacity: said, y: WORDS + 4, "font-size": clamp(1.3 * column / longest, 11, 15) },
        texts[j]);
      set(word, { x: under, opacity: said, y: WORDS + 22,
        "font-size": clamp(1.6 * column / words[j].length, 11, 13) }, words[j]);
      g.setAttribute("aria-label", `score of ${words[j]}`); g.ariaDisabled = String(!live);
      g.setAttribute("aria-valuenow", live ? masked[j] : -1e9);
      g.setAttribute("aria-valuetext", `${written(masked[j])}, weight ${weights[j].toFixed(2)}`);
      const seen = live && t > 2.05 && t < 3.4, at = wide - 8 + Math.max(off[j], -4) * (curveWide - 16) / 4;
      set(dot, { cx: seen ? at : 0, cy: base - (live ? half(2.5) * powers[j] * UP : 0), fill: colour, opacity: +seen });
    });
    const bend = range(41, (k) => [wide - 8 - (k / 40) * (curveWide - 16), base - Math.exp(-k / 10) * UP]);
    this.curve.setAttribute("d", `M${bend.join("L")}`);
    this.curve.style.opacity = t > 2 && t < 3.5 ? 1 : 0;
    set(this.rule, { d: `M0 ${base}H${column * n + 8}` }).style.opacity = 1 - lies;
    set(this.end, { d: `M${4 + reached} ${FLOOR - LYING - 30}v${LYING + 20}` }).style.opacity = lies;
    const length = t > BEFORE + 0.5 ? sum(now.dropped) : t > 3.75 ? 1 : whole;
    set(this.sum, { x: clamp(4 + reached, 30, wide - 30), y: FLOOR - LYING - 35 },
      lies > 0.5 ? (length === 1 ? "1" : `sum ${written(length)}`) : "").style.opacity = lies;
    set(this.svg, { viewBox: `0 0 ${wide} ${WORDS + 28}`, width: wide, height: WORDS + 28 });
    const moment = Math.min(Math.ceil(t - 1e-6), MOMENTS), named = `√${Math.round(root ** 2)}`;
    const held = t > 3 && isFinite(masked[this.held])
      ? ` Score of “${words[this.held]}”: ${written(masked[this.held])}.` : "";
    this.said.textContent = !moment ? "Take hold of a column and pull it up or down, then press Play."
      : told(moment - 1, { top: written(now.top), wide: written(whole),
      falls: !masked.every(isFinite), bare: share(1), most: share(divisor),
      root: divisor === root ? `${named} = ${written(root)}` : written(divisor) }) + held;
    set(this.of, { x: 2, y: 15 }, row.of ?? "");
    this.buttons.forEach((button, k) => button.setAttribute("aria-pressed", k + 1 === moment));
    this.slider.value = Math.log(divisor);
    this.output.textContent = written(divisor) + (divisor === root && root !== 1 ? ` = ${named}` : "");
    this.slider.setAttribute("aria-valuetext", this.output.textContent);
    this.check.checked = Boolean(row.kept);
  }
}

function set(part, attributes, text) {
  for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
  if (text !== undefined && part.textContent !== text) part.textContent = text;
  return part;
}

// Which weights dropout keeps, doubled: told by their places, so that a picture comes out the same.
const keptOf = (count) => Float64Array.from({ length: count }, (_, k) => 2 * (Math.imul(k + 1, 0x9e3779b1) >>> 31));

// Call act with the part of a time that has gone by, from 0 to 1, frame by frame; return how to stop.
function glide(time, act) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || !time;
  let frame, began;
  const tick = (now) => {
    const s = still ? 1 : clamp((now - (began ??= now)) / time);
    if (s < 1) frame = requestAnimationFrame(tick);
    act(s);
  };
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

// The moment of a step that has come so far, resting a little at each.
function leverTime(along, moments) {
  const t = clamp((along - TURN) / (1 - TURN)) * moments, k = Math.floor(t + 1e-9);
  return Math.min(k + ease((t - k) * 1.5), moments);
}

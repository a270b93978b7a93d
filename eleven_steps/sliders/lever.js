// Softmax as a lever: a row of scores as bars. Any of them can be taken hold of at any moment, and so can
// what divides them: the weights follow.

const MOMENTS = ["scores", "exp", "sum to 1"];
const UP = 84, DEEP = 64, TOP = 24, LYING = 30, BASE = TOP + UP, WORDS = BASE + DEEP + 18; // pixels

// A row of scores at each of the moments. Pure arithmetic.
function leverAt(scores, divisor) {
  const scaled = scores.map((score) => score / divisor);
  return [scaled, scaled.map(Math.exp), sharesOf(scores, divisor)];
}

const plain = (value) => (value < 1e5 ? written(value) : value.toExponential(1).replace("e+", "e"));

function render({ model, el }) {
  const { scores: given, words, divisor: root, colour } = model.get("data"), many = words.length;
  let scores = [...given], divisor = root, t = 0, stop = null, unit = 1, wide = 540;
  el.classList.add("live", "lever");
  el.style.setProperty("--head", colour);
  el.innerHTML = `<div class="title" aria-live="polite"></div><div class="moments" role="group"
      aria-label="moments of the softmax"></div><svg role="group" aria-label="scores as bars"></svg><p></p>
    <label>divide by <input type="range" min="-1.4" max="2.8" step="0.01"><output></output></label>`;
  const [title, moments, svg, said, { children: [slider, output] }] = el.children;
  const far = 2 * Math.max(4, Math.ceil(strongest(given)));
  const go = (to) => {
    const from = t;
    stop?.();
    stop = glide(1000 * Math.abs(to - from), (s) => {
      t = from + (to - from) * s;
      draw();
    });
  };
  const back = button("Back to the start", () => { scores = [...given]; divisor = root; draw(); });
  moments.append(...MOMENTS.map((name, k) => button(name, () => go(k))), back);
  const move = (j, score) => { scores[j] = Math.round(clamp(score, -far, far) * 100) / 100; draw(); };
  svg.innerHTML = `<path class="rule"/>${words.map((word) => `<g class="bar" tabindex="0" role="slider"
    aria-label="score of ${word}"><rect class="hit"/><rect class="ink" rx="2"/><text class="number"
    y="${WORDS}"/><text class="word" y="${WORDS + 18}">${word}</text></g>`).join("")}`;
  const bars = [...svg.querySelectorAll("g")];
  bars.forEach((bar, j) => {
    onDrag(bar, (event) => {
      event.preventDefault(); bar.focus({ preventScroll: true });
      return { score: scores[j], unit };
    }, ({ score, unit }, right, up) => move(j, score + (Math.abs(right) > Math.abs(up) ? right : up) / unit));
    onKeys(bar, (key, { shiftKey }) => {
      const by = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1 }[key], moved = scores[j] !== given[j];
      if (by) move(j, scores[j] + by * far / 40 * (shiftKey ? 5 : 1));
      if (key === "Escape") move(j, given[j]);
      return Boolean(by || key === "Escape" && moved);
    });
  });
  slider.oninput = () => { // sticks at the root
    divisor = Math.exp(slider.value);
    if (Math.abs(Math.log(divisor / root)) < 0.06) divisor = root;
    draw();
  };

  function draw() {
    const now = leverAt(scores, divisor), [scaled, powers, weights] = now, shown = Math.round(t);
    const most = weights.indexOf(Math.max(...weights)), all = plain(sum(powers));
    const column = Math.min(90, wide / many), bends = ease(clamp(t)), lies = ease(clamp(t - 1));
    unit = DEEP / Math.max(2, ...scaled.map(Math.abs)) / divisor;
    const thin = []; // what no label has room under
    let reached = 4;
    bars.forEach((bar, j) => {
      const [hit, ink, number] = bar.children, left = 4 + column * j, tall = scaled[j] * unit * divisor;
      const high = tall + (weights[j] / weights[most] * UP - tall) * bends, long = weights[j] * (column * many - 8);
      const at = between([left + column * 0.2, BASE - Math.max(high, 0), column * 0.6, Math.max(Math.abs(high), 1.5)],
        [reached, BASE - LYING, Math.max(long - 1, 0.5), LYING], lies);
      set(ink, at);
      set(hit, lies > 0.5 && long > 3 ? [at[0], 0, at[2], WORDS + 24] : [left, 0, column, WORDS + 24]);
      reached += long;
      if (long <= 26) thin.push(`${words[j]} ${weights[j].toFixed(2)}`);
      for (const text of bar.querySelectorAll("text")) { // a label stands under its bar
        text.setAttribute("x", at[0] + at[2] / 2);
        text.style.opacity = lies < 0.5 || long > 26 ? 1 : 0;
      }
      number.textContent = plain(shown ? now[shown][j] : scores[j]);
      bar.setAttribute("aria-valuenow", scores[j]);
      bar.setAttribute("aria-valuetext", `${written(scores[j])}, weight ${weights[j].toFixed(2)}`);
    });
    svg.firstChild.setAttribute("d", `M0 ${BASE}H${column * many + 8}`);
    Object.entries({ viewBox: `0 0 ${wide} ${WORDS + 26}`, width: wide, height: WORDS + 26 })
      .forEach(([name, value]) => svg.setAttribute(name, value));
    title.textContent = shown < 2 ? "The query has these scores. How much will it take from each?"
      : `It attends most to “${words[most]}”: ${Math.round(100 * weights[most])} %`;
    said.textContent = ["Take hold of a column and pull it up or down.",
      `exp of each score / ${written(divisor)}: all are positive, and a little more is much taller. Their sum: ${all}.`,
      `Divided by their sum, ${all}, they are 1 long end to end: the weights.`][shown];
    if (shown > 1 && thin.length) said.append(` Too thin for a name: ${thin.join(", ")}.`);
    [...moments.children].slice(0, -1).forEach((each, k) => { each.ariaPressed = String(k === shown); });
    back.disabled = `${scores}` === `${given}` && divisor === root;
    slider.value = Math.log(divisor); output.textContent = written(divisor);
    slider.setAttribute("aria-valuetext", output.textContent);
  }

  onKeys(el, () => false);
  const room = new ResizeObserver(() => {
    if (el.clientWidth) { wide = Math.min(540, el.clientWidth - 10); draw(); }
  });
  room.observe(el);
  return () => { stop?.(); room.disconnect(); };
}

const set = (part, values) =>
  ["x", "y", "width", "height"].forEach((name, k) => part.setAttribute(name, values[k].toFixed(2)));

export default answering(render);

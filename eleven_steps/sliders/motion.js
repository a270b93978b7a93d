// A step as motion: a slider from before to after, and a button that plays it once. On a phone the
// drawing is another one, with fewer numbers in a line.
function render({ model, el }) {
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  const drawings = [{ svg: model.get("svg"), ways: model.get("ways") }, model.get("on_phones")];
  el.classList.add("touch");
  el.innerHTML = `<div class="controls"><button type="button">Play</button><label>before ` +
    `<input type="range" min="0" max="1" value="0"> after</label></div><div></div>`;
  const [button, slider] = el.querySelectorAll("button, input"), holder = el.lastChild;
  slider.setAttribute("aria-label", "from before to after");
  let scene = null, room = null, frame = 0;
  const show = (t) => {
    slider.value = t;
    slider.setAttribute("aria-valuetext", t <= 0 ? "before" : t >= 1 ? "after" :
      `${Math.round(100 * t)} percent of the way`);
    button.textContent = t >= 1 ? "Play back" : "Play";
    pose(scene, t);
  };
  const lay = () => {
    const now = el.clientWidth - 2 * MARGIN;
    if (now === room || scene && now <= 0) return;
    room = now;
    holder.innerHTML = drawings[0].svg;
    const needs = holder.firstChild.viewBox.baseVal.width * LEGIBLE / 12;
    const { svg, ways } = drawings[room > 0 && room < needs ? 1 : 0];
    holder.innerHTML = svg;
    if (room > 0) fit(holder.firstChild, room);
    scene = prepare(holder, ways);
    show(Number(slider.value));
  };
  const stop = () => cancelAnimationFrame(frame);
  const play = () => {
    stop();
    const from = Number(slider.value), to = from >= 1 ? 0 : 1, start = performance.now();
    if (still.matches) return show(to);
    const next = (now) => {
      const share = Math.min((now - start) / 1800, 1);
      show(from + (to - from) * share);
      if (share < 1) frame = requestAnimationFrame(next);
    };
    frame = requestAnimationFrame(next);
  };
  const pace = () => { slider.step = still.matches ? 1 : 0.01; };
  button.addEventListener("click", play);
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  onKeys(el, () => false);
  still.addEventListener("change", pace);
  pace();
  lay();
  const forget = onRoom(el, lay);
  return () => { stop(); forget(); still.removeEventListener("change", pace); };
}

// Names change over in the middle: there is no moment without, and two would stand on one another.
const SHOWN = { before: (t) => t < 0.5, after: (t) => t >= 0.5 };

// What of a drawing moves, how far, and when: those that go the same way go together, one group
// after the other, so that an eye can follow.
function prepare(holder, ways) {
  const whither = ways.map(([x, y]) => `${x} ${y}`), groups = [...new Set(whither)];
  const last = Math.max(groups.length - 1, 1), wait = groups.length > 1 ? 0.6 : 0;
  const late = whither.map((way) => wait * (groups.indexOf(way) / last));
  return { holder, ways, wait, late, cells: [...holder.querySelectorAll(".moves")] };
}

// Place what moves, t of the way from before to after.
function pose({ holder, ways, wait, late, cells }, t) {
  cells.forEach((cell, i) => {
    const [x, y, wider = 1] = ways[i];
    const far = Math.min(Math.max((t - late[i]) / (1 - wait), 0), 1);
    const wide = 1 + (wider - 1) * far;
    cell.setAttribute("transform", `translate(${x * far} ${y * far}) scale(${wide} 1)`);
    cell.classList.toggle("there", far === 1);
  });
  for (const [name, shown] of Object.entries(SHOWN)) {
    for (const each of holder.querySelectorAll(`.${name}`)) {
      each.setAttribute("opacity", Number(shown(t)));
    }
  }
}

export default { render };

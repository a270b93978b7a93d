// A picture with handles: they follow a pointer or the arrow keys at once, and Python draws what
// follows from where they are.

const HOW = "Drag a ring, or go to one with Tab and press the arrow keys.";
const ALONE = "Without a kernel each ring moves alone, in steps.";
const RUN = " Run the cell to move them freely."; // where there is one
const PATIENCE = 2000; // milliseconds until a kernel that does not answer counts as none
const WAYS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

function render({ model, el }) {
  const drawn = made("div"), plane = made("div", { className: "plane" }, drawn);
  const place = made("div", {}, plane), help = made("span");
  const it = {
    plane, drawn, help, live: false, places: model.get("places"),
    handles: model.get("handles").map((each) => ({ ...each })),
  };
  const start = it.handles.map(({ value }) => value);
  const { values = start, svg = model.get("svg") } = model.get("drawn"); // another view may have moved
  it.handles.forEach((each, k) => { each.value = values[k]; });
  it.back = button("Back to the start", () => {
    follow(it, { values: start, svg: model.get("svg"), says: model.get("handles").map(({ says }) => says) });
    it.ask();
    it.handles[0].node.focus();
  });
  el.classList.add("live", "drag");
  el.replaceChildren(place, made("p", { className: "help" }, help, it.back));
  it.lay = (svg) => {
    if (svg) drawn.innerHTML = svg;
    const drawing = drawn.firstChild, body = drawing.querySelector(":scope > g").children[1];
    it.top ??= shift(body)[1];
    if (el.clientWidth > 0) fit(drawing, el.clientWidth - 2 * MARGIN, place);
    it.deeper = shift(body)[1] - it.top; // where the title takes more lines
    for (const handle of it.handles) if (handle.node) show(it, handle);
    const moved = (each, k) => each.value.some((at, i) => Math.abs(at - start[k][i]) > 0.005);
    it.back.disabled = !it.handles.some(moved);
  };
  it.lay(svg);
  // ipywidgets sends one question at a time, then the newest of those that came meanwhile.
  let late, turn;
  it.ask = () => {
    turn = Math.random(); // other views of this picture may ask as well
    clearTimeout(late);
    late = setTimeout(() => alive(it, false), PATIENCE);
    model.set("asked", { turn, values: it.handles.map(({ value }) => value) });
    model.save_changes();
  };
  model.on("change:drawn", () => {
    const drawn = model.get("drawn");
    clearTimeout(late);
    follow(it, drawn, drawn.turn !== turn);
    alive(it, true);
  });
  for (const handle of it.handles) grip(it, handle);
  it.ask();
  return onRoom(el, () => it.lay());
}

// Make a handle and let it listen.
function grip(it, handle) {
  const { low, high } = handle, free = handle.free = [0, 1].filter((k) => low[k] < high[k]);
  const across = free.length > 1 ? "" : free[0] ? "upright" : "level";
  const node = handle.node = made("div", {
    className: `handle ${across}`, tabIndex: 0, role: "slider", ariaLabel: handle.name,
    ariaValueMin: low[free[0]], ariaValueMax: high[free[0]],
    ariaOrientation: across === "upright" ? "vertical" : null,
  });
  node.setAttribute("aria-valuetext", handle.says);
  it.plane.append(node);
  listen(it, handle);
  show(it, handle);
}

function listen(it, handle) {
  const { node, free, low, high, step, unit } = handle;
  onDrag(node, () => {
    node.classList.add("held");
    return handle.value;
  }, (held, ...far) => {
    const svg = it.drawn.firstChild;
    const scale = svg.viewBox.baseVal.width / svg.getBoundingClientRect().width;
    move(it, handle, held.map((each, k) => each + far[k] * scale / unit[k]));
  }, () => node.classList.remove("held"));
  onKeys(node, (key) => {
    const way = WAYS[key], end = { Home: low, End: high }[key];
    if (!way && !end) return false;
    // Along its one axis a handle takes each pair of arrows for less and more.
    const far = way && (free.length > 1 ? way : way.map(() => way[0] + way[1]));
    const { length } = it.places[it.handles.indexOf(handle)], gaps = length ** (1 / free.length) - 1;
    const by = (k) => (it.live ? step : (high[k] - low[k]) / gaps);
    move(it, handle, end ?? handle.value.map((each, k) => each + far[k] * by(k)));
    return true;
  });
}

// Move a handle, no further than it goes, and ask what follows.
function move(it, handle, wanted) {
  if (!it.live) return alone(it, handle, wanted);
  const { low, high } = handle;
  handle.value = wanted.map((each, k) =>
    Math.round(100 * Math.min(Math.max(each, low[k]), high[k])) / 100);
  show(it, handle);
  it.ask();
}

// Without a kernel: the nearest of the places that were drawn of it, the other handles at rest.
function alone(it, handle, wanted) {
  const i = it.handles.indexOf(handle), { low, high } = handle;
  const far = ({ values }) => values[i].reduce((sum, at, k) =>
    sum + ((at - wanted[k]) / (high[k] - low[k] || 1)) ** 2, 0);
  follow(it, it.places[i].reduce((one, other) => (far(other) < far(one) ? other : one)));
}

// Place a handle over the drawing, whatever size that has.
function show(it, { node, value, origin, unit, free }) {
  const { width, height } = it.drawn.firstChild.viewBox.baseVal;
  node.style.left = `${100 * (origin[0] + value[0] * unit[0]) / width}%`;
  node.style.top = `${100 * (it.deeper + origin[1] - value[1] * unit[1]) / height}%`;
  node.ariaValueNow = value[free[0]];
}

// Show what was drawn, and where handles are then, unless they have moved on meanwhile.
function follow(it, { values, svg, says }, pending = false) {
  it.handles.forEach((handle, i) => {
    if (!pending) handle.value = values[i];
    handle.node.setAttribute("aria-valuetext", says[i]);
  });
  it.lay(svg);
}

// Say whether handles can be dragged freely.
function alive(it, live) {
  it.live = live;
  it.help.textContent = live ? HOW : ALONE + (document.querySelector(".jp-NotebookPanel") ? RUN : "");
}

export default answering(render);

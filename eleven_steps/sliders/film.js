// A film: sliders over pictures that were all drawn when the cell ran. The page chooses among them,
// whether a kernel listens or not.

function render({ model, el }) {
  const [names, start, positions] = ["names", "start", "positions"].map((each) => model.get(each));
  const pictures = model.get("svgs").map(parse);
  const chosen = () => names.map((name) => model.get(name));
  const move = (k, value) => {
    const now = chosen(), moved = nearest(positions, [...now.slice(0, k), value], now, start);
    names.forEach((name, i) => model.set(name, moved[i]));
    model.save_changes();
  };
  const sliders = model.get("labels").map((label, k) => slider(label, (value) => move(k, value)));
  const panel = made("div", { className: "sliders" }, ...sliders.map(({ row }) => row));
  const place = made("div");
  el.classList.add("live", "film");
  el.replaceChildren(panel, place);
  let room = 0;
  const show = () => {
    const now = chosen(), at = positions.findIndex((each) => same(each, now));
    if (at < 0) return; // one slider has moved, those after it are still to follow
    sliders.forEach((each, k) => each.show(after(positions, now.slice(0, k)), now[k]));
    draw(at);
  };
  const draw = (at) => {
    place.replaceChildren(pictures[at]);
    if (room) fit(pictures[at], room, place);
  };
  for (const name of names) model.on(`change:${name}`, show);
  show();
  onKeys(panel, () => false);
  const forget = onRoom(el, (now) => {
    if (now === room) return;
    room = now;
    steady([place], pictures.keys(), draw);
    show();
  });
  return () => {
    forget();
    for (const name of names) model.off(`change:${name}`, show);
  };
}

// A slider with its label and its value. It counts through the values it has at the moment; where
// there is but one, it says so and rests.
function slider(label, moved) {
  const id = `film-${Math.random().toString(36).slice(2)}`;
  let values = [];
  const input = made("input", { type: "range", id, min: 0, oninput: () => moved(values[input.value]) });
  const output = made("output", { ariaLive: "off" }); // read aloud with the slider
  const name = made("label", { htmlFor: id, textContent: label });
  output.htmlFor = id;
  return {
    row: made("div", {}, name, input, output),
    show(offered, value) {
      values = offered;
      input.max = values.length - 1;
      input.value = values.indexOf(value);
      input.disabled = values.length === 1;
      input.title = input.disabled ? "the only value where the others stand" : "";
      input.style.setProperty("--last", Math.max(1, input.max));
      input.setAttribute("aria-valuetext", value);
      output.textContent = value;
    },
  };
}

const parse = (svg) => made("template", { innerHTML: svg }).content.firstChild;

// What the next slider offers where those before it stand so.
function after(positions, before) {
  const offered = positions.filter((each) => same(each.slice(0, before.length), before));
  return [...new Set(offered.map((each) => each[before.length]))];
}

// The position that begins so, each further slider at the first of its wishes that it has.
function nearest(positions, begun, ...wishes) {
  if (begun.length === positions[0].length) return begun;
  const offered = after(positions, begun), wanted = wishes.map((wish) => wish[begun.length]);
  const next = wanted.find((value) => offered.includes(value)) ?? offered[0];
  return nearest(positions, [...begun, next], ...wishes);
}

const same = (one, other) => one.every((value, i) => value === other[i]);

export default answering(render);

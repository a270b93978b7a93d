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
  const place = document.createElement("div"), panel = document.createElement("div");
  const sliders = model.get("labels").map((label, k) => slider(label, (value) => move(k, value)));
  panel.className = "sliders";
  panel.append(...sliders.map(({ row }) => row));
  el.classList.add("film");
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
    place.style.minHeight = "";
    const heights = tallest(pictures, room).map((at) => { draw(at); return place.offsetHeight; });
    place.style.minHeight = `${Math.max(...heights)}px`; // so that nothing below jumps
    show();
  });
  return () => {
    forget();
    for (const name of names) model.off(`change:${name}`, show);
  };
}

// A slider with its label and its value. It counts through the values it has at the moment; where
// there is but one, there is nothing to move.
function slider(label, moved) {
  const row = document.createElement("div"), id = `film-${Math.random().toString(36).slice(2)}`;
  row.innerHTML = `<label for="${id}"></label><input type="range" id="${id}" min="0">` +
    `<output for="${id}" aria-live="off"></output>`; // read aloud with the slider
  const [name, input, output] = row.children;
  name.textContent = label;
  let values = [];
  input.addEventListener("input", () => moved(values[input.value]));
  return {
    row,
    show(offered, value) {
      values = offered;
      input.max = values.length - 1;
      input.value = values.indexOf(value);
      input.hidden = values.length === 1;
      input.style.setProperty("--last", input.max);
      input.setAttribute("aria-valuetext", value);
      output.textContent = value;
    },
  };
}

function parse(svg) {
  const holder = document.createElement("template");
  holder.innerHTML = svg;
  return holder.content.firstChild;
}

// Which of some pictures are the highest in so much room, each as it is laid out there: one of those
// that fit, and one of those to be scrolled sideways, above which more is said.
function tallest(pictures, room) {
  const aside = document.createElement("div"), best = {};
  pictures.forEach((svg, at) => {
    fit(svg, room, aside);
    const { width, height } = svg.viewBox.baseVal;
    const high = height * Math.min(Math.max(room, least(svg)) / width, 1);
    if (!(best[aside.className]?.high >= high)) best[aside.className] = { at, high };
  });
  return Object.values(best).map(({ at }) => at);
}

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

export default { render };

// A film: sliders over pictures that were all drawn when the cell ran. The page chooses among them,
// whether a kernel listens or not.

function render({ model, el }) {
  const [names, moves, positions] = ["names", "moves", "positions"].map((name) => model.get(name));
  const pictures = model.get("svgs").map(parse);
  const move = (to) => {
    names.forEach((name, k) => model.set(name, positions[to][k]));
    model.save_changes();
  };
  const sliders = model.get("labels").map((label) => slider(label, move));
  const panel = made("div", { className: "sliders" }, ...sliders.map(({ row }) => row));
  const place = made("div");
  el.classList.add("live", "film");
  el.replaceChildren(panel, place);
  let room = 0;
  const show = () => {
    const at = positions.findIndex((position) => names.every((name, k) => model.get(name) === position[k]));
    if (at < 0) return; // one slider has moved, those after it are still to follow
    sliders.forEach((control, k) => control.show(moves[at][k], at, positions[at][k]));
    draw(at);
  };
  const draw = (at) => {
    place.replaceChildren(pictures[at]);
    if (room) scroll(pictures[at], room, place);
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

// A slider with its label and its value. It counts through the positions that it leads to at the
// moment; where there is but one, it says so and rests.
function slider(label, moved) {
  const id = `film-${Math.random().toString(36).slice(2)}`;
  let offered = [];
  const input = made("input", { type: "range", id, min: 0, oninput: () => moved(offered[input.value]) });
  const output = made("output", { ariaLive: "off" }); // read aloud with the slider
  const name = made("label", { htmlFor: id, textContent: label });
  output.htmlFor = id;
  return {
    row: made("div", {}, name, input, output),
    show(positions, at, value) {
      offered = positions;
      input.max = offered.length - 1;
      input.value = offered.indexOf(at);
      input.disabled = offered.length === 1;
      input.title = input.disabled ? "the only value where the others stand" : "";
      input.setAttribute("aria-valuetext", value);
      output.textContent = value;
    },
  };
}

// A picture shrinks with its place until its smallest text is 11 pixels high; then it is scrolled sideways.
function scroll(svg, room, place) {
  const sizes = [...svg.querySelectorAll("[font-size]")].map((text) => parseFloat(text.getAttribute("font-size")));
  const least = svg.viewBox.baseVal.width * Math.min(LEGIBLE / Math.min(...sizes), 1), wide = room < Math.floor(least);
  place.style.setProperty("--least", `${least}px`);
  place.className = wide ? "sideways" : "";
  place.role = wide ? "group" : null; place.ariaLabel = wide ? "A wide picture, to scroll sideways" : null;
  if (wide) place.tabIndex = 0;
  else place.removeAttribute("tabindex");
}

const LEGIBLE = 11; // pixels
const parse = (svg) => made("template", { innerHTML: svg }).content.firstChild;

export default answering(render);

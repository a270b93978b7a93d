// A step as motion: a slider from before to after, and a button that plays it once.
function render({ model, el }) {
  const ways = model.get("ways"), svg = model.get("svg");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  el.classList.add("touch");
  el.innerHTML = `<div class="controls"><button type="button">Play</button>` +
    `<label>before <input type="range" min="0" max="1" value="0"> after</label></div>${svg}`;
  const [button, slider] = el.querySelectorAll("button, input");
  const cells = [...el.querySelectorAll(".moves")];
  const fading = { before: (t) => Math.max(1 - 3 * t, 0), after: (t) => Math.max(3 * t - 2, 0) };
  // Those that go the same way go together, one group after the other, so that an eye can follow.
  const whither = ways.map(([x, y]) => `${x} ${y}`), groups = [...new Set(whither)];
  const last = Math.max(groups.length - 1, 1), wait = groups.length > 1 ? 0.6 : 0;
  const late = whither.map((way) => wait * (groups.indexOf(way) / last));
  slider.setAttribute("aria-label", "from before to after");
  const pace = () => { slider.step = still.matches ? 1 : 0.01; };
  const show = (t) => {
    slider.value = t;
    slider.setAttribute("aria-valuetext", t <= 0 ? "before" : t >= 1 ? "after" :
      `${Math.round(100 * t)} percent of the way`);
    cells.forEach((cell, i) => {
      const [x, y, wider = 1] = ways[i];
      const far = Math.min(Math.max((t - late[i]) / (1 - wait), 0), 1);
      const wide = 1 + (wider - 1) * far;
      cell.setAttribute("transform", `translate(${x * far} ${y * far}) scale(${wide} 1)`);
      cell.classList.toggle("there", far === 1);
    });
    for (const [name, fade] of Object.entries(fading)) {
      el.querySelectorAll(`.${name}`).forEach((each) => each.setAttribute("opacity", fade(t)));
    }
    button.textContent = t >= 1 ? "Play back" : "Play";
  };
  let frame = 0;
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
  button.addEventListener("click", play);
  slider.addEventListener("input", () => { stop(); show(Number(slider.value)); });
  el.addEventListener("keydown", (event) => {
    if (!event.ctrlKey && !event.metaKey && event.key !== "Tab") event.stopPropagation();
  });
  still.addEventListener("change", pace);
  pace();
  show(0);
  return () => { stop(); still.removeEventListener("change", pace); };
}

export default { render };

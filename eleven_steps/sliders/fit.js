// Pictures in a narrow place: no text gets smaller than 11 pixels. Python says of each part of a
// picture how large it is, and whether parts lie beside or below each other. Where they do not fit
// beside each other they are laid below each other; what is still too wide is scrolled sideways.

const MARGIN = 5; // around a picture that answers, as in the style
const LEGIBLE = 11, LINE = 16, TITLE = 18; // pixels: a text, its line, a line of the title
const WORD = 90; // pixels: where there is less room a text is not broken
const BOLD = 9; // pixels: a letter of the title, in a wide font

// Lay a picture out for a place so many pixels wide; one that says no sizes is scrolled as it is.
function fit(svg, room, holder = svg.parentElement) {
  (svg.undo ?? []).reverse().forEach((back) => back());
  svg.undo = [];
  if (room < least(svg) && svg.querySelector(":scope > g > :nth-child(2)[data-size]")) lay(svg, room);
  scroll(svg, room, holder);
}

// How wide a picture has to be, so that its smallest text can be read.
function least(svg) {
  const sizes = [...svg.querySelectorAll("[font-size]")];
  const smallest = Math.min(...sizes.map((text) => parseFloat(text.getAttribute("font-size"))));
  return svg.viewBox.baseVal.width * Math.min(LEGIBLE / smallest, 1);
}

// Let a picture be scrolled sideways where it is still too wide.
function scroll(svg, room, place) {
  const wide = room < Math.floor(least(svg));
  place.style.setProperty("--least", `${least(svg)}px`);
  place.classList.toggle("sideways", wide);
  const says = { tabindex: 0, role: "group", "aria-label": "A wide picture, to scroll sideways" };
  for (const [name, value] of Object.entries(says)) {
    if (wide) place.setAttribute(name, value);
    else place.removeAttribute(name);
  }
}

// Call for the room that a picture has, now and whenever it changes; return how to stop that.
function onRoom(el, lay) {
  const watch = new ResizeObserver(() => { if (el.clientWidth) lay(el.clientWidth - 2 * MARGIN); });
  watch.observe(el);
  return () => watch.disconnect();
}

function lay(svg, room) {
  const [title, body] = svg.querySelector(":scope > g").children;
  const [x, y] = shift(body), deeper = breakLine(svg, title, room / BOLD, TITLE);
  const [wide, high] = layPart(svg, body, room - 2 * x);
  const width = Math.max(wide + 2 * x, Math.min(svg.viewBox.baseVal.width, room));
  const height = svg.viewBox.baseVal.height + deeper + high - size(body)[1];
  put(svg, body, "transform", `translate(${x} ${y + deeper})`);
  put(svg, svg, "viewBox", `0 0 ${width} ${height}`);
  put(svg, svg, "width", width);
  put(svg, svg, "height", height);
}

// Lay what is inside a part, and return how large it is then.
function layPart(svg, part, room) {
  const [width, height] = size(part), all = [...part.querySelectorAll("[data-lay]")];
  const inner = all.filter((group) => group.parentNode.closest("[data-lay], [data-size]") === part);
  if (!inner.length) {
    const [first, ...more] = part.children;
    if (width <= room || room < WORD || more.length || first?.tagName !== "text") return [width, height];
    const letters = first.textContent.length * room / width;
    return [room, height + breakLine(svg, first, letters, LINE)];
  }
  const sizes = inner.map((group) => {
    const [x, y] = shift(group.parentNode === part ? group : group.parentNode);
    const [wide, high] = layGroup(svg, group, room - x);
    return [x + wide, y + high];
  });
  return [0, 1].map((way) => Math.max(...sizes.map((extent) => extent[way])));
}

// Lay the parts of a group in lines, as many as are needed.
function layGroup(svg, group, room) {
  const [way, number] = group.dataset.lay.split(" "), gap = Number(number);
  let x = 0, y = 0, line = 0, width = 0;
  for (const part of group.children) {
    const own = Math.min(size(part)[0] || room, room); // no wider than it was
    const [wide, high] = layPart(svg, part, own);
    if (part.previousSibling && (way === "below" || x + wide > room)) {
      y += line + (way === "below" ? gap : gap / 2);
      x = line = 0;
    }
    put(svg, part, "transform", `translate(${x} ${y})`);
    width = Math.max(width, x + wide);
    line = Math.max(line, high);
    x += wide + gap;
  }
  return [width, y + line];
}

// Cut a text where a line may end: at spaces, but not inside a shape, = (1, 2, 3, 3), if it fits.
function pieces(whole, letters) {
  const all = whole.replace("= (", "=\u00a0(").split(/ (?![^()]*\))/);
  return all.flatMap((piece) => piece.length > letters ? piece.split(" ") : piece);
}

// Break a text into lines of so many letters; return how much higher it is.
function breakLine(svg, text, letters, deep) {
  const whole = text.textContent, lines = [];
  for (const word of pieces(whole, letters)) {
    const longer = `${lines.at(-1)} ${word}`;
    if (lines.length && longer.length <= letters) lines[lines.length - 1] = longer;
    else lines.push(word);
  }
  if (lines.length === 1) return 0;
  svg.undo.push(() => { text.textContent = whole; });
  text.replaceChildren(...lines.map((line, k) => {
    const part = document.createElementNS(svg.namespaceURI, "tspan");
    part.setAttribute("x", text.getAttribute("x"));
    part.setAttribute("dy", k && deep);
    part.textContent = `${line} `;
    return part;
  }));
  return deep * (lines.length - 1);
}

// Set an attribute so that it can be set back.
function put(svg, element, name, value) {
  const before = element.getAttribute(name);
  svg.undo.push(() => {
    if (before === null) element.removeAttribute(name);
    else element.setAttribute(name, before);
  });
  element.setAttribute(name, value);
}

const size = (part) => part.dataset.size.split(" ").map(Number);
const shift = (part) =>
  part.getAttribute("transform")?.match(/-?[\d.]+/g).map(Number) ?? [0, 0];

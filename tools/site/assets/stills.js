// What is too wide for a narrow page. Stills: the drawing itself takes the place of its image, so
// that fit.js can lay it out where the image would be too small to read. All else that is scrolled
// sideways is reached by Tab, and the arrow keys scroll it.
const DRAWN = "data:image/svg+xml;base64,";

for (const image of document.querySelectorAll(`main img[src^="${DRAWN}"]:not(.jupyter-widget)`)) {
  const place = document.createElement("div");
  place.className = "still";
  (image.closest(".wide") ?? image).replaceWith(place);
  place.append(image);
  let room = 0;
  new ResizeObserver(() => {
    if (!place.clientWidth || place.clientWidth === room) return; // 0 in what is folded
    room = place.clientWidth;
    const [, size] = image.style.minWidth.match(/([\d.]+)px/) ?? [0, 0];
    image.hidden = room < Number(size);
    if (image.hidden && !image.nextSibling) image.insertAdjacentHTML("afterend", drawing(image));
    const svg = image.nextSibling;
    if (!svg) return;
    svg.style.display = image.hidden ? "" : "none";
    fit(svg, room);
  }).observe(place);
}

function drawing(image) {
  const bytes = Uint8Array.from(atob(image.src.slice(DRAWN.length)), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(bytes);
}

const SAYS = "Wider than the page: the arrow keys scroll it";
const scrolling = "main :is([style*='overflow-x:auto'], table, p, .jp-RenderedHTML, .jp-RenderedMarkdown, pre)";
new ResizeObserver(() => {
  for (const part of document.querySelectorAll(scrolling)) {
    const wide = part.scrollWidth > part.clientWidth + 1 &&
      /auto|scroll/.test(getComputedStyle(part).overflowX);
    if (wide) {
      if (!part.ariaLabel) part.ariaLabel = SAYS;
      if (!part.role && part.tagName !== "TABLE") part.role = "group";
      part.tabIndex = 0;
    } else if (part.tabIndex === 0) {
      part.removeAttribute("tabindex");
      if (part.ariaLabel === SAYS) part.ariaLabel = part.role = null;
    }
  }
}).observe(document.querySelector("main"));

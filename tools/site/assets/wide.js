// What is too wide for a narrow page, and is scrolled sideways, is reached by Tab: the arrow keys scroll it.
const SAYS = "Wider than the page: the arrow keys scroll it";
const scrolling = "main :is(.wide, [style*='overflow-x:auto'], table, p, .jp-RenderedHTML, .jp-RenderedMarkdown, pre)";
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

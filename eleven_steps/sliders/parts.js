// What the pages of pictures that answer are made of.

const MARGIN = 5; // pixels around a picture that answers, as in the style

// An element with its properties and what is inside it.
function made(tag, properties = {}, ...inside) {
  const part = Object.assign(document.createElement(tag), properties);
  part.append(...inside);
  return part;
}

const button = (text, act, properties = {}) =>
  made("button", { type: "button", textContent: text, onclick: act, ...properties });

// Give parts the room that each of them needs at most in some states, so that nothing jumps.
function steady(parts, states, show) {
  const high = parts.map(() => 0);
  for (const part of parts) part.style.minHeight = "";
  for (const state of states) {
    show(state);
    parts.forEach((part, k) => { high[k] = Math.max(high[k], part.getBoundingClientRect().height); });
  }
  parts.forEach((part, k) => { part.style.minHeight = `${high[k]}px`; });
}

// Call for the room that a picture has, now and whenever it changes; return how to stop that.
function onRoom(el, lay) {
  const watch = new ResizeObserver(() => { if (el.clientWidth) lay(el.clientWidth - 2 * MARGIN); });
  watch.observe(el);
  return () => watch.disconnect();
}

// The tables of a tensor; what differs from the right one is framed, with the right number under it.
function tables(title, all, right) {
  return made("figure", { className: "tables" }, ...all.map(({ name, rows, differs }, k) => {
    const table = made("table");
    table.createCaption().textContent = [title, name].filter(Boolean).join(", ");
    rows.forEach((row, i) => table.append(made("tr", {}, ...row.map((text, j) =>
      made("td", { className: differs[i][j] ? "differs" : "" }, text,
        ...(right && differs[i][j] ? [made("small",
          { textContent: (right[k].rows[i][j] === text ? "≈ " : "") + right[k].rows[i][j] })] : []))))));
    return table;
  }));
}

// How a picture listens to its reader: to keys, to what is dragged, to what is pointed at and pinned.

// Give a part the keys that are typed in it; "keyed" says whether one asked for anything.
function onKeys(part, keyed) {
  part.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // a letter typed here is no command to the notebook
    if (keyed(event.key, event)) event.preventDefault();
  });
}

// Let a part be dragged by one finger at a time: "begin" returns what is held, or nothing, "move"
// gets it and how far it is to the right and up.
function onDrag(part, begin, move, end = () => {}) {
  let held = null;
  part.addEventListener("pointerdown", (event) => {
    if (event.button || held && held.id !== event.pointerId) return;
    const what = begin(event);
    if (!what) return;
    held = { what, id: event.pointerId, x: event.clientX, y: event.clientY };
    part.setPointerCapture(held.id);
  });
  part.addEventListener("pointermove", (event) => {
    if (held?.id !== event.pointerId) return;
    move(held.what, event.clientX - held.x, held.y - event.clientY);
  });
  part.addEventListener("lostpointercapture", (event) => {
    if (held?.id !== event.pointerId) return;
    held = null;
    end();
  });
}

// Let a board's parts be pointed at and pinned. "it" holds the board, its words, how to show a part,
// and, where there is one, the part shown at rest; "find" returns the part under a pointer, null for
// none, undefined if what is shown stays; "keyed" is as above, for all keys but those that pin.
function onPoint(it, find, keyed) {
  const { board, words } = it;
  const point = (part) => {
    if (!it.pinned && (part ?? it.rest ?? null) !== it.current) turnTo(it, part);
  };
  board.addEventListener("pointermove", (event) => {
    const part = event.pointerType === "touch" ? undefined : find(event);
    if (part !== undefined) point(part);
  });
  board.addEventListener("pointerleave", () => point(null));
  board.addEventListener("click", (event) => {
    const part = find(event);
    if (part !== undefined) press(it, part);
  });
  // Where a mouse points, everything would be read aloud; with the keys, what is asked for.
  const aloud = (how) => { words.ariaLive = how ? "polite" : "off"; };
  board.addEventListener("focusin", (event) => aloud(event.target.matches(":focus-visible")));
  board.addEventListener("focusout", (event) => {
    if (board.contains(event.relatedTarget)) return;
    aloud(false);
    point(null);
  });
  onKeys(board, (key, event) => {
    aloud(true);
    if (keyed(key, event)) return true;
    if (key === "Escape") pin(it, null);
    else if (key === "Enter" || key === " ") press(it, it.current);
    else return false;
    return true;
  });
}

function turnTo(it, part) {
  it.current = part ?? it.rest ?? null;
  it.show(it.current);
}

// Pin a part, or free all.
function pin(it, part) {
  it.pinned = part !== null;
  turnTo(it, part);
}

// Pin a part; one that is pinned already is freed, or does what it can do.
function press(it, part) {
  if (!it.pinned || part !== it.current) pin(it, part);
  else if (it.again) it.again();
  else pin(it, null);
}

// What a module exports. In JupyterLab Shift and Enter goes on to the cell below and scrolls there, past
// the picture that has just been run: it is brought back whole, or from its top where it is too high.
const answering = (render) => ({
  render(view) {
    const end = render(view), { el } = view;
    const watch = new ResizeObserver(() => {
      if (!el.clientHeight) return;
      watch.disconnect();
      const cell = el.closest(".jp-Cell"), room = el.closest(".jp-WindowedPanel-outer");
      if (!room || !cell.nextElementSibling?.matches(".jp-mod-active")) return;
      el.scrollIntoView({ block: el.clientHeight > room.clientHeight ? "start" : "nearest" });
    });
    watch.observe(el);
    return end;
  },
});

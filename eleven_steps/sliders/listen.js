// How a picture listens to its reader: to keys, and to what is dragged; and how it moves.

// Give a part the keys that are typed in it; "keyed" says whether one asked for anything.
function onKeys(part, keyed) {
  part.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.key === "Tab") return;
    event.stopPropagation(); // a letter typed here is no command to the notebook
    if (keyed(event.key, event) || event.key === "Escape" && leaveTo(part)) event.preventDefault();
  });
}

// Escape leaves a picture where there is nothing to put back: to JupyterLab's cell.
function leaveTo(root) {
  const notebook = root.closest(".jp-Notebook");
  notebook?.focus({ preventScroll: true });
  return Boolean(notebook);
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

// Call act with the part of a time that has gone by, from 0 to 1, frame by frame; return how to stop.
function glide(time, act) {
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches || !time;
  let frame, began;
  const tick = (now) => {
    const s = still ? 1 : Math.min(1, Math.max(0, (now - (began ??= now)) / time));
    if (s < 1) frame = requestAnimationFrame(tick);
    act(s);
  };
  frame = requestAnimationFrame(tick);
  return () => cancelAnimationFrame(frame);
}

// JupyterLab makes the cell below active at Shift and Enter, and unfolds a heading to show it: on a folded
// heading the key goes on to the next cell in sight instead. What is run does not wait for anything.
function pastFolds(event) {
  const notebook = event.key === "Enter" && event.shiftKey && event.target.closest?.(".jp-Notebook");
  if (!notebook || !notebook.querySelector(".live") ||
    !notebook.querySelector(".jp-Cell.jp-mod-active:has(.jp-showHiddenCellsButton)")) return;
  event.preventDefault(); event.stopImmediatePropagation();
  event.target.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", keyCode: 40, bubbles: true }));
}

// What a module exports. In JupyterLab Shift and Enter goes on to the cell below and scrolls there, past
// the picture that has just been run: it is brought back whole, or from its top where it is too high.
const answering = (render) => ({
  render(view) {
    const end = render(view), { el } = view;
    window.pastFolds ??= addEventListener("keydown", pastFolds, true) ?? true; // once a page
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

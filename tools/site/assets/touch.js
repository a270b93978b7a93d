// Pictures whose numbers can be touched, in a page without a kernel. Their script and their state
// lie in the page; embed.js, which comes next, would look for the script elsewhere: it sees neither.
for (const kept of document.querySelectorAll('script[type$="jupyter.widget-state+json"]')) {
  const page = JSON.parse(kept.textContent);
  const views = [...document.querySelectorAll('script[type$="jupyter.widget-view+json"]')];
  for (const [id, { model_module, state }] of Object.entries(page.state)) {
    if (model_module !== "anywidget") continue;
    delete page.state[id];
    for (const view of views.filter((each) => JSON.parse(each.textContent).model_id === id)) {
      show(view.parentElement, state);
    }
  }
  kept.textContent = JSON.stringify(page);
}

async function show(place, state) {
  const el = document.createElement("div"), style = document.createElement("style");
  place.replaceChildren(el, style);
  style.textContent = state._css;
  const script = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const model = { get: (name) => state[name], on() {}, send() { throw new Error("no kernel"); } };
  (await import(script)).default.render({ model, el });
}

// What answers in a page without a kernel. Its script and its state lie in the page: each view gets
// what the script asks of a notebook.
for (const kept of document.querySelectorAll('script[type$="jupyter.widget-state+json"]')) {
  const models = JSON.parse(kept.textContent).state;
  for (const view of document.querySelectorAll('script[type$="jupyter.widget-view+json"]')) {
    const { model_id: id } = JSON.parse(view.textContent);
    if (models[id]) show(view.parentElement, models[id].state);
  }
}

async function show(place, state) {
  const el = document.createElement("div"), style = document.createElement("style");
  style.textContent = state._css;
  const script = URL.createObjectURL(new Blob([state._esm], { type: "text/javascript" }));
  const { default: { render } } = await import(script);
  place.replaceChildren(el, style);
  render({ model: modelOf(state), el });
}

// What a script asks and tells, where nobody else does.
function modelOf(state) {
  const heard = [];
  return {
    get: (name) => state[name],
    set(name, value) {
      if (state[name] === value) return;
      state[name] = value;
      for (const [what, hear] of heard) if (what === `change:${name}`) hear();
    },
    on: (what, hear) => heard.push([what, hear]),
    save_changes() {},
    send() { throw new Error("no kernel"); },
  };
}

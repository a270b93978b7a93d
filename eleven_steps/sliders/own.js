// A learner's own class: what is said of it, what it says once it is right, and the stage as far as it
// has come. Python worked everything out; this chooses.

function render({ model, el }) {
  const { says, tables: instead, voice, stage } = model.get("data");
  const told = made("p", { className: "says" }, ...says.split("`").map((text, k) =>
    (k % 2 ? made("code", { textContent: text }) : text)));
  const place = made("div");
  el.classList.add("live", "own");
  el.replaceChildren(told, place);
  if (voice) speak(place, voice, stage);
  const shown = new Stage(el, stage);
  el.append(...instead.map(({ title, all }) => tables(title, all)));
  return () => shown.leave();
}

// What the class says: sentences to tap, and each with its arcs, its next word, heads to switch off.
function speak(place, voice, { colours, names }) {
  let at = 0, off = null, query = voice[0].words.length - 1;
  const all = voice[0].states.slice(1).map(({ off: head }) => `${head}`), reads = made("div");
  const sentences = voice.map(({ words }, k) => button(`${words.join(" ")} …`, () => {
    at = k; query = words.length - 1;
    draw();
  }));
  const says = {
    read() {
      const { words, states } = voice[at], now = states.find((state) => `${state.off}` === `${off}`);
      return { words, names, query, next: now.next, before: off && states[0].next[0], heads: all.map((name, k) => {
        const [layer, head] = name.split(",").map(Number);
        return { layer, head, off: name === off, row: now.arcs[k]?.[query].slice(0, query + 1) };
      }) };
    },
    asked(i) { query = i; draw(); },
    switched(k) { off = off === all[k] ? null : all[k]; draw(); },
  };
  place.append(
    made("h4", { textContent: "Your class reads, with trained weights. Tap a sentence, a word, a head." }),
    made("div", { className: "sentences" }, ...sentences), reads);
  const sentence = new Sentence(reads, says, colours), draw = () => {
    sentences.forEach((button, k) => { button.ariaPressed = String(k === at); });
    sentence.draw();
  };
  onKeys(place, () => false);
  draw();
}

export default answering(render);

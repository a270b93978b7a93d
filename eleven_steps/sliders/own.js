// A learner's own class: what is said of it, what it says once it is right, and the stage as far as it
// has come. Python worked everything out; this chooses.

function render({ model, el }) {
  const { says, tables: instead, voice, stage } = model.get("data");
  const state = voice ? "right" : stage.own.state === "wrong" ? "wrong" : "open",
    sign = { right: "✓ ", wrong: "✗ ", open: "" }[state];
  const told = made("p", { className: `says verdict ${state}` }, sign, ...says.split("`").map((text, k) =>
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
      const heads = all.map((name, k) => {
        const [layer, head] = name.split(",").map(Number);
        return { layer, head, off: name === off, row: now.arcs[k]?.[query].slice(0, query + 1) };
      });
      return { words, names, query, heads, arcs: true, next: now.next, before: off && states[0].next[0] };
    },
    asked(i) { query = i; draw(); },
    switched(k) { off = off === all[k] ? null : all[k]; draw(); },
  };
  place.append(
    made("h4", { textContent: "Your class reads, with trained weights. Tap a sentence, a word, a head." }),
    made("div", { className: "sentences" }, ...sentences), reads,
    button("Save as a card to share", () => made("a", { download: "my_attention.svg",
      href: URL.createObjectURL(new Blob([cardOf(voice[at], colours)], { type: "image/svg+xml" })) }).click(),
        { className: "share-it" }));
  const sentence = new Sentence(reads, says, colours), draw = () => {
    sentences.forEach((button, k) => { button.ariaPressed = String(k === at); });
    sentence.draw();
  };
  onKeys(place, () => false);
  draw();
}

// What a class reads, as a picture of its own: the sentence, the arcs of its last word, the next word.
function cardOf({ words, states }, colours) {
  const { next: [[word, share]], arcs } = states[0], last = words.length - 1,
    heads = states.slice(1).map(({ off }) => off);
  const size = Math.min(30, 1100 / words.join(" ").length), text = words.concat(word),
    total = sum(text.map((each) => each.length + 1.4));
  const at = text.map((each, i) => 40 +
    640 * (sum(text.slice(0, i).map((other) => other.length + 1.4)) + each.length / 2) / total);
  const arc = ([layer, head], k) => Array.from(arcs[k]?.[last] ?? [], (weight, j) => {
    if (weight < 0.03 || j === last) return "";
    const [y, lift] = layer ? [178, 120 + 14 * head] : [140, -100 - 14 * head];
    const [from, to] = [at[last], at[j]];
    return `<path d="M${from} ${y}C${from} ${y + lift} ${to} ${y + lift} ${to} ${y}" fill="none" stroke="${
      colours[COLOUR(layer, head)]}" stroke-width="${1.5 + 7 * weight}" stroke-linecap="round" opacity="0.85"/>`;
  }).join("");
  const spelled = text.map((each, i) =>
    `<text x="${at[i]}" y="168" font-size="${size}" font-weight="${i > last ? 800 : 600}" fill="${
    i > last ? "#6a2be0" : "#1d1d22"}" text-anchor="middle">${each}</text>`).join("");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 360" width="720" height="360" role="img"
    font-family="system-ui, sans-serif" aria-label="My attention reads: ${words.join(" ")} ${word}">
    <rect width="720" height="360" rx="16" fill="#fbfaf6"/>
    <text x="40" y="44" font-size="17" fill="#5c6675">My attention reads:</text>${heads.map(arc).join("")}${spelled}
    <text x="40" y="330" font-size="15" fill="#5c6675">Next word: ${word}, ${share.toFixed(2)}.
      MultiHeadAttention in eleven steps.</text></svg>`;
}

export default answering(render);

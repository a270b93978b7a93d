// A learner's own class: what is said of it, what it says once it is right, and the stage as far as it
// has come. Python worked everything out; this chooses.

const ROOM = 26, HIGH = 84; // pixels: between words, and above or below them

function render({ model, el }) {
  const { says, tables: instead, voice, stage } = model.get("data");
  const told = made("p", { className: "says" }, ...says.split("`").map((text, k) =>
    (k % 2 ? made("code", { textContent: text }) : text)));
  const place = made("div");
  el.classList.add("live", "own");
  el.replaceChildren(told, place);
  if (voice) speak(place, voice, stage.colours);
  const shown = mount(el, stage);
  el.append(...instead.map(({ title, all }) => tables(title, all)));
  return () => shown.leave();
}

// What the class says: sentences to tap, arcs of the word that is pointed at, the next word, heads to
// switch off.
function speak(place, voice, colours) {
  let at = 0, off = null, query = voice[0].words.length - 1;
  const all = voice[0].states.slice(1).map(({ off: head }) => `${head}`);
  const next = made("div", { className: "next" });
  const reads = made("div", { className: "reads", tabIndex: 0, role: "group",
    ariaLabel: "Words: left and right choose one", innerHTML: '<svg role="img"></svg>' });
  const sentences = voice.map(({ words }, k) => button(`${words.join(" ")} …`, () => {
    at = k;
    query = words.length - 1;
    draw();
  }));
  const heads = all.map((head, k) => {
    const [layer, number] = head.split(",");
    const each = button(`layer ${layer}, head ${number}`, () => {
      off = off === head ? null : head;
      draw();
    });
    each.style.setProperty("--head", colours[k]);
    return each;
  });
  const ask = (word) => {
    query = Math.min(Math.max(word, 0), voice[at].words.length - 1);
    draw();
  };
  const draw = () => {
    const { words, states } = voice[at], now = states.find((each) => `${each.off}` === `${off}`);
    sentences.forEach((each, k) => { each.ariaPressed = String(k === at); });
    heads.forEach((each, k) => { each.ariaPressed = String(all[k] !== off); });
    const seen = now.arcs.map((each, k) => (all[k] === off ? null : each));
    arcs(reads.firstChild, words, seen, all, query, colours, ask);
    next.replaceChildren(...bars(now.next, off && states[0].next[0]));
    if (!now.arcs.some(Boolean)) next.append("No arcs: your code makes no weights that can be seen.");
  };
  place.append(
    made("h4", { textContent: "Your class reads, with trained weights. Tap a sentence, a word, a head." }),
    made("div", { className: "sentences" }, ...sentences), made("div", { className: "heads" }, ...heads),
    made("div", { className: "speech" }, reads, next));
  onKeys(place, () => false);
  onKeys(reads, (key) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[key];
    if (by) ask(query + by);
    return Boolean(by);
  });
  draw();
}

// The words, and the arcs from one of them: those of the first layer above, of the second below. A
// colour is of one head in one layer.
function arcs(svg, words, heads, all, query, colours, chosen) {
  const at = [];
  let x = 8;
  for (const word of words) {
    const wide = 10 * word.length;
    at.push(x + wide / 2);
    x += wide + ROOM;
  }
  const middle = HIGH + 12;
  const arc = (k) => (share, j) => {
    if (share < 0.03) return "";
    const [layer, head] = all[k].split(",").map(Number), way = layer ? 1 : -1, y = middle + way * 14;
    const far = Math.abs(at[query] - at[j]), own = j === query; // a word that reads itself has a loop
    const lift = y + way * (own ? 34 : Math.min(HIGH - 16, 18 + far / 5 + 7 * head) * 1.3);
    const [begin, from, to, end] = own ? [-7, -24, 24, 7].map((aside) => at[j] + aside)
      : [at[query], at[query], at[j], at[j]];
    return `<path d="M${begin} ${y} C${from} ${lift} ${to} ${lift} ${end} ${y}" fill="none" opacity="0.85"
      style="--head:${colours[k]}" stroke-width="${1 + 6 * share}"><title>layer ${layer}, head ${head}:
      ${words[j]} ${share.toFixed(2)}</title></path>`;
  };
  svg.setAttribute("viewBox", `0 0 ${x} ${2 * middle}`);
  svg.style.width = `${x}px`;
  svg.ariaLabel = `Whom ${words[query]} reads`;
  const layers = new Set(all.map((head) => Number(head.split(",")[0])));
  const label = (layer) => `<text class="layer" y="${layer ? 2 * middle - 3 : 12}">layer ${layer}</text>`;
  const written = (word, i) => `<text x="${at[i]}" y="${middle + 5}" text-anchor="middle"
    class="${i === query ? "query" : ""}">${word}</text>`;
  const lines = heads.flatMap((look, k) => look?.[query].map(arc(k)) ?? []);
  svg.innerHTML = [...[...layers].map(label), ...lines, ...words.map(written)].join("");
  svg.querySelectorAll("text:not(.layer)").forEach((text, i) => { text.onclick = () => chosen(i); });
}

// The likeliest next words, and how likely the best one was with all heads.
function bars(next, before) {
  return next.map(([word, share], k) => {
    const told = before && (before[0] === word || !k);
    const was = told ? `, all heads: ${before[0]} ${before[1].toFixed(2)}` : "";
    const bar = made("i");
    bar.style.setProperty("--share", share);
    const number = made("span", { textContent: share.toFixed(2) + was });
    return made("div", {}, made("b", { textContent: word }), bar, number);
  });
}

export default answering(render);

// A learner's own class: a tile for each step, the tables of one, and what the class says once it
// is right. Python worked everything out; this chooses.

const MARKS = { done: "✓", wrong: "✗", next: "next", dark: "" };
const STATES = { done: "right", wrong: "not right", next: "comes next", dark: "not looked at yet" };
const ROOM = 26, HIGH = 84; // pixels: between words, and above or below them

function render({ model, el }) {
  const { says, steps, voice, colours } = model.get("data");
  el.classList.add("own");
  el.innerHTML = `<p class="says"></p><div class="tiles" role="group" aria-label="The eleven steps"></div>
    <div class="sheet" aria-live="polite"></div><div class="voice"></div>`;
  const [told, tiles, sheet, speech] = el.children;
  told.append(...says.split("`").map((text, k) =>
    (k % 2 ? Object.assign(document.createElement("code"), { textContent: text }) : text)));
  const show = (k) => {
    [...tiles.children].forEach((tile, i) => { tile.ariaPressed = String(i === k); });
    sheet.replaceChildren(...opened(steps[k], k));
  };
  tiles.append(...steps.map((step, k) => tile(step, k, colours, () => show(k))));
  const wrong = steps.findIndex(({ state }) => state !== "done");
  show(wrong < 0 ? steps.length - 1 : wrong);
  onKeys(tiles, (key) => {
    const by = { ArrowRight: 1, ArrowLeft: -1 }[key], at = [...tiles.children].indexOf(document.activeElement);
    tiles.children[at + by]?.focus();
    return Boolean(by);
  });
  if (voice) speak(speech, voice, colours);
}

// A tile: a step's number, how far it is right, and its numbers as colours.
function tile({ name, state, tensors }, k, colours, chosen) {
  const button = document.createElement("button");
  button.type = "button";
  button.dataset.state = state;
  button.ariaLabel = `${k + 1} ${name}: ${STATES[state]}`;
  button.innerHTML = `<canvas width="72" height="44"></canvas><span>${k + 1} ${name}</span><b>${MARKS[state]}</b>`;
  const pen = button.firstChild.getContext("2d"), all = tensors.flatMap(({ tables }) => tables);
  all.forEach(({ name: called, rows, differs }, t) => {
    const left = 72 * t / all.length, wide = 72 / all.length - 3, w = wide / rows[0].length, h = 44 / rows.length;
    const head = /^head \d/.test(called) ? () => Number(called.slice(5)) : /^token/.test(called) ? (i) => i : () => -1;
    rows.forEach((row, i) => row.forEach((text, j) => {
      const size = Math.abs(Number(text.replace("−", "-"))) || 0; // −∞ and NaN stay empty
      pen.globalAlpha = 0.12 + 0.88 * Math.min(1, size);
      pen.fillStyle = colours[head(i)] ?? "#64748b";
      pen.fillRect(left + j * w, i * h, w - Math.min(1, w / 4), h - 1);
      if (!differs[i][j]) return;
      Object.assign(pen, { globalAlpha: 1, strokeStyle: "#c2255c", lineWidth: 2 });
      pen.strokeRect(left + j * w + 1, i * h + 1, w - 3, h - 3);
    }));
  });
  button.addEventListener("click", chosen);
  return button;
}

function opened({ name, letters, state, tensors }, k) {
  const title = document.createElement("h4"), box = document.createElement("div");
  title.textContent = `Step ${k + 1}, ${name}: ${STATES[state]}. ${letters} is expected.`;
  box.append(...tensors.map((each) => tables(`${each.name} ${each.shape}`, each.tables)));
  if (!tensors.length && state === "done") box.textContent = "Your code takes another way, without this tensor.";
  return [title, box];
}

// What the class says: sentences to tap, arcs of the word that is pointed at, the next word, heads to
// switch off.
function speak(place, voice, colours) {
  place.innerHTML = `<h4>Your class reads, with trained weights. Tap a sentence, a word, a head.</h4>
    <div class="sentences"></div><div class="heads"></div><div class="speech"><div
    class="reads"><svg role="img"></svg></div><div class="next"></div></div>`;
  const [, sentences, heads, { firstChild: { firstChild: svg }, lastChild: next }] = place.children;
  let at = 0, off = null, query = voice[0].words.length - 1;
  const all = voice[0].states.slice(1).map(({ off: head }) => head);
  const draw = () => {
    const { words, states } = voice[at], now = states.find((each) => `${each.off}` === `${off}`);
    for (const [k, button] of [...sentences.children].entries()) button.ariaPressed = String(k === at);
    for (const [k, button] of [...heads.children].entries()) button.ariaPressed = String(`${all[k]}` !== `${off}`);
    arcs(svg, words, now.arcs.map((each, k) => (`${all[k]}` === `${off}` ? null : each)), all, query, colours,
      (word) => { query = word; draw(); });
    next.replaceChildren(...bars(now.next, off && states[0].next[0]));
    if (!now.arcs.some(Boolean)) next.append("No arcs: your code makes no weights that can be seen.");
  };
  const button = (text, act, colour) => {
    const made = Object.assign(document.createElement("button"), { type: "button", textContent: text });
    if (colour) made.style.setProperty("--head", colour);
    made.addEventListener("click", () => { act(); draw(); });
    return made;
  };
  sentences.append(...voice.map(({ words }, k) => button(`${words.join(" ")} …`, () => {
    at = k;
    query = words.length - 1;
  })));
  heads.append(...all.map((head) => button(`layer ${head[0] + 1}, head ${head[1]}`, () => {
    off = `${off}` === `${head}` ? null : head;
  }, colours[head[1]])));
  onKeys(place, () => false);
  draw();
}

// The words, and the arcs from one of them: those of the first layer above, of the second below.
function arcs(svg, words, heads, all, query, colours, chosen) {
  const at = [];
  let x = 8;
  for (const word of words) {
    const wide = 10 * word.length;
    at.push(x + wide / 2);
    x += wide + ROOM;
  }
  const high = 2 * HIGH + 24, middle = HIGH + 12;
  svg.setAttribute("viewBox", `0 0 ${x} ${high}`);
  svg.style.width = `${x}px`;
  svg.setAttribute("aria-label", `Whom ${words[query]} reads`);
  svg.innerHTML = heads.map((look, k) => (look ? look[query].map((share, j) => {
    if (share < 0.03) return "";
    const [layer, head] = all[k], way = layer ? 1 : -1, y = middle + way * 14;
    const far = Math.abs(at[query] - at[j]), lift = y + way * Math.min(HIGH - 16, 18 + far / 5 + 7 * head) * 1.3;
    const path = j === query ? `M${at[j] - 7} ${y} C${at[j] - 24} ${y + way * 34} ${at[j] + 24} ${y + way * 34} ${at[j] + 7} ${y}`
      : `M${at[query]} ${y} C${at[query]} ${lift} ${at[j]} ${lift} ${at[j]} ${y}`;
    return `<path d="${path}" fill="none" stroke="${colours[head]}" stroke-width="${1 + 6 * share}" opacity="0.85"><title
      >layer ${layer + 1}, head ${head}: ${words[j]} ${share.toFixed(2)}</title></path>`;
  }).join("") : "")).join("") + words.map((word, i) =>
    `<text x="${at[i]}" y="${middle + 5}" text-anchor="middle" class="${i === query ? "query" : ""}">${word}</text>`).join("");
  svg.querySelectorAll("text").forEach((text, i) => text.addEventListener("click", () => chosen(i)));
}

// The likeliest next words, and how likely the best one was with all heads.
function bars(next, before) {
  return next.map(([word, share], k) => {
    const line = document.createElement("div"), was = before?.[0] === word || before && !k ? before : null;
    line.innerHTML = `<b></b><i style="--share:${share}"></i><span>${share.toFixed(2)}</span>`;
    line.firstChild.textContent = word;
    if (was) line.lastChild.textContent += `, all heads: ${was[0]} ${was[1].toFixed(2)}`;
    return line;
  });
}

export default { render };

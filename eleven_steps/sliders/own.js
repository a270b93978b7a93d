// A learner's own class: what is said of it, and the stage as far as it has come; once it is right, the
// sentence, with a card to share. Python has run the class; where it is right, the stage's numbers are its own.

function render({ model, el }) {
  const { says, tables: instead, stage } = model.get("data"), { own } = stage;
  el.classList.add("live");
  el.classList.toggle("own", Boolean(own));
  el.replaceChildren(own ? verdictOf(says, own.state === "wrong") : finale(() => {
    if (!shown.words) shown.choose("sentence"); // the whiteboard has no words
    return cardOf(shown.speaking().read(), stage.colours);
  }));
  const shown = new Stage(el, stage);
  el.append(...instead.map(({ title, all }) => tables(title, all)));
  return () => shown.leave();
}

// What is said of a class that is not right yet, code in it as code.
function verdictOf(says, wrong) {
  return made("p", { className: `says verdict ${wrong ? "wrong" : "open"}` }, wrong ? "✗ " : "",
    ...says.split("`").map((text, k) => (k % 2 ? made("code", { textContent: text }) : text)));
}

// What stands above the sentence of a right class; card() returns what is seen as SVG.
function finale(card) {
  return made("div", { className: "finale" },
    made("h4", { textContent: "✓ Your class reads, with trained weights." }),
    button("Save as a card to share", () => made("a", { download: "my_attention.svg",
      href: URL.createObjectURL(new Blob([card()], { type: "image/svg+xml" })) }).click()));
}

// What a class reads, as a picture of its own: the sentence, the arcs of the word that is asked, the next word.
function cardOf({ words, query, next: [[word, share]], heads }, colours) {
  const size = Math.min(30, 1100 / words.join(" ").length), text = words.concat(word),
    total = sum(text.map((each) => each.length + 1.4));
  const at = text.map((each, i) => 40 +
    640 * (sum(text.slice(0, i).map((other) => other.length + 1.4)) + each.length / 2) / total);
  const arc = ({ layer, head, row, off }) => Array.from(off ? [] : row, (weight, j) => {
    if (weight < 0.03) return "";
    const [y, lift] = layer ? [178, 120 + 14 * head] : [140, -100 - 14 * head], [from, to] = [at[query], at[j]];
    const d = j === query ? `M${from - 9} ${y}c-9 ${lift / 2} 27 ${lift / 2} 18 0`
      : `M${from} ${y}C${from} ${y + lift} ${to} ${y + lift} ${to} ${y}`;
    return `<path d="${d}" fill="none" stroke="${
      colours[COLOUR(layer, head)]}" stroke-width="${1.5 + 7 * weight}" stroke-linecap="round" opacity="0.85"/>`;
  }).join("");
  const spelled = text.map((each, i) =>
    `<text x="${at[i]}" y="168" font-size="${size}" font-weight="${i === words.length ? 800 : 600}" fill="${
    i === words.length ? "#6a2be0" : "#1d1d22"}" text-anchor="middle">${each}</text>`).join("");
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 720 360" width="720" height="360" role="img"
    font-family="system-ui, sans-serif" aria-label="My attention reads: ${words.join(" ")} ${word}">
    <rect width="720" height="360" rx="16" fill="#fbfaf6"/>
    <text x="40" y="44" font-size="17" fill="#5c6675">My attention reads:</text>${heads.map(arc).join("")}${spelled}
    <text x="40" y="330" font-size="15" fill="#5c6675">Next word: ${word}, ${share.toFixed(2)}.
      MultiHeadAttention in eleven steps.</text></svg>`;
}

export default answering(render);

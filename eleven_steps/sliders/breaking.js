// Lines to break by hand: Python worked out what each choice of them comes to; this chooses among
// them, and counts what one lamp alone has seen, or none.

const LAMPS = ["shape", "numbers", "sentence"];
const SIGNS = { true: "✗", false: "✓", null: "–" };
const SAYS = { true: "wrong", false: "fine", null: "cannot tell" };

function render({ model, el }) {
  const data = model.get("data"), right = data.states[0], tried = new Set();
  const lines = made("div", { className: "lines" }), lamps = LAMPS.map(lamp);
  const why = made("p", { ariaLive: "polite" }), count = made("p", { className: "count" });
  const back = button(`Back to the right line${data.lines[1] ? "s" : ""}`, () => {
    choose(right.chosen);
    parts[0].focus();
  });
  el.classList.add("live", "break");
  el.replaceChildren(lines, made("p", { className: "help" },
    "Choose what stands in a framed part. ", back),
  made("div", { className: "lamps" }, ...lamps.map(({ part }) => part)), why, count);
  let { chosen } = right;
  const show = (state) => {
    parts.forEach((part, k) => {
      part.selectedIndex = state.chosen[k];
      part.classList.toggle("wrong", state.chosen[k] > 0);
    });
    lamps.forEach((light, k) => light.show(data, state, k));
    why.textContent = state.why.join(" ");
    back.disabled = state === right;
  };
  const choose = (wanted) => {
    chosen = wanted;
    const state = data.states.find((candidate) => `${candidate.chosen}` === `${chosen}`);
    show(state);
    if (state !== right) tried.add(state);
    const by = (most) => [...tried].filter((choice) => seenBy(choice) === most).length;
    count.textContent = `Tried: ${tried.size} of ${data.states.length - 1}. ` +
      `${by(1)} of them turned only one lamp red, ${by(0)} none.`;
  };
  const parts = data.lines.map((line, k) => written(lines, line, k, (text) =>
    choose(chosen.map((own, i) => (i === k ? text : own)))));
  onKeys(el, () => false);
  choose(chosen);
  return onRoom(el, () => {
    steady([lines, why, ...lamps.map(({ part }) => part)], data.states, show);
    choose(chosen);
  });
}

const seenBy = ({ notices }) => notices.filter(Boolean).length;

// A lamp, which says what it notices of a choice, and shows what it sees.
function lamp(name) {
  const title = made("h3"), says = made("p"), seen = made("div");
  const part = made("section", {}, title, says, seen);
  part.dataset.lamp = name;
  return {
    part,
    show({ words, states: [right] }, state, k) {
      const notices = state.notices[k];
      part.dataset.notices = notices;
      part.className = `verdict ${{ true: "wrong", false: "right", null: "open" }[notices]}`;
      title.textContent = `${SIGNS[notices]} ${name}: ${SAYS[notices]}`;
      says.textContent = state.says[k];
      if (name === "numbers") {
        const like = state.tables.some(({ differs }) => differs.flat().some(Boolean)); // of the right shape
        seen.replaceChildren(state === right || !state.tables.length ? tables("right", right.tables)
          : tables("now", state.tables, like && right.tables));
      }
      if (name === "sentence") seen.replaceChildren(...sentence(words, state.word));
    },
  };
}

// A line of code, with the part of it that can be changed, which is returned.
function written(lines, { before, after, texts }, k, turn) {
  const part = made("select", { ariaLabel: `line ${k + 1}: ${before.trim()}` },
    ...texts.map((text) => made("option", { textContent: text || "nothing" })));
  part.onchange = () => turn(part.selectedIndex);
  lines.append(made("div", {}, before, part, after));
  return part;
}

// The sentence with its next word, and a bar as long as the word's share.
function sentence(words, word) {
  const [text, share] = word ?? ["?", 0], bar = made("div", { className: "bar" });
  bar.style.setProperty("--share", share);
  return [made("p", {}, `${words.join(" ")} `, made("b", { textContent: text })), bar];
}

export default answering(render);

// A sentence in large type: arcs from the word that is asked to those it attends to, the next word, heads
// to switch off; words to swap where there is a vocabulary. It shows what it is told, and hears a hand.

const FIRST = 5, COLOUR = (layer, head) => (layer ? head : FIRST + head); // a colour belongs to a layer and a head

class Sentence {
  // says: read() returns what is to be seen; asked(i), swapped(i, word) and switched(k) hear what a hand wants.
  constructor(el, says, colours) {
    this.el = el; this.says = says; this.colours = colours; this.open = null; // the word that is swapped
    el.classList.add("sentence");
    el.innerHTML = `<div class="said"><svg role="group" aria-label="arcs"></svg><div class="spoken" role="group"
      aria-label="Words: press one for its arcs, once more to swap it"></div><div class="list" role="group"
      aria-label="words to put here" hidden></div></div>
      <div class="next" role="group" aria-label="next word, after the last one"></div>
      <div class="off"><span></span><div class="heads" role="group"
      aria-label="heads, to switch off"></div></div><p class="finding"></p>`;
    [this.said, this.next, , this.finding] = el.children; this.chips = el.querySelector(".heads");
    [this.svg, this.spoken, this.list] = this.said.children;
    this.room = new ResizeObserver(() => [0, this.laid].includes(this.spoken.clientWidth) || this.draw());
    this.room.observe(el);
    onKeys(el, (key, { target }) => this.key(key, target));
    el.addEventListener("focusout", ({ relatedTarget }) => el.contains(relatedTarget) || this.close());
  }

  key(key, target) {
    const across = getComputedStyle(this.list).gridTemplateColumns.split(" ").length;
    const by = { ArrowLeft: -1, ArrowRight: 1, ArrowUp: -across, ArrowDown: across }[key],
      all = [...target.parentNode.children];
    if (key === "Escape") return this.close();
    if (by && (target.parentNode === this.list || Math.abs(by) === 1)) all[all.indexOf(target) + by]?.focus();
    else if (by && target.parentNode === this.spoken) this.swap(all.indexOf(target));
    return Boolean(by);
  }

  close() {
    const { open } = this;
    this.open = null; this.list.hidden = true;
    if (open !== null && this.list.contains(document.activeElement)) this.spoken.children[open].focus();
    return open !== null;
  }

  // A list of the words that may stand in a word's place.
  swap(i) {
    const { vocabulary, words } = this.says.read();
    if (!vocabulary) return;
    this.open = i; this.list.hidden = false;
    this.list.replaceChildren(...vocabulary.map((word) => {
      const button = document.createElement("button");
      button.textContent = word; button.ariaPressed = String(word === words[i]);
      button.onclick = () => { this.close(); this.says.swapped(i, word); this.spoken.children[i].focus(); };
      return button;
    }));
    this.list.querySelector("[aria-pressed='true']")?.focus({ preventScroll: true });
  }

  draw() {
    const { words, names, query, heads, next, before, vocabulary, whatIf, arcs } = this.says.read();
    const buttons = (place, texts, act) => {
      while (place.children.length > texts.length) place.lastChild.remove();
      texts.forEach((text, i) => {
        const button = place.children[i] ?? place.appendChild(document.createElement("button"));
        if (button.innerHTML !== text) button.innerHTML = text;
        button.onclick = () => { this.close(); act(i); };
      });
      return [...place.children];
    };
    buttons(this.spoken, words, (i) => (i === query ? this.swap(i) : this.says.asked(i))).forEach((button, i) => {
      button.dataset.word = i; button.ariaPressed = String(i === query);
      button.title = i === query && vocabulary ? "press again to swap this word" : "";
    });
    buttons(this.chips, heads.map(({ layer, head }) => `<b>${names[layer][head]}</b> layer ${layer}, head ${head}`),
      (k) => this.says.switched(k))
      .forEach((button, k) => {
        const { layer, head, off } = heads[k];
        button.ariaPressed = String(!off);
        button.style.setProperty("--head", this.colours[COLOUR(layer, head)]);
      });
    this.el.querySelector(".off span").innerHTML = `${vocabulary ? "Press the boxed word again to swap it.<br>" : ""}
      Heads${arcs ? ": layer 0 above the words, layer 1 below" : ""}. Press one to switch it off:`;
    const after = query < words.length - 1 ? " after the last word" : "",
      was = before ? `, was ${before[0]} ${before[1].toFixed(2)}` : "";
    this.next.innerHTML = `<em>what comes next${after}${was}</em>` +
      next.map(([word, share]) => `<b>${word}</b><i style="--share:${share}"></i><span>${
      share.toFixed(2)}</span>`).join("");
    const shown = heads.map((head, k) => ({ ...head, k })).filter(({ row, off }) => row && !off);
    const [share, from, one] = shown.flatMap((head) => Array.from(head.row, (v, j) => [v, j, head]))
      .filter(([, j]) => j !== query).reduce((a, b) => (b[0] > a[0] ? b : a), [0]);
    const { layer, head } = share > 0.03 ? one : {}, seen = head >= 0;
    this.finding.innerHTML = (whatIf ? "<mark>What if</mark> " : "") +
      (seen ? `<b style="--head:${this.colours[COLOUR(layer, head)]}">${names[layer][head]}</b>: ` : "");
    const to = (words[from] === words[query] ? "an earlier " : "") + `“${words[from]}”`;
    this.finding.append(seen ? `“${words[query]}” attends to ${to}, ${Math.round(100 * share)} %`
      : shown.length ? `“${words[query]}” attends to nothing before it here.` : "No arcs: no weights can be seen.");
    if (arcs) this.arcs(words, query, shown);
  }

  // The first layer's arcs above the words, the second's below.
  arcs(words, query, shown) {
    const { offsetTop: top, offsetHeight: high, clientWidth: wide } = this.spoken,
      { paddingTop } = getComputedStyle(this.said);
    this.laid = wide;
    if (!wide) return;
    const room = parseFloat(paddingTop), height = this.said.clientHeight, at = [...this.spoken.children].map((word) =>
      [word.offsetLeft + word.offsetWidth / 2, word.offsetTop, word.offsetTop + word.offsetHeight]);
    const path = ({ layer, head, row, k }) => Array.from(row, (share, j) => {
      if (share < 0.03) return "";
      const [x, above, below] = at[query], [to, ...edges] = at[j], way = layer ? 1 : -1, y = layer ? below : above;
      const far = Math.min(room * 1.15, room * (0.35 + 0.16 * head) + Math.abs(x - to) * 0.12), own = j === query;
      const lift = y + way * (own ? room * 0.6 : far), end = edges[layer ? 1 : 0];
      const curve = own ? `M${x - 9} ${y}C${x - 16} ${lift} ${x + 16} ${lift} ${x + 9} ${y}`
        : `M${x} ${y}C${x} ${lift} ${to} ${end + lift - y} ${to} ${end}`;
      const says = `layer ${layer}, head ${head}: ${words[j]} ${share.toFixed(2)}`;
      return `<g data-head="${k}" aria-label="${says}"
        style="--head:${this.colours[COLOUR(layer, head)]}"><path class="hit" d="${curve}"/><path d="${curve}"
        stroke-width="${1.5 + room / 12 * share}"/><title>${says}</title></g>`;
    }).join("");
    this.svg.setAttribute("viewBox", `0 0 ${this.said.clientWidth} ${height}`);
    this.svg.innerHTML = shown.map(path).join("");
  }
}

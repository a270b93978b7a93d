// What the stage says: titles that ask and answer, the arithmetic of a number, what a change does.

// What each step asks before it happens, and what is found: of the word that is asked, in the head that is followed.
const TITLES = [null,
  [({ word }) => `What does the model have of ${word}, before attention?`,
    ({ dIn, dOut, heads, tokens, dim, all }) => (all
      ? `Read from x: b = 1, num_tokens = ${tokens}, d_in = ${dIn}. Chosen: head_dim = ${dOut} / ${heads} = ${dim}.`
      : `One row of ${dIn} numbers. x has ${count(tokens, "row")}, one for each word.`)],
  [({ word }) => `How does the row of ${word} become a query, a key and a value?`,
    ({ dIn }) => `Its ${dIn} numbers meet a column of a matrix: products, added up, are one new number.`],
  [({ dOut, heads }) => `How do ${dOut} numbers become ${count(heads, "head")}?`,
    ({ dim, heads }) => `${heads > 1 ? `A fence after every ${dim} numbers` : "One has all"}. No number moves.`],
  [({ head }) => `How does head ${head} get its numbers to itself?`,
    ({ head }) => `Head ${head} now reads only its own part of each word, one word after the other.`],
  [({ word }) => `Which word's key fits the query of ${word} best?`,
    ({ word, best, score, all, heads, tokens, head }) => (all
      ? `In head ${head}, ${word} fits ${best} best, ${score}: one of ${heads} × ${tokens} × ${tokens} = ` +
        `${count(heads * tokens ** 2, "score")}.`
      : `That of ${best}, ${score}. Where bars agree the score rises, where they clash it falls.`)],
  [({ word, all }) => (all ? "Which scores look into the future?" : `Which words may ${word} not look at?`),
    ({ word, later, all, tokens }) => (tokens === 1 ? "None: one word alone has no future."
      : all ? `All above the diagonal: ${tokens * (tokens - 1) / 2} of ${tokens ** 2} in each head. They become −∞.`
        : later ? `The ${count(later, "word")} after it: their scores become −∞.`
          : `None: ${word} is the last. Press an earlier word.`)],
  [() => "How do scores become shares of one whole?",
    ({ word, best, share, bare, all, head }) => (all ? `In head ${head}, ${word} gives ${best} ${share} %`
      : `${best} gets ${share} % of a ribbon of length 1`) + (share === bare ? ". Dividing shows where two compete."
      : `. Without the division it would be ${bare} %.`)],
  [({ word }) => `What does ${word} take home?`,
    ({ word, best, share, off, head, all }) => (off ? `Head ${head} is switched off: its context is all 0.`
      : `${all ? `In head ${head}, ${word} takes ` : ""}${share} % of the value of ${best}` +
        (share === 100 ? "." : ", and the shares of the others, added up."))],
  [({ word }) => `How does what the heads found for ${word} become one row?`,
    ({ word }) => `Read one after the other, they are a row of ${word} again. No number moves.`],
  [() => "Why is that row not one piece of memory yet?",
    ({ dOut, word, jumps }) => (jumps ? `Now it is: a copy puts all ${dOut} numbers of ${word} side by side.`
      : "It is: there is nothing to copy.")],
  [({ heads }) => (heads > 1 ? "Until now no head knew of another. Where do they meet?" : "What is left to do?"),
    ({ next, dOut }) => `In every number of out, which hears all ${dOut} numbers of a row.` +
      (next ? ` The model adds the row to what it had, and says “${next[0]}”, ${next[1].toFixed(2)}.` : "")]];

function titled(it, n, answered) {
  const of = found(it);
  return (answered || it.own?.shapes[0]) && yours(it, n) || whatIf(it, n, answered && of) || TITLES[n][+answered](of);
}

// Why there is such a step.
const WHY = ["", "Sizes are read from x, so that the class takes any text.",
  "Three parts, because what a word looks for is not what it shows, nor what it hands over.",
  "Several heads, so that one word can ask several questions.",
    "Heads come first, because a product of matrices works on the last two axes.",
  "A product, because it is large only where both sides are.",
    "In training every word has to guess the next one. It must not see it.",
  "Divided first: sums of more products lie further apart, and softmax would make a small lead large.",
    "Weights add up to 1, so the context is an average, never larger than the values.",
  "Tokens come first again, because what follows works on rows of words.",
    "A copy, because view can only read memory at fixed strides.",
  "A matrix of its own, because each number should hear every head."];

// The row of scores that is spoken of: that of the word that is asked in the head that is followed; where more is
// drawn, one that a hand has moved; by hand, where dividing changes most, the row that shows why one divides.
function noted({ moved, scope, words, head, asked, made, step, divisor, sizes: { heads, tokens } }) {
  const { cell } = [...moved.values()].at(-1) ?? {};
  if (cell?.kind === "scores" && (scope === "all" || scope === "head" && cell.h === head)) return cell;
  if (words || step !== 7) return { h: head, r: asked };
  const all = range(heads, (h) => range(tokens, (r) => ({ h, r }))).flat(), worth = ({ h, r }) => {
    const [shares, bare] = [divisor, 1].map((by) => sharesOf(rowIn(made[6].masked, tokens, h, r), by));
    return strongest(shares.map((share, j) => share - bare[j]));
  };
  return all.reduce((one, other) => (worth(other) > worth(one) ? other : one));
}

// What is found in that row.
function found(it) {
  const { sizes, mine } = it, { h, r } = noted(it), all = it.scope !== "word";
  const [scores, masked, shares] = [mine[5].scores, mine[6].masked, mine[7].weights]
    .map((flat) => rowIn(flat, sizes.tokens, h, r));
  const seen = it.step < 7 ? scores : shares, most = seen.indexOf(Math.max(...seen));
  const per = (part) => Math.round(100 * part), best = it.token(most) + (most === r ? " itself" : "");
  return { ...sizes, dim: it.headDim, jumps: it.jumps, all, head: h, word: it.token(r), best,
    score: written(scores[most]), later: sizes.tokens - 1 - r, share: per(shares[most]), total: sum([...shares]),
    off: it.off.has(`1,${h}`), bare: per(sharesOf(masked, 1)[most]), next: r === sizes.tokens - 1 && it.next[0] };
}

// What if the number moved last were another: what it was changed to, and what came of it.
function whatIf(it, n, of) {
  const until = [...it.moved.values()].filter(({ step }) => step <= n), last = until.at(-1), more = until.length - 1;
  if (!last) return "";
  const others = more ? `, with ${count(more, "other number")} moved` : "";
  const then = of && Math.abs(of.total - 1) > 0.005
    ? `the weights of ${of.word} now add up to ${written(of.total)}, not to 1`
    : of && { 7: `${of.word} gives ${of.share} % to ${of.best}`,
      8: of.off ? "which is off, the context is all 0" : `${of.word} takes ${of.share} % from ${of.best}` }[n];
  return `What if ${last.called} were <mark>${written(last.value)}</mark>${others}? It was ${written(last.was)}.` +
    (n === LAST && of?.next ? ` The model says “${of.next[0]}”, ${of.next[1].toFixed(2)}.`
      : then ? ` In head ${of.head}, ${then}.` : "");
}

// What is said of a step of one's own class, where it is not just as the course's.
function yours({ own, differs, data, steps }, n) {
  const { open, other, shapes } = own ?? {};
  if (other?.includes(data.steps[n - 1].name)) return "Your code takes another way, without this tensor.";
  if (n !== open) return "";
  const told = Object.groupBy(shapes ?? [], ([, is, right]) => `${is}, not ${right}`); // each shape once
  const each = Object.entries(told).map(([of, all]) => `${all.map(([name]) => name).join(", ")} ${of}`);
  if (each[0]) return `Yours: ${each.join("; ")}.`;
  const framed = steps[n].shown.filter(({ kind, at }) => differs[nameOf(kind, n)]?.[at]);
  const below = framed.every(({ k }) => steps[n].at(k)[3] >= TWO_HIGH);
  return !framed[0] ? "Yours: these are right; what is not is said above."
    : `Yours: the framed numbers are not right; ${below ? "below each stands" : "point at one to see"} the right one.`;
}

// A number and its arithmetic in one line.
function explained(it, cell, step) {
  const { kind, r, c, at } = cell, { tokens } = it.sizes, text = written(it.value(cell, step));
  const pairs = factors(it, cell, step), most = Math.max(3, Math.floor(it.room / 175));
  const product = (pair) => pair.map((factor) => written(it.value(factor, step))).join("·");
  const few = pairs.slice(0, most).map(product).join(" + ");
  const more = pairs.length > most ? ` + … (${pairs.length} products)` : "";
  const bias = kind === "out" ? ` + ${written(it.made[0].bias[c])}`.replace("+ −", "− ") : "";
  const says = {
    x: () => `feature ${c} of ${it.token(r)}; ` + (step === 5 ? "no mask yet: every query meets its key"
      : `it reaches ${it.token(r)}${step > 5 && r < tokens - 1 ? " and those after it" : ""}`),
    masked: () => (c > r ? `${it.token(c)} comes after ${it.token(r)}`
      : `the score stays: ${it.token(c)} is not after ${it.token(r)}`),
    weights: () => {
      const row = it.made[6].masked.subarray(at - c, at + tokens - c), most = Math.max(...row);
      const part = (v) => written(Math.exp((v - most) / it.divisor));
      const all = Array.from(row).filter(isFinite).map(part).join(" + ");
      const by = it.moved.has("divisor") ? written(it.divisor) : `√${it.headDim}`;
      const top = `each exp((score ${`− ${written(most)}`.replace("− −", "+ ")}) / ${by})`;
      return isFinite(row[c]) ? `${part(row[c])} / (${all}), ${top}` : "exp(−∞) = 0";
    },
  }[nameOf(kind, step)] ?? (() => (kind.includes("_") ? "learned; the same for every token"
    : `feature ${c} of ${it.token(r)}` + (FACTORS[step] ? `, made in step ${kind === "context" ? 8 : 2}`
      : ": the same number as before, only its place is new")));
  const part = (h) => sum(pairs.map(([a, b]) => (a.h === h ? it.value(a, step) * it.value(b, step) : 0)));
  const byHead = kind === "out" && it.sizes.heads > 1 // what came from which head
    ? range(it.sizes.heads, (h) => `${written(part(h))} (head ${h})`).join(" + ") + `${bias} (bias)` : "";
  const mine = step === it.own?.open && nameOf(kind, step) in it.differs;
  const moved = it.whatIf(cell, step);
  const why = moved ? " <i>what if: Escape puts it back</i>"
    : mine ? `: right is ${written(it.value(cell, step, it.made))}`
      : pairs.length ? ` = ${byHead || few + more + bias}` : `: ${says()}`;
  return `<b>${it.called(cell, step)} = ${text}</b>${why}`;
}

// What a number that is held does here.
function reported(it, { cell, step, made }) {
  const before = it.value(cell, step, made), now = it.value(cell, step), delta = now - before;
  const all = it.steps[it.step].shown.filter((near) => (near !== cell || step < it.step) && near.kind !== "x" &&
    !near.kind.includes("_"));
  const moved = all.filter((near) => Math.abs(it.change(near, it.step)) > 1e-9).length;
  const way = delta < 0 ? "down" : "up", blind = cell.kind !== "x" || cell.r === 0 || step < 6 ? ""
    : `; ${cell.r > 1 ? `tokens 0 to ${cell.r - 1} cannot` : "token 0 cannot"} see it`;
  const by = isFinite(delta) ? `${delta < 0 ? "▼ −" : "▲ +"}${Math.abs(delta).toFixed(2)}` : "";
  const later = moved || leftBy(cell.kind, step) < step
    ? `here it moves ${moved} of ${count(all.length, "number")}${blind}`
    : step < LAST ? "what follows from it moves in the next step"
      : it.reader ? "the last row says what comes next" : "nothing follows from it here";
  return `<b>${it.called(cell, step)}</b> ${written(before)} → <b>${written(now)}</b> ` +
    `<span class="${way}">${by}</span> ` + (step > 1 ? `<i>${later}</i>` : "");
}

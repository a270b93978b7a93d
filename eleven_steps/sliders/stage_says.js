// What the stage says: titles that ask and answer, the arithmetic of a number, what a change does.

// What each step asks before it happens, and what is found.
const TITLES = [null,
  [() => "Which sizes does the code read from x, and which were chosen before?",
    ({ tokens, dIn, dOut, heads, dim }) => `Read: b = 1, num_tokens = ${tokens}, d_in = ${dIn}. ` +
      `Chosen: head_dim = ${dOut} / ${heads} = ${dim}.`],
  [() => "One token plays three parts. How many numbers of x make one number of queries?",
    ({ dIn }) => `All ${dIn} numbers of one row of x make each number of queries. No other row does.`],
  [({ dOut, heads }) => `How does a row of ${dOut} become ${count(heads, "head")} without changing a number?`,
    ({ dim, heads }) => `The first ${count(dim, "feature")} of a row: head 0` +
      `${heads > 1 ? `, the next ${dim}: head 1` : ""}. Not one number changed.`],
  [() => "Each head wants its tokens side by side. Which two axes have to swap?",
    ({ tokens, dim }) => `Axes 1 and 2 have swapped: each head is a matrix of its own, ${tokens} × ${dim}.`],
  [() => "How well does what a token looks for fit what each token shows?",
    ({ heads, tokens }) => "Every query met every key in its own head: " +
      `${heads} × ${tokens} × ${tokens} = ${count(heads * tokens ** 2, "score")}.`],
  [() => "Which scores look into the future?",
    ({ tokens }) => (tokens === 1 ? "None: one token alone has no future." : "All above the diagonal: " +
      `${tokens * (tokens - 1) / 2} of ${tokens ** 2} in each head. They become −∞.`)],
  [() => "How does a row of scores become shares of one whole?",
    ({ most }) => `Each row sums to 1${most("gives", "to")}.`],
  [() => "What does a token take home from itself and those before it?",
    ({ most }) => `A mix of values${most("takes", "from")}.`],
  [() => "The heads are done. Whose numbers should lie side by side now?",
    () => "Axes 1 and 2 have swapped back: all that is of one token lies together again."],
  [({ heads, dim, dOut }) => `How does a token's row get ${heads} × ${dim} = ${dOut} features again?`,
    ({ dim }) => `Heads side by side: the first ${count(dim, "feature")} from head 0. No number changed.`],
  [({ heads }) => (heads > 1 ? "So far no head knows of another. Where do they meet?"
    : "What is left to do with the context of one head?"),
    ({ dOut }) => `Each number of out mixes all ${dOut} numbers of its token's context, from every head.`]];

function titled(it, n, answered) {
  const most = (gives, to) => mostOf(it, gives, to), texts = it.scope === "word" ? STORIES : TITLES;
  return (answered || it.own?.shapes[0]) && yours(it, n) || whatIf(it, n, answered) ||
    texts[n][+answered]({ ...it.sizes, dim: it.headDim, most, ...(it.scope === "word" && found(it)) });
}

// What each step does for one word in one head: the question, what is found, and why there is such a step.
const STORIES = [null,
  [({ word }) => `What does the model have of ${word}, before attention?`,
    ({ dIn, tokens }) => `One row of ${dIn} numbers. The ${count(tokens, "word")} are ${count(tokens, "row")} of x.`],
  [({ word }) => `How does the row of ${word} become a query, a key and a value?`,
    ({ dIn }) => `Its ${dIn} numbers meet a column of a matrix: products, added up, are one new number.`],
  [({ dOut, heads }) => `How do ${dOut} numbers become ${count(heads, "head")}?`,
    ({ dim }) => `A fence drops after number ${dim}: head 0 before it, head 1 behind it. No number moves.`],
  [({ head }) => `How does head ${head} get its numbers to itself?`,
    ({ head }) => `Head ${head} now reads only its own part of each word, one word after the other.`],
  [({ word }) => `Which word's key fits the query of ${word} best?`,
    ({ best, score }) => `That of ${best}, ${score}. Where bars agree the score rises, where they clash it falls.`],
  [({ word }) => `Which words may ${word} not look at?`,
    ({ word, later }) => (later ? `The ${count(later, "word")} after it: their scores become −∞.`
      : `None: ${word} is the last. Press an earlier word.`)],
  [() => "How do scores become shares of one whole?",
    ({ best, share, bare }) => `${best} gets ${share} % of a ribbon of length 1` +
      (share === bare ? ", divided or not. Two that compete show why one divides."
      : `. Without the division it would get ${bare} %.`)],
  [({ word }) => `What does ${word} take home?`,
    ({ best, share, sole }) => (sole ? `Nearly all of the value of ${best}: ${share} %.`
      : `${share} % of the value of ${best}, and the shares of the others, added up.`)],
  [({ word }) => `How do the two heads' findings for ${word} meet?`,
    ({ word }) => `They are read one after the other: a row of ${word} again. No number moves.`],
  [() => "Why is that row not one piece of memory yet?",
    ({ dOut, word }) => `Now it is: a copy puts all ${dOut} numbers of ${word} side by side.`],
  [() => "Until now no head knew of another. Where do they meet?",
    ({ next }) => `In every number of out. The model adds the row to what it had, and says “${next[0]}”, ${next[1].toFixed(2)}.`]];
const WHY = ["", "Sizes are read from x, so that the class takes any text.",
  "Three parts, because what a word looks for is not what it shows, nor what it hands over.",
  "Several heads, so that one word can ask several questions.",
    "Heads come first, because a product of matrices works on the last two axes.",
  "A product, because it is large only where both sides are.",
    "In training every word has to guess the next one. It must not see it.",
  "Divided first, because a sum of more products is larger, and softmax would turn a small lead into a large one.",
    "Weights add up to 1, so the context is an average, never larger than the values.",
  "Tokens come first again, because what follows works on rows of words.",
    "A copy, because view can only read memory at fixed strides.",
  "A matrix of its own, because each number should hear every head."];

// What is found of the word that is asked, in the head that is followed.
function found(it) {
  const { tokens } = it.sizes, { head, asked: q } = it,
    [scores, masked, shares] = [[5, "scores"], [6, "masked"], [7, "weights"]].map(([n, name]) => it.story.row(n, name));
  const top = (list) => list.indexOf(Math.max(...list)), most = it.step < 7 ? top(scores) : top(shares),
    bare = masked.map((score) => Math.exp(score - Math.max(...masked)));
  const per = (part) => Math.round(100 * part);
  return { head, word: it.token(q), best: most === q ? "itself" : it.token(most), score: written(scores[most]),
    later: tokens - 1 - q, share: per(shares[most]),
    sole: shares[most] > 0.95, bare: per(bare[most] / sum([...bare])), next: it.next[0] };
}

// What if the number moved last were another: what it was changed to, and what came of it.
function whatIf(it, n, answered) {
  const last = [...it.moved.values()].at(-1), more = it.moved.size - 1;
  if (!last) return "";
  const others = more ? `, with ${count(more, "other number")} moved` : "";
  const then = !answered || it.sizes.tokens === 1 ? ""
    : { 7: mostOf(it, "gives", "to"), 8: mostOf(it, "takes", "from") }[n] ?? "";
  return `What if ${last.called} were <mark>${written(last.value)}</mark>${others}? It was ${written(last.was)}.` +
    (then && ` ${then.slice(2, 3).toUpperCase()}${then.slice(3)}.`);
}

// What is said of a step of one's own class, where it is not just as the course's.
function yours({ own, differs, data, steps }, n) {
  const { open, other, shapes } = own ?? {};
  if (other?.includes(data.steps[n - 1].name)) return "Your code takes another way, without this tensor.";
  if (n !== open) return "";
  const told = Object.groupBy(shapes ?? [], ([, is, right]) => `${is}, not ${right}`); // each shape once
  if (shapes?.[0]) return `Yours: ${Object.entries(told).map(([of, all]) => `${all.map(([name]) => name).join(", ")} ${of}`).join("; ")}.`;
  const framed = steps[n].shown.filter(({ kind, at }) => differs[nameOf(kind, n)]?.[at]);
  const below = framed.every(({ k }) => steps[n].at(k)[3] >= TWO_HIGH);
  return !framed[0] ? "Yours: these are right; what is not is said above."
    : `Yours: the framed numbers are not right; ${below ? "below each stands" : "point at one to see"} the right one.`;
}

// The row that is worth a look: the one in hand; in step 7 the one with most to share out, else where a
// token attends most to another, the last one if there is little between them.
function rowOfNote({ row, reader, head, asked, made, step, sizes: { heads, tokens } }) {
  if (row?.layer) return row;
  if (reader) return { h: head, r: asked };
  const all = range(heads, (h) => range(tokens, (r) => ({ h, r }))).flat(), { weights } = made[7];
  const sharesOf = ({ h, r }) => weights.subarray((h * tokens + r) * tokens, (h * tokens + r) * tokens + r + 1);
  const worth = (cell) => (step === 7 ? -sum([...sharesOf(cell)].map((share) => share && share * Math.log(share)))
    : (cell.r === tokens - 1) * 0.3 + Math.max(0, ...sharesOf(cell).subarray(0, cell.r)));
  return all.reduce((one, other) => (worth(other) > worth(one) ? other : one));
}

// How much a token gives to whom: the row worth a look, to another unless a hand has chosen it.
function mostOf(it, gives, to) {
  const { tokens } = it.sizes, { h, r } = rowOfNote(it);
  if (tokens === 1) return "; one token alone has only itself";
  const row = [...it.mine[7].weights.subarray((h * tokens + r) * tokens, (h * tokens + r + 1) * tokens)];
  const counted = row.map((share, j) => (j === r && !it.row ? 0 : share)), from = counted.indexOf(Math.max(...counted));
  return `: in head ${h}, ${it.token(r)} ${gives} ${Math.round(100 * row[from])} % ${to} ` +
    (from === r ? "itself" : it.token(from));
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
      const by = it.moved.get("divisor 1")?.value ?? Math.sqrt(it.headDim);
      const part = (v) => written(Math.exp((v - most) / by));
      const all = Array.from(row).filter(isFinite).map(part).join(" + ");
      const top = `each exp((score ${`− ${written(most)}`.replace("− −", "+ ")}) / √${it.headDim})`;
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
    : step < LAST ? "what follows from it moves in the next step" : "nothing follows from it here";
  return `<b>${it.called(cell, step)}</b> ${written(before)} → <b>${written(now)}</b> ` +
    `<span class="${way}">${by}</span> ` + (step > 1 ? `<i>${later}</i>` : "");
}

// The words of the stage's sentence, which may be swapped, and the word that comes next. The layer on
// the stage is the second of a tiny trained model of attention alone; what lies around it is here.

const LIKELIEST = 3; // next words that are shown

class Reader {
  constructor({ vocabulary, heads, first, ...tensors }) {
    Object.assign(this, { vocabulary, heads, first: decoded(first) });
    for (const [name, text] of Object.entries(tensors)) this[name] = floats(text);
    this.wide = this.embedding.length / vocabulary.length;
    this.deep = this.first.W_query.length / this.wide - this.wide; // features of a place
  }

  // What the layer gets of as many words as there are places, (num_tokens, wide) flat: the features of
  // each word, and what the first layer adds, which sees the features of its place beside them.
  read(words, aside) {
    const { embedding, places, wide, deep } = this;
    const own = words.map((word) => rowOf(embedding, this.vocabulary.indexOf(word), wide));
    const placed = own.flatMap((row, i) => [...row, ...rowOf(places, i, deep)]);
    const sizes = { dIn: wide + deep, dOut: wide, heads: this.heads, tokens: words.length };
    const before = own.flat();
    this.made = forward(placed, this.first, sizes, aside); // of the first layer
    return this.made.at(-1).out.map((added, k) => before[k] + added);
  }

  // The likeliest words after row i of what the layer got and added, each with its share.
  next(x, out, i) {
    const [before, added] = [x, out].map((flat) => rowOf(flat, i, this.wide));
    const scores = this.vocabulary.map((_, k) => this.bias[k] +
      sum(rowOf(this.unembedding, k, this.wide).map((weight, f) => weight * (before[f] + added[f]))));
    const most = Math.max(...scores), parts = scores.map((score) => Math.exp(score - most));
    const whole = sum(parts), shares = this.vocabulary.map((word, k) => [word, parts[k] / whole]);
    return shares.sort(([, one], [, other]) => other - one).slice(0, LIKELIEST);
  }
}

const rowOf = (flat, i, wide) => Array.from(flat.subarray(i * wide, (i + 1) * wide));

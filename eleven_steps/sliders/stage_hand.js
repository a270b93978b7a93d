// The hand on the stage: any number that it shows can be taken hold of and moved, a what-if from which
// everything later follows.

const PIXELS = 200, KEYS = 20; // as many make the way from 0 to as far as a hand may go

class Hand {
  constructor(it) {
    this.it = it;
    this.hold = null; // the cell in hand, and all numbers as they were when it was taken
    this.held = null; // what a pointer drags: the value it began with
    this.letting = null; // until a number that keys move is let go
  }

  // How far a number may go: a weight from 0 to 1, others twice as far as the strongest of theirs.
  far({ kind }, step) {
    const { it } = this, name = nameOf(kind, step);
    if (name === "weights") return 1;
    if (kind === "x") return 2 * Math.max(1, Math.ceil(strongest(it.input)));
    return 2 * Math.max(kind === "scores" ? 4 : 1, Math.ceil(it.most[name]));
  }

  // Take hold of a number: what was before stays known for as long as it is held.
  take(cell) {
    const { it } = this;
    clearTimeout(this.letting);
    if (this.hold?.cell === cell && this.hold.step === it.step) return;
    this.release();
    it.playhead.rush();
    this.hold = { cell, step: it.step, made: it.made };
    it.page.tell(reported(it, this.hold)); it.soon();
  }

  // Set the number that is held; everything after it follows. One that was −∞ begins at the score.
  move(value) {
    const { it } = this, { cell, step } = this.hold, far = this.far(cell, step);
    const low = nameOf(cell.kind, step) === "weights" ? 0 : -far, key = it.keyOf(cell, step);
    const to = isFinite(value) ? value : it.made[5].scores[cell.at], digits = far > 20 ? 10 : 100;
    const was = it.moved.get(key)?.was ?? this.it.value(cell, step, this.hold.made);
    it.moved.delete(key); // the newest is the last
    it.moved.set(key, { was, step: leftBy(cell.kind, step), name: nameOf(cell.kind, step), at: cell.at,
      called: it.called(cell, step), cell, value: Math.round(clamp(to, low, far) * digits) / digits });
    it.anew();
    it.page.tell(reported(it, this.hold));
  }

  release() {
    clearTimeout(this.letting);
    if (!this.hold) return;
    this.hold = this.it.pointed = null;
    this.it.page.tell(); this.it.soon();
  }

  // What scores are divided by is no number on the board.
  divide(by) {
    const { it } = this, was = Math.sqrt(it.headDim);
    it.moved.delete("divisor");
    if (by !== was) it.moved.set("divisor",
      { step: 7, name: "weights", at: Infinity, value: by, was, called: "the divisor" });
    it.anew();
  }

  // Put one number back: the one in hand, or the one moved last. Whether there was one.
  undo(cell) {
    const { it } = this, key = cell && it.keyOf(cell, this.hold?.step ?? it.step);
    const one = it.moved.has(key) ? key : [...it.moved.keys()].at(-1);
    this.release(); it.point(null);
    if (one === undefined) return false;
    it.moved.delete(one);
    it.anew(); it.point(cell ?? null);
    return true;
  }

  // What a key does here; whether it did anything.
  key(key, { shiftKey, target }) {
    const { it } = this, { elements, strip } = it.page;
    const cell = it.list[target.k], by = { ArrowUp: 1, ArrowDown: -1, PageUp: 1, PageDown: -1 }[key];
    const aside = { ArrowRight: 1, ArrowLeft: -1 }[key];
    if (key === "Escape") return this.undo(this.hold?.cell ?? cell);
    if (target.matches("input, button")) return false;
    if (key === " ") it.playhead.toggle();
    else if (cell && by && it.movable(cell)) {
      this.take(cell);
      this.move(it.value(cell, it.step) + by * this.far(cell, it.step) / KEYS * (shiftKey ? 5 : 1));
      this.letting = setTimeout(() => { this.release(); it.point(cell); }, 1500);
    } else if (cell && aside) {
      const next = elements[target.k + aside];
      if (next?.hidden !== false || it.list[next.k].kind !== cell.kind) return true;
      it.page.tabbed(it.list[next.k]);
      next.focus();
    } else if (target !== strip) return false;
    else if (by || aside) it.playhead.skip(by ?? aside);
    else if (key === "Home" || key === "End") it.playhead.go(key === "Home" ? 1 : LAST, 0);
    else return false;
    return true;
  }

  listen(board) {
    const { it } = this, cellOf = ({ target }) => it.list[target.k] ?? null;
    const take = (event) => {
      if (it.page.moving) it.playhead.rush(); // what is on its way is there at once, and can be taken
      const target = document.elementFromPoint(event.clientX, event.clientY), cell = cellOf({ target });
      // A finger scrolls the page, unless it is on a number that it has tapped before, or on x.
      const first = event.pointerType === "touch" && cell?.kind !== "x" && document.activeElement !== target;
      it.point(cell);
      if (!cell || !it.movable(cell)) return null;
      if (first) { target.focus({ preventScroll: true }); return null; }
      event.preventDefault();
      it.page.tabbed(cell);
      target.focus({ preventScroll: true });
      this.take(cell); it.soon();
      const value = it.value(cell, it.step);
      return this.held = { value: isFinite(value) ? value : it.made[5].scores[cell.at] };
    };
    const way = (right, up) => (Math.abs(right) > Math.abs(up) ? right : up); // a pull sideways moves it as well
    onDrag(board, take, ({ value }, right, up) => this.hold &&
      this.move(value + way(right, up) * this.far(this.hold.cell, it.step) / PIXELS),
      () => { this.held = null; this.release(); });
    board.addEventListener("pointerover", (event) => this.held || it.point(cellOf(event)));
    board.addEventListener("pointerleave", ({ pointerType }) => // what a finger tapped stays
      this.held || pointerType === "touch" || it.point(null));
    board.addEventListener("focusin", (event) => {
      const keys = event.target.matches(":focus-visible"), cell = cellOf(event);
      it.page.card.ariaLive = keys ? "polite" : "off";
      if (cell) it.page.tabbed(cell);
      if (keys) it.point(cell);
    });
    board.addEventListener("focusout", () => {
      if (!this.held) this.release();
      it.point(null);
    });
  }
}

// The playhead: how far the steps have happened, by itself or under a hand. At 5 the fifth has.

const SECONDS = 4.5; // that a step takes to happen

class Playhead {
  constructor(it) {
    this.it = it; this.p = 1;
    this.running = false; this.motion = null; // what ends it
    this.scrubbing = null; // where a pointer holds it
  }

  get step() { return Math.max(1, Math.ceil(this.p - 1e-6)); }

  show(p) {
    const before = this.step, { it } = this;
    this.p = clamp(p, TURN, it.end);
    if (before !== this.step || this.p === this.step) it.point(null);
    it.page.say(); it.soon();
  }

  go(to, time, then) {
    this.stop(this.running); this.it.hand.release();
    const from = this.p;
    this.motion = glide(time, (s) => {
      if (s === 1) this.motion = null;
      this.show(s === 1 ? to : from + (to - from) * s);
      if (s === 1) then?.();
    });
  }

  // Let the step happen that stands open, or the next one.
  play() {
    if (this.p >= this.it.end) this.show(this.next() - 1 + TURN);
    const to = Math.floor(this.p + 1e-6) + 1;
    this.mark(true);
    this.go(to, 1000 * SECONDS * (to - this.p), () => this.mark(false));
  }

  // The step that Play lets happen: the one that stands open; at the end the first, or one's own last.
  next() {
    const { end, own } = this.it;
    return this.p < end ? Math.floor(this.p + 1e-6) + 1 : own ? Math.max(1, Math.floor(end)) : 1;
  }

  toggle() { this.running ? this.stop() : this.play(); }

  stop(running = false) {
    this.motion?.();
    this.motion = null; this.mark(running);
  }

  mark(running) {
    const { one } = this.it.page;
    this.running = running;
    one.textContent = running ? "❚❚ Stop" : `▶ Play step ${this.next()}`;
    one.disabled = this.it.end <= TURN;
  }

  // To the end of what is happening, for a hand that does not wait.
  rush() {
    this.stop();
    if (this.p !== this.step) this.show(this.step);
  }

  skip(by) {
    if (this.motion && by > 0) this.rush();
    this.stop();
    if (by < 0) this.go(Math.max(TURN, this.step - 1), 300);
    else if (this.p < this.it.end) this.play();
  }

  // Put the handle where it is; before a step happens it frames the step's tile.
  put() {
    const n = this.step, early = n === 1 ? 1 : clamp((this.p - n + 1) / TURN);
    const at = this.scrubbing ? this.p : n - 1 + early;
    this.it.page.handle.style.transform = `translateX(${100 * (Math.max(at, 1) - 1)}%)`;
  }

  listen(strip) {
    const reached = (x) => {
      const { left, width } = strip.getBoundingClientRect();
      return (x - left) / width * LAST + 0.5;
    };
    onDrag(strip, ({ clientX }) => this.scrubbing = { x: clientX, moved: false, right: 0 }, (held, right) => {
      if (!held.moved && Math.abs(right) < 4) return;
      if (!held.moved) this.stop();
      held.moved = true; held.right = right;
      this.show(reached(held.x + right));
    }, () => {
      const { moved, x, right } = this.scrubbing, to = clamp(Math.round(reached(x + right)), 1, LAST);
      this.scrubbing = null; this.stop();
      if (moved) this.go(to, 220);
      else this.go(to - 1 + TURN, 260);
    });
  }
}

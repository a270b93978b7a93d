// The lever as a picture of its own: a row of scores, or the rows of one head, among which words choose.

const SPEED = 2200; // milliseconds for a moment

function render({ model, el }) {
  const { rows, words, divisor: root, colour } = model.get("data");
  const masked = rows.map((row) => row.map((score) => score ?? -Infinity));
  let query = rows.length - 1, t = 0, motion = null, divisor = root, dropped = false;
  let now = masked.map((row) => [...row]);
  el.classList.add("live");
  el.innerHTML = `<div class="lever alone"><div class="top"><div class="title" aria-live="polite"></div></div>
    <div class="moments queries"></div><div></div><div class="moments"><button>▶ Play</button>
    <button>Back to the start</button></div></div>`;
  const [top, queries, place, foot] = el.firstChild.children, [play, back] = foot.children;
  const stop = () => { motion?.(); motion = null; play.textContent = "▶ Play"; };
  const far = 2 * Math.max(4, Math.ceil(strongest(masked.flat())));
  const draw = () => {
    lever.draw();
    const { weights } = leverAt(t, says.read()), most = weights.indexOf(Math.max(...weights));
    const who = rows.length > 1 ? `“${words[query]}”` : "The query";
    top.firstChild.textContent = t < 3.5 ? `${who} has these scores. How much will it take from each?`
      : `${who} attends to “${words[most]}”: ${Math.round(100 * weights[most])} %`;
    const moved = now.some((row, i) => row.some((score, j) => score !== masked[i][j]));
    back.disabled = !moved && divisor === root && !dropped;
    [...queries.children].forEach((button, i) => { button.ariaPressed = String(i === query); });
  };
  const to = (end, time) => {
    stop();
    const from = t;
    motion = glide(time, (s) => {
      t = from + (end - from) * s;
      t = s < 1 ? Math.floor(t) + ease((t % 1) * 1.5) : end; // it rests a little at each moment
      if (s === 1) stop();
      draw();
    });
    play.textContent = "❚❚ Stop";
  };
  const says = {
    read: () => ({ words, scores: now[query].map((score) => (isFinite(score) ? score : 0)), masked: now[query],
      root, divisor, t, colour, far, kept: dropped ? keptOf(words.length) : null }),
    moved: (j, score) => { now[query][j] = Math.round(clamp(score, -far, far) * 100) / 100; draw(); },
    back: (j) => {
      const moved = now[query][j] !== masked[query][j];
      now[query][j] = masked[query][j];
      draw();
      return moved;
    },
    divided: (by) => { divisor = by; draw(); },
    trained: (on) => { dropped = on; draw(); },
    went: (k) => to(k, 700),
  };
  const lever = new Lever(place, says);
  if (rows.length > 1) queries.append(...words.map((word, i) =>
    Object.assign(document.createElement("button"), { textContent: word, onclick: () => { query = i; draw(); } })));
  play.onclick = () => {
    if (motion) return stop();
    if (t >= BEFORE) t = 0;
    to(BEFORE, SPEED * (BEFORE - t));
  };
  back.onclick = () => { now = masked.map((row) => [...row]); divisor = root; dropped = false; draw(); };
  onKeys(el, () => false);
  const room = new ResizeObserver(() => {
    if (el.clientWidth) { lever.wide = Math.min(540, el.clientWidth - 10); draw(); }
  });
  room.observe(el);
  return () => { stop(); room.disconnect(); };
}

export default answering(render);

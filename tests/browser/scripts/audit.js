() => {
  const faults = [], { scene, painter } = stage;
  const size = font => parseFloat(font.match(/[\d.]+px/));
  faults.push(...Object.values(painter.fonts).filter(font => !(size(font) >= 11)));
  const on = ([x, y, w, h], [a, b, c, d]) =>
    x < a + c - 2 && a < x + w - 2 && y < b + d - 4 && b < y + h - 4;
  for (const dOut of Object.keys(scene.heads).map(Number)) for (const heads of scene.heads[dOut])
  for (const tokens of TOKENS) {
    stage.set({ dOut, heads, tokens });
    const used = [];
    stage.steps.slice(1).forEach((laid, k) => {
      const fault = text => faults.push(`${dOut} ${heads} ${tokens} step ${k + 1}: ${text}`);
      const off = ([x, y, w, h]) =>
        !(x > -1 && y > -1 && x + w < laid.need + 1 && y + h < laid.high + 1);
      const cells = laid.shown.map(({ k }) => laid.at(k)), lost = cells.filter(off).length;
      if (lost || !cells.length) fault(`${lost} cells off`);
      if (laid.need > stage.room + 1 && !(stage.room < 480 && dOut === 12)) fault('scrolled');
      const words = laid.labels.filter(({ parts }) => parts[0][0].trim())
        .map(({ parts, x, y, wide }) => [parts.map(([text]) => text).join(''), [x, y, wide, 16]]);
      const [,, wide, high] = around([...cells, ...words.map(([, box]) => box)]);
      used.push(wide * high / stage.room / laid.high);
      words.forEach(([text, box], i) => {
        if (off(box)) fault(`"${text}" off`);
        const under = words.slice(0, i).find(([, other]) => on(box, other));
        if (under) fault(`"${text}" on "${under[0]}"`);
        if (cells.some(cell => on(box, cell))) fault(`"${text}" on a cell`);
      });
    });
    const most = Math.max(...used);
    if (!(most > (stage.narrow ? 0.4 : 0.45))) faults.push(`${dOut} ${heads}: ${most} used`);
  }
  return faults;
}

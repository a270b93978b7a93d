([step, picks, sizes]) => {
  stage.set(sizes);
  stage.playhead.show(step);
  const free = stage.steps[step].shown.filter(cell => stage.movable(cell));
  return picks.map(([which, to]) => {
    const cell = free[Math.floor(which * free.length)], far = stage.hand.far(cell, step);
    stage.hand.take(cell);
    stage.hand.move(nameOf(cell.kind, step) === 'weights' ? to : far * (2 * to - 1));
    const { value } = stage.whatIf(cell, step);
    const all = LEFT.slice(1).map(([names, form], n) => names.map(name =>
      ordered(stage.forms[form]).map(k => stage.made[n + 1][name][k])
        .map(v => v === -Infinity ? '-inf' : v)));
    const said = [stage.page.title.textContent, stage.page.elements[cell.k].dataset.cell];
    stage.hand.undo();
    return [said, value, leftBy(cell.kind, step), all];
  });
}

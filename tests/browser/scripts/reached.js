step => {
  stage.playhead.show(step);
  const named = k => stage.page.elements[k].dataset.cell, { shown } = stage.steps[step];
  return shown.filter(({ kind }) => kind === 'x').map(cell => {
    const frames = stage.relatives(cell, step).to, at = ({ k }) => stage.steps[step].at(k);
    const inside = ([a, b]) => frames.some(([x, y, w, h]) => a > x - 1 && b > y - 1
      && a < x + w - 1 && b < y + h - 1);
    const framed = shown.filter(each => inside(at(each))).map(({ k }) => named(k));
    stage.hand.take(cell);
    stage.hand.move(stage.value(cell, step) + 0.3);
    const moved = shown.filter(each => each !== cell && stage.change(each, step));
    const said = stage.page.card.textContent;
    stage.hand.undo();
    return [framed, moved.map(({ k }) => named(k)), said];
  });
}

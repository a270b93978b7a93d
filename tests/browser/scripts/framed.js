board => {
  const all = which => [...board.querySelectorAll(which)], clear = 'rgba(0, 0, 0, 0)';
  const framed = look => ['.code', '.card'].map(which => all(`${which}[data-step]`)
    .filter(e => look(getComputedStyle(e))).map(e => Number(e.dataset.step)));
  const seen = e => e.checkVisibility({visibilityProperty: true});
  return {own: framed(s => s.outlineStyle === 'solid'), to: framed(s => s.borderStyle === 'dashed'),
          from: framed(s => s.borderStyle === 'solid' && s.borderTopColor !== clear
            && s.outlineStyle === 'none'),
          here: all('.line').filter(e => getComputedStyle(e).boxShadow !== 'none')
            .map(e => e.dataset.told),
          words: all('.told > div').filter(seen).flatMap(e => [...e.children])
            .map(e => e.textContent)};
}

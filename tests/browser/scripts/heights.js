() => {
  stage.page.title.style.letterSpacing = '0.11em';
  return [...new Set(stage.page.tiles.flatMap((_, k) => [0.4, 1].map(part => {
    stage.playhead.show(k + part);
    const { title } = stage.page;
    if (title.scrollHeight > title.clientHeight + 2) throw Error(`cut: ${title.textContent}`);
    const { top, height } = stage.root.getBoundingClientRect();
    return `${height} ${stage.page.strip.getBoundingClientRect().top - top}`;
  })))];
}

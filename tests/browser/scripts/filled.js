([width, height]) => {
  const place = name => document.querySelector(name)?.getBoundingClientRect();
  if (innerWidth !== width || innerHeight !== height) return false;
  if (!place('#jp-top-panel')) return true;
  const dock = place('#jp-main-dock-panel'), notebook = place('.jp-NotebookPanel');
  return place('#jp-top-panel').right === width && place('#jp-bottom-panel').bottom === height &&
    Math.abs(dock.right - place('.jp-SideBar.jp-mod-right').left) <= 1 &&
    Math.abs(dock.right - notebook.right) < 10;
}

"""How sliders look and behave in a page: one style and one script, carried by every film.

ipywidgets ties no label to a slider's handle, announces an index instead of the value, makes the
value a nameless text field that takes no answer, and lets letters typed on the handle reach
JupyterLab as commands. It marks what has lost its kernel with a
broken chain, though a film needs none. The script and the style make these right.
"""

from html import escape

from eleven_steps.sliders.scripts import script, style

# A value that is a text takes the room it needs. Where there is little room the label and the
# value share a line, and the track has the next one to itself. While a tall picture is scrolled,
# its sliders stay in sight; what lies around them must not scroll for that.
STYLE = """
.film { container-type: inline-size; }
.film, .film .widget-box,
:is(.jp-OutputArea, .jp-OutputArea-child, .jp-OutputArea-output, .widget-subarea):has(.film) {
  overflow: visible;
}
.film .widget-box > .widget-box { width: 100%; }
.film .widget-slider {
  position: sticky; top: 0; z-index: 3; box-sizing: border-box; width: 100%; height: 32px;
  margin: 0; padding: 2px 4px; display: grid; align-items: center; column-gap: 12px;
  grid-template: "label track value" 28px / 230px minmax(100px, 240px) 1fr;
  background: var(--jp-layout-color0, Canvas);
}
.film .widget-slider ~ * .widget-slider { top: 32px; }
.widget-slider ~ * .widget-slider ~ * .widget-slider { top: 64px; }
.film .widget-slider > .widget-label { grid-area: label; width: auto; text-align: left; }
.film .widget-slider > .slider-container { grid-area: track; margin: 0 9px; }
.film .widget-slider > .widget-readout {
  grid-area: value; width: max-content; min-width: 3ch; text-align: left;
}
.film .noUi-handle { touch-action: none; }
.film .noUi-handle::before {
  content: ''; position: absolute; inset: -12px; width: auto; height: auto; background: none;
}
.film .widget-html, .film .widget-html-content:not(.sideways) { overflow: visible; }
.film.jupyter-widgets-disconnected::before,
.film .jupyter-widgets-disconnected::before { display: none; }
@container (max-width: 600px) {
  .film .widget-slider {
    height: 56px;
    grid-template: "label value" 24px "track track" 28px / minmax(0, 1fr) auto;
  }
  .film .widget-slider ~ * .widget-slider { top: 56px; }
  .widget-slider ~ * .widget-slider ~ * .widget-slider { top: 112px; }
}
"""

# Letters stay with the handle, chords such as Ctrl+S go to JupyterLab. When the sliders are first
# touched, the film takes the room of its tallest picture, so that what follows does not jump;
# laid anew in a narrow page, that of the tallest one seen.
SCRIPT = """
const film = this.closest('.film');
const name = () => film.querySelectorAll('.widget-slider').forEach(slider => {
  const handle = slider.querySelector('[role=slider]');
  handle.setAttribute('aria-label', slider.querySelector('label').textContent);
  const value = slider.querySelector('.widget-readout');
  handle.setAttribute('aria-valuetext', value.textContent);
  value.removeAttribute('contenteditable');
});
const fitAll = () => film.querySelectorAll('svg[role=img]').forEach(svg => {
  if (!film.clientWidth || svg.room === film.clientWidth) return;
  svg.room = film.clientWidth;
  fit(svg, svg.room);
});
const changed = () => { name(); fitAll(); };
new MutationObserver(changed).observe(film, {childList: true, subtree: true, characterData: true});
changed();
new ResizeObserver(fitAll).observe(film);
window.keysOfFilms ??= event => {
  const handle = event.target.closest?.('.film [role=slider]');
  handle?.toggleAttribute('data-lm-suppress-shortcuts', !event.ctrlKey && !event.metaKey);
};
window.addEventListener('keydown', window.keysOfFilms, true);
let wide = 0;
const keep = new ResizeObserver(() => {
  const turned = film.clientWidth !== wide;
  if (turned) {
    wide = film.clientWidth;
    film.style.minHeight = '';
    fitAll();
  }
  const shown = [...film.querySelectorAll('svg[role=img]')].find(svg => svg.checkVisibility());
  const tallest = film.querySelector('[data-tallest]').dataset.tallest;
  let more = 0;
  if (turned && shown && !shown.undo?.length) {
    const {width, height} = shown.viewBox.baseVal;
    more = (tallest - height) * shown.getBoundingClientRect().width / width;
  }
  film.style.minHeight = Math.ceil(film.offsetHeight + more) + 'px';
});
for (const touch of ['keydown', 'pointerdown'])
  film.addEventListener(touch, () => keep.observe(film), {once: true});
"""

MANNERS = f'<style onload="{escape(script("fit") + SCRIPT)}">{style("fit")}{STYLE}</style>'

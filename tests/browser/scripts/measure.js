(pictures, contrasts) => pictures.map(picture => {
  const numbers = colour => colour.match(/[\d.]+/g).map(Number);
  const blend = (under, over, alpha) => under.map((u, i) => u + (over[i] - u) * alpha);
  const light = c => [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
    const v = c[i] / 255;
    return sum + weight * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  }, 0);
  const box = picture.getBoundingClientRect();
  const scale = box.width / (picture.viewBox?.baseVal.width ?? picture.naturalWidth);
  const seen = each => !each.closest('[display=none]'); // Chromium calls such shapes visible
  const shapes = [...picture.querySelectorAll('path, rect, circle')].filter(seen);
  const ground = shapes[0] && numbers(getComputedStyle(shapes[0]).fill).slice(0, 3);
  let small = 99, contrast = 99;
  for (const text of picture.querySelectorAll('text')) {
    if (!text.textContent.trim() || !seen(text)) continue;
    const look = getComputedStyle(text), ink = numbers(look.fill);
    small = Math.min(small, parseFloat(look.fontSize) * scale);
    if (!contrasts) continue;
    const place = text.getBoundingClientRect();
    const point = picture.createSVGPoint();
    let under = ground;
    for (const shape of shapes.slice(1)) {
      const style = getComputedStyle(shape);
      if (style.fill === 'none' || !shape.getScreenCTM()) continue;
      point.x = (place.left + place.right) / 2;
      point.y = (place.top + place.bottom) / 2;
      if (shape.isPointInFill(point.matrixTransform(shape.getScreenCTM().inverse()))) {
        const fill = numbers(style.fill);
        under = blend(under, fill, parseFloat(style.fillOpacity) * (fill[3] ?? 1));
      }
    }
    const over = blend(under, ink, (ink[3] ?? 1) * parseFloat(look.fillOpacity));
    const [high, low] = [light(over), light(under)].sort((a, b) => b - a);
    contrast = Math.min(contrast, (high + 0.05) / (low + 0.05));
  }
  let holder = picture.parentElement ?? picture;
  while (holder.parentElement && !/auto|scroll/.test(getComputedStyle(holder).overflowX))
    holder = holder.parentElement;
  const frame = holder.getBoundingClientRect(), reach = holder.scrollWidth - holder.scrollLeft;
  return {label: picture.getAttribute('aria-label') ?? picture.alt, small, contrast, scale,
          source: picture.src ?? '', shown: picture.complete !== false && box.width > 0,
          right: frame.right, cut: box.right - frame.left - reach,
          sideways: picture.parentElement?.classList.contains('sideways'),
          focus: picture.parentElement?.tabIndex};
})

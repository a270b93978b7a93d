code => {
  const pen = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
  const light = colours => {
    pen.clearRect(0, 0, 1, 1);
    for (const colour of colours) { pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1); }
    return [0.2126, 0.7152, 0.0722].reduce((sum, weight, i) => {
      const v = pen.getImageData(0, 0, 1, 1).data[i] / 255;
      return sum + weight * (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    }, 0);
  };
  const behind = e => e ? [...behind(e.parentElement), getComputedStyle(e).backgroundColor] : [];
  const own = e => [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
  return [code, ...code.querySelectorAll('*')].filter(own).map(e => {
    const ground = behind(e), ink = light([...ground, getComputedStyle(e).color]);
    const [high, low] = [ink, light(ground)].sort((a, b) => b - a);
    return [e.textContent, (high + 0.05) / (low + 0.05)];
  });
}

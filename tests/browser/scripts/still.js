seconds => new Promise(say => {
  const end = performance.now() + 1000 * seconds;
  let before = null, same = 0;
  const look = () => {
    const all = document.querySelectorAll('.lm-Widget, svg[role=img], img, .handle');
    const places = [...all].map(each => {
      const box = each.getBoundingClientRect();
      return [box.left, box.top, box.width, box.height].join(' ');
    });
    const now = [innerWidth, innerHeight, ...places].join();
    same = now === before ? same + 1 : 0;
    before = now;
    if (same === 6 || performance.now() > end) say(same === 6);
    else requestAnimationFrame(look);
  };
  look();
})

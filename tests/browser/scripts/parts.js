film => [...film.querySelectorAll('.sliders > div')].map(slider => {
    const edge = film.getBoundingClientRect();
    const place = name => {
      const box = slider.querySelector(name).getBoundingClientRect();
      return {left: box.left - edge.left, right: edge.right - box.right, width: box.width,
              top: box.top - edge.top, bottom: box.bottom - edge.top};
    };
    return {label: place('label'), value: place('output'), track: place('input')};
  })

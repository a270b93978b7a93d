// The stage as a picture of its own.

export default {
  render({ model, el }) {
    const stage = mount(el, model.get("data"));
    return () => stage.leave();
  },
};

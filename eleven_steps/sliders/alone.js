// The stage as a picture of its own.

export default answering(({ model, el }) => {
  const stage = new Stage(el, model.get("data"));
  return () => stage.leave();
});

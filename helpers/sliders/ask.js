// How a picture talks to its kernel.

const PATIENCE = 2000; // milliseconds until a kernel that does not answer counts as none

// Send a question at a time, then the newest of those that came meanwhile.
function ask(model, answered, silent) {
  let waiting = null, next = null, turn = 0;
  const send = (question) => {
    turn += 1;
    waiting = setTimeout(() => { waiting = next = null; silent(); }, PATIENCE);
    try {
      model.send({ ...question, turn });
    } catch {
      clearTimeout(waiting);
      waiting = null;
      silent();
    }
  };
  model.on("msg:custom", (answer) => {
    answered(answer); // also where another view of this picture asked
    if (answer.turn !== turn) return;
    clearTimeout(waiting);
    waiting = null;
    if (next) send(next);
    next = null;
  });
  return (question) => { if (waiting) next = question; else send(question); };
}

// How a picture talks to its kernel.

const PATIENCE = 2000; // milliseconds until a kernel that does not answer counts as none

// Send a question at a time, then the newest of those that came meanwhile; it waits for a kernel
// that is late. What answered is told whether another answer is on its way.
function ask(model, answered, silent) {
  let waiting = null, next = null, turn = null;
  const send = (question) => {
    next = null;
    turn = Math.random(); // other views of this picture may ask as well
    const over = () => {
      clearTimeout(waiting);
      waiting = null;
      silent();
    };
    waiting = setTimeout(over, PATIENCE);
    try {
      model.send({ ...question, turn });
    } catch {
      over();
    }
  };
  model.on("msg:custom", (answer) => {
    if (answer.turn === turn) {
      clearTimeout(waiting);
      waiting = turn = null;
      if (next) send(next);
    }
    answered(answer, Boolean(waiting)); // also where another view of this picture asked
  });
  return (question) => { if (waiting) next = question; else send(question); };
}

// The page of questions: what is said to a choice, other numbers, and how many were right at once.
// Arrow keys only move through the options: Enter or Space then chooses.
const count = document.createElement("p"), tries = [];
count.setAttribute("role", "status");
document.querySelector(".question").before(count);

for (const question of document.querySelectorAll(".question")) {
  const variants = [...question.querySelectorAll("fieldset")];
  const show = (number) => variants.forEach((variant, place) => { variant.hidden = place !== number; });
  let moving = false;
  show(0);
  question.addEventListener("pointerdown", () => { moving = false; });
  question.addEventListener("keydown", ({ key, target }) => {
    moving = key.startsWith("Arrow");
    if ((key === "Enter" || key === " ") && target.checked) say(target);
  });
  question.addEventListener("change", ({ target }) => { if (!moving) say(target); });
  question.querySelector("button")?.addEventListener("click", () => {
    show((variants.findIndex((variant) => !variant.hidden) + 1) % variants.length);
    question.querySelector("fieldset:not([hidden]) input").focus();
  });
}

function say(choice) {
  const right = choice.value === "1", place = choice.closest("fieldset");
  const said = place.querySelector("[role=status]");
  said.className = `verdict ${right ? "right" : "wrong"}`;
  said.innerHTML = (right ? "✓ Right. " : "✗ No. ") + choice.parentElement.lastChild.innerHTML;
  if (!place.dataset.tried) tries.push(right);
  place.dataset.tried = true;
  count.textContent = `${tries.filter(Boolean).length} of ${tries.length} right at once`;
}

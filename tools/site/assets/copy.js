// Each exercise has a button that copies its cell. Where a page may not copy, the button selects it.
for (const button of document.querySelectorAll(".try button")) {
  const code = button.parentElement.previousElementSibling.querySelector("pre");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.innerText);
      button.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      button.textContent = "Selected: copy it";
    }
  });
}

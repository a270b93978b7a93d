// The tables of a tensor; what differs from the right one is framed.
function tables(title, all) {
  const figure = document.createElement("figure");
  const cell = (text, differs) => `<td${differs ? ' class="differs"' : ""}>${text}</td>`;
  figure.className = "tables";
  figure.innerHTML = all.map(({ name, rows, differs }) =>
    `<table><caption>${[title, name].filter(Boolean).join(", ")}</caption>${rows.map((row, i) =>
      `<tr>${row.map((text, j) => cell(text, differs[i][j])).join("")}</tr>`).join("")}</table>`).join("");
  return figure;
}

"use strict";
// A click on the head of a column sorts its table: numbers and times by their values, empty cells last. A column of
// numbers starts with the largest.
function keyOf(row, place, numeric) {
  const cell = row.cells[place];
  if (!numeric) return cell.textContent || null;
  const key = Number(cell.dataset.key);
  return Number.isNaN(key) ? null : key;
}
function compare(one, other) {
  if (typeof one === "string") return one.localeCompare(other, "en", { numeric: true });
  return one < other ? -1 : one > other ? 1 : 0;
}
function sortBy(head) {
  const body = head.closest("table").tBodies[0];
  const numeric = head.dataset.kind !== "text";
  const was = head.getAttribute("aria-sort");
  const down = was ? was === "ascending" : numeric;
  const rows = Array.from(body.rows, (row) => [keyOf(row, head.cellIndex, numeric), row]);
  rows.sort(([one], [other]) => {
    if (one === null || other === null) return (one === null) - (other === null);
    return down ? compare(other, one) : compare(one, other);
  });
  for (const each of head.parentNode.cells) each.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows.map(([, row]) => row));
}
for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button.parentNode));
}

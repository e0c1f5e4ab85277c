/* Tables in a block of class "sortable" are sorted by a click on a heading; without this script they are plain tables. */
"use strict";

function sortKey(row, column) {
  const text = row.cells[column].textContent.trim();
  const number = parseFloat(text.replace(/\u2212/g, "-").replace(/,/g, ""));
  return Number.isNaN(number) ? text : number;
}

function compareKeys(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "number") return -1;
  if (typeof b === "number") return 1;
  return a.localeCompare(b);
}

function sortBy(table, heading, column) {
  const descending = heading.getAttribute("aria-sort") === "ascending";
  for (const other of heading.parentNode.cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", descending ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows];
  rows.sort((a, b) => (descending ? -1 : 1) * compareKeys(sortKey(a, column), sortKey(b, column)));
  table.tBodies[0].append(...rows);
}

document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll(".sortable table")) {
    [...table.tHead.rows[0].cells].forEach((heading, column) => {
      heading.tabIndex = 0;
      heading.addEventListener("click", () => sortBy(table, heading, column));
      heading.addEventListener("keydown", (event) => {
        if (event.key === "Enter") sortBy(table, heading, column);
      });
    });
  }
});

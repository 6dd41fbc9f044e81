// Filters, opening and printing of the report's questions. The report is readable without it.
"use strict";
(function () {
  const byId = (id) => document.getElementById(id);
  const form = byId("filters");
  const rows = Array.from(document.querySelectorAll("details.question"));
  const texts = new Map();
  const textOf = (row) => {
    if (!texts.has(row)) texts.set(row, row.textContent.toLowerCase().replace(/\s+/g, " "));
    return texts.get(row);
  };
  const fits = (row, status) =>
    !status ||
    row.dataset.status === status ||
    (status === "lost" && row.dataset.lost) ||
    (status === "error" && row.dataset.error);

  function showCount(shown) {
    const all = rows.length + (rows.length === 1 ? " question" : " questions");
    byId("shown").textContent = shown === rows.length ? all : shown + " of " + rows.length + " questions match";
    byId("nothing").hidden = shown > 0 || rows.length === 0;
  }

  function apply() {
    const words = byId("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const status = byId("status").value;
    const grade = byId("grade").value;
    const category = byId("category").value;
    let shown = 0;
    for (const row of rows) {
      const keep =
        fits(row, status) &&
        (!grade || row.dataset.grade === grade) &&
        (!category || row.dataset.category === category) &&
        words.every((word) => textOf(row).includes(word));
      row.hidden = !keep;
      if (keep) shown += 1;
    }
    showCount(shown);
  }

  function setOpen(open) {
    for (const row of rows) if (!row.hidden) row.open = open;
  }

  function openLinked() {
    const row = location.hash.length > 1 ? byId(location.hash.slice(1)) : null;
    if (row && row.tagName === "DETAILS") {
      row.hidden = false;
      row.open = true;
      row.scrollIntoView();
    }
  }

  form.hidden = rows.length === 0;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", apply);
  form.addEventListener("reset", () => setTimeout(apply));
  byId("open").addEventListener("click", () => setOpen(true));
  byId("close").addEventListener("click", () => setOpen(false));
  window.addEventListener("hashchange", openLinked);

  // Paper has no buttons: print failures in full, other questions in one line.
  let opened = [];
  window.addEventListener("beforeprint", () => {
    opened = rows.filter((row) => !row.hidden && !row.open && row.dataset.status === "failed");
    for (const row of opened) row.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const row of opened) row.open = false;
    opened = [];
  });
  apply();
  openLinked();
})();

// Widths of columns, remembered in this browser. Loaded before the tables, so that each is drawn once, with its widths.
"use strict";
(() => {
  const PLACE = "answerkey column widths";
  const LEAST = 40;
  const MOST = 1600;
  const STEP = 16;

  // Table → column → pixels.
  const read = () => {
    const found = {};
    try {
      for (const [table, columns] of Object.entries(JSON.parse(localStorage.getItem(PLACE)) || {})) {
        found[table] = {};
        for (const [name, width] of Object.entries(columns)) if (width > 0) found[table][name] = Number(width);
      }
    } catch {
      // No storage, or not ours.
    }
    return found;
  };
  const save = () => {
    try {
      localStorage.setItem(PLACE, JSON.stringify(widths));
    } catch {
      // They hold until the page is left.
    }
  };
  const widths = read();

  // A sheet that a script makes is allowed where styles in the page are not.
  const sheet = new CSSStyleSheet();
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
  const rulesOf = ([table, columns]) => {
    const scope = `.work-table[data-table="${CSS.escape(table)}"]`;
    const rules = Object.entries(columns).map(
      ([name, width]) => `${scope} col[data-column="${CSS.escape(name)}"] { width: ${width}px; }`,
    );
    return [
      `${scope} table { table-layout: fixed; width: 0; }`,
      // A column that was added since.
      `${scope} col { width: 140px; }`,
      `${scope} :is(td, th) { overflow: hidden; text-overflow: ellipsis; }`,
      ...rules,
    ];
  };
  const draw = () => sheet.replaceSync(`@media screen { ${Object.entries(widths).flatMap(rulesOf).join("\n")} }`);
  draw();

  const tableOf = (element) => element.closest(".work-table").dataset.table;
  const headsOf = (table) => document.querySelectorAll(`.work-table[data-table="${CSS.escape(table)}"] th`);
  const handlesOf = (table) => [...headsOf(table)].flatMap((head) => [...head.querySelectorAll(".resize")]);
  const tellWidths = (table) => {
    for (const handle of handlesOf(table)) handle.setAttribute("aria-valuenow", handle.parentElement.offsetWidth);
  };
  // From now on every column has the width that it has.
  const fix = (table) => {
    const now = [...headsOf(table)].map((head) => [head.dataset.column, head.offsetWidth]);
    widths[table] = { ...widths[table], ...Object.fromEntries(now) };
  };
  const change = (handle, width) => {
    const table = tableOf(handle);
    widths[table][handle.parentElement.dataset.column] = Math.min(MOST, Math.max(LEAST, Math.round(width)));
    draw();
    tellWidths(table);
  };
  const reset = (table) => {
    delete widths[table];
    draw();
    save();
    tellWidths(table);
  };
  // As wide as it would be without any change.
  const makeNatural = (handle) => {
    const table = tableOf(handle);
    sheet.replaceSync("");
    const natural = handle.parentElement.offsetWidth;
    draw();
    fix(table);
    change(handle, natural);
    save();
  };

  const addHandles = () => {
    for (const head of document.querySelectorAll(".work-table th[aria-label]")) {
      if (head.querySelector(".resize")) continue;
      const handle = document.createElement("span");
      handle.className = "resize";
      handle.tabIndex = 0;
      handle.title = "Drag, or arrow keys; double click or Enter: as wide as before";
      const attributes = {
        role: "separator",
        "aria-orientation": "vertical",
        "aria-label": `Width of ${head.getAttribute("aria-label")}`,
        "aria-valuemin": LEAST,
        "aria-valuemax": MOST,
        "aria-valuenow": head.offsetWidth,
      };
      for (const [name, value] of Object.entries(attributes)) handle.setAttribute(name, value);
      head.append(handle);
    }
  };
  document.addEventListener("DOMContentLoaded", addHandles);
  // New rows of a running run come with new heads.
  document.addEventListener("newrows", addHandles);

  const handleAt = (event) => event.target.closest?.(".resize");
  let dragged = null;
  document.addEventListener("pointerdown", (event) => {
    const handle = handleAt(event);
    if (!handle || event.button !== 0) return;
    handle.setPointerCapture(event.pointerId);
    fix(tableOf(handle));
    dragged = { handle, from: event.clientX, width: handle.parentElement.offsetWidth };
  });
  document.addEventListener("pointermove", (event) => {
    if (dragged) change(dragged.handle, dragged.width + event.clientX - dragged.from);
  });
  const drop = () => {
    if (dragged) save();
    dragged = null;
  };
  document.addEventListener("pointerup", drop);
  document.addEventListener("pointercancel", drop);
  document.addEventListener("dblclick", (event) => {
    const handle = handleAt(event);
    if (handle) makeNatural(handle);
  });
  document.addEventListener("keydown", (event) => {
    const handle = handleAt(event);
    const step = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (!handle || (!step && event.key !== "Enter")) return;
    event.preventDefault();
    if (!step) return makeNatural(handle);
    fix(tableOf(handle));
    change(handle, handle.parentElement.offsetWidth + step);
    save();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-reset-widths]");
    if (button) reset(button.dataset.resetWidths);
  });
})();

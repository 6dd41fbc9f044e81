// Keys, the run switcher and live progress. Everything can be read without this file.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const one = (selector) => document.querySelector(selector);
  const make = (name, text) => {
    const element = document.createElement(name);
    element.textContent = text;
    return element;
  };
  // Rounded down, as everywhere: a score must not read better than its grade.
  const clock = {
    year: "numeric",
    month: "short",
    day: "numeric",
    hour: "2-digit",
    minute: "2-digit",
    timeZoneName: "short",
  };
  const percentOf = (score) => Math.floor(score * 1000 + 1e-6) / 10 + "%";

  // On a phone the menu scrolls: the page one is on is visible.
  const current = one("header nav [aria-current]");
  if (current) current.parentElement.scrollLeft = current.offsetLeft - current.parentElement.offsetLeft;

  // Another page of the dashboard, to take a part of it.
  const load = async (address) => {
    const answer = await fetch(address);
    return answer.ok ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
  };

  // Moving through rows; a running run gets new ones.
  let here = -1;
  const go = (to) => {
    const rows = [...document.querySelectorAll("[data-row]")];
    if (!rows.length) return false;
    for (const row of rows) row.classList.remove("here");
    here = Math.max(0, Math.min(rows.length - 1, to));
    rows[here].classList.add("here");
    rows[here].scrollIntoView({ block: "nearest" });
    const link = rows[here].querySelector("[data-open]");
    if (link) link.focus({ preventScroll: true });
    if (link && !pane.hidden) showInPane(link);
    return true;
  };

  // The pane: the details of a row beside the table; j and k still move.
  const pane = byId("pane");
  let wanted = 0;
  const showPage = (page) => {
    const shown = page.querySelector("main");
    for (const part of shown.querySelectorAll(".crumbs, .actions")) part.remove();
    byId("pane-body").replaceChildren(...shown.childNodes);
  };
  const showInPane = async (link) => {
    const mine = ++wanted;
    const page = await load(link.href);
    // The reader may be two rows further by now.
    if (mine !== wanted || !page) return;
    showPage(page);
    byId("pane-open").href = link.href;
    pane.scrollTop = 0;
  };
  // A verdict given in the pane is sent from there, and the pane shows what came of it.
  pane.addEventListener("submit", async (event) => {
    if (event.target.dataset.stay === undefined) return;
    event.preventDefault();
    const body = new URLSearchParams(new FormData(event.target, event.submitter));
    const answer = await fetch(event.target.action, { method: "POST", body });
    if (answer.ok) showPage(new DOMParser().parseFromString(await answer.text(), "text/html"));
  });
  const openPane = () => {
    if (!one(".work-table [data-open]")) return false;
    pane.hidden = false;
    document.body.classList.add("with-pane");
    return go(Math.max(0, here));
  };
  const closePane = () => {
    const open = !pane.hidden;
    pane.hidden = true;
    document.body.classList.remove("with-pane");
    return open;
  };
  byId("pane-close").addEventListener("click", closePane);
  // A click or a tap on a row opens it in the pane; links, fields and selected text keep what they do.
  document.addEventListener("click", (event) => {
    const row = event.target.closest(".work-table [data-row]");
    const other = event.target.closest("a, button, input, label, select, summary");
    if (!row || other || String(getSelection())) return;
    here = [...document.querySelectorAll("[data-row]")].indexOf(row);
    openPane();
  });
  const follow = (selector) => {
    const link = one(selector);
    if (link) link.click();
    return Boolean(link);
  };

  // The switcher: names come from others, so they are only ever set as text.
  const switcher = byId("switcher");
  const field = byId("switcher-text");
  const list = byId("switcher-list");
  let asked = 0;
  let chosen = 0;
  const choose = (to) => {
    const links = [...list.querySelectorAll("a")];
    if (!links.length) return;
    chosen = (to + links.length) % links.length;
    links.forEach((link, index) => link.classList.toggle("here", index === chosen));
    links[chosen].scrollIntoView({ block: "nearest" });
  };
  const itemOf = (row) => {
    const { info, figures } = row;
    const score = figures && figures.score !== null ? ` ${figures.grade} ${percentOf(figures.score)}` : "";
    const when = new Date(info.created_at).toLocaleString([], clock);
    const link = document.createElement("a");
    link.href = "/runs/" + encodeURIComponent(info.id);
    link.append(make("bdi", info.name.slice(0, 80)));
    link.append(make("small", `${score} · ${info.target.slice(0, 60)} · ${when}`));
    const item = document.createElement("li");
    item.append(link);
    return item;
  };
  const search = async () => {
    const mine = ++asked;
    const answer = await fetch("/api/runs?text=" + encodeURIComponent(field.value.slice(0, 200)));
    // An answer to what was typed before is no longer wanted.
    if (mine !== asked || !answer.ok) return;
    const found = (await answer.json()).rows.slice(0, 12).map(itemOf);
    list.replaceChildren(...(found.length ? found : [make("li", "No run matches.")]));
    choose(0);
  };
  const openSwitcher = () => {
    if (!byId("find-run") || switcher.open) return;
    switcher.showModal();
    field.value = "";
    field.focus();
    search();
  };
  if (byId("find-run")) byId("find-run").addEventListener("click", openSwitcher);
  field.addEventListener("input", search);
  field.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown") choose(chosen + 1);
    else if (event.key === "ArrowUp") choose(chosen - 1);
    else if (event.key === "Enter") follow("#switcher a.here");
    else if (event.key === "Escape") switcher.close();
    else return;
    event.preventDefault();
  });

  // Keys: each says whether it did something.
  const focusOn = (element) => {
    if (element) element.focus();
    return Boolean(element);
  };
  const openDialog = (dialog) => {
    dialog.showModal();
    return true;
  };
  const keys = {
    "?": () => openDialog(byId("keys")),
    "/": () => focusOn(byId("search")),
    v: () => closePane() || openPane(),
    Escape: closePane,
    c: () => focusOn(one(".judge textarea")),
    u: () => follow("[data-up]"),
    j: () => follow("[data-next]") || go(here + 1),
    k: () => follow("[data-prev]") || go(here - 1),
  };
  keys.n = keys.j;
  keys.p = keys.k;
  document.addEventListener("keydown", (event) => {
    const key = event.key;
    if ((event.ctrlKey || event.metaKey) && key.toLowerCase() === "k") {
      event.preventDefault();
      openSwitcher();
      return;
    }
    // A dialog that was just closed may still hold the focus: it no longer keeps the keys.
    const dialog = event.target.closest("dialog");
    const typing = dialog ? dialog.open : event.target.closest("input, textarea, select");
    if (typing && key === "Escape" && !dialog) event.target.blur();
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    // Some pages have keys of their own.
    const done = keys[key] ? keys[key]() : /^[a-z]$/.test(key) && follow(`[data-key="${key}"]`);
    if (done) event.preventDefault();
  });

  // Charts: the values nearest to the pointer or the focus are written below; arrow keys move between them.
  const svgLine = (chart) => {
    const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
    line.setAttribute("class", "crosshair");
    line.setAttribute("y1", "4");
    line.setAttribute("y2", "176");
    line.style.display = "none";
    chart.append(line);
    return line;
  };
  for (const chart of document.querySelectorAll("svg.chart")) {
    const readout = make("p", "");
    readout.className = "readout";
    readout.setAttribute("aria-hidden", "true");
    chart.after(readout);
    const line = svgLine(chart);
    const marks = [...chart.querySelectorAll("[data-words]")];
    const middle = (mark) => {
      const box = mark.getBoundingClientRect();
      return box.left + box.width / 2 - chart.getBoundingClientRect().left;
    };
    const showAt = (x) => {
      const places = marks.map(middle);
      const nearest = Math.min(...places.map((place) => Math.abs(place - x)));
      const found = marks.filter((_, index) => Math.abs(places[index] - x) <= nearest + 1);
      readout.textContent = found.map((mark) => mark.dataset.words).join(" · ");
      line.style.display = found.length ? "" : "none";
      for (const name of ["x1", "x2"]) line.setAttribute(name, found.length ? middle(found[0]) : 0);
    };
    chart.addEventListener("pointermove", (event) => showAt(event.clientX - chart.getBoundingClientRect().left));
    chart.addEventListener("focusin", (event) => {
      const mark = event.target.querySelector("[data-words]");
      if (mark) showAt(middle(mark));
    });
    chart.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      const links = [...chart.querySelectorAll("a")];
      const next = links[links.indexOf(event.target) + step];
      if (!step || !next) return;
      event.preventDefault();
      next.focus();
    });
  }

  // The order of the columns in the menu is that of the table; the address remembers it.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-move]");
    if (!button) return;
    const row = button.closest(".row");
    const other = button.dataset.move === "1" ? row.nextElementSibling : row.previousElementSibling;
    if (!other || !other.matches(".row")) return;
    if (button.dataset.move === "1") other.after(row);
    else other.before(row);
    button.focus();
  });

  // Addresses without empty parameters are easier to read and to share.
  for (const form of document.querySelectorAll("form[method=get]")) {
    form.addEventListener("submit", () => {
      for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    });
  }
  window.addEventListener("pageshow", () => {
    for (const field of document.querySelectorAll("form[method=get] :disabled")) field.disabled = false;
  });

  // A running run: reload its rows, unless the visitor is using them.
  const renewRows = async () => {
    const list = one("[data-live]");
    if (!list || list.contains(document.activeElement) || list.querySelector("details[open]")) return;
    const page = await load(location.href);
    const fresh = page && page.querySelector("[data-live]");
    if (!fresh) return;
    list.replaceWith(fresh);
    document.dispatchEvent(new Event("newrows"));
  };
  const followRun = async (element) => {
    const answer = await fetch("/api/runs/" + encodeURIComponent(element.dataset.progress) + "/progress");
    if (!answer.ok) return;
    const now = await answer.json();
    const set = (name, text) => {
      const part = element.querySelector(`[data-${name}]`);
      if (part) part.textContent = text;
    };
    set("done", now.done.toLocaleString("en"));
    set("planned", now.planned.toLocaleString("en"));
    if (now.score !== null) set("score", percentOf(now.score));
    const bar = element.querySelector("progress");
    if (bar) {
      bar.max = now.planned;
      bar.value = now.done;
    }
    if (now.done !== Number(element.dataset.rows || now.done)) await renewRows();
    element.dataset.rows = now.done;
    const percent = now.planned ? Math.floor((100 * now.done) / now.planned) : 0;
    const state = now.status === "running" ? `running ${percent}%` : now.status;
    if (element.classList.contains("tag")) element.textContent = state;
    if (now.status === "running") setTimeout(() => followRun(element), 1500);
    else if (element.dataset.reload !== undefined) location.reload();
  };
  for (const element of document.querySelectorAll("[data-progress]")) followRun(element);

  // The jobs that wait or run.
  const followJobs = async () => {
    const page = await load(location.href);
    const fresh = page && page.getElementById("jobs");
    if (fresh) byId("jobs").replaceWith(fresh);
    if (!fresh || fresh.dataset.refresh !== undefined) setTimeout(followJobs, 1500);
  };
  if (one("#jobs[data-refresh]")) followJobs();
})();

// Keys, the run switcher and live progress. Everything can be read without this file.
"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const one = (selector) => document.querySelector(selector);
  for (const element of document.querySelectorAll(".needs-js")) element.hidden = false;

  // Moving through rows.
  const rows = [...document.querySelectorAll("[data-row]")];
  let here = -1;
  const go = (to) => {
    if (!rows.length) return;
    if (here >= 0) rows[here].classList.remove("here");
    here = Math.max(0, Math.min(rows.length - 1, to));
    rows[here].classList.add("here");
    rows[here].scrollIntoView({ block: "nearest" });
    const link = rows[here].querySelector("[data-open]");
    if (link) link.focus({ preventScroll: true });
  };
  const follow = (selector) => {
    const link = one(selector);
    if (link) link.click();
    return Boolean(link);
  };

  // The switcher: names come from others, so they are only ever set as text.
  const switcher = byId("switcher"), field = byId("switcher-text"), list = byId("switcher-list");
  let asked = 0, chosen = 0;
  const choose = (to) => {
    const links = [...list.querySelectorAll("a")];
    if (!links.length) return;
    chosen = (to + links.length) % links.length;
    links.forEach((link, index) => link.classList.toggle("here", index === chosen));
    links[chosen].scrollIntoView({ block: "nearest" });
  };
  const search = async () => {
    const mine = ++asked;
    const answer = await fetch("/api/runs?text=" + encodeURIComponent(field.value.slice(0, 200)));
    if (mine !== asked || !answer.ok) return;
    const found = await answer.json();
    list.replaceChildren(...found.rows.slice(0, 12).map((row) => {
      const item = document.createElement("li"), link = document.createElement("a"), note = document.createElement("small");
      link.href = "/runs/" + encodeURIComponent(row.info.id);
      const score = row.figures && row.figures.score !== null ? ` ${row.figures.grade} ${(Math.floor(row.figures.score * 1000 + 1e-6) / 10)}%` : "";
      link.append(document.createElement("bdi"));
      link.firstChild.textContent = row.info.name.slice(0, 80);
      note.textContent = `${score} · ${row.info.target.slice(0, 60)} · ${row.info.created_at.slice(0, 16).replace("T", " ")}`;
      link.append(note);
      item.append(link);
      return item;
    }));
    if (!found.rows.length) {
      const nothing = document.createElement("li");
      nothing.textContent = "No run matches.";
      list.replaceChildren(nothing);
    }
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
    if (event.key === "ArrowDown") { event.preventDefault(); choose(chosen + 1); }
    if (event.key === "ArrowUp") { event.preventDefault(); choose(chosen - 1); }
    if (event.key === "Enter") { event.preventDefault(); follow("#switcher a.here"); }
  });

  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") { event.preventDefault(); openSwitcher(); return; }
    // A dialog that was just closed may still hold the focus: it no longer keeps the keys.
    const dialog = event.target.closest("dialog");
    const typing = dialog ? dialog.open : event.target.closest("input, textarea, select");
    if (typing && event.key === "Escape" && !dialog) { event.target.blur(); return; }
    if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
    const key = event.key;
    if (key === "?") byId("keys").showModal();
    else if (key === "/" && byId("search")) byId("search").focus();
    else if (key === "u") follow("[data-up]");
    else if (key === "j" || key === "n") { if (!follow("[data-next]")) go(here + 1); }
    else if (key === "k" || key === "p") { if (!follow("[data-prev]")) go(here < 0 ? 0 : here - 1); }
    else if (key === "c" && one(".judge textarea")) one(".judge textarea").focus();
    else if (key.length === 1 && /[a-z]/.test(key) && follow(`[data-key="${key}"]`)) { /* done */ }
    else return;
    event.preventDefault();
  });
  const comment = one(".judge textarea");
  if (comment) comment.addEventListener("keydown", (event) => {
    if (event.key === "Escape") comment.blur();
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

  // A run under way.
  const follow_run = async (element) => {
    const answer = await fetch("/api/runs/" + encodeURIComponent(element.dataset.progress) + "/progress");
    if (!answer.ok) return;
    const now = await answer.json();
    const percent = now.planned ? Math.floor((100 * now.done) / now.planned) : 0;
    const bar = element.querySelector("progress");
    if (bar) { bar.max = now.planned; bar.value = now.done; }
    const set = (name, text) => { const part = element.querySelector(`[data-${name}]`); if (part) part.textContent = text; };
    set("done", now.done.toLocaleString("en"));
    set("planned", now.planned.toLocaleString("en"));
    if (now.score !== null) set("score", (Math.floor(now.score * 1000 + 1e-6) / 10) + "%");
    if (element.classList.contains("tag")) element.textContent = `running ${percent}%`;
    if (now.status !== "running" && element.dataset.reload !== undefined) { location.reload(); return; }
    if (now.status === "running") setTimeout(() => follow_run(element), 1500);
  };
  for (const element of document.querySelectorAll("[data-progress]")) {
    if (element.classList.contains("tag") || element.textContent.includes("under way")) follow_run(element);
  }
})();

// The chat page. Whatever comes from the service is put in as text, never as HTML.
"use strict";

const log = document.getElementById("log");
const form = document.getElementById("composer");
const field = document.getElementById("question");
const send = document.getElementById("send");
const conversation = crypto.randomUUID ? crypto.randomUUID() : String(Math.random()).slice(2);

function make(tag, className, text) {
  const element = document.createElement(tag);
  if (className) element.className = className;
  if (text !== undefined && text !== null) element.textContent = text;
  return element;
}

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: response.status, document: await response.json() };
}

function details(title, chips) {
  const box = make("details");
  const summary = make("summary");
  summary.append(make("strong", "", title), " ");
  for (const chip of chips) summary.append(make("span", "chip", chip));
  box.append(summary);
  return box;
}

// What a tool was asked and what it gave, short enough to read.
function summary(call) {
  const asked = call.arguments.sql
    ? call.arguments.sql + (call.arguments.parameters ? `\n${JSON.stringify(call.arguments.parameters)}` : "")
    : JSON.stringify(call.arguments);
  if (call.error) return `${asked}\n→ ${call.error}`;
  const result = call.result || {};
  let lines = [JSON.stringify(result)];
  if (result.rows) lines = result.rows.map((row) => JSON.stringify(row));
  if (result.passages) lines = result.passages.map((p) => `${p.score.toFixed(2)}  ${p.title} – ${p.heading}`);
  if (result.documents) lines = result.documents.map((d) => d.title);
  if (lines.length === 0) lines = ["nothing"];
  const shown = lines.slice(0, 8).map((line) => (line.length > 400 ? `${line.slice(0, 400)} …` : line));
  if (lines.length > 8) shown.push(`… and ${lines.length - 8} more`);
  return `${asked}\n→ ${shown.join("\n  ")}`;
}

function toolsBox(reply) {
  if (!reply.tool_calls || reply.tool_calls.length === 0) {
    return make("div", "quiet-note", "No tool was used.");
  }
  const box = details("Tools", reply.tools_used);
  for (const call of reply.tool_calls) {
    const took = `${Math.max(0.1, call.duration_ms).toFixed(1)} ms`;
    box.append(make("div", "", `${call.name} · ${took}${call.error ? " · failed" : ""}`));
    box.append(make("pre", "", summary(call)));
  }
  return box;
}

function sourcesBox(reply) {
  const count = reply.sources.length;
  const box = details(count === 1 ? "1 source" : `${count} sources`, []);
  const list = make("ol", "sources");
  for (const source of reply.sources) {
    const item = make("li");
    item.append(make("strong", "", source.title), ` (${source.score.toFixed(2)})`, make("p", "", source.text));
    list.append(item);
  }
  box.append(list);
  return box;
}

const THUMB =
  "M2 10h3v10H2zM7 20V10.5l4-7.3c1.5-.3 2.6.8 2.4 2.3L12.8 9H19a2 2 0 0 1 2 2.3l-1.2 7A2 2 0 0 1 17.8 20z";

function thumb(turned) {
  const space = "http://www.w3.org/2000/svg";
  const icon = document.createElementNS(space, "svg");
  icon.setAttribute("viewBox", "0 0 24 24");
  icon.setAttribute("aria-hidden", "true");
  icon.setAttribute("class", turned ? "thumb turned" : "thumb");
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", THUMB);
  icon.append(path);
  return icon;
}

function judgeBox(reply) {
  const box = make("div", "judge");
  const up = make("button");
  const down = make("button");
  up.append(thumb(false), "Helpful");
  down.append(thumb(true), "Not helpful");
  const note = make("span", "", "");
  note.setAttribute("role", "status");
  for (const button of [up, down]) {
    button.type = "button";
    button.setAttribute("aria-pressed", "false");
  }
  box.append(up, down, note);
  const key = `${reply.response_id}`;

  async function store(value, comment) {
    up.disabled = down.disabled = true;
    try {
      const { status } = await post("/feedback", {
        response_id: reply.response_id,
        conversation_id: reply.conversation_id,
        value,
        comment: comment || null,
        idempotency_key: `${key}-${value}`,
      });
      note.textContent = status < 300 ? "Thank you, that is noted." : "That could not be stored.";
    } catch {
      note.textContent = "The service could not be reached.";
      up.disabled = down.disabled = false;
    }
  }

  up.addEventListener("click", () => {
    up.setAttribute("aria-pressed", "true");
    store("up", "");
  });
  down.addEventListener("click", () => {
    if (box.querySelector(".comment")) return;
    down.setAttribute("aria-pressed", "true");
    up.disabled = down.disabled = true;
    const comment = make("form", "comment");
    const input = make("input");
    input.type = "text";
    input.maxLength = 4000;
    input.placeholder = "What was wrong? (optional)";
    input.setAttribute("aria-label", "What was wrong?");
    const submit = make("button", "", "Send");
    submit.type = "submit";
    comment.append(input, submit);
    comment.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = input.value.trim();
      comment.remove();
      store("down", text);
    });
    box.append(comment);
    input.focus();
  });
  return box;
}

function show(card, status, reply) {
  card.replaceChildren();
  if (status >= 400 || reply.error) {
    card.classList.add("failed");
    const message = reply.error ? reply.error.message : `The service answered ${status}.`;
    card.append(make("p", "answer", `Sorry, that did not work. ${message}`));
    return;
  }
  card.append(make("p", "answer", reply.answer || "(The assistant gave an empty answer.)"));
  const facts = make("div", "facts");
  facts.append(toolsBox(reply));
  if (reply.sources.length > 0) facts.append(sourcesBox(reply));
  card.append(facts, judgeBox(reply));
}

async function ask(question) {
  const welcome = document.getElementById("welcome");
  if (welcome) welcome.remove();
  const turn = make("section", "turn");
  const card = make("div", "reply");
  card.append(make("p", "answer waiting", "Looking it up …"));
  turn.append(make("div", "question", question), card);
  log.append(turn);
  turn.scrollIntoView({ block: "end" });
  send.disabled = true;
  try {
    const { status, document: reply } = await post("/chat", { question, conversation_id: conversation });
    show(card, status, reply);
  } catch {
    show(card, 0, { error: { message: "The service could not be reached." } });
  }
  send.disabled = false;
  turn.scrollIntoView({ block: "nearest" });
  field.focus();
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const question = field.value.trim();
  if (!question || send.disabled) return;
  field.value = "";
  ask(question);
});
field.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    form.requestSubmit();
  }
});
for (const button of document.querySelectorAll(".example")) {
  button.addEventListener("click", () => ask(button.textContent));
}

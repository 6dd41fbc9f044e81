// An Express chatbot whose tools `answerkey faults` can break: 20 lines read the header, without a package of answerkey.
//
// npm install express
// ANSWERKEY_FAULTS=1 PORT=8001 node server.mjs &
// answerkey faults golden.jsonl --target http://localhost:8001/chat
import { AsyncLocalStorage } from "node:async_hooks";
import express from "express";

const scopes = new AsyncLocalStorage();

// "tool=order_status; kind=error; call=1; error=…", or value=…, percent-encoded.
function readFault(header) {
  if (!header || process.env.ANSWERKEY_FAULTS !== "1") return null;
  const parts = header.split(";").map((part) => part.trim().split(/=(.*)/s));
  const fault = Object.fromEntries(parts.map(([name, text]) => [name, decodeURIComponent(text ?? "")]));
  return { ...fault, left: Number(fault.call ?? 1), landed: false };
}

// Calls a tool, or breaks the call that the fault is planned for.
function faultPoint(tool, call) {
  const fault = scopes.getStore();
  if (!fault || fault.tool !== tool || --fault.left !== 0) return call();
  fault.landed = true;
  if (fault.error !== undefined) throw new Error(fault.error);
  return JSON.parse(fault.value);
}

const orders = {
  1001: { order: "1001", status: "delivered", date: "2025-05-03" },
  1002: { order: "1002", status: "on its way", date: "2025-05-09" },
  1003: { order: "1003", status: "packed", date: "2025-05-12" },
};

function answer(question) {
  const number = Object.keys(orders).find((one) => question.includes(one));
  if (!number) return { answer: "I can help with orders.", tool_calls: [] };
  const call = { name: "order_status", arguments: { number } };
  try {
    const record = faultPoint("order_status", () => orders[number]);
    call.result = record;
    return { answer: `Order ${number} is ${record.status}, dated ${record.date}.`, tool_calls: [call] };
  } catch (error) {
    call.error = String(error.message);
    return { answer: `I could not look up order ${number} just now. Please try again later.`, tool_calls: [call] };
  }
}

const app = express();
app.use(express.json());
app.post("/chat", (request, response) => {
  const fault = readFault(request.get("Answerkey-Fault"));
  const reply = scopes.run(fault, () => answer(request.body.question));
  if (fault?.landed) response.set("Answerkey-Fault", "landed");
  response.json(reply);
});
app.listen(Number(process.env.PORT ?? 8001), "127.0.0.1");

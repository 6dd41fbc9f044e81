// The npm package `ai`: what generateText and streamText give back, made by the SDK itself from a scripted model.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { generateText, jsonSchema, stepCountIs, streamText, tool } from "ai";
import { MockLanguageModelV3, simulateReadableStream } from "ai/test";

const ANSWER = "The total is 442300; the lease could not be searched.";
const CALLS = [
  { type: "tool-call", toolCallId: "call_1", toolName: "query_database", input: '{"sql":"SELECT total"}' },
  { type: "tool-call", toolCallId: "call_2", toolName: "search_document_content", input: '{"query":"lease"}' },
];
const usage = {
  inputTokens: { total: 11, noCache: 11, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 7, text: 7, reasoning: undefined },
};
const finishReason = (reason) => ({ unified: reason, raw: reason });

const text = { type: "object", properties: { sql: { type: "string" }, query: { type: "string" } } };
const tools = {
  query_database: tool({ inputSchema: jsonSchema(text), execute: async () => "442300" }),
  search_document_content: tool({
    inputSchema: jsonSchema(text),
    execute: async () => {
      throw new Error("index offline");
    },
  }),
};
const isAnswered = (prompt) => prompt.some((message) => message.role === "tool");

const model = new MockLanguageModelV3({
  doGenerate: async ({ prompt }) =>
    isAnswered(prompt)
      ? { content: [{ type: "text", text: ANSWER }], finishReason: finishReason("stop"), usage, warnings: [] }
      : { content: CALLS, finishReason: finishReason("tool-calls"), usage, warnings: [] },
  doStream: async ({ prompt }) => ({
    stream: simulateReadableStream({
      chunks: [
        { type: "stream-start", warnings: [] },
        ...(isAnswered(prompt)
          ? [
              { type: "text-start", id: "t" },
              { type: "text-delta", id: "t", delta: ANSWER.slice(0, 9) },
              { type: "text-delta", id: "t", delta: ANSWER.slice(9) },
              { type: "text-end", id: "t" },
            ]
          : CALLS),
        { type: "finish", finishReason: finishReason(isAnswered(prompt) ? "stop" : "tool-calls"), usage },
      ],
    }),
  }),
});

const prompt = process.argv[2];
const settings = { model, tools, stopWhen: stepCountIs(3), onError: () => {} };
const gathered = async (stream) => {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
};

const generated = await generateText({ ...settings, prompt });
const messages = [{ role: "user", content: prompt }, ...generated.response.messages];
const cases = {
  result: generated,
  chosen_fields: {
    text: generated.text,
    steps: generated.steps,
    totalUsage: generated.totalUsage,
    finishReason: generated.finishReason,
  },
  response: { response: { messages: generated.response.messages } },
  messages: { messages },
  full_stream: await gathered(streamText({ ...settings, prompt }).fullStream),
  ui_stream: await gathered(streamText({ ...settings, prompt }).toUIMessageStream({ onError: (error) => error.message })),
};
const place = createRequire(import.meta.url).resolve("ai").replace(/ai\/dist\/.*$/, "ai/package.json");
const { version } = JSON.parse(readFileSync(place, "utf8"));
// Errors have no fields of their own in JSON.
const written = (key, value) => (value instanceof Error ? { name: value.name, message: value.message } : value);
console.log(JSON.stringify({ version, cases }, written));

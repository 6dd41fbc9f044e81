// A model that is a script, and its two tools: see model_server.py.
import { jsonSchema, tool } from "ai";
import * as mocks from "ai/test";

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
export const tools = {
  query_database: tool({ inputSchema: jsonSchema(text), execute: async () => "442300" }),
  search_document_content: tool({
    inputSchema: jsonSchema(text),
    execute: async () => {
      throw new Error("index offline");
    },
  }),
};
const isAnswered = (prompt) => prompt.some((message) => message.role === "tool");

// Version 6 of the package has the third version of the interface, version 7 the fourth.
export const model = new (mocks.MockLanguageModelV4 ?? mocks.MockLanguageModelV3)({
  doGenerate: async ({ prompt }) =>
    isAnswered(prompt)
      ? { content: [{ type: "text", text: ANSWER }], finishReason: finishReason("stop"), usage, warnings: [] }
      : { content: CALLS, finishReason: finishReason("tool-calls"), usage, warnings: [] },
  doStream: async ({ prompt }) => ({
    stream: mocks.simulateReadableStream({
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

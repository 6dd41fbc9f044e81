// The npm package `ai`: what generateText and streamText give back, made by the SDK itself from a scripted model.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { generateText, stepCountIs, streamText } from "ai";
import { model, tools } from "./scripted_model.mjs";

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

// Mastra: what an agent's generate and stream give back, with a scripted model.
import { readFileSync } from "node:fs";
import { Agent } from "@mastra/core/agent";
import { tools } from "./mastra_tools.mjs";
import { model } from "./scripted_model.mjs";

const prompt = process.argv[2];
const agent = () => new Agent({ id: "bookkeeper", name: "bookkeeper", instructions: "Answer.", model, tools });
const gathered = async (stream) => {
  const items = [];
  for await (const item of stream) items.push(item);
  return items;
};
const { text, steps, toolCalls, toolResults, totalUsage, usage, finishReason } = await agent().generate(prompt);
const cases = {
  result: { text, steps, toolCalls, toolResults, totalUsage, usage, finishReason },
  full_stream: await gathered((await agent().stream(prompt)).fullStream),
};
const { version } = JSON.parse(readFileSync("node_modules/@mastra/core/package.json", "utf8"));
const written = (key, value) => (value instanceof Error ? { name: value.name, message: value.message } : value);
console.log(JSON.stringify({ version, cases }, written));

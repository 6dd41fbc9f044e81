// A Mastra agent that answers: by the model at an address, or by a scripted one with its spans sent by OTLP under a `traceparent`.
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { Agent } from "@mastra/core/agent";
import { Mastra } from "@mastra/core/mastra";
import { Observability } from "@mastra/observability";
import { OtelExporter } from "@mastra/otel-exporter";
import { tools } from "./mastra_tools.mjs";
import { model as scripted } from "./scripted_model.mjs";

const [prompt, way, address, traceparent] = process.argv.slice(2);
const traces = way === "traces";
const model = traces ? scripted : createOpenAICompatible({ name: "model", baseURL: address, apiKey: "none" })("scripted");
const bookkeeper = new Agent({ id: "bookkeeper", name: "bookkeeper", instructions: "Answer.", model, tools });
const custom = { endpoint: `${address}/v1/traces`, protocol: "http/protobuf" };
const exporters = [new OtelExporter({ provider: { custom }, signals: { logs: false } })];
const observability = traces && new Observability({ configs: { otel: { serviceName: "bookkeeper", exporters } } });
const mastra = new Mastra({ agents: { bookkeeper }, logger: false, ...(traces ? { observability } : {}) });
const [, traceId, parentSpanId] = (traceparent ?? "").split("-");
const options = traces ? { tracingOptions: { traceId, parentSpanId } } : {};
const { text } = await mastra.getAgent("bookkeeper").generate(prompt, options);
if (traces) await observability.shutdown();
console.log(text);

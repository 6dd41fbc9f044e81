// The npm package `ai` with its telemetry on: its spans go by OTLP to the address given, under the `traceparent` given.
import { context, propagation } from "@opentelemetry/api";
import { OTLPTraceExporter } from "@opentelemetry/exporter-trace-otlp-http";
import { NodeTracerProvider, SimpleSpanProcessor } from "@opentelemetry/sdk-trace-node";
import { generateText, stepCountIs } from "ai";
import { model, tools } from "./scripted_model.mjs";

const [prompt, address, traceparent] = process.argv.slice(2);
const exporter = new OTLPTraceExporter({ url: `${address}/v1/traces` });
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
provider.register();
// Version 7 leaves OpenTelemetry to a package of its own.
const own = await import("@ai-sdk/otel").catch(() => null);
const telemetry = own
  ? { telemetry: { integrations: [new own.OpenTelemetry()] } }
  : { experimental_telemetry: { isEnabled: true } };

await context.with(propagation.extract(context.active(), { traceparent }), async () => {
  const { text } = await generateText({ model, tools, prompt, stopWhen: stepCountIs(3), ...telemetry });
  console.log(text);
});
await provider.shutdown();

# /// script
# requires-python = ">=3.11"
# dependencies = ["google-adk==2.13.0", "openinference-instrumentation-google-adk==1.0.5",
#                 "opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""Google ADK's own spans and OpenInference's, both at once."""

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "bots")]

from tracing import export_spans, run_traced

provider = export_spans()

from openinference.instrumentation.google_adk import GoogleADKInstrumentor

GoogleADKInstrumentor().instrument(tracer_provider=provider)

from google_adk_own import answer

if __name__ == "__main__":
    run_traced("openinference-instrumentation-google-adk", answer, "everything")

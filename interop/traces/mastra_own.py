# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""The spans of Mastra's own packages `@mastra/observability` and `@mastra/otel-exporter`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from ai_telemetry import trace_program

if __name__ == "__main__":
    trace_program("mastra", "@mastra/core", "mastra_agent.mjs", "traces")

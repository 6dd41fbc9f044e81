# /// script
# requires-python = ">=3.11"
# dependencies = ["opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"]
# ///
"""The telemetry of the npm package `ai` up to version 6."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from ai_telemetry import trace_program

if __name__ == "__main__":
    trace_program("ai", "ai", "telemetry.mjs", case="6")

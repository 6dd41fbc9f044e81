# /// script
# requires-python = ">=3.11"
# dependencies = ["pydantic-ai-slim[openai]==2.66.0"]
# ///
"""A Pydantic AI agent behind the proxy, also streaming."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("pydantic-ai-slim", {"result": "everything", "stream_events": "everything"})

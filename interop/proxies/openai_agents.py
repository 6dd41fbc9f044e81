# /// script
# requires-python = ">=3.11"
# dependencies = ["openai-agents==0.24.0"]
# ///
"""An agent of the OpenAI Agents SDK behind the proxy, also streaming, and by the Responses API."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied(
        "openai-agents",
        {"result": "everything", "result_of_responses": "everything", "stream_events": "everything"},
    )

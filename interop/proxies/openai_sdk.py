# /// script
# requires-python = ">=3.11"
# dependencies = ["openai==3.49.0"]
# ///
"""The OpenAI SDK behind the proxy, also streaming."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("openai", {"chat_history": "everything", "chat_stream": "calls", "responses_stream": "calls"})

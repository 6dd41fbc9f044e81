# /// script
# requires-python = ">=3.11"
# dependencies = ["anthropic==2.8.0"]
# ///
"""Anthropic's SDK behind the proxy, also streaming."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("anthropic", {"message_history": "everything", "message_stream": "calls"})

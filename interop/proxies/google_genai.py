# /// script
# requires-python = ">=3.11"
# dependencies = ["google-genai==3.1.0"]
# ///
"""Google's SDK behind the proxy, also streaming."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("google-genai", {"automatic_calls": "everything", "response_stream": "calls"})

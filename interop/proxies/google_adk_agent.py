# /// script
# requires-python = ">=3.11"
# dependencies = ["google-adk==2.13.0"]
# ///
"""A Google ADK agent behind the proxy."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("google-adk", {"event_list": "everything"})

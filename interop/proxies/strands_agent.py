# /// script
# requires-python = ">=3.11"
# dependencies = ["strands-agents[openai]==1.62.0"]
# ///
"""A Strands agent behind the proxy, which streams every step."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("strands-agents", {"result": "everything"})

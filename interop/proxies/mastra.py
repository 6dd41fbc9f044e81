# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""A Mastra agent behind the proxy: its model is at an address that speaks OpenAI's API."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from node_programs import npm_version
from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("mastra", {"answer": "no errors"}, npm_version("@mastra/core"))

# /// script
# requires-python = ">=3.11"
# dependencies = ["langgraph==1.2.20", "langchain", "langchain-openai"]
# ///
"""A LangGraph agent behind the proxy: on the wire, nothing marks the result of a tool that failed."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("langgraph", {"state": "no errors"})

# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
"""The npm package `@mastra/core`: runs node/mastra.mjs where the package was installed, and reads each of its cases."""

import os
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from node_programs import read_cases, run_node


def answer(question: str) -> str:
    """Its agent with a model behind the proxy."""
    return run_node("mastra_agent.mjs", question, "proxy", f"{os.environ['INTEROP_PROXY']}/v1").strip()


if __name__ == "__main__":
    sys.exit(read_cases("mastra", "mastra.mjs"))

# /// script
# requires-python = ">=3.11"
# dependencies = ["dspy==3.4.1"]
# ///
"""A DSPy ReAct agent behind the proxy: its calls are text, so none is ruled out."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("dspy", {"result": "nothing"})

# /// script
# requires-python = ">=3.11"
# dependencies = ["agent-framework-core==1.23.0", "agent-framework-openai==1.17.0"]
# ///
"""An agent of Microsoft Agent Framework behind the proxy."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("agent-framework-core", {"result": "everything", "stream": "everything"})

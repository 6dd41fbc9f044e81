# /// script
# requires-python = ">=3.11"
# dependencies = ["crewai==1.15.30"]
# ///
"""A CrewAI crew behind the proxy."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("crewai", {"output": "no errors"})

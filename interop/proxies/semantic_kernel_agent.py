# /// script
# requires-python = ">=3.11"
# dependencies = ["semantic-kernel==1.45.0"]
# ///
"""A Semantic Kernel agent behind the proxy."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("semantic-kernel", {"result": "no errors"})

# /// script
# requires-python = ">=3.11"
# dependencies = ["haystack-ai==3.4.0"]
# ///
"""A Haystack agent behind the proxy; it writes failures of tools as plain text."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("haystack-ai", {"message_dicts": "no errors"})

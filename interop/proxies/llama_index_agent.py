# /// script
# requires-python = ">=3.11"
# dependencies = ["llama-index-core==0.14.25", "llama-index-llms-openai-like"]
# ///
"""A LlamaIndex agent behind the proxy; it writes failures of tools as plain text."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from proxied import run_proxied

if __name__ == "__main__":
    run_proxied("llama-index-core", {"output": "no errors"})

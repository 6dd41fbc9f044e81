"""Files kept for the tests: one that says the same as the kept one, but for ids and times, is left as it is.

`INTEROP_RECORD=1` writes all of them again.
"""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path

__all__ = ["heading", "keep", "steady"]

# What no two runs have in common: UUIDs and other long ids, times and durations.
_FLEETING = re.compile(
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|\b(?:(?=\w*\d)[A-Za-z0-9]{16,}|[A-Za-z0-9]{22})\b"
    r"|\d{4}-\d\d-\d\d[T ][\d:.+-]+Z?|(?<![\d.])\d+\.\d+(?:e-\d+)?(?![\d.])"
)


def steady(data: bytes) -> str:
    """The text without what differs from run to run."""
    return _FLEETING.sub("…", data.decode())


def heading(data: bytes) -> str:
    """Of a recorded case, its package, version and what is seen in it: steps that run side by side come in any order."""
    document = json.loads(data)
    return str({name: document[name] for name in ("package", "version", "case", "seen")})


def keep(path: Path, data: bytes, said: Callable[[bytes], str]) -> None:
    """Write the file, unless the kept one says the same."""
    if path.exists() and said(path.read_bytes()) == said(data) and not os.environ.get("INTEROP_RECORD"):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    print(f"written: {path.name}")

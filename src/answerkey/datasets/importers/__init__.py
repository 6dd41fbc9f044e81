"""Importers: other tools' files as golden sets or recorded replies, by the name of the format.

An importer is a function from paths to an `Imported`; a package can add one under the entry point group
`answerkey.importers`.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from answerkey.plugins import importers

__all__ = ["Imported", "Importer", "find_importer"]


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """What an importer read."""

    # Rows of a golden set, or of recorded replies with their expectations inline.
    rows: Iterable[dict[str, Any]]
    # What the rows are: "questions" or "replies".
    kind: str
    # What was left out or made up, for the user to know.
    notes: tuple[str, ...] = ()


Importer = Callable[[Sequence[Path]], Imported]


def find_importer(name: str) -> Importer:
    """The importer of a format."""
    found: Importer = importers.get(name)
    return found

"""Paths of the labelled data: one author a file, the author's letter at the end of the file's name."""

import json
from pathlib import Path
from typing import Any

__all__ = ["LABELLED", "author_of", "labelled_files", "read_rows"]

LABELLED = Path(__file__).resolve().parents[2] / "labelled"


def author_of(path: Path) -> str:
    """The author's letter, e.g. "a" of keywords/business_a.jsonl."""
    return path.stem.rpartition("_")[2]


def labelled_files(pattern: str) -> list[Path]:
    """The files that match a pattern below labelled/, in the order of their authors."""
    return sorted(LABELLED.glob(f"{pattern}.jsonl"), key=lambda path: (author_of(path), path.name))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a JSON Lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line.strip()]

"""The business's knowledge: plain data files, and the database with its search index built from them, cached."""

import atexit
import csv
import hashlib
import json
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

# The folder of data files that comes with the package.
BUNDLED_DATA = Path(__file__).parent / "data"
# Changes when the layout of what is built changes, so that an old cache is not used.
_LAYOUT = "4"
# A full stop ends a sentence unless it belongs to an abbreviation or an initial.
_SENTENCE_END = re.compile(
    r"(?<=[.!?])(?<!\bInc\.)(?<!\bSt\.)(?<!\bNo\.)(?<!\bp\.m\.)(?<!\ba\.m\.)(?<!\b[A-Z]\.)\s+(?=[A-Z0-9“\"(])"
)


class Knowledge:
    """The built database of one folder of data files."""

    def __init__(self, data: Path, database: Path) -> None:
        # the plain files, as a person edits them
        self.data = data
        # what was built from them: the tables, and the documents' passages in a full-text index
        self.database = database
        company = json.loads((data / "company.json").read_text(encoding="utf-8"))
        self.company: str = company["name"]
        # the day on which the records were closed: what "next", "overdue" and "last year" refer to
        self.as_of = date.fromisoformat(company["as_of"])

    @cached_property
    def passages(self) -> list[dict[str, Any]]:
        """Every piece of a document that is found and quoted as one: document (its id), title, heading and text."""
        return self.read("SELECT document, title, heading, text FROM passages ORDER BY rowid")

    def read(self, sql: str) -> list[dict[str, Any]]:
        """Rows for the vocabulary (which names exist); answers come through the tools instead."""
        with closing(sqlite3.connect(f"file:{self.database}?mode=ro", uri=True)) as db:
            db.row_factory = sqlite3.Row
            return [dict(row) for row in db.execute(sql)]


def open_knowledge(data: Path | None = None) -> Knowledge:
    """Open what was built from a folder of data files, building it first where needed."""
    folder = BUNDLED_DATA if data is None else Path(data)
    name = f"{_content_hash(folder)}.db"
    usual = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "answerkey"
    cache = Path(os.environ.get("ANSWERKEY_CACHE_DIR") or usual)
    try:
        built = _build_once(folder, cache / "demo" / name)
    except OSError:
        # a read-only home: build for this process only
        scratch = Path(tempfile.mkdtemp(prefix="answerkey-demo-"))
        atexit.register(shutil.rmtree, scratch, ignore_errors=True)
        built = _build_once(folder, scratch / name)
    return Knowledge(folder, built)


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [s.strip() for s in _SENTENCE_END.split(text) if s.strip()]


def _content_hash(folder: Path) -> str:
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".csv", ".md", ".sql", ".json"))
    if not files:
        wanted = "schema.sql, tables/*.csv, documents/*.md"
        raise FileNotFoundError(f"{folder}: no data files of the reference chatbot here ({wanted})")
    contents = [(path.relative_to(folder).as_posix(), path.read_bytes()) for path in files]
    return hashlib.sha256(repr((_LAYOUT, contents)).encode()).hexdigest()[:20]


def _build_once(folder: Path, target: Path) -> Path:
    """Build beside the target and rename: a concurrent build replaces it with the same content."""
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".building-", dir=target.parent) as scratch:
            _build(folder, Path(scratch) / "business.db")
            (Path(scratch) / "business.db").replace(target)
    return target


def _build(folder: Path, path: Path) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.executescript((folder / "schema.sql").read_text(encoding="utf-8"))
        for (table,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            with (folder / "tables" / f"{table}.csv").open(encoding="utf-8", newline="") as lines:
                columns, *rows = csv.reader(lines)
            db.executemany(
                f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
                [[value or None for value in row] for row in rows],
            )
        columns_of_passages = "document UNINDEXED, title, heading, text, tokenize = 'porter unicode61'"
        db.execute(f"CREATE VIRTUAL TABLE passages USING fts5({columns_of_passages})")
        for document, title in db.execute("SELECT id, title FROM documents").fetchall():
            text = (folder / "documents" / f"{document}.md").read_text(encoding="utf-8")
            pieces = [(document, title, heading, piece) for heading, piece in _split(text)]
            db.executemany("INSERT INTO passages VALUES (?, ?, ?, ?)", pieces)


def _split(markdown: str) -> Iterator[tuple[str, str]]:
    """The sections of a Markdown document with their headings."""
    for section in re.split(r"(?m)^(?=#)", markdown):
        first, _, body = section.partition("\n")
        heading = "" if first.startswith("# ") else re.sub(r"^#+\s*(?:\d+\.\s*)?", "", first).strip()
        if text := " ".join((body if first.startswith("#") else section).split()):
            yield heading, text

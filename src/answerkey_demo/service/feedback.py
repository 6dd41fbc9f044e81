"""Thumbs up and down: kept in a SQLite file, and passed on to a harness where one is named."""

import sqlite3
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from answerkey_demo.post_json import post_json

__all__ = ["FeedbackLog", "forward"]

_TEXTS = ("response_id", "conversation_id", "question", "answer", "value", "comment", "idempotency_key")
_COLUMNS = ("id", "at", *_TEXTS, "forwarded")


class FeedbackLog:
    """Appends verdicts to a file; the same idempotency key is kept once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False)
        self._db.execute(
            "CREATE TABLE IF NOT EXISTS feedback (id INTEGER PRIMARY KEY, at TEXT NOT NULL, response_id TEXT,"
            " conversation_id TEXT, question TEXT, answer TEXT, value TEXT NOT NULL, comment TEXT,"
            " idempotency_key TEXT UNIQUE, forwarded INTEGER NOT NULL DEFAULT 0)"
        )
        self._db.commit()

    def add(self, verdict: dict[str, Any]) -> tuple[int, bool]:
        """Keep a verdict; gives its number and whether it is new."""
        values = {"at": datetime.now(UTC).isoformat()} | {name: verdict.get(name) for name in _TEXTS}
        marks = ", ".join(f":{name}" for name in values)
        with self._lock, self._db:
            added = self._db.execute(
                f"INSERT INTO feedback ({', '.join(values)}) VALUES ({marks}) ON CONFLICT DO NOTHING RETURNING id",
                values,
            ).fetchone()
            known = "SELECT id FROM feedback WHERE idempotency_key = :idempotency_key"
            row = added or self._db.execute(known, values).fetchone()
            return int(row[0]), added is not None

    def mark_forwarded(self, number: int) -> None:
        """Note that the harness has it too."""
        with self._lock, self._db:
            self._db.execute("UPDATE feedback SET forwarded = 1 WHERE id = ?", [number])

    def latest(self, limit: int = 100) -> list[dict[str, Any]]:
        """The newest verdicts first."""
        newest = f"SELECT {', '.join(_COLUMNS)} FROM feedback ORDER BY id DESC LIMIT ?"
        with self._lock:
            return [dict(zip(_COLUMNS, row, strict=True)) for row in self._db.execute(newest, [limit])]

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()


async def forward(url: str, verdict: dict[str, Any], reply: dict[str, Any]) -> str | None:
    """Send a verdict and, if it is known, its reply to a harness's feedback endpoint; gives the reason if that fails."""
    names = {"reply_id": "response_id"} | {
        n: n for n in ("conversation_id", "value", "comment", "idempotency_key")
    }
    body = {theirs: verdict[ours] for theirs, ours in names.items() if verdict.get(ours) is not None}
    if reply:
        body["reply"] = reply
    try:
        status, _ = await post_json(url, body, seconds=5)
        return None if status < 400 else f"{url} answered {status}"
    except (OSError, ValueError) as error:
        return f"{url} could not be reached: {type(error).__name__}"

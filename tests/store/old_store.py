"""A store that answerkey 0.1.0 wrote: runs of the demo chatbot, repeats, conversations, odd texts, a run resumed with
another chatbot, one scored twice, one under way, feedback, production, judgements, a token and a baseline.

The data file holds its tables row by row and, under `read`, what 0.1.0 itself read from them.
"""

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any

OLD: dict[str, Any] = json.loads(
    gzip.decompress((Path(__file__).parent / "data/store-0.1.0.json.gz").read_bytes())
)


def write_old_store(url: str) -> None:
    """Lay its tables into an empty database."""
    if url.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(url) as connection:
            _fill(connection.cursor(), "%s", boolean=bool)
    else:
        with sqlite3.connect(url) as connection:
            _fill(connection.cursor(), "?", boolean=int)
        connection.close()


def _fill(cursor: Any, sign: str, boolean: Any) -> None:
    for statement in OLD["schema"]:
        cursor.execute(statement)
    for name, table in OLD["tables"].items():
        columns = table["columns"]
        rows = [
            [_value(column, value, boolean) for column, value in zip(columns, row, strict=True)]
            for row in table["rows"]
        ]
        signs = ", ".join(sign for _ in columns)
        cursor.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({signs})", rows)


def _value(column: str, value: Any, boolean: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    return boolean(value) if column == "passed" else value

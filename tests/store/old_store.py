"""A store that answerkey 0.1.0 wrote: runs of the demo chatbot, repeats, conversations, odd texts, a run resumed with
another chatbot, one scored twice, one under way, feedback, production, judgements, a token and a baseline.

The data file holds its tables row by row and, under `read`, what 0.1.0 itself read from them. The same runs lie in the
other files as schema 7 kept them, which came before replies had checksums, schema 8, which had tokens for people
and sites alike, schema 9, in which production replies were searched without an index, and schema 10, in which they were not
added up.
"""

import gzip
import json
import sqlite3
from pathlib import Path
from typing import Any


def _read(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(
        gzip.decompress((Path(__file__).parent / "data" / name).read_bytes())
    )
    return content


OLD = _read("store-0.1.0.json.gz")
SCHEMA_7 = _read("store-schema-7.json.gz")
SCHEMA_8 = _read("store-schema-8.json.gz")
SCHEMA_9 = _read("store-schema-9.json.gz")
SCHEMA_10 = _read("store-schema-10.json.gz")


def write_old_store(url: str, old: dict[str, Any] = OLD) -> None:
    """Lay its tables into an empty database."""
    if url.startswith("postgresql:"):
        import psycopg

        with psycopg.connect(url) as connection:
            _fill(connection.cursor(), old, "postgresql", "%s", boolean=bool if old is OLD else int)
    else:
        with sqlite3.connect(url) as connection:
            _fill(connection.cursor(), old, "sqlite", "?", boolean=int)
        connection.close()


def _fill(cursor: Any, old: dict[str, Any], kind: str, sign: str, boolean: Any) -> None:
    # Schema 7 was the first that was not written alike for both databases.
    for statement in old["schema"] if old is OLD else old["schema"][kind]:
        cursor.execute(statement)
    for name, table in old["tables"].items():
        columns = table["columns"]
        rows = [
            [_value(column, value, boolean) for column, value in zip(columns, row, strict=True)]
            for row in table["rows"]
        ]
        signs = ", ".join(sign for _ in columns)
        cursor.executemany(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({signs})", rows)
        if kind == "postgresql" and columns[0] == "key" and old is not OLD and name != "judgements":
            cursor.execute(f"SELECT setval(pg_get_serial_sequence('{name}', 'key'), MAX(key)) FROM {name}")


def _value(column: str, value: Any, boolean: Any) -> Any:
    if isinstance(value, dict):
        return bytes.fromhex(value["hex"])
    return boolean(value) if column == "passed" else value

"""A store of schema 7 brought to schema 8: replies get checksums, and runs can be owned."""

from answerkey.store.database import Connection, Database
from answerkey.store.packing import reply_checksum
from answerkey.store.schema import create_statements

__all__ = ["add_checksums"]

# All columns of `replies` in schema 7.
_COLUMNS = "run, ask_hash, target, trial, stored_at, tools, text, folded, payload"


def add_checksums(database: Database, connection: Connection) -> None:
    """Write the replies anew with what they say summed up, within the caller's transaction."""
    connection.run("ALTER TABLE replies RENAME TO old_replies")
    if database.kind == "postgresql":
        connection.run("ALTER TABLE old_replies RENAME CONSTRAINT replies_pkey TO old_replies_pkey")
    for statement in create_statements(database.kind, ("replies", "leases")):
        connection.run(statement)
    for rows in connection.batches(f"SELECT {_COLUMNS} FROM old_replies"):
        summed = [(*row, reply_checksum(row[1], row[3], row[6], row[8])) for row in rows]
        connection.insert("replies", summed)
    connection.run("DROP TABLE old_replies")

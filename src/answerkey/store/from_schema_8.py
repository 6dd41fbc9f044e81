"""A store of schema 8 brought up to date: tokens become people and sites, and what is sent says who sent it."""

from answerkey.store.database import Connection, Database
from answerkey.store.schema import TABLES, create_statements

__all__ = ["add_people", "carry_tokens", "write_anew"]

# Tables that have more columns now, with those that they had.
_WIDER = {
    "feedback": (
        "id, created_at, value, source, comment, category, response_id, trace_id, conversation_id, idempotency_key, "
        "production_id, run_id, ask_hash, trial, target_hash, payload"
    ),
    "production_replies": (
        "id, created_at, category, trace_id, conversation_id, score, error_kind, latency_ms, tools, question, text, "
        "folded, payload"
    ),
}
# What older rows have in a new column that may not be empty: verdicts came without their sender's name.
_FILLED = {"feedback": ("sender", "''")}


def add_people(database: Database, connection: Connection) -> None:
    """Write the changed tables anew, within the caller's transaction."""
    for name, columns in _WIDER.items():
        write_anew(database, connection, name, columns, *_FILLED.get(name, ()))
    for statement in create_statements(database.kind, ("people", "sites", "sessions", "saved_views")):
        connection.run(statement)
    carry_tokens(connection, "access_tokens")
    connection.run("DROP TABLE access_tokens")


def write_anew(
    database: Database, connection: Connection, name: str, columns: str, column: str = "", value: str = ""
) -> None:
    """Make a table as it is declared now of one that had these columns; `column` is new and has the same everywhere."""
    for index in TABLES[name].indexes:
        connection.run(f"DROP INDEX IF EXISTS {index}")
    connection.run(f"ALTER TABLE {name} RENAME TO old_{name}")
    if database.kind == "postgresql":
        connection.run(f"ALTER TABLE old_{name} RENAME CONSTRAINT {name}_pkey TO old_{name}_pkey")
    for statement in create_statements(database.kind, (name,)):
        connection.run(statement)
    into, chosen = (f"{column}, {columns}", f"{value}, {columns}") if column else (columns, columns)
    connection.run(f"INSERT INTO {name} ({into}) SELECT {chosen} FROM old_{name}")
    connection.run(f"DROP TABLE old_{name}")


def carry_tokens(connection: Connection, table: str) -> None:
    """What was a token is a person's, or a site's key."""
    connection.run(
        "INSERT INTO people (name, role, digest, created_at) SELECT name, "
        "CASE role WHEN 'annotator' THEN 'reviewer' ELSE role END, digest, created_at "
        f"FROM {table} WHERE role <> 'sender'"
    )
    connection.run(
        "INSERT INTO sites (name, digest, created_at) SELECT name, digest, created_at "
        f"FROM {table} WHERE role = 'sender'"
    )

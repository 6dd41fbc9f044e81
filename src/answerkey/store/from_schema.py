"""Stores of the schemas between 0.1.0 and now brought up to date: what each step adds is listed, and done to all at once.

Schema 8 gave replies checksums and let runs be owned, 9 made tokens people and sites, 10 lets production replies be found
by their words and views be saved, 11 adds them up by day and indexes every order of theirs.
"""

from answerkey.store.database import Connection, Database
from answerkey.store.packing import reply_checksum
from answerkey.store.production_sums import add_up_all
from answerkey.store.schema import TABLES, create_statements

# All columns of `replies` in schema 7.
_UNSUMMED = "run, ask_hash, target, trial, stored_at, tools, text, folded, payload"
# Schema → its tables that have more columns now, with those that they had.
_WIDER: dict[int, dict[str, str]] = {
    8: {
        "feedback": (
            "id, created_at, value, source, comment, category, response_id, trace_id, conversation_id, "
            "idempotency_key, production_id, run_id, ask_hash, trial, target_hash, payload"
        ),
        "production_replies": (
            "id, created_at, category, trace_id, conversation_id, score, error_kind, latency_ms, tools, question, "
            "text, folded, payload"
        ),
    },
    9: {
        "production_replies": (
            "id, created_at, category, trace_id, conversation_id, score, error_kind, latency_ms, model, version, "
            "graded_by, tools, question, text, folded, payload"
        ),
    },
    10: {},
}
# Schema → the tables that came after it.
_NEW = {
    8: ("people", "sites", "sessions", "saved_views", "production_sums"),
    9: ("saved_views", "production_sums"),
    10: ("production_sums",),
}
# What older rows have in a new column that may not be empty: verdicts came without their sender's name.
_FILLED = {"feedback": ("sender", "''")}
# Schema → the indexes that came after it, or are wider now, of tables that have the same columns.
_INDEXES: dict[int, dict[str, tuple[str, ...]]] = {
    9: {"feedback": ("feedback_by_production",)},
    10: {
        "production_replies": tuple(
            name for name, on in TABLES["production_replies"].indexes.items() if on.endswith("DESC")
        )
    },
}


def carry_on(database: Database, connection: Connection, version: int) -> None:
    """Write the changed tables anew, within the caller's transaction."""
    if version == 7:
        _add_checksums(database, connection)
        version = 8
    for name, columns in _WIDER[version].items():
        _set_aside(database, connection, name)
        column, value = _FILLED.get(name, ("", ""))
        into, chosen = (f"{column}, {columns}", f"{value}, {columns}") if column else (columns, columns)
        connection.run(f"INSERT INTO {name} ({into}) SELECT {chosen} FROM old_{name}")
        connection.run(f"DROP TABLE old_{name}")
    for statement in create_statements(database.kind, _NEW[version]):
        connection.run(statement)
    if version == 8:
        carry_tokens(connection, "access_tokens")
        connection.run("DROP TABLE access_tokens")
    for name, indexes in _INDEXES.get(version, {}).items():
        for index in indexes:
            connection.run(f"DROP INDEX IF EXISTS {index}")
            connection.run(f"CREATE INDEX {index} ON {name} ({TABLES[name].indexes[index]})")
    add_up_all(connection)


def _add_checksums(database: Database, connection: Connection) -> None:
    """Write the replies anew with what they say summed up."""
    _set_aside(database, connection, "replies", "leases")
    for rows in connection.batches(f"SELECT {_UNSUMMED} FROM old_replies"):
        summed = [(*row, reply_checksum(row[1], row[3], row[6], row[8])) for row in rows]
        connection.insert("replies", summed)
    connection.run("DROP TABLE old_replies")


def _set_aside(database: Database, connection: Connection, name: str, *more: str) -> None:
    """Rename a table to old_NAME, and make it, and more, as they are declared now."""
    for index in TABLES[name].indexes:
        connection.run(f"DROP INDEX IF EXISTS {index}")
    connection.run(f"ALTER TABLE {name} RENAME TO old_{name}")
    if database.kind == "postgresql":
        connection.run(f"ALTER TABLE old_{name} RENAME CONSTRAINT {name}_pkey TO old_{name}_pkey")
    for statement in create_statements(database.kind, (name, *more)):
        connection.run(statement)


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

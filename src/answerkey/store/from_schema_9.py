"""A store of schema 9 brought to schema 10: production replies are found by their words, and views can be saved."""

from answerkey.store.database import Connection, Database
from answerkey.store.from_schema_8 import write_anew
from answerkey.store.schema import TABLES, create_statements

__all__ = ["add_search"]

# All columns of `production_replies` in schema 9.
_COLUMNS = (
    "id, created_at, category, trace_id, conversation_id, score, error_kind, latency_ms, model, version, graded_by, "
    "tools, question, text, folded, payload"
)
_WIDER_INDEX = "feedback_by_production"


def add_search(database: Database, connection: Connection) -> None:
    """Write production replies anew and index them, within the caller's transaction."""
    write_anew(database, connection, "production_replies", _COLUMNS)
    connection.run(f"DROP INDEX {_WIDER_INDEX}")
    connection.run(f"CREATE INDEX {_WIDER_INDEX} ON feedback ({TABLES['feedback'].indexes[_WIDER_INDEX]})")
    for statement in create_statements(database.kind, ("saved_views",)):
        connection.run(statement)

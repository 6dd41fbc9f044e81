"""Bringing a store up to date: a new one is made from the schema, an older one is carried over.

All of it happens in one transaction: whoever is killed on the way leaves the store as it was.
"""

from answerkey.errors import StoreError
from answerkey.store.database import Connection, Database
from answerkey.store.schema import VERSION, create_statements

__all__ = ["bring_up_to_date"]

# The schema of answerkey 0.1.0; what came before was never released.
_RELEASED = 6
# Any number that is always the same: two programs must not migrate at once.
_LOCK = 7216001


def bring_up_to_date(database: Database) -> None:
    """Make the tables or carry them over; a store from a newer answerkey is refused untouched."""
    with database.reading() as connection:
        version = _version(database, connection)
    if version == VERSION:
        return
    if database.read_only:
        # As on a mount that is read-only: only the copy that is read is changed.
        database.work_on_a_copy()
    database.migrating = True
    try:
        with database.transaction() as connection:
            _migrate(database, connection)
    finally:
        database.migrating = False


def _migrate(database: Database, connection: Connection) -> None:
    if database.kind == "postgresql":
        connection.run("SELECT pg_advisory_xact_lock(?)", (_LOCK,))
    version = _version(database, connection)
    if version == VERSION:
        return
    if version == 0:
        connection.run("CREATE TABLE IF NOT EXISTS answerkey_schema (version INTEGER NOT NULL)")
        for statement in create_statements(database.kind):
            connection.run(statement)
    # Few stores are old, and every command opens one.
    elif version == _RELEASED:
        from answerkey.store.from_0_1_0 import carry_over

        carry_over(database, connection)
    elif version == 9:
        from answerkey.store.from_schema_9 import add_search

        add_search(database, connection)
    else:
        from answerkey.store.from_schema_7 import add_checksums
        from answerkey.store.from_schema_8 import add_people

        if version == 7:
            add_checksums(database, connection)
        add_people(database, connection)
    connection.run("INSERT INTO answerkey_schema (version) VALUES (?)", (VERSION,))


def _version(database: Database, connection: Connection) -> int:
    version = 0
    if "answerkey_schema" in database.tables(connection):
        version = int(connection.value("SELECT MAX(version) FROM answerkey_schema") or 0)
    if version > VERSION:
        raise StoreError(
            f"store {database.address}: the store was made by a newer answerkey (schema {version}, this one knows "
            f"{VERSION}); upgrade answerkey or use another --store"
        )
    if 0 < version < _RELEASED:
        raise StoreError(
            f"store {database.address}: it was made before answerkey 0.1.0 (schema {version}), by a version that was "
            "never released; use another --store"
        )
    return version

"""Judges' answers, by the hash of all that could change them."""

STATEMENTS = (
    """
    CREATE TABLE judgements (
        key TEXT PRIMARY KEY,
        run_id TEXT NOT NULL,
        model TEXT NOT NULL,
        payload TEXT NOT NULL,
        cost DOUBLE PRECISION,
        input_tokens INTEGER NOT NULL,
        output_tokens INTEGER NOT NULL,
        created_at TEXT NOT NULL
    )
    """,
    "CREATE INDEX judgements_by_run ON judgements (run_id)",
)

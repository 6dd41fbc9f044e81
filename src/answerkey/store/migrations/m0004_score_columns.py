"""A large run's scores in the form that comparisons read them."""

STATEMENTS = (
    # BYTEA is PostgreSQL's; SQLite keeps bytes as bytes whatever the type is called.
    """
    CREATE TABLE score_columns (
        run_id TEXT NOT NULL,
        scoring_hash TEXT NOT NULL,
        trials INTEGER NOT NULL,
        payload BYTEA NOT NULL,
        PRIMARY KEY (run_id, scoring_hash)
    )
    """,
)

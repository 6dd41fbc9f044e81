"""Production replies found by their words and tools, and listed without reading them whole."""

STATEMENTS = (
    "CREATE TABLE production_texts (id TEXT PRIMARY KEY, tools TEXT NOT NULL, search TEXT NOT NULL)",
    # What was kept before is found by anything in it.
    """
    INSERT INTO production_texts (id, tools, search)
    SELECT id, '', lower(question || ' ' || payload) FROM production_replies
    """,
    """
    CREATE INDEX production_listing ON production_replies (
        created_at, id, category, error_kind, score, latency_ms
    )
    """,
    "DROP INDEX production_by_time",
)

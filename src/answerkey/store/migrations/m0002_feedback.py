"""Feedback, production replies, the ids and texts by which replies are found, and access tokens of the dashboard."""

STATEMENTS = (
    """
    CREATE TABLE reply_ids (
        external_id TEXT NOT NULL,
        kind TEXT NOT NULL,
        run_id TEXT NOT NULL,
        ask_hash TEXT NOT NULL,
        trial INTEGER NOT NULL,
        PRIMARY KEY (external_id, kind, run_id, ask_hash, trial)
    )
    """,
    "CREATE INDEX reply_ids_by_run ON reply_ids (run_id)",
    """
    CREATE TABLE reply_texts (
        run_id TEXT NOT NULL,
        ask_hash TEXT NOT NULL,
        trial INTEGER NOT NULL,
        tools TEXT NOT NULL,
        question TEXT NOT NULL,
        search TEXT NOT NULL,
        PRIMARY KEY (run_id, ask_hash, trial)
    )
    """,
    "ALTER TABLE scorecards ADD COLUMN judge DOUBLE PRECISION",
    "ALTER TABLE scorecards ADD COLUMN reply_digest TEXT",
    # All that lists need of a run, in the set's order, without touching the wide rows.
    """
    CREATE INDEX scorecards_listing ON scorecards (
        run_id, scoring_hash, position, trial, score, passed, category, error_kind, latency_ms, cost,
        question_id, ask_hash, judge, reply_digest
    )
    """,
    # No list is sorted by single trials' scores.
    "DROP INDEX scorecards_by_score",
    "CREATE INDEX scorecards_by_ask ON scorecards (run_id, ask_hash, trial)",
    """
    CREATE TABLE feedback (
        id TEXT PRIMARY KEY,
        created_at TEXT NOT NULL,
        value DOUBLE PRECISION NOT NULL,
        source TEXT NOT NULL,
        comment TEXT NOT NULL,
        response_id TEXT,
        trace_id TEXT,
        conversation_id TEXT,
        run_id TEXT,
        ask_hash TEXT,
        trial INTEGER,
        production_id TEXT,
        category TEXT,
        idempotency_key TEXT UNIQUE,
        payload TEXT NOT NULL
    )
    """,
    "CREATE INDEX feedback_by_time ON feedback (created_at)",
    "CREATE INDEX feedback_by_reply ON feedback (run_id, ask_hash, trial)",
    "CREATE INDEX feedback_by_production ON feedback (production_id)",
    "CREATE INDEX feedback_by_response ON feedback (response_id)",
    "CREATE INDEX feedback_by_trace ON feedback (trace_id)",
    "CREATE INDEX feedback_by_conversation ON feedback (conversation_id)",
    """
    CREATE TABLE production_replies (
        id TEXT PRIMARY KEY,
        created_at TEXT NOT NULL,
        question TEXT NOT NULL,
        category TEXT,
        trace_id TEXT,
        conversation_id TEXT,
        score DOUBLE PRECISION,
        error_kind TEXT,
        latency_ms DOUBLE PRECISION,
        payload TEXT NOT NULL
    )
    """,
    "CREATE INDEX production_by_time ON production_replies (created_at)",
    "CREATE INDEX production_by_trace ON production_replies (trace_id)",
    "CREATE INDEX production_by_conversation ON production_replies (conversation_id)",
    """
    CREATE TABLE access_tokens (
        name TEXT PRIMARY KEY,
        role TEXT NOT NULL,
        digest TEXT NOT NULL,
        created_at TEXT NOT NULL
    )
    """,
)

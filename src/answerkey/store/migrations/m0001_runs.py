"""Runs, their questions, replies and scorecards, and named baselines."""

STATEMENTS = (
    """
    CREATE TABLE runs (
        id TEXT PRIMARY KEY,
        name TEXT NOT NULL,
        status TEXT NOT NULL,
        created_at TEXT NOT NULL,
        target TEXT NOT NULL,
        question_set TEXT NOT NULL,
        question_set_hash TEXT NOT NULL,
        scoring_hash TEXT NOT NULL,
        info TEXT NOT NULL,
        summary TEXT
    )
    """,
    "CREATE INDEX runs_by_time ON runs (created_at)",
    "CREATE INDEX runs_by_name ON runs (name)",
    "CREATE TABLE questions (content_hash TEXT PRIMARY KEY, payload TEXT NOT NULL)",
    """
    CREATE TABLE set_items (
        set_hash TEXT NOT NULL,
        position INTEGER NOT NULL,
        content_hash TEXT NOT NULL,
        PRIMARY KEY (set_hash, position)
    )
    """,
    """
    CREATE TABLE replies (
        run_id TEXT NOT NULL,
        ask_hash TEXT NOT NULL,
        trial INTEGER NOT NULL,
        target_hash TEXT NOT NULL,
        created_at TEXT NOT NULL,
        payload TEXT NOT NULL,
        PRIMARY KEY (run_id, ask_hash, trial)
    )
    """,
    """
    CREATE TABLE scorecards (
        run_id TEXT NOT NULL,
        scoring_hash TEXT NOT NULL,
        position INTEGER NOT NULL,
        trial INTEGER NOT NULL,
        question_id TEXT NOT NULL,
        content_hash TEXT NOT NULL,
        ask_hash TEXT NOT NULL,
        category TEXT NOT NULL,
        score DOUBLE PRECISION,
        grade TEXT,
        passed BOOLEAN NOT NULL,
        error_kind TEXT,
        latency_ms DOUBLE PRECISION,
        cost DOUBLE PRECISION,
        payload TEXT NOT NULL,
        PRIMARY KEY (run_id, scoring_hash, position, trial)
    )
    """,
    "CREATE INDEX scorecards_by_question ON scorecards (question_id)",
    "CREATE INDEX scorecards_by_score ON scorecards (run_id, scoring_hash, score)",
    "CREATE TABLE baselines (name TEXT PRIMARY KEY, run_id TEXT NOT NULL, set_at TEXT NOT NULL)",
)

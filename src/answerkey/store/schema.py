"""The tables as SQLAlchemy sees them. What creates them is the numbered migrations; a test keeps the two alike."""

from sqlalchemy import Boolean, Column, Double, Index, Integer, MetaData, Table, Text

__all__ = ["baselines", "metadata", "questions", "replies", "runs", "scorecards", "set_items"]

metadata = MetaData()

runs = Table(
    "runs",
    metadata,
    Column("id", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("status", Text, nullable=False),
    # ISO 8601 in UTC; sorts as text.
    Column("created_at", Text, nullable=False),
    Column("target", Text, nullable=False),
    Column("question_set", Text, nullable=False),
    Column("question_set_hash", Text, nullable=False),
    Column("scoring_hash", Text, nullable=False),
    # The RunInfo and, when the run has ended, the Summary, as JSON.
    Column("info", Text, nullable=False),
    Column("summary", Text),
    Index("runs_by_time", "created_at"),
    Index("runs_by_name", "name"),
)

# Questions are kept once for all runs that asked them, by their content.
questions = Table(
    "questions",
    metadata,
    Column("content_hash", Text, primary_key=True),
    Column("payload", Text, nullable=False),
)

set_items = Table(
    "set_items",
    metadata,
    Column("set_hash", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("content_hash", Text, nullable=False),
)

replies = Table(
    "replies",
    metadata,
    Column("run_id", Text, primary_key=True),
    # Question.ask_hash: an edited question has another, so that its old reply no longer counts.
    Column("ask_hash", Text, primary_key=True),
    Column("trial", Integer, primary_key=True),
    Column("target_hash", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    # The replies to the question's turns, as a JSON list.
    Column("payload", Text, nullable=False),
)

scorecards = Table(
    "scorecards",
    metadata,
    Column("run_id", Text, primary_key=True),
    # Changes with the scoring, so that old scores stay readable beside new ones.
    Column("scoring_hash", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("trial", Integer, primary_key=True),
    Column("question_id", Text, nullable=False),
    Column("content_hash", Text, nullable=False),
    Column("ask_hash", Text, nullable=False),
    # Columns to filter, sort and compare by without reading payloads.
    Column("category", Text, nullable=False),
    Column("score", Double),
    Column("grade", Text),
    Column("passed", Boolean, nullable=False),
    Column("error_kind", Text),
    Column("latency_ms", Double),
    Column("cost", Double),
    # The Scorecard as JSON.
    Column("payload", Text, nullable=False),
    Index("scorecards_by_question", "question_id"),
    Index("scorecards_by_score", "run_id", "scoring_hash", "score"),
)

baselines = Table(
    "baselines",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("set_at", Text, nullable=False),
)

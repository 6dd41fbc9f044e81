"""The tables as SQLAlchemy sees them. What creates them is the numbered migrations; a test keeps the two alike."""

from sqlalchemy import Boolean, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text

__all__ = [
    "access_tokens",
    "baselines",
    "feedback",
    "judgements",
    "metadata",
    "production_replies",
    "production_texts",
    "questions",
    "replies",
    "reply_ids",
    "reply_texts",
    "runs",
    "score_columns",
    "scorecards",
    "set_items",
]

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
    # The judge's value, where one graded the reply: disagreements are found by it.
    Column("judge", Double),
    # Equal for equal replies: differences between runs are found by it.
    Column("reply_digest", Text),
    Index("scorecards_by_ask", "run_id", "ask_hash", "trial"),
    Index("scorecards_by_question", "question_id", "run_id"),
    Index(
        "scorecards_listing",
        "run_id",
        "scoring_hash",
        "position",
        "trial",
        "score",
        "passed",
        "category",
        "error_kind",
        "latency_ms",
        "cost",
        "question_id",
        "ask_hash",
        "judge",
        "reply_digest",
    ),
)

# A copy of a large run's scores, in the form that comparisons read them.
score_columns = Table(
    "score_columns",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("scoring_hash", Text, primary_key=True),
    # How many scorecards it was made from.
    Column("trials", Integer, nullable=False),
    Column("payload", LargeBinary, nullable=False),
)

baselines = Table(
    "baselines",
    metadata,
    Column("name", Text, primary_key=True),
    Column("run_id", Text, nullable=False),
    Column("set_at", Text, nullable=False),
)

# The chatbot's own ids of replies, by which feedback refers to them.
reply_ids = Table(
    "reply_ids",
    metadata,
    Column("external_id", Text, primary_key=True),
    # response, trace or conversation.
    Column("kind", Text, primary_key=True),
    Column("run_id", Text, primary_key=True),
    Column("ask_hash", Text, primary_key=True),
    Column("trial", Integer, primary_key=True),
    Index("reply_ids_by_run", "run_id"),
)

# What lists show and search of a reply, so that no page has to read payloads.
reply_texts = Table(
    "reply_texts",
    metadata,
    Column("run_id", Text, primary_key=True),
    Column("ask_hash", Text, primary_key=True),
    Column("trial", Integer, primary_key=True),
    # The tools that were called, each between line breaks.
    Column("tools", Text, nullable=False),
    # The beginning of the question as it was asked.
    Column("question", Text, nullable=False),
    # Question and reply without case, cut to a bounded length.
    Column("search", Text, nullable=False),
)

feedback = Table(
    "feedback",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("value", Double, nullable=False),
    Column("source", Text, nullable=False),
    Column("comment", Text, nullable=False),
    Column("response_id", Text),
    Column("trace_id", Text),
    Column("conversation_id", Text),
    # The reply of a run, or of production, that it is about; all NULL: not matched yet.
    Column("run_id", Text),
    Column("ask_hash", Text),
    Column("trial", Integer),
    Column("production_id", Text),
    Column("category", Text),
    Column("idempotency_key", Text, unique=True),
    # The Feedback as JSON.
    Column("payload", Text, nullable=False),
    Index("feedback_by_time", "created_at"),
    Index("feedback_by_reply", "run_id", "ask_hash", "trial"),
    Index("feedback_by_production", "production_id"),
    Index("feedback_by_response", "response_id"),
    Index("feedback_by_trace", "trace_id"),
    Index("feedback_by_conversation", "conversation_id"),
)

production_replies = Table(
    "production_replies",
    metadata,
    Column("id", Text, primary_key=True),
    Column("created_at", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("category", Text),
    Column("trace_id", Text),
    Column("conversation_id", Text),
    Column("score", Double),
    Column("error_kind", Text),
    Column("latency_ms", Double),
    # The ProductionReply as JSON.
    Column("payload", Text, nullable=False),
    Index("production_listing", "created_at", "id", "category", "error_kind", "score", "latency_ms"),
    Index("production_by_trace", "trace_id"),
    Index("production_by_conversation", "conversation_id"),
)

# The same as `reply_texts`, of production replies.
production_texts = Table(
    "production_texts",
    metadata,
    Column("id", Text, primary_key=True),
    Column("tools", Text, nullable=False),
    Column("search", Text, nullable=False),
)

access_tokens = Table(
    "access_tokens",
    metadata,
    Column("name", Text, primary_key=True),
    # viewer, annotator, admin or sender.
    Column("role", Text, nullable=False),
    # SHA-256 of the token, in hexadecimal; the token itself is never kept.
    Column("digest", Text, nullable=False),
    Column("created_at", Text, nullable=False),
)

# Judges' answers, for every run that asks the same of the same judge.
judgements = Table(
    "judgements",
    metadata,
    Column("key", Text, primary_key=True),
    # The run that paid for it.
    Column("run_id", Text, nullable=False),
    Column("model", Text, nullable=False),
    # The answer's text.
    Column("payload", Text, nullable=False),
    # None: no price was known.
    Column("cost", Double),
    Column("input_tokens", Integer, nullable=False),
    Column("output_tokens", Integer, nullable=False),
    Column("created_at", Text, nullable=False),
    Index("judgements_by_run", "run_id"),
)

"""A store of answerkey 0.1.0 carried over into today's tables, every row of it."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from answerkey.model.feedback import Feedback, ProductionReply
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Scorecard
from answerkey.store.database import Connection, Database, Row
from answerkey.store.feedback_book import feedback_row
from answerkey.store.from_schema import carry_tokens
from answerkey.store.packing import convert_run_info, id_hashes, pack_card
from answerkey.store.production import production_row
from answerkey.store.production_sums import add_up_all
from answerkey.store.schema import TABLES, create_statements, insert
from answerkey.store.writing import known_questions, name_key, question_row, reply_row, run_row

# As they were.
_ALIKE = ("baselines", "judgements")
_OLD_TABLES = (
    *("runs", "questions", "set_items", "replies", "reply_ids", "reply_texts", "scorecards", "score_columns"),
    *("feedback", "production_replies", "production_texts", "access_tokens", *_ALIKE),
)

_decode_question = msgspec.json.Decoder(Question).decode
_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode
_decode_scorecard = msgspec.json.Decoder(Scorecard).decode
_decode_feedback = msgspec.json.Decoder(Feedback).decode
_decode_production = msgspec.json.Decoder(ProductionReply).decode


def carry_over(database: Database, connection: Connection) -> None:
    """Move every row, within the caller's transaction."""
    # Names of indexes and constraints are the database's, not the table's.
    for table in TABLES.values():
        for index in table.indexes:
            connection.run(f"DROP INDEX IF EXISTS {index}")
    for name in _OLD_TABLES:
        connection.run(f"ALTER TABLE {name} RENAME TO old_{name}")
        if database.kind == "postgresql":
            connection.run(f"ALTER TABLE old_{name} RENAME CONSTRAINT {name}_pkey TO old_{name}_pkey")
    if database.kind == "postgresql":
        connection.run("ALTER TABLE old_feedback DROP CONSTRAINT feedback_idempotency_key_key")
    for statement in create_statements(database.kind):
        connection.run(statement)
    for name in _ALIKE:
        columns = ", ".join(TABLES[name].columns)
        connection.run(f"INSERT INTO {name} ({columns}) SELECT {columns} FROM old_{name}")
    carry_tokens(connection, "old_access_tokens")
    carrier = _Carrier(connection)
    carrier.questions()
    carrier.runs()
    carrier.replies()
    carrier.scorecards()
    carrier.feedback()
    carrier.production()
    add_up_all(connection)
    for name in _OLD_TABLES:
        connection.run(f"DROP TABLE old_{name}")


class _Carrier:
    """Reads the old tables and writes the new ones, a batch at a time."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # Numbers of runs by id, and the target that each asked last.
        self._runs: dict[str, tuple[int, str]] = {}
        self._names: dict[str, int] = {}

    def questions(self) -> None:
        self._each(
            "SELECT content_hash, payload FROM old_questions",
            "questions",
            lambda content, payload: question_row(bytes.fromhex(content), _decode_question(payload)),
        )
        query = "SELECT set_hash, position, content_hash FROM old_set_items"
        for rows in self._connection.batches(query):
            keys = known_questions(self._connection, list({bytes.fromhex(row[2]) for row in rows}))
            new = [(self._name(row[0]), row[1], keys[bytes.fromhex(row[2])]) for row in rows]
            self._connection.insert("set_items", new)

    def runs(self) -> None:
        rows = self._connection.run("SELECT info, summary FROM old_runs ORDER BY created_at, id").fetchall()
        for payload, summary in rows:
            info = _run_info(payload)
            row = {**run_row(self._connection, info), "summary": summary}
            self._connection.run(insert("runs", tuple(row)), tuple(row.values()))
            number = self._connection.value("SELECT key FROM runs WHERE id = ?", (info.id,))
            self._runs[info.id] = (number, info.target_hash)

    def replies(self) -> None:
        query = (
            "SELECT run_id, ask_hash, trial, target_hash, created_at, payload FROM old_replies "
            "WHERE run_id IN (SELECT id FROM old_runs)"
        )
        for rows in self._connection.batches(query):
            new, ids = [], []
            for run_id, ask_hash, trial, target_hash, created_at, payload in rows:
                replies = _decode_replies(payload)
                key = (self._runs[run_id][0], bytes.fromhex(ask_hash), self._name(target_hash), trial)
                moment = datetime.fromisoformat(created_at).timestamp()
                new.append(reply_row(*key, moment, replies))
                ids += [(found, *key) for found in id_hashes(replies)]
            self._connection.insert("replies", new)
            self._connection.insert("reply_ids", ids)

    def scorecards(self) -> None:
        query = (
            "SELECT c.content_hash, c.run_id, c.scoring_hash, c.position, c.trial, c.latency_ms, c.cost, c.judge, "
            "c.reply_digest, c.payload, r.target_hash FROM old_scorecards c LEFT JOIN old_replies r "
            "ON r.run_id = c.run_id AND r.ask_hash = c.ask_hash AND r.trial = c.trial "
            "WHERE c.run_id IN (SELECT id FROM old_runs)"
        )
        for rows in self._connection.batches(query):
            keys = known_questions(self._connection, list({bytes.fromhex(row[0]) for row in rows}))
            # Of a question that was never kept nothing could be read before either.
            new = [self._card(keys[content], *rest) for content, rest in _by_content(rows) if content in keys]
            self._connection.insert("scorecards", [card for card, _ in new])
            self._connection.insert("scorecard_details", [details for _, details in new])

    def _card(self, question: int, run_id: str, scoring_hash: str, *rest: Any) -> tuple[Row, Row]:
        position, trial, latency_ms, cost, judge, digest, payload, target_hash = rest
        card = _decode_scorecard(payload)
        packed = pack_card(card)
        run, asked_last = self._runs[run_id]
        key = (run, self._name(scoring_hash), position, trial)
        target = self._name(asked_last if target_hash is None else target_hash)
        kind = None if card.error is None else card.error.kind
        scored = (
            card.total,
            card.grade,
            int(card.passed),
            kind,
            latency_ms,
            cost,
            judge,
            int(digest or "0", 16),
        )
        measures = (self._name(packed.measures), packed.measured)
        return (*key, question, target, *scored, *measures), (*key, packed.details)

    def feedback(self) -> None:
        query = (
            "SELECT f.payload, r.target_hash FROM old_feedback f LEFT JOIN old_replies r ON r.run_id = f.run_id "
            "AND r.ask_hash = f.ask_hash AND r.trial = f.trial"
        )

        def carried(payload: str, target_hash: str | None) -> Row:
            """A verdict's reply is now named with its target as well."""
            feedback = _decode_feedback(payload)
            if feedback.reply is not None and target_hash is not None:
                key = msgspec.structs.replace(feedback.reply, target_hash=target_hash)
                feedback = msgspec.structs.replace(feedback, reply=key)
            return feedback_row(feedback)

        self._each(query, "feedback", carried)

    def production(self) -> None:
        query = "SELECT payload FROM old_production_replies"
        self._each(query, "production_replies", lambda payload: production_row(_decode_production(payload)))

    def _each(self, query: str, table: str, carried: Callable[..., Row]) -> None:
        for rows in self._connection.batches(query):
            self._connection.insert(table, [carried(*row) for row in rows])

    def _name(self, name: str) -> int:
        if name not in self._names:
            self._names[name] = name_key(self._connection, name)
        return self._names[name]


def _by_content(rows: list[Row]) -> list[tuple[bytes, Row]]:
    return [(bytes.fromhex(content), tuple(rest)) for content, *rest in rows]


def _run_info(payload: str) -> RunInfo:
    """What a run is; its target and its experiment stood among its options."""
    plain = msgspec.json.decode(payload, type=dict[str, Any])
    options = plain["options"]
    experiment = options.pop("experiment", None)
    plain["target_spec"] = options.pop("target", None)
    if experiment is not None:
        plain["experiment"] = {"runs": experiment["runs"], "early_stop": experiment["early_stop"]}
    return convert_run_info(plain)

"""Judges' answers in the store, by the hash of all that could change them, with what they cost and who paid."""

from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from answerkey.model.feedback import Feedback, ReplyKey
from answerkey.model.judgement import Answer, Spent
from answerkey.model.question import Question
from answerkey.model.run import RunInfo
from answerkey.store.database import EPSILON, Where, now, signs
from answerkey.store.feedback import FeedbackBook, new_id
from answerkey.store.questions import QuestionList
from answerkey.store.run_rows import OF_RUN, of_run
from answerkey.store.sql import SqlStore

# Keys looked up in one query.
_BATCH = 500


class SqlJudgements:
    """The judgements of a store."""

    def __init__(self, store: SqlStore) -> None:
        self._database = store.database

    def find_answers(self, keys: Sequence[str]) -> Mapping[str, str]:
        """Key → the judge's answer, of those that are there."""
        found: dict[str, str] = {}
        with self._database.reading() as connection:
            for start in range(0, len(keys), _BATCH):
                part = keys[start : start + _BATCH]
                query = f"SELECT key, payload FROM judgements WHERE key IN ({signs(part)})"
                found.update(connection.run(query, part))
        return found

    def add_answers(self, run_id: str, answers: Sequence[Answer]) -> None:
        """Keep answers in one durable transaction; the first answer under a key stays."""
        moment = now()
        rows = [
            (
                answer.key,
                run_id,
                answer.model,
                # PostgreSQL's text takes no NUL, and no verdict has one.
                answer.text.replace("\0", "\ufffd"),
                answer.spent.cost,
                answer.spent.input_tokens,
                answer.spent.output_tokens,
                moment,
            )
            for answer in answers
        ]
        with self._database.transaction() as connection:
            connection.insert("judgements", rows)

    def spent_on(self, run_id: str) -> Spent:
        """What a run has paid so far."""
        query = "SELECT SUM(input_tokens), SUM(output_tokens), SUM(cost) FROM judgements WHERE run_id = ?"
        with self._database.reading() as connection:
            row = connection.run(query, (run_id,)).fetchone()
        return Spent(int(row[0] or 0), int(row[1] or 0), None if row[2] is None else float(row[2]))


# ReviewQueue: the replies whose score a person should look at, because it is borderline or a judge disagrees.


# Scores that could as well be on the other side of the pass mark.
BORDERLINE = (0.40, 0.70)
# A judge that is further from the score than this disagrees with it.
DISAGREEMENT = 0.30

_decode_question = msgspec.json.Decoder(Question).decode
_TABLES = (
    "scorecards c JOIN questions q ON q.key = c.question JOIN names t ON t.key = c.target "
    "JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"
)
_REVIEWS = (
    "(SELECT COUNT(*) FROM feedback f WHERE f.run_id = ? AND f.ask_hash = q.ask_hash AND f.trial = c.trial "
    "AND f.target_hash = t.name AND f.source = 'review')"
)
_ORDERS = {
    # Digests of texts are as good as drawn by lot, and the same tomorrow.
    "sample": "c.reply_digest, c.position, c.trial",
    "disagreement": "COALESCE(ABS(c.score - c.judge), 0.0) DESC, c.position, c.trial",
}
Order = Literal["sample", "disagreement"]


class ReviewItem(msgspec.Struct, frozen=True, kw_only=True):
    """One reply that waits for a person."""

    question_id: str
    trial: int
    question: str
    category: str
    score: float | None
    grade: str | None
    judge: float | None
    reason: Literal["borderline", "judge disagrees"]


class ReviewQueue:
    """The queue of one run."""

    def __init__(self, store: SqlStore, info: RunInfo) -> None:
        self._store = store
        self._info = info

    def page(
        self, *, order: Order = "disagreement", reviews: int = 0, limit: int = 20, offset: int = 0
    ) -> list[ReviewItem]:
        """Replies that wait with so many reviews: by lot, or those with the largest disagreement first."""
        where = self._wanted().add(f"{_REVIEWS} = ?", self._info.id, reviews)
        query = (
            f"SELECT q.payload, c.trial, c.score, c.grade, c.judge FROM {_TABLES} WHERE {where} "
            f"ORDER BY {_ORDERS[order]} LIMIT ? OFFSET ?"
        )
        with self._store.database.reading() as connection:
            rows = connection.run(query, (*where.values, limit, offset)).fetchall()
        return [_item(*row) for row in rows]

    def counts(self) -> tuple[int, int]:
        """How many wait, and how many of the queue are done."""
        where = self._wanted()
        query = (
            f"SELECT COUNT(*), COALESCE(SUM(CASE WHEN {_REVIEWS} > 0 THEN 1 ELSE 0 END), 0) "
            f"FROM {_TABLES} WHERE {where}"
        )
        with self._store.database.reading() as connection:
            queue, done = connection.run(query, (self._info.id, *where.values)).fetchone()
        return int(queue) - int(done), int(done)

    def verdicts(self) -> dict[str, dict[str, bool]]:
        """Reply → reviewer → whether they trust it."""
        found: dict[str, dict[str, bool]] = {}
        for given in FeedbackBook(self._store).verdicts(self._info.id, source="review"):
            if given.reply is not None:
                reply = f"{given.reply.ask_hash}:{given.reply.trial}"
                found.setdefault(reply, {})[given.author or ""] = given.positive
        return found

    def take_back(self, question_id: str, trial: int, *, author: str) -> bool:
        """Forget a reviewer's verdict on a reply; whether there was one."""
        key = QuestionList(self._store).reply_key(self._info, question_id, trial)
        with self._store.database.transaction() as connection:
            done = connection.run("DELETE FROM feedback WHERE idempotency_key = ?", (_key(author, key),))
            return bool(done.rowcount)

    def judge(self, question_id: str, trial: int, *, trusted: bool, comment: str, author: str) -> Feedback:
        """Keep a reviewer's verdict; the same reviewer's second one on a reply replaces the first."""
        key = QuestionList(self._store).reply_key(self._info, question_id, trial)
        kept, _ = FeedbackBook(self._store).add(
            Feedback(
                id=new_id(),
                created_at=now(),
                value=1.0 if trusted else 0.0,
                source="review",
                comment=comment.replace("\x00", "").strip(),
                author=author,
                reply=key,
                idempotency_key=_key(author, key),
            )
        )
        return kept

    def _wanted(self) -> Where:
        low, high = BORDERLINE
        # Nobody can say anything of a reply without a text.
        return Where(f"{OF_RUN} AND r.text != ''", *of_run(self._info)).add(
            "c.score BETWEEN ? AND ? OR ABS(c.score - c.judge) > ?",
            low - EPSILON,
            high + EPSILON,
            DISAGREEMENT + EPSILON,
        )


def _key(author: str, key: ReplyKey) -> str:
    """Of a reviewer's verdict on a reply: there is one."""
    return f"review:{author}:{key.run_id}:{key.ask_hash}:{key.trial}"


def _item(
    payload: str, trial: int, score: float | None, letter: str | None, judge: float | None
) -> ReviewItem:
    question = _decode_question(payload)
    disagrees = judge is not None and score is not None and abs(score - judge) > DISAGREEMENT + EPSILON
    return ReviewItem(
        question_id=question.id,
        trial=trial,
        question=question.question,
        category=question.category,
        score=score,
        grade=letter,
        judge=judge,
        reason="judge disagrees" if disagrees else "borderline",
    )

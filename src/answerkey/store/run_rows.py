"""How runs, replies and scorecards are written to rows and read back."""

import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence, Set
from functools import lru_cache
from itertools import islice
from math import inf, isnan, nan
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from answerkey.errors import UnknownNameError, UsageError
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Failure, Reply
from answerkey.model.run import RunInfo, Summary
from answerkey.model.scorecard import Facts, Score, Scorecard, Trial, total_latency
from answerkey.store.database import Connection, Database, Sql, in_list, insert, sql
from answerkey.text.patterns import blake2b

_decode_info = msgspec.json.Decoder(RunInfo).decode
# Between the texts of a conversation's turns.
_SEPARATOR = "\x1e"
# Common parts of scorecard details, as a compression dictionary; existing stores depend on it.
_COMMON = (
    b'"judge":{"reason":"","score":,"arguments":"failed","evidence":"claims":[{"text":"supported":"sources":['
    b'["no keyword expected",["called no tool",["no tool expected",["missing ","extra "expected tool"'
    b'"keyword":"alternatives":"number":"missing":[],"extra":[]}],["0 of 1 keywords found"],"missing":['
    b'[[["called every expected tool",0.4,{"missing":[],"extra":[]}],["3 of 3 keywords found",0.4,{"found":["'
    b'"],"missing":[],"matches":[{"keyword":"","found":false,"rule":"substring","start":null,"end":null,"text":null'
    b'"},{"keyword":"","found":true,"rule":"substring","start":10,"end":20,"text":"","why":"occurs in the reply, ignoring case"}'
    b']}],["no error",0.2,{}]],{},null,[]]'
)
_WINDOW = -12
_COMPRESSOR = zlib.compressobj(1, zlib.DEFLATED, _WINDOW, 5, zlib.Z_DEFAULT_STRATEGY, _COMMON)

_encode = msgspec.json.Encoder().encode
_decode_replies = msgspec.json.Decoder(tuple[Reply, ...]).decode


def storable(text: str) -> str:
    """A text without NUL, which PostgreSQL refuses, and lone surrogates, which no database accepts."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def fold(text: str) -> str | None:
    """A text without case; None if only A to Z change, which LIKE ignores anyway."""
    if text.isascii():
        return None
    folded = text.casefold()
    return None if folded.encode() == text.encode().lower() else folded


def tools_text(replies: Sequence[Reply]) -> str:
    """The called tools, each between line breaks."""
    tools: dict[str, None] = {}
    for reply in replies:
        for call in reply.tool_calls:
            tools[call.name] = None
    return storable("\n" + "\n".join(tools) + "\n") if tools else ""


# Replies


def pack_replies(replies: Sequence[Reply]) -> tuple[str, str | None, str | None, str]:
    """Tools, text, folded text and payload of the replies to a question's turns.

    A text that the column cannot store unchanged stays in the payload as well.
    """
    texts = [reply.text for reply in replies if reply.text is not None]
    joined = _SEPARATOR.join(texts)
    column = storable(joined)
    separable = len(texts) == 1 or joined.count(_SEPARATOR) == len(texts) - 1
    if separable and column == joined and len(texts) == len(replies):
        replies = [msgspec.structs.replace(reply, text=None) for reply in replies]
    return tools_text(replies), column if texts else None, fold(column), _encode(replies).decode()


def unpack_replies(text: str | None, payload: str) -> tuple[Reply, ...]:
    replies = _decode_replies(payload)
    if text is not None and not any(reply.text is not None for reply in replies):
        texts = [text] if len(replies) == 1 else text.split(_SEPARATOR)
        for reply, part in zip(replies, texts, strict=True):
            # Safe on a frozen struct that has just been created.
            msgspec.structs.force_setattr(reply, "text", part)
    return replies


def reply_checksum(ask_hash: bytes, trial: int, text: str | None, payload: str) -> int:
    """The signed CRC-32 of a row of replies."""
    found = zlib.crc32(payload.encode(), zlib.crc32(ask_hash, trial))
    found = zlib.crc32(b"" if text is None else text.encode(), found)
    return found - 2**32 if found >= 2**31 else found


def reply_digest(replies: Sequence[Reply]) -> int:
    """A number that is equal for replies with equal texts."""
    said = replies[0].text if len(replies) == 1 else None
    if said is None:
        said = "\0".join(["\1" if reply.text is None else reply.text for reply in replies])
    return int.from_bytes(blake2b(said.encode("utf-8", "replace"), digest_size=6).digest())


def id_hash(kind: str, external_id: str) -> bytes:
    """The hash of a chatbot's own id of a reply."""
    return blake2b(f"{kind}:{external_id}".encode("utf-8", "replace"), digest_size=16).digest()


def id_hashes(replies: Sequence[Reply]) -> list[bytes]:
    """The hashes of all ids of these replies."""
    return [
        id_hash(kind, external_id)
        for reply in replies
        for kind, external_id in (
            ("response", reply.response_id),
            ("trace", reply.trace_id),
            ("conversation", reply.conversation_id),
        )
        if external_id
    ]


# Scorecards


class Measures(msgspec.Struct, array_like=True, frozen=True):
    """The names of a scorecard's values, in their order."""

    components: tuple[str, ...]
    metrics: tuple[str, ...]


class _Part(msgspec.Struct, array_like=True):
    """A Score without its name and value."""

    reason: str
    weight: float | None
    details: dict[str, Any]
    facts: Facts | None = None


class _Details(msgspec.Struct, array_like=True):
    """The part of a scorecard that is not in columns."""

    components: list[_Part]
    findings: dict[str, Any]
    # Of the failure whose kind is a column.
    error_message: str | None
    turns: tuple[Scorecard, ...]


_decode_details = msgspec.json.Decoder(_Details).decode
# The replies of a run mostly have the same.
read_measures = lru_cache(maxsize=64)(msgspec.json.Decoder(Measures).decode)


class PackedCard(NamedTuple):
    """The packed parts of a scorecard."""

    # Measures as JSON.
    measures: str
    # Little-endian doubles; a missing value is NaN.
    measured: bytes
    details: bytes


# The arguments of `unpack_card`: `c` are scorecards, `d` their details, `m` the names of their measures.
CARD_COLUMNS = "c.score, c.grade, c.passed, c.error_kind, m.name, c.measured, d.payload"


def pack_card(card: Scorecard) -> PackedCard:
    parts: list[_Part] = []
    values = list(card.metrics.values())
    for index, score in enumerate(card.components.values()):
        parts.append(_Part(score.reason, score.weight, score.details, score.facts))
        values.insert(index, score.value)
    # Infinity cannot be averaged, and JSON cannot represent it.
    measured = array("d", [nan if value is None or value in (inf, -inf) else value for value in values])
    message = None if card.error is None else card.error.message
    compressor = _COMPRESSOR.copy()
    details = compressor.compress(_encode(_Details(parts, card.findings, message, card.turns)))
    return PackedCard(
        _encode(Measures(tuple(card.components), tuple(card.metrics))).decode(),
        (measured if sys.byteorder == "little" else _little_endian(measured)).tobytes(),
        details + compressor.flush(),
    )


def unpack_card(
    score: float | None,
    letter: str | None,
    passed: int,
    error_kind: Any,
    measures: str,
    measured: bytes,
    payload: bytes,
) -> Scorecard:
    names = read_measures(measures)
    values = [None if isnan(value) else value for value in unpack_values(measured)]
    details = _decode_details(zlib.decompressobj(_WINDOW, _COMMON).decompress(payload))
    return Scorecard(
        components={
            name: Score(name, value, part.reason, part.weight, part.details, part.facts)
            for name, value, part in zip(names.components, values, details.components, strict=False)
        },
        total=score,
        grade=letter,
        passed=bool(passed),
        metrics=dict(zip(names.metrics, values[len(names.components) :], strict=True)),
        findings=details.findings,
        error=None if error_kind is None else Failure(error_kind, details.error_message or ""),
        turns=details.turns,
    )


def check_details(payload: bytes) -> None:
    """Raise ValueError if details cannot be decoded."""
    try:
        _decode_details(zlib.decompressobj(_WINDOW, _COMMON).decompress(payload))
    except zlib.error as error:
        raise ValueError(str(error)) from None


def unpack_values(*measured: bytes) -> "array[float]":
    """The values of one or several scorecards."""
    return _little_endian(array("d", b"".join(measured)))


def _little_endian(values: "array[float]") -> "array[float]":
    if sys.byteorder == "big":
        values.byteswap()
    return values


def read_run_info(payload: str | bytes) -> RunInfo:
    """Decode a run, ignoring settings that no longer exist."""
    try:
        return _decode_info(payload)
    except msgspec.ValidationError:
        return convert_run_info(msgspec.json.decode(payload, type=dict[str, Any]))


def convert_run_info(plain: dict[str, Any]) -> RunInfo:
    """Convert plain values to a run, ignoring unknown settings."""
    return msgspec.convert(_known(plain, RunInfo), RunInfo)


def _known(value: Any, kind: Any) -> Any:
    """A value without fields that its type does not have."""
    if get_origin(kind) in (Union, UnionType):
        kind = next((part for part in get_args(kind) if _is_struct(part)), None)
    if not (isinstance(value, dict) and _is_struct(kind)):
        return value
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {name: _known(part, kinds[name]) for name, part in value.items() if name in kinds}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


# Scorecards `c` with their question `q`, and with both the replies `r`.
WITH_QUESTION = " JOIN questions q ON q.key = c.question"
WITH_REPLIES = " JOIN replies r ON r.run = c.run AND r.ask_hash = q.ask_hash AND r.target = c.target AND r.trial = c.trial"


# Writing


# Rows looked up or written at a time.
_BATCH = 500

_encode_writing = msgspec.json.Encoder().encode


def run_key_sql(run_id: str) -> Sql:
    return Sql("(SELECT key FROM runs WHERE id = ?)", (run_id,))


def name_key_sql(name: str) -> Sql:
    """SQL of the number of a hash or a list of names."""
    return Sql("(SELECT key FROM names WHERE name = ?)", (name,))


def of_run(info: RunInfo) -> Sql:
    """A condition: scorecard `c` belongs to a run under its current scoring."""
    return sql(
        "c.run = {run} AND c.scoring = {scoring}",
        run=run_key_sql(info.id),
        scoring=name_key_sql(info.scoring_hash),
    )


class RunWriter:
    """Writes runs, their questions, replies and scorecards."""

    def __init__(self, database: Database) -> None:
        self.database = database

    def create_run(self, info: RunInfo, questions: QuestionSet) -> None:
        """Create a run with the questions it will ask."""
        with self.database.transaction() as connection:
            _store_questions(connection, questions)
            row = run_row(connection, info)
            if not connection.run(insert("runs", tuple(row)), tuple(row.values())).rowcount:
                raise UsageError(f"run {info.id} is already in this store")

    def update_run(self, info: RunInfo, questions: QuestionSet | None = None) -> None:
        """Replace a run's description and, if given, its questions."""
        with self.database.transaction() as connection:
            if questions is not None:
                _store_questions(connection, questions)
            _update_run(connection, info)

    def finish_run(self, info: RunInfo, summary: Summary) -> None:
        """Store a run's summary and final status."""
        with self.database.transaction() as connection:
            _update_run(connection, info, summary=_encode_writing(summary).decode())

    def add(self, info: RunInfo, trials: Sequence[Trial], *, with_replies: bool = True) -> None:
        """Store replies and scorecards in one durable transaction; stored replies are never replaced."""
        if not trials:
            return
        with self.database.transaction() as connection:
            run, target = run_key(connection, info), name_key(connection, info.target_hash)
            if with_replies:
                _check_open(connection, info)
                write_replies(connection, run, target, trials)
            write_scorecards(connection, run, name_key(connection, info.scoring_hash), target, trials)
        self.database.update_statistics()

    def add_replies(self, info: RunInfo, trials: Sequence[Trial]) -> None:
        """Store replies that are scored later, in one durable transaction."""
        if trials:
            with self.database.transaction() as connection:
                run, target = run_key(connection, info), name_key(connection, info.target_hash)
                _check_open(connection, info)
                write_replies(connection, run, target, trials)

    def drop_scorecards(self, info: RunInfo, *, but: Set[tuple[int, int]]) -> None:
        """Delete the scorecards under the run's scoring except those of these (position, trial) pairs."""
        listed = sql(
            "SELECT c.run, c.scoring, c.position, c.trial FROM scorecards c WHERE {run}", run=of_run(info)
        )
        with self.database.transaction() as connection:
            stale = [row for row in connection.run(*listed).fetchall() if row[2:] not in but]
            for table in ("scorecards", "scorecard_details"):
                statement = (
                    f"DELETE FROM {table} WHERE run = ? AND scoring = ? AND position = ? AND trial = ?"
                )
                connection.run_many(statement, stale)

    def delete_run(self, run_id: str) -> int:
        """Delete a run with its replies, scorecards and feedback; returns the number of verdicts."""
        with self.database.transaction() as connection:
            _delete_ids(connection, run_id)
            for table in ("replies", "scorecards", "scorecard_details"):
                connection.run(
                    *sql("DELETE FROM {table} WHERE run = {run}", table=table, run=run_key_sql(run_id))
                )
            connection.run("DELETE FROM leases WHERE run_id = ?", (run_id,))
            connection.run("DELETE FROM baselines WHERE run_id = ?", (run_id,))
            connection.run("DELETE FROM runs WHERE id = ?", (run_id,))
            return int(connection.run("DELETE FROM feedback WHERE run_id = ?", (run_id,)).rowcount)


def _delete_ids(connection: Connection, run_id: str) -> None:
    """Delete the ids of a run's replies, found through the replies: an index by run would cost every store more space."""
    columns = ("id_hash", "run", "ask_hash", "target", "trial")
    where = " AND ".join(f"{column} = ?" for column in columns)
    query = sql(
        "SELECT run, ask_hash, target, trial, text, payload FROM replies WHERE run = {run}",
        run=run_key_sql(run_id),
    )
    for rows in connection.batches(*query):
        found = [
            (identity, *key)
            for *key, text, payload in rows
            for identity in id_hashes(unpack_replies(text, payload))
        ]
        connection.run_many(f"DELETE FROM reply_ids WHERE {where}", found)


def run_row(connection: Connection, info: RunInfo) -> dict[str, Any]:
    return {
        "id": info.id,
        "name": info.name,
        "status": info.status,
        "created_at": info.created_at,
        "target": info.target,
        "question_set": info.question_set,
        "scoring": name_key(connection, info.scoring_hash),
        "info": _encode_writing(info).decode(),
    }


def _update_run(connection: Connection, info: RunInfo, **more: str) -> None:
    row = {**run_row(connection, info), **more}
    assignments = ", ".join(f"{name} = ?" for name in row)
    connection.run(f"UPDATE runs SET {assignments} WHERE id = ?", (*row.values(), info.id))


def run_key(connection: Connection, info: RunInfo) -> int:
    key = connection.value("SELECT key FROM runs WHERE id = ?", (info.id,))
    if key is None:
        raise UnknownNameError(f"run {info.id} is no longer in this store; `answerkey runs` lists them")
    return int(key)


def _check_open(connection: Connection, info: RunInfo) -> None:
    """Refuse to add replies to a complete run, which is evidence."""
    if connection.value("SELECT status FROM runs WHERE id = ?", (info.id,)) == "complete":
        raise UsageError(f"run {info.id} is complete and read-only; start a new one: answerkey run")


def name_key(connection: Connection, name: str) -> int:
    """The number of a hash or a list of names, assigned now if it has none."""
    for _ in range(2):
        key = connection.value("SELECT key FROM names WHERE name = ?", (name,))
        if key is not None:
            return int(key)
        connection.run(insert("names"), (name,))
    raise UnknownNameError(f"{name[:80]!r} could not be stored")


def _question_keys(connection: Connection, questions: Iterable[Question]) -> dict[str, int]:
    """Content hash → the question's number; new questions are written."""
    criteria = {bytes.fromhex(question.content_hash): question for question in questions}
    found = known_questions(connection, list(criteria))
    missing = [content for content in criteria if content not in found]
    if missing:
        rows = [question_row(content, criteria[content]) for content in missing]
        connection.insert("questions", rows)
        found |= known_questions(connection, missing)
    return {content.hex(): key for content, key in found.items()}


def known_questions(connection: Connection, hashes: Sequence[bytes]) -> dict[bytes, int]:
    found: dict[bytes, int] = {}
    for start in range(0, len(hashes), _BATCH):
        part = hashes[start : start + _BATCH]
        query = sql(
            "SELECT content_hash, key FROM questions WHERE content_hash IN {hashes}", hashes=in_list(part)
        )
        found.update(connection.run(*query))
    return found


def question_row(content: bytes, question: Question) -> tuple[Any, ...]:
    asked = storable("\n".join([question.id, *[turn.question for turn in question.turns or (question,)]]))
    named = (storable(question.id), storable(question.category))
    return (
        content,
        bytes.fromhex(question.ask_hash),
        *named,
        asked,
        fold(asked),
        _encode_writing(question).decode(),
    )


def _store_questions(connection: Connection, questions: QuestionSet) -> None:
    number = name_key(connection, questions.hash)
    known = connection.value("SELECT position FROM set_items WHERE question_set = ? LIMIT 1", (number,))
    if known is not None:
        return
    listed = iter(enumerate(questions))
    while part := list(islice(listed, _BATCH)):
        keys = _question_keys(connection, (question for _, question in part))
        rows = [(number, position, keys[question.content_hash]) for position, question in part]
        connection.insert("set_items", rows)


def write_replies(connection: Connection, run: int, target: int, trials: Sequence[Trial]) -> None:
    rows: list[tuple[Any, ...]] = []
    ids: list[tuple[Any, ...]] = []
    for trial in trials:
        ask_hash = bytes.fromhex(trial.question.ask_hash)
        rows.append(_reply_row(run, ask_hash, target, trial))
        for found in id_hashes(trial.replies):
            ids.append((found, run, ask_hash, target, trial.number))
    # An existing reply to the same trial is not replaced.
    connection.insert("replies", rows)
    connection.insert("reply_ids", ids)


def _reply_row(run: int, ask_hash: bytes, target: int, trial: Trial) -> tuple[Any, ...]:
    tools, text, folded, payload = pack_replies(trial.replies)
    checksum = reply_checksum(ask_hash, trial.number, text, payload)
    origin = None if trial.origin is None else _encode_writing(trial.origin).decode()
    return run, ask_hash, target, trial.number, tools, text, folded, payload, checksum, origin


def write_scorecards(
    connection: Connection, run: int, scoring: int, target: int, trials: Sequence[Trial]
) -> None:
    questions = _question_keys(connection, {id(t.question): t.question for t in trials}.values())
    measures: dict[str, int] = {}
    cards: list[tuple[Any, ...]] = []
    details: list[tuple[Any, ...]] = []
    for trial in trials:
        card, replies = trial.scorecard, trial.replies
        packed = pack_card(card)
        if packed.measures not in measures:
            measures[packed.measures] = name_key(connection, packed.measures)
        key = (run, scoring, trial.position, trial.number)
        kind = None if card.error is None else card.error.kind
        scored = (card.total, card.grade, int(card.passed), kind, total_latency(replies))
        found = (trial.cost, card.metrics.get("judge"), reply_digest(replies))
        measured = (measures[packed.measures], packed.measured)
        cards.append((*key, questions[trial.question.content_hash], target, *scored, *found, *measured))
        details.append((*key, packed.details))
    connection.insert("scorecards", cards, replace=True)
    connection.insert("scorecard_details", details, replace=True)

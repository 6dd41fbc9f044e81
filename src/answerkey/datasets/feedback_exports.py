"""People's verdicts in other tools' exports: Langfuse scores, LangSmith feedback, Phoenix annotations, plain JSON Lines."""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.model.feedback import COMMENT_LIMIT, Feedback, read_value
from answerkey.model.json_value import Json
from answerkey.transcripts.row_files import read_rows

__all__ = ["FEEDBACK_FORMATS", "Scale", "plain_feedback", "read_feedback"]

# Verdicts of programs are not people's: these marks leave them out.
_MACHINES = frozenset({"EVAL", "LLM", "CODE", "MODEL", "AUTO_EVAL"})


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How values of the export become numbers from 0 to 1."""

    low: float = 0.0
    high: float = 1.0
    positive: frozenset[str] = frozenset()
    negative: frozenset[str] = frozenset()

    def value(self, given: object) -> float:
        """The verdict; raises UsageError on a value that is none."""
        if isinstance(given, str):
            if given in self.positive:
                return 1.0
            if given in self.negative:
                return 0.0
        number = _number(given)
        if number is not None and (self.low, self.high) != (0.0, 1.0):
            if not self.low <= number <= self.high:
                raise UsageError(f"value {number:g} is not within the scale {self.low:g}-{self.high:g}")
            return (number - self.low) / (self.high - self.low)
        try:
            return read_value(given)
        except UsageError as error:
            raise UsageError(
                f"{error}; name another range with --scale 1-5, or labels with --positive and --negative"
            ) from None


def read_feedback(path: Path, format_name: str, scale: Scale | None = None) -> Iterator[Feedback | None]:
    """Every verdict of an export; None for a record that is not a person's verdict (a program's, or only text)."""
    read = _READERS[format_name]
    for line, row in read_rows(path):
        try:
            yield read(row, scale or Scale())
        except UsageError as error:
            raise InputError(str(error), path=path, line=line) from None


def plain_feedback(row: Mapping[str, Json], scale: Scale) -> Feedback:
    """One object under answerkey's own names, as `POST /api/feedback` takes it too."""
    given = _first(row, "value", "score", "thumb", "rating", "feedback")
    if given is None:
        raise UsageError('there is no "value"; give "up", "down" or a number from 0 to 1')
    verdict = _verdict(
        row,
        value=scale.value(given),
        response_id=_text(row, "response_id", "reply_id", "message_id", "run_id"),
        trace_id=_text(row, "trace_id"),
        conversation_id=_text(row, "conversation_id", "session_id"),
        key=_text(row, "idempotency_key", "id"),
        comment=_text(row, "comment", "reason", "explanation") or "",
        author=_text(row, "author", "user", "user_id"),
        correction=_text(row, "correction"),
    )
    if not (verdict.response_id or verdict.trace_id or verdict.conversation_id or verdict.question):
        raise UsageError(
            "nothing says which reply it is about: give response_id, trace_id, conversation_id or question"
        )
    return verdict


def _langfuse(row: Mapping[str, Json], scale: Scale) -> Feedback | None:
    kind = str(_first(row, "dataType", "data_type") or "").upper()
    if str(row.get("source", "")).upper() in _MACHINES or kind == "TEXT":
        return None
    given = _first(row, "stringValue", "string_value") if kind == "CATEGORICAL" else None
    given = _first(row, "value") if given is None else given
    if given is None:
        return None
    return _verdict(
        row,
        value=scale.value(given),
        response_id=_text(row, "observationId", "observation_id"),
        trace_id=_text(row, "traceId", "trace_id"),
        conversation_id=_text(row, "sessionId", "session_id"),
        key=_keyed("langfuse", row, "id"),
        comment=_text(row, "comment") or "",
        author=_text(row, "authorUserId", "author_user_id"),
    )


def _langsmith(row: Mapping[str, Json], scale: Scale) -> Feedback | None:
    source = row.get("feedback_source")
    kind = source.get("type") if isinstance(source, dict) else source
    given = _first(row, "score", "value")
    if str(kind or "").upper() in _MACHINES or given is None:
        return None
    user = source.get("user_id") if isinstance(source, dict) else None
    correction = row.get("correction")
    return _verdict(
        row,
        value=scale.value(given),
        response_id=_text(row, "run_id"),
        trace_id=_text(row, "trace_id"),
        conversation_id=_text(row, "session_id"),
        key=_keyed("langsmith", row, "id"),
        comment=_text(row, "comment") or "",
        author=None if user is None else str(user),
        correction=correction if isinstance(correction, str) else _json(correction),
    )


def _phoenix(row: Mapping[str, Json], scale: Scale) -> Feedback | None:
    if str(row.get("annotator_kind", "HUMAN")).upper() in _MACHINES:
        return None
    inner = row.get("result")
    result = inner if isinstance(inner, dict) else row
    given = _first(result, "score", "label")
    if given is None:
        return None
    span = _text(row, "span_id")
    name = _text(row, "identifier", "id")
    return _verdict(
        row,
        value=scale.value(given),
        response_id=span,
        trace_id=_text(row, "trace_id"),
        conversation_id=_text(row, "session_id"),
        # The identifier is Phoenix's upsert key only together with the span and the annotation's name.
        key=None if name is None else f"phoenix:{span}:{row.get('name', '')}:{name}",
        comment=_text(result, "explanation") or "",
        author=_text(row, "user_id"),
    )


_READERS: dict[str, Callable[[Mapping[str, Json], Scale], Feedback | None]] = {
    "jsonl": plain_feedback,
    "langfuse": _langfuse,
    "langsmith": _langsmith,
    "phoenix": _phoenix,
}
FEEDBACK_FORMATS: tuple[str, ...] = tuple(_READERS)


def _verdict(
    row: Mapping[str, Json],
    *,
    value: float,
    response_id: str | None,
    trace_id: str | None,
    conversation_id: str | None,
    key: str | None,
    comment: str,
    author: str | None,
    correction: str | None = None,
) -> Feedback:
    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"comment has {len(comment):,} characters; at most {COMMENT_LIMIT:,} are kept")
    if key is None:
        # A file imported twice must not count twice.
        content = msgspec.json.encode(dict(row), order="sorted")
        key = "row:" + hashlib.blake2b(content, digest_size=12).hexdigest()
    metadata = {
        name: row[name] for name in ("name", "key", "label", "document_position", "metadata") if row.get(name)
    }
    return Feedback(
        id=hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        created_at=_time(_text(row, "created_at", "timestamp", "createdAt", "time")),
        value=value,
        source="import",
        comment=comment,
        author=author,
        correction=correction,
        response_id=response_id,
        trace_id=trace_id,
        conversation_id=conversation_id,
        question=_text(row, "question"),
        category=_text(row, "category"),
        idempotency_key=key,
        metadata=metadata,
    )


def _first(row: Mapping[str, Json], *names: str) -> Json:
    return next((row[name] for name in names if row.get(name) is not None), None)


def _text(row: Mapping[str, Json], *names: str) -> str | None:
    found = _first(row, *names)
    if found is None or found == "":
        return None
    if isinstance(found, dict | list):
        raise UsageError(f"{names[0]}: expected text")
    return str(found).replace("\x00", "")


def _keyed(tool: str, row: Mapping[str, Json], name: str) -> str | None:
    found = _text(row, name)
    return None if found is None else f"{tool}:{found}"


def _json(value: object) -> str | None:
    return None if value is None else msgspec.json.encode(value, order="sorted").decode()


def _number(given: object) -> float | None:
    if isinstance(given, bool) or not isinstance(given, str | int | float):
        return None
    try:
        return float(given)
    except (TypeError, ValueError):
        return None


def _time(given: str | None) -> str:
    if given is None:
        return datetime.now(UTC).isoformat(timespec="milliseconds")
    try:
        parsed = datetime.fromisoformat(given)
    except ValueError:
        raise UsageError(f"created_at {given[:60]!r}: not a time; write it as 2026-11-16T08:30:00Z") from None
    if parsed.tzinfo is None:
        parsed = parsed.replace(tzinfo=UTC)
    return parsed.astimezone(UTC).isoformat(timespec="milliseconds")

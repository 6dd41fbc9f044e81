"""People's verdicts in other tools' exports: Langfuse scores, LangSmith feedback, Phoenix annotations, plain JSON Lines."""

import hashlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.model.judgement import COMMENT_LIMIT, Feedback, read_value
from answerkey.model.reply import Json
from answerkey.text.dates import read_moment
from answerkey.transcripts.row_files import read_rows

# Verdicts of programs are not people's, and a text is none: these marks leave them out.
_NOT_PEOPLE = frozenset({"EVAL", "LLM", "CODE", "MODEL", "AUTO_EVAL", "TEXT"})
# What a verdict is about and what else was said with it, kept as it is.
_KEPT = ("name", "key", "label", "document_position", "metadata")


class Scale(msgspec.Struct, frozen=True, kw_only=True):
    """How values of the export become numbers from 0 to 1."""

    low: float = 0.0
    high: float = 1.0
    # Whether the user gave the range: otherwise a 1 may be a thumb up or the lowest of five stars.
    stated: bool = False
    positive: frozenset[str] = frozenset()
    negative: frozenset[str] = frozenset()
    # Scores that are wanted, by their names, with the range of each; None: that of all. Empty: whatever there is.
    scores: dict[str, tuple[float, float] | None] = {}

    def of_score(self, name: str | None) -> "Scale":
        """The scale of one score."""
        ends = self.scores.get(name or "")
        if ends is None:
            return self
        return msgspec.structs.replace(self, low=ends[0], high=ends[1], stated=True)

    def value(self, raw: object) -> float:
        """The verdict; raises UsageError on a value that is none."""
        if isinstance(raw, str):
            if raw in self.positive:
                return 1.0
            if raw in self.negative:
                return 0.0
        number = _number(raw)
        if number is not None and (self.low, self.high) != (0.0, 1.0):
            if not self.low <= number <= self.high:
                raise UsageError(f"value {number:g} is not within the scale {self.low:g}-{self.high:g}")
            return (number - self.low) / (self.high - self.low)
        try:
            return read_value(raw)
        except UsageError as error:
            raise UsageError(
                f"{error}; name another range with --scale 1-5, or labels with --positive and --negative"
            ) from None


class _Format(msgspec.Struct, frozen=True, kw_only=True):
    """Where an export has what; "a.b" is the field b of the object a, and the first name that has a value counts."""

    value: tuple[str, ...]
    # What says that a program gave the verdict, or that it is only text.
    marks: tuple[str, ...] = ()
    # The prefix of the id, so that ids of different tools and kinds differ.
    id_scope: tuple[str, ...] = ()
    id: tuple[str, ...] = ("id",)
    # Whether verdicts are in columns of any name, of which a record has one.
    columns: bool = False
    # Field of Feedback → its names.
    texts: dict[str, tuple[str, ...]]


_FORMATS = {
    # answerkey's own names, as `POST /api/feedback` takes them too.
    "jsonl": _Format(
        value=("value", "score", "thumb", "rating", "feedback"),
        id=("idempotency_key", "id"),
        columns=True,
        texts={
            "response_id": ("response_id", "reply_id", "message_id", "run_id"),
            "trace_id": ("trace_id",),
            "conversation_id": ("conversation_id", "session_id"),
            "comment": ("comment", "reason", "explanation"),
            "author": ("author", "user", "user_id"),
            "correction": ("correction",),
        },
    ),
    "langfuse": _Format(
        value=("value",),
        marks=("source", "dataType", "data_type"),
        id_scope=("langfuse",),
        texts={
            "response_id": ("observationId", "observation_id"),
            "trace_id": ("traceId", "trace_id"),
            "conversation_id": ("sessionId", "session_id"),
            "comment": ("comment",),
            "author": ("authorUserId", "author_user_id"),
        },
    ),
    "langsmith": _Format(
        value=("score", "value"),
        marks=("feedback_source.type", "feedback_source"),
        id_scope=("langsmith",),
        texts={
            "response_id": ("run_id",),
            "trace_id": ("trace_id",),
            "conversation_id": ("session_id",),
            "comment": ("comment",),
            "author": ("feedback_source.user_id",),
            "correction": ("correction",),
        },
    ),
    "phoenix": _Format(
        value=("result.score", "result.label", "score", "label"),
        marks=("annotator_kind",),
        # The identifier is Phoenix's upsert key only together with the span and the annotation's name.
        id_scope=("phoenix", "$span_id", "$name"),
        id=("identifier", "id"),
        texts={
            "response_id": ("span_id",),
            "trace_id": ("trace_id",),
            "conversation_id": ("session_id",),
            "comment": ("result.explanation", "explanation"),
            "author": ("user_id",),
        },
    ),
}
FEEDBACK_FORMATS: tuple[str, ...] = tuple(_FORMATS)


def read_feedback(path: Path, format_name: str, scale: Scale | None = None) -> Iterator[Feedback | None]:
    """Every verdict of an export; None for a record that is not a person's verdict (a program's, or only text) or not of
    a score that is wanted. What could be read in two ways is refused."""
    form, scale = _FORMATS[format_name], scale or Scale()
    seen = _Seen()
    for line, row in read_rows(path):
        try:
            raw = _record_value(row, form, scale)
            if raw is not None:
                seen.note(raw, scale)
            if form.columns and (raw is not None or not scale.scores):
                yield plain_feedback(row, scale)
            else:
                yield None if raw is None else _verdict(row, form, scale, raw)
        except UsageError as error:
            raise InputError(str(error), path=path, line=line) from None
    if seen.numbers == {1.0}:
        raise InputError(
            "every number is 1: thumbs up, or the lowest of several stars? say --scale 0-1 or --scale 1-5",
            path=path,
        )


def plain_feedback(row: Mapping[str, Json], scale: Scale) -> Feedback:
    """One object under answerkey's own names."""
    form = _FORMATS["jsonl"]
    raw = _record_value(row, form, scale)
    if raw is None:
        raise UsageError('there is no "value"; give "up", "down" or a number from 0 to 1')
    verdict = _verdict(row, form, scale, raw)
    if not (verdict.response_id or verdict.trace_id or verdict.conversation_id or verdict.question):
        raise UsageError(
            "nothing says which reply it is about: give response_id, trace_id, conversation_id or question"
        )
    return verdict


class _RecordValue(NamedTuple):
    """The value that a record holds."""

    value: Json
    # What it is a value of: the score's name, or its column.
    score: str | None
    # Whether the export itself says that it is a yes or no.
    boolean: bool = False


class _Seen:
    """What an export has held so far, to see whether it can be read in two ways."""

    def __init__(self) -> None:
        self._scores: dict[str, None] = {}
        # Numbers without a stated range.
        self.numbers: set[float] = set()

    def note(self, raw: _RecordValue, scale: Scale) -> None:
        """Raise UsageError if there are two scores and none was chosen."""
        if raw.score is not None and not scale.scores:
            self._scores[raw.score] = None
        if len(self._scores) > 1:
            one, other = self._scores
            raise UsageError(
                f"there are scores {one!r} and {other!r}; say which counts with --score {one!r}, "
                f"or what range each has with --score {one!r}=1-5 --score {other!r}=0-1"
            )
        number = _number(raw.value)
        if number is not None and not raw.boolean and not scale.of_score(raw.score).stated:
            self.numbers.add(number)


def _record_value(row: Mapping[str, Json], form: _Format, scale: Scale) -> _RecordValue | None:
    kinds = {str(_field(row, name)).upper() for name in form.marks}
    if kinds & _NOT_PEOPLE:
        return None
    name = _text(row, "name", "key") if not form.columns or scale.scores else None
    if form.columns:
        columns = [column for column in scale.scores or form.value if _field(row, column) is not None]
        if name in scale.scores and not columns:
            columns = [column for column in form.value if _field(row, column) is not None]
        if len(columns) > 1:
            raise UsageError(
                f"{columns[0]} and {columns[1]} both hold a verdict; say which counts with --score {columns[0]}"
            )
        if not columns:
            return None
        return _RecordValue(
            _field(row, columns[0]), columns[0] if columns[0] in scale.scores or not name else name
        )
    if scale.scores and name not in scale.scores:
        return None
    # A category of Langfuse has a number as well, which means nothing.
    labels = ("stringValue", "string_value") if "CATEGORICAL" in kinds else ()
    value = _first(row, *labels, *form.value)
    return None if value is None else _RecordValue(value, name, "BOOLEAN" in kinds)


def _verdict(row: Mapping[str, Json], form: _Format, scale: Scale, raw: _RecordValue) -> Feedback:
    texts: dict[str, Any] = {field: _text(row, *names) for field, names in form.texts.items()}
    comment = texts.pop("comment") or ""
    if len(comment) > COMMENT_LIMIT:
        raise UsageError(f"comment has {len(comment):,} characters; at most {COMMENT_LIMIT:,} are kept")
    key = _key(row, form)
    return Feedback(
        id=hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=8).hexdigest(),
        created_at=_moment(_text(row, "created_at", "timestamp", "createdAt", "time")),
        # A yes or no has no scale, whatever that of the numbers beside it is.
        value=read_value(raw.value) if raw.boolean else scale.of_score(raw.score).value(raw.value),
        source="import",
        comment=comment,
        **texts,
        question=_text(row, "question"),
        category=_text(row, "category"),
        idempotency_key=key,
        metadata={name: row[name] for name in _KEPT if row.get(name)},
    )


def _key(row: Mapping[str, Json], form: _Format) -> str:
    """By what the verdict is known again: a file imported twice must not count twice."""
    identity = _text(row, *form.id)
    if identity is None:
        content = msgspec.json.encode(dict(row), order="sorted")
        return "row:" + hashlib.blake2b(content, digest_size=12).hexdigest()
    scope = [_text(row, part[1:]) if part[0] == "$" else part for part in form.id_scope]
    return ":".join([part or "" for part in scope] + [identity])


def _field(row: Mapping[str, Json], name: str) -> Json:
    outer, _, inner = name.partition(".")
    found = row.get(outer)
    if not inner:
        return found
    return found.get(inner) if isinstance(found, dict) else None


def _first(row: Mapping[str, Json], *names: str) -> Json:
    return next((found for name in names if (found := _field(row, name)) is not None), None)


def _text(row: Mapping[str, Json], *names: str) -> str | None:
    found = _first(row, *names)
    if found is None or found == "":
        return None
    if isinstance(found, dict | list):
        if names[0] != "correction":
            raise UsageError(f"{names[0]}: expected text")
        return msgspec.json.encode(found, order="sorted").decode()
    return str(found).replace("\x00", "")


def _number(raw: object) -> float | None:
    if isinstance(raw, bool) or not isinstance(raw, str | int | float):
        return None
    try:
        return float(raw)
    except (TypeError, ValueError):
        return None


def _moment(raw: str | None) -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds") if raw is None else read_moment(raw)

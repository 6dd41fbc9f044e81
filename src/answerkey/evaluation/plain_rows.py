"""Plain rows of a log: an id, what was asked and expected, a text, names of tools, a time. Typed, they need no second look.

Most rows of most logs are plain. What else they carry (a time stamp, a user) is skipped, once it is known to mean nothing here.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, cast

import msgspec

from answerkey.model.question import UNCATEGORISED, ExpectedTool, Question, question_id
from answerkey.model.reply import Reply, Timings, ToolCall
from answerkey.transcripts.fields.tool_calls import read_calls
from answerkey.transcripts.payloads import EVIDENCE

# Longer ones are no times, and more names no list that a chatbot writes.
LONGEST_MS = 1e15
_MOST_CALLS = 20
# More other fields than these are not learned.
_MOST_OTHERS = 200


class PlainRow(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """A row whose fields have the types of a plain one."""

    # None: the reply is null; a row without it is not plain.
    answer: str | None
    id: str | int | None = None
    question: str | None = None
    category: str | None = None
    expected_tools: tuple[str, ...] = ()
    expected_keywords: tuple[str, ...] = ()
    # None: tools were not observed.
    tools_used: tuple[str, ...] | None = None
    latency_ms: float | None = None
    # A row that tells of an error is not plain.
    error: None = None
    # 0: it has no number.
    trial: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None


_FIELDS = frozenset(PlainRow.__struct_fields__)


class PlainRows:
    """Reads rows as plain ones; fields that mean nothing are learned from rows that were read another way."""

    def __init__(self, meaning: Iterable[str]) -> None:
        # Names that a row which is not plain may have.
        self._meaning = frozenset(meaning) - _FIELDS
        self._others: dict[str, None] = {}
        # The plain row on a line; msgspec.DecodeError or UnicodeDecodeError: it is none.
        self.decode = msgspec.json.Decoder(PlainRow).decode

    def convert(self, row: dict[str, Any]) -> PlainRow:
        """The same for a row that was read already."""
        if row.keys() - _FIELDS - self._others.keys():
            raise msgspec.ValidationError("has fields that may mean something")
        found = msgspec.convert({name: row[name] for name in _FIELDS & row.keys()}, PlainRow)
        # UnicodeEncodeError: a half of a surrogate pair, which a line of UTF-8 cannot have.
        msgspec.msgpack.encode(found)
        return found

    def learn(self, row: dict[str, Any]) -> bool:
        """Skip what this row has beside the fields of a plain one from now on; whether anything was new."""
        new = row.keys() - self._others.keys() - _FIELDS
        if not new or not self._meaning.isdisjoint(new) or len(self._others) + len(new) > _MOST_OTHERS:
            return False
        self._others |= dict.fromkeys(sorted(new))
        fields = [(f"other_{place}", msgspec.Raw, msgspec.Raw()) for place in range(len(self._others))]
        names = {f"other_{place}": name for place, name in enumerate(self._others)}
        learned = cast(
            "type[PlainRow]",
            msgspec.defstruct(
                "PlainRow", fields, bases=(PlainRow,), rename=names, gc=False, forbid_unknown_fields=True
            ),
        )
        self.decode = msgspec.json.Decoder(learned).decode
        return True


def identity_of(row: PlainRow) -> tuple[str, str] | None:
    """The id and the words of the question that a row is of; None where that must be looked at."""
    identity = str(row.id) if isinstance(row.id, int) else row.id
    text = identity if row.question is None else row.question
    if text is None or not text.strip():
        return None
    if identity is None:
        return question_id(text), text
    return (identity, text) if identity.strip() else None


def plain_question(row: PlainRow) -> Question | None:
    """The question of a row without a detour; None where something in it must be looked at."""
    named = identity_of(row)
    if named is None or not all(map(str.strip, (*row.expected_keywords, *row.expected_tools))):
        return None
    return Question(
        id=named[0],
        question=named[1],
        category=row.category or UNCATEGORISED,
        expected_tools=tuple(map(_tool, row.expected_tools)),
        expected_keywords=row.expected_keywords,
    )


_tool = lru_cache(maxsize=1000)(ExpectedTool)


def plain_reply(row: PlainRow) -> Reply | None:
    """The reply of a row: what `reply_from_payload` gives, in a fifth of the time; None where it must be looked at."""
    text, used, latency = row.answer, row.tools_used, row.latency_ms
    calls = plain_calls(used or ())
    if calls is None or (text is not None and "\0" in text):
        return None
    timings = _NOT_TIMED
    if latency is not None:
        if not 0.0 <= latency < LONGEST_MS:
            return None
        timings = Timings(latency_ms=latency)
    return Reply(text=text, tool_calls=calls, timings=timings, evidence=EVIDENCE[used is not None, False])


_NOT_TIMED = Timings()


@lru_cache(maxsize=10_000)
def plain_calls(names: tuple[str, ...]) -> tuple[ToolCall, ...] | None:
    """The calls of these tools; None where a name must be looked at."""
    if len(names) > _MOST_CALLS or not all(name.isascii() and "\0" not in name for name in names):
        return None
    return read_calls(list(names))

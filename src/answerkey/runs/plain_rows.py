"""Plain rows of a log: an id, what was asked and expected, a text, names of tools, a time. Typed, they need no second look.

Most rows of most logs are plain. What else they carry (a time stamp, a user) is skipped, once it is known to mean nothing here,
and what a log calls by another name (`response`) is read under that.
"""

from collections.abc import Iterable
from functools import lru_cache
from typing import Annotated, Any, Literal, cast

import msgspec

from answerkey.model.question import UNCATEGORISED, ExpectedTool, Question, question_id
from answerkey.model.reply import Reply, Timings, ToolCall, Usage
from answerkey.transcripts.fields import read_calls, read_usage
from answerkey.transcripts.json_values import LONGEST_MS, TEXT_NAMES
from answerkey.transcripts.payloads import EVIDENCE

# More names are no list that a chatbot writes.
_MOST_CALLS = 20
# More other fields than these are not learned.
_MOST_OTHERS = 200


class PlainRow(msgspec.Struct, gc=False, kw_only=True, forbid_unknown_fields=True):
    """A row whose fields have the types of a plain one."""

    # None: the reply is null; a row without it is not plain.
    answer: str | None
    id: str | int | None = None
    question: str | None = None
    category: str | None = None
    expected_tools: tuple[str, ...] = ()
    expected_keywords: tuple[str, ...] = ()
    # With keywords beside it, it decides nothing.
    reference_answer: str | None = None
    # None: tools were not observed, unless there are calls.
    tools_used: tuple[str, ...] | None = None
    tool_calls: list[Any] | None = None
    # A row with sources is not plain, but one may say that there are none.
    sources: tuple[()] | None = None
    usage: dict[str, Annotated[int, msgspec.Meta(ge=0, lt=2**53)]] | None = None
    latency_ms: Annotated[float, msgspec.Meta(ge=0, lt=LONGEST_MS)] | None = None
    # A row that tells of an error is not plain.
    error: Literal[""] | None = None
    # Kept as it stands.
    conversation_id: Annotated[str, msgspec.Meta(pattern=r"\A[\x01-\x7f]*\Z")] | None = None
    # 0: it has no number.
    trial: Annotated[int, msgspec.Meta(ge=0, lt=2**31)] | None = None


_FIELDS = frozenset(PlainRow.__struct_fields__)
# Fields that a log may have under another name, the names, and how the field is declared.
_ALIASES: dict[str, tuple[frozenset[str], tuple[Any, ...]]] = {
    "answer": (frozenset(TEXT_NAMES), (str | None,)),
    "expected_keywords": (frozenset({"expected_content"}), (tuple[str, ...], ())),
}


class PlainRows:
    """Reads rows as plain ones; fields that mean nothing are learned from rows that were read another way."""

    def __init__(self, meaning: Iterable[str]) -> None:
        # Names that a row which is not plain may have.
        self._meaning = frozenset(meaning) - _FIELDS
        # Names that mean nothing here, and fields with the names that this log has for them.
        self._others: dict[str, None] = {}
        self._named: dict[str, str] = {}
        # The plain row on a line; msgspec.DecodeError or UnicodeDecodeError: it is none.
        self.decode = msgspec.json.Decoder(PlainRow).decode

    def convert(self, row: dict[str, Any]) -> PlainRow:
        """The same for a row that was read already."""
        names = {name: self._named.get(name, name) for name in _FIELDS}
        if row.keys() - names.values() - self._others.keys():
            raise msgspec.ValidationError("has fields that may mean something")
        found = msgspec.convert({field: row[name] for field, name in names.items() if name in row}, PlainRow)
        # UnicodeEncodeError: a half of a surrogate pair, which a line of UTF-8 cannot have.
        msgspec.msgpack.encode(found)
        return found

    def learn(self, row: dict[str, Any]) -> bool:
        """Read what this row has as a plain one's from now on, if it is; whether anything was new."""
        renamed = {field: name for field in _ALIASES for name in [_only_name(field, row)] if name is not None}
        new = row.keys() - self._others.keys() - _FIELDS - set(renamed.values())
        is_known = not new and renamed.items() <= self._named.items()
        if is_known or not self._meaning.isdisjoint(new) or len(self._others) + len(new) > _MOST_OTHERS:
            return False
        self._others |= dict.fromkeys(sorted(new))
        # The first name that is met stays: rows of one log have one.
        self._named = renamed | self._named
        fields: list[Any] = [
            (f"other_{place}", msgspec.Raw, msgspec.Raw()) for place in range(len(self._others))
        ]
        # Only a field that is declared anew can have a new name.
        fields += [(field, *_ALIASES[field][1]) for field in self._named]
        names = {f"other_{place}": name for place, name in enumerate(self._others)} | self._named
        learned = cast(
            "type[PlainRow]",
            msgspec.defstruct(
                "PlainRow",
                fields,
                bases=(PlainRow,),
                rename=names,
                gc=False,
                kw_only=True,
                forbid_unknown_fields=True,
            ),
        )
        self.decode = msgspec.json.Decoder(learned).decode
        return True


def _only_name(field: str, row: dict[str, Any]) -> str | None:
    """The one name that a row has for a field which it does not have under its own; None: there is none."""
    found = list(_ALIASES[field][0] & row.keys())
    return found[0] if len(found) == 1 and field not in row else None


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
        reference_answer=row.reference_answer,
    )


_tool = lru_cache(maxsize=1000)(ExpectedTool)


def plain_reply(row: PlainRow) -> Reply | None:
    """The reply of a row: what `reply_from_payload` gives, in a fifth of the time; None where it must be looked at."""
    text, used, latency = row.answer, row.tools_used, row.latency_ms
    calls = plain_calls(used or ())
    if calls is None or row.tool_calls or (text is not None and "\0" in text):
        return None
    timings = _NOT_TIMED if latency is None else Timings(latency_ms=latency)
    return Reply(
        text=text,
        tool_calls=calls,
        timings=timings,
        usage=None if row.usage is None else read_usage(row.usage),
        evidence=EVIDENCE[tools_observed(row), row.sources is not None],
        conversation_id=row.conversation_id,
    )


_NOT_TIMED = Timings()


def tools_observed(row: PlainRow) -> bool:
    """Whether a row says which tools were used, be it none."""
    return row.tools_used is not None or row.tool_calls is not None


def told_in(row: PlainRow) -> tuple[object, ...]:
    """What a row tells of its question."""
    return row.question, row.expected_keywords, row.expected_tools, row.category, row.reference_answer


# The names of the tools that a reply used (None: they were not observed), and its tokens.
Use = tuple[tuple[str, ...] | None, Usage | None]


def used_in(row: PlainRow, *, calls: bool) -> Use | None:
    """The names of the tools that a row's reply used, and its tokens; None: there is more to them, or there are objects in the
    place of names, which count only with `calls`.
    """
    usage = None if row.usage is None else read_usage(row.usage)
    if usage is not None and usage.cost is not None:
        return None
    if not row.tool_calls:
        return row.tools_used, usage
    made = read_calls(row.tool_calls) if calls else ()
    told = [call.name for call in made if call.error is None and call.start_ms is call.duration_ms is None]
    return (tuple(told), usage) if made and len(told) == len(made) else None


@lru_cache(maxsize=10_000)
def plain_calls(names: tuple[str, ...]) -> tuple[ToolCall, ...] | None:
    """The calls of these tools; None where a name must be looked at."""
    if len(names) > _MOST_CALLS or not all(name.isascii() and "\0" not in name for name in names):
        return None
    return read_calls(list(names))

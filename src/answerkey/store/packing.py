"""How replies and scorecards lie in columns: every text once, numbers apart from long details; and what a run is."""

import sys
import zlib
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from math import inf, isnan, nan
from types import UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin

import msgspec

from answerkey.model.reply import Failure, Reply
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import Score, Scorecard

_decode_info = msgspec.json.Decoder(RunInfo).decode
# Between the texts of a conversation's turns.
_SEPARATOR = "\x1e"
# What scorecards' details have in common, for their compression; stores hold what was made with it, so it stays.
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
    """Without what databases refuse: PostgreSQL takes no NUL in text, and no database a lone surrogate."""
    if text.isascii() and "\0" not in text:
        return text
    return text.replace("\0", "").encode("utf-8", "replace").decode()


def fold(text: str) -> str | None:
    """A text without case; None where A to Z are all that changes, which a search does by itself."""
    if text.isascii():
        return None
    folded = text.casefold()
    return None if folded.encode() == text.encode().lower() else folded


def tools_text(replies: Sequence[Reply]) -> str:
    """The tools that replies called, each between line breaks."""
    tools = dict.fromkeys([call.name for reply in replies for call in reply.tool_calls])
    return storable("\n" + "\n".join(tools) + "\n") if tools else ""


# Replies


def pack_replies(replies: Sequence[Reply]) -> tuple[str, str | None, str | None, str]:
    """Tools, text, the text without case and payload of the replies to a question's turns.

    A text that a column cannot hold as it is stays in the payload as well.
    """
    texts = [reply.text for reply in replies if reply.text is not None]
    said = _SEPARATOR.join(texts)
    kept = storable(said)
    separable = len(texts) == 1 or said.count(_SEPARATOR) == len(texts) - 1
    if separable and kept == said and len(texts) == len(replies):
        replies = [msgspec.structs.replace(reply, text=None) for reply in replies]
    return tools_text(replies), kept if texts else None, fold(kept), _encode(replies).decode()


def unpack_replies(text: str | None, payload: str) -> tuple[Reply, ...]:
    """The replies as they were."""
    replies = _decode_replies(payload)
    if text is not None and not any(reply.text is not None for reply in replies):
        texts = [text] if len(replies) == 1 else text.split(_SEPARATOR)
        for reply, said in zip(replies, texts, strict=True):
            # Nobody else has seen it yet.
            msgspec.structs.force_setattr(reply, "text", said)
    return replies


def reply_checksum(ask_hash: bytes, trial: int, text: str | None, payload: str) -> int:
    """CRC-32 of what a row of replies says, with a sign: four bytes in either database."""
    found = zlib.crc32(payload.encode(), zlib.crc32(ask_hash, trial))
    found = zlib.crc32(b"" if text is None else text.encode(), found)
    return found - 2**32 if found >= 2**31 else found


def reply_digest(replies: Sequence[Reply]) -> int:
    """Equal for replies that say the same."""
    said = "\0".join(["\1" if reply.text is None else reply.text for reply in replies])
    return int.from_bytes(blake2b(said.encode("utf-8", "replace"), digest_size=6).digest())


def id_hash(kind: str, external_id: str) -> bytes:
    """Under which a chatbot's own id of a reply is kept."""
    return blake2b(f"{kind}:{external_id}".encode("utf-8", "replace"), digest_size=16).digest()


def id_hashes(replies: Sequence[Reply]) -> list[bytes]:
    """Of all ids that replies have."""
    found = []
    for reply in replies:
        if reply.response_id:
            found.append(id_hash("response", reply.response_id))
        if reply.trace_id:
            found.append(id_hash("trace", reply.trace_id))
        if reply.conversation_id:
            found.append(id_hash("conversation", reply.conversation_id))
    return found


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


class _Details(msgspec.Struct, array_like=True):
    """What a scorecard has beside its columns."""

    components: list[_Part]
    findings: dict[str, Any]
    # Of the failure whose kind is a column.
    error_message: str | None
    turns: tuple[Scorecard, ...]


_decode_details = msgspec.json.Decoder(_Details).decode
read_measures = msgspec.json.Decoder(Measures).decode


class PackedCard(NamedTuple):
    """What of a scorecard does not fit into plain columns."""

    # Measures as JSON.
    measures: str
    # Doubles, little-endian on every machine, so that a store can be moved; a missing value is NaN.
    measured: bytes
    details: bytes


# What `unpack_card` takes, in its order: `c` are scorecards, `d` their details, `m` the names of their measures.
CARD_COLUMNS = "c.score, c.grade, c.passed, c.error_kind, m.name, c.measured, d.payload"


def pack_card(card: Scorecard) -> PackedCard:
    """A scorecard's numbers and its long rest."""
    parts = [_Part(score.reason, score.weight, score.details) for score in card.components.values()]
    message = None if card.error is None else card.error.message
    values = [*[score.value for score in card.components.values()], *card.metrics.values()]
    # Nobody can average with what is endless; JSON has no name for it either.
    measured = array("d", [nan if value is None or value in (inf, -inf) else value for value in values])
    compressor = _COMPRESSOR.copy()
    details = compressor.compress(_encode(_Details(parts, card.findings, message, card.turns)))
    return PackedCard(
        _encode(Measures(tuple(card.components), tuple(card.metrics))).decode(),
        _little_endian(measured).tobytes(),
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
    """The scorecard as it was."""
    names = read_measures(measures)
    values = [None if isnan(value) else value for value in unpack_values(measured)]
    details = _decode_details(zlib.decompressobj(_WINDOW, _COMMON).decompress(payload))
    return Scorecard(
        components={
            name: Score(name, value, part.reason, part.weight, part.details)
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
    """Raises ValueError for details that cannot be read."""
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
    """What a run is, as any version wrote it: settings that have gone since are left out."""
    try:
        return _decode_info(payload)
    except msgspec.ValidationError:
        return convert_run_info(msgspec.json.decode(payload, type=dict[str, Any]))


def convert_run_info(plain: dict[str, Any]) -> RunInfo:
    """The same from plain values."""
    return msgspec.convert(_known(plain, RunInfo), RunInfo)


def _known(value: Any, kind: Any) -> Any:
    """A value without the fields that its kind does not have (any more); scores stay as they were given."""
    if get_origin(kind) in (Union, UnionType):
        kind = next((part for part in get_args(kind) if _is_struct(part)), None)
    if not (isinstance(value, dict) and _is_struct(kind)):
        return value
    kinds = {field.encode_name: field.type for field in msgspec.structs.fields(kind)}
    return {name: _known(part, kinds[name]) for name, part in value.items() if name in kinds}


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)

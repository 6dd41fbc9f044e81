"""Admission: the one place that every reply passes before it is scored or kept.

What has passed it can be written as JSON and stored anywhere: no lone surrogate or NUL in any text, no value that JSON
lacks, no nesting that readers would choke on, and not more than the target's limit.
"""

import msgspec

from answerkey.model.reply import Failure, Reply
from answerkey.transcripts.plain_json import DEEPEST, as_json

__all__ = ["MOST_MEGABYTES", "admit_reply", "plain_reply", "too_large"]

# The size limit of a reply, for all kinds of targets that do not say otherwise.
MOST_MEGABYTES = 16.0
_MEGABYTE = 1024 * 1024

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Reply).decode


def admit_reply(reply: Reply, most_megabytes: float | None = None) -> Reply:
    """The reply as it may be kept, mostly as it is; one that is larger than the limit is a failure instead."""
    try:
        encoded = _encode(reply)
    except (TypeError, ValueError, OverflowError, RecursionError):
        return _rebuilt(reply, most_megabytes)
    if most_megabytes is not None and len(encoded) > most_megabytes * _MEGABYTE:
        return msgspec.structs.replace(too_large(most_megabytes), timings=reply.timings)
    if b"\\u0000" in encoded:
        return _rebuilt(reply, most_megabytes)
    if not (reply.tool_calls or reply.sources):
        # Nothing in it can be nested or be a number that JSON lacks: a million recorded replies go this way.
        return reply
    if encoded.count(b"[") + encoded.count(b"{") > DEEPEST and _is_deep(reply):
        return _rebuilt(reply, most_megabytes)
    # A number that JSON lacks is written as null; what is scored is what will be read again.
    return plain_reply(reply) if b"null" in encoded else reply


def plain_reply(reply: Reply) -> Reply:
    """The reply as it is read again: with lists for tuples, texts for other keys, and nothing for NaN."""
    try:
        return _decode(_encode(reply))
    except msgspec.ValidationError:
        return _rebuilt(reply, None)


def too_large(most_megabytes: float) -> Reply:
    """What stands in the place of a reply that is larger than the limit."""
    message = f"the reply is larger than {most_megabytes:g} MB; raise max_reply_mb if that is right"
    return Reply(failure=Failure("malformed", message))


def _rebuilt(reply: Reply, most_megabytes: float | None) -> Reply:
    plain = as_json(msgspec.structs.asdict(reply))
    try:
        rebuilt = msgspec.convert(plain, Reply, strict=False)
        encoded = _encode(rebuilt)
    except (msgspec.ValidationError, TypeError, ValueError, OverflowError) as error:
        return Reply(failure=Failure("malformed", f"the reply cannot be kept: {type(error).__name__}"))
    if most_megabytes is not None and len(encoded) > most_megabytes * _MEGABYTE:
        return msgspec.structs.replace(too_large(most_megabytes), timings=rebuilt.timings)
    return rebuilt


def _is_deep(reply: Reply) -> bool:
    """Whether what tools took or gave, or a source's metadata, is nested deeper than anybody reads."""
    values = [part for call in reply.tool_calls for part in (call.arguments, call.result)]
    level: list[object] = [*values, *(source.metadata for source in reply.sources)]
    # The reply, its list of calls and the call itself are levels too.
    for _ in range(DEEPEST - 3):
        level = [part for value in level for part in _inside(value)]
        if not level:
            return False
    return True


def _inside(value: object) -> list[object]:
    if isinstance(value, dict):
        return [part for part in value.values() if isinstance(part, (dict, list, tuple))]
    if isinstance(value, (list, tuple)):
        return [part for part in value if isinstance(part, (dict, list, tuple))]
    return []

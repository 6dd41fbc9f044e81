"""HTTP responses to Replies: JSON, text and streams of a success, and the reason that an error status gives."""

import json
import re
import time
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

import msgspec

from answerkey.model.json_value import Json
from answerkey.model.reply import Evidence, Failure, Reply
from answerkey.protocols import RetryableError
from answerkey.targets.secrets import Secrets, safe_url
from answerkey.targets.stopwatch import Stopwatch
from answerkey.transcripts.conversation import NOT_ASKED, Asked
from answerkey.transcripts.documents import streamed
from answerkey.transcripts.error_kinds import kind_of_status
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.error_field import read_failure
from answerkey.transcripts.json_shapes import read_number
from answerkey.transcripts.plain_json import decode_json
from answerkey.transcripts.reply_mapping import ReplyMapping, reply_from_payload
from answerkey.transcripts.streams.event_reader import EventReader, StreamKind, stream_kind
from answerkey.transcripts.streams.whole_stream import assemble

if TYPE_CHECKING:
    import aiohttp

__all__ = ["read_at_most", "read_error", "read_reply", "retry_after_seconds"]

_MEGABYTE = 1024 * 1024
_TAG = re.compile(r"<(?:script|style)\b.*?</(?:script|style)>|<[^>]*>", re.IGNORECASE | re.DOTALL)


async def read_reply(
    response: "aiohttp.ClientResponse",
    most_bytes: int,
    mapping: ReplyMapping | None,
    secrets: Secrets,
    watch: Stopwatch,
    asked: Asked = NOT_ASKED,
) -> Reply:
    """The reply in a successful response to what was asked."""
    import aiohttp

    kind = stream_kind(response.content_type, "x-vercel-ai-data-stream" in response.headers)
    reader = None if kind is None else EventReader(kind)
    chunks: list[bytes] = []
    events: list[str] = []
    size = 0
    broken: Failure | None = None
    try:
        async for chunk in response.content.iter_any():
            watch.chunk()
            size += len(chunk)
            if size > most_bytes:
                response.close()
                message = f"the reply is larger than {most_bytes / _MEGABYTE:g} MB; raise max_reply_mb if that is right"
                return Reply(failure=Failure("malformed", message))
            if reader is None:
                chunks.append(chunk)
                continue
            events += reader.feed(chunk)
            if reader.done:
                # Some servers keep the connection open after the last event.
                break
    except (aiohttp.ClientPayloadError, ConnectionError) as error:
        if reader is None:
            raise
        broken = Failure("connection", failure_message(f"the stream broke off: {error}"))
    if kind is None or reader is None:
        return _from_body(b"".join(chunks), response.content_type, response.charset, mapping, secrets, asked)
    events += reader.feed(b"", last=True)
    return _from_events(kind, events, reader.done, broken, mapping, secrets, asked)


def _from_events(
    kind: StreamKind,
    events: list[str],
    done: bool,
    broken: Failure | None,
    mapping: ReplyMapping | None,
    secrets: Secrets,
    asked: Asked,
) -> Reply:
    if not events:
        return Reply(failure=broken, evidence=Evidence(kind="stream", completeness="partial"))
    payload, whole = assemble(kind, [secrets.redact_reply(event) for event in events], done=done)
    reply = reply_from_payload(payload, mapping=mapping, asked=asked)
    if reply.failure is None and broken is not None:
        reply = msgspec.structs.replace(reply, failure=broken)
    return streamed(reply, whole and broken is None)


def _from_body(
    body: bytes,
    content_type: str,
    charset: str | None,
    mapping: ReplyMapping | None,
    secrets: Secrets,
    asked: Asked,
) -> Reply:
    try:
        text = body.decode(charset or "utf-8-sig")
    except (UnicodeDecodeError, LookupError):
        text = body.decode("utf-8", "replace")
        return Reply(
            text=secrets.redact_reply(text),
            failure=Failure("malformed", "the reply is not text in its encoding"),
        )
    text = secrets.redact_reply(text)
    is_json = content_type == "application/json" or content_type.endswith("+json")
    if is_json or text.lstrip()[:1] in ("{", "[", '"') or text.strip() == "null":
        try:
            return reply_from_payload(decode_json(text), mapping=mapping, asked=asked)
        except (ValueError, RecursionError) as error:
            if is_json:
                return Reply(
                    text=text or None,
                    failure=Failure("malformed", failure_message(f"the reply is not valid JSON: {error}")),
                )
    return Reply(text=text, evidence=Evidence())


async def read_error(
    response: "aiohttp.ClientResponse", secrets: Secrets, mapping: ReplyMapping | None = None
) -> Reply:
    """The reply of a status that is not success: its failure, with what the body says, and the calls that it tells of.

    429 and 503 are for the engine to retry.
    """
    status = response.status
    body = secrets.redact_reply((await read_at_most(response, _MEGABYTE)).decode("utf-8", "replace"))
    if status < 400:
        place = safe_url(response.headers.get("Location", "elsewhere"))
        message = f"HTTP {status}: redirected to {place}; use that address as the target"
        return Reply(failure=Failure("http", failure_message(secrets.redact(message))))
    payload: Json = None
    try:
        payload = decode_json(body)
    except (ValueError, RecursionError):
        said = failure_message(_TAG.sub(" ", body), 300)
    else:
        said = _reason_in(payload)
    message = f"HTTP {status}: {said or response.reason or 'no reason given'}"
    failure = Failure(kind_of_status(status), failure_message(message))
    if status in (429, 503):
        raise RetryableError(failure, retry_after_seconds(response.headers.get("Retry-After")))
    if isinstance(payload, dict):
        reply = reply_from_payload(payload, mapping=mapping)
        if reply.evidence.tools_observed:
            return msgspec.structs.replace(reply, failure=failure)
    return Reply(failure=failure)


async def read_at_most(response: "aiohttp.ClientResponse", most_bytes: int) -> bytes:
    """A response's body, or its beginning if it is longer."""
    body = b""
    while len(body) < most_bytes and (more := await response.content.read(most_bytes - len(body))):
        body += more
    return body


def _reason_in(payload: Json) -> str:
    if isinstance(payload, dict):
        for name in ("error", "detail", "message", "reason", "title", "errors"):
            found = payload.get(name)
            if isinstance(found, str) and found.strip():
                return found
            if isinstance(found, (dict, list)) and found:
                failure = read_failure(found)
                return failure.message if failure else ""
    return payload if isinstance(payload, str) else json.dumps(payload, default=str)[:300] if payload else ""


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks to wait: it holds seconds or a date."""
    if not value:
        return None
    seconds = read_number(value)
    if seconds is not None:
        return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

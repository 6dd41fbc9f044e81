"""HTTP responses to Replies: JSON, text and streams of a success, and the reason that an error status gives."""

import json
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial

import msgspec

from answerkey.model.reply import Evidence, Failure, Json, Reply
from answerkey.protocols import RetryableError
from answerkey.targets.http_client import Response
from answerkey.targets.secrets import Secrets, safe_url
from answerkey.text.normalise import clean_text, decode_text
from answerkey.transcripts.conversation import NOT_ASKED, Asked
from answerkey.transcripts.failures import failure_message, kind_of_status, read_failure
from answerkey.transcripts.formats import streamed
from answerkey.transcripts.json_values import decode_json, read_number
from answerkey.transcripts.payloads import ReplyMapping, note_raw, reply_from_payload
from answerkey.transcripts.streams import STREAM_KINDS, EventReader, StreamKind, assemble

_MEGABYTE = 1024 * 1024
# A tag ends before the next begins, so that a page of unclosed ones is read in one pass.
_TAG = re.compile(r"<[^<>]*>")
_UNSEEN = re.compile(r"<(/?)(?:script|style)\b", re.IGNORECASE)


async def read_reply(
    response: Response, mapping: ReplyMapping | None, secrets: Secrets, asked: Asked = NOT_ASKED
) -> Reply:
    """The reply in a successful response to what was asked."""
    kind = STREAM_KINDS.get(response.content_type)
    if "x-vercel-ai-data-stream" in response.headers:
        kind = "data-stream"
    read = partial(reply_from_payload, mapping=mapping, asked=asked)
    if kind is None:
        body = b"".join([chunk async for chunk in response.chunks()])
        note_raw(lambda: secrets.redact(decode_text(body, response.charset)[0]))
        reply = _from_body(response, body, read)
    else:
        reply = await _from_stream(response, kind, secrets, read)
    return secrets.redact_reply(reply)


async def _from_stream(
    response: Response, kind: StreamKind, secrets: Secrets, read: Callable[[object], Reply]
) -> Reply:
    reader = EventReader(kind)
    events: list[str] = []
    broken: Failure | None = None
    try:
        async for chunk in response.chunks():
            events += reader.feed(chunk)
            if reader.done:
                # Some servers keep the connection open after the last event.
                break
    except ConnectionError as error:
        broken = Failure("connection", failure_message(f"the stream broke off: {error}"))
    events += reader.feed(b"", last=True)
    if not events:
        return Reply(failure=broken, evidence=Evidence(kind="stream", completeness="partial"))
    payload, whole = assemble(kind, events, done=reader.done)
    note_raw(lambda: secrets.redact(json.dumps(payload, ensure_ascii=False, default=str)))
    reply = read(payload)
    if reply.failure is None and broken is not None:
        reply = msgspec.structs.replace(reply, failure=broken)
    return streamed(reply, whole and broken is None)


def _from_body(response: Response, body: bytes, read: Callable[[object], Reply]) -> Reply:
    text, wrong = decode_text(body, response.charset)
    if wrong is not None:
        return Reply(text=text, failure=Failure("malformed", failure_message(wrong)))
    is_json = response.content_type == "application/json" or response.content_type.endswith("+json")
    if is_json or text.lstrip()[:1] in ("{", "[", '"') or text.strip() == "null":
        try:
            return read(decode_json(text))
        except ValueError as error:
            if is_json:
                wrong = failure_message(f"the reply is not valid JSON: {error}")
                return Reply(text=clean_text(text) or None, failure=Failure("malformed", wrong))
    return Reply(text=clean_text(text), evidence=Evidence())


async def read_error(response: Response, secrets: Secrets, mapping: ReplyMapping | None = None) -> Reply:
    """The reply of a status that is not success: its failure, with what the body says, and the calls that it tells of.

    429 and 503 are for the engine to retry.
    """
    status = response.status
    body, _ = decode_text(await _beginning(response), response.charset)
    note_raw(lambda: secrets.redact(body))
    if status < 400:
        place = safe_url(response.headers.get("location", "elsewhere"))
        message = f"HTTP {status}: redirected to {place}; use that address as the target"
        return Reply(failure=Failure("http", failure_message(secrets.redact(message))))
    payload: Json = None
    try:
        payload = decode_json(body)
    except ValueError:
        said = failure_message(_without_tags(body), 300)
    else:
        said = _reason_in(payload)
    message = f"HTTP {status}: {said or response.reason or 'no reason given'}"
    failure = Failure(kind_of_status(status), failure_message(secrets.redact_message(message)))
    if status in (429, 503):
        raise RetryableError(failure, retry_after_seconds(response.headers.get("retry-after")))
    if isinstance(payload, dict):
        reply = reply_from_payload(payload, mapping=mapping)
        if reply.evidence.tools_observed:
            return secrets.redact_reply(msgspec.structs.replace(reply, failure=failure))
    return Reply(failure=failure)


async def _beginning(response: Response) -> bytes:
    """What can be had of an error's body: the status counts, even if the body breaks off."""
    body = b""
    with suppress(ConnectionError, ValueError):
        async for chunk in response.chunks():
            body += chunk
            if len(body) >= _MEGABYTE:
                break
    return body[:_MEGABYTE]


def _without_tags(page: str) -> str:
    """What a page says, without its markup, scripts and styles."""
    kept: list[str] = []
    position = 0
    inside = False
    for mark in _UNSEEN.finditer(page):
        if not inside:
            kept.append(page[position : mark.start()])
        inside = not mark[1]
        position = mark.start()
    kept.append(page[position:])
    return _TAG.sub(" ", " ".join(kept))


def _reason_in(payload: Json) -> str:
    if isinstance(payload, dict):
        for name in ("error", "detail", "message", "reason", "title", "errors"):
            found = payload.get(name)
            if isinstance(found, str) and found.strip():
                return found
            if fields := _wrong_fields(found):
                return fields
            if isinstance(found, (dict, list)) and found:
                failure = read_failure(found)
                return failure.message if failure else ""
    if isinstance(payload, str):
        return payload
    return failure_message(json.dumps(payload, default=str), 300) if payload else ""


def _wrong_fields(listed: object) -> str:
    """The fields that a framework refuses, as FastAPI lists them; nothing if it is no such list."""
    wrong = [
        f"{'.'.join(str(step) for step in item['loc'])}: {item.get('msg', 'is wrong')}"
        for item in (listed if isinstance(listed, list) else ())
        if isinstance(item, dict) and isinstance(item.get("loc"), list)
    ]
    return "; ".join(wrong[:5])


def retry_after_seconds(value: str | None) -> float | None:
    """Seconds that a Retry-After header asks to wait: it holds seconds or a date."""
    if not value:
        return None
    seconds = read_number(value)
    if seconds is not None:
        return max(0.0, seconds)
    from email.utils import parsedate_to_datetime  # few servers name a date

    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None

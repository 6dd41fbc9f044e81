"""The error field of a reply: text or an object in many dialects becomes a Failure."""

from answerkey.model.json_value import JsonObject
from answerkey.model.reply import ERROR_KINDS, Failure
from answerkey.transcripts.error_kinds import classify_error, kind_of_status
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import json_text, safe_text, type_in_words

__all__ = ["not_text", "read_failure"]

_NAMES = ("kind", "type", "name", "code", "status")
_STATUSES = ("code", "status", "status_code", "statusCode")
_MESSAGES = ("message", "detail", "error", "description", "reason", "content", "title")


def read_failure(value: object) -> Failure | None:
    """The failure that an error field tells of; None if the field is empty."""
    if not value:
        return None
    if isinstance(value, str):
        if not value.strip():
            return None
        return Failure(classify_error(value), failure_message(safe_text(value)))
    if isinstance(value, dict):
        return _from_object(value)
    if isinstance(value, list):
        return (
            read_failure(value[0])
            if len(value) == 1
            else Failure("exception", failure_message(json_text(value)))
        )
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return Failure(kind_of_status(value), f"HTTP {value}")
    return Failure(
        "exception",
        "the reply says that there was an error" if value is True else failure_message(json_text(value)),
    )


def not_text(name: str | None, value: object) -> Failure:
    """The failure of a reply whose text is an object: writing it out would grade what nobody was told."""
    where = "the reply" if name is None else f"the reply's {name}"
    remedy = "return its text, a dict with the text under 'answer', or say where it is with reply.text"
    return Failure("malformed", f"{where} is {type_in_words(value)}, not text; {remedy}")


def _from_object(value: JsonObject) -> Failure:
    named = next((name for key in _NAMES if isinstance(name := value.get(key), str)), None)
    said = next((text for key in _MESSAGES if isinstance(text := value.get(key), str) and text), None)
    for kind in ERROR_KINDS:
        if named == kind:
            return Failure(kind, failure_message(safe_text(said or kind)))
    message = failure_message(
        safe_text(": ".join(part for part in (named, said) if part) or json_text(value))
    )
    status = next(
        (code for key in _STATUSES if isinstance(code := value.get(key), int) and 400 <= code <= 599), None
    )
    return Failure(classify_error(message) if status is None else kind_of_status(status), message)

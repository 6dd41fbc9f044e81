"""JSON bodies that report an error or should have stayed inside the chatbot, by the keys in `forms.toml`."""

from typing import Any

import msgspec

from answerkey.text.normalise import compile_pattern
from answerkey.transcripts.json_values import decode_json

_LONGEST_BODY = 200_000


class Bodies(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The section `[bodies]` of `forms.toml`."""

    error_keys: frozenset[str]
    beside_error: frozenset[str]
    status_keys: tuple[str, ...]
    failed_states: frozenset[str]
    failing_message: str
    raw_calls: tuple[frozenset[str], ...]
    error_examples: tuple[str, ...]
    call_examples: tuple[str, ...]

    def reports_error(self, fields: dict[str, Any]) -> bool:
        """Whether a body does nothing but report an error."""
        keys = fields.keys()
        if not keys <= self.error_keys | self.beside_error:
            return False
        message = fields.get("message", fields.get("detail", "")) if len(fields) == 1 else ""
        return (
            any(fields[key] and not isinstance(fields[key], int) for key in keys & self.error_keys)
            or fields.get("success", True) is False
            or fields.get("ok", True) is False
            or fields.get("is_error") is True
            or any(self._is_failed(fields.get(key)) for key in self.status_keys)
            or isinstance(compile_pattern(self.failing_message).search(str(message)), tuple)
        )

    def is_raw_call(self, fields: dict[str, Any]) -> bool:
        """Whether a body is a message or a tool call of the chatbot's own machinery."""
        keys = fields.keys()
        return any(call <= keys for call in self.raw_calls) and keys.isdisjoint({"answer", "response"})

    def _is_failed(self, status: object) -> bool:
        code = str(status)
        return code.lower() in self.failed_states or (len(code) == 3 and code.isdecimal() and code[0] in "45")


def body_fields(text: str) -> dict[str, Any] | None:
    """The fields of a reply that is a JSON object, or a list of them, with keys in lower case; None: it is not."""
    if text[0] not in "{[`" or len(text) > _LONGEST_BODY:
        return None
    if text.startswith("```"):
        text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = decode_json(text)
    except ValueError:
        return None
    first: Any = value[0] if isinstance(value, list) and value else value
    return {str(key).lower(): item for key, item in first.items()} if isinstance(first, dict) else None

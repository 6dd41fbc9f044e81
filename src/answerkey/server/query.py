"""Addresses, query strings and bodies as typed values, with an error that says which part is wrong."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import parse_qsl

import msgspec
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import ClientDisconnect, Request

from answerkey.errors import UsageError

Model = TypeVar("Model", bound=msgspec.Struct)
Value = TypeVar("Value")


class BadRequestError(UsageError):
    """A request that cannot be read as what it should be."""


def read_query(request: Request, model: type[Model]) -> Model:
    """The query string as `model`; empty and unknown parameters are left out."""
    lists = {field.name for field in msgspec.structs.fields(model) if field.default == ()}
    given: dict[str, Any] = {}
    for name in model.__struct_fields__:
        values = [_clean(value) for value in request.query_params.getlist(name) if value != ""]
        if values:
            given[name] = values if name in lists else values[-1]
    try:
        return msgspec.convert(given, model, strict=False)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"in the address: {_explain(error)}") from None


async def read_body(request: Request, model: type[Any]) -> Any:
    """A JSON object as `model`; for a struct also a form's fields."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded" and hasattr(model, "__struct_fields__"):
        return read_mapping(_form(await request.body()), model, strict=False)
    # A page that may not send JSON without asking first may send it as plain text.
    if kind not in ("application/json", "text/plain", ""):
        raise BadRequestError(f"content type {kind[:60]!r}: send application/json")
    try:
        value = msgspec.json.decode(await request.body())
    except ClientDisconnect:
        raise BadRequestError("the connection ended before the body did") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadRequestError(f"the body is not valid JSON: {error}") from None
    except RecursionError:
        raise BadRequestError("the body is not valid JSON: nested too deeply") from None
    if not isinstance(value, dict):
        raise BadRequestError("the body must be a JSON object")
    return read_mapping(value, model)


def read_mapping(value: Mapping[str, Any], model: type[Value], *, strict: bool = True) -> Value:
    """Named values as `model`."""
    try:
        return msgspec.convert(dict(value), model, strict=strict)
    except msgspec.ValidationError as error:
        raise BadRequestError(_explain(error)) from None


def _form(body: bytes) -> dict[str, str]:
    try:
        fields = parse_qsl(body.decode("utf-8", "replace"), max_num_fields=100)
        return {name: _clean(value) for name, value in fields}
    except ValueError:
        raise BadRequestError("the form has too many fields") from None


def _clean(value: str) -> str:
    # No database takes a lone surrogate, and PostgreSQL no NUL.
    return value.replace("\x00", "").encode("utf-8", "replace").decode()


def _explain(error: msgspec.ValidationError) -> str:
    message = str(error)
    if " - at `$." in message:
        what, _, where = message.partition(" - at `$.")
        return f"{where.rstrip('`')}: {what[:200]}"
    return message[:260]


class _AnyId(Convertor[str]):
    """The rest of an address, as `{name:id}`; Starlette's own `path` ends at a line break."""

    regex = "(?s:.*)"

    def convert(self, value: str) -> str:
        """As it is, without what no database takes."""
        return value.replace("\x00", "")

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


def know_any_id() -> None:
    """Let routes be written with `{name:id}`."""
    register_url_convertor("id", _AnyId())

"""Reading what a run is, as any version wrote it: settings that have gone since are left out."""

from types import UnionType
from typing import Any, Union, get_args, get_origin

import msgspec

from answerkey.model.run import RunInfo

__all__ = ["convert_run_info", "read_run_info"]

_decode = msgspec.json.Decoder(RunInfo).decode


def read_run_info(payload: str | bytes) -> RunInfo:
    """A run's row."""
    try:
        return _decode(payload)
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

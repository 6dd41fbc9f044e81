"""Rows of a log that cannot be scored: what is wrong with them, exactly and in general, and the side file that they go to."""

import re
from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

import msgspec

from answerkey.model.summary import BAD_ROW

SIDE_FILE_ENDING = ".bad.jsonl"
# What differs from row to row in reasons that are the same: a place in its bytes, an id.
_BYTE = re.compile(r" \(byte \d+\)")
_UNKNOWN_ID = re.compile(
    r"(?<=^the golden set has no question with )id .*(?=; check --questions$)", re.DOTALL
)


def general_reason(reason: str) -> str:
    """What is wrong with a row, in words that hold for every row of the kind."""
    return _UNKNOWN_ID.sub("its id", _BYTE.sub("", reason))


class BadRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """A row that could not be scored."""

    file: str
    line: int | None
    reason: str
    # The row as it stands there, or its beginning.
    row: str = ""

    @property
    def counted_as(self) -> str:
        """Why it has no score, among the reasons that replies have none."""
        return BAD_ROW + general_reason(self.reason)


class _Told(BadRow, frozen=True, forbid_unknown_fields=True):
    """A row of a side file, which has nothing else."""


_decode = msgspec.json.Decoder(_Told).decode


def is_side_file(path: Path) -> bool:
    """Whether answerkey wrote this file as a side file: every one of its lines tells a bad row, and nothing else."""
    written = False
    try:
        with path.open("rb") as file:
            for line in file:
                _decode(line)
                written = True
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return False
    return written


def keep_bad_rows(path: Path, lines: bytes, read: Iterable[Path]) -> Path | None:
    """Write the side file of a log whose files were `read`, and say where; without bad rows, remove one of before.

    A file that has the name but is no side file, or is itself read, stays as it is: the next free name is taken.
    """
    path = _free_name(path, list(read))
    if lines:
        path.write_bytes(lines)
        return path
    path.unlink(missing_ok=True)
    return None


def _free_name(path: Path, read: list[Path]) -> Path:
    stem = path.name.removesuffix(SIDE_FILE_ENDING)
    others = (path.with_name(f"{stem}.bad.{number}.jsonl") for number in count(2))
    return next(chosen for chosen in chain([path], others) if _may_be_written(chosen, read))


def _may_be_written(path: Path, read: list[Path]) -> bool:
    if not path.exists():
        # A link that leads nowhere is somebody's too.
        return not path.is_symlink()
    return is_side_file(path) and not any(given.exists() and path.samefile(given) for given in read)

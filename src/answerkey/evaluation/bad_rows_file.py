"""The side file: the rows of a log that could not be scored, each with its file, line and reason."""

from collections.abc import Iterable
from itertools import chain, count
from pathlib import Path

import msgspec

from answerkey.evaluation.shard_tally import BadRow

SIDE_FILE_ENDING = ".bad.jsonl"


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

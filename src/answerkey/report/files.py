"""Write reports to files, atomically; the ending selects the format."""

import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os.path import samestat
from pathlib import Path
from typing import Any, BinaryIO

from answerkey.errors import UsageError
from answerkey.model.run import Run
from answerkey.plugins import reports


def write_report(run: Run, path: Path | str) -> None:
    """Write a run's report in the format that the path's ending selects."""
    path = Path(path)
    write = reports.get(_ending(path))
    with atomic_file(path) as file:
        write(run, file)


def write_reports(run: Run, paths: Iterable[Path | str]) -> None:
    """Write several reports; all paths are checked before the first is written."""
    listed = [Path(path) for path in paths]
    for path in listed:
        check_output(path)
    for path in listed:
        write_report(run, path)


def report_endings() -> list[str]:
    """The endings of all report formats, the built-in ones first."""
    return [*reports.built_in(), *reports.added()]


def check_output(path: Path | str, read: Iterable[Path] = ()) -> None:
    """Raise UsageError, before any question is asked, if a report cannot be written there or would overwrite an input."""
    path = Path(path)
    # Load the format now, so that a missing extra is reported before the run.
    reports.get(_ending(path))
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; name a file")
    folder = path.parent
    if not folder.is_dir():
        raise UsageError(f"{path}: the folder {folder} does not exist; create it first")
    target = path if path.exists() else folder
    if not os.access(target, os.W_OK) or (_is_regular(path) and not os.access(folder, os.W_OK)):
        raise UsageError(f"{path}: cannot be written (no permission)")
    refuse_to_overwrite(path, read)


def refuse_to_overwrite(path: Path, read: Iterable[Path]) -> None:
    """Raise UsageError if the path is one of the input files, also through another name or link."""
    if not path.is_file():
        # A new file or a device.
        return
    written = path.stat()
    for given in read:
        if any(samestat(written, found) for found in _stats(given)):
            raise UsageError(f"-o {path}: would overwrite the input {given}; name another file")


def _stats(path_given: Path) -> Iterator[os.stat_result]:
    """The stats of a file, of each file of a folder, or of standard input."""
    if str(path_given) == "-":
        with suppress(OSError):
            yield os.fstat(0)
    elif path_given.is_dir():
        yield from (path.stat() for path in path_given.rglob("*") if path.is_file())
    elif path_given.exists():
        yield path_given.stat()


def _ending(path: Path) -> str:
    name = path.name.lower()
    # Longest first: x.junit.xml is not another kind of .xml.
    for ending in sorted(reports.names(), key=len, reverse=True):
        if name.endswith(ending) and name != ending:
            return ending
    raise UsageError(f"{path}: unknown report format; use one of {' '.join(report_endings())}")


def _is_regular(path: Path) -> bool:
    return path.is_file() or not path.exists()


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A file that gets its name only when it is completely written."""
    if not _is_regular(path):
        # A device or a pipe (/dev/stdout) cannot be replaced by a rename.
        with _clear_errors(path), path.open("wb") as device:
            yield device
        return
    # Write through a link to its file.
    path = path.resolve()
    unfinished = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.part")
    with _clear_errors(path):
        file = unfinished.open("xb")
    try:
        with _clear_errors(path):
            with file:
                yield file
            if path.exists():
                unfinished.chmod(path.stat().st_mode & 0o7777)
            unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def append_row(path: Path, row: dict[str, Any]) -> None:
    """Append a row to a golden set, which is replaced as a whole; the rows before it stay as they are written."""
    from answerkey.transcripts.yaml_documents import EditableRows  # few commands edit a golden set

    rows = EditableRows.read(path) if path.exists() else EditableRows("", path)
    with atomic_file(path) as file:
        file.write(rows.append(rows.encode(row)).text.encode())


@contextmanager
def _clear_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None

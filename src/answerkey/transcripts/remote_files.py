"""Files that are elsewhere: s3://, gs://, https:// and whatever else fsspec reads, where it is installed (extra `remote`).

Inputs are Paths, and a Path makes one slash of two: `remote_url` gives the address that was meant.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from glob import has_magic
from pathlib import Path
from typing import Any

from answerkey.errors import InputError, MissingExtraError

# So much is asked for at once.
_PIECE = 1024 * 1024
# Two letters at least: C:/ is a drive.
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/+(.*)")


def remote_url(path: Path) -> str | None:
    """The address that a path stands for; None: it is a file of this machine."""
    found = _ADDRESS.fullmatch(path.as_posix())
    if found is None or path.exists():
        return None
    scheme, rest = found.groups()
    return f"{scheme}:///{rest}" if scheme in ("file", "local") else f"{scheme}://{rest}"


def open_remote(url: str) -> io.BufferedReader:
    """The bytes at an address, read as they are needed."""
    with _opened(url) as (files, name):
        return io.BufferedReader(_RemoteBytes(files.open(name, "rb")), _PIECE)


def find_remote(url: str) -> list[Path]:
    """The files that an address means: a pattern's, a folder's with those below it, or the one itself."""
    with _opened(url) as (files, name):
        if has_magic(url):
            inside = sorted(files.glob(name))
        elif url.startswith("http") or not files.isdir(name):
            return [Path(url)]
        else:
            inside = sorted(files.find(name))
        found = [one for one in inside if not one.rpartition("/")[2].startswith((".", "_"))]
        if not found:
            raise InputError("no file is found there", path=url)
        return [Path(files.unstrip_protocol(one)) for one in found]


def remote_stamp(url: str) -> tuple[str, int | None, str]:
    """By what a file is known: its address, size and state, as far as these are told."""
    with _opened(url) as (files, name):
        told = files.info(name)
        state = [
            str(told[key])
            for key in ("ETag", "etag", "LastModified", "updated", "mtime", "created")
            if key in told
        ]
        return url, told.get("size"), " ".join(state)


class _RemoteBytes(io.RawIOBase):
    """A file of fsspec whose errors are OSErrors: each file system has its own, as for a transfer that broke off."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return bool(self._file.seekable())

    def seek(self, offset: int, whence: int = 0) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: Any) -> int:
        try:
            content = self._file.read(len(buffer))
        except Exception as error:  # noqa: BLE001  # whatever it raises, the file cannot be read
            raise OSError(_first_line(error)) from None
        buffer[: len(content)] = content
        return len(content)

    def close(self) -> None:
        self._file.close()
        super().close()


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


@contextmanager
def _opened(url: str) -> Iterator[tuple[Any, str]]:
    """The file system of an address, and its name there; what goes wrong is told in one line."""
    try:
        from fsspec.core import url_to_fs  # an optional dependency
    except ImportError:
        raise MissingExtraError(f"reading {url}", "remote") from None
    try:
        yield url_to_fs(url)
    except InputError:
        raise
    except FileNotFoundError:
        raise InputError("no such file", path=url) from None
    except Exception as error:  # noqa: BLE001  # a missing package, a login, a host that is not there
        raise InputError(f"cannot be read: {_first_line(error)}", path=url) from None

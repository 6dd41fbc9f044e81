"""RunJournal: a file that holds a run's replies from the moment they arrive until the store has them all.

One line a reply, checksum before JSON, written with a single call: whatever kills the process afterwards, the line is
there. It is not forced to the disk, so a power cut may cost the last moments. A line that is torn or damaged is left out.
"""

import os
import zlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from answerkey.errors import StoreFullError
from answerkey.model.reply import Reply
from answerkey.model.run import RunInfo
from answerkey.model.trial import Trial


class JournalHead(msgspec.Struct, frozen=True):
    """The first line: what the positions and the replies belong to."""

    run_id: str
    question_set_hash: str
    target_hash: str
    format: int = 1


class JournalEntry(msgspec.Struct, frozen=True, array_like=True):
    """A line: one trial that was answered."""

    # The question's place in the set.
    position: int
    number: int
    replies: tuple[Reply, ...]


_encode = msgspec.json.Encoder().encode
_decode_head = msgspec.json.Decoder(JournalHead).decode
_decode_entry = msgspec.json.Decoder(JournalEntry).decode


class RunJournal:
    """A run's journal, written by the process that owns the run."""

    def __init__(self, path: Path, info: RunInfo) -> None:
        self.path = path
        # How many replies are in it.
        self.entries = 0
        self._size = 0
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Private: it holds what a chatbot said. An earlier one has been replayed.
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)
            self._file = os.open(path, flags, 0o600)
        except OSError as error:
            raise self._failed(error) from None
        self._write(_encode(JournalHead(info.id, info.question_set_hash, info.target_hash)))

    def append(self, trial: Trial) -> None:
        """Keep a reply; raises StoreFullError, with the journal as it was before, if it cannot be written."""
        try:
            line = _encode((trial.position, trial.number, trial.replies))
        except (UnicodeEncodeError, OverflowError, TypeError):
            # Nor can the store keep it, which sets it aside and says so.
            return
        self._write(line)
        self.entries += 1

    def _write(self, line: bytes) -> None:
        whole = b"%08x %s\n" % (zlib.crc32(line), line)
        try:
            written = os.write(self._file, whole)
            while written < len(whole):
                written += os.write(self._file, whole[written:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            raise self._failed(error) from None
        self._size += len(whole)

    def _failed(self, error: OSError) -> StoreFullError:
        reason = (error.strerror or str(error)).lower()
        return StoreFullError(f"journal {self.path}: {reason}; make room on its disk")

    def close(self) -> None:
        """Stop writing; the file stays for `resume`."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def remove(self) -> None:
        """The store has it all."""
        self.close()
        self.path.unlink(missing_ok=True)


def read_journal(path: Path) -> tuple[JournalHead, Iterator[JournalEntry]] | None:
    """What a journal holds, without lines that are torn or damaged; None: there is none, or its head is lost."""
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return None
    with file:
        head = _content(file.readline())
    return None if head is None else (_decode_head(head), _entries(path))


def _entries(path: Path) -> Iterator[JournalEntry]:
    with path.open("rb") as file:
        file.readline()
        for line in file:
            content = _content(line)
            if content is not None:
                yield _decode_entry(content)


def _content(line: bytes) -> bytes | None:
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    whole = line.endswith(b"\n") and checksum == b"%08x" % zlib.crc32(content)
    return content if whole else None

"""Spool: results on their way through a temporary file, so that a log of any length can be read back several times."""

import tempfile
from collections.abc import Iterator
from typing import IO

import msgspec

from answerkey.model.trial import Trial

__all__ = ["Spool"]

_LENGTH_BYTES = 4


class Spool:
    """Results written once and read as often as need be."""

    def __init__(self) -> None:
        # Unnamed, so that it is gone with the process whatever happens.
        self._file: IO[bytes] = tempfile.TemporaryFile(prefix="answerkey-")  # noqa: SIM115  # lives as long as the spool
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Trial).decode

    def add(self, result: Trial) -> None:
        """Keep one more."""
        payload = self._encode(result)
        self._file.write(len(payload).to_bytes(_LENGTH_BYTES, "little"))
        self._file.write(payload)

    def read(self) -> Iterator[Trial]:
        """The results, in the order in which they were written."""
        self._file.seek(0)
        while length := self._file.read(_LENGTH_BYTES):
            yield self._decode(self._file.read(int.from_bytes(length, "little")))

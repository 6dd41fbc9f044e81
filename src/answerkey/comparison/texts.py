"""Many short texts in one piece of memory: a hundred thousand ids as strings of their own take ten times as much."""

from collections.abc import Iterator, Sequence
from typing import overload

import numpy as np
import numpy.typing as npt

__all__ = ["Texts", "TextsBuilder"]


class Texts(Sequence[str]):
    """A sequence of texts; each is made into a string when it is asked for."""

    def __init__(self, data: "bytes | memoryview", ends: npt.NDArray[np.int64]) -> None:
        # All texts as UTF-8, and where each ends.
        self.data = data
        self.ends = ends

    def __len__(self) -> int:
        return len(self.ends)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        if index < 0:
            index += len(self)
        begin = self.ends[index - 1] if index else 0
        return str(self.data[begin : self.ends[index]], "utf-8", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        begin = 0
        for end in self.ends.tolist():
            yield str(self.data[begin:end], "utf-8", "surrogatepass")
            begin = end

    def chosen(self, positions: npt.NDArray[np.int64]) -> "Texts":
        """Only those at these positions."""
        builder = TextsBuilder()
        builder.add([self[position] for position in positions.tolist()])
        return builder.texts()


class TextsBuilder:
    """Takes texts batch by batch."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._lengths: list[npt.NDArray[np.int64]] = []

    def add(self, texts: Sequence[str]) -> None:
        """Some more texts."""
        encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._parts.append(b"".join(encoded))
        self._lengths.append(np.fromiter(map(len, encoded), np.int64, len(encoded)))

    def texts(self) -> Texts:
        """All of them."""
        lengths = np.concatenate([np.empty(0, np.int64), *self._lengths])
        return Texts(b"".join(self._parts), np.cumsum(lengths))

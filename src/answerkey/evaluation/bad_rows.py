"""Rows of a log that cannot be scored, and what is wrong with them: exactly, and in general."""

import re

import msgspec

from answerkey.model.summary import BAD_ROW

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

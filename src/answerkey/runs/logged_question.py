"""LoggedQuestion: one question in a block of a log, with what its rows expect and what its replies have in common."""

from collections.abc import Sequence
from zlib import crc32

from answerkey.model.question import UNCATEGORISED
from answerkey.model.slice_sums import ReplySums
from answerkey.text.normalise import Keyword


class LoggedQuestion:
    """A question of a block: what its rows expect, and what its replies have in common."""

    __slots__ = (
        *("category", "first", "group", "id", "keywords", "number", "numbers"),
        *("places", "plain", "question", "shown", "signature", "sums", "told", "tools", "wording"),
    )

    def __init__(self, identity: str, text: str, first: int, number: int, signature: int) -> None:
        self.id = identity
        self.question = text
        self.wording = crc32(text.encode("utf-8", "replace"))
        # Its position in the golden set, or the place of its first reply in the log.
        self.first = first
        # Its place among the block's questions, and that of its slices among the block's.
        self.number = number
        self.signature = signature
        self.group: str | None = None
        # The trial numbers that rows have, and the places of the others where results are kept.
        self.numbers: list[int] | None = None
        self.places: list[int] | None = None
        # Whether its plain rows are measured; then what the first of them told of it (None: the golden set does),
        self.plain = False
        self.told: tuple[object, ...] | None = None
        # and what is expected.
        self.tools: tuple[str, ...] = ()
        self.keywords: Sequence[Keyword] = ()
        self.category = UNCATEGORISED
        # What its replies that are not plain add up to.
        self.sums: ReplySums = {}
        # Its id, words, category and keywords as a row has them; None: no row was made yet.
        self.shown: tuple[bytes, bytes, bytes, list[bytes]] | None = None

    def add_trial(self, number: int) -> None:
        """Count a reply that has a trial number."""
        if self.numbers is None:
            self.numbers = []
        self.numbers.append(number)

    def add_place(self, place: int) -> None:
        """Remember where a reply without a number is, to number it by."""
        if self.places is None:
            self.places = []
        self.places.append(place)

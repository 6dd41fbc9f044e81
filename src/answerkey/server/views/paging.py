"""Paging: one page of rows, however many there are."""

from typing import Annotated

import msgspec

from answerkey.store.feedback_book import ShortText

__all__ = ["NoQuery", "PageNumber", "Paging", "ShortText"]

PageNumber = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="Which page of rows.")]


class NoQuery(msgspec.Struct, frozen=True):
    """What a page takes of whose address only the path counts."""


class Paging(msgspec.Struct, frozen=True):
    """Which rows are shown."""

    page: int
    size: int
    total: int

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Rows before this page."""
        return (self.page - 1) * self.size

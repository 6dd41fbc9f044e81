"""What is chosen of a table by its address: columns, conditions and a page of rows, and the address that says so again."""

from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any

import msgspec

from answerkey.errors import UsageError
from answerkey.report.losses import Loss
from answerkey.report.story import COMPONENT_WORDS
from answerkey.report.table import Column, Kind
from answerkey.report.value_wording import name_words
from answerkey.store.feedback_book import ShortText
from answerkey.store.row_filter import Ranged

__all__ = [
    "SHORT_NAMES",
    "NoQuery",
    "PageNumber",
    "Paging",
    "ShortText",
    "chosen_columns",
    "conditions_in_words",
    "measure_column",
    "plain_value",
]

_MOST_COLUMNS = 40
# Components in a narrow column.
SHORT_NAMES = {"tool_usage": "Tools", "response_quality": "Said", "error_handling": "No errors"}


def measure_column(name: str, kind: Kind, sort: str, note: str = "") -> Column:
    """A component or a metric as a column; `note` is said after the name of one that has no words of its own."""
    words = COMPONENT_WORDS[name][0] if name in COMPONENT_WORDS else f"{name_words(name)}{note}"
    title = SHORT_NAMES.get(name, name_words(name).capitalize())
    return Column(name=name, title=title, kind=kind, note=words, sort=sort)


def chosen_columns(query: Ranged, offered: Sequence[Column], usual: Iterable[str]) -> tuple[Column, ...]:
    """The columns that are wanted, and those by which rows are chosen and sorted; in the order of all."""
    known = {column.name for column in offered}
    unknown = [name for name in query.columns if name not in known]
    if unknown or len(query.columns) > _MOST_COLUMNS:
        raise UsageError(f"columns: there is none {unknown[0][:60]!r}" if unknown else "too many columns")
    wanted = {*(query.columns or usual), query.order[0], *(one.name for one in query.ranges)}
    return tuple(column for column in offered if column.name in wanted)


def conditions_in_words(query: Ranged, link: Callable[..., str], anchor: str) -> list[tuple[str, str]]:
    """What rows are chosen by, each with the address of the page without it."""
    given = query.conditions.items()
    chosen = [(f"{name} {value}", f"{link(**{name: None, 'page': None})}#{anchor}") for name, value in given]
    ranges = [str(one) for one in query.ranges]
    for one in ranges:
        others = [other for other in ranges if other != one]
        without = link(range=others or None, measure=None, low=None, high=None, page=None)
        chosen.append((one.replace(":", " "), f"{without}#{anchor}"))
    return chosen


def plain_value(value: Any) -> Any:
    """A cell for a file."""
    if isinstance(value, tuple) and value and isinstance(value[0], Loss):
        return "; ".join(str(loss) for loss in value)
    return None if value == () else value


PageNumber = Annotated[int, msgspec.Meta(ge=1, le=1_000_000, description="Which page of rows.")]


class NoQuery(msgspec.Struct, frozen=True):
    """What a page takes of whose address only the path counts."""


class Paging(msgspec.Struct, frozen=True):
    """Which rows are shown."""

    page: int
    size: int
    total: int
    # Whether there are more than that, which were not counted.
    more: bool = False

    @property
    def pages(self) -> int:
        """How many pages there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def offset(self) -> int:
        """Rows before this page."""
        return (self.page - 1) * self.size

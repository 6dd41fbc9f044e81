"""Link: where something that a reply mentions stands in its evidence."""

import msgspec


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure, date, name, id or quote of a reply."""

    # As it stands in the reply, and where.
    text: str
    start: int
    end: int
    # "figure", "date", "time", "id", "quote", "name".
    kind: str
    # Where it stands: tool_calls[0].result[2].balance, sources[1].text; empty: found nowhere.
    where: str = ""
    # What stands there,
    found: str = ""
    # from which to which character of the value or passage.
    span: tuple[int, int] | None = None
    # What the record is called, in a table.
    row: str = ""
    # Empty: as it is; otherwise "rounded", "as a share", "sum of amount", …
    how: str = ""

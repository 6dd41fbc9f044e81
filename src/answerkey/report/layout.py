"""Texts and tables for the terminal, as data: rich draws them on a terminal, and a file or pipe gets them without it.

Importing rich takes a sixth of the time of a short command. The names and settings are rich's.
"""

import os
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal, TextIO, Union

from answerkey.text.patterns import lazy

if TYPE_CHECKING:
    from rich.console import Console as RichConsole

Justify = Literal["left", "right"]
Renderable = Union[str, "Text", "Indented", "Table", "Group"]
# Characters of a file or pipe, by which bars and columns are laid out.
_PIPE_WIDTH = 100
# Environment variables by which rich takes a pipe for a terminal.
_FORCES_TERMINAL = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
# Characters whose width is looked up in rich's tables.
_MAYBE_WIDE = lazy(
    r"[^\x20-\u02ff\u0370-\u0482\u2010-\u2027\u2030-\u203a\u2190-\u2193\u2212\u2264\u2265"
    r"\u2500-\u259f\u2713\u2717]"
)
# Characters that rich leaves out.
_CONTROLS = lazy("[\x07\x08\x0b\x0c\r]")


def cell_len(text: str) -> int:
    """The width of a text in cells of a terminal."""
    if not _MAYBE_WIDE.search(text):
        return len(text)
    from rich.cells import cell_len as measure

    return measure(text)


class Text:
    """A text in one or several styles."""

    def __init__(self, text: str = "", style: str = "", **settings: Any) -> None:
        """`settings` are rich's, such as `overflow`."""
        self._parts, self._style, self._settings = [(text, "")], style, settings

    @classmethod
    def assemble(cls, *parts: "str | Text | tuple[str, str]") -> "Text":
        """Join texts, each in its style."""
        text = cls()
        for part in parts:
            text.append(*part) if isinstance(part, tuple) else text.append(str(part))
        return text

    def append(self, text: str, style: str = "") -> None:
        self._parts.append((text, style))

    @property
    def plain(self) -> str:
        """The text alone."""
        return _CONTROLS.sub("", "".join([text for text, _ in self._parts])).expandtabs(8)

    def __len__(self) -> int:
        return len(self.plain)

    def __str__(self) -> str:
        return self.plain

    def drawn(self) -> Any:
        """The same for rich."""
        from rich.text import Text as Drawn

        text = Drawn(style=self._style, **self._settings)
        for part, style in self._parts:
            text.append(part, style=style or None)
        return text


class Indented:
    """A text with spaces before each line."""

    def __init__(self, inner: Renderable, spaces: int) -> None:
        self.inner, self._spaces = inner, spaces

    def lines(self) -> Iterator[str]:
        """The lines in a file."""
        return (f"{' ' * self._spaces}{line}" for line in plain_lines(self.inner))

    def drawn(self) -> Any:
        from rich.padding import Padding

        return Padding(_drawn(self.inner), (0, 0, 0, self._spaces), expand=False)


class Column:
    """A column of a table; a width of None is that of its longest cell."""

    def __init__(self, head: str = "", **settings: Any) -> None:
        """`settings` are rich's."""
        self.head, self.settings = head, settings

    def width_of(self, cells: Iterable[str]) -> int:
        """Its width in a file, in cells of a terminal."""
        if (width := self.settings.get("width")) is not None:
            return int(width)
        longest = max(map(cell_len, cells), default=0)
        longest = max(longest, self.settings.get("min_width") or 0)
        return min(longest, self.settings.get("max_width") or longest)


class Table:
    """Rows in columns without lines."""

    def __init__(self, *, gap: int = 2, has_head: bool = True) -> None:
        """`gap`: spaces between columns."""
        self.columns: list[Column] = []
        self._rows: list[tuple[Renderable, ...]] = []
        self._gap, self._has_head = gap, has_head

    def __bool__(self) -> bool:
        return bool(self._rows)

    def add_column(self, head: str = "", **settings: Any) -> None:
        """Add a column; `settings` are rich's."""
        self.columns.append(Column(head, **settings))

    def add_row(self, *cells: Renderable) -> None:
        """Add a row; cells that are left out are empty."""
        self._rows.append((*cells, *[""] * (len(self.columns) - len(cells))))

    def lines(self) -> Iterator[str]:
        """The lines in a file, where no cell is wrapped."""
        rows = [[list(plain_lines(cell)) for cell in row] for row in self._rows]
        if self._has_head:
            rows.insert(0, [[column.head] for column in self.columns])
        widths = [
            column.width_of(line for row in rows for line in row[number])
            for number, column in enumerate(self.columns)
        ]
        for row in rows:
            for number in range(max((len(cell) for cell in row), default=0)):
                texts = [cell[number] if number < len(cell) else "" for cell in row]
                yield (" " * self._gap).join(
                    _fitted(text, width, column.settings.get("justify"))
                    for text, width, column in zip(texts, widths, self.columns, strict=True)
                )

    def drawn(self) -> Any:
        from rich.table import Table as Drawn

        padding = (0, self._gap, 0, 0)
        table = Drawn(
            box=None, pad_edge=False, padding=padding, header_style="dim", show_header=self._has_head
        )
        for column in self.columns:
            table.add_column(column.head, **column.settings)
        for row in self._rows:
            table.add_row(*map(_drawn, row))
        return table


class Group:
    """Parts one below the other."""

    def __init__(self, *parts: Renderable) -> None:
        self._parts = parts

    def lines(self) -> Iterator[str]:
        for part in self._parts:
            yield from plain_lines(part)

    def drawn(self) -> Any:
        from rich.console import Group as Drawn

        return Drawn(*map(_drawn, self._parts))


def plain_lines(part: Renderable) -> Iterator[str]:
    """The lines of a part in a file."""
    if isinstance(part, str):
        part = Text(part)
    return iter(part.plain.split("\n")) if isinstance(part, Text) else part.lines()


def _drawn(part: Renderable) -> Any:
    return part if isinstance(part, str) else part.drawn()


def _cut(text: str, width: int) -> str:
    """The beginning of a text that is at most this wide in cells."""
    while cell_len(text) > width:
        text = text[: max(0, min(width, len(text) - 1))]
    return text


def _fitted(text: str, width: int, justify: Justify | None = "left") -> str:
    space = width - cell_len(text)
    if space < 0:
        return f"{_cut(text, width - 1)}…"
    return " " * space + text if justify == "right" else text + " " * space


class Console:
    """A stream to print on: a file, a pipe or a CI log here, where no sentence is wrapped, so that commands can be copied."""

    is_terminal = False

    def __init__(self, file: TextIO) -> None:
        self.file, self.width = file, _PIPE_WIDTH

    @property
    def encoding(self) -> str:
        return (getattr(self.file, "encoding", None) or "utf-8").lower()

    def print(self, *parts: Renderable, sep: str = " ", **_: Any) -> None:
        """Print parts; without trailing spaces."""
        text = sep.join("\n".join(map(str.rstrip, plain_lines(part))) for part in parts)
        self.file.write(f"{text}\n")


class TerminalConsole(Console):
    """A terminal: rich wraps and colours."""

    def __init__(self, file: TextIO, width: int | None) -> None:
        from rich.console import Console as Drawn

        self._drawn: RichConsole = Drawn(file=file, width=width, highlight=False, markup=False, emoji=False)
        self.file, self.width, self.is_terminal = file, self._drawn.width, self._drawn.is_terminal

    def print(self, *parts: Renderable, sep: str = " ", **settings: Any) -> None:
        """Print parts; `settings` are rich's. A file of a given width gets no trailing spaces."""
        drawn = map(_drawn, parts)
        if self.is_terminal:
            self._drawn.print(*drawn, sep=sep, **settings)
            return
        with self._drawn.capture() as captured:
            self._drawn.print(*drawn, sep=sep, **settings)
        self.file.write("\n".join([line.rstrip() for line in captured.get().split("\n")]))


def make_console(file: TextIO | None = None, *, width: int | None = None) -> Console:
    """A console on a stream (default: stdout), 100 columns wide if the stream is not a terminal."""
    stream = file or sys.stdout
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None and not encodes(stream.encoding or "utf-8", "█─✓"):
        # Show "?" for characters that the terminal cannot encode, instead of failing.
        reconfigure(errors="replace")
    if width is None and not stream.isatty():
        if not any(os.environ.get(name) for name in _FORCES_TERMINAL):
            return Console(stream)
        width = _PIPE_WIDTH
    return TerminalConsole(stream, width)


def encodes(encoding: str, text: str) -> bool:
    """Whether a stream of this encoding can show a text."""
    try:
        text.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True

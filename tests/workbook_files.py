"""Small Excel workbooks for tests, as a spreadsheet program writes them."""

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path
from xml.sax.saxutils import escape

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


class Shown(str):
    """A cell written as XML: `Shown('<v>0.05</v>', format="0%")`."""

    format: str
    kind: str

    def __new__(cls, inner: str, format: str = "General", kind: str = "n") -> "Shown":  # noqa: A002
        cell = super().__new__(cls, inner)
        cell.format, cell.kind = format, kind
        return cell


def number(value: float, format: str = "General") -> Shown:  # noqa: A002
    """A number in a cell with a number format; a built-in format by its number in text."""
    return Shown(f"<v>{value!r}</v>", format)


def write_workbook(
    path: Path,
    sheets: dict[str, Sequence[Sequence[str | None]]],
    *,
    merged: dict[str, Sequence[str]] | None = None,
) -> Path:
    """Write sheets of texts and numbers; `merged` names ranges such as A2:A4 by sheet."""
    codes = sorted(
        {cell.format for rows in sheets.values() for row in rows for cell in row if isinstance(cell, Shown)}
    )
    identities = {
        code: int(code) if code in ("9", "14", "20") else 164 + place for place, code in enumerate(codes)
    }
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as archive:
        listed = "".join(f'<sheet name="{name}" r:id="rId{place}"/>' for place, name in enumerate(sheets))
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook {_MAIN} xmlns:r="{_RELATIONS}"><sheets>{listed}</sheets></workbook>',
        )
        relations = "".join(
            f'<Relationship Id="rId{place}" Target="worksheets/sheet{place}.xml"/>'
            for place in range(len(sheets))
        )
        archive.writestr("xl/_rels/workbook.xml.rels", f"<Relationships>{relations}</Relationships>")
        formats = "".join(
            f'<numFmt numFmtId="{identities[code]}" formatCode="{escape(code, {chr(34): "&quot;"})}"/>'
            for code in codes
            if identities[code] >= 164
        )
        styles = "".join(f'<xf numFmtId="{identities[code]}"/>' for code in codes)
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet {_MAIN}><numFmts>{formats}</numFmts><cellXfs><xf numFmtId="0"/>{styles}</cellXfs></styleSheet>',
        )
        for place, (name, rows) in enumerate(sheets.items()):
            lines = "".join(_row(row, line, codes) for line, row in enumerate(rows, start=1))
            ranges = "".join(f'<mergeCell ref="{one}"/>' for one in (merged or {}).get(name, ()))
            archive.writestr(
                f"xl/worksheets/sheet{place}.xml",
                f"<worksheet {_MAIN}><sheetData>{lines}</sheetData><mergeCells>{ranges}</mergeCells></worksheet>",
            )
    path.write_bytes(content.getvalue())
    return path


def _row(row: Sequence[str | None], line: int, codes: list[str]) -> str:
    cells = (_cell(cell, "ABCDEFGHIJKLMN"[column], line, codes) for column, cell in enumerate(row))
    return f'<row r="{line}">{"".join(cells)}</row>'


def _cell(cell: str | None, letter: str, line: int, codes: list[str]) -> str:
    if cell is None:
        return ""
    if isinstance(cell, Shown):
        return f'<c r="{letter}{line}" s="{codes.index(cell.format) + 1}" t="{cell.kind}">{cell}</c>'
    return f'<c r="{letter}{line}" t="inlineStr"><is><t>{escape(cell)}</t></is></c>'

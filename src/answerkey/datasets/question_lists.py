"""Lists of questions in Markdown or plain text: one question a bullet or line, headings as categories."""

import re
from collections.abc import Sequence
from pathlib import Path

from answerkey.datasets.conversion import Losses, RowPosition, check_cases, row_position
from answerkey.errors import InputError
from answerkey.model.reply import JsonObject
from answerkey.protocols import Imported
from answerkey.transcripts.files import read_text

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
_BULLET = re.compile(r"(?:[-*+•]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+)")
# What makes up the emphasis and code of Markdown around a whole question.
_EMPHASIS = '*_`"“”'


def import_list(paths: Sequence[Path]) -> Imported:
    """The questions of the files. In a file with bullets only these are questions, otherwise every line is one."""
    losses = Losses()
    cases: list[tuple[RowPosition, JsonObject]] = []
    for path in paths:
        lines = [line.strip() for line in read_text(path).splitlines()]
        first = next(filter(None, lines), "")
        if first == "[" or first.startswith(("{", "[{", "<")):
            raise InputError(
                "is not a list of questions in Markdown or text; import it as its own format", path=path
            )
        has_bullets = any(map(_BULLET.match, lines))
        category = ""
        for number, line in enumerate(lines, start=1):
            heading, bullet = _HEADING.match(line), _BULLET.match(line)
            if heading:
                category = heading[1].strip(_EMPHASIS)
            text = (bullet[1] if bullet else "" if has_bullets or heading else line).strip().strip(_EMPHASIS)
            if text:
                case: JsonObject = {"question": text}
                cases.append(
                    (row_position(path, number, number), case | ({"category": category} if category else {}))
                )
    return check_cases(cases, losses, "a list")

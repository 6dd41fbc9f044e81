"""Numbers as a spreadsheet displays them: dates, times, percentages, leading zeros and currencies by the cell's format code.

Covers what people see in cells: sections for positive, negative and zero, literals, thousands, decimals, scientific and
fraction formats, dates and elapsed times. Names of months and days are English. The system's own date format, which
differs between computers, is written YYYY-MM-DD.
"""

import re
from datetime import datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

# Formats that a workbook uses by number; 14 and 22 follow the system's settings.
BUILT_IN_FORMATS = {
    0: "General",
    1: "0",
    2: "0.00",
    3: "#,##0",
    4: "#,##0.00",
    9: "0%",
    10: "0.00%",
    11: "0.00E+00",
    12: "# ?/?",
    13: "# ??/??",
    14: "yyyy-mm-dd",
    15: "d-mmm-yy",
    16: "d-mmm",
    17: "mmm-yy",
    18: "h:mm AM/PM",
    19: "h:mm:ss AM/PM",
    20: "h:mm",
    21: "h:mm:ss",
    22: "yyyy-mm-dd h:mm",
    37: "#,##0;(#,##0)",
    38: "#,##0;(#,##0)",
    39: "#,##0.00;(#,##0.00)",
    40: "#,##0.00;(#,##0.00)",
    45: "mm:ss",
    46: "[h]:mm:ss",
    47: "mm:ss.0",
    48: "##0.0E+0",
    49: "@",
}
SYSTEM_DATE_FORMATS = frozenset({14, 22})
_TOKEN = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|_.|\*.|\[\$(?P<currency>[^\]-]*)(?:-[^\]]*)?\]|\[(?P<elapsed>h+|m+|s+)\]'
    r"|\[(?P<condition>[<>=]+)(?P<limit>[-\d.]+)\]|\[[^\]]*\]|(?P<general>General)|(?P<half>AM/PM|A/P)"
    r"|(?P<date>y+|m+|d+|h+|s+)|(?P<exponent>E[+-]0+)|(?P<digit>[0#?])|(?P<other>.)",
    re.IGNORECASE | re.DOTALL,
)
_COMPARE = {
    "<": Decimal.__lt__,
    "<=": Decimal.__le__,
    ">": Decimal.__gt__,
    ">=": Decimal.__ge__,
    "=": Decimal.__eq__,
    "<>": Decimal.__ne__,
}


class _Token(NamedTuple):
    # literal, digit, date, elapsed, half (AM/PM), exponent, general or other (. , % / @ and the rest)
    kind: str
    text: str


class _Section(NamedTuple):
    tokens: tuple[_Token, ...]
    # (comparison, limit) of a section such as [>=100].
    condition: tuple[str, Decimal] | None

    @property
    def is_date(self) -> bool:
        return any(token.kind in ("date", "elapsed", "half") for token in self.tokens)


def displayed_number(value: float, code: str, *, from_1904: bool = False) -> str:
    """A number as a cell with this format code displays it."""
    number = Decimal(repr(value))
    sections = _sections(code)
    section, magnitude = _choose(sections, number)
    if not section.tokens:
        return ""
    if any(token.kind == "general" or token.text == "@" for token in section.tokens):
        shown = _general(value if magnitude == number else abs(value))
        return "".join(
            shown if token.kind == "general" or token.text == "@" else token.text for token in section.tokens
        )
    if section.is_date:
        return _date(section.tokens, value, from_1904) if value >= 0 else _general(value)
    shown = _number(section.tokens, abs(magnitude))
    return f"-{shown}" if magnitude < 0 and re.search(r"[1-9]", shown) else shown


@lru_cache(maxsize=500)
def _sections(code: str) -> tuple[_Section, ...]:
    sections: list[_Section] = []
    tokens: list[_Token] = []
    condition: tuple[str, Decimal] | None = None
    for found in _TOKEN.finditer(code):
        kind = found.lastgroup
        if found[0] == ";":
            sections.append(_Section(tuple(tokens), condition))
            tokens, condition = [], None
        elif kind == "limit":
            condition = (found["condition"], Decimal(found["limit"]))
        elif kind in ("quoted", "escaped", "currency"):
            tokens.append(_Token("literal", found[kind]))
        elif kind == "elapsed":
            tokens.append(_Token("elapsed", found[kind].lower()))
        elif kind == "date":
            tokens.append(_Token("date", found[0].lower()))
        elif kind is not None:
            tokens.append(_Token(kind, found[0]))
        elif found[0].startswith("_"):
            tokens.append(_Token("literal", " "))
    sections.append(_Section(tuple(tokens), condition))
    return tuple(sections)


def _choose(sections: tuple[_Section, ...], number: Decimal) -> tuple[_Section, Decimal]:
    """The section for a number, and the number that it shows: a section for negative numbers writes its own sign."""
    conditional = [section for section in sections if section.condition is not None]
    if conditional:
        for section in conditional:
            comparison, limit = section.condition or ("=", Decimal())
            if comparison in _COMPARE and _COMPARE[comparison](number, limit):
                return section, number
        others = [section for section in sections if section.condition is None]
        return (others or list(sections))[0], number
    if number < 0 and len(sections) > 1:
        return sections[1], -number
    if number == 0 and len(sections) > 2:
        return sections[2], number
    return sections[0], number


def _general(value: float) -> str:
    """Up to 15 significant digits, which is what a spreadsheet stores."""
    if value == int(value) and abs(value) < 1e20:
        return str(int(value))
    plain = f"{value:.15g}"
    return plain if "e" not in plain else format(Decimal(plain), "f") if abs(value) > 1e-9 else plain.upper()


def _number(tokens: tuple[_Token, ...], number: Decimal) -> str:
    """A number that is not negative, by the placeholders of a section."""
    placeholders = [index for index, token in enumerate(tokens) if token.kind == "digit"]
    if not placeholders:
        return "".join(token.text for token in tokens).strip()
    if any(token.text == "/" for token in tokens[placeholders[0] : placeholders[-1]]):
        return _fraction(tokens, number)
    point = next((index for index, token in enumerate(tokens) if token.text == "."), None)
    exponent = next((token.text for token in tokens if token.kind == "exponent"), None)
    decimals = [index for index in placeholders if point is not None and index > point]
    whole = [index for index in placeholders if index not in decimals]
    power = 0
    if exponent is not None and number:
        power = number.adjusted()
        number = number.scaleb(-power)
    commas = [index for index, token in enumerate(tokens) if token.text == ","]
    grouped = any(whole and whole[0] < index < whole[-1] for index in commas)
    # Each comma directly behind the last placeholder divides by a thousand.
    thousands = 0
    while placeholders[-1] + thousands + 1 in commas:
        thousands += 1
    number = number * 100 ** sum(token.text == "%" for token in tokens) / 1000**thousands
    rounded = number.quantize(Decimal(1).scaleb(-len(decimals)), ROUND_HALF_UP)
    digits, _, fraction = format(rounded, "f").partition(".")
    filled = _fill_whole(tokens, whole, "" if digits == "0" else digits, grouped=grouped)
    for index, digit in _fill_decimals(tokens, decimals, fraction):
        filled[index] = digit
    shown = []
    for index, token in enumerate(tokens):
        if token.kind == "digit":
            shown.append(filled.get(index, ""))
        elif token.kind == "exponent":
            width = len(token.text) - 2
            sign = "-" if power < 0 else "+" if token.text[1] == "+" else ""
            shown.append(f"E{sign}{abs(power):0{width}d}")
        elif token.text == "." and index == point:
            has_decimals = any(filled.get(place) for place in decimals)
            shown.append("." if has_decimals else "")
        elif index not in commas:
            shown.append(token.text)
    return "".join(shown).strip()


def _fill_whole(
    tokens: tuple[_Token, ...], positions: list[int], digits: str, *, grouped: bool
) -> dict[int, str]:
    """Placeholder → what it shows of the whole number, from the right; the first one shows all that remains."""
    filled: dict[int, str] = {}
    rest = digits
    for index in reversed(positions):
        shown, rest = (rest, "") if index == positions[0] else (rest[-1:], rest[:-1])
        filled[index] = shown or ("0" if tokens[index].text == "0" else "")
    if not grouped:
        return filled
    # Nothing is written between the placeholders of such a format but commas, so that one can show all digits.
    shown = "".join(filled[index] for index in positions)
    first = len(shown) % 3
    groups = [shown[:first], *(shown[start : start + 3] for start in range(first, len(shown), 3))]
    return {**dict.fromkeys(positions, ""), positions[-1]: ",".join(filter(None, groups))}


def _fill_decimals(tokens: tuple[_Token, ...], positions: list[int], digits: str) -> list[tuple[int, str]]:
    """Placeholder → decimal; zeros at the end are left out where the placeholder is not 0."""
    shown = list(zip(positions, digits, strict=False))
    while shown and shown[-1][1] == "0" and tokens[shown[-1][0]].text != "0":
        shown.pop()
    return shown


def _fraction(tokens: tuple[_Token, ...], number: Decimal) -> str:
    """A mixed number such as 1 1/2."""
    text = "".join(token.text for token in tokens)
    fixed = re.search(r"/\s*(\d+)", text)
    width = len(re.findall(r"\?|#|0", text.partition("/")[2])) or 1
    whole = int(number) if re.search(r"[#0]\s+[?#0]", text) else 0
    part = Fraction(number) - whole
    if fixed:
        numerator, denominator = round(part * int(fixed[1])), int(fixed[1])
    else:
        near = part.limit_denominator(10**width - 1)
        numerator, denominator = near.numerator, near.denominator
    if not numerator:
        return str(whole)
    return f"{whole} {numerator}/{denominator}" if whole else f"{numerator}/{denominator}"


def _date(tokens: tuple[_Token, ...], value: float, from_1904: bool) -> str:
    has_parts = any(token.kind == "digit" for token in tokens)
    # Days are floats: 5:45 is 0.23958333…
    seconds = Decimal(repr(value)) * 86400
    seconds = seconds.quantize(Decimal("0.001") if has_parts else Decimal(1), ROUND_HALF_UP)
    # Excel counts a 29 February 1900 that never was.
    first_day = datetime(1904, 1, 1) if from_1904 else datetime(1899, 12, 30 if value >= 60 else 31)
    try:
        moment = first_day + timedelta(milliseconds=int(seconds * 1000))
    except OverflowError:
        return _general(value)
    in_halves = any(token.kind == "half" for token in tokens)
    shown: list[str] = []
    parts = [index for index, token in enumerate(tokens) if token.kind in ("date", "elapsed")]
    for index, token in enumerate(tokens):
        if token.kind == "date":
            before = next((tokens[other].text for other in reversed(parts) if other < index), "")
            after = next((tokens[other].text for other in parts if other > index), "")
            is_minute = token.text in ("m", "mm") and (before[:1] == "h" or after[:1] == "s")
            shown.append(_date_part(token.text, moment, is_minute=is_minute, in_halves=in_halves))
        elif token.kind == "elapsed":
            unit = {"h": 3600, "m": 60, "s": 1}[token.text[0]]
            shown.append(str(int(seconds) // unit).zfill(len(token.text)))
        elif token.kind == "half":
            half = "AM" if moment.hour < 12 else "PM"
            shown.append(half if token.text.upper() == "AM/PM" else half[0])
        elif token.kind == "digit":
            # Parts of a second, as in ss.00.
            position = sum(other.kind == "digit" for other in tokens[:index])
            shown.append(f"{moment.microsecond:06d}"[position : position + 1])
        elif token.text != "@":
            shown.append(token.text)
    return "".join(shown).strip()


def _date_part(code: str, moment: datetime, *, is_minute: bool, in_halves: bool) -> str:
    if is_minute:
        number = moment.minute
    elif code[0] == "m" and len(code) > 2:
        name = moment.strftime("%B")
        return name[:3] if len(code) == 3 else name[0] if len(code) == 5 else name
    elif code[0] == "d" and len(code) > 2:
        return moment.strftime("%A")[: 3 if len(code) == 3 else None]
    elif code[0] == "y":
        return f"{moment.year:04d}" if len(code) > 2 else f"{moment.year % 100:02d}"
    elif code[0] == "h":
        number = (moment.hour - 1) % 12 + 1 if in_halves else moment.hour
    else:
        number = {"m": moment.month, "d": moment.day, "s": moment.second}[code[0]]
    return f"{number:02d}" if len(code) > 1 else str(number)

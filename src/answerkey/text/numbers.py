"""Numbers in text: where they stand and what they are worth, however they are written.

A number's worth is kept as a canonical decimal string ("442300", "-0.5"), so equality is exact at any length and
costs time linear in the digits. Read as numbers: US thousands ("442,300.00"), groups parted by a space, a no-break or
thin space, an apostrophe or an underscore ("442 300", "442'300"), Indian groups ("12,34,567"), and European forms where
they cannot be anything else ("442.300,00", "1.442.300"). "442.300" alone is the US 442.3.
"""

import re
from collections.abc import Iterator

import msgspec

# Signs that may stand before (or after) an amount without changing its worth.
CURRENCY_SIGNS = "$€£¥₹₽₩₺₴₦₫฿₿¢"

_SPACES = "\u0020\u00a0\u2009\u202f"
# The first digit stands outside the alternatives, so that the regular expression engine can skip to it.
NUMBER_PATTERN = (
    r"[0-9](?:"
    # 442.300,00 and 1.442.300: European, because a US number has one point at most.
    r"[0-9]{0,2}(?:\.[0-9]{3}){1,8},[0-9]{1,2}(?![0-9])|[0-9]{0,2}(?:\.[0-9]{3}){2,8}(?![0-9.])"
    # 442,300 · 442 300 · 442'300 · 442_300, the same separator throughout; then 12,34,567; then plain digits.
    r"|(?:[0-9]{0,2}([," + _SPACES + r"'’_])[0-9]{3}(?:\1[0-9]{3})*+(?![0-9])"
    r"|[0-9]?(?:,[0-9]{2}){1,6},[0-9]{3}(?![0-9])"
    r"|[0-9]*+)(?:\.[0-9]++)?)"
)
_NUMBER = re.compile(NUMBER_PATTERN)
# A text that is nothing but a number: the same body, its sign and currency before, a currency or percent sign after.
_ONLY = re.compile(
    rf"\s*(?P<sign>[-+\u2212]?)\s*[{CURRENCY_SIGNS}]?\s*(?P<sign2>[-+\u2212]?)(?P<body>"
    + NUMBER_PATTERN.replace(r"\1", r"\4")
    + rf"|\.[0-9]++)\s*[{CURRENCY_SIGNS}%]?\s*"
)
_EUROPEAN = re.compile(r"[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]{1,2}|[0-9]{1,3}(?:\.[0-9]{3}){2,}")
# What may stand between a number's digits, in UTF-8.
_ASCII_DROPPED = b",. '_"
_WIDE_DROPPED = [separator.encode() for separator in _SPACES + "’" if not separator.isascii()]
_DROP_SEPARATORS = str.maketrans("", "", "," + _SPACES + "'’_")
_MINUS = "-\u2212"
_SIGN_CONTEXT = frozenset(" \t\n\r([{=:;,/\u00a0\u202f\"'“‘*|>" + CURRENCY_SIGNS)


class Number(msgspec.Struct, frozen=True, gc=False):
    """One number as it stands in a text."""

    # Exact worth as a plain decimal: no separators, no needless zeros, "-" if negative.
    canonical: str
    # Where it stands: digits with their sign, without currency or unit.
    start: int
    end: int

    @property
    def value(self) -> float:
        """The worth as a float (infinite where it exceeds one)."""
        return float(self.canonical)


def canonical_number(digits: str, negative: bool = False) -> str:
    """The exact worth of a number's digits as a plain decimal string: "0442,300.50" gives "442300.5"."""
    if digits.isdigit():
        whole = digits.lstrip("0") or "0"
        return "-" + whole if negative and whole != "0" else whole
    if "." in digits and _EUROPEAN.fullmatch(digits):
        digits = digits.replace(".", "").replace(",", ".")
    else:
        digits = digits.translate(_DROP_SEPARATORS)
    whole, point, fraction = digits.partition(".")
    whole = whole.lstrip("0") or "0"
    if point:
        fraction = fraction.rstrip("0")
        if fraction:
            whole = f"{whole}.{fraction}"
    return "-" + whole if negative and whole != "0" else whole


def find_numbers(text: str) -> Iterator[Number]:
    """Every number in a text, from left to right; the time is linear in the text's length."""
    for found in _NUMBER.finditer(text):
        start, end = found.span()
        digits = found.group()
        # ".5" is a half, but the second point of "1.2.5" and the stop of "Nr.5" are not decimal points.
        if (
            start
            and text[start - 1] == "."
            and "." not in digits
            and not text[start - 2 : start - 1].isalnum()
        ):
            start -= 1
            digits = "." + digits
        sign = _sign_start(text, start)
        yield Number(canonical_number(digits, sign is not None), start if sign is None else sign, end)


def with_commas(worth: str) -> str:
    """A worth as numbers are mostly written in English: "442300" gives "442,300"."""
    return f"{int(worth):,}" if worth.isdecimal() and 3 < len(worth) < 20 else worth


def whole_number_end(text: str, at: int, end: int) -> int:
    """Where a number ends that is written from `at` to `end`, cents of zero included; 0 if what is around it may change it.

    A quick test for how amounts are mostly written ("$442,300.00", "in 2024,").
    """
    before = text[at - 1 : at] if at else " "
    if before == "$":
        before = text[at - 2 : at - 1] if at > 1 else " "
    if before not in _OPENING or (at > 1 and text[at - 2].isdigit()):
        return 0
    if text.startswith(".00", end):
        end += 3
    after = text[end : end + 1]
    if after.isdigit() or (after and after in _INSIDE and text[end + 1 : end + 2].isdigit()):
        return 0
    return end


_OPENING = frozenset(' (\n\t:"“')
_INSIDE = frozenset(",." + _SPACES + "'’_")


def bare_digits(text: str) -> str:
    """The text without anything that may stand between a number's digits: a quick test before `find_numbers`.

    A text can only hold a number of some worth if its bare form holds `significant_digits(worth)`.
    """
    # Bytes are gone through ten times as fast as characters.
    data = text.encode("utf-8", "replace")
    if len(data) > len(text):
        for separator in _WIDE_DROPPED:
            data = data.replace(separator, b"")
    return data.translate(None, _ASCII_DROPPED).decode()


def significant_digits(canonical: str) -> str:
    """The digits that every way to write a number of this worth has in a row."""
    return canonical.replace(".", "").lstrip("-0") or "0"


def _sign_start(text: str, start: int) -> int | None:
    """Where a minus sign before the digits stands ("-5", "-$5", "$-5"), not a hyphen or range ("10-5")."""
    at = start - 1
    if at >= 0 and text[at] in CURRENCY_SIGNS:
        at -= 1
    if at < 0 or text[at] not in _MINUS:
        return None
    return at if at == 0 or text[at - 1] in _SIGN_CONTEXT else None


def parse_number(text: str) -> str | None:
    """The canonical worth of a text that is one number and nothing else (currency sign and % aside), or None."""
    if text.isdecimal() and text.isascii():
        return canonical_number(text)
    found = _ONLY.fullmatch(text)
    if found is None:
        return None
    sign = found["sign"] or found["sign2"]
    return canonical_number(found["body"], bool(sign) and sign in _MINUS)

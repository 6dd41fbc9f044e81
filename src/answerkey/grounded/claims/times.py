"""Times of day in text: "3:30 PM", "14:05", "9 to 5 pm", "18 h 30", "18 Uhr", "noon"."""

import re
from collections.abc import Iterator

__all__ = ["find_times", "may_hold_time"]

_HALF = r"[ap]\.m\.|[ap]m"
_TIMES = re.compile(
    rf"(?<![\d:.])(?:(\d{{1,2}}):(\d{{2}})(?::\d{{2}})?\s?({_HALF})?|(\d{{1,2}})\s?({_HALF}))(?![\d:\w])",
    re.IGNORECASE,
)
# Times without a colon: those of other languages, and the first one of a range whose last one tells.
_OTHERS = re.compile(
    r"(?<![\d:.,])(?P<a>\d{1,2})(?:[.:](?P<am>\d{2}))?\s?(?:Uhr\b)"
    r"|(?<![\d:.,])(?P<b>\d{1,2})\s?[hH]\s?(?P<bm>[0-5]\d)(?!\s?min|\w)"
    r"|(?<=[àÀ]\s)(?P<c>\d{1,2})\s?h\b(?!\s?\d)"
    r"|(?<![\d:.,$€£])(?P<d>\d{1,2})(?:[.:](?P<dm>\d{2}))?(?:\s?h)?"
    rf"(?=\s?(?:-|–|bis|to|until|till|à|and)\s?\d{{1,2}}(?:[.:]\d{{2}})?(?:\s?Uhr\b|\s?h\s?\d{{2}}(?!\s?min|\w)|\s?(?:{_HALF})(?!\w)|\s?h\b(?!\s?\w)))"
    r"|\b(?P<noon>noon|midday)\b|\b(?P<midnight>midnight)\b",
    re.IGNORECASE,
)
_SIGN = re.compile(r"\d(?:\s?[ap]\.?m|:\d|\s?h\b|h\d|\s?Uhr)|noon|midday|midnight", re.IGNORECASE)
_OTHER_SIGN = re.compile(
    r"\d\s?(?:h\b|h\d|Uhr\b|(?:-|–|bis|to|until|till|and)\s?\d+\s?[ap]\.?m)|noon|midday|midnight",
    re.IGNORECASE,
)


def may_hold_time(text: str) -> bool:
    """A quick test."""
    return _SIGN.search(text) is not None


def find_times(text: str) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """Times of day as (start, end, minutes since midnight in each reading)."""
    for found in _TIMES.finditer(text):
        hour, minute = int(found[1] or found[4]), int(found[2] or 0)
        half = (found[3] or found[5] or "").lower().replace(".", "")
        if hour > 23 or minute > 59 or (half and not 1 <= hour <= 12):
            continue
        if half:
            readings: tuple[int, ...] = ((hour % 12 + (12 if half == "pm" else 0)) * 60 + minute,)
        else:
            readings = (hour * 60 + minute,)
        yield *found.span(), readings
    for found in _OTHERS.finditer(text) if _OTHER_SIGN.search(text) else ():
        if found["noon"] or found["midnight"]:
            yield *found.span(), (720 if found["noon"] else 0,)
            continue
        hour = int(found["a"] or found["b"] or found["c"] or found["d"])
        minute = int(found["am"] or found["bm"] or found["dm"] or 0)
        if hour <= 24 and minute <= 59:
            yield *found.span(), (hour % 24 * 60 + minute,)

"""Replies that say nothing: only punctuation, empty markup, a label without its text, a value that stands for none."""

import re

from answerkey.detect.detected import DetectedFailure
from answerkey.text.lazy import lazy

__all__ = ["says_nothing"]

# "none" in small letters is an answer ("How many are late? none"), and so is "None.".
_NULLS = frozenset(
    {"null", "NULL", "Null", "None", "undefined", "NaN", "nan", "nil", "<null>", "(null)", "<nil>", "nullptr", "[null]",
     "[]", "{}", '""', "''"}
)  # fmt: skip
# The same beside a mark: "null.", "NaN%", "<undefined>", "null, null".
_NULL_WORDS = frozenset({"null", "NULL", "undefined", "NaN", "nullptr"})
_NULL_SIGNS = ("null", "NULL", "undefined", "NaN", "None")
_LONGEST_NULL = 60
_ONLY_MARKS = lazy(r"[.…·\-–—_*#`\"'~|>?!,;:()\[\]{}<=+/\\\s]+|(?:\\[nrt]|\s)+")
_EMPTY_FENCE = lazy(r"```\w*\s*(?:```)?")
_LABEL = lazy(
    r"[\W_]*(?:(?:final )?(?:answer|response|reply|output|result)|assistant|bot|ai|system)[*_ ]*[:>][\W_]*",
    re.IGNORECASE,
)
# Markup that shows nothing.
_MARKUP = lazy(
    r"(?:<!--.{0,200}?-->|</?(?:p|br|div|span|em|b|i|strong|html|head|body|ul|ol|li|h[1-6]|pre|code)\b[^<>\n]{0,100}>|&(?:nbsp|#160|#xa0|zwnj|#8203);|\s)+",
    re.IGNORECASE,
)  # fmt: skip


def says_nothing(stripped: str, length: int) -> DetectedFailure | None:
    """Whether a whole reply is nothing or stands for nothing; `length` is the reply's."""
    if stripped in _NULLS or stripped.strip("`\"'") in {"null", "undefined", "None"}:
        return DetectedFailure("null", stripped, 0, length)
    first = stripped[0]
    if not first.isalnum() and (
        _ONLY_MARKS.fullmatch(stripped) or _EMPTY_FENCE.fullmatch(stripped) or _MARKUP.fullmatch(stripped)
    ):
        return DetectedFailure("empty", "the reply is only punctuation or empty markup", 0, length)
    if len(stripped) > _LONGEST_NULL:
        return None
    if stripped[-1] in ":>*_ \n" and _LABEL.fullmatch(stripped):
        return DetectedFailure("empty", "a label without a text", 0, length)
    if not any(map(stripped.__contains__, _NULL_SIGNS)):
        return None
    words = re.split(r"[\s,;|/.]+", stripped.strip("`\"'<>()[]{}%;:.,!? "))
    if all(word in _NULL_WORDS for word in words) or words == ["None"] * len(words) != ["None"]:
        return DetectedFailure("null", stripped, 0, length)
    return None

"""Replies that certainly break off: their end is open."""

from functools import cache
from importlib.resources import files

from answerkey.text.normalise import lazy

_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
_FEWEST_WORDS = 6


def open_end(text: str) -> str | None:
    """What is open at the end of a reply: a code fence, table row, list number, bracket, quote or sentence; None: nothing."""
    if "```" in text and text.count("```") % 2:
        return "open code fence"
    lines = text.rstrip().split("\n")
    last = lines[-1]
    if len(lines) > 1:
        above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
        if last.lstrip().startswith("|") and above.count("|") > max(1, last.count("|")):
            return "open table row"
        if _LIST_NUMBER.fullmatch(last) and _LIST_NUMBER.match(above):
            return "list number without a text"
    if text.endswith(_ENDS) and text[0] not in "{[":
        return None
    if text[0] in "{[" and text.count(text[0]) > text.count(_PAIRS[text[0]]):
        return "open bracket"
    if "```" not in text and _has_open_bracket(last):
        return "open bracket"
    words = last.split()
    if (
        len(words) >= _FEWEST_WORDS
        and words[-1].islower()
        and not function_words().isdisjoint("_".join(words[-count:]).lower() for count in (1, 2, 3))
    ):
        return "sentence ends in a function word"
    return None


def _has_open_bracket(line: str) -> bool:
    """Whether a bracket or quotation mark of the last line is still open at its end."""
    without = _SMILEY.sub("", line)
    return any(
        without.count(opening) == without.count(closing) + 1
        and without.rfind(opening) > without.rfind(closing)
        and len(without) - without.rfind(opening) > 2
        for opening, closing in _PAIRS.items()
    )


@cache
def function_words() -> frozenset[str]:
    """Words that cannot end a sentence, whatever the language: `function_words.txt`."""
    lines = (files("answerkey.detect") / "function_words.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split()[1:])

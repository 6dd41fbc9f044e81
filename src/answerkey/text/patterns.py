"""Regular expressions from golden sets, searched by RE2: in time linear in the reply's length whatever the pattern.

RE2 has no look-around and no back-references; a pattern with them is refused with what to write instead.
"""

import re
from functools import lru_cache
from typing import Any

import re2

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")

# What RE2 says of what others accept, and what to write instead.
_REMEDIES = (
    (
        re.compile(r"operator: \(\?<?[=!]"),
        r"look-around is not supported; write out what may stand there, as in (^|\D)9th for (?<!\d)9th, "
        "and list what must not be said under forbidden_keywords",
    ),
    (
        re.compile(r"sequence: \\[1-9k]|operator: \(\?P"),
        "back-references are not supported; write out what may be repeated, as in (aa|bb)",
    ),
    (re.compile(r"sequence: \\Z"), r"write \z for the end of the text"),
    (re.compile(r"sequence: \\[uUN]"), r"write the character itself, or its number as in \x{20AC}"),
    (re.compile("repetition size"), "the first number must not exceed the second, nor the second 1000"),
    (re.compile(r"operator"), "the syntax is RE2's: https://github.com/google/re2/wiki/Syntax"),
)


class CompiledPattern:
    """A pattern ready to search, ignoring case."""

    __slots__ = ("_pattern", "problem")

    def __init__(self, regex: str) -> None:
        # Why the pattern cannot be used, or None.
        self.problem: str | None = None
        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        try:
            self._pattern: Any = re2.compile(regex, options)
        except re2.error as error:
            self.problem = _explained(error)
        except UnicodeEncodeError:
            self.problem = "it has half of a surrogate pair, which is no character"

    def search(self, text: str) -> tuple[int, int] | str:
        """The span of the first match, or the reason why there is none."""
        if self.problem is not None:
            return f"the pattern does not compile: {self.problem}"
        try:
            found = self._pattern.search(text)
        except UnicodeEncodeError:
            # Lone surrogates have no UTF-8 form; one replacement character each keeps the offsets.
            found = self._pattern.search(_LONE_SURROGATE.sub("\ufffd", text))
        return "the pattern does not occur" if found is None else found.span()


def _explained(error: Exception) -> str:
    """RE2's message on one line, with what to write instead where that is known."""
    said = error.args[0] if error.args else ""
    message = " ".join((said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)).split())
    remedy = next((remedy for sign, remedy in _REMEDIES if sign.search(message)), None)
    return message if remedy is None else f"{message}: {remedy}"


@lru_cache(maxsize=4096)
def compile_pattern(regex: str) -> CompiledPattern:
    """The compiled pattern, made once."""
    return CompiledPattern(regex)


def check_pattern(regex: str) -> str | None:
    """Why a pattern cannot be used, for readers of golden sets; None if it can."""
    return compile_pattern(regex).problem

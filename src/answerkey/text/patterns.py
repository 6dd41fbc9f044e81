"""Regular expressions from golden sets: compiled to run in linear time, or under a time limit where that is impossible.

RE2 takes the pattern first: its time is linear in the reply's length whatever the pattern. Look-around and back-references,
which RE2 does not have, go to the `regex` package with a time limit.
"""

import re
from functools import lru_cache
from typing import Any

__all__ = ["TIME_LIMIT_SECONDS", "CompiledPattern", "check_pattern", "compile_pattern"]

# How long a pattern that RE2 cannot run may search one reply.
TIME_LIMIT_SECONDS = 1.0


class CompiledPattern:
    """A pattern ready to search, ignoring case."""

    __slots__ = ("_linear", "_pattern", "problem")

    def __init__(self, regex: str) -> None:
        # Why the pattern cannot be used, or None.
        self.problem: str | None = None
        self._linear = True
        self._pattern: Any = _compile_re2(regex)
        if self._pattern is None:
            self._linear = False
            self._pattern, self.problem = _compile_regex(regex)

    def search(self, text: str) -> tuple[int, int] | str:
        """The span of the first match, or the reason why there is none."""
        if self.problem is not None:
            return f"the pattern does not compile: {self.problem}"
        if self._linear:
            try:
                found = self._pattern.search(text)
            except UnicodeEncodeError:
                # Lone surrogates have no UTF-8 form; one replacement character each keeps the offsets.
                found = self._pattern.search(_LONE_SURROGATE.sub("\ufffd", text))
        else:
            try:
                found = self._pattern.search(text, timeout=TIME_LIMIT_SECONDS)
            except TimeoutError:
                return f"the pattern took longer than {TIME_LIMIT_SECONDS:g} s on this reply"
        return "the pattern does not occur" if found is None else found.span()


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def _compile_re2(regex: str) -> Any:
    import re2

    options = re2.Options()
    options.case_sensitive = False
    options.log_errors = False
    try:
        return re2.compile(regex, options)
    except (re2.error, UnicodeEncodeError):
        return None


def _compile_regex(regex: str) -> tuple[Any, str | None]:
    try:
        # Python's own compiler is the judge of what is a valid expression; its messages are the known ones.
        re.compile(regex)
    except (re.error, OverflowError, RecursionError) as problem:
        return None, str(problem) or type(problem).__name__
    import regex as regex_package

    try:
        return regex_package.compile(regex, regex_package.IGNORECASE | regex_package.VERSION0), None
    except (regex_package.error, RecursionError) as problem:
        return None, str(problem) or type(problem).__name__


@lru_cache(maxsize=4096)
def compile_pattern(regex: str) -> CompiledPattern:
    """The compiled pattern, made once."""
    return CompiledPattern(regex)


def check_pattern(regex: str) -> str | None:
    """Why a pattern cannot be used, for readers of golden sets; None if it can."""
    return compile_pattern(regex).problem

"""Regular expressions that are compiled when they are first used: most commands meet few of the texts that they are for."""

import re
from typing import Any, cast

_METHODS = ("search", "match", "fullmatch", "finditer", "findall", "split", "sub", "subn", "pattern", "flags")


class _Lazy:
    def __init__(self, pattern: str, flags: int) -> None:
        self._given = (pattern, flags)

    def __getattr__(self, name: str) -> Any:
        # Only ever called while the instance has no methods of its own.
        compiled = re.compile(*self._given)
        for method in _METHODS:
            setattr(self, method, getattr(compiled, method))
        return getattr(compiled, name)


def lazy(pattern: str, flags: int = 0) -> "re.Pattern[str]":
    """A pattern that is compiled at its first use; an invalid one raises only then."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))

"""Themes: the report's own colours, as forced light or dark sheets and as colours for charts."""

import re
from functools import cache
from importlib.resources import files

__all__ = ["THEMES", "colours", "theme_sheet"]

THEMES = ("auto", "light", "dark")

_BLOCK = re.compile(r":root\s*\{([^}]*)\}")
_TOKEN = re.compile(r"--([\w-]+):\s*([^;]+);")


@cache
def _blocks() -> tuple[str, str]:
    """The light and the dark block of the report's style sheet: the one place where the colours are written."""
    sheet = (files("answerkey.report") / "templates" / "report.css").read_text("utf-8")
    found = _BLOCK.findall(sheet)
    return found[0].strip(), found[1].strip()


@cache
def colours(theme: str) -> dict[str, str]:
    """Token → colour of the light or the dark theme."""
    light, dark = _blocks()
    tokens = dict(_TOKEN.findall(light))
    if theme == "dark":
        tokens.update(_TOKEN.findall(dark))
    return tokens


@cache
def theme_sheet() -> str:
    """CSS that lets a reader force a theme whatever the system prefers."""
    light, dark = _blocks()
    return (
        f':root[data-theme="light"] {{ color-scheme: light; {light} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
    )

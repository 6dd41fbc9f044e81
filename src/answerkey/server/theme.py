"""Themes: the report's own colours as forced light or dark sheets."""

import re
from functools import cache

from answerkey.report.markup import compact_css, report_asset

THEMES = ("auto", "light", "dark")
# What the button beside the navigation changes to, and how it shows what is chosen now.
THEME_AFTER = {"auto": "dark", "dark": "light", "light": "auto"}
THEME_SIGNS = {"auto": "◐", "dark": "☾", "light": "☀"}

_BLOCK = re.compile(r":root\s*\{([^}]*)\}")


@cache
def _blocks() -> tuple[str, str]:
    """The light and the dark block of the report's tokens: the one place where the colours are written."""
    found = _BLOCK.findall(compact_css(report_asset("tokens.css")))
    return found[0].strip(), found[1].strip()


@cache
def theme_sheet() -> str:
    """CSS that lets a reader force a theme whatever the system prefers."""
    light, dark = _blocks()
    return (
        f':root[data-theme="light"] {{ color-scheme: light; {light} }}\n'
        f':root[data-theme="dark"] {{ color-scheme: dark; {dark} }}\n'
    )

"""Cookies of one conversation: what the chatbot sets is sent back with the turns that follow, and with nobody else's."""

from collections.abc import Iterable, Mapping

__all__ = ["cookie_header", "read_cookies"]


def read_cookies(lines: Iterable[str]) -> dict[str, str]:
    """Name → value of `Set-Cookie` headers; one that is taken back has an empty value."""
    found: dict[str, str] = {}
    for line in lines:
        pair, *attributes = line.split(";")
        name, equals, value = pair.partition("=")
        if equals and name.strip():
            expired = any(part.replace(" ", "").lower() == "max-age=0" for part in attributes)
            found[name.strip()] = "" if expired else value.strip()
    return found


def cookie_header(*kept: Mapping[str, str] | None) -> dict[str, str]:
    """The header that sends them back; of two with one name the later counts."""
    joined = {name: value for cookies in kept for name, value in (cookies or {}).items()}
    text = "; ".join(f"{name}={value}" for name, value in joined.items() if value)
    return {"Cookie": text} if text else {}

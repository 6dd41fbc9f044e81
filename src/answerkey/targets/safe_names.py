"""Names and hashes of targets that are safe to keep: no password, no key, only the unexpanded `${ENV}` form."""

import hashlib
import re
from urllib.parse import urlsplit, urlunsplit

import msgspec

__all__ = ["safe_url", "settings_hash"]

_TELLING = re.compile(r"key|token|secret|passw|pwd|auth|sig|credential", re.IGNORECASE)


def safe_url(url: str) -> str:
    """An address without user and password, and without the values of parameters that look like keys."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
    except ValueError:
        return url.rpartition("@")[2] if "@" in url else url
    query = "&".join(_safe_parameter(part) for part in parts.query.split("&")) if parts.query else ""
    return urlunsplit((parts.scheme, host, parts.path, query, ""))


def _safe_parameter(part: str) -> str:
    name, equals, value = part.partition("=")
    if not equals or not _TELLING.search(name) or (value.startswith("${") and value.endswith("}")):
        return part
    return f"{name}=***"


def settings_hash(kind: str, settings: object) -> str:
    """Hash of a target's settings as the user wrote them, with `${ENV}` unexpanded."""
    content = msgspec.json.encode([kind, settings], order="deterministic")
    return hashlib.blake2b(content, digest_size=16).hexdigest()

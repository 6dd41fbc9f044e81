"""Secrets that are shown once: what is kept of one is its digest, by which it is looked up."""

import hashlib
import re
import secrets

from answerkey.errors import UsageError

__all__ = ["check_name", "digest", "new_secret"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


def new_secret(prefix: str = "") -> str:
    """A secret of 256 random bits; the prefix tells people and scanners for leaked secrets what it is."""
    return prefix + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept of a secret. It has 256 random bits: a plain digest cannot be guessed back."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


def check_name(name: str, whose: str) -> None:
    """Raise UsageError for a name that would not be plain everywhere."""
    if not _NAME.fullmatch(name):
        raise UsageError(f"{whose} name {name[:70]!r}: use up to 64 letters, digits and . _ @ -")

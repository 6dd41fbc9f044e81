"""Roles: who visits, and what they may do. Whatever is not named here needs an admin."""

from typing import Literal

import msgspec

from answerkey.store.people import ROLES, Person, Role, Site

# Where chat pages and their servers send to; the only addresses that other origins and sites' keys may use.
INTAKE = ("/api/feedback", "/api/replies", "/v1/traces", "/v1/logs")
SAFE = ("GET", "HEAD", "OPTIONS")

_PUBLIC = ("/login", "/healthz", "/theme")
# What changes something and needs less than an admin; the first that an address begins with.
_CHANGES: tuple[tuple[str, Role], ...] = (
    ("/logout", "viewer"),
    # Each has their own.
    ("/views", "viewer"),
    ("/api/feedback", "reviewer"),
    ("/api/review", "reviewer"),
    ("/review", "reviewer"),
    # Makes a golden case to download; nothing in the store changes.
    ("/replies/", "reviewer"),
)


class Visitor(msgspec.Struct, frozen=True):
    """Who a request comes from."""

    name: str
    # site: may only add feedback, replies and their spans.
    role: Role | Literal["site"]
    # By what name the things that they send are kept: a person and a site may be called the same.
    sender: str

    def may(self, method: str, path: str) -> bool:
        """Whether they may ask for this."""
        if self.role == "site":
            return method == "POST" and path in INTAKE
        return ROLES.index(self.role) >= ROLES.index(needed_role(method, path))


# Who uses a server that only this machine can reach.
LOCAL = Visitor("local", "admin", "local")


def person_visiting(person: Person | None) -> Visitor | None:
    """A person as a visitor."""
    return None if person is None else Visitor(person.name, person.role, f"person:{person.name}")


def site_sending(site: Site | None) -> Visitor | None:
    """A site as a visitor."""
    return None if site is None else Visitor(site.name, "site", f"site:{site.name}")


def is_public(path: str) -> bool:
    """Whether an address answers to everybody: signing in, how that page is drawn, and whether the server lives."""
    return path in _PUBLIC or path.startswith("/static/")


def needed_role(method: str, path: str) -> Role:
    """The least role that may ask for this."""
    if method in SAFE:
        return "viewer"
    if method != "POST":
        return "admin"
    return next((role for prefix, role in _CHANGES if _begins(path, prefix)), "admin")


def _begins(path: str, prefix: str) -> bool:
    return path == prefix or (prefix.endswith("/") and path.startswith(prefix))

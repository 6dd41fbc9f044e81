"""Moments: times that others write, as the store keeps them in UTC, and as people read them in their own zone."""

from datetime import UTC, datetime, timedelta

from answerkey.errors import UsageError

_DAY = timedelta(days=1)


def read_moment(given: str) -> str:
    """A time in ISO 8601 as the store writes it; one that names no zone is in UTC."""
    try:
        parsed = datetime.fromisoformat(given.strip())
        if parsed.tzinfo is None:
            parsed = parsed.replace(tzinfo=UTC)
        return parsed.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError):
        raise UsageError(f"created_at {given[:60]!r}: not a time; write it as 2026-11-16T08:30:00Z") from None


def day_begins(day: str) -> str:
    """The moment at which a day begins here, as the store writes it."""
    return _midnight(day, timedelta())


def day_ends(day: str) -> str:
    """The moment at which a day ends here."""
    return _midnight(day, _DAY)


def _midnight(day: str, later: timedelta) -> str:
    try:
        # Without a zone it is in that of this machine.
        moment = (datetime.strptime(day, "%Y-%m-%d") + later).astimezone()
        return moment.astimezone(UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        raise UsageError(f"{day[:40]!r} is no day; write it as 2026-11-16") from None


def local_time(moment: str, *, zone: bool = True) -> str:
    """A stored time as people read it, in the zone of this machine, which is named: 2026-11-16 09:30 CET."""
    try:
        here = datetime.fromisoformat(moment).astimezone()
    except (ValueError, OverflowError, OSError):
        # What is no time is shown as it is.
        return moment[:16].replace("T", " ")
    return f"{here:%Y-%m-%d %H:%M}" + (f" {here.tzname()}" if zone else "")


def zone_name() -> str:
    """What the zone of this machine is called now."""
    return datetime.now().astimezone().tzname() or "UTC"

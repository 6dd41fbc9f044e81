"""Numbers with what they count."""


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 question`, `75 questions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"

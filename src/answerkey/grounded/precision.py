"""Whether a value is what a stated number says, at the precision at which it is stated."""

from answerkey.grounded.claims.quantity import Quantity

__all__ = ["fits", "fits_exactly", "widest"]

# "About" and round numbers may be this far off.
_MOST_OFF = 0.06
_HALF = 50.0
_NEAR_HALF = 6.5


def fits_exactly(quantity: Quantity, value: float) -> bool:
    """Equal worth; a sign that the words carry ("a loss of $5") is not compared."""
    # What arithmetic with floats may be off by, and far less than one unit of the last digit that is written.
    allowed = min(1e-9 * max(1.0, abs(value)), quantity.unit / 100)
    return abs(abs(quantity.value) - abs(value)) <= allowed


def fits(quantity: Quantity, value: float) -> bool:
    """Equal, or rounded to the last digit that is written, or within what "about", "over" and "up to" allow."""
    stated, actual = abs(quantity.value), abs(value)
    if fits_exactly(quantity, value):
        return True
    off = abs(stated - actual)
    if quantity.spelled and quantity.kind == "percentage" and not quantity.digits:
        return _fits_fraction(quantity, stated, actual)
    # A small whole number is a count: 2.6 is not 3. Larger ones, amounts and percentages may be rounded.
    if (quantity.unit < 1 or actual >= 10 or quantity.kind == "percentage") and off <= quantity.unit / 2 * (
        1 + 1e-9
    ):
        return True
    match quantity.bound:
        case "about":
            return off <= max(_last_digit(stated), quantity.unit) and off <= _MOST_OFF * actual
        case "above":
            return stated < actual <= 1.15 * stated and _rounder(stated, actual)
        case "below":
            return 0.85 * stated <= actual < stated and _rounder(stated, actual)
        case _:
            return False


def _rounder(stated: float, actual: float) -> bool:
    """ "Over $16,000" for 16,144, but not "fewer than 33 days" for 30: who rounds leaves digits out."""
    return _last_digit(stated) > _last_digit(actual) or actual != int(actual)


def _fits_fraction(quantity: Quantity, stated: float, actual: float) -> bool:
    """ "A third" is not a figure that is rounded: "more than half" may well be 60%, "nearly half" is 46%."""
    match quantity.bound:
        case "about":
            # 7 of 16 are "nearly half".
            return abs(stated - actual) <= (_NEAR_HALF if stated == _HALF else 0.1 * stated)
        case "above":
            return stated < actual <= min(1.4 * stated, 100.0)
        case "below":
            return 0.7 * stated <= actual < stated
        case _:
            return abs(stated - actual) <= quantity.unit / 2


def _last_digit(value: float) -> float:
    """One unit of the last digit that is not a nought: 100 for 16,100."""
    unit = 1.0
    while value >= unit * 10 and value % (unit * 10) == 0:
        unit *= 10
    return unit


def widest(quantity: Quantity) -> tuple[float, float]:
    """Bounds that every value lies within that fits, for a quick look."""
    stated = abs(quantity.value)
    slack = quantity.unit + 1e-6 * stated
    if quantity.bound:
        slack += 0.4 * stated
    return stated - slack, stated + slack

"""Words that mean the opposite, or the other one of a pair: alike in spelling or use, but never the same answer."""

from answerkey.text.normalise import stem

__all__ = ["are_opposites"]

_PAIR_LIST = """
income expense, revenue cost, revenue expense, tenant landlord, tenant owner, lessee lessor, renter landlord, approve
deny, approve reject, accept reject, accept decline, grant deny, increase decrease, rise fall, raise lower, raise cut,
gain loss, profit loss, buy sell, buyer seller, purchase sale, purchaser seller, asset liability, debit credit, lender
borrower, creditor debtor, gross net, fix variable, short long, open close, deposit withdrawal, principal interest,
employer employee, import export, plaintiff defendant, minimum maximum, more less, most least, high low, highest lowest,
up down, first last, early late, earlier later, before after, north south, east west, left right, husband wife, mother
father, brother sister, son daughter, man woman, male female, boy girl, hot cold, winter summer, morning evening, day
night, weekly monthly, monthly annual, monthly yearly, weekly annual, daily weekly, week month, month year, quarterly
annual, quarterly monthly, vacant occupied, full empty, legal illegal, public private, true false, yes no, win lose,
pass fail, success failure, start end, begin end, begin finish, enter leave, arrive depart, internal external, state
federal, active inactive, paid unpaid, taxable exempt, include exclude, appreciation depreciation, cash accrual, current
former, new old, old young, large small, big small, big little, expensive cheap, rich poor, strong weak, safe dangerous,
allow forbid, permit prohibit, require optional
"""
_NEGATIVE_PREFIXES = ("un", "non", "in", "im", "ir", "dis", "mis", "de")


def _stemmed_pairs() -> frozenset[tuple[str, str]]:
    pairs = [pair.split() for pair in _PAIR_LIST.replace("\n", " ").split(",")]
    stems = [(stem(one), stem(other)) for one, other in pairs]
    return frozenset(stems) | frozenset((other, one) for one, other in stems)


_PAIRS = _stemmed_pairs()


def are_opposites(one: str, other: str) -> bool:
    """Whether two words in small letters exclude each other: "employer" and "employee", "approved" and "unapproved"."""
    if (stem(one), stem(other)) in _PAIRS:
        return True
    short, long = sorted((one, other), key=len)
    return any(long == prefix + short or long == f"{prefix}-{short}" for prefix in _NEGATIVE_PREFIXES)

"""The words of the trade, as patterns over normalised text: categories, kinds of money, documents."""

import re

__all__ = ["CATEGORY_WORDS", "DOCUMENT_WORDS", "GROUP_CATEGORIES", "KIND_WORDS", "category_label"]

# Category of the transactions table → how people say it. The longest phrase at a place wins.
_CATEGORIES: dict[str, str] = {
    "rent": (
        r"rental (?:income|revenue|receipts|payments?|earnings|proceeds)|rent(?:s|al)?(?: (?:income|"
        r"revenue|payments?|collected|receipts))?|income from rent"
    ),
    "late_fee": r"late (?:fees?|charges?|penalt(?:y|ies))",
    "laundry": r"laundry(?: (?:income|revenue|coins))?|coin laundry|washer and dryer coins",
    "management_fee": r"(?:property )?manage(?:ment|r)(?:'s)? (?:fees?|costs?|charges?)",
    "electricity": r"electric(?:ity|al)?(?: (?:bills?|costs?|power))?|power bills?",
    "gas": r"(?:natural )?gas(?: (?:bills?|costs?))?",
    "water": r"water(?: and sewer)?(?: (?:bills?|costs?))?|sewer",
    "internet": r"internet(?: (?:bills?|costs?|service))?|broadband|wi-?fi",
    "mortgage_interest": (
        r"(?:mortgage|loan) interest|interest (?:on|for) (?:the |our )?(?:mortgages?|loans?)|"
        r"interest(?: (?:expense|payments?|paid|costs?))?"
    ),
    "mortgage_principal": r"(?:mortgage |loan )?principal(?: (?:payments?|paid|repaid))?",
    "landscaping": r"landscap\w+|mowing|yard (?:work|care)|lawn care|gardening",
    "snow_removal": r"snow (?:removal|clearing|plowing|shovell?ing)|plowing",
    "insurance": (
        r"(?:landlord |property |umbrella )?insurance(?: (?:premiums?|costs?|bills?|payments?))?|"
        r"(?:policy )?premiums?"
    ),
    "property_tax": r"(?:property|real estate|county|land) tax(?:es)?(?: (?:bills?|payments?))?",
    "accounting": (
        r"account(?:ing|ant|ants)(?: (?:fees?|costs?|bills?))?|tax prep(?:aration)?(?: (?:fees?|"
        r"costs?))?|cpa (?:fees?|costs?|bills?)|bookkeeping(?: fees?)?"
    ),
    "legal": (
        r"legal (?:fees?|costs?|bills?|expenses?|work|services?)|attorney(?:'?s)? (?:fees?|costs?|"
        r"bills?)|lawyers?(?:'?s)?(?: (?:fees?|costs?|bills?))?"
    ),
    "cleaning": r"cleaning(?: (?:fees?|costs?|bills?))?|turnover cleaning|cleaners?",
    "repairs": (
        r"repairs?(?: (?:costs?|bills?|expenses?|work))?|maintenance(?: (?:costs?|expenses?))?|"
        r"fix(?:ed|ing|es)?|repaired"
    ),
    "supplies": r"supplies|hardware store",
    "advertising": r"advertis\w+(?: costs?)?|listing (?:fees?|costs?)|marketing(?: costs?)?",
    "filing_fee": r"filing fees?",
    "capital_improvement": r"(?:capital )?improvements?|capital (?:expenditures?|spending|projects?)|capex",
    "member_contribution": (
        r"(?:capital |member |members' |owner )?contribut(?:ions?|ed?)|capital calls?|paid[- ]in capital"
    ),
    "member_distribution": (
        r"(?:owner |member |members' |partner |quarterly )?distribut(?:ions?|ed)|(?:owner )?draws?|"
        r"payouts? to (?:the )?(?:members|owners)"
    ),
    "deposit_received": (
        r"(?:security )?deposits? (?:(?:did|do|have) we )?(?:receive[d]?|collect(?:ed)?|taken?|took)"
    ),
    "deposit_refunded": (
        r"(?:security )?deposits? (?:was |were |got |did we |have we )?(?:refund(?:ed)?|"
        r"return(?:ed)?|paid back)|"
        r"deposit refunds?|refunds? of (?:the )?deposits?"
    ),
}
CATEGORY_WORDS = {name: re.compile(rf"\b(?:{words})\b") for name, words in _CATEGORIES.items()}

# Words that stand for several categories at once.
_GROUPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "utilities": (
        r"utilit(?:y|ies)(?: (?:bills?|costs?|expenses?))?",
        ("electricity", "gas", "water", "internet"),
    ),
    "mortgage payments": (
        r"mortgages?(?: (?:payments?|costs?))|loan (?:payments?|servic\w+)|debt service",
        ("mortgage_interest", "mortgage_principal"),
    ),
    "professional fees": (r"professional (?:fees?|services?)|advis[eo]rs?' fees", ("accounting", "legal")),
    "grounds": (r"grounds ?keeping|yard and snow", ("landscaping", "snow_removal")),
}
GROUP_CATEGORIES = {
    name: (re.compile(rf"\b(?:{words})\b"), members) for name, (words, members) in _GROUPS.items()
}

KIND_WORDS = {
    "net": re.compile(
        r"\b(?:net (?:operating |rental )?(?:income|profit|cash ?flow|earnings|result|loss)|"
        r"profits?(?: and loss)?|profitab\w+|noi|cash ?flow|bottom line|"
        r"net|in the black|make money|made money|(?:money|how much) (?:did|do) we make|earned? after (?:expenses|costs))\b"
    ),
    "income": re.compile(
        r"\b(?:(?:gross |total )?(?:income|revenues?|receipts|earnings)|earn(?:ed|ings)?|take in|"
        r"took in|taken in|collect(?:ed)?|bring in|brought in)\b"
    ),
    "expense": re.compile(
        r"\b(?:(?:operating )?(?:expenses?|expenditures?|costs?|spending|outlays?|bills)|spen[dt]|"
        r"spending|pay(?:ing)? (?:for|to)|paid|pay)\b"
    ),
}

# Type of document → how people call one. A title's own words are matched as well.
DOCUMENT_WORDS: dict[str, re.Pattern[str]] = {
    name: re.compile(rf"\b(?:{words})\b")
    for name, words in {
        "agreement": r"(?:operating|management|llc) agreements?|contracts?",
        "formation": (
            r"articles(?: of organi[sz]ation)?|formation (?:documents?|papers?|paperwork)|ein "
            r"(?:letter|confirmation)|cp ?575|incorporation papers"
        ),
        "governance": r"organi[sz]ational consent|consent of the members|governance (?:documents?|papers?)",
        "insurance": (
            r"(?:insurance |landlord |umbrella |liability )?polic(?:y|ies)(?: documents?)?|insurance "
            r"(?:documents?|papers?|contracts?|certificates?)"
        ),
        "lease": r"leases?(?: agreements?| documents?| contracts?)?|rental agreements?",
        "loan": (
            r"promissory notes?|loan (?:documents?|notes?|agreements?|papers?)|mortgage (?:documents?|"
            r"notes?|papers?)"
        ),
        "closing": r"closing (?:statements?|documents?|papers?)|settlement statements?",
        "inspection": r"(?:building |home )?inspection reports?|inspection (?:documents?|papers?)",
        "tax": (
            r"tax (?:notes?|memos?|documents?|papers?|files?|workpapers?|records?)|(?:depreciation|"
            r"basis) (?:memos?|notes?)"
        ),
        "compliance": r"(?:compliance )?checklists?|compliance (?:documents?|papers?)",
        "minutes": r"(?:meeting |annual )?minutes|meeting (?:notes|records)",
        "policy": (
            r"house rules|(?:records? )?retention polic(?:y|ies)|(?:company )?rules|retention "
            r"(?:rules|schedule)"
        ),
    }.items()
}


def category_label(name: str) -> str:
    """How a category reads in an answer."""
    special = {
        "rent": "rental income",
        "late_fee": "late fees",
        "gas": "natural gas",
        "legal": "legal fees",
        "accounting": "accounting fees",
    }
    special |= {
        "management_fee": "management fees",
        "member_contribution": "member contributions",
        "filing_fee": "filing fees",
    }
    special |= {
        "member_distribution": "member distributions",
        "deposit_received": "security deposits received",
    }
    special |= {
        "deposit_refunded": "security deposits refunded",
        "capital_improvement": "capital improvements",
    }
    return special.get(name, name.replace("_", " "))

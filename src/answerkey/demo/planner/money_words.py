"""How people ask about money: patterns for counts, averages, extremes, breakdowns, comparisons and lists."""

__all__ = [
    "AVERAGE",
    "BREAKDOWN",
    "COMPARE",
    "COUNT",
    "KNOWN",
    "LARGEST",
    "LIST",
    "SLOTS",
    "SMALLEST",
    "WHEN",
    "WHO",
]

COUNT = r"how many|number of|how often|count"
AVERAGE = r"averages?|mean|typical(?:ly)?|on average"
LARGEST = r"largest|biggest|highest|most(?: expensive)?|greatest|max(?:imum)?|top|best|costliest"
SMALLEST = r"smallest|lowest|least|min(?:imum)?|cheapest|worst|weakest"
BREAKDOWN = r"break(?:down| down)|broken down|split|itemi[sz]e[d]?|separately|by|per|each|for every"
COMPARE = (
    r"compar\w+|vs\.?|versus|differen\w+|than|chang\w+|increas\w+|decreas\w+|grew|growth|rose|"
    r"fell|drop(?:ped)?|up or down|go up|gone up|went up|more or less"
)
LIST = (
    r"list|show|(?:which|what) (?:\w+ )?(?:payments|transactions|repairs|improvements|expenses|bills)|"
    r"itemi[sz]e|transactions"
)
WHO = r"who|whom|which (?:vendors?|contractors?|plumber|company|party|supplier|insurer|firm|tenants?|members?)|to which"
WHEN = r"when|what date|which day|on what day|last time"
_FILLER = (
    r"total|altogether|sum|amount(?:ed)?|money|much|cost(?:s|ed)?|spen[dt]|spending|paid|"
    r"pay(?:s|ing|ments?)?|payments?|charges?|charged|receiv\w+|collect\w*|earn\w*|"
    r"bring|brought|make|made|transactions?|expenses?|expens\w+|income|revenues?|single|bills?|"
    r"invoices?|fees?|one|month(?:ly|s)?|year(?:ly|s)?|annual(?:ly)?|quarter(?:ly|s)?|"
    r"entire|whole|full|propert(?:y|ies)|buildings?|rentals?|tenants?|members?|owners?|vendors?|"
    r"contractors?|compan(?:y|ies)|llc|book(?:ed)?|recorded|come|came|take|took|go|went|gone|"
    r"combined|together|across|operating|gross|rental|rate|time|times|happen\w*|was|"
    r"percent(?:age)?|share|portion|last|generat\w+|produc\w+|perform\w*|"
    r"categor(?:y|ies)|each|work|jobs?|done|had|during|over|incur\w*|hired?|buy|bought|"
    r"purchased?|portfolio|between|long|refund\w*|return\w*|deposit\w*|received|collected|"
    r"contribut\w+|distribut\w+|sent|billed|painted|installed|replaced|put|give|gave|service|suppl(?:y|ier|iers)|figure|average"
)
# Every word that a question about money may contain without its meaning anything else.
KNOWN = "|".join([_FILLER, COUNT, AVERAGE, LARGEST, SMALLEST, BREAKDOWN, COMPARE, LIST, WHO, WHEN])
# What a question about money may name.
SLOTS = ("properties", "periods", "categories", "kind", "parties", "units")

"""The words around a claim, and what they say of how its figure came about."""

import re

import msgspec

__all__ = [
    "CHANGE",
    "CLEAR_DIFFERENCE",
    "CLEAR_SUM",
    "COMPLEMENT",
    "DIFFERENCE",
    "FREE",
    "LEFT",
    "LESS",
    "MEAN",
    "MORE",
    "OPPOSITES",
    "RATE",
    "REST",
    "SUM",
    "SUPERLATIVE",
    "SUPERLATIVE_WORDS",
    "TIMES",
    "TOGETHER",
    "UNIT_OF_TIMES",
    "YEAR",
    "YEARLY",
    "Clause",
    "multiples",
]

# What is said of two or more things at once.
TOGETHER = re.compile(
    r"\b(?:together|combined|both|the two|these|those|zusammen|ensemble|juntos|juntas)\b", re.IGNORECASE
)


class Clause(msgspec.Struct, frozen=True):
    """The words around a claim."""

    # The sentence or line it stands in, and the part of that before the claim.
    text: str
    before: str
    # The claim as it is written.
    written: str
    # The sentence's words and the question's words, folded.
    words: str
    question_words: str
    # The word that follows the claim, "" if none does.
    next_word: str
    # The last word of the heading of its column, "" outside of tables.
    header: str
    # It is the value of a label: "Units: 6".
    labelled: bool
    # The part of the sentence that the claim stands in, up to a colon.
    part: str
    # The whole of "three of five" and "3 out of 5", 0 if the figure is not said to be part of one.
    part_of: float
    # −1 for a change downwards, 1 for one upwards, 0 if nothing tells.
    direction: int
    # No other figure stands in the sentence.
    alone: bool
    # What has been looked for in the sentence, shared by all its claims.
    cues: dict["re.Pattern[str]", bool]
    # Other numbers of the clause and the question: thresholds of "more than 500".
    numbers: tuple[float, ...]

    def says(self, words: "re.Pattern[str]") -> bool:
        """Whether the sentence has words of a kind."""
        said = self.cues.get(words)
        if said is None:
            said = self.cues[words] = words.search(self.text) is not None
        return said


# What goes up, not what makes up a whole; what leaves something over, not a leave.
_UP = (
    r"(?<!make\s)(?<!makes\s)(?<!made\s)(?<!making\s)(?<!add\s)(?<!adds\s)(?<!follow\s)(?<!set\s)(?<!sign\s)(?<!signed\s)"
    r"up(?!\s+to)"
)
_LEAVE = r"leaves|leaving|leave(?=\s+(?:you|us|me|them|him|her|it|just|only|about|around|a|an|\$|€|£|\d))"


_COMPARED_TEXT = r"""
lost loses? added shed widened narrowed
warmer colder hotter cooler heavier lighter taller wider deeper closer farther busier quicker pricier richer poorer stronger
weaker bigger newer earlier later sooner mehr weniger höher niedriger teurer günstiger länger kürzer differenz unterschied
übrig bleib(?:t|en) verbleib\w+ rest(?:e|ent|ant|lich\w*) moins différence hausse baisse menos más diferencia quedan? restan?
meno più resta rimangono minder verschil
"""
_COMPARED = "|".join(_COMPARED_TEXT.split())


def _words(words: str, *, more: str = "", other: str = "") -> re.Pattern[str]:
    pattern = rf"\b(?:{'|'.join(words.split())})\b{more}".replace("_", r"\s+")
    pattern = pattern.replace("<up>", _UP).replace("<leave>", _LEAVE).replace("<compared>", _COMPARED)
    return re.compile(f"{pattern}|{other}" if other else pattern, re.IGNORECASE)


SUM = _words(
    r"""totals? totall?ing totall?ed sums? combined altogether together overall in_all collective(?:ly)? aggregate cumulative
    comes?_to came_to adds?_up added_up amount(?:s|ed)?_to gross all across worth earned collected spent paid made received
    brought_in owes? cost revenue income expenses sales plus including entire whole hence making add adding
    insgesamt zusammen gesamt\w* summe au_total en_tout ensemble en_total suma in_totale no_total samen totaal"""
)
# Words that speak of nothing but a sum.
CLEAR_SUM = _words(
    r"""totals? totall?ing totall?ed sums? combined altogether together overall in_all adds?_up added_up comes?_to came_to plus
    including aggregate collective(?:ly)? cumulative both with hence making add adding
    insgesamt zusammen gesamt\w* summe au_total en_tout ensemble en_total suma in_totale no_total samen totaal"""
)
MEAN = _words(r"""averag\w* avg mean typical(?:ly)? per each apiece midpoint every
    durchschnittlich\w* schnitt pro jeweils moyenne chacune? promedio cada media gemiddeld""")
DIFFERENCE = _words(
    r"""difference differs? more less fewer higher lower cheaper larger smaller increas\w+ decreas\w+ rose fell grew growth
    drop\w* rise up down chang\w+ gap net profit\w* loss\w* remain\w* left sav(?:e|es|ed|ing|ings) margin surplus deficit
    shortfall exceed\w* over under short balance after <leave> ow(?:e|es|ed|ing) still minus between outstanding available
    variance ahead behind gain\w* declin\w+ spread range equity unpaid due above below longer shorter older younger faster
    slower hold too extra beyond past <compared>"""
)
# Words that leave no doubt: a small number needs one of these.
CLEAR_DIFFERENCE = _words(
    r"""difference differs? more less fewer higher lower cheaper larger smaller increas\w+ decreas\w+ rose fell grew
    drop\w* chang\w+
    gap net profit\w* loss\w* remain\w* left sav(?:e|es|ed|ing|ings) margin surplus deficit shortfall short exceed\w* minus ahead
    behind gain\w* declin\w+ spread longer shorter older younger faster slower above below over_budget under_budget
    too extra beyond past <leave> to_go back down <up> <compared>"""
)
# What is not yet or no longer so, of a whole that the sentence names: "27 of 30 are taken, so 3 are open".
COMPLEMENT = _words(
    r"""open free available unused vacant empty pending outstanding missing unpaid incomplete rest others? not left remain\w*
    absent failed still un\w+"""
)
# What is there and not used, of a record that says how much there is and how much is used.
FREE = _words(
    r"""free unused vacant empty unpaid missing pending outstanding unsold spare open available libres? frei\w* vacantes?
    unfilled unbooked uncollected undelivered unopened"""
)
CHANGE = _words(
    r"""increas\w+ decreas\w+ rose fell grew growth drop\w* rise\w* <up> down chang\w+ more less higher lower cheaper gain\w*
    declin\w+ jump\w* improv\w+ reduc\w+ sav\w+ discount\w* climb\w* margin profit return yield markup
    stronger weaker better worse larger smaller bigger longer shorter busier lift uplift
    shr[aiu]nk fewer faster slower over under mehr weniger höher niedriger teurer günstiger hausse baisse aumento más menos""",
    other="Δ|delta|yoy",
)
# Four digits without a separator are a year: no sum or difference.
YEAR = re.compile(r"(?:19|20)\d\d")
YEARLY = _words(
    r"years? yearly annual annually annuali[sz]ed per_annum 12_months twelve_months months? monthly"
    r" monat\w* jahr\w* jährlich\w* mois mensuel\w* année annuel\w* mes meses mensual\w* años? anual\w* mese mensile anno"
)
RATE = re.compile(
    _words(
        r"percent rate fees? tax discount interest commission tip deposit vat share markup royalt\w+ surcharge"
    ).pattern
    + "|%",
    re.IGNORECASE,
)
MORE = _words(r"over above more_than exceed\w* greater higher at_least or_more minimum after since")
LESS = _words(r"under below less_than lower fewer_than at_most or_less maximum before within short")
TIMES = re.compile(
    r"\b(?:total|across|all|comes? to|each|at|per|times|for|cost|worth|value|of|x)\b|[×x@]", re.IGNORECASE
)
# Words for "so many times": "half the fee", "one and a half months' rent", "twice the deposit".
_MULTIPLES = (
    (r"(?:one|1) and (?:a|one)[- ]half|1\.5 times|one and one-half", 1.5), (r"(?:two|2) and (?:a|one)[- ]half", 2.5),
    (r"(?<!and a )(?<!and one )(?<!and one-)half(?! (?:an|a) hour)", 0.5), (r"twice|doubled?|double", 2.0),
    (r"tripled?|three times", 3.0),
    (r"a third|one[- ]third", 1 / 3), (r"two[- ]thirds", 2 / 3), (r"a quarter|one[- ]quarter|a fourth", 0.25),
    (r"three[- ]quarters|three[- ]fourths", 0.75),
)  # fmt: skip
_MULTIPLE_WORDS = tuple(
    (re.compile(rf"\b(?:{words})\b", re.IGNORECASE), factor) for words, factor in _MULTIPLES
)


def multiples(text: str) -> list[float]:
    """The multiples that a text speaks of."""
    return [factor for words, factor in _MULTIPLE_WORDS if words.search(text)]


# "The highest is …" names a value, it does not derive one.
_SUPERLATIVES = r"""highest lowest largest smallest biggest maximum minimum slowest fastest cheapest most_expensive
longest shortest oldest newest earliest latest best worst least peak peaked warmest coldest"""
SUPERLATIVE = _words(_SUPERLATIVES, more=r"[^.,;]{0,30}$")
SUPERLATIVE_WORDS = _words(
    _SUPERLATIVES
    + r" most top first last (?!inter|requ|for|gu|harv|inv|cont|prot|hon|mod|sugg|dig|arr|man)\w{3,}est"
)
# "Two months of rent", "three times the price".
UNIT_OF_TIMES = _words("times months? weeks? fold years?")
REST = _words(r"others? rest remaining not without excluding except un(?!it|der|til|less|ion|iv)\w+")
# What is yet to be done, of rows that say whether they are.
LEFT = _words(r"left remaining outstanding pending open still yet to_go incomplete unfinished")
# A word that says that rows do not have the other word's value.
_OPPOSITES = """
occupied:vacant vacant:occupied paid:unpaid unpaid:paid open:closed closed:open active:inactive inactive:active passed:failed
failed:passed on:off online:offline offline:online overdue:paid available:unavailable
unavailable:available sold:available leased:vacant rented:vacant resolved:open unresolved:resolved filled:empty
"""
OPPOSITES = dict(pair.split(":") for pair in _OPPOSITES.split())

"""Facts: the figures, dates, ids, names and addresses that a text states, and which of them a question asks for."""

import re
from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Literal

import msgspec

from answerkey.evidence.mentions import Amount, CalendarDate, Mention, TimeOfDay, find_mentions, find_names
from answerkey.evidence.records import Words

FactKind = Literal["figure", "date", "time", "id", "name", "address"]

# What is asked for is answered at the beginning of a longer text.
MAX_CHARACTERS = 20_000

_STREET_TYPES = (
    "St|Ave|Avenue|Street|Road|Rd|Blvd|Boulevard|Lane|Ln|Dr|Drive|Way|Court|Ct|Place|Pl|Highway|Hwy|Square|Sq"
)
_ADDRESS = re.compile(
    r"\b\d{1,6}[A-Z]?\s(?:[NSEW]\.?\s)?(?:\d{1,3}(?:st|nd|rd|th)\s|[A-Z][\w'-]+\s){1,3}"
    rf"(?:{_STREET_TYPES})\b"
)


class Fact(msgspec.Struct, frozen=True):
    """A figure, date, time, id, name or address in a text; equal facts have the same key."""

    kind: FactKind
    key: Hashable
    start: int
    end: int
    # A name whose capital may only begin a sentence.
    is_doubtful: bool = False


@lru_cache(maxsize=65_536)
def facts_of(text: str) -> tuple[Fact, ...]:
    """Every fact of a text, in order and without overlaps.

    >>> [fact.kind for fact in facts_of("Naomi Brandvold of 12 Oak St pays $1,420 from June 9, 2023.")]
    ['name', 'address', 'figure', 'date']
    """
    text = text[:MAX_CHARACTERS]
    words = Words(text)
    mentions = find_mentions(text, words, is_reply=True)
    facts = [
        Fact("address", ("address", match[0].casefold()), *match.span()) for match in _ADDRESS.finditer(text)
    ]
    covered = {offset for fact in facts for offset in range(fact.start, fact.end)}
    for mention in (*mentions, *find_names(text, words, mentions)):
        fact = _fact(mention, text, words)
        if fact is not None and fact.start not in covered and fact.end - 1 not in covered:
            facts.append(fact)
    return tuple(sorted(facts, key=lambda fact: fact.start))


def _fact(mention: Mention, text: str, words: Words) -> Fact | None:
    span = mention.start, mention.end
    reading = mention.readings[0] if mention.readings else None
    match mention.kind:
        case "figure" if isinstance(reading, Amount):
            return Fact("figure", ("figure", float(reading.value)), *span)
        case "date" if isinstance(reading, CalendarDate):
            return Fact("date", ("date", reading.year, reading.month, reading.day), *span)
        case "time" if isinstance(reading, TimeOfDay):
            return Fact("time", ("time", reading.minutes), *span)
        case "id":
            return Fact("id", ("id", text[slice(*span)].casefold()), *span)
        case "name":
            keys = tuple(words.keys[index] for index in mention.words)
            # The key of a month's name begins with a hash: it is part of a date.
            if any(key.startswith("#") for key in keys):
                return None
            return Fact("name", ("name", keys), *span, is_doubtful=mention.is_doubtful)
    return None


# What a question asks for.

_FIGURE: frozenset[FactKind] = frozenset({"figure"})
_DATE: frozenset[FactKind] = frozenset({"date", "time"})
_NAME: frozenset[FactKind] = frozenset({"name", "address", "id"})
_CODE: frozenset[FactKind] = frozenset({"id", "figure"})
EVERY_KIND: frozenset[FactKind] = _FIGURE | _DATE | _NAME

# The last word of what is asked for ("what interest RATE do we pay") → the kinds of facts that answer it.
_NOUNS: dict[frozenset[FactKind], str] = {
    _FIGURE: "total sum amount cost price rate share fee rent income revenue spending spend expense profit loss balance "
    "percent percentage average mean value worth deposit basis equity depreciation deductible limit salary wage budget fare "
    "tax interest premium margin size area weight distance height length age capacity temperature count quantity turnover "
    "earnings charge discount bill ratio tolerance mileage debt distribution contribution threshold maximum minimum",
    _DATE: "date day month year deadline time hour week weekday birthday expiry",
    _NAME: "name address category property building supplier vendor tenant lender insurer manager agent company firm "
    "author person owner city town place country bank contractor member customer employee product model doctor gate",
    _CODE: "number id code ein reference identifier",
}
_KIND_OF_NOUN = {noun: kinds for kinds, nouns in _NOUNS.items() for noun in nouns.split()}
_WH = re.compile(
    r"\b(?:(?P<measure>how (?:much|many|often|old|big|large|long|far|high|tall|wide|deep|heavy|fast|profitable))"
    r"|(?P<who>who|whose|whom)|(?P<where>where)|(?P<when>when)|(?P<pick>which)|(?P<what>what)|(?P<way>how|why))(?:['’](?:s|re))?\b",
    re.IGNORECASE,
)
_AFTER_WHAT = re.compile(
    r"\s*(?:(?:is|are|was|were|has|have|will|would)\b\s*)?(?:(?:been|be|all|the|our|my|your|his|her|its|their|a|an)\s+)*",
    re.IGNORECASE,
)
_PHRASE_END = re.compile(
    r"[^\w\s'’.-]|\b(?:of|in|on|at|for|from|to|with|by|during|under|between|per|and|or|is|are|was|were|do|does|did|has|have|had|will"
    r"|would|can|could|should|must|may|might|we|i|you|he|she|it|they|my|our|about)\b",
    re.IGNORECASE,
)
_PAYS = re.compile(
    r"\b(?:pa(?:y|ys|id)|cost|costs|spen[dt]|spends|earn(?:ed|s)?|owe[sd]?|worth|charged?|charges|contributed?)\b",
    re.IGNORECASE,
)
_ASKS_ALOUD = re.compile(r"\b(?:tell|show|know|say|give|find|remind|explain|check|look|let)\b", re.IGNORECASE)
_YES_OR_NO = re.compile(
    r"(?:is|are|was|were|am|do|does|did|has|have|had|can|could|will|would|should|may|must|any|isn't|aren't|didn't|don't|doesn't)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.?!]+[.?!]*\s*")


class AnswerShape(msgspec.Struct, frozen=True):
    """What a question asks for."""

    # Each part of the question: the kinds of facts of which one answers it. Empty: unknown, any fact may be asked for.
    parts: tuple[frozenset[FactKind], ...] = ()
    # Yes or no; figures, dates and names beside it are details.
    is_yes_or_no: bool = False
    # How the asked figure is written.
    unit: Literal["", "money", "percent", "count"] = ""

    @property
    def kinds(self) -> frozenset[FactKind]:
        """Every kind of fact that may be what is asked for."""
        return frozenset().union(*self.parts) if self.parts else EVERY_KIND


@lru_cache(maxsize=20_000)
def answer_shape(question: str) -> AnswerShape:
    """What a question asks for; English questions only, of others it is unknown.

    >>> answer_shape("How many leases end in May?").unit, answer_shape("Did Ann sign?").is_yes_or_no
    ('count', True)
    """
    sentences: list[str] = _SENTENCE.findall(question[-2_000:]) or [question]
    asking = [sentence for sentence in sentences if "?" in sentence] or sentences[-1:]
    parts: list[frozenset[FactKind]] = []
    is_yes_or_no = False
    for sentence in asking:
        begins = sentence.strip().split(",")[-1].strip() if "," in sentence[:20] else sentence.strip()
        if _YES_OR_NO.match(begins) and not (_ASKS_ALOUD.search(sentence) and _WH.search(sentence)):
            is_yes_or_no = True
            continue
        found = list(_parts(sentence))
        if not found or None in found:
            return AnswerShape()
        parts += [part for part in found if part is not None]
    return AnswerShape(parts=tuple(parts), is_yes_or_no=is_yes_or_no, unit=_unit(question, parts))


def _parts(sentence: str) -> Iterator[frozenset[FactKind] | None]:
    """The parts of a question: "what was the rent, and who paid it"; None for a part whose answer may be anything."""
    for match in _WH.finditer(sentence):
        rest = sentence[match.end() :]
        if match["measure"]:
            is_old, is_long = match[0].lower().endswith("old"), match[0].lower().endswith("long")
            yield _FIGURE | _DATE if is_old or is_long else _FIGURE
        elif match["who"] or match["where"]:
            yield _NAME
        elif match["when"]:
            # "When a member sells" is a condition; "when is there a quorum" asks for anything.
            if match.start() == 0 or re.match(
                r"\s(?:is|are|was|were|do|does|did|has|have|will|must|can|should)\b", rest
            ):
                yield _DATE
        elif match["pick"] or match["what"]:
            yield _asked_noun(rest, picks=bool(match["pick"]))
        else:
            yield None


def _asked_noun(rest: str, *, picks: bool) -> frozenset[FactKind] | None:
    """The kinds of "interest rate do we pay" (behind "what")."""
    skipped = _AFTER_WHAT.match(rest)
    rest = rest[skipped.end() :] if skipped else rest
    end = _PHRASE_END.search(rest)
    words = re.findall(r"\w+", re.sub(r"['’]s\b", "", rest[: end.start() if end else None]).lower())
    for word in reversed(words):
        for noun in (word, word.removesuffix("s"), re.sub("ies$", "y", word), word.removesuffix("es")):
            if noun in _KIND_OF_NOUN:
                # Of several (which buildings), the answer may be in words that are not facts.
                return _KIND_OF_NOUN[noun]
        break
    if not picks and _PAYS.search(rest):
        return _FIGURE
    return _NAME if picks and words and not words[-1].endswith("s") else None


def _unit(question: str, parts: list[frozenset[FactKind]]) -> Literal["", "money", "percent", "count"]:
    if not any("figure" in part for part in parts):
        return ""
    if re.search(r"\bhow (?:many|often)\b|\bthe (?:number|count) of\b", question, re.IGNORECASE):
        return "count"
    if re.search(
        r"\b(?:share|percent(?:age)?|interest rate|proportion)\b|\bmembership interest\b",
        question,
        re.IGNORECASE,
    ):
        return "percent"
    return "money" if re.search(r"\bhow much\b", question, re.IGNORECASE) or _PAYS.search(question) else ""

"""Whether names, quotations and identifiers of a reply stand in the evidence."""

import re

import msgspec

from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.claims.countries import COUNTRIES
from answerkey.grounded.claims.english import is_english, is_listed
from answerkey.grounded.claims.names import is_ordinary
from answerkey.grounded.claims.ordinary_words import LEGAL_FORMS, STATES
from answerkey.grounded.evidence import Evidence, Passage
from answerkey.grounded.flatten import key_words
from answerkey.grounded.reading import read_text
from answerkey.text.normalise import folded_text, stem

__all__ = ["Found", "find_identifier", "find_in_arguments", "find_name", "find_quote", "support_places"]

# What kind of street or house it is belongs to the name: Oak Street is not Oak Avenue.
_KINDS = {
    "st": "street", "ave": "avenue", "av": "avenue", "rd": "road", "dr": "drive", "ln": "lane", "blvd": "boulevard",
    "ct": "court", "pl": "place", "street": "street", "avenue": "avenue", "road": "road", "drive": "drive", "lane": "lane",
    "boulevard": "boulevard", "court": "court", "place": "place", "bank": "bank", "hospital": "hospital",
    "university": "university",
}  # fmt: skip
# What a thing with a name is may be said beside the name.
_THINGS_TEXT = """
building property properties unit house home account project team office department agreement lease policy report order
invoice document plan company group store branch location region site contract loan fund program service system class
"""
_THINGS = frozenset(_THINGS_TEXT.split())
# So many letters in a row are not the same by chance.
_LONG_ENOUGH = 7
_SMALL = frozenset({"of", "the", "and", "de", "la", "van", "von", "der", "du", "del", "di", "al", "bin", "s"})


class Found(msgspec.Struct, frozen=True):
    """Where support was found."""

    where: str
    text: str


def find_quote(claim: Claim, evidence: Evidence) -> Found | None:
    """A quotation word for word; "…" may leave words out, and case, accents and punctuation do not matter."""
    parts = [folded_text(part).strip() for part in re.split(r"…|\.\.\.|\[[^\]]*\]", claim.text)]
    parts = [part for part in parts if part]
    if not parts:
        return None
    for passage in evidence.passages:
        if all(f" {part} " in passage.folded for part in parts):
            return Found(passage.where, _excerpt(passage, claim.text))
    for leaf in evidence.arguments:
        # What was searched for may be quoted as that.
        if isinstance(leaf.value, str) and all(
            f" {part} " in f" {folded_text(leaf.value).strip()} " for part in parts
        ):
            return Found(leaf.where, leaf.value)
    words = [word for part in parts for word in part.split() if word not in _SMALL]
    if len(parts) == 1 and 0 < len(words) <= 4 and all(word in evidence.vocabulary for word in words):
        # A short one may be the name of a value.
        for leaf in evidence.leaves:
            if all(word in folded_text(leaf.key.replace("_", " ")).split() for word in words):
                return Found(leaf.where, leaf.key)
    return None


def find_in_arguments(text: str, claim: Claim, evidence: Evidence) -> Found | None:
    """A number that is part of a name which a tool was asked for: the 9th of "900 S 9th St"."""
    after = _CAPITALS_AFTER.match(text, claim.end)
    before = _CAPITALS_BEFORE.search(text, max(0, claim.start - 30), claim.start)
    words = [before[0] if before else "", claim.text, after[0] if after else ""]
    if (before is None and after is None) or not evidence.arguments:
        return None
    phrase = f" {folded_text(''.join(words)).strip()} "
    for leaf in evidence.arguments:
        if isinstance(leaf.value, str) and phrase in f" {folded_text(leaf.value).strip()} ":
            return Found(leaf.where, phrase.strip())
    return None


_CAPITALS_AFTER = re.compile(r" [A-Z][A-Za-z]*")
_CAPITALS_BEFORE = re.compile(r"(?:\d+ )?(?:[A-Z][A-Za-z]* )+$")


def find_identifier(claim: Claim, evidence: Evidence) -> Found | None:
    """An identifier letter for letter, whatever stands between its parts."""
    wanted = re.sub(r"^(?:#|https?://(?:www\.)?|www\.)\s?", "", claim.text.lower()).rstrip("/.")
    if not wanted:
        return None
    if (letter := re.fullmatch(r"([a-z.]+) ([a-z]\d{0,3})", wanted)) is not None:
        return _lettered(letter[2].upper(), evidence)
    bounded = re.compile(rf"(?<![a-z0-9]){re.escape(wanted)}(?![a-z0-9])")
    squeezed = _squeezed(wanted)
    for passage in evidence.passages:
        lowered = passage.text.lower()
        if wanted in lowered and bounded.search(lowered):
            return Found(passage.where, _excerpt(passage, wanted))
    if len(squeezed) >= 3:
        for passage in evidence.passages:
            for word in re.findall(r"[^\s,;()\[\]\"'<>|]+", passage.text.lower()):
                if _squeezed(word) == squeezed:
                    return Found(passage.where, word)
            digits = re.sub(r"\D", "", wanted)
            if len(digits) >= 7 and re.fullmatch(r"[+\d\s().-]+", wanted):
                # Telephone and registration numbers are grouped in many ways; a country code may be missing.
                for group in re.findall(r"\+?\(?\d[\d\s().-]{5,}\d", passage.text):
                    other = re.sub(r"\D", "", group)
                    if other == digits or (
                        min(len(other), len(digits)) >= 10 and other[-10:] == digits[-10:]
                    ):
                        return Found(passage.where, group)
    return None


def _lettered(letter: str, evidence: Evidence) -> Found | None:
    """ "Unit D" where a D stands by itself: {"unit": "D"}, "Units C and D", "C–D"."""
    pattern = re.compile(rf"(?<![A-Za-z0-9]){letter}(?![A-Za-z0-9])")
    for passage in evidence.passages:
        if found := pattern.search(passage.text):
            return Found(
                passage.where, _excerpt(passage, passage.text[max(0, found.start() - 10) : found.end()])
            )
    return None


def _squeezed(text: str) -> str:
    return re.sub(r"[^a-z0-9@]", "", text)


def support_places(claim: Claim, evidence: Evidence) -> list[str]:
    """Every place where a date stands, or a name or identifier word for word."""
    if (
        claim.kind == "date"
        and claim.date is not None
        and claim.date.month is None
        and claim.date.day is None
    ):
        years = [fact.where for fact in evidence.numbers if fact.value == claim.date.year]
        return years + [fact.where for fact in evidence.dates if fact.date.year == claim.date.year]
    if claim.kind == "date":
        return [
            fact.where for fact in evidence.dates if claim.date is not None and claim.date.agrees(fact.date)
        ]
    if claim.kind not in ("name", "identifier"):
        return []
    words = folded_text(claim.text).strip()
    return [passage.where for passage in evidence.passages if f" {words} " in passage.folded]


def find_name(claim: Claim, evidence: Evidence) -> Found | None:
    """A name whole: its words together in one text, or as the parts of one record."""
    words = [word for word in folded_text(claim.text).split() if word not in _SMALL]
    telling = [word for word in words if word not in LEGAL_FORMS] or words
    if not telling:
        return Found("question", "")
    if claim.text in STATES and (found := _state(claim.text, evidence)):
        return found
    if found := _in_one_text(telling, evidence):
        return found
    # "The Maple building": ordinary words beside a name need not stand with it in the evidence.
    core = [word for word in telling if word in _KINDS or not _beside_the_name(word, evidence)]
    if core and core != telling and (found := _in_one_text(core, evidence)):
        return found
    if found := _in_one_record(core or telling, evidence) or _with_its_key(telling, evidence):
        return found
    if (
        claim.opens_sentence
        and len(telling) > 1
        and (found := _in_one_text(telling[1:], evidence))
        and (telling[0] in evidence.plain_words or is_english(telling[0]))
    ):
        return found
    if found := _without_role(telling, evidence):
        return found
    letters = (
        {word.lower() for word in re.findall(r"\b[A-Z]{2,5}\b", claim.text)} if len(telling) > 1 else set()
    )
    if all(word in letters or _is_plain(word, evidence) for word in telling):
        return Found("evidence", "words that the evidence uses")
    joined = "".join(telling)
    if len(joined) >= _LONG_ENOUGH and joined in evidence.everything:
        # "Ponte Verde" from an address at ponteverde.example.
        return Found("evidence", joined)
    if (
        state := next((code for code, name in STATES.items() if name == claim.text.lower()), None)
    ) is not None:
        return _state(state, evidence)
    if (day := _HOLIDAYS.get(" ".join(words))) is not None:
        for fact in evidence.dates:
            if (fact.date.month, fact.date.day) == day:
                return Found(fact.where, fact.text)
    if (codes := COUNTRIES.get(" ".join(words))) is not None and (found := _country(codes, evidence)):
        return found
    if len(telling) > 1:
        phrase = f" {' '.join(words)} "
        for leaf in evidence.arguments:
            # The name of what a tool was asked about.
            if isinstance(leaf.value, str) and phrase in f" {folded_text(leaf.value).strip()} ":
                return Found(leaf.where, claim.text)
    return _abbreviation(claim, evidence) or (_run_together(telling, evidence) if len(telling) > 1 else None)


# Days that have a name, by their folded words: (month, day).
_HOLIDAYS = {
    "new year day": (1, 1), "valentine day": (2, 14), "independence day": (7, 4), "halloween": (10, 31),
    "veterans day": (11, 11), "christmas eve": (12, 24), "christmas day": (12, 25), "christmas": (12, 25),
    "new year eve": (12, 31), "juneteenth": (6, 19), "boxing day": (12, 26), "may day": (5, 1),
}  # fmt: skip
_ROLE_ENDINGS = ("er", "or", "ist", "ian", "ant", "ent", "ress")
_ROLES = frozenset(
    [
        "nurse",
        "judge",
        "chef",
        "coach",
        "clerk",
        "chief",
        "head",
        "lead",
        "captain",
        "officer",
        "deputy",
        "vice",
    ]
)


def _without_role(words: list[str], evidence: Evidence) -> Found | None:
    """ "Inspector G. Thibodeaux": what somebody is may be said before the name."""
    rest = list(words)
    while len(rest) > 1 and (rest[0] in _ROLES or (rest[0].endswith(_ROLE_ENDINGS) and is_listed(rest[0]))):
        rest.pop(0)
    return _in_one_text(rest, evidence) if rest != words else None


def _run_together(words: list[str], evidence: Evidence) -> Found | None:
    """ "Hepatitis B" for "HepB": parts with capitals of their own that the words begin with."""
    for found in _CAPITALS_INSIDE.finditer(evidence.original):
        parts = _CAPITAL_PARTS.findall(found[0])
        if len(parts) == len(words) and all(
            word.startswith(part.lower()) for word, part in zip(words, parts, strict=True)
        ):
            return Found("evidence", found[0])
    return None


_CAPITALS_INSIDE = re.compile(r"\b[A-Z][a-z]{1,9}(?:[A-Z][a-z]{0,9}){1,3}\b")
_CAPITAL_PARTS = re.compile(r"[A-Z][a-z]*")


def _in_one_text(words: list[str], evidence: Evidence) -> Found | None:
    """The words in this order with at most one other word between two of them; kinds of streets may be abbreviated."""
    if not all(_known(word, evidence) for word in words):
        return None
    pattern = re.compile(r" " + r" (?:\S+ )?".join(_spellings(word) for word in words) + r" ")
    for passage in evidence.passages:
        if pattern.search(passage.folded):
            return Found(passage.where, _excerpt(passage, words[0]))
    return _turned_around(words, evidence) if len(words) > 2 else None


def _turned_around(words: list[str], evidence: Evidence) -> Found | None:
    """ "Pierce County Superior Court" for "Superior Court of Pierce County": the same words side by side."""
    wanted = set(words)
    for passage in evidence.passages:
        if not all(f" {word} " in passage.folded for word in words):
            continue
        listed = passage.folded.split()
        for at, word in enumerate(listed):
            if word in wanted and wanted <= set(listed[at : at + len(words) + 1]):
                return Found(passage.where, _excerpt(passage, words[0]))
    return None


def _known(word: str, evidence: Evidence) -> bool:
    return (
        # An initial stands for any name that begins with it.
        len(word) == 1
        or word in evidence.vocabulary
        or word in _KINDS
        or word + "s" in evidence.vocabulary
        or _singular(word) in evidence.vocabulary
    )


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word


def _spellings(word: str) -> str:
    kind = _KINDS.get(word)
    if kind is not None:
        return "(?:" + "|".join(spelling for spelling, name in _KINDS.items() if name == kind) + ")"
    if len(word) == 1 and word.isalpha():
        return word + r"\S*"
    return re.escape(_singular(word)) + "(?:s|es)?"


def _in_one_record(words: list[str], evidence: Evidence) -> Found | None:
    """The words spread over the fields of one record: {"first": "Jane", "last": "Doe"}."""
    if len(words) < 2 or not all(word in evidence.vocabulary for word in words):
        return None
    records: dict[str, list[str]] = {}
    for passage in evidence.passages:
        if len(passage.folded) < 80:
            records.setdefault(passage.where.rpartition(".")[0], []).extend(passage.folded.split())
    for where, found in records.items():
        if where and all(word in found for word in words):
            return Found(where, " ".join(words))
    return None


def _with_its_key(words: list[str], evidence: Evidence) -> Found | None:
    """ "Port of Savannah" from {"port": "Savannah"}: what a value is called stands beside it."""
    if len(words) < 2 or evidence.words_of_names.isdisjoint(words):
        return None
    for leaf in evidence.leaves:
        names = set(key_words(leaf.key)) if isinstance(leaf.value, str) else ()
        rest = [word for word in words if word not in names]
        if 0 < len(rest) < len(words) and f" {' '.join(rest)} " in read_text(str(leaf.value)).folded:
            return Found(leaf.where, f"{leaf.key}: {leaf.value}"[:120])
    return None


def _beside_the_name(word: str, evidence: Evidence) -> bool:
    return is_ordinary(word) and (word in _THINGS or word in evidence.plain_words)


def _is_plain(word: str, evidence: Evidence) -> bool:
    """A word that the evidence uses as an ordinary one, or that is one."""
    return (
        is_ordinary(word)
        or word in evidence.plain_words
        or any(stem(word) == stem(plain) for plain in evidence.plain_words if plain[:3] == word[:3])
    )


def _country(codes: tuple[str, ...], evidence: Evidence) -> Found | None:
    """A country by its code, as a value by itself or the name of one."""
    for leaf in evidence.leaves:
        if leaf.key in codes or (isinstance(leaf.value, str) and leaf.value.strip() in codes):
            return Found(leaf.where, leaf.key if leaf.key in codes else str(leaf.value))
    return None


def _state(code: str, evidence: Evidence) -> Found | None:
    for passage in evidence.passages:
        if re.search(rf"(?<!\w){code}(?!\w)", passage.text) or re.search(
            rf"\b{STATES[code]}\b", passage.text.lower()
        ):
            return Found(passage.where, code)
    return None


def _abbreviation(claim: Claim, evidence: Evidence) -> Found | None:
    """The first letters of a name that the evidence has, or a name for letters that it has."""
    letters = claim.text.replace(".", "")
    if letters.isupper() and 2 <= len(letters) <= 6 and letters.isalpha():
        pattern = re.compile(r"\b" + r"\w*\W+(?:(?:of|the|and|for)\W+)?".join(letters) + r"\w*")
        for passage in evidence.passages:
            if found := pattern.search(passage.text):
                return Found(passage.where, found[0])
    initials = "".join(word[0] for word in re.findall(r"[A-Z]\w*", claim.text))
    if len(initials) >= 3:
        for passage in evidence.passages:
            if re.search(rf"(?<!\w){initials}(?!\w)", passage.text):
                return Found(passage.where, initials)
    return None


def _excerpt(passage: Passage, words: str) -> str:
    """A little of a text around some words of it."""
    at = passage.text.lower().find(words[:20].lower())
    start = max(0, at - 40) if at >= 0 else 0
    return " ".join(passage.text[start : start + 120].split())

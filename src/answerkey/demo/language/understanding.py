"""Understanding: a clause of a question, what was recognised in it, and the words that nothing explains."""

import re
from collections.abc import Callable
from datetime import date

import msgspec

from answerkey.demo.language.lexicon import CATEGORY_WORDS, DOCUMENT_WORDS, GROUP_CATEGORIES, KIND_WORDS
from answerkey.demo.language.periods import Period, find_periods
from answerkey.demo.language.vocabulary import DocumentName, Property, Unit, Vocabulary
from answerkey.demo.language.words import STOPWORDS, Token, normalise, tokenise

__all__ = ["Understanding", "understand"]

_PLURAL = re.compile(
    r"\b(?:properties|buildings|portfolio|all (?:of )?(?:our|the|my)|each (?:of )?(?:our |the "
    r")?(?:property|building)|combined|together|across|every (?:property|building)|everything|"
    r"houses)\b"
)
# Notes which characters of the text a slot was read from.
_Mark = Callable[[str, tuple[int, int]], None]
_SINGULAR = re.compile(
    r"\b(?:(?:our|my|the|main|this) (?:\w+ )?(?:property|building|house|place|real estate)|"
    r"property's|building's)\b"
)


class Understanding(msgspec.Struct, frozen=True):
    """A clause and what it names. Every slot may be empty."""

    # normalised text
    text: str
    # the clause as it was written
    original: str
    tokens: list[Token]
    properties: list[Property]
    periods: list[Period]
    categories: list[str]
    # a word for a group of categories that was used ("utilities")
    group: str | None
    # "income", "expense" or "net"
    kind: str | None
    parties: list[str]
    units: list[Unit]
    # documents that are named one by one
    documents: list[DocumentName]
    # types of documents that are named
    document_types: list[str]
    # says "properties", "all", "combined"
    plural: bool
    # says "our property"
    singular: bool
    # slot name → indices of the tokens that said it
    spans: dict[str, frozenset[int]]
    # slots that come from earlier in the conversation
    inherited: frozenset[str] = frozenset()

    def has(self, pattern: str) -> bool:
        """Whether a regular expression occurs in the text, at word boundaries."""
        return re.search(rf"\b(?:{pattern})(?!\w)", self.text) is not None

    def unexplained(self, *slots: str, words: str = "") -> list[str]:
        """The content words that neither these slots nor this pattern of known words account for."""
        explained = set().union(*(self.spans.get(slot, frozenset()) for slot in slots)) if slots else set()
        if words:
            for found in re.finditer(rf"\b(?:{words})(?!\w)", self.text):
                explained |= _covered(self.tokens, found.span())
        return [
            t.text
            for i, t in enumerate(self.tokens)
            if i not in explained and t.text not in STOPWORDS and (len(t.text) > 1 or t.text.isdigit())
        ]


def understand(
    clause: str, vocabulary: Vocabulary, as_of: date, default_year: int | None = None
) -> Understanding:
    """Recognise everything that a clause names."""
    text = normalise(clause)
    tokens = tokenise(text)
    spans: dict[str, set[int]] = {}

    def mark(slot: str, span: tuple[int, int]) -> None:
        spans.setdefault(slot, set()).update(_covered(tokens, span))

    properties = []
    for place in vocabulary.properties:
        hits = [m.span() for m in place.pattern.finditer(text)]
        if hits:
            properties.append(place)
        for hit in hits:
            mark("properties", hit)
    masked = _mask(text, tokens, spans.get("properties", set()))
    periods = find_periods(masked, as_of, default_year)
    for period in periods:
        mark("periods", period.span)
    units = []
    for unit in vocabulary.units:
        found = (
            re.search(rf"\b{re.escape(normalise(unit.label))}\b", text)
            if unit.label.lower().startswith("unit")
            else None
        )
        if found:
            mark("units", found.span())
            units.append(unit)
    if len({u.property_id for u in units} & {p.id for p in properties}) == 1:
        units = [u for u in units if u.property_id in {p.id for p in properties}]
    parties = []
    for name, pattern in vocabulary.parties.items():
        if found := pattern.search(text):
            parties.append(name)
            mark("parties", found.span())
            own = set(normalise(name).split())
            spans["parties"] |= {i for i, t in enumerate(tokens) if t.text in own}
    tenants = {u.tenant for u in vocabulary.units if u.tenant}
    units += [u for u in vocabulary.units if u.tenant in parties and u.tenant in tenants and u not in units]
    documents, types = _documents(text, vocabulary, properties, periods, units, mark)
    categories, group = _categories(text, mark)
    kind = None
    for name, pattern in KIND_WORDS.items():
        for found in pattern.finditer(text):
            kind = kind or name
            mark("kind", found.span())
    named = set().union(*spans.values()) if spans else set()
    for i, token in enumerate(tokens):
        # "formed" is not the "Form" of "Form 1065"
        if (
            i not in named
            and token.text not in STOPWORDS
            and token.stem in vocabulary.descriptions - {"form"}
        ):
            spans.setdefault("details", set()).add(i)
    return Understanding(
        text=text,
        original=clause.strip(),
        tokens=tokens,
        properties=properties,
        periods=periods,
        categories=categories,
        group=group,
        kind=kind,
        parties=parties,
        units=units,
        documents=documents,
        document_types=types,
        plural=_PLURAL.search(text) is not None,
        singular=_SINGULAR.search(text) is not None,
        spans={slot: frozenset(indices) for slot, indices in spans.items()},
    )


def _covered(tokens: list[Token], span: tuple[int, int]) -> set[int]:
    return {i for i, t in enumerate(tokens) if t.start < span[1] and t.end > span[0]}


def _mask(text: str, tokens: list[Token], taken: set[int]) -> str:
    """The text with some tokens blanked: a house number is not a year."""
    letters = list(text)
    for i in taken:
        letters[tokens[i].start : tokens[i].end] = "#" * (tokens[i].end - tokens[i].start)
    return "".join(letters)


def _categories(text: str, mark: _Mark) -> tuple[list[str], str | None]:
    """Categories by the longest phrase at each place; a group word brings all its members."""
    hits: list[tuple[int, int, tuple[str, ...], str | None]] = []
    for name, pattern in CATEGORY_WORDS.items():
        hits += [(m.start(), m.end(), (name,), None) for m in pattern.finditer(text)]
    for name, (pattern, members) in GROUP_CATEGORIES.items():
        hits += [(m.start(), m.end(), members, name) for m in pattern.finditer(text)]
    hits.sort(key=lambda h: (h[0] - h[1], h[0]))
    taken: list[tuple[int, int]] = []
    found: list[tuple[int, tuple[str, ...], str | None]] = []
    for start, end, members, group in hits:
        if all(end <= s or start >= e for s, e in taken):
            taken.append((start, end))
            found.append((start, members, group))
            mark("categories", (start, end))
    found.sort(key=lambda h: h[0])
    categories = list(dict.fromkeys(c for _, members, _ in found for c in members))
    groups = [g for _, _, g in found if g]
    return categories, groups[0] if len(found) == 1 and groups else None


def _documents(
    text: str,
    vocabulary: Vocabulary,
    properties: list[Property],
    periods: list[Period],
    units: list[Unit],
    mark: _Mark,
) -> tuple[list[DocumentName], list[str]]:
    """Documents by title, or by type narrowed down with the property, unit, tenant or year named too."""
    named: list[DocumentName] = []
    types: list[str] = []
    for document in vocabulary.documents:
        if found := document.pattern.search(text):
            mark("documents", found.span())
            named.append(document)
    for name, pattern in DOCUMENT_WORDS.items():
        for found in pattern.finditer(text):
            mark("documents", found.span())
            if name not in types:
                types.append(name)
    candidates = named or [d for d in vocabulary.documents if d.type in types]
    words = {t.stem for t in tokenise(text) if t.text not in STOPWORDS}
    if candidates:
        best = max(len(d.words & words) for d in candidates)
        candidates = [d for d in candidates if len(d.words & words) == best]
    if len(candidates) > 1 and properties:
        candidates = [d for d in candidates if d.property_id in {p.id for p in properties}] or candidates
    if len(candidates) > 1 and units:
        labels = [normalise(u.label) for u in units]
        candidates = [
            d for d in candidates if any(label in normalise(d.title) for label in labels)
        ] or candidates
    if len(candidates) > 1 and periods:
        candidates = [d for d in candidates if str(periods[0].start.year) in d.title] or candidates
    return (candidates if len(candidates) <= 2 else []), types

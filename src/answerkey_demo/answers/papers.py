"""The documents: which there are, what they say, and which of them mention something."""

import math
import re
from typing import Any

from answerkey_demo.knowledge import sentences
from answerkey_demo.language.reading import Reading, Vocabulary
from answerkey_demo.language.words import LEXICON, content_stems, join, normalise, plural, stem, stems
from answerkey_demo.tools import Turn

_Row = dict[str, Any]
# The share of the question's weighty words that a passage must contain.
_COVERAGE = 0.55
# What a passage gains that says what the thing is, where that is the question.
_DEFINITION = 0.1
# A second passage is quoted too if it matches nearly as well.
_AS_GOOD = 0.91
_QUOTE_WORDS = 75
_ASKING = frozenset(map(stem, LEXICON["words"]["asking"].split()))
_SYNONYMS: dict[str, str] = {stem(said): meant for said, meant in LEXICON["papers"].items()}
_WHICH = ("content", "type", "op", "property", "unit", "category", "by", "subject")
_ON_FILE = re.compile(r"\b(?:on file|paperwork|do we have|did we have|do you have|are there)\b")


class Papers:
    """Answers from search_document_content and list_business_documents."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._passages = vocabulary.knowledge.passages

    def asks_which(self, reading: Reading) -> bool:
        """Whether the question is which documents there are."""
        view = reading.view(lambda m: m.kind in _WHICH)
        others = {reading.words[i].text for i in view.left(view.explained(*view.mentions))}
        if reading.has("content", "mention", "says") or others - {"meeting", "annual", "addresses"}:
            return False
        if not re.search(r"\b(?:which|what|list|show|all|any|how many|have|give)\b", reading.text):
            return False
        # "policies" or "minutes", or on file: asks which there are, not what one says
        several = any(reading.words[m.end - 1].text.endswith("s") for m in view.mentions if m.kind == "type")
        listed = several and re.search(r"\b(?:list|show|all|which)\b", reading.text)
        typed = view.has("type") and bool(listed or _ON_FILE.search(reading.text))
        return typed or view.has("content", "files")

    def catalogue(self, reading: Reading, turn: Turn) -> str:
        """The documents on file by type, property and year."""
        types, words = {d["type"] for d in self._vocabulary.documents}, [w.stem for w in reading.words]
        named = reading.all("type") or [t for t in sorted(types) if stem(t) in words]
        years = {day.year for period in reading.periods[:1] for day in (period.start, period.end)}
        given: dict[str, Any] = {"type": named, "property_id": reading.all("property"), "year": list(years)}
        arguments = {name: values[0] for name, values in given.items() if len(values) == 1}
        found = turn.use("list_business_documents", **arguments)["documents"]
        if not found:
            return f"Not on record: none of the {len(self._vocabulary.documents)} documents on file is of that kind."
        kind = f" of the type {arguments['type']}" if "type" in arguments else ""
        return f"{plural(len(found), 'document')}{kind} on file: {'; '.join(d['title'] for d in found)}."

    def quote(self, reading: Reading, turn: Turn) -> str:
        """Quote the best passages, or say that the documents do not have it."""
        which = re.search(r"\b(?:which|what|any|list|all|where)\b", reading.text)
        if which and reading.has("content", "mention"):
            return self._mentions(reading, turn)
        words, document = self._topic(reading), self._document_in_question(reading)
        if document and not words:
            return self._contents(document, turn)
        query = " ".join([reading.original, *(_SYNONYMS[w] for w in words if w in _SYNONYMS)])
        narrow: dict[str, Any] = {"document_id": document["id"]} if document else {}
        if not document and len(reading.all("type")) == 1:
            narrow = {"type": reading.all("type")[0]}
        # where the document that was named does not have it, perhaps another one does
        for narrowed in [narrow, {}] if narrow else [{}]:
            passages = turn.use("search_document_content", query=query, **narrowed)["passages"]
            if good := self._about(reading, passages, words):
                return " ".join(_quote(p, words) for score, p in good[:2] if score >= _AS_GOOD * good[0][0])
        topic = join([f"“{w.text}”" for w in reading.words if w.stem in words][:4]) or "that"
        return (
            f"Not on record: I searched all {len(self._vocabulary.documents)} documents and none of them answers this "
            f"about {topic}. I would rather not guess; if the paper exists, add it to the files."
        )

    def _document_in_question(self, reading: Reading) -> dict[str, Any] | None:
        """The one document that is meant: by title, or by type and the property, unit, tenant or year named too."""
        titled = [m for m in reading.mentions if m.kind == "document"]
        longest = max((m.end - m.first for m in titled), default=0)
        named = [m.value for m in titled if m.end - m.first == longest]
        papers = self._vocabulary.documents
        candidates = [d for d in papers if d["id"] in named or (not named and reading.has("type", d["type"]))]
        units = self._vocabulary.units
        homes = [u for u in units if reading.has("unit", u["id"]) or reading.has("party", u["tenant"])]
        places = {*reading.all("property"), *(u["property_id"] for u in homes)}
        said = [[normalise(u["label"]) for u in homes], [str(p.start.year) for p in reading.periods]]
        asked = content_stems(reading.text)

        def fit(document: dict[str, Any]) -> tuple[bool, bool, bool, int]:
            title = normalise(document["title"])
            label, year = (any(name in title for name in names) for names in said)
            return document["property_id"] in places, label, year, len(content_stems(title) & asked)

        best = max(map(fit, candidates), default=None)
        fitting = [d for d in candidates if fit(d) == best]
        return fitting[0] if len(fitting) == 1 else None

    def _topic(self, reading: Reading) -> list[str]:
        """The stems that the question is about: not whose document it is, not the way of asking."""
        names = ("document", "type", "party", "unit", "property")
        named = reading.explained(*(m for m in reading.mentions if m.kind in names))
        content = [i for i in reading.left(set()) if reading.words[i].stem not in _ASKING]
        own = [i for i in content if i not in named]
        chosen = own or ([] if reading.has("document") else content)
        return list(dict.fromkeys(reading.words[i].stem for i in chosen))

    def _about(self, reading: Reading, passages: list[_Row], words: list[str]) -> list[tuple[float, _Row]]:
        """The passages that are about the question, with how well they match; the best first."""
        if not words:
            return [(p["score"], p) for p in passages[:1]]
        corpus, size = self._vocabulary.corpus, len(self._passages)
        same = {w: {w, *stems(_SYNONYMS.get(w, ""))} for w in words}
        weights = {w: math.log(1 + size / (max(corpus[s] for s in same[w]) or 0.5)) for w in words}
        # a sentence that says what one of the words is: "The seller was …"
        either, good = "|".join(map(re.escape, words)), []
        defining = re.compile(
            rf"\b(?:{either})\w* (?:is|was|are|were) |\b(?:is|was|are|were) the (?:{either})"
        )
        asks_what = re.search(r"\b(?:who|what)\b", reading.text)
        for passage in passages:
            text = content_stems(f"{passage['title']} {passage['heading']} {passage['text']}")
            coverage = sum(weights[w] for w in words if same[w] & text) / sum(weights.values())
            if coverage >= _COVERAGE:
                defines = asks_what and defining.search(normalise(passage["text"]))
                score = coverage * 0.5 + passage["score"] * 0.5 + (_DEFINITION if defines else 0)
                good.append((score, passage))
        return sorted(good, key=lambda pair: -pair[0])

    def _contents(self, document: dict[str, Any], turn: Turn) -> str:
        """What a document has, section by section."""
        title, narrow = document["title"], {"document_id": document["id"], "limit": 20}
        found = turn.use("search_document_content", query=title, **narrow)["passages"]
        order = [p["text"] for p in self._passages]
        found = sorted(found, key=lambda p: order.index(p["text"]))
        lines = [f"{p['heading'] or 'Opening'}: {sentences(p['text'])[0]}" for p in found]
        return f"{title} has {plural(len(found), 'section')}. {' '.join(lines)}"

    def _mentions(self, reading: Reading, turn: Turn) -> str:
        """Which documents mention a property, all of them, or some other thing."""
        addresses = self._vocabulary.address
        places = [addresses[p] for p in reading.all("property")]
        if not places and re.search(r"\b(?:propert(?:y|ies)|buildings?|them|it)\b", reading.text):
            places = list(addresses.values())
        # the street without number and suffix is how the documents may call it
        wanted = {place: normalise(place).split()[-2] for place in places}
        if not wanted:
            topic = " ".join(w.text for w in reading.words if w.stem in self._topic(reading))
            wanted = {topic: topic}
        lines = []
        for label, core in wanted.items():
            found = turn.use("search_document_content", query=core or reading.original, limit=20)["passages"]
            texts = [(p["title"], normalise(f"{p['title']} {p['heading']} {p['text']}")) for p in found]
            titles = dict.fromkeys(title for title, text in texts if core in text)
            where = f"is mentioned in {plural(len(titles), 'document')}: {'; '.join(titles)}"
            lines.append(f"{label} {where}." if titles else f"Not on record: no document mentions {label}.")
        return " ".join(lines)


def _quote(passage: dict[str, Any], words: list[str]) -> str:
    """The passage with its source; of a long one the sentences from the best one on."""
    where = f"{passage['title']} ({passage['heading']})" if passage["heading"] else passage["title"]
    parts = sentences(passage["text"])
    if len(passage["text"].split()) > _QUOTE_WORDS:
        scores = [len(content_stems(sentence) & set(words)) for sentence in parts]
        parts = parts[scores.index(max(scores)) :]
        while len(parts) > 1 and len(" ".join(parts).split()) > _QUOTE_WORDS:
            parts.pop()
    return f"{where} says: “{' '.join(parts)}”"

"""The documents: which there are, what they say, and which of them mention something."""

import math
import re
from typing import Any

from answerkey_demo.answers.wording import join, plural
from answerkey_demo.knowledge import sentences
from answerkey_demo.language.reading import Reading
from answerkey_demo.language.vocabulary import Vocabulary
from answerkey_demo.language.words import LEXICON, STOPWORDS, content_stems, normalise, stem, stems
from answerkey_demo.tools.toolbox import Turn

__all__ = ["Papers"]

# The share of the question's weighty words that a passage must contain; with a close meaning, less.
_COVERAGE, _COVERAGE_CLOSE, _CLOSE = 0.55, 0.3, 0.5
# What a passage gains that says what the thing is, where that is the question.
_DEFINITION = 0.1
# A second passage is quoted too if it matches nearly as well.
_AS_GOOD = 0.91
_QUOTE_WORDS = 75
_ASKING = frozenset(map(stem, LEXICON["words"]["asking"].split()))
_WHICH = ("content", "type", "op", "property", "unit", "category", "by", "subject")
_SYNONYMS = {stem(said): meant for said, meant in LEXICON["papers"].items()}


class Papers:
    """Answers from search_document_content and list_business_documents."""

    def __init__(self, vocabulary: Vocabulary, passages: int) -> None:
        self._vocabulary = vocabulary
        self._passages = passages

    def asks_which(self, reading: Reading) -> bool:
        """Whether the question is which documents there are."""
        if reading.has("content", "mention") or reading.has("content", "says"):
            return False
        reading = reading.view(lambda m: m.kind in _WHICH)
        on_file = re.search(
            r"\bon file\b|\bpaperwork\b|\b(?:do|did) we have\b|\bdo you have\b|\bare there\b", reading.text
        )
        listing = (
            re.search(r"\b(?:which|what|list|show|all|any|how many|have|give)\b", reading.text) is not None
        )
        used = reading.explained(*reading.mentions)
        if [
            i
            for i in reading.left(used)
            if reading.words[i].text not in ("meeting", "annual", "addresses", "about")
        ]:
            return False
        return listing and (
            reading.has("content", "files")
            or (reading.has("type") and _plural_type(reading, on_file is not None))
        )

    def catalogue(self, reading: Reading, turn: Turn) -> str:
        """The documents on file by type, property and year."""
        arguments: dict[str, Any] = {}
        types = reading.all("type") or [c for c in reading.all("category") if c in LEXICON["document_types"]]
        tax = [t for t in ("tax",) if not types and re.search(r"\btax(?:es)?\b", reading.text)]
        if len([*types, *tax]) == 1:
            arguments["type"] = [*types, *tax][0]
        if len(reading.all("property")) == 1:
            arguments["property_id"] = reading.all("property")[0]
        if reading.periods and reading.periods[0].start.year == reading.periods[0].end.year:
            arguments["year"] = reading.periods[0].start.year
        found = turn.use("list_business_documents", **arguments)["documents"]
        if not found:
            total = len(self._vocabulary.documents)
            return f"Not on record: none of the {total} documents on file is of that kind."
        what = f"{plural(len(found), 'document')}{' of the type ' + arguments['type'] if 'type' in arguments else ''}"
        return f"{what} on file: " + "; ".join(d["title"] for d in found) + "."

    def quote(self, reading: Reading, turn: Turn) -> str:
        """Quote the best passages, or say that the documents do not have it."""
        if reading.has("content", "mention") and re.search(
            r"\b(?:which|what|any|list|all|where)\b", reading.text
        ):
            return self._mentions(reading, turn)
        words = self._topic(reading)
        document = self._named(reading)
        if document and not words:
            return self._contents(document, turn)
        others = {w: list(stems(_SYNONYMS[w])) for w in words if w in _SYNONYMS}
        query = " ".join([reading.original, *(_SYNONYMS[w] for w in others)])
        arguments: dict[str, Any] = {"document_id": document} if document else {}
        if not document and len(reading.all("type")) == 1:
            arguments["type"] = reading.all("type")[0]
        good: list[tuple[float, dict[str, Any]]] = []
        for narrowed in [arguments, {}] if arguments else [{}]:
            # where the document that was named does not have it, perhaps another one does
            passages = turn.use("search_document_content", query=query, **narrowed)["passages"]
            good = self._about(reading, passages, words, others)
            if good:
                break
        if not good:
            topic = join([f"“{w.text}”" for w in reading.words if w.stem in words][:4]) or "that"
            return (
                f"Not on record: I searched all {len(self._vocabulary.documents)} documents and none of them answers this "
                f"about {topic}. I would rather not guess; if the paper exists, add it to the files."
            )
        return " ".join(_quote(p, words) for score, p in good[:2] if score >= _AS_GOOD * good[0][0])

    def named(self, reading: Reading) -> str | None:
        """The title of the one document that a question means."""
        document = self._named(reading)
        return next((str(d["title"]) for d in self._vocabulary.documents if d["id"] == document), None)

    def _named(self, reading: Reading) -> str | None:
        """The one document that is meant: by title, or by type and the property, unit, tenant or year named too."""
        rows = self._vocabulary.documents
        titled = [m for m in reading.mentions if m.kind == "document"]
        longest = max((m.end - m.first for m in titled), default=0)
        named = {m.value for m in titled if m.end - m.first == longest}
        candidates = [d for d in rows if d["id"] in named] or [
            d for d in rows if d["type"] in reading.all("type")
        ]
        if not candidates:
            return None
        words = content_stems(reading.text)
        tenants = [
            u
            for u in self._vocabulary.units
            if u["id"] in reading.all("unit") or u["tenant"] in reading.all("party")
        ]
        tests = [
            lambda d: bool(named),
            lambda d: (
                d["property_id"] in reading.all("property")
                or d["property_id"] in [u["property_id"] for u in tenants]
            ),
            lambda d: any(normalise(u["label"]) in normalise(d["title"]) for u in tenants),
            lambda d: any(str(p.start.year) in d["title"] for p in reading.periods),
            lambda d: (
                len(content_stems(d["title"]) & words)
                == max(len(content_stems(c["title"]) & words) for c in candidates)
            ),
        ]
        for test in tests:
            candidates = [d for d in candidates if test(d)] or candidates
        return str(candidates[0]["id"]) if len(candidates) == 1 else None

    def _topic(self, reading: Reading) -> list[str]:
        """The stems that the question is about: not whose document it is, not the way of asking."""
        named = reading.explained(
            *(m for m in reading.mentions if m.kind in ("document", "type", "party", "unit", "property"))
        )
        content = [i for i in reading.left(set()) if reading.words[i].stem not in _ASKING]
        own = [i for i in content if i not in named]
        if not own and reading.has("document"):
            return []
        return list(dict.fromkeys(reading.words[i].stem for i in own or content))

    def _about(
        self, reading: Reading, passages: list[dict[str, Any]], words: list[str], others: dict[str, list[str]]
    ) -> list[tuple[float, dict[str, Any]]]:
        """The passages that are about the question, with how well they match; the best first."""
        if not words:
            return [(p["score"], p) for p in passages[:1]]
        corpus = self._vocabulary.corpus

        def weight(word: str) -> float:
            known = [corpus[w] for w in (word, *others.get(word, [])) if w in corpus]
            return math.log(1 + self._passages / (max(known) if known else 0.5))

        weights = {w: weight(w) for w in words}
        good = []
        for passage in passages:
            text = content_stems(f"{passage['title']} {passage['heading']} {passage['text']}")
            covered = [w for w in weights if w in text or any(o in text for o in others.get(w, []))]
            coverage = sum(weights[w] for w in covered) / sum(weights.values())
            close = passage["similarity"] is not None and passage["similarity"] >= _CLOSE
            if coverage >= _COVERAGE or (close and coverage >= _COVERAGE_CLOSE):
                defines = re.search(r"\b(?:who|what)\b", reading.text) and _defines(passage["text"], words)
                good.append(
                    (coverage * 0.5 + passage["score"] * 0.5 + (_DEFINITION if defines else 0), passage)
                )
        return sorted(good, key=lambda pair: -pair[0])

    def _contents(self, document: str, turn: Turn) -> str:
        """What a document has, section by section."""
        title = next(d["title"] for d in self._vocabulary.documents if d["id"] == document)
        found = turn.use("search_document_content", query=title, document_id=document, limit=20)["passages"]
        lines = [f"{p['heading'] or 'Opening'}: {sentences(p['text'])[0]}" for p in found]
        return f"{title} has {plural(len(found), 'section')}. " + " ".join(lines)

    def _mentions(self, reading: Reading, turn: Turn) -> str:
        """Which documents mention a property, all of them, or some other thing."""
        places = reading.all("property")
        wanted = {self._vocabulary.address[p]: _street(self._vocabulary.address[p]) for p in places}
        if not wanted and re.search(r"\b(?:propert(?:y|ies)|buildings?|them|it)\b", reading.text):
            wanted = {address: _street(address) for address in self._vocabulary.address.values()}
        if not wanted:
            topic = " ".join(
                w.text for w in reading.words if w.text not in STOPWORDS and w.stem not in _ASKING
            )
            wanted = {topic: topic}
        lines = []
        for label, core in wanted.items():
            found = turn.use("search_document_content", query=label or reading.original, limit=20)["passages"]
            titles = dict.fromkeys(
                p["title"] for p in found if core in normalise(f"{p['title']} {p['heading']} {p['text']}")
            )
            if titles:
                lines.append(
                    f"{label} is mentioned in {plural(len(titles), 'document')}: {'; '.join(titles)}."
                )
            else:
                lines.append(
                    f"Not on record: none of the {len(self._vocabulary.documents)} documents mentions {label}."
                )
        return " ".join(lines)


def _plural_type(reading: Reading, on_file: bool) -> bool:
    """Says "policies" or "minutes", or that they are on file: asks which there are, not what one says."""
    said = [reading.words[m.end - 1].text for m in reading.mentions if m.kind == "type"]
    return on_file or (
        any(s.endswith("s") for s in said)
        and re.search(r"\b(?:list|show|all|which)\b", reading.text) is not None
    )


def _defines(text: str, words: list[str]) -> bool:
    """Whether a sentence says what one of the words is: "The seller was …"."""
    return any(
        re.search(rf"\b{w}\w* (?:is|was|are|were) |\b(?:is|was|are|were) the {w}", normalise(text))
        for w in map(re.escape, words)
    )


def _street(address: str) -> str:
    """The street without number and suffix, which is how the documents may call it."""
    words = normalise(address).split()
    return words[-2] if len(words) > 1 else address.lower()


def _quote(passage: dict[str, Any], words: list[str]) -> str:
    where = f"{passage['title']} ({passage['heading']})" if passage["heading"] else passage["title"]
    parts = sentences(passage["text"])
    if len(passage["text"].split()) > _QUOTE_WORDS:
        scores = [len(content_stems(s) & set(words)) for s in parts]
        first = max(range(len(parts)), key=lambda i: (scores[i], -i))
        kept = [parts[first]]
        for sentence in parts[first + 1 :]:
            if len(" ".join([*kept, sentence]).split()) > _QUOTE_WORDS:
                break
            kept.append(sentence)
        parts = kept
    return f"{where} says: “{' '.join(parts)}”"

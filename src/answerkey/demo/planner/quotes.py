"""Document content: search, judge whether what was found is about the question, quote it with its source."""

import math
import re
from typing import Any

from answerkey.demo.language.thesaurus import synonyms
from answerkey.demo.language.understanding import Understanding
from answerkey.demo.language.vocabulary import Vocabulary
from answerkey.demo.language.words import STOPWORDS, normalise, tokenise
from answerkey.demo.passages import sentences
from answerkey.demo.planner.context import Context
from answerkey.demo.planner.wording import join

__all__ = ["Quotes"]

# The share of the question's weighty words that a passage must contain; with a close meaning, less.
_COVERAGE, _COVERAGE_CLOSE, _CLOSE = 0.55, 0.3, 0.5
# What a passage gains that says what the thing is, where that is the question.
_DEFINITION = 0.1
_QUOTE_WORDS = 75
_MENTION = r"mention\w*|refer(?:s|red|ring|ence|ences)?|talk\w*|appears?|named? in|come up"
# Words by which people ask for documents' content; they are not what the content is about.
_ASKING = frozenset(
    """
        document documents say says said state states according mention mentions describe describes
        describing contain contains section clause provision terms agreement policy lease explain
        explained summary summarise summarize tell set require required requirement requirements rule
        rules allowed allow permitted permit happen happens long many must shall kind type company
        companies llc property cover covers covered include includes included list main under read cite
        quote written exactly part parts new papers paperwork official last main handle handled
        regarding decide decided decides specify specified provide provides
    """.split()
)


class Quotes:
    """Answers from search_document_content."""

    def fit(self, u: Understanding) -> list[str] | None:
        """Anything can be looked up in the documents."""
        return []

    def answer(self, u: Understanding, context: Context) -> str:
        """Quote the best passages, or say that the documents do not have it."""
        if u.has(_MENTION) and u.has(
            r"(?:which|what|any|list|all) (?:\w+ )?(?:documents?|files|papers|leases|polic(?:y|ies))|where"
        ):
            return self._mentions(u, context)
        _, more = synonyms(self._words(u))
        query = f"{u.original} {more}".strip()
        arguments: dict[str, Any] = {"query": query}
        if len(u.documents) == 1:
            arguments["document_id"] = u.documents[0].id
        elif len(u.document_types) == 1 and not u.documents:
            arguments["type"] = u.document_types[0]
        passages = context.turn.use("search_document_content", **arguments)["passages"]
        good = self._about(u, passages, context.vocabulary)
        if not good and len(arguments) > 1:
            # the document that was named does not have it: perhaps another one does
            passages = context.turn.use("search_document_content", query=query)["passages"]
            good = self._about(u, passages, context.vocabulary)
        if not good:
            return self._nothing(u, context)
        best = good[0][0]
        chosen = [p for score, p in good if score >= 0.9 * best][:2]
        if (
            not u.plural
            and len(chosen) > 1
            and chosen[0]["document_id"] == chosen[1]["document_id"]
            and good[0][0] > good[1][0]
        ):
            chosen = chosen[:1] if good[1][0] < 0.92 * best else chosen
        return " ".join(_quote(p, self._words(u)) for p in chosen)

    def _words(self, u: Understanding) -> list[str]:
        """The stems that the question is about: not whose document it is, not the way of asking."""
        named = ("documents", "parties", "units", "properties")
        skip = frozenset[int]().union(*(u.spans.get(slot, frozenset()) for slot in named))
        words = [
            t
            for i, t in enumerate(u.tokens)
            if t.text not in STOPWORDS and t.text not in _ASKING and len(t.text) > 1
        ]
        own = [t for t in words if u.tokens.index(t) not in skip]
        return list(dict.fromkeys(t.stem for t in (own or words)))

    def _about(
        self, u: Understanding, passages: list[dict[str, Any]], vocabulary: Vocabulary
    ) -> list[tuple[float, dict[str, Any]]]:
        """The passages that are about the question, with how well they match; the best first."""
        words = self._words(u)
        if not words:
            return [(p["score"], p) for p in passages[:1]]
        others, _ = synonyms(words)

        def weight(word: str) -> float:
            known = [vocabulary.corpus[w] for w in (word, *others.get(word, [])) if w in vocabulary.corpus]
            return math.log(1 + vocabulary.passage_count / (max(known) if known else 0.5))

        weights = {w: weight(w) for w in words}
        total = sum(weights.values())
        good = []
        for passage in passages:
            text = {
                t.stem
                for t in tokenise(normalise(f"{passage['title']} {passage['heading']} {passage['text']}"))
            }
            text |= {part for word in text for part in re.split(r"[-./&']", word)}
            covered = [w for w in weights if w in text or any(o in text for o in others.get(w, []))]
            coverage = sum(weights[w] for w in covered) / total
            similarity = passage["similarity"]
            close = similarity is not None and similarity >= _CLOSE
            if coverage >= _COVERAGE or (close and coverage >= _COVERAGE_CLOSE):
                defines = _DEFINITION if u.has("who|what") and _defines(passage["text"], words) else 0.0
                good.append((coverage * 0.5 + passage["score"] * 0.5 + defines, passage))
        good.sort(key=lambda pair: -pair[0])
        return good

    def _nothing(self, u: Understanding, context: Context) -> str:
        total = context.vocabulary.documents
        topic = join([f"“{t}”" for t in _topic(u)]) or "that"
        return (
            f"Not on record: I searched all {len(total)} documents and none of them answers this "
            f"about {topic}. "
            "I would rather not guess; if the paper exists, add it to the files."
        )

    def _mentions(self, u: Understanding, context: Context) -> str:
        """Which documents mention a property, all of them, or some other thing."""
        known = context.vocabulary.properties
        if u.properties or u.has("propert(?:y|ies)|buildings?|them|it"):
            # the street without number and suffix is how the documents may call it: "9th", "cascade"
            wanted = [(p.label, _street(p.label)) for p in u.properties or known]
        else:
            topic = " ".join(_topic(u))
            wanted = [(topic, topic)]
        lines = []
        for label, core in wanted:
            passages = context.turn.use("search_document_content", query=label, limit=20)["passages"]
            titles = [
                p["title"] for p in passages if core in normalise(f"{p['title']} {p['heading']} {p['text']}")
            ]
            titles = list(dict.fromkeys(titles))
            if titles:
                lines.append(f"{label} is mentioned in {len(titles)} documents: {'; '.join(titles)}.")
            else:
                count = len(context.vocabulary.documents)
                lines.append(f"Not on record: none of the {count} documents mentions {label}.")
        return " ".join(lines)


def _defines(text: str, words: list[str]) -> bool:
    """Whether a sentence says what one of the words is: "The seller was …"."""
    normal = normalise(text)
    return any(
        re.search(rf"\b{w}\w* (?:is|was|are|were) |\b(?:is|was|are|were) the {w}", normal)
        for w in map(re.escape, words)
    )


def _street(address: str) -> str:
    words = normalise(address).split()
    return words[-2] if len(words) > 1 else address.lower()


def _topic(u: Understanding) -> list[str]:
    asking = _ASKING | {"documents", "which", "mention", "mentions"}
    return [t.text for t in u.tokens if t.text not in STOPWORDS and t.text not in asking][:4]


def _quote(passage: dict[str, Any], words: list[str]) -> str:
    where = f"{passage['title']} ({passage['heading']})" if passage["heading"] else passage["title"]
    parts = sentences(passage["text"])
    if len(passage["text"].split()) > _QUOTE_WORDS:
        scores = [len({t.stem for t in tokenise(normalise(s))} & set(words)) for s in parts]
        first = max(range(len(parts)), key=lambda i: (scores[i], -i))
        kept = [parts[first]]
        for sentence in parts[first + 1 :]:
            if len(" ".join([*kept, sentence]).split()) > _QUOTE_WORDS:
                break
            kept.append(sentence)
        parts = kept
    return f"{where} says: “{' '.join(parts)}”"

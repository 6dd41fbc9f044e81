"""The sentences of a reply, and the words around each of its claims."""

import re
from bisect import bisect_right

from answerkey.grounded.arithmetic.clause import Clause
from answerkey.grounded.claims.claim import Claim
from answerkey.grounded.evidence import Evidence
from answerkey.text.dates import Date
from answerkey.text.normalise import folded_text

__all__ = ["Sentences"]

# Where a sentence or a line of a list ends.
_BREAK = re.compile(
    r"(?<=[.!?])(?<!\bNo\.)(?<!\bSt\.)(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bvs\.)(?<!\bpp\.)(?<!\bp\.)(?<!\bSec\.)"
    r"(?<!\bapprox\.)(?<!\bi\.e\.)(?<!\be\.g\.)(?<!\bInc\.)(?<!\bCo\.)(?<!\bJr\.)(?<!\bProf\.)(?<!\b[A-Z]\.)\s+(?=[A-Z0-9$€£\"“*(\[#])|\n+|;\s"
)
# Where one part of a sentence ends and speaks of something else from there on.
_PART = re.compile(
    r",(?!\d)|[()+=→]|\b(?:and|but|while|whereas|or|plus|versus|vs|than|compared|after|against|instead|rather)\b|[–—]"
)
_OF = re.compile(r"\s+(?:out )?of\s+(?:the |our |your |its )?", re.IGNORECASE)
_NEXT_WORD = re.compile(
    r"[\s*_-]*(?:(?:of|different|separate|total|distinct|more|other|new|the|your|our)\s+)?([A-Za-z]+)"
)
_LABEL = re.compile(r":[\s*_]*$")
_LONGEST_SENTENCE = 1_000
_MOST_NUMBERS = 6


class Sentences:
    """A reply's text, cut where its sentences and lines end."""

    def __init__(self, text: str, claims: list[Claim], evidence: Evidence) -> None:
        self.text = text
        self.words = folded_text(text)
        self.question = " ".join(str(leaf.value) for leaf in evidence.own)
        self._question_words = folded_text(self.question)
        self._asked = [fact.value for fact in evidence.numbers if fact.where in ("question", "context")]
        self._claims = claims
        self._spans = _cut(text)
        self._starts = [start for start, _ in self._spans]
        self._cuts: dict[int, list[int]] = {}
        self._folded: dict[str, str] = {}
        self._clauses: dict[int, Clause] = {}
        self._said: dict[tuple[int, re.Pattern[str]], bool] = {}
        self._cues: dict[str, dict[re.Pattern[str], bool]] = {}

    def index(self, claim: Claim) -> int:
        """The number of the sentence that a claim stands in."""
        return bisect_right(self._starts, claim.start) - 1

    def span(self, claim: Claim) -> tuple[int, int]:
        """Where a claim's sentence begins and ends."""
        return self._spans[self.index(claim)]

    def around(self, claim: Claim) -> str:
        """A claim's sentence."""
        return self.text[slice(*self.span(claim))]

    def said_before(self, claim: Claim, words: "re.Pattern[str]") -> bool:
        """Whether the two sentences before a claim's have words of a kind."""
        index = self.index(claim)
        said = self._said.get((index, words))
        if said is None:
            start, end = self._spans[max(0, index - 2)][0], self._spans[index][0]
            said = self._said[index, words] = words.search(self.text, start, end) is not None
        return said

    def dates_beside(self, claim: Claim) -> list[Date]:
        """The other dates of a claim's sentence."""
        at = self.index(claim)
        return [
            other.date
            for other in self._claims
            if other is not claim and other.date is not None and self.index(other) == at
        ]

    def without(self, claim: Claim) -> str:
        """A claim's sentence with blanks in its place: the claim itself does not say what the sentence is about."""
        start, end = self.span(claim)
        return self.text[start : claim.start] + " " * (claim.end - claim.start) + self.text[claim.end : end]

    def part_span(self, claim: Claim, *, with_brackets: bool = False) -> tuple[int, int]:
        """The part of the sentence around a claim, between commas, brackets and conjunctions.

        With brackets: what stands in them belongs to the part before them.
        """
        cuts = self._cuts_of(self.index(claim))
        first = max(cut for cut in cuts if cut <= claim.start)
        last = min((cut for cut in cuts if cut >= claim.end), default=cuts[-1])
        if with_brackets and self.text[first - 1 : first] == "(":
            first = max((cut for cut in cuts if cut < first - 1), default=first)
        return first, last

    def part(self, claim: Claim) -> str:
        """The text of the part around a claim."""
        return self.text[slice(*self.part_span(claim))]

    def same_line(self, first: Claim, second: Claim) -> bool:
        """Whether no line ends between two claims."""
        return "\n" not in self.text[first.end : second.start]

    def folded(self, text: str) -> str:
        """The folded words of a part of the reply."""
        if text not in self._folded:
            self._folded[text] = folded_text(text)
        return self._folded[text]

    def clause(self, claim: Claim) -> Clause:
        """The words around a claim, and what they may say of how its figure came about."""
        if claim.start not in self._clauses:
            self._clauses[claim.start] = self._make_clause(claim)
        return self._clauses[claim.start]

    def _make_clause(self, claim: Claim) -> Clause:
        start, end = self.span(claim)
        header = self._header(claim)
        sentence = self.text[start:end] + header
        following = _NEXT_WORD.match(self.text, claim.end, end)
        others = [
            other.quantity.value
            for other in self._claims
            if other.quantity is not None and other is not claim and start <= other.start < end
        ]
        before = self.text[start : claim.start]
        return Clause(
            text=sentence,
            before=before,
            written=claim.text,
            words=self.folded(sentence),
            question_words=self._question_words,
            next_word=following[1] if following else "",
            header=header.split()[-1] if header.split() else "",
            labelled=_LABEL.search(before) is not None,
            part=self.part(claim).partition(":")[0],
            part_of=self._whole_of(claim),
            direction=_direction(self.text, claim, sentence),
            alone=not others,
            cues=self._cues.setdefault(sentence, {}),
            numbers=tuple((others + self._asked)[:_MOST_NUMBERS]),
        )

    def _header(self, claim: Claim) -> str:
        """The heading of a table's column, which speaks for each of its cells; "change" for a figure with a sign."""
        signed = (
            " change"
            if self.text[claim.start - 1 : claim.start] in ("+", "-", "−", "±") or claim.text[0] in "-−+"
            else ""
        )
        line = self.text.rfind("\n", 0, claim.start) + 1
        column = self.text.count("|", line, claim.start)
        if not column:
            return signed
        top = line
        while top > 0 and "|" in self.text[self.text.rfind("\n", 0, top - 1) + 1 : top - 1]:
            top = self.text.rfind("\n", 0, top - 1) + 1
        cells = self.text[top : self.text.find("\n", top)].split("|")
        return f"{signed} {cells[column].strip()}" if top < line and column < len(cells) else signed

    def _whole_of(self, claim: Claim) -> float:
        """The whole of "three of five"."""
        of = _OF.match(self.text, claim.end)
        for other in self._claims if of else ():
            if of and other.start == of.end() and other.quantity is not None:
                return other.quantity.value
        return 0.0

    def _cuts_of(self, index: int) -> list[int]:
        if index not in self._cuts:
            start, end = self._spans[index]
            self._cuts[index] = [
                start,
                *(found.end() for found in _PART.finditer(self.text, start, end)),
                end,
            ]
        return self._cuts[index]


_DOWN = re.compile(
    r"\b(?:down|fell|dropped|declined|decreased|shrank|decrease|drop|decline)\b", re.IGNORECASE
)
_UP = re.compile(r"\b(?:up|rose|grew|increased|climbed|gained|increase|growth|rise)\b", re.IGNORECASE)


def _direction(text: str, claim: Claim, sentence: str) -> int:
    """−1 for a change downwards, 1 for one upwards, 0 if the sentence does not tell."""
    if claim.text[0] in "-−" or text[claim.start - 1 : claim.start] in ("-", "−"):
        return -1
    if claim.text[0] == "+" or text[claim.start - 1 : claim.start] == "+":
        return 1
    down, up = _DOWN.search(sentence) is not None, _UP.search(sentence) is not None
    return 0 if down == up else (-1 if down else 1)


def _cut(text: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for end in (*(found.end() for found in _BREAK.finditer(text)), len(text) + 1):
        # What goes on for longer is no sentence: its words say nothing of a claim that far off.
        while end - start > _LONGEST_SENTENCE:
            spans.append((start, start + _LONGEST_SENTENCE))
            start += _LONGEST_SENTENCE
        spans.append((start, end))
        start = end
    return spans

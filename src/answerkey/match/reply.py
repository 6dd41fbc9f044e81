"""One reply to one question, prepared: its folded words in clauses and sentences, and what a feature asks of each."""

import re
from bisect import bisect_right
from functools import cached_property

from answerkey.match.vocabulary import CUES
from answerkey.match.wanted import Asked
from answerkey.text.dates import Date, find_dates
from answerkey.text.normalise import FUNCTION_WORDS, folded_text, span_of_words, stem
from answerkey.text.quantities import Quantity, find_quantities

__all__ = ["Clause", "Reply"]

# The end of a sentence, a line or a clause. Titles and initials do not end one.
_BREAK = re.compile(
    # The look ahead lets the engine pass over letters at once.
    r"(?=[.!?…。！？\n,;–—()|\s])(?:"
    r"(?:(?<!\b[A-Za-z])(?<!\b[DMS][rst])(?<!\b(?:Mrs|etc|vs\.))(?<!\bNo)[.!?…]+[\"”’')*\]]*(?=\s|$)|[。！？]|\n+)"
    r"|[,;–—()|](?=\s|$)|\s(?=[abempsuwy])(?=(?:and|but|while|whereas|und|aber|sondern|et|mais|y|pero|ma)\s))"
)
_ABSTAINS = re.compile(
    r"(?:could|can|did|do|was|am|is|has|have)(?:\s*not|n['’]t)(?: been)?(?: able to| aware| sure)?"
    r"(?: find| know| have| determine| provide| any| enough)* (?:any |enough |the |specific )*"
    r"(?:information|answer|record|data|evidence)"
    r"|not sure|unable to|no information|don['’]t know|not clear|unclear|can(?:no|['’])t (?:say|tell|find|determine)",
    re.IGNORECASE,
)
_BEGINNING = 400
# One of these is in whatever `_ABSTAINS` finds.
_ABSTAINING = ("not", "n't", "n’t", "unable to", "no information", "unclear", "can’t")
_NUMBERED = re.compile(r"\bno (?=[a-z]*[0-9])")


class Clause:
    """A stretch between marks: its folded words, and where it stands in the text and among the folded words."""

    __slots__ = ("_stems", "at", "end", "folded", "sentence", "start")

    def __init__(self, start: int, end: int, sentence: int, folded: str, at: int) -> None:
        self.start, self.end, self.sentence, self.folded, self.at = start, end, sentence, folded, at
        self._stems: frozenset[str] | None = None

    @property
    def stems(self) -> frozenset[str]:
        if self._stems is None:
            self._stems = frozenset(map(stem, self.folded.split()))
        return self._stems


class Reply:
    """What is costly is worked out when first asked for, and kept."""

    def __init__(self, text: str, asked: Asked) -> None:
        self.text, self.asked = text, asked
        self.clauses: list[Clause] = []
        # Index of the first clause of each sentence, and its last character's mark.
        self.sentences: list[int] = [0]
        self.marks: list[str] = []
        at, start, parts = 1, 0, [" "]
        for end, after, mark in (
            *((m.start(), m.end(), m[0]) for m in _BREAK.finditer(text)),
            (len(text), 0, "\n"),
        ):
            folded = folded_text(text[start:end])[1:]
            if " no " in folded or folded.startswith("no "):
                # "No. 5" is no denial.
                folded = _NUMBERED.sub("number ", folded)
            if folded != " ":
                self.clauses.append(Clause(start, end, len(self.marks), folded, at))
                parts.append(folded)
                at += len(folded)
            if mark[0] in ".!?…\n。！？" and len(self.clauses) > self.sentences[-1]:
                self.sentences.append(len(self.clauses))
                self.marks.append(mark)
            start = after
        # " w1 w2 … ": a phrase is found in it with its word boundaries by one substring search.
        self.joined = "".join(parts)
        self._offsets = [clause.at for clause in self.clauses]

    def clause_at(self, at: int) -> int:
        """The clause of an offset in `joined`."""
        return max(0, bisect_right(self._offsets, at + 1) - 1)

    def offset_of(self, place: int) -> int:
        """The offset in `joined` of the word that begins at a character of the text."""
        index = max(0, bisect_right(self._starts, place) - 1)
        clause = self.clauses[index]
        before = folded_text(self.text[clause.start : place]).strip()
        return clause.at + len(before) if before else clause.at - 1

    @cached_property
    def _starts(self) -> list[int]:
        return [clause.start for clause in self.clauses]

    def sentence_of(self, clause: int) -> tuple[int, int]:
        """From where to where a clause's sentence stands in `joined`."""
        number = self.clauses[clause].sentence
        last = self.sentences[number + 1] if number + 1 < len(self.sentences) else len(self.clauses)
        return self.clauses[self.sentences[number]].at - 1, (
            self.clauses[last].at if last < len(self.clauses) else len(self.joined)
        )

    def span(self, at: int, end: int) -> tuple[int, int]:
        """The span in the text of the folded words from one offset of `joined` to another."""
        first, last = self.clauses[self.clause_at(at)], self.clauses[self.clause_at(end - 2)]
        from_word = self.joined.count(" ", first.at - 1, at + 1) - 1
        to_word = self.joined.count(" ", last.at - 1, end - 1) - 1
        start = span_of_words(self.text[first.start : first.end], from_word, from_word)[0]
        stop = span_of_words(self.text[last.start : last.end], to_word, to_word)[1]
        return first.start + start, last.start + stop

    @cached_property
    def words(self) -> list[str]:
        return self.joined.split()

    @cached_property
    def stem_set(self) -> frozenset[str]:
        return frozenset(map(stem, self.words))

    @cached_property
    def squeezed(self) -> str:
        """Without spaces: what stands in the reply as two words stands here as one."""
        return self.joined.replace(" ", "")

    @cached_property
    def by_letter(self) -> dict[str, list[str]]:
        """The distinct words of four letters and more by their first letter."""
        found: dict[str, list[str]] = {}
        for word in dict.fromkeys(self.words):
            if len(word) >= 4:
                found.setdefault(word[0], []).append(word)
        return found

    @cached_property
    def told(self) -> list[str]:
        """The words that tell something: neither in the question nor function words."""
        return [w for w in self.words if w not in FUNCTION_WORDS and stem(w) not in self.asked.stems]

    @cached_property
    def _first_letters(self) -> str:
        """The first letters of the words; of " us " and its like both."""
        return "".join(
            word if len(word) == 2 and word not in FUNCTION_WORDS else word[0] for word in self.words
        )

    def spelled_out(self, acronym: str) -> int:
        """The offset of words that begin with the letters of an acronym, function words included or not; -1 if there are none."""
        if acronym in self._first_letters:
            return 0
        telling = "".join(word[0] for word in self.words if word not in FUNCTION_WORDS)
        return 0 if acronym in telling else -1

    @cached_property
    def quantities(self) -> list[Quantity]:
        return find_quantities(self.text)

    @cached_property
    def dates(self) -> list[Date]:
        return list(find_dates(self.text))

    @cached_property
    def abstains(self) -> bool:
        """Whether the reply begins by saying that it does not know."""
        beginning = self.text[:_BEGINNING].lower()
        if not any(map(beginning.__contains__, _ABSTAINING)):
            return False
        return _ABSTAINS.search(beginning) is not None

    @cached_property
    def overlaps(self) -> list[float]:
        """For each clause, in a table with its row's first cell and its column's head, how much of the question it repeats."""
        weights = self.asked.weights
        total = sum(weights.values()) or 1.0
        tables = "|" in self.text
        if weights.keys().isdisjoint(self.stem_set):
            return [0.0] * len(self.clauses)
        found = []
        for index, clause in enumerate(self.clauses):
            stems = clause.stems & weights.keys()
            if tables:
                stems |= self._heads(index) & weights.keys()
            found.append(sum([weights[one] for one in stems]) / total if stems else 0.0)
        return found

    def _heads(self, index: int) -> frozenset[str]:
        """The stems of the first cell of a clause's row and of the first row's cell above it, where there is a table."""
        clause = self.clauses[index]
        first = self.sentences[clause.sentence]
        if "|" not in self.text[max(0, clause.start - 3) : clause.end + 3]:
            return frozenset()
        row = clause.sentence
        while row and row > clause.sentence - 60:
            end = self.clauses[self.sentences[row] - 1].end
            if "|" not in self.text[end : end + 3]:
                break
            row -= 1
        above = self.sentences[row] + index - first
        head = self.clauses[above].stems if above < first else frozenset()
        return self.clauses[first].stems | head

    @cached_property
    def names_by_sentence(self) -> list[int]:
        """How many of the question's names and figures each sentence has."""
        found = [0] * len(self.marks)
        if not self.asked.names.isdisjoint(self.stem_set):
            for clause in self.clauses:
                found[clause.sentence] += len(self.asked.names & clause.stems)
        return found

    @cached_property
    def not_found(self) -> int:
        """How many of the first sentences say that something is not found, given or known."""
        return sum(
            {"denies", "unknowns"} <= self.cues_of(number) for number in range(min(20, len(self.marks)))
        )

    @cached_property
    def tells_now(self) -> bool:
        return self.has("current") and any(
            "current" in self.cues_of(number) for number in range(min(20, len(self.marks)))
        )

    def has(self, cue: str) -> bool:
        """Whether a cue is anywhere in the reply."""
        return not CUES[cue].isdisjoint(self.words)

    @cached_property
    def cues(self) -> dict[int, frozenset[str]]:
        return {}

    def cues_of(self, sentence: int) -> frozenset[str]:
        """The names of the cues that a sentence has."""
        known = self.cues.get(sentence)
        if known is None:
            last = self.sentences[sentence + 1] if sentence + 1 < len(self.sentences) else len(self.clauses)
            words = frozenset(
                "".join(c.folded for c in self.clauses[self.sentences[sentence] : last]).split()
            )
            known = frozenset(name for name, cue in CUES.items() if not cue.isdisjoint(words))
            self.cues[sentence] = known
        return known

"""Links: where each figure, date, name, id and quote of a reply stands in its evidence, and what was found nowhere.

A link says where to look, never that the statement is right; what has none is listed, never called wrong.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence

import msgspec

from answerkey.grounded.evidence import MOST_EVIDENCE, Evidence, gather_evidence
from answerkey.grounded.lookup import Cell, Lookup, Stretch
from answerkey.grounded.marks import Figure, as_stated, find_marks
from answerkey.grounded.names import Name, find_names, find_quotes
from answerkey.grounded.words import WORD, Sentences, Words, novelty_of, word_key
from answerkey.model.link import Link
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.text.dates import Date

__all__ = ["MOST_REPLY", "Links", "TooLargeError", "describe", "link_reply"]

# A longer reply is not searched.
MOST_REPLY = 50_000
# Characters on each side of a mention that speak of it.
_REACH = 90
_KINDS: dict[type, str] = {Figure: "figure", Date: "date", int: "time", str: "id"}
_LIST_MARKS = frozenset(".)\ufe0f")


class TooLargeError(ValueError):
    """A reply or its evidence is larger than what is searched."""


class Links(msgspec.Struct, frozen=True):
    """The links of one reply."""

    items: tuple[Link, ...]

    @property
    def linked(self) -> float | None:
        """The share of the items that have a link; None without an item."""
        return sum(bool(item.where) for item in self.items) / len(self.items) if self.items else None


def link_reply(question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()) -> Links:
    """The links of a reply into its tool results, sources, arguments and question; raises TooLargeError."""
    return _Linking(reply.text or "", gather_evidence(question, reply, earlier)).links()


def describe(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()
) -> tuple[Links, float | None]:
    """The links of a reply, and its novelty; raises TooLargeError."""
    linking = _Linking(reply.text or "", gather_evidence(question, reply, earlier))
    return linking.links(), novelty_of(linking.words, linking.lookup.words)


class _Linking:
    """The search for one reply's links."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        if len(text) > MOST_REPLY:
            raise TooLargeError(f"the reply has {len(text):,} characters, more than {MOST_REPLY:,}")
        if evidence.length > MOST_EVIDENCE:
            raise TooLargeError(f"the evidence has more than {MOST_EVIDENCE:,} characters")
        self._text = text
        self._evidence = evidence
        self.words = Words(text)
        self._sentences = Sentences(text)
        self._marks = find_marks(text, self.words)
        self._names = [*find_quotes(text), *find_names(text, self.words, self._marks)]
        wanted = {word_key(word) for one in self._names for word in WORD.findall(text[one.start : one.end])}
        self.lookup = Lookup(evidence, wanted, len(self._marks) + len(self._names))
        # What each sentence takes from the evidence.
        self._stated: dict[int, list[Cell]] = defaultdict(list)

    def links(self) -> Links:
        """Direct ones first: what a sentence states tells what its other figures may be made of."""
        if not self._evidence.spots:
            return Links(())
        found: list[Link] = []
        left: list[Figure] = []
        for said, start, end in self._marks:
            if isinstance(said, Figure):
                if _is_list_number(self._text, said):
                    continue
                said = as_stated(self._text, said)
            best = self._best(start, end, self.lookup.find(said))
            if best is None and isinstance(said, Figure):
                left.append(said)
            else:
                found.append(self._link(start, end, _KINDS[type(said)], best))
        for name in self._names:
            found += self._worded(name)
        found += self._derived(left)
        return Links(tuple(sorted(found, key=lambda item: item.start)))

    def _derived(self, left: list[Figure]) -> Iterator[Link]:
        if not left:
            return
        from answerkey.grounded.derived import Derived  # it loads numpy, which most replies do without

        derived = Derived(self._evidence, self._cells())
        for figure in left:
            number = self._sentences.number(figure.start)
            formula = derived.find(figure, number, self._stated.get(number, ()))
            at = None if formula is None else Stretch(formula.spot.start, formula.spot.end, formula.how)
            yield self._link(figure.start, figure.end, "figure", at)

    def _cells(self) -> Iterator[Cell]:
        """The figures that are the whole value of a cell."""
        for figure in self.lookup.figures:
            spot = self._evidence.spot_at(figure.start)
            if spot.cell and figure.end - figure.start >= spot.end - spot.start - 2:
                negative = self._evidence.text[spot.start] in "-−"
                yield -figure.value if negative else figure.value, spot

    def _best(self, start: int, end: int, stretches: Sequence[Stretch]) -> Stretch | None:
        """Of several places the one whose surroundings speak most of what the sentence does.

        A figure that may be there by chance needs a word in common with its place.
        """
        if not stretches:
            return None
        sentence = self._sentences.number(start)
        best, most = stretches[0], -1.0
        if len(stretches) > 1 or best.by_chance:
            first, last = self._sentences.bounds(sentence)
            words = self.words.between(max(first, start - _REACH), start)
            words |= self.words.between(end, min(last, end + _REACH))
            for stretch in stretches:
                shared = len(words & self.lookup.speaks_of(stretch)) - (0.5 if stretch.how else 0.0)
                if shared > most and (shared > 0 or not stretch.by_chance):
                    best, most = stretch, shared
            if most < 0 and best.by_chance:
                return None
        self._stated[sentence].append(self.lookup.stated(best.start))
        return best

    def _worded(self, name: Name) -> Iterator[Link]:
        """A name or quote; of a name that is found in part, its parts."""
        for start, end, stretches in self.lookup.worded(self._text, name):
            doubtful = name.doubtful and start == name.start
            if doubtful:
                # A word that begins a sentence is a name if the evidence writes it as one, or has it in a table.
                stretches = [one for one in stretches if self._is_name(one)]
            best = self._best(start, end, stretches)
            if best is not None or not (doubtful and len(self._text[start:end].split()) == 1):
                yield self._link(start, end, name.kind, best)

    def _is_name(self, at: Stretch) -> bool:
        return self._evidence.spot_at(at.start).record >= 0 or self._evidence.text[at.start].isupper()

    def _link(self, start: int, end: int, kind: str, at: Stretch | None) -> Link:
        text = self._text[start:end]
        if at is None:
            return Link(text, start, end, kind)
        spot = self._evidence.spot_at(at.start)
        found, span = self._evidence.text[at.start : at.end], (at.start - spot.start, at.end - spot.start)
        return Link(text, start, end, kind, spot.where, found, span, self._evidence.row_label(spot), at.how)


def _is_list_number(text: str, figure: Figure) -> bool:
    """ "1." at the beginning of a line, or a mark such as [2]."""
    before, after = text[max(0, figure.start - 4) : figure.start], text[figure.end : figure.end + 1]
    if before[-1:] == "[" and after == "]":
        return True
    opens = (figure.start < 3 or "\n" in before) and not before.rpartition("\n")[2].strip(" #*")
    return opens and figure.value < 100 and after in _LIST_MARKS

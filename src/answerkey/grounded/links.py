"""Links: where each figure, date, name, id and quote of a reply stands in its evidence, and what was found nowhere.

A link says where to look, never that the statement is right; what has none is listed, never called wrong.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from answerkey.grounded.derived import Cell, Derived
from answerkey.grounded.evidence import MOST_EVIDENCE, Evidence, gather_evidence
from answerkey.grounded.figures import Figure
from answerkey.grounded.lookup import Lookup, Stretch
from answerkey.grounded.mentions import Mention, find_mentions
from answerkey.grounded.words import Words, novelty_of
from answerkey.model.question import Question
from answerkey.model.reply import Reply

__all__ = ["MOST_REPLY", "Link", "Links", "TooLargeError", "describe", "find_links", "link_reply"]

# A longer reply is not searched.
MOST_REPLY = 2_000_000
# Characters on each side of a mention that speak of it.
_REACH = 90


class TooLargeError(ValueError):
    """A reply or its evidence is larger than what is searched."""


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure, date, name, id or quote of a reply."""

    # As it stands in the reply, and where.
    text: str
    start: int
    end: int
    # "figure", "date", "time", "id", "quote", "name".
    kind: str
    # Where it stands: tool_calls[0].result[2].balance, sources[1].text; empty: found nowhere.
    where: str = ""
    # What stands there,
    found: str = ""
    # from which to which character of the value or passage.
    span: tuple[int, int] | None = None
    # What the record is called, in a table.
    row: str = ""
    # Empty: as it is; otherwise "rounded", "as a share", "sum of amount", …
    how: str = ""


class Links(msgspec.Struct, frozen=True):
    """The links of one reply."""

    items: tuple[Link, ...]

    @property
    def linked(self) -> float | None:
        """The share of the items that have a link; None without an item."""
        return sum(bool(item.where) for item in self.items) / len(self.items) if self.items else None


def link_reply(question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()) -> Links:
    """The links of a reply into its tool results, sources, arguments and question; raises TooLargeError."""
    return find_links(reply.text or "", gather_evidence(question, reply, earlier))


def describe(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]] = ()
) -> tuple[Links, float | None]:
    """The links of a reply, and its novelty; raises TooLargeError."""
    evidence = gather_evidence(question, reply, earlier)
    return find_links(reply.text or "", evidence), novelty_of(reply.text or "", (evidence.text,))


def find_links(text: str, evidence: Evidence) -> Links:
    """The links of a text into gathered evidence; raises TooLargeError."""
    if len(text) > MOST_REPLY:
        raise TooLargeError(f"the reply has {len(text):,} characters, more than {MOST_REPLY:,}")
    if evidence.length > MOST_EVIDENCE:
        raise TooLargeError(f"the evidence has more than {MOST_EVIDENCE:,} characters")
    return Links(tuple(_Linking(text, evidence).links()))


class _Linking:
    """The search for one reply's links."""

    def __init__(self, text: str, evidence: Evidence) -> None:
        self._text = text
        self._evidence = evidence
        self._words = Words(text)
        self._mentions = find_mentions(text, self._words)
        self._lookup = Lookup(evidence, text, self._mentions)
        # What each sentence takes from the evidence.
        self._stated: dict[int, list[Cell]] = defaultdict(list)

    def links(self) -> list[Link]:
        """Direct ones first: what a sentence states tells what its other figures may be made of."""
        found: list[Link] = []
        left: list[tuple[Mention, Figure]] = []
        for mention in self._mentions if self._evidence.spots else ():
            if mention.kind in ("name", "quote"):
                found += self._worded(mention)
                continue
            best = self._best(mention, self._lookup.find(mention))
            if best is None and isinstance(mention.said, Figure):
                left.append((mention, mention.said))
            else:
                found.append(self._link(mention, best))
        derived = Derived(self._evidence, self._lookup.cells()) if left else None
        for mention, figure in left if derived else ():
            number = self._words.sentence(mention.start)
            around = [
                cell for near in (number - 1, number, number + 1) for cell in self._stated.get(near, ())
            ]
            formula = derived.find(figure, number, self._stated.get(number, ()), around) if derived else None
            at = None if formula is None else Stretch(formula.spot.start, formula.spot.end, formula.how)
            found.append(self._link(mention, at))
        return sorted(found, key=lambda item: item.start)

    def _best(self, mention: Mention, stretches: Iterable[Stretch]) -> Stretch | None:
        """Of several places the one whose surroundings speak most of what the sentence does.

        A figure that may be there by chance needs a word in common with its place.
        """
        words: set[str] | None = None
        best, most = None, -1.0
        for stretch in stretches:
            if words is None:
                words = self._words.around(mention.start, mention.end, _REACH)
            shared = len(words & self._lookup.speaks_of(stretch)) - (0.5 if stretch.how else 0.0)
            if shared > most and (shared > 0 or not stretch.by_chance):
                best, most = stretch, shared
        if best is not None:
            self._stated[self._words.sentence(mention.start)].append(self._lookup.stated(best.start))
        return best

    def _worded(self, mention: Mention) -> Iterator[Link]:
        """A name or quote; of a name that is found in part, its parts."""
        for start, end, stretches in self._lookup.worded(mention):
            part = Mention(start, end, mention.kind)
            if mention.doubtful and start == mention.start:
                # A word that begins a sentence is a name if the evidence writes it as one, or has it in a table.
                stretches = [one for one in stretches if self._is_name(one)]
            best = self._best(part, stretches)
            if best is not None or not (
                mention.doubtful and start == mention.start and self._is_one_word(start, end)
            ):
                yield self._link(part, best)

    def _is_name(self, stretch: Stretch) -> bool:
        return (
            self._evidence.spot_at(stretch.start).record >= 0 or self._evidence.text[stretch.start].isupper()
        )

    def _is_one_word(self, start: int, end: int) -> bool:
        return len(self._text[start:end].split()) == 1

    def _link(self, mention: Mention, stretch: Stretch | None) -> Link:
        text = self._text[mention.start : mention.end]
        if stretch is None:
            return Link(text, mention.start, mention.end, mention.kind)
        spot = self._evidence.spot_at(stretch.start)
        return Link(
            text,
            mention.start,
            mention.end,
            mention.kind,
            spot.where,
            self._evidence.text[stretch.start : stretch.end],
            (stretch.start - spot.start, stretch.end - spot.start),
            self._evidence.row_label(spot),
            stretch.how,
        )

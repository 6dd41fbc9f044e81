"""Conversations: what was asked before, and how a follow-up ("And in September?") becomes a full question."""

import re
from collections import OrderedDict
from datetime import date
from threading import Lock

from answerkey.demo.language.understanding import Understanding, understand
from answerkey.demo.language.vocabulary import Vocabulary

__all__ = ["Conversation", "Conversations", "complete"]

_MAX_CONVERSATIONS = 1_000
_CUE = re.compile(r"^(?:and|but|also|then|so|what about|how about|what of|same|now|ok(?:ay)?,?)\b")
_PRONOUN = re.compile(
    r"\b(?:it|its|they|their|them|there|those|these|that|this|she|he|her|his|him|the same)\b"
)
# Words of a second clause that has no subject of its own.
_ELLIPSIS = r"sent|send|bills?|billed|paid|costs?|work|vendors?|contractors?|charged?|amounts?|dates?|did"


class Conversation:
    """The last clause that was answered in a conversation."""

    def __init__(self) -> None:
        self.last: Understanding | None = None
        # name of the skill that answered it
        self.skill = ""
        # question and answer of every turn, for a brain that shows them to a model
        self.history: list[tuple[str, str]] = []


class Conversations:
    """Conversations by id; the one that was not used for the longest time is forgotten first."""

    def __init__(self, limit: int = _MAX_CONVERSATIONS) -> None:
        self._limit = limit
        self._known: OrderedDict[str, Conversation] = OrderedDict()
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, key: str) -> Conversation:
        """The conversation with this id, new if unknown."""
        with self._lock:
            conversation = self._known.pop(key, None) or Conversation()
            self._known[key] = conversation
            while len(self._known) > self._limit:
                self._known.popitem(last=False)
            return conversation


def complete(
    clause: str,
    conversation: Conversation,
    vocabulary: Vocabulary,
    as_of: date,
    *,
    same_question: bool = False,
) -> Understanding:
    """Understand a clause; where it leans on the one before, fill in what it leaves out.

    `same_question`: the one before is part of the same question.
    """
    u = understand(clause, vocabulary, as_of)
    last = conversation.last
    if last is None:
        return u
    cue = _CUE.search(u.text) is not None
    pronoun = _PRONOUN.search(u.text) is not None
    if same_question and conversation.skill == "Transactions" and not u.unexplained("kind", words=_ELLIPSIS):
        # "What were our legal fees, and who sent the bill?"
        return understand(f"{last.text.rstrip('?. ')} {u.text}", vocabulary, as_of)
    if not cue and not pronoun:
        return u
    year = last.periods[0].start.year if last.periods else None
    u = understand(clause, vocabulary, as_of, default_year=year)
    slots = [s for s in ("periods", "properties", "units", "categories", "parties") if getattr(u, s)]
    rest = u.unexplained(
        *slots, "kind", words=r"year|month|quarter|same|thing|period|one|unit|property|building|instead"
    )
    if cue and slots and not rest:
        return understand(_substitute(last, u, slots), vocabulary, as_of)
    if pronoun and not slots and not rest and "details" in last.spans:
        # "Who painted Unit D?" – "What did it cost?"
        return understand(f"{last.text.rstrip('?. ')} {u.text}", vocabulary, as_of)
    return understand(
        _append(u, last, pronoun, conversation.skill, vocabulary), vocabulary, as_of, default_year=year
    )


def _substitute(last: Understanding, u: Understanding, slots: list[str]) -> str:
    """The earlier question with the newly named things in the place of the old ones."""
    text = last.text
    pieces: list[tuple[int, int, str]] = []
    tail = ""
    for slot in slots:
        new = _said(u, slot)
        old = sorted(last.spans.get(slot, frozenset()))
        if slot == "units" and "parties" in slots:
            continue
        if not old and slot in ("units", "parties"):
            old = sorted(last.spans.get("parties" if slot == "units" else "units", frozenset()))
        if old:
            pieces.append((last.tokens[old[0]].start, last.tokens[old[-1]].end, new))
        else:
            tail += f" {'in' if slot == 'periods' else 'for'} {new}"
    for start, end, new in sorted(pieces, reverse=True):
        text = text[:start] + new + text[end:]
    return text.rstrip("?. ") + tail


def _said(u: Understanding, slot: str) -> str:
    if slot == "periods":
        return " and ".join(re.sub(r" \(.*\)", "", p.label) for p in u.periods)
    if slot == "properties":
        return " and ".join(p.label for p in u.properties)
    indices = sorted(u.spans.get(slot, frozenset()))
    if not indices and slot == "units":
        return " and ".join(unit.label for unit in u.units)
    return u.text[u.tokens[indices[0]].start : u.tokens[indices[-1]].end]


def _append(u: Understanding, last: Understanding, pronoun: bool, skill: str, vocabulary: Vocabulary) -> str:
    """The new question followed by the things of the earlier one that it does not name itself."""
    extra = []
    if not u.units and last.units and pronoun:
        places = {p.id: p.label for p in vocabulary.properties}
        extra.append(" and ".join(f"{unit.label} at {places[unit.property_id]}" for unit in last.units))
    elif not u.properties and last.properties:
        extra.append(" and ".join(p.label for p in last.properties))
    elif not u.properties and last.plural and pronoun:
        extra.append("all our properties")
    elif not u.properties and last.singular and pronoun:
        extra.append("our property")
    if not u.documents and not u.document_types and last.documents and skill in ("Quotes", "DocumentDates"):
        extra.append(f"in the {last.documents[0].title}")
    if not u.periods and last.periods and (u.categories or u.kind):
        extra.append(f"in {re.sub(r' [(].*[)]', '', last.periods[0].label)}")
    return u.original.rstrip("?. ") + (" for " + ", ".join(extra) if extra else "")

"""The planner: cuts a question into clauses, fills in what a follow-up leaves out, and asks what explains a clause best."""

import re
from collections import OrderedDict
from threading import Lock

from answerkey_demo.answers import records, scope
from answerkey_demo.answers.money import Money
from answerkey_demo.answers.papers import Papers
from answerkey_demo.knowledge import Knowledge
from answerkey_demo.language.reading import Reading, read
from answerkey_demo.language.vocabulary import Vocabulary
from answerkey_demo.language.words import normalise
from answerkey_demo.tools.toolbox import Turn

__all__ = ["Conversation", "Conversations", "Planner"]

_MAX_CONVERSATIONS = 1_000
# Nobody asks more at once in earnest, and every clause may cost several tool calls.
_MAX_CLAUSES = 6
_SPLIT = re.compile(
    r"\?\s+(?=\w)|;\s+|,?\s+(?:and|but|plus)\s+(?:also\s+)?(?=(?:what|which|who|whose|how|when|where|does|do|is|are|did|was|"
    r"were|can|tell|list|show)\b)|,\s+(?=(?:what|which|who|how|when|where)\b)",
    re.IGNORECASE,
)
# "Hi, I'm the new accountant." says nothing about what is asked.
_PREAMBLE = re.compile(
    r"^\s*(?:(?:hi|hello|hey|good (?:morning|afternoon|evening))\b[^.!?,]{0,30}[.!,]\s+)?"
    r"(?:(?:i'm|i am|this is) [^.!?]{0,60}[.!]\s+)?(?=.*\w)",
    re.IGNORECASE,
)
_CUE = re.compile(r"^(?:and|but|also|then|so|what about|how about|what of|same|now|ok(?:ay)?,?)\b")
_PRONOUN = re.compile(
    r"\b(?:it|its|they|their|them|there|those|these|that|this|she|he|her|his|him|the same)\b"
)
# A second clause without a subject of its own: "What were our legal fees, and who sent the bill?"
_ELLIPSIS = re.compile(
    r"(?:sent|send|bills?|billed|paid|costs?|cost|work|vendors?|contractors?|charged?|amounts?|dates?|addresses)$"
)
_NOTHING = "Not on record"


class Conversation:
    """What was asked last in a conversation, and everything that was said."""

    def __init__(self) -> None:
        self.last: Reading | None = None
        # what answered it: "money", "papers", "list" or the name of a table
        self.by = ""
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


class Planner:
    """The brain of the reference chatbot."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._vocabulary = Vocabulary(knowledge, records.phrases())
        self._as_of = knowledge.as_of
        self._company = knowledge.company
        self._money = Money(self._vocabulary)
        self._papers = Papers(self._vocabulary, len(knowledge.passages))

    def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer from the tools, or say what is not on record or not in scope."""
        question = _PREAMBLE.sub("", question) or question
        if reply := scope.small_talk(normalise(question), self._company):
            return reply
        if scope.is_foreign(question):
            return scope.decline("I understand English only", self._company)
        whole = read(question, self._vocabulary, self._as_of)
        understood = conversation.last is not None or self._choose(whole)[1] == []
        if reason := scope.off_topic(whole, self._vocabulary, understood=understood):
            return scope.decline(reason, self._company)
        answers: list[str] = []
        for number, clause in enumerate(_clauses(question)):
            reading = self._complete(clause, conversation, same_question=number > 0)
            by, unknown = self._choose(reading)
            text = self._answer(by, reading, turn, unknown)
            if text.startswith(_NOTHING) and by == "money" and unknown:
                # what the money was for stands in no description: perhaps in a document
                other = self._papers.quote(reading, turn) if reading.has("content") else text
                text = text if other.startswith(_NOTHING) else other
            if text not in answers:
                answers.append(text)
            conversation.last, conversation.by = reading, by
        return "\n\n".join(answers)

    def _answer(self, by: str, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        if by == "list":
            return self._papers.catalogue(reading, turn)
        if by == "papers":
            return self._papers.quote(reading, turn)
        if by == "money":
            return self._money.answer(reading, turn, unknown)
        return records.answer(by, reading, turn, self._vocabulary, self._as_of)

    def _choose(self, reading: Reading) -> tuple[str, list[int]]:
        """What explains the question best, and the words that it leaves unexplained."""
        if self._papers.asks_which(reading):
            return "list", []
        if reading.has("content", "says", "mention"):
            return "papers", []
        fits = [
            (left, name)
            for name in records.TABLES
            if (left := records.unexplained(name, reading)) is not None
        ]
        fits += [(left, "money")] if (left := self._money.unexplained(reading)) is not None else []
        if not fits:
            return "papers", []
        left, by = min(fits, key=lambda fit: len(fit[0]))
        if not left:
            return by, []
        # "spend on solar panels": what the money was for may stand in a description, or nowhere
        money = next((words for words, name in fits if name == "money"), None)
        if money is not None and len(money) <= 2 and reading.has("kind") and not reading.has("type"):
            return "money", money
        return "papers", []

    def _complete(self, clause: str, conversation: Conversation, *, same_question: bool) -> Reading:
        """Read a clause; where it leans on the one before, fill in what it leaves out."""
        last = conversation.last
        reading = self._read(clause)
        if last is None:
            return reading
        rest = [i for i in reading.left(set()) if not _ELLIPSIS.match(reading.words[i].text)]
        if same_question and conversation.by in ("money", "list") and not rest:
            return self._read(f"{last.text.rstrip('?. ')} {reading.text}")
        cue, pronoun = _CUE.search(reading.text), _PRONOUN.search(reading.text)
        if not cue and not pronoun:
            return reading
        reading = read(clause, self._vocabulary, self._as_of, last.periods[0] if last.periods else None)
        slots = ("property", "unit", "category", "group", "party", "period")
        named = [m for m in reading.mentions if m.kind in slots]
        rest = reading.left(
            reading.explained(*named, *(m for m in reading.mentions if m.kind in ("kind", "by", "subject")))
        )
        if cue and (named or reading.periods) and not rest:
            return self._read(_substitute(last, reading))
        if pronoun and not named and conversation.by == "money" and last.has("text"):
            # "Who painted Unit D?" – "What did it cost?"
            return self._read(f"{last.text.rstrip('?. ')} {reading.text}")
        return self._read(reading.original.rstrip("?. ") + self._carried(reading, last, conversation.by))

    def _carried(self, reading: Reading, last: Reading, by: str) -> str:
        """The things of the last question that this one does not name itself, to be said after it."""
        homes = {u["id"]: self._vocabulary.address[u["property_id"]] for u in self._vocabulary.units}
        labels = {u["id"]: u["label"] for u in self._vocabulary.units}
        extra = []
        if not reading.has("unit") and last.has("unit"):
            units = [
                u for u in last.all("unit") if not last.has("property") or homes[u] in self._places(last)
            ]
            extra = [f"{labels[u]} at {homes[u]}" for u in units or last.all("unit")]
        elif not reading.has("party") and last.has("party") and by != "papers":
            extra = last.all("party")
        elif not reading.has("property") and last.has("property"):
            extra = self._places(last)
        elif not reading.has("property") and last.has("subject", "properties"):
            extra = ["our property"] if last.singular else ["all our properties"]
        text = f" ({' and '.join(extra)})" if extra else ""
        if by in ("papers", "documents") and not reading.has("document") and not reading.has("type"):
            named = self._papers.named(last)
            text = f" in the {named}" if named else text
        if not reading.periods and last.periods and (reading.has("category") or reading.has("kind")):
            text += f" {last.periods[0].phrase}"
        return text

    def _places(self, reading: Reading) -> list[str]:
        return [self._vocabulary.address[p] for p in reading.all("property")]

    def _read(self, text: str) -> Reading:
        return read(text, self._vocabulary, self._as_of)


def _substitute(last: Reading, reading: Reading) -> str:
    """The last question with the newly named things in the place of the old ones."""
    pieces: list[tuple[int, int, str]] = []
    tail = ""
    if reading.periods:
        new = " and ".join(
            re.sub(r" \(.*\)", "", p.phrase if len(reading.periods) == 1 else p.label)
            for p in reading.periods
        )
        if last.periods:
            start, end = last.periods[0].span[0], last.periods[-1].span[1]
            start -= len(re.search(r"(?:\b(?:in|for|during|from|of) )?$", last.text[:start]).group())  # type: ignore[union-attr]
            pieces.append((start, end, new))
        else:
            tail += f" {new}"
    for kinds in (("property",), ("category", "group"), ("unit", "party")):
        mine = next((kind for kind in kinds if reading.has(kind)), None)
        if mine is None:
            continue
        first, end = reading.said(mine) or (0, 0)
        new = reading.text[reading.words[first].start : reading.words[end - 1].end]
        old = next((span for kind in kinds if (span := last.said(kind))), None)
        if old:
            pieces.append((last.words[old[0]].start, last.words[old[1] - 1].end, new))
        else:
            tail += f" for {new}"
    text = last.text
    for start, end, new in sorted(pieces, reverse=True):
        text = text[:start] + new + text[end:]
    return text.rstrip("?. ") + tail


def _clauses(question: str) -> list[str]:
    parts = [p.strip() for p in _SPLIT.split(question) if p and p.strip()]
    if not parts or any(len(p.split()) < 2 for p in parts):
        return [question]
    return parts[:_MAX_CLAUSES]

"""The planner: cuts a question into clauses, fills in what a follow-up leaves out, and asks what explains a clause best.

The assistant is not for small talk, other subjects, other languages and attempts to change data.
"""

import asyncio
import re
from typing import Protocol

import msgspec

from answerkey_demo.answers import TABLES, Papers, Records, phrases, unexplained
from answerkey_demo.knowledge import Knowledge
from answerkey_demo.language import LEXICON, Period, Reading, Vocabulary, normalise, read
from answerkey_demo.tools import ToolExecutionError, Turn

_HOSTILE = re.compile(
    r"\b(?:ignore|disregard|forget|override)\b.{0,40}\b(?:rules?|instructions?|prompts?|guidelines|above|previous)\b|"
    r"\b(?:drop|truncate|alter|wipe|erase|destroy|corrupt)\b.{0,30}\b(?:tables?|database|records?|data|properties|"
    r"transactions)\b|\b(?:delete|remove|insert|update|modify|edit|overwrite)\b.{0,40}\b(?:rows?|records?|tables?|"
    r"database|entry|entries|transactions?|ledger|into|set)\b|"
    r"^(?:please |now |can you |could you )*(?:change|add|set|raise|lower|increase) (?:the|a|an|my|our) |"
    r"\b(?:system prompt|jailbreak|developer mode|act as|pretend (?:to be|you))\b"
)
_ACTIONS = re.compile(
    r"\b(?:transfer|wire|send|pay|move)\b \$?[\d,.]+|\b(?:transfer|wire|send) (?:the )?(?:money|funds|payment)\b|"
    r"\b(?:book|schedule|email|call) (?:a|an|the) (?:plumber|meeting|appointment|tenant|contractor)\b"
)
_SMALL_TALK = {
    r"^(?:hi|hello|hey|good (?:morning|afternoon|evening)|greetings|howdy)[\s!.,a-z]{0,20}$": "Hello! ",
    r"^(?:thanks?|thank you|thx|cheers|great|perfect|ok|okay)[\s!.,a-z]{0,30}$": "You are welcome. ",
    r"^(?:who|what) are you\b|^what can (?:you|i) (?:do|ask|help)|^how can you help|^help\b|^what do you (?:do|know)|"
    r"\byour (?:capabilities|purpose|name)\b": "",
    r"^(?:bye|goodbye|see you|good night)\b": "Goodbye. ",
}
# Words of a question about this business: those that outweigh another topic, and those that make a topic at all.
_OWNS = re.compile(r"\b(?:our|we|us|tenants?|leases?|polic(?:y|ies)|agreement|minutes|property)\b")
_OURS = re.compile(
    rf"{_OWNS.pattern}|\b(?:ours|my|mine|llc|company|landlord|manager|members?|insur\w+|form \d+|irs|1099\w*|k-1)\b"
)
_FOREIGN, _ENGLISH = (frozenset(LEXICON["words"][name].split()) for name in ("foreign", "english"))


def small_talk(text: str, company: str) -> str | None:
    """A reply to a greeting, to thanks, or to "what can you do"."""
    return next((opening + _offer(company) for p, opening in _SMALL_TALK.items() if re.search(p, text)), None)


def is_foreign(question: str) -> bool:
    """Whether the question is clearly not in English."""
    letters = [c for c in question if c.isalpha()]
    words = re.findall(r"[^\W\d_]+", question.lower())
    foreign = sum(w in _FOREIGN for w in words)
    other_script = sum(ord(c) > 0x24F for c in letters) > 0.4 * len(letters)
    return other_script or (foreign >= 2 and foreign > sum(w in _ENGLISH for w in words))


def off_topic(reading: Reading, vocabulary: Vocabulary, *, understood: bool) -> str | None:
    """Why a question is none of the assistant's business, or None. `understood`: some table explains all of it."""
    if _HOSTILE.search(reading.text):
        return "I only read: the database is read-only for me, and nothing in a question changes my rules or the data"
    if _ACTIONS.search(reading.text):
        return "I cannot move money, book appointments or act for you; I only look things up"
    named = any(reading.has(kind) for kind in ("property", "party", "unit", "document"))
    if reading.has("topic") and not named and not _OWNS.search(reading.text):
        return str(LEXICON["off_topic"][int(reading.all("topic")[0])]["reply"])
    known = any(reading.has(kind) for kind in ("category", "type", "content", "kind"))
    if understood or named or known or _OURS.search(reading.text):
        return None
    left = [reading.words[i] for i in reading.left(set())]
    content = [w for w in left if any(c.isalpha() for c in w.text)]
    unknown = [w for w in content if w.stem not in vocabulary.corpus]
    return "That is outside what I have on file" if len(unknown) * 2 > len(content) or not content else None


def decline(reason: str, company: str) -> str:
    """A polite refusal that says what the assistant is for."""
    return f"Sorry, I can't help with that. {reason}. {_offer(company)}"


def _offer(company: str) -> str:
    return f"I answer questions about {company}: its properties, transactions, obligations and business documents."


# Users do not ask more at once, and every clause may cost several tool calls.
_MAX_CLAUSES = 6
_ASKS = r"(?:what|which|who|whose|how|when|where|does|do|is|are|did|was|were|can|tell|list|show)\b"
_SPLIT = re.compile(
    rf"\?\s+(?=\w)|;\s+|,?\s+(?:and|but|plus)\s+(?:also\s+)?(?={_ASKS})|,\s+(?=(?:what|which|who|how|when|where)\b)",
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
# The words of a clause without a subject of its own: "What were our legal fees, and who sent the bill?"
_ELLIPSIS = re.compile(
    r"(?:sent|send|bill\w*|paid|costs?|work|vendors?|contractors?|charged?|dates?|addresses)$"
)
# What a follow-up may replace in the last question.
_SLOTS = (("property",), ("category",), ("unit", "party"))


class Conversation(msgspec.Struct):
    """What was asked last in a conversation, and everything that was said."""

    last: Reading | None = None
    # what answered it: "transactions", "papers", "list" or the name of a table
    by: str = ""
    # question and answer of every turn, for a brain that shows them to a model
    history: list[tuple[str, str]] = []


class Brain(Protocol):
    """Something that turns a question into an answer by calling tools."""

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str | None:
        """The answer; tools are called through `turn`, which records them. None is a null reply."""


class Planner:
    """The brain of the reference chatbot: the same question gets the same answer."""

    def __init__(self, knowledge: Knowledge) -> None:
        self._vocabulary = Vocabulary(knowledge, phrases())
        self._company = knowledge.company
        self._records, self._papers = Records(self._vocabulary), Papers(self._vocabulary)

    async def answer(self, question: str, conversation: Conversation, turn: Turn) -> str:
        """Answer from the tools, or say what is not on record or not in scope; in a thread, as it works without pause."""
        return await asyncio.to_thread(self._reply, question, conversation, turn)

    def _reply(self, question: str, conversation: Conversation, turn: Turn) -> str:
        question = _PREAMBLE.sub("", question) or question
        if reply := small_talk(normalise(question), self._company):
            return reply
        if is_foreign(question):
            return decline("I understand English only", self._company)
        whole = self._read(question)
        by, unknown = self._choose(whole)
        understood = conversation.last is not None or (by != "papers" and not unknown)
        if reason := off_topic(whole, self._vocabulary, understood=understood):
            return decline(reason, self._company)
        answers: list[str] = []
        for number, clause in enumerate(_clauses(question)):
            reading = self._complete(clause, conversation, same_question=number > 0)
            by, unknown = self._choose(reading)
            answers.append(self._answer(by, reading, turn, unknown))
            conversation.last, conversation.by = reading, by
        return "\n\n".join(dict.fromkeys(answers))

    def _answer(self, by: str, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        try:
            return self._looked_up(by, reading, turn, unknown)
        except ToolExecutionError:
            if turn.broken is not None:
                raise
            source = "the database" if turn.calls[-1]["name"] == "query_database" else "the documents"
            return f"I could not look that up: {source} did not answer properly. Please try again later."

    def _looked_up(self, by: str, reading: Reading, turn: Turn, unknown: list[int]) -> str:
        if by not in ("list", "papers"):
            return self._records.answer(by, reading, turn, unknown)
        return self._papers.catalogue(reading, turn) if by == "list" else self._papers.quote(reading, turn)

    def _choose(self, reading: Reading) -> tuple[str, list[int]]:
        """What explains the question best, and the words that it leaves unexplained."""
        if self._papers.asks_which(reading):
            return "list", []
        if reading.has("content", "says", "mention"):
            return "papers", []
        fits = {name: unexplained(name, reading) for name in TABLES}
        left = {name: words for name, words in fits.items() if words is not None}
        best = min(left, key=lambda name: len(left[name]), default="papers")
        if not left.get(best):
            return best, []
        # "spend on solar panels": what the money was for may be in a description, or nowhere
        if len(left.get("transactions", range(99))) <= 2 and reading.has("kind") and not reading.has("type"):
            return "transactions", left["transactions"]
        return "papers", []

    def _complete(self, clause: str, conversation: Conversation, *, same_question: bool) -> Reading:
        """Read a clause; where it leans on the one before, fill in what it leaves out."""
        reading, last, by = self._read(clause), conversation.last, conversation.by
        if last is None:
            return reading
        rest = [i for i in reading.left(set()) if not _ELLIPSIS.match(reading.words[i].text)]
        if same_question and by in ("transactions", "list") and not rest:
            return self._read(f"{last.text.rstrip('?. ')} {reading.text}")
        cue, pronoun = _CUE.search(reading.text), _PRONOUN.search(reading.text)
        if not cue and not pronoun:
            return reading
        base = last.periods[0] if last.periods else None
        reading = self._read(clause, base)
        slots = [kind for kinds in _SLOTS for kind in kinds]
        named = any(map(reading.has, slots))
        known = [m for m in reading.mentions if m.kind in (*slots, "kind", "by", "subject")]
        replaces = cue and (named or reading.periods) and not reading.left(reading.explained(*known))
        # "Who painted Unit D?" – "What did it cost?"
        continues = pronoun and not named and by == "transactions" and last.has("text")
        if replaces or continues:
            return self._read(_merged(last, reading), base)
        return self._read(reading.original.rstrip("?. ") + _names_from_last(reading, last, by))

    def _read(self, text: str, base: Period | None = None) -> Reading:
        return read(text, self._vocabulary, base)


def _names_from_last(reading: Reading, last: Reading, by: str) -> str:
    """The names of the last question that this one leaves out, to be said after it."""
    kinds = ("document", "type") if by in ("papers", "documents") else ("party",)
    kinds = tuple(kind for kind in ("property", "unit", *kinds) if not reading.has(kind))
    names = [last.text[slice(*last.span(m))] for m in last.view(lambda m: m.kind in kinds).mentions]
    if last.periods and not reading.periods and (reading.has("category") or reading.has("kind")):
        names.append(last.periods[0].phrase)
    # "And about rent increases?" asks for more of the same paper
    lead = "according to " if by == "papers" and _CUE.search(reading.text) else ""
    return f" ({lead}{', '.join(dict.fromkeys(names))})" if names else ""


def _merged(last: Reading, reading: Reading) -> str:
    """The last question without what the new one replaces, followed by the new one."""
    gone = [p.span for p in last.periods] if reading.periods else []
    for kinds in _SLOTS:
        if any(map(reading.has, kinds)):
            gone += [last.span(m) for m in last.mentions if m.kind in kinds]
    text = last.text.rstrip("?. ")
    kept = [c for i, c in enumerate(text) if not any(start <= i < end for start, end in gone)]
    return f"{''.join(kept)} {reading.text}"


def _clauses(question: str) -> list[str]:
    parts = [p.strip() for p in _SPLIT.split(question) if p and p.strip()]
    if not parts or any(len(p.split()) < 2 for p in parts):
        return [question]
    return parts[:_MAX_CLAUSES]

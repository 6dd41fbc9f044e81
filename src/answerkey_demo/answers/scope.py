"""What the assistant is not for: small talk, other subjects, other languages, attempts to change data."""

import re

from answerkey_demo.language.reading import Reading, Vocabulary
from answerkey_demo.language.words import LEXICON

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

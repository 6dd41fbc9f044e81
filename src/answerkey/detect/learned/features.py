"""What the model knows of a reply: the evidence of its sentences, what stands beside it, and which kinds of words it has."""

import math
import re
from collections.abc import Sequence
from functools import reduce
from itertools import zip_longest
from operator import or_

from answerkey.detect.explained import advises
from answerkey.detect.learned.evidence import evidence_in
from answerkey.detect.learned.plain_words import QUOTATION, QUOTED, without_quotations
from answerkey.detect.learned.reading import NOT_DELIVERED, OWN_FAILURES
from answerkey.detect.learned.roles import (
    ABLE,
    ADVICE,
    APOLOGY,
    ASK,
    ASKERS,
    BAD,
    BECAUSE,
    BUT,
    CODE,
    COMMA,
    CONDITION,
    DOES,
    DONE,
    END,
    EXPLAIN,
    FACT,
    FAIL,
    FUNCTION,
    GENERAL,
    HELP,
    LIMIT,
    MACHINE,
    MEET,
    MENDED,
    NAME,
    NEGATION,
    NOW,
    NUMBER,
    OPERATION,
    OTHERS,
    POLICY,
    POLITE,
    PRONOUN,
    QUOTE,
    RESULT,
    RETRY,
    SELF,
    SLOW,
    SPENT,
    STATUS,
    TAKE,
    THING,
    TRIED,
    TROUBLE,
    UNIT,
    USER,
)
from answerkey.detect.learned.words import roles_of
from answerkey.text.lazy import lazy

__all__ = [
    "FEATURES",
    "INDEX",
    "Sentence",
    "features",
    "features_of",
    "may_tell",
    "sentences_of",
]

# Beside the evidence of sentences.
_OF_REPLY = (
    "bias",
    # The first and the last sentence tell of a failure of the bot.
    "first_fails",
    "last_fails",
    # A failure, and that nothing is delivered; a failure, and that the bot cannot help.
    "fails_and_delivers_nothing",
    "fails_and_cannot_help",
    # A failure and an apology in one sentence.
    "fails_and_apologises",
    # Nothing is delivered now, at the moment.
    "nothing_now",
    # Beside one of these: another try, an apology, somebody to turn to.
    "retry",
    "apology",
    "help",
    # Money, dates and shares before and after the first sentence that tells of one (up to three), and in those that do.
    "facts_before",
    "facts_after",
    "facts_within",
    # Sentences that tell the asker what to do (up to two).
    "advice",
    # Tenants, furnaces, payments in sentences without a failure of the bot.
    "others",
    # Fixed, restored, yesterday.
    "mended",
    # Names in other sentences (up to three), and in those that tell of a failure.
    "names",
    "names_within",
    # Quotations, code.
    "quote",
    "code",
    # Sentences that are neither failure nor apology (up to three), and the words of those after the first failure (logarithm).
    "other_sentences",
    "words_after",
    # The reply ends with a failure in brackets: "[stream interrupted]".
    "cut_off",
    # It quotes a notice of failure; it does so and delivers nothing, or cannot help.
    "quotes_failure",
    "quotes_failure_and_nothing",
    # A list of three items or more.
    "listed",
    # "Yes, …", "No, …": a question is answered.
    "yes_or_no",
    # The first sentence is said in general: "A circuit breaker stops …".
    "in_general",
    # A later sentence tells the asker how to mend something of theirs.
    "mends",
    # A cause is given, and the bot says nothing of itself or of now: "The loop never ends because …".
    "explains_cause",
    # Words that no notice is made of (logarithm), and their share of all.
    "unknown_words",
    "unknown_share",
    # Every sentence tells of a failure, delivers nothing or is a courtesy; the same in eight words at most.
    "only_notice",
    "short_notice",
)
_OF_SENTENCES = (
    *sorted(OWN_FAILURES),
    *sorted(NOT_DELIVERED),
    "cannot_help", "left_undone", "somebody_fails", "somebody_is_bad", "past_failure", "denied", "talk", "matter", "answered",
    "no_match",
)  # fmt: skip
# Which kinds of words the reply has at all.
_OF_WORDS = {
    "says_self": SELF,
    "says_user": USER,
    "says_not": NEGATION,
    "says_able": ABLE,
    "says_operation": OPERATION,
    "says_done": DONE,
    "says_result": RESULT,
    "says_machine": MACHINE,
    "says_thing": THING,
    "says_failing": FAIL,
    "says_bad": BAD,
    "says_trouble": TROUBLE,
    "says_now": NOW,
    "says_explain": EXPLAIN,
    "says_condition": CONDITION,
    "says_others": OTHERS,
    "says_it": PRONOUN,
    "says_limit": LIMIT,
    "says_spent": SPENT,
    "says_status": STATUS,
    "says_meet": MEET,
    "says_polite": POLITE,
    "says_asked": ASK,
    "says_but": BUT,
    "says_name": NAME,
    "says_fact": FACT,
    "says_advice": ADVICE,
    "says_general": GENERAL,
    "says_number": NUMBER,
    "says_policy": POLICY,
    "says_does": DOES,
    "says_tried": TRIED,
}
FEATURES = (*_OF_REPLY, *_OF_SENTENCES, *_OF_WORDS)
INDEX = {name: index for index, name in enumerate(FEATURES)}

_BRACKETS = lazy(r"[\[(<]([^\[\]()<>]{3,150})[\])>]\W*\Z")
_ITEM = lazy(r"^\s*(?:[-*•–]|\(?[0-9a-z]{1,2}[.)])\s+\S", re.MULTILINE)
_YES_OR_NO = lazy(r"\W*(?:yes|no|yep|nope|correct|right|sí|ja|nein|oui|non)[,.:;!–—]", re.IGNORECASE)
_IN_GENERAL = lazy(r"\W*(?:an?|ein|eine|une?|una|most|many|some|every|each)\s\w", re.IGNORECASE)


# A word with one of these only is nothing that notices are made of.
_KNOWN = ~(END | COMMA | QUOTE | NAME)
_SHORT = 8
_TRIGGERS = FAIL | TROUBLE | BAD | NEGATION | STATUS | EXPLAIN
_NO_EVIDENCE: frozenset[str] = frozenset()


def may_tell(roles: int) -> bool:
    """Whether words of these roles can be evidence of any kind; others are not read word by word."""
    return bool(
        roles & _TRIGGERS
        or (roles & TAKE and roles & SLOW)
        or (roles & MEET and roles & CODE)
        or (roles & LIMIT and roles & SPENT)
    )


class Sentence:
    """A sentence with its evidence."""

    __slots__ = ("evidence", "fails", "nothing", "roles", "words")

    def __init__(self, words: Sequence[int]) -> None:
        self.roles = reduce(or_, words)
        if self.roles & NUMBER and self.roles & UNIT:
            # "30 seconds", "3 attempts": notices have these too.
            words = [
                word & ~(NUMBER | STATUS) if word & NUMBER and after & UNIT else word
                for word, after in zip_longest(words, words[1:], fillvalue=0)
            ]
            self.roles = reduce(or_, words)
        self.words = words
        self.evidence = evidence_in(words, self.roles) if may_tell(self.roles) else _NO_EVIDENCE
        self.fails = not OWN_FAILURES.isdisjoint(self.evidence)
        self.nothing = not NOT_DELIVERED.isdisjoint(self.evidence)

    @property
    def facts(self) -> int:
        """How many words are figures of an answer."""
        return sum(1 for word in self.words if word & FACT) if self.roles & FACT else 0

    @property
    def names(self) -> int:
        """How many words are names; the first word is in capitals anyway."""
        return sum(1 for word in self.words[1:] if word & NAME) if self.roles & NAME else 0

    @property
    def unknown(self) -> int:
        """How many words have no role in a notice."""
        return sum(1 for word in self.words if not word & _KNOWN)

    @property
    def content(self) -> int:
        """How many words have a content of their own."""
        return sum(1 for word in self.words if not word & FUNCTION)

    @property
    def is_other(self) -> bool:
        """Neither failure nor apology, promise or courtesy."""
        return not (self.fails or self.nothing or self.is_courtesy)

    @property
    def is_courtesy(self) -> bool:
        """An apology, a promise, a courtesy, or the question said again."""
        roles = self.roles
        if roles & (POLITE | APOLOGY) or (roles & ASK and roles & USER):
            return True
        return bool(roles & (RETRY | HELP)) and not self.facts


def sentences_of(text: str) -> list[Sentence]:
    """The sentences of a text; a line ends one too."""
    found: list[Sentence] = []
    words: list[int] = []
    if "..." in text:
        text = text.replace("...", "... ")
    for line in text.split("\n"):
        for role in map(roles_of, line.split()):
            words.append(role)
            if role & END and len(words) > 1:
                found.append(Sentence(words))
                words = []
        if words:
            found.append(Sentence(words))
            words = []
    return found


def features(text: str) -> list[float]:
    """What the model knows of a reply, in the order of `FEATURES`."""
    said = without_quotations(text)
    return features_of(text, said, sentences_of(said))


def features_of(text: str, said: str, sentences: list[Sentence]) -> list[float]:
    quotes = QUOTATION in said
    values = [0.0] * len(FEATURES)

    def put(name: str, value: float) -> None:
        values[INDEX[name]] = float(value)

    evidence: set[str] = set()
    roles = 0
    for sentence in sentences:
        evidence |= sentence.evidence
        roles |= sentence.roles
    for name in evidence:
        put(name, 1)
    failing = [sentence for sentence in sentences if sentence.fails]
    fails, nothing = bool(failing), not NOT_DELIVERED.isdisjoint(evidence)
    cannot_help = "cannot_help" in evidence
    put("bias", 1)
    put("first_fails", bool(sentences) and sentences[0].fails)
    put("last_fails", bool(sentences) and sentences[-1].fails)
    put("fails_and_delivers_nothing", fails and nothing)
    put("fails_and_cannot_help", fails and cannot_help)
    put("fails_and_apologises", any(sentence.roles & APOLOGY for sentence in failing))
    weight = 1.0 if fails or nothing else 0.5 * cannot_help
    put("nothing_now", any(sentence.nothing and sentence.roles & NOW for sentence in sentences))
    put("retry", weight * bool(roles & RETRY))
    put("apology", weight * bool(roles & APOLOGY))
    put("help", weight * bool(roles & HELP))
    first = next((i for i, s in enumerate(sentences) if s.fails or s.nothing), 0)
    put("facts_before", min(3, sum(s.facts for s in sentences[:first] if s.is_other)))
    put("facts_after", min(3, sum(s.facts for s in sentences[first:] if not (s.fails or s.nothing))))
    put("facts_within", min(3, sum(s.facts for s in sentences if s.fails != s.nothing)))
    put("advice", min(2, sum(_advises(s) for s in sentences)))
    put("others", any(s.roles & OTHERS for s in sentences if s.is_other))
    put("mended", bool(roles & MENDED))
    put("names", min(3, sum(s.names for s in sentences if s.is_other)))
    put("names_within", min(3, sum(s.names for s in failing)))
    put("quote", quotes or bool(roles & QUOTE))
    put("code", bool(roles & CODE))
    put("other_sentences", min(3, sum(s.is_other for s in sentences)))
    if failing:
        put("words_after", math.log1p(sum(s.content for s in sentences[first:] if s.is_other)))
    for name, role in _OF_WORDS.items():
        put(name, bool(roles & role))
    if quotes:
        quoted = any(
            s.fails or s.nothing for found in QUOTED.findall(text) for s in sentences_of(found[1:-1])
        )
        put("quotes_failure", quoted)
        put("quotes_failure_and_nothing", quoted and (nothing or cannot_help))
    put("listed", text.count("\n") >= 2 and len(_ITEM.findall(text)) >= 3)
    put("yes_or_no", _YES_OR_NO.match(text) is not None)
    put(
        "in_general",
        bool(sentences)
        and _IN_GENERAL.match(text) is not None
        and not sentences[0].roles & (SELF | USER | TROUBLE),
    )
    put("mends", advises(said))
    put(
        "explains_cause",
        any(
            s.roles & BECAUSE and s.roles & (GENERAL | DOES | ASKERS) and not s.roles & (SELF | NOW | APOLOGY)
            for s in sentences
        ),
    )
    length = sum(len(s.words) for s in sentences)
    unknown = sum(s.unknown for s in sentences)
    put("unknown_words", math.log1p(unknown))
    put("unknown_share", unknown / max(1, length))
    only = (fails or nothing) and not any(s.is_other for s in sentences)
    put("only_notice", only)
    put("short_notice", only and length <= _SHORT)
    brackets = _BRACKETS.search(text)
    if brackets:
        put("cut_off", any(sentence.fails for sentence in sentences_of(brackets[1])))
    return values


def _advises(sentence: Sentence) -> bool:
    first = sentence.words[0]
    return bool(first & ADVICE) and not first & (SELF | NEGATION) and not sentence.roles & RETRY

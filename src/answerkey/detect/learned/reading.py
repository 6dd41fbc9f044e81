"""One sentence while it is read: its clauses, what they speak of, and the evidence found so far."""

from collections.abc import Sequence

from answerkey.detect.learned.roles import (
    APOLOGY,
    ASKERS,
    BUT,
    CODE,
    COMMA,
    CONDITION,
    END,
    FACT,
    FAIL,
    FUNCTION,
    GENERAL,
    HELP,
    JOINT,
    KEPT,
    MACHINE,
    NAME,
    NEGATION,
    NOW,
    OTHERS,
    OWNER,
    PRONOUN,
    QUOTE,
    RETRY,
    SELF,
    THING,
    TO,
    TROUBLE,
    USER,
)

__all__ = [
    "AGENT",
    "ENTERING",
    "NOT_DELIVERED",
    "OWN_FAILURES",
    "SUBJECTS",
    "Reading",
    "any_of",
    "enter_clause",
    "leave_word",
    "subject_of",
]

# The bot or its machinery failed.
OWN_FAILURES = frozenset(
    {
        # The database crashed; `query_database` raised an error.
        "machine_fails",
        # The retriever is stale; the tool bailed out.
        "machine_is_bad",
        # Your request failed; the service is unavailable.
        "thing_fails",
        # The session was closed.
        "thing_is_bad",
        # I ran into a problem; we keep getting timeouts.
        "met_trouble",
        # An error occurred.
        "trouble_happened",
        # Failed to load. Unknown error.
        "bare_failure",
        # I can't reach the server; the file could not be processed.
        "machine_unreached",
        # The API did not answer.
        "machine_does_not",
        # Your question was not run.
        "thing_not_done",
        # The daily quota is used up; too many requests.
        "limit_spent",
        # This is taking too long.
        "too_slow",
        # Got a 429 from the provider.
        "status_met",
        # I failed to …, I was cut off from the database.
        "self_fails",
    }
)
# The asker gets nothing.
NOT_DELIVERED = frozenset(
    {
        # I can't open the lease; unable to answer.
        "cannot_operate",
        # No result, no output.
        "no_result",
        # Nothing to show, never came back, no figure could be read.
        "nothing_given",
    }
)
# Beside these: "cannot_help" (tell, find, share: also said where nothing failed), "left_undone", "somebody_fails" and
# "somebody_is_bad" (of whom one cannot tell), "past_failure", "denied" ("no errors"), "talk" (what an error means), "matter"
# (somebody else's), "answered" ("…, but the total is …").

AGENT = MACHINE | CODE
# What a clause may speak of.
SUBJECTS = SELF | MACHINE | THING | CODE | OTHERS | USER | ASKERS | APOLOGY | FACT | NAME
# Words with which a clause or a subject may begin.
ENTERING = BUT | JOINT | USER | SELF | MACHINE | THING | PRONOUN | CONDITION


def any_of(words: Sequence[int], roles: int) -> bool:
    """Whether any of the words has any of the roles."""
    return any(word & roles for word in words)


class Reading:
    """The state of one sentence while it is read."""

    __slots__ = (
        "at",
        "before",
        "conditional",
        "content",
        "evidence",
        "negated_at",
        "own",
        "self_seen",
        "subject",
        "unknown",
        "words",
    )

    def __init__(self, words: Sequence[int]) -> None:
        self.words = words
        self.at = 0
        # Roles of what the clause speaks of so far, and of what the clause before it did.
        self.subject = 0
        self.before = 0
        # How many words of the clause are names, figures or of no known role; how many of the sentence have content.
        self.unknown = 0
        self.content = 0
        self.negated_at = -9
        # "If …", "when …", "to fix …" came before: what follows is said in general.
        self.conditional = bool(words) and bool(words[0] & TO)
        self.self_seen = False
        self.own = False
        self.evidence: set[str] = set()

    def add(self, name: str) -> None:
        self.evidence.add(name)
        if name in OWN_FAILURES:
            self.own = True

    def near(self, first: int, after: int) -> Sequence[int]:
        """The words from `first` to before `after`, counted from here."""
        return self.words[max(0, self.at + first) : max(0, self.at + after)]


def enter_clause(reading: Reading, word: int) -> None:
    at, words = reading.at, reading.words
    if word & BUT and reading.own and len(words) - at >= 4:
        rest = words[at + 1 :]
        if not any_of(rest, NEGATION | FAIL | TROUBLE | RETRY | HELP | APOLOGY):
            reading.evidence -= OWN_FAILURES
            reading.evidence.add("answered")
            reading.own = False
    if word & JOINT and at:
        reading.before = reading.subject or reading.before
        reading.subject = reading.unknown = 0
    if at and words[at - 1] & COMMA and word & (USER | SELF | MACHINE | THING):
        reading.subject = reading.unknown = 0
    if word & PRONOUN and not reading.subject:
        reading.subject = reading.before & ~SELF
    if (
        word & CONDITION
        and not (reading.own or reading.self_seen)
        # "When I press the button …" tells what happened.
        and not any_of(words[at + 1 : at + 2], SELF)
    ):
        reading.conditional = True
    if word & SELF:
        reading.self_seen = True


def leave_word(reading: Reading, word: int) -> None:
    if word & (MACHINE | THING | OTHERS | ASKERS) and _names_anew(reading, word):
        return
    if word & APOLOGY and word & COMMA:
        reading.subject = reading.unknown = 0
        return
    reading.subject |= word & (SELF | MACHINE | THING | CODE | OTHERS | USER)
    if not word & (FUNCTION | SELF | APOLOGY | NOW | JOINT):
        reading.content += 1
    if word & (NAME | FACT) or not word & ~(END | COMMA | QUOTE):
        reading.unknown += 1


def _names_anew(reading: Reading, word: int) -> bool:
    """Whose a thing is in the light of the word before it; whether that settles the subject."""
    previous = reading.words[reading.at - 1] if reading.at else FUNCTION
    if (
        word & OTHERS
        and not word & (MACHINE | THING)
        and previous & (MACHINE | THING)
        and not previous & (COMMA | END | CODE)
    ):
        # "Tool shed", "server room", "search committee": the last word says what it is.
        reading.subject &= ~(MACHINE | THING)
    if word & THING and previous & KEPT and not previous & (COMMA | END | OWNER):
        # "The claims system", "the booking service".
        reading.subject &= ~OTHERS
    if word & MACHINE and not word & OTHERS and not previous & (FUNCTION | OWNER):
        # "Lease database".
        reading.subject &= ~OTHERS
    if (
        word & ASKERS
        and previous & USER
        and reading.at + 1 < len(reading.words)
        and reading.words[reading.at + 1] & GENERAL
    ):
        # "Your script crashes because …": the asker's, and said in general.
        reading.subject = (reading.subject & ~(MACHINE | THING)) | OTHERS
        return True
    return False


def subject_of(reading: Reading) -> int:
    """What a predicate is said of: the clause's subject, or the machinery of the clause before where this one names none."""
    before = reading.before
    if reading.subject or reading.unknown or before & OTHERS or not before & (AGENT | THING):
        return reading.subject
    return before & ~SELF

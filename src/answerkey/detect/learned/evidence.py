"""What one sentence says about a failure of the bot or its machinery: named evidence, found from the roles of its words.

A sentence is read once from left to right. What was spoken of since the last clause began is its subject; a verb of failing,
a trouble or a negation is judged by that subject and by the words around it.
"""

from collections.abc import Sequence

from answerkey.detect.learned.negations import read_negation
from answerkey.detect.learned.reading import (
    AGENT,
    ENTERING,
    OWN_FAILURES,
    SUBJECTS,
    Reading,
    any_of,
    enter_clause,
    leave_word,
    subject_of,
)
from answerkey.detect.learned.roles import (
    ABLE,
    APOLOGY,
    ARTICLE,
    BAD,
    BE,
    BEFORE,
    CODE,
    COMMA,
    CONDITION,
    DONE,
    END,
    ENOUGH,
    EXPLAIN,
    FACT,
    FAIL,
    FUNCTION,
    GENERAL,
    HAPPEN,
    HELP,
    JOINT,
    LIMIT,
    MACHINE,
    MEET,
    MENDED,
    NEGATION,
    NOW,
    NUMBER,
    OPERATION,
    OTHERS,
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
    TO,
    TROUBLE,
    USER,
)

__all__ = ["evidence_in"]


# The other words only tell what a clause speaks of.
_READ = ENTERING | NEGATION | FAIL | TROUBLE | BAD | LIMIT | MEET | STATUS | TAKE | EXPLAIN


def evidence_in(words: Sequence[int], roles: int = -1) -> set[str]:
    """The names of the evidence in a sentence, given the roles of its words, and those of all where they are known."""
    reading = Reading(words)
    for at, word in enumerate(words):
        reading.at = at
        if word & _READ:
            _read_word(reading, word)
        if not word & FUNCTION or word & SUBJECTS:
            leave_word(reading, word)
    evidence = reading.evidence
    if roles & STATUS and sum(1 for word in words if word & STATUS) >= 3:
        # A list of statuses.
        evidence.add("talk")
    mended = roles & MENDED and any(
        word & MENDED and not any_of(words[max(0, at - 3) : at], NEGATION | BEFORE)
        for at, word in enumerate(words)
    )
    if mended or "talk" in evidence:
        # What is explained or over is no failure of this reply.
        evidence = {name for name in evidence if name not in OWN_FAILURES} | (
            {"past_failure"} if reading.own else set()
        )
    return evidence


def _read_word(reading: Reading, word: int) -> None:
    """What a word says where it is one that says something."""
    if word & ENTERING:
        enter_clause(reading, word)
    if word & NEGATION:
        read_negation(reading, word)
    if word & (FAIL | TROUBLE | BAD):
        _read_failing(reading, word)
    if word & (LIMIT | MEET | STATUS) and not reading.conditional:
        _read_meeting(reading, word)
    if word & TAKE and not reading.conditional:
        _read_slowness(reading)
    if word & EXPLAIN:
        _read_explanation(reading)


def _read_failing(reading: Reading, word: int) -> None:
    """A verb of failing, a trouble or a bad state: whose it is."""
    at, near, words = reading.at, reading.near, reading.words
    if any(
        after & CONDITION and not any_of(words[index + 1 : index + 2], OPERATION | SELF | HAPPEN)
        for index, after in enumerate(near(1, 5 if word & (FAIL | TROUBLE) else 3), at + 1)
    ):
        # "… is raised when a key is missing": said in general.
        reading.add("talk")
        return
    fail, trouble = word & FAIL, _is_trouble(reading, word)
    if fail and not reading.content and len(words) > at + 1 and not word & (COMMA | END):
        following = words[at + 1]
        if not following & (FUNCTION | OPERATION | MACHINE | THING | JOINT | NOW | CODE):
            # "Failed payments", "failed items".
            reading.add("matter")
            fail = 0
    if fail and any_of(near(1, 2), ARTICLE) and any_of(near(2, 4), OTHERS):
        # "The system failed the audit."
        reading.add("matter")
        fail = 0
    if (
        fail
        and at
        and len(words) > at + 1
        and words[at - 1] & (ARTICLE | NUMBER)
        and not word & (COMMA | END)
    ):
        following = words[at + 1]
        if not following & (FUNCTION | JOINT | NOW | TROUBLE):
            # "The failed jobs", "a failed upgrade": which one it is, not what happens now.
            reading.add("matter")
            fail = 0
    if fail or trouble:
        if 0 <= at - reading.negated_at <= 2 and not words[reading.negated_at] & ABLE:
            reading.add("denied")
        elif reading.conditional or any_of(near(1, 4), EXPLAIN):
            reading.add("talk")
        else:
            _judge_failure(reading, bool(fail), bool(word & GENERAL))
    elif (
        word & BAD and not word & (FAIL | TROUBLE) and not reading.conditional and at - reading.negated_at > 2
    ):
        _judge_bad_state(reading)


def _is_trouble(reading: Reading, word: int) -> bool:
    """Whether a trouble is one that came up, not the first part of a compound or a subject matter."""
    if not word & TROUBLE:
        return False
    at, near, words = reading.at, reading.near, reading.words
    if word & COMMA and not at and not any_of(near(1, 6), RETRY | HELP | SELF):
        # "Errors: none", "Exceptions: …".
        return False
    if at + 1 >= len(words) or word & (COMMA | END):
        return True
    following = words[at + 1]
    if any_of(near(1, 5), EXPLAIN):
        reading.add("talk")
        return False
    if any_of(near(1, 5), HAPPEN):
        if not reading.conditional and at - reading.negated_at > 2:
            reading.add("trouble_happened")
        return True
    if following & TO:
        return False
    if following & BE or (following & FUNCTION and any_of(near(1, 7), BE)):
        # "The problem was the thermostat."
        reading.add("matter")
        return False
    if not following & (
        OPERATION
        | FUNCTION
        | JOINT
        | CODE
        | APOLOGY
        | NOW
        | HELP
        | STATUS
        | NUMBER
        | CONDITION
        | MACHINE
        | BAD
        | FAIL
        | QUOTE
    ):
        return False
    if following & FUNCTION:
        about = near(2, 6)
        technical = any_of(
            about, MACHINE | THING | OPERATION | CODE | SELF | USER | DONE | HAPPEN | NOW | JOINT
        )
        if about and (not technical or (any_of(about, OTHERS) and not any_of(about, AGENT))):
            # "An error in the deed."
            reading.add("matter")
            return False
    return True


def _judge_failure(reading: Reading, fail: bool, general: bool) -> None:
    subject, near = reading.subject, reading.near
    it = any_of(near(-2, 0), PRONOUN) and not subject & (AGENT | THING)
    if it:
        subject = reading.before & ~SELF
    if (subject if it else subject_of(reading)) & AGENT:
        reading.add("machine_fails")
    elif subject & OTHERS and subject & THING and reading.self_seen:
        reading.add("thing_fails")
    elif subject & OTHERS:
        reading.add("matter")
    elif general and not reading.self_seen:
        reading.add("somebody_fails")
    elif subject & SELF:
        reading.add("self_fails" if fail or any_of(near(1, 5), SELF) else "somebody_fails")
    elif subject & (THING | USER):
        reading.add("thing_fails")
    elif fail and not reading.unknown and any_of(near(1, 5), SELF):
        reading.add("self_fails")
    elif not (it or reading.before or reading.unknown) and (
        not reading.content or any_of(near(-1, 0), BAD | TROUBLE | NOW | APOLOGY | COMMA | OPERATION)
    ):
        reading.add("bare_failure")
    else:
        reading.add("somebody_fails")


def _judge_bad_state(reading: Reading) -> None:
    subject, near = subject_of(reading), reading.near
    if not reading.content and any_of(near(1, 2), OTHERS) and not any_of(near(1, 2), MACHINE | THING):
        # "For lost property", "missing payments".
        reading.add("matter")
        return
    if subject & AGENT and not (any_of(near(1, 5), OTHERS) and not subject & CODE):
        reading.add("machine_is_bad")
    elif (subject & THING and not subject & OTHERS and not any_of(near(1, 7), OTHERS)) or (
        subject & USER and any_of(near(1, 5), THING)
    ):
        reading.add("thing_is_bad")
    elif any_of(near(1, 4), MACHINE) and not reading.subject:
        reading.add("machine_is_bad")
    elif not reading.content and any_of(near(1, 4), THING | CODE):
        reading.add("thing_is_bad")
    elif (
        reading.content <= 1
        and not reading.unknown
        and not reading.subject & OTHERS
        and len(reading.words) > 2
    ):
        reading.add("somebody_is_bad")
    if subject & SELF and not reading.words[reading.at] & GENERAL and any_of(near(1, 7), MACHINE | THING):
        reading.add("self_fails")


def _read_meeting(reading: Reading, word: int) -> None:
    """Somebody met with trouble, a limit was reached, a status came back."""
    near, words, at = reading.near, reading.words, reading.at
    if (
        word & LIMIT
        and not any_of(words, OTHERS | FACT)
        and (any_of(near(-4, 0), SPENT) or any_of(near(1, 4), SPENT))
    ):
        reading.add("limit_spent")
    if word & LIMIT and any_of(near(-3, 0), ENOUGH) and any_of(near(-5, 0), NEGATION):
        # "There isn't enough memory."
        reading.add("limit_spent")
    if word & STATUS and "talk" not in reading.evidence:
        told = any_of(near(-4, 0), MEET | FAIL | TROUBLE | GENERAL)
        if told and (any_of(words, MACHINE | SELF) or words[0] & MEET) and not any_of(near(1, 3), CONDITION):
            reading.add("status_met")
    if word & MEET and subject_of(reading) & SELF:
        for index in range(at + 1, min(at + 7, len(words))):
            ahead = words[index]
            if ahead & NEGATION:
                break
            if (
                ahead & (TROUBLE | FAIL | CODE)
                or (ahead & BAD and any_of(words[index + 1 : index + 5], RESULT | MACHINE | THING))
                or (ahead & (MACHINE | THING) and word & BAD)
            ):
                reading.add("met_trouble")
                break


def _read_slowness(reading: Reading) -> None:
    """ "This is taking longer than expected": of the request, not of a repair."""
    if (
        any_of(reading.near(1, 4), SLOW)
        and not reading.unknown
        and not reading.subject & OTHERS
        and not any_of(reading.words, FACT)
    ):
        reading.add("too_slow")


def _read_explanation(reading: Reading) -> None:
    """ "Means", "usually": talk about errors, unless it draws a conclusion ("…, which means that I have no figure")."""
    before = reading.words[: reading.at]
    quoted = any_of(before, QUOTE)
    concludes = (any_of(before[-1:], PRONOUN) and not quoted) or (
        # "That means that I can't …".
        reading.at == 1 and any_of(before, FUNCTION) and any_of(reading.words[2:], SELF)
    )
    if not concludes and (not reading.own or quoted or any_of(before, CODE | STATUS)):
        reading.add("talk")

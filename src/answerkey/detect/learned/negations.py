"""Cannot, did not, no, nothing: who could not do what."""

from collections.abc import Sequence
from itertools import pairwise

from answerkey.detect.learned.reading import AGENT, Reading, any_of, subject_of
from answerkey.detect.learned.roles import (
    ABLE,
    ASK,
    BARE_NOT,
    BE,
    COMMA,
    DELIVER,
    DISTANT,
    DONE,
    FACT,
    FAIL,
    FOR,
    FUNCTION,
    HOLD,
    MACHINE,
    MATCHES,
    NOW,
    OPERATION,
    OTHERS,
    RESULT,
    SELF,
    SOFT,
    THING,
    TROUBLE,
    USER,
    VERBAL,
    YOU,
)

__all__ = ["read_negation"]


def read_negation(reading: Reading, word: int) -> None:
    """Cannot, could not, no, nothing: who could not do what."""
    reading.negated_at = reading.at
    if reading.conditional or (not reading.at and word & COMMA and not word & VERBAL):
        # "No, the import has finished."
        return
    subject, near = subject_of(reading), reading.near
    if word & VERBAL and not word & ABLE and any_of(near(1, 2), FAIL | TROUBLE):
        # "It did not crash"; the failure itself is read as denied.
        return
    if word & VERBAL and any(after & ASK and after & SOFT for after in near(1, 2)):
        # "I don't know the answer."
        reading.add("cannot_help")
        return
    if (
        not word & VERBAL
        and any_of(near(1, 3), MATCHES)
        and (subject & (AGENT | THING) or any_of(near(-3, 0), DONE))
    ):
        # "Your search returned no results."
        reading.add("no_match")
        return
    others = bool(subject & OTHERS)
    machine = subject & AGENT
    thing = subject & THING and not others
    able = word & ABLE or any_of(near(1, 3), ABLE) or any_of(near(-8 if word & DISTANT else -1, 0), ABLE)
    if word & DISTANT and able and subject & SELF and any_of(near(1, 9), OPERATION):
        reading.add("cannot_operate")
        if any_of(near(-4, 9), AGENT | THING):
            reading.add("machine_unreached")
        return
    if able and any_of(near(1, 3), SOFT):
        reading.add("cannot_help")
    elif able and any_of(near(1, 5), OPERATION | DONE):
        if machine or thing:
            reading.add("machine_unreached")
        elif subject & SELF or not reading.content:
            reading.add("cannot_operate")
            wanted = near(2, 9)
            if any_of(wanted, AGENT) or (any_of(wanted, USER) and any_of(wanted, THING)):
                reading.add("machine_unreached")
        elif not others:
            reading.add("no_result" if any_of(near(-4, 0), RESULT) else "left_undone")
    elif any_of(near(1, 4), RESULT):
        reading.add("no_result")
        if machine or any_of(near(2, 9), MACHINE):
            reading.add("machine_does_not")
    elif any_of(near(1, 3), DELIVER) or (subject & SELF and _for_you(near(1, 10))):
        reading.add("nothing_given")
    elif not word & VERBAL and any_of(near(1, 4), THING | MACHINE) and any_of(near(2, 9), OPERATION | DONE):
        reading.add("thing_not_done")
    elif (
        subject & SELF
        and any_of(near(1, 6), THING | MACHINE)
        and any_of(reading.words, NOW)
        and not any_of(reading.words, FACT)
    ):
        # "I don't have a connection to the records at the moment."
        reading.add("machine_unreached")
    elif word & VERBAL and thing and any_of(near(1, 4), SELF):
        reading.add("machine_does_not")
    elif not word & VERBAL and any_of(near(1, 5), ABLE) and any_of(near(2, 7), DONE | OPERATION):
        reading.add("nothing_given")
    elif (
        word & VERBAL
        and subject & MACHINE
        and (not word & BARE_NOT or any_of(near(-1, 0), FUNCTION | ABLE))
        and not any_of(near(1, 3), HOLD)
    ):
        reading.add("machine_does_not")
    elif any_of(near(1, 4), DONE | OPERATION):
        if machine:
            reading.add("machine_does_not")
        elif thing:
            reading.add("thing_not_done")
        elif subject & SELF:
            reading.add("left_undone")
        elif (
            not others
            and not reading.unknown
            and reading.at >= 1
            and len(reading.words) < 8
            and word & VERBAL
        ):
            # "That didn't work."
            reading.add("thing_not_done")
        elif not others:
            reading.add("left_undone")
    elif able and any_of(near(1, 2), BE) and not others:
        reading.add("left_undone")
    elif able and subject & SELF and any_of(reading.words, NOW):
        # "I can't take yours right now."
        reading.add("cannot_help")


def _for_you(words: Sequence[int]) -> bool:
    """ "I have no total for you." """
    return any(word & FOR and after & YOU for word, after in pairwise(words))

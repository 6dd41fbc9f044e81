"""Component 3: did the question complete without an error, as the target saw it or as the reply's text shows it?"""

from collections.abc import Sequence
from functools import lru_cache
from typing import cast

import msgspec

from answerkey.detect.detector import DetectedFailure, detect_failure, failure_kinds
from answerkey.model.question import Question
from answerkey.model.reply import ErrorKind, Failure, Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import BaseScorer, Direction, Need


class ErrorHandling(BaseScorer):
    """1.0 without an error, 0.0 with one."""

    name = "error_handling"
    version = "error_handling/3"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def prepare(self) -> None:
        """Load what plain answers take of the detector; the rest is read as replies need it."""
        detect_failure("It was bought in 2019, and it is in Montrose.")

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        failure = find_failure(reply)
        if failure is None:
            return Score(self.name, 1.0, "no error")
        details = msgspec.structs.asdict(failure)
        detected = None if reply.failure else detected_in(reply.text)
        if detected is not None:
            details |= {"because": list(detected.because), "span": [detected.start, detected.end]}
        return Score(self.name, 0.0, f"{failure.kind}: {failure.message}", None, details)


# A log repeats its replies, above all those that are errors.
_remembered = lru_cache(maxsize=4096)(detect_failure)
_LONGEST_REMEMBERED = 2000
_CHARACTERS_REMEMBERED = 2_000_000
# Of longer ones the last few: `audit` gives one to many questions.
_long_remembered = lru_cache(maxsize=4)(detect_failure)


def detected_in(text: str | None) -> DetectedFailure | None:
    """The failure that a text shows."""
    long = text is not None and len(text) > _LONGEST_REMEMBERED
    return _long_remembered(text) if long else _remembered(text)


class KnownKinds(dict[str | None, str | None]):
    """The kinds of failures that texts show, of which those that were seen last are remembered."""

    _characters = 0

    def of(self, texts: Sequence[str | None]) -> list[str | None]:
        """The kind of each; None: it shows none."""
        if self._characters > _CHARACTERS_REMEMBERED:
            self.clear()
            self._characters = 0
        new = [text for text in dict.fromkeys(texts) if text not in self]
        self.update(zip(new, failure_kinds(new), strict=True))
        self._characters += sum(map(len, filter(None, new)))
        return list(map(self.__getitem__, texts))


def find_failure(reply: Reply) -> Failure | None:
    """The failure that counts: the target's own, else one that the text shows."""
    if reply.failure is not None:
        return reply.failure
    detected = detected_in(reply.text)
    if detected is None:
        return None
    raised = next((call for call in reply.tool_calls if call.error), None)
    if raised is not None and detected.kind == "error_text":
        # The reply only reports that a tool failed: the tool is the cause.
        return Failure("tool", f"{raised.name}: {raised.error}")
    return Failure(cast("ErrorKind", detected.kind), detected.message)

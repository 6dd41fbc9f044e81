"""Component 3: did the question complete without an error, as the target saw it or as the reply's text shows it?"""

from functools import lru_cache

from answerkey.detect.detector import DetectedFailure, detect_failure
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import ErrorFacts, Score
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

    def look_ahead(self, reply: Reply) -> None:
        """Decide about a reply's text before it is scored; the decision is remembered."""
        if reply.failure is None:
            detected_in(reply.text)

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        if reply.failure is not None:
            facts = ErrorFacts(reply.failure.kind, reply.failure.message)
            return Score(self.name, 0.0, facts=facts)
        detected = detected_in(reply.text)
        if detected is None:
            return _NO_ERROR
        kind, message = detected.kind, detected.message
        raised = next((call for call in reply.tool_calls if call.error), None)
        if raised is not None and kind == "error_text":
            # The reply only reports that a tool failed: the tool is the cause.
            kind, message = "tool", f"{raised.name}: {raised.error}"
        facts = ErrorFacts(kind, message, tuple(detected.because), (detected.start, detected.end))
        return Score(self.name, 0.0, facts=facts)


_NO_ERROR = Score(ErrorHandling.name, 1.0, "no error")
# A log repeats its replies, above all those that are errors.
_remembered = lru_cache(maxsize=4096)(detect_failure)
_LONGEST_REMEMBERED = 2000
# Of longer ones the last few: `audit` gives one to many questions.
_long_remembered = lru_cache(maxsize=4)(detect_failure)


def detected_in(text: str | None) -> DetectedFailure | None:
    """The failure that a text shows."""
    long = text is not None and len(text) > _LONGEST_REMEMBERED
    return _long_remembered(text) if long else _remembered(text)

"""Component 3: did the question complete without an error, as the target saw it or as the reply's text shows it?"""

from functools import lru_cache

from answerkey.detect.detector import DetectedFailure, detect_failure
from answerkey.detect.forms import shortened
from answerkey.model.options import DEFAULT_ERRORS, ErrorSettings, error_pattern
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import ErrorFacts, Score, SuspectedFacts
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.lazy import lazy
from answerkey.text.normalise import CompiledPattern, compile_pattern

_MARKS_AROUND = " .!?…\"'“”"


class ErrorHandling(BaseScorer):
    """1.0 without an error, 0.0 with one; 1.0 where an error is only suspected."""

    name = "error_handling"
    version = "error_handling/5"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(self, settings: ErrorSettings = DEFAULT_ERRORS) -> None:
        """`settings` are those of `[errors]`."""
        self._suspects = settings.suspect
        self._allowed = _ListedReplies([(text, "") for text in settings.allow])
        self._added = _ListedReplies([(error.text, error.kind) for error in settings.added])

    def prepare(self) -> None:
        """Load what plain answers need of the detector; the rest is loaded when a reply needs it."""
        detected_in("It was bought in 2019, and it is in Montrose.")

    def look_ahead(self, reply: Reply) -> None:
        """Decide about a reply's text before it is scored; the decision is remembered."""
        if reply.failure is None:
            detected_in(reply.text)

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        if reply.failure is not None:
            return Score(self.name, 0.0, facts=ErrorFacts(reply.failure.kind, reply.failure.message))
        detected = self._detect(reply.text)
        if reply.finish == "length" and (detected is None or not detected.charged):
            message = "the model stopped at its token limit (finish reason length)"
            return Score(self.name, 0.0, facts=ErrorFacts("truncated", message))
        if detected is None:
            return _NO_ERROR
        span = (detected.start, detected.end) if detected.end else None
        if not detected.charged:
            suspected = SuspectedFacts(detected.kind, detected.message, detected.probability, span)
            return Score(self.name, 1.0, facts=suspected)
        kind, message = detected.kind, detected.message
        raised = next((call for call in reply.tool_calls if call.error), None)
        if raised is not None and kind == "error_text":
            # The reply only reports that a tool failed: the tool is the cause.
            kind, message = "tool", f"{raised.name}: {raised.error}"
        return Score(self.name, 0.0, facts=ErrorFacts(kind, message, detected.because, span))

    def _detect(self, text: str | None) -> DetectedFailure | None:
        """The failure that a text shows under the settings of `[errors]`."""
        if text is not None:
            if self._allowed.find(text) is not None:
                return None
            kind = self._added.find(text)
            if kind is not None:
                return DetectedFailure(kind, shortened(text), 0, len(text), ("[errors] add",))
        detected = detected_in(text)
        return detected if detected is None or detected.charged or self._suspects else None


class _ListedReplies:
    """Texts and patterns of `[errors]`, each with a kind of error."""

    def __init__(self, entries: list[tuple[str, str]]) -> None:
        self._texts: dict[str, str] = {}
        self._patterns: list[tuple[CompiledPattern, str]] = []
        for text, kind in entries:
            pattern = error_pattern(text)
            if pattern is None:
                self._texts[_plain(text)] = kind
            else:
                self._patterns.append((compile_pattern(pattern), kind))

    def find(self, reply: str) -> str | None:
        """The kind of the entry that a reply equals, or whose pattern occurs in it; None: there is none."""
        if self._texts and (kind := self._texts.get(_plain(reply))) is not None:
            return kind
        found = (kind for pattern, kind in self._patterns if isinstance(pattern.search(reply), tuple))
        return next(found, None)


def _plain(text: str) -> str:
    """A text without case, repeated spaces and punctuation around it."""
    return " ".join(text.split()).strip(_MARKS_AROUND).casefold()


_TERMINAL_CODE = lazy(r"\x1b\[[0-9;?]*[A-Za-z]?")
_NO_ERROR = Score(ErrorHandling.name, 1.0, "no error")
# A log repeats its replies, above all those that are errors.
_remembered = lru_cache(maxsize=4096)(detect_failure)
_LONGEST_REMEMBERED = 2000
# Of longer ones the last few: `audit` gives one to many questions.
_long_remembered = lru_cache(maxsize=4)(detect_failure)


def detected_in(text: str | None) -> DetectedFailure | None:
    """The failure that a text shows or suggests under the default settings."""
    if text is not None and "\x1b" in text:
        # Colours of a terminal are not words, and their bracket is not an open one. Spaces keep the spans right.
        text = _TERMINAL_CODE.sub(lambda code: " " * len(code[0]), text)
    long = text is not None and len(text) > _LONGEST_REMEMBERED
    return _long_remembered(text) if long else _remembered(text)

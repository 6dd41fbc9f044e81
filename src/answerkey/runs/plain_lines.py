"""Lines of plain rows: what a graded trial's row would be, filled into a form.

A form is the grader's own row of a reply with the same tools. What differs from reply to reply is left open in it, so that only
this is made for each row.
"""

import re
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import msgspec

from answerkey.match.keywords import Match
from answerkey.model.question import ExpectedTool, Question
from answerkey.model.reply import Reply
from answerkey.model.result_rows import OPEN, Kept, encode, for_table
from answerkey.model.run_document import result_document, score_document
from answerkey.model.scorecard import Trial, letter_grade
from answerkey.runs.logged_question import LoggedQuestion
from answerkey.runs.plain_rows import PlainRow, plain_reply
from answerkey.scorers.error_handling import ErrorHandling
from answerkey.scorers.grader import Grader
from answerkey.scorers.measuring import Measured
from answerkey.scorers.response_quality import ResponseQuality, keyword_names
from answerkey.transcripts.fields import read_usage

# More would only fill the memory: rows that repeat their questions have fewer.
_MOST_FORMS = 4096
_encode = msgspec.json.Encoder(enc_hook=repr).encode
# What is left open, in the order of a row; no JSON has a zero byte.
_OPEN = ("id", "trial", "question", "category", "score", "grade", "passed")
_HOLE = msgspec.Raw(b"\0")
# What stands for a keyword's name in words, as JSON writes it: the name's place.
_NAME = re.compile(rb"\\u0000(\d+);")


class PlainLines:
    """Makes the lines of plain rows."""

    def __init__(self, grader: Grader, quality: ResponseQuality, kept: Kept) -> None:
        self._grader, self._quality = grader, quality
        # Whether rows say where each keyword was found.
        self.whole = kept == "lines"
        self._weight = grader.scoring.weights[ResponseQuality.name]
        # Of rows by their tools; of what is said of keywords by which are found, with what picks names and spans for it.
        self._forms: dict[object, bytes] = {}
        self._told: dict[tuple[bool, ...], tuple[bytes, Callable[[Sequence[bytes]], Any]]] = {}
        self._error_handling = ErrorHandling()
        # What a row without an error says of errors.
        self._fine = self._error("Yes.")
        # Few different scores come out of many replies.
        self._graded: dict[float | None, tuple[bytes, bytes, bytes]] = {}

    @classmethod
    def of(cls, grader: Grader, quality: ResponseQuality, kept: Kept) -> "PlainLines | None":
        """For a grader that has what depends on the text where forms have it; None: this one has not."""
        fits = grader.scoring.weights.keys() >= {ResponseQuality.name, ErrorHandling.name}
        return cls(grader, quality, kept) if fits else None

    def line(
        self,
        question: LoggedQuestion,
        row: PlainRow,
        matches: tuple[Match, ...],
        said: tuple[bool, ...],
        found: Measured,
    ) -> bytes:
        """The line of a row whose reply was measured; `said` tells which keywords were found, `matches` where, in whole rows."""
        used, taken = row.tools_used, row.latency_ms
        key = (question.tools, used, row.tool_calls is None, row.sources, taken is None)
        form = self._forms.get(key) or self._form(question, row, key)
        identity, asked, category, names = question.shown or self._shown(question)
        told, pick = self._told.get(said) or self._said(said)
        if said and self.whole:
            # No text in JSON has these marks unescaped, so that they part the matches.
            _, *spans = _encode(matches).split(b'{"found":')
            quality = told % pick((*names, *spans))
        else:
            quality = told % pick(names) if said else told
        score, letter, passed = self._graded.get(found.points) or self._grade(found.points or 0.0)
        handled, error = self._fine if found.error is None else self._error(row.answer)
        number = b"%d" % row.trial if row.trial else OPEN
        first = (identity, number, asked, category, score, letter, passed, quality, handled)
        times: tuple[bytes, ...] = ()
        if taken is not None:
            exact = _encode(taken)
            # Rounding takes longer than to see that there is nothing to round.
            times = (exact if exact[-4:].find(b".") >= 0 else _encode(round(taken, 3)), exact)[
                : 1 + self.whole
            ]
        rest: tuple[bytes, ...] = ()
        if self.whole:
            usage = b"null" if row.usage is None else encode(read_usage(row.usage))
            rest = usage, _encode(row.conversation_id)
        return form % (*first, _encode(row.answer), error, *times, *rest, error)

    def _form(self, question: LoggedQuestion, row: PlainRow, key: object) -> bytes:
        reply = plain_reply(row)
        if reply is None:
            raise TypeError("a row that is not plain")
        tools = tuple(map(ExpectedTool, question.tools))
        asked = Question(id="", question="", expected_tools=tools)
        answered = msgspec.structs.replace(reply, text="Yes.")
        document = result_document(Trial(asked, 1, 0, (answered,), self._grader.grade(asked, (answered,))))
        if not self.whole:
            document = for_table(document)
        document |= dict.fromkeys(_OPEN, _HOLE)
        document["components"] |= dict.fromkeys((ResponseQuality.name, ErrorHandling.name), _HOLE)
        document["error"] = _HOLE
        replied = document["reply"]
        open_fields = ["text", "error"]
        if row.latency_ms is not None:
            open_fields.append("latency_ms")
        if self.whole:
            open_fields += "usage", "conversation_id"
            if row.latency_ms is not None:
                replied["timings"]["latency_ms"] = _HOLE
        replied |= dict.fromkeys(open_fields, _HOLE)
        form = encode(document).replace(b"%", b"%%").replace(b"\0", b"%b") + b"\n"
        if len(self._forms) < _MOST_FORMS:
            self._forms[key] = form
        return form

    def _said(self, found: tuple[bool, ...]) -> tuple[bytes, Callable[[Sequence[bytes]], Any]]:
        """The component that depends on the keywords; open are their names, and in whole rows where each was found."""
        count = len(found)
        score = self._quality.told([f"\0{place};" for place in range(count)], found)
        told = encode(score_document(score, self._weight)).replace(b"%", b"%%")
        places = [int(place) for place in _NAME.findall(told)]
        told = _NAME.sub(b"%b", told)
        if self.whole:
            places += [at for place in range(count) for at in (place, count + place)]
            matches = b'{"keyword":"%b","found":%b' * count or b"]"
            told = told[:-1] + b',"matches":[' + matches + b"}"
        # A getter of one place gives no tuple; one place is all that one keyword, found, has.
        said = told, itemgetter(*places) if len(places) > 1 else tuple
        if len(self._told) < _MOST_FORMS:
            self._told[found] = said
        return said

    def _error(self, text: str | None) -> tuple[bytes, bytes]:
        """What a row says of errors that its text shows: the component, and the error itself."""
        score = self._error_handling.score(_NOTHING, Reply(text=text))
        error = {name: score.details[name] for name in ("kind", "message")} if score.details else None
        return encode(score_document(score, self._grader.scoring.weights[score.name])), encode(error)

    def _shown(self, question: LoggedQuestion) -> tuple[bytes, bytes, bytes, list[bytes]]:
        names = [encode(name)[1:-1] for name in keyword_names(question.keywords)]
        shown = encode(question.id), encode(question.question), encode(question.category), names
        question.shown = shown
        return shown

    def _grade(self, points: float) -> tuple[bytes, bytes, bytes]:
        passed = points >= self._grader.scoring.pass_mark
        graded = self._graded[points] = encode(points), encode(letter_grade(points)), encode(passed)
        return graded


_NOTHING = Question(id="", question="")

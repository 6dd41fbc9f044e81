"""Component 2: does the reply say what it should, and nothing that it must not?"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import msgspec

from answerkey.match.keywords import Match, MatchMode, Probability, find_keywords, is_number
from answerkey.model.expectation import ComputedExpectation, Expectation, describe_expectation, is_essential
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import ExpectationNote, KeywordFacts, KeywordMatch, Score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.normalise import Threshold

# Raised where the same reply could get another score.
_REVISIONS: dict[MatchMode, int] = {"literal": 4, "standard": 4, "smart": 9}


class ResponseQuality(BaseScorer):
    """Expectations met ÷ expectations; 0 without an essential one, and with a forbidden keyword."""

    name = "response_quality"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(
        self,
        mode: MatchMode = "standard",
        *,
        threshold: Threshold = "even",
        must: Literal["marked", "numbers"] = "marked",
        whole_numbers: bool = False,
        model: str = "",
        abbreviations: Mapping[str, str] | None = None,
        folder: Path = Path(),
    ) -> None:
        self.mode: MatchMode = mode
        # Whether scores say where each keyword is; a log of which only the summary is needed does without.
        self.spans = True
        # How sure `smart` must be, of keywords in its mode and of reference answers in every mode.
        self.threshold: Threshold = threshold
        self._must, self._whole_numbers = must, whole_numbers
        # An entailment model that decides for `smart`; none: its own trees do.
        self._model, self._folder = model, folder
        # Abbreviations of `smart` beside its own.
        self._abbreviations = tuple(sorted((abbreviations or {}).items()))
        parts = [f"response_quality/{_REVISIONS[mode]}", mode]
        parts += [threshold] if threshold != "even" else []
        parts += [f"must {must}"] if must != "marked" else []
        parts += ["whole numbers"] if whole_numbers else []
        parts += [model] if model else []
        parts += [f"{short}={meaning}" for short, meaning in self._abbreviations]
        self.version = "/".join(parts)

    @cached_property
    def _probability(self) -> Probability | None:
        """How probably a reply says a keyword by the model, which the first reply loads in the process that scores."""
        if not self._model:
            return None
        from answerkey.evidence.entailment import load_cross_encoder

        model = load_cross_encoder(self._model, self._folder)
        return lambda question, keyword, answer: model.probabilities([(answer, f"{question} {keyword}")])[0]

    def prepare(self) -> None:
        """Load what the mode takes; a model is loaded by the process that asks it."""
        if not self._model:
            self.score(
                Question(id="", question="?", expected_keywords=("two",)), Reply(text="There are three.")
            )

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        reference = question.reference_answer
        if not question.answerable:
            value, facts = self._unanswerable(question, reply.text)
        elif not question.expected_keywords and reference and reference.strip():
            (match,) = self.find((reference,), reply.text, question.question, "smart")
            value = float(match.found)
            facts = KeywordFacts(matches=(_keyword_match(reference, match),), conveys_reference=match.found)
        else:
            value, facts = self._by_keywords(question, reply.text)
        if question.forbidden_keywords:
            forbidden = self._forbidden_said(question, reply.text)
            if forbidden:
                value, facts = 0.0, msgspec.structs.replace(facts, forbidden=forbidden)
        return Score(self.name, value, facts=facts)

    def _unanswerable(self, question: Question, text: str | None) -> tuple[float, KeywordFacts]:
        """Declining is one expectation beside the keywords; expectations without a value (`on_empty`) are not counted."""
        keywords = _known_keywords(question)
        declined = is_declined(question, text)
        value, facts = self._by_keywords(msgspec.structs.replace(question, expected_keywords=keywords), text)
        # A missing essential keyword leaves nothing.
        if not keywords or value or not any(note.must for note in facts.notes):
            value = (len(facts.found) + declined) / (len(keywords) + 1)
        return value, msgspec.structs.replace(facts, declined=declined)

    def _by_keywords(self, question: Question, text: str | None) -> tuple[float, KeywordFacts]:
        keywords = question.expected_keywords
        if not keywords:
            return 1.0, _NOTHING_EXPECTED
        # A plain text is its own name, and most sets have nothing else.
        is_plain = set(map(type, keywords)) == {str}
        names: Sequence[str] = keywords if is_plain else keyword_names(keywords)  # type: ignore[assignment]  # texts
        notes = () if is_plain and self._must == "marked" else self._notes(keywords, names)
        matches = self.find(keywords, text, question.question)
        found: list[str] = []
        missing: list[str] = []
        for name, match in zip(names, matches, strict=True):
            (found if match.found else missing).append(name)
        spans = tuple(map(_keyword_match, names, matches)) if self.spans else ()
        value = len(found) / len(names)
        if missing and notes and any(note.must and note.keyword in missing for note in notes):
            value = 0.0
        return value, KeywordFacts(tuple(found), tuple(missing), spans, notes)

    def _notes(self, keywords: Sequence[Expectation], names: Sequence[str]) -> tuple[ExpectationNote, ...]:
        """The essential and computed ones among the expectations."""
        return tuple(
            note
            for keyword, name in zip(keywords, names, strict=True)
            if (note := self._note(keyword, name)).must or note.expression
        )

    def _note(self, keyword: Expectation, name: str) -> ExpectationNote:
        if isinstance(keyword, ComputedExpectation):
            # Never a wrong number in silence: the reply stays unscored.
            raise ValueError(f"the expected value of {keyword.expression!r} was not computed before scoring")
        must = is_essential(keyword) or (self._must == "numbers" and is_number(keyword))
        return ExpectationNote(name, must, "" if isinstance(keyword, str) else keyword.expression)

    def find(
        self,
        keywords: Sequence[Expectation],
        text: str | None,
        question: str = "",
        mode: MatchMode | None = None,
    ) -> tuple[Match, ...]:
        """One Match for each keyword, in order."""
        return find_keywords(
            keywords,
            text,
            mode or self.mode,
            question=question,
            threshold=self.threshold,
            probability=self._probability,
            whole_numbers=self._whole_numbers,
            abbreviations=self._abbreviations,
        )

    def _forbidden_said(self, question: Question, text: str | None) -> tuple[KeywordMatch, ...]:
        matches = self.find(question.forbidden_keywords, text, question.question)
        return tuple(
            _keyword_match(describe_expectation(keyword), match)
            for keyword, match in zip(question.forbidden_keywords, matches, strict=True)
            if match.found
        )


_NOTHING_EXPECTED = KeywordFacts()


def keyword_names(keywords: Sequence[Expectation]) -> list[str]:
    """How keywords are named in words."""
    return [word if type(word) is str else describe_expectation(word) for word in keywords]


def is_declined(question: Question, text: str | None) -> bool:
    """Whether a reply declines to answer a question."""
    from answerkey.detect.abstention.model import declines  # few sets have unanswerable questions

    if question.answerable:
        return declines(question.question, text)
    # A figure that the key expects beside declining is not an invented answer.
    return declines(" ".join([question.question, *keyword_names(_known_keywords(question))]), text)


def _known_keywords(question: Question) -> tuple[Expectation, ...]:
    return tuple(one for one in question.expected_keywords if not isinstance(one, ComputedExpectation))


def _keyword_match(keyword: str, match: Match) -> KeywordMatch:
    return KeywordMatch(keyword, match.found, match.rule, match.start, match.end, match.text, match.why)


# Metrics beside the score: unanswerable questions that were declined, and answerable ones that were.


class Abstention(BaseScorer):
    """`abstained` of an unanswerable question, `over_refused` of an answerable one: 1.0 if the reply declines, else 0.0."""

    name = "abstention"
    version = "abstention/1"
    direction: Mapping[str, Direction] = {"abstained": "higher", "over_refused": "lower"}
    needs: frozenset[Need] = frozenset()

    def __init__(self, **quality: Any) -> None:
        """`quality` are the arguments of ResponseQuality."""
        # Whether answerable questions are measured too: only beside unanswerable ones, since it takes time for every reply.
        self.measures_answerable = False
        self._quality = ResponseQuality(**quality)

    def score(self, question: Question, reply: Reply) -> Sequence[Score]:
        """One of the two metrics, or none."""
        if question.answerable and not self.measures_answerable:
            return ()
        declined = reply.failure is None and is_declined(question, reply.text)
        if not question.answerable:
            return (Score("abstained", float(declined)),)
        # "None" and "no late fees" are answers where the key expects them.
        is_right = (
            declined
            and not question.expects_nothing_of_text
            and self._quality.score(question, reply).value == 1.0
        )
        return (Score("over_refused", float(declined and not is_right)),)

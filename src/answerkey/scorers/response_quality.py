"""Component 2: does the reply say what it should, and nothing that it must not?"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from answerkey.match.keywords import Match, MatchMode, Probability, find_keywords
from answerkey.model.expectation import ComputedExpectation, Expectation, describe_expectation
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import KeywordFacts, KeywordMatch, Score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.normalise import Threshold

# Raised where the same reply could get another score.
_REVISIONS: dict[MatchMode, int] = {"literal": 2, "standard": 2, "smart": 6}


class ResponseQuality(BaseScorer):
    """Keywords found ÷ keywords expected; a forbidden keyword makes it zero."""

    name = "response_quality"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(
        self,
        mode: MatchMode = "standard",
        *,
        threshold: Threshold = "even",
        model: str = "",
        folder: Path = Path(),
    ) -> None:
        self.mode: MatchMode = mode
        # Whether scores say where each keyword is; a log of which only the summary is wanted does without.
        self.spans = True
        # How sure `smart` must be, of keywords in its mode and of reference answers in every mode.
        self.threshold: Threshold = threshold
        self.version = f"response_quality/{_REVISIONS[mode]}/{mode}"
        if threshold != "even":
            self.version += f"/{threshold}"
        # An entailment model that decides for `smart`; none: its own trees do.
        self._model, self._folder = model, folder
        if model:
            self.version += f"/{model}"

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
        if not question.expected_keywords and reference and reference.strip():
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

    def _by_keywords(self, question: Question, text: str | None) -> tuple[float, KeywordFacts]:
        keywords = question.expected_keywords
        if not keywords:
            return 1.0, _NOTHING_EXPECTED
        for keyword in keywords:
            if type(keyword) is ComputedExpectation:
                # Never a wrong number in silence: the reply stays unscored.
                raise ValueError(
                    f"the expected value of {keyword.expression!r} was not computed before scoring"
                )
        names = keyword_names(keywords)
        matches = self.find(keywords, text, question.question)
        found = tuple([name for name, match in zip(names, matches, strict=True) if match.found])
        missing: tuple[str, ...] = ()
        if len(found) < len(names):
            missing = tuple([name for name, match in zip(names, matches, strict=True) if not match.found])
        spans = tuple(map(_keyword_match, names, matches)) if self.spans else ()
        return len(found) / len(names), KeywordFacts(found, missing, spans)

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


def _keyword_match(keyword: str, match: Match) -> KeywordMatch:
    return KeywordMatch(keyword, match.found, match.rule, match.start, match.end, match.text, match.why)

"""Component 2: does the reply say what it should, and nothing that it must not?"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import msgspec

from answerkey.match.keywords import Match, MatchMode, Probability, find_keywords, said_keywords
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import BaseScorer, Direction, Need
from answerkey.text.normalise import Keyword, Threshold, describe_keyword

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

    def value(self, question: Question, reply: Reply) -> float | None:
        """What `score` gives as its value, without the words."""
        if not question.expected_keywords or self.mode == "smart" or question.forbidden_keywords:
            return self.score(question, reply).value
        said = self.said(question.expected_keywords, reply.text)
        return said.count(True) / len(said)

    def said(self, keywords: Sequence[Keyword], text: str | None) -> list[bool]:
        """Which of the keywords a text says, in the modes that only look."""
        return said_keywords(keywords, text, self.mode)

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        if not question.expected_keywords and question.reference_answer and question.reference_answer.strip():
            return self._by_reference(question, question.reference_answer, reply)
        scored = self.by_keywords(question.expected_keywords, reply.text, question.question)
        return self._forbidden_score(question, reply, scored.details) or scored

    def by_keywords(self, keywords: Sequence[Keyword], text: str | None, question: str = "") -> Score:
        """Score one reply by the keywords alone; the modes that only look do not need the question."""
        names, matches = keyword_names(keywords), self.find(keywords, text, question)
        scored = self.told(names, [match.found for match in matches])
        scored.details["matches"] = list(map(_span, names, matches))
        return scored

    def find(
        self, keywords: Sequence[Keyword], text: str | None, question: str = "", mode: MatchMode | None = None
    ) -> tuple[Match, ...]:
        """Where a text says each of the keywords."""
        return find_keywords(
            keywords,
            text,
            mode or self.mode,
            question=question,
            threshold=self.threshold,
            probability=self._probability,
        )

    def told(self, names: Sequence[str], found: Sequence[bool]) -> Score:
        """The score and the words for it, of keywords that are found or not; where, stands behind the details."""
        said = [name for name, one in zip(names, found, strict=True) if one]
        if len(said) == len(names):
            missing = []
            reason = f"{len(said)} of {len(names)} keywords found" if names else "no keyword expected"
        else:
            missing = [name for name, one in zip(names, found, strict=True) if not one]
            reason = f"{len(said)} of {len(names)} keywords found; missing {', '.join(missing)}"
        value = len(said) / len(names) if names else 1.0
        return Score(self.name, value, reason, None, {"found": said, "missing": missing})

    def _by_reference(self, question: Question, answer: str, reply: Reply) -> Score:
        """1 or 0 by whether the reply conveys the reference answer: by `smart`, since there is no literal way."""
        (match,) = self.find((answer,), reply.text, question.question, "smart")
        details: dict[str, Any] = {"found": [], "missing": [], "matches": [_span(answer, match)]}
        forbidden = self._forbidden_score(question, reply, details)
        if forbidden is not None:
            return forbidden
        verb = "conveys" if match.found else "does not convey"
        reason = f"{verb} the reference answer (no keyword is expected, so it was matched by smart)"
        return Score(self.name, float(match.found), reason, None, details)

    def _forbidden_score(self, question: Question, reply: Reply, details: dict[str, Any]) -> Score | None:
        """Zero where the reply says what it must not."""
        said = self._forbidden(question, reply)
        if not said:
            return None
        details["forbidden"] = [span["keyword"] for span in said]
        details["forbidden_matches"] = said
        reason = f"says {', '.join(details['forbidden'])}, which is forbidden"
        return Score(self.name, 0.0, reason, None, details)

    def _forbidden(self, question: Question, reply: Reply) -> list[dict[str, Any]]:
        if not question.forbidden_keywords:
            return []
        matches = self.find(question.forbidden_keywords, reply.text, question.question)
        return [
            _span(describe_keyword(keyword), match)
            for keyword, match in zip(question.forbidden_keywords, matches, strict=True)
            if match.found
        ]


def keyword_names(keywords: Sequence[Keyword]) -> list[str]:
    """What keywords are called in words."""
    return [word if type(word) is str else describe_keyword(word) for word in keywords]


def _span(keyword: str, match: Match) -> dict[str, Any]:
    return {"keyword": keyword, **msgspec.structs.asdict(match)}

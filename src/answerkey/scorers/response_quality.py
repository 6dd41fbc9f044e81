"""Component 2: does the reply say what it should, and nothing that it must not?"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from answerkey.match.keywords import Match, MatchMode, Probability, count_keywords, find_keywords
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import Direction, Need
from answerkey.text.keyword import Keyword, Threshold, describe_keyword

__all__ = ["ResponseQuality"]


# Raised where the same reply could get another score.
_REVISIONS: dict[MatchMode, int] = {"literal": 2, "standard": 2, "smart": 4}


class ResponseQuality:
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
        from answerkey.entailment import load_cross_encoder

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
        return self.share_said(question.expected_keywords, reply.text)

    def share_said(self, keywords: Sequence[Keyword], text: str | None) -> float:
        """The share of the keywords that a text says, in the modes that only look."""
        return count_keywords(keywords, text, self.mode) / len(keywords)

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        if not question.expected_keywords and question.reference_answer and question.reference_answer.strip():
            return self._by_reference(question, question.reference_answer, reply)
        matches = find_keywords(
            question.expected_keywords,
            reply.text,
            self.mode,
            question=question.question,
            threshold=self.threshold,
            probability=self._probability,
        )
        found: list[str] = []
        missing: list[str] = []
        spans: list[dict[str, Any]] = []
        for keyword, match in zip(question.expected_keywords, matches, strict=True):
            name = keyword if type(keyword) is str else describe_keyword(keyword)
            (found if match.found else missing).append(name)
            spans.append(_span(name, match))
        details: dict[str, Any] = {"found": found, "missing": missing, "matches": spans}
        forbidden = self._forbidden_score(question, reply, details)
        if forbidden is not None:
            return forbidden
        if not matches:
            return Score(self.name, 1.0, "no keyword expected", None, details)
        reason = f"{len(found)} of {len(matches)} keywords found"
        if missing:
            reason += f"; missing {', '.join(missing)}"
        return Score(self.name, len(found) / len(matches), reason, None, details)

    def _by_reference(self, question: Question, answer: str, reply: Reply) -> Score:
        """1 or 0 by whether the reply conveys the reference answer: by `smart`, since there is no literal way."""
        (match,) = find_keywords(
            (answer,),
            reply.text,
            "smart",
            question=question.question,
            threshold=self.threshold,
            probability=self._probability,
        )
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
        matches = find_keywords(
            question.forbidden_keywords,
            reply.text,
            self.mode,
            question=question.question,
            threshold=self.threshold,
            probability=self._probability,
        )
        return [
            _span(describe_keyword(keyword), match)
            for keyword, match in zip(question.forbidden_keywords, matches, strict=True)
            if match.found
        ]


def _span(keyword: str, match: Match) -> dict[str, Any]:
    return {
        "keyword": keyword,
        "found": match.found,
        "rule": match.rule,
        "start": match.start,
        "end": match.end,
        "text": match.text,
        "why": match.why,
    }

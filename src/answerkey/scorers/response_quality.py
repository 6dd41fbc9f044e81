"""Component 2: does the reply say what it should, and nothing that it must not?"""

from collections.abc import Iterable
from typing import Any

from answerkey.match.keywords import (
    Match,
    MatchMode,
    embeddings_installed,
    encode_ahead,
    find_keywords,
    keyword_matcher,
)
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score
from answerkey.protocols import Direction, Need
from answerkey.text.keyword import describe_keyword

__all__ = ["ResponseQuality"]


# Raised where the same reply could get another score.
_REVISIONS: dict[MatchMode, int] = {"literal": 2, "standard": 2, "smart": 3}


class ResponseQuality:
    """Keywords found ÷ keywords expected; a forbidden keyword makes it zero.

    A question without keywords that has a reference answer expects that, in the sense of `smart` whatever the mode: there
    is no literal way to convey an answer.
    """

    name = "response_quality"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset()

    def __init__(self, mode: MatchMode = "standard", *, embeddings: bool = False) -> None:
        self.mode: MatchMode = mode
        # Synonyms count for what is expected only: a likeness is too little to call a reply forbidden.
        self.embeddings = embeddings and mode == "smart"
        self.version = f"response_quality/{_REVISIONS[mode]}/{mode}"
        if self.embeddings and embeddings_installed():
            self.version += "/synonyms-1"

    @property
    def prepares(self) -> bool:
        """Whether scoring many replies together is faster: embeddings are worked out in batches."""
        return self.embeddings and embeddings_installed()

    def prepare(self, pairs: Iterable[tuple[Question, Reply]]) -> None:
        """Work out in full batches what scoring these replies will need."""
        encode_ahead(
            phrase
            for question, reply in pairs
            for phrase in keyword_matcher(
                question.expected_keywords, self.mode, question.question, self.embeddings
            ).phrases_to_compare(reply.text)
        )

    def score(self, question: Question, reply: Reply) -> Score:
        """Score one reply."""
        expected, mode = question.expected_keywords, self.mode
        by_reference = not expected and bool(question.reference_answer and question.reference_answer.strip())
        if by_reference:
            expected, mode = (question.reference_answer or "",), "smart"
        matches = find_keywords(
            expected,
            reply.text,
            mode,
            question=question.question,
            embeddings=self.embeddings,
        )
        found: list[str] = []
        missing: list[str] = []
        spans: list[dict[str, Any]] = []
        for keyword, match in zip(expected, matches, strict=True):
            name = keyword if type(keyword) is str else describe_keyword(keyword)
            (found if match.found else missing).append(name)
            spans.append(_span(name, match))
        details: dict[str, Any] = {"found": found, "missing": missing, "matches": spans}
        said = self._forbidden(question, reply)
        if said:
            details["forbidden"] = [span["keyword"] for span in said]
            details["forbidden_matches"] = said
            return Score(
                self.name, 0.0, f"says {', '.join(details['forbidden'])}, which is forbidden", None, details
            )
        if not matches:
            return Score(self.name, 1.0, "no keyword expected", None, details)
        if by_reference:
            reason = f"{'conveys' if found else 'does not convey'} the reference answer (matched as in smart)"
            return Score(self.name, float(bool(found)), reason, None, details)
        reason = f"{len(found)} of {len(matches)} keywords found"
        if missing:
            reason += f"; missing {', '.join(missing)}"
        return Score(self.name, len(found) / len(matches), reason, None, details)

    def _forbidden(self, question: Question, reply: Reply) -> list[dict[str, Any]]:
        if not question.forbidden_keywords:
            return []
        matches = find_keywords(
            question.forbidden_keywords, reply.text, self.mode, question=question.question
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

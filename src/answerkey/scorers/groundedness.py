"""The groundedness scorer: supported ÷ checkable claims, and the inconsistencies beside it."""

from collections.abc import Mapping, Sequence

from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.protocols import Direction, Need

__all__ = ["Groundedness", "has_evidence"]

# A longer reply is checked up to here, which is said.
_MOST_TEXT = 20_000


class Groundedness:
    """Checks a reply's claims against its tool results, its sources and the question, without a model."""

    name = "groundedness"
    version = "groundedness/3"
    direction: Mapping[str, Direction] = {"groundedness": "higher", "consistency": "higher"}
    needs: frozenset[Need] = frozenset({"evidence", "earlier"})

    def score(
        self, question: Question, reply: Reply, *, earlier: Sequence[tuple[Question, Reply]] = ()
    ) -> Sequence[Score]:
        """`groundedness` and `consistency`; nothing for a reply whose evidence was not observed at all.

        A turn of a conversation may rest on what the tools gave in the turns before it.
        """
        if reply.text is None or not reply.text.strip():
            return ()
        shown = [reply, *(before for _, before in earlier)]
        if not any(one.tool_calls or one.sources for one in shown):
            return ()
        if not any(map(has_evidence, shown)):
            return (Score(self.name, None, "not observed: no tool result and no source's text was recorded"),)
        # Loaded by the first reply that has something to check: many chatbots never show their evidence.
        from answerkey.grounded.check import check_claims
        from answerkey.grounded.consistency import find_inconsistencies
        from answerkey.grounded.evidence import gather_evidence

        evidence = gather_evidence(question, reply, earlier)
        text = reply.text[:_MOST_TEXT]
        checked = check_claims(text, evidence)
        findings = find_inconsistencies(text, checked, evidence, reply)
        consistency = Score(
            "consistency",
            0.0 if findings else 1.0,
            findings[0]["message"] if findings else "nothing contradicts the evidence",
            details={"findings": findings} if findings else {},
        )
        if not checked:
            return (Score(self.name, None, "the reply states nothing that can be checked"), consistency)
        supported = sum(one.supported for one in checked)
        value = round_score(supported / len(checked))
        documents = [one.document() for one in checked]
        details = {
            "score": value,
            "claims": documents,
            "unsupported": [document for document in documents if not document["supported"]],
        }
        reason = f"{supported} of {len(checked)} claims supported"
        if len(reply.text) > _MOST_TEXT:
            reason += f"; the first {_MOST_TEXT} characters were checked"
        return (Score(self.name, value, reason, details=details), consistency)


def has_evidence(reply: Reply) -> bool:
    """Whether a tool's result or a source's text was observed."""
    return any(call.result_seen or call.result is not None for call in reply.tool_calls) or any(
        source.text for source in reply.sources
    )

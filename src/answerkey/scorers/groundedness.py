"""What is said of a reply's evidence: plain descriptions (`linked`, `novelty`), and `groundedness` by an entailment model."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec

from answerkey.errors import UsageError
from answerkey.model.judgement import NOT_CALIBRATED, SentenceCalibration, read_calibration
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Score, round_score
from answerkey.protocols import BaseScorer, Direction, Need

_NOT_OBSERVED = "not observed: no tool result and no source's text was recorded"
Earlier = Sequence[tuple[Question, Reply]]


class LinksIntoEvidence(BaseScorer):
    """How many of a reply's figures, dates, names, ids and quotes have a link, and how many of its words are new."""

    name = "linked"
    version = "links/2"
    direction: Mapping[str, Direction] = {"linked": "higher", "novelty": "lower"}
    needs: frozenset[Need] = frozenset({"evidence", "earlier"})

    def score(self, question: Question, reply: Reply, *, earlier: Earlier = ()) -> Sequence[Score]:
        """`linked` and `novelty`; nothing for a reply without text or tool calls and sources."""
        shown = [reply, *(before for _, before in earlier)]
        if not (reply.text or "").strip() or not any(one.tool_calls or one.sources for one in shown):
            return ()
        if not any(map(has_evidence, shown)):
            return tuple(Score(name, None, _NOT_OBSERVED) for name in self.direction)
        # Loaded by the first reply that has something to look up: many chatbots never show their evidence.
        from answerkey.evidence.links import TooLargeError, find_links

        try:
            links, novelty = find_links(question, reply, earlier)
        except TooLargeError as error:
            reason = f"not scored: too large: {error}"
            return tuple(Score(name, None, reason, details={"reason": reason}) for name in self.direction)
        with_link = sum(bool(item.where) for item in links)
        linked = with_link / len(links) if links else None
        reason = f"{with_link} of {len(links)} figures, dates, names, ids and quotes have a link"
        return (
            Score("linked", linked, reason, details={"links": msgspec.to_builtins(links)}),
            Score("novelty", novelty, "the share of content words that occur nowhere in the evidence"),
        )


class Groundedness(BaseScorer):
    """Supported ÷ claimed sentences by an entailment model, with how reliable the model was on labelled sentences."""

    name = "groundedness"
    direction: Direction = "higher"
    needs: frozenset[Need] = frozenset({"evidence", "earlier"})

    def __init__(self, model: str = "", calibration: str = "", folder: Path = Path()) -> None:
        if not model:
            raise UsageError(
                "groundedness needs a judge (--judge MODEL) or an entailment model ([grounded] model)"
            )
        self._model = model
        self._folder = folder
        self._calibration: SentenceCalibration | None = (
            read_calibration(folder / calibration, model) if calibration else None
        )

    @property
    def version(self) -> str:
        """Changes with the model and with the threshold that it is used with."""
        return f"groundedness/4/{self._model}/{self._threshold}"

    @property
    def _threshold(self) -> float:
        return 0.5 if self._calibration is None else self._calibration.threshold

    @cached_property
    def _encoder(self):  # type: ignore[no-untyped-def]  # loaded by the first reply, in the process that scores
        from answerkey.evidence.entailment import load_cross_encoder

        return load_cross_encoder(self._model, self._folder)

    def score(self, question: Question, reply: Reply, *, earlier: Earlier = ()) -> Sequence[Score]:
        """`groundedness`; nothing for a reply without text or evidence."""
        if not (reply.text or "").strip() or not any(
            map(has_evidence, (reply, *(one for _, one in earlier)))
        ):
            return ()
        from answerkey.evidence.entailment import claimed_sentences, verify_sentences

        sentences = claimed_sentences(reply.text or "")
        reliability = NOT_CALIBRATED if self._calibration is None else self._calibration.in_words
        claims = [
            {"claim": text, "supported": probability >= self._threshold, "evidence": note}
            for text, probability, note in verify_sentences(
                self._encoder, question, reply, earlier, sentences=sentences
            )
        ]
        supported = sum(bool(claim["supported"]) for claim in claims)
        value = round_score(supported / len(claims)) if claims else None
        reason = f"{supported} of {len(claims)} claims supported" if claims else "the reply claims nothing"
        details = {
            "score": value,
            "claims": claims,
            "model": self._model,
            "reason": reason,
            "reliability": reliability,
        }
        return (Score(self.name, value, f"{reason} ({reliability})", details=details),)


def has_evidence(reply: Reply) -> bool:
    """Whether a tool's result or a source's text was observed."""
    return any(call.result_seen or call.result is not None for call in reply.tool_calls) or any(
        source.text for source in reply.sources
    )

"""What a reply claims, sentence by sentence, each held by an entailment model against the nearest parts of the evidence."""

import re
from collections.abc import Sequence
from itertools import groupby

import msgspec

from answerkey.entailment import CrossEncoder
from answerkey.grounded.evidence import Evidence, gather_evidence
from answerkey.grounded.words import Words, meaning
from answerkey.model.question import Question
from answerkey.model.reply import Reply

_SENTENCE = re.compile(r"[^\n]+?(?:[.!?。！？](?=\s|$)|(?<=[。！？])|\n|$)")
# Fewer content words than this claim nothing: "Sure!", "Warm regards".
_LEAST_WORDS = 2
# A passage is cut into premises of about this many characters; so many of the nearest are tried.
_PREMISE = 800
_TRIED = 3


class ClaimedSentence(msgspec.Struct, frozen=True):
    """One sentence, and how probably the evidence holds it."""

    text: str
    probability: float
    # Where the premise that holds it best stands.
    note: str


def claimed_sentences(text: str) -> list[str]:
    """The sentences that may claim something: no question, no heading of a word or two."""
    found = (one[0].strip() for one in _SENTENCE.finditer(text))
    return [
        one
        for one in found
        if one[-1:] not in ("?", "？", ":") and len(meaning(Words(one).keys)) >= _LEAST_WORDS
    ]


class Verifier:
    """Asks the model."""

    def __init__(self, model: CrossEncoder) -> None:
        self._model = model

    def verify(
        self,
        question: Question,
        reply: Reply,
        earlier: Sequence[tuple[Question, Reply]] = (),
        *,
        sentences: Sequence[str] | None = None,
    ) -> list[ClaimedSentence]:
        """Every sentence that claims something (or those given), with the best of its nearest premises; in batches."""
        premises = list(_premises(gather_evidence(question, reply, earlier)))
        words = [meaning(Words(text).keys) for _, text in premises]
        sentences = claimed_sentences(reply.text or "") if sentences is None else sentences
        asked: list[tuple[int, int]] = []
        for number, sentence in enumerate(sentences):
            said = meaning(Words(sentence).keys)
            nearest = sorted(range(len(premises)), key=lambda index: -len(said & words[index]))[:_TRIED]
            asked += [(number, index) for index in nearest]
        held = self._model.probabilities([(premises[index][1], sentences[number]) for number, index in asked])
        found = []
        for number, tried in groupby(zip(asked, held, strict=True), key=lambda one: one[0][0]):
            (_, index), best = max(tried, key=lambda one: one[1])
            found.append(ClaimedSentence(sentences[number], best, f"{best:.0%} by {premises[index][0]}"))
        return found


def _premises(evidence: Evidence) -> list[tuple[str, str]]:
    """(where, text): passages in pieces, and each record as "name: value" lines."""
    found: list[tuple[str, str]] = []
    for number, record in enumerate(evidence.records):
        text = "\n".join(
            f"{spot.key}: {spot.text}" if record.path is not None else spot.text
            for spot in evidence.spots_of(number, len(evidence.spots))
            if spot.cell or record.path is None
        )
        if found and found[-1][0] == record.root and len(found[-1][1]) + len(text) < _PREMISE:
            found[-1] = (record.root, f"{found[-1][1]}\n{text}")
        else:
            found += [(record.root, text[at : at + _PREMISE]) for at in range(0, len(text), _PREMISE)]
    return found

"""What a reply claims, sentence by sentence, each held by an entailment model against the nearest parts of the evidence."""

from collections.abc import Sequence
from itertools import groupby, pairwise

from answerkey.entailment import CrossEncoder
from answerkey.grounded.evidence import Earlier, Evidence, gather_evidence
from answerkey.grounded.words import Words, meaning, sentence_edges
from answerkey.model.question import Question
from answerkey.model.reply import Reply

_LEAST_WORDS = 2  # fewer content words claim nothing: "Sure!", "Warm regards"
_PREMISE = 800  # a passage is cut into premises of about this many characters;
_TRIED = 3  # so many of the nearest are tried


def claimed_sentences(text: str) -> list[str]:
    """The sentences that may claim something: no question, no heading of a word or two."""
    found = [text[start:end].strip() for start, end in pairwise(sentence_edges(text))]
    return [one for one in found if one[-1:] not in "?？:" and len(meaning(Words(one).keys)) >= _LEAST_WORDS]


def verify_sentences(
    model: CrossEncoder, question: Question, reply: Reply, earlier: Earlier = (), *, sentences: Sequence[str]
) -> list[tuple[str, float, str]]:
    """Every sentence, how probably the best of its nearest premises holds it, and where that stands; asked in batches."""
    premises = list(_premises(gather_evidence(question, reply, earlier)))
    words = [meaning(Words(text).keys) for _, text in premises]
    asked: list[tuple[int, int]] = []
    for number, sentence in enumerate(sentences):
        said = meaning(Words(sentence).keys)
        nearest = sorted(range(len(premises)), key=lambda index: -len(said & words[index]))[:_TRIED]
        asked += [(number, index) for index in nearest]
    held = model.probabilities([(premises[index][1], sentences[number]) for number, index in asked])
    found = []
    for number, tried in groupby(zip(asked, held, strict=True), key=lambda one: one[0][0]):
        (_, index), best = max(tried, key=lambda one: one[1])
        found.append((sentences[number], best, f"{best:.0%} by {premises[index][0]}"))
    return found


def _premises(evidence: Evidence) -> list[tuple[str, str]]:
    """(where, text): passages in pieces, and each record as "name: value" lines."""
    found: list[tuple[str, str]] = []
    for record, following in pairwise(evidence.records):
        spots, table = evidence.spots[record.first : following.first], record.path is not None
        text = "\n".join(
            f"{one.key}: {one.text}" if table else one.text for one in spots if one.cell or not table
        )
        if found and found[-1][0] == record.root and len(found[-1][1]) + len(text) < _PREMISE:
            found[-1] = (record.root, f"{found[-1][1]}\n{text}")
        else:
            found += [(record.root, text[at : at + _PREMISE]) for at in range(0, len(text), _PREMISE)]
    return found

"""What the model knows of one accepted answer and one reply: a few numbers, each with its reason."""

import math

from rapidfuzz import fuzz

from answerkey.match.smart.align import Alignment
from answerkey.match.smart.reply import ReplyWords
from answerkey.match.smart.wanted import TELLING, Wanted

__all__ = ["FEATURES", "features"]

# In this order `features` gives them and `model.COEFFICIENTS` weighs them.
FEATURES = (
    # Always 1.
    "bias",
    # Share of the answer's information that is in the reply; words of the question and titles weigh little.
    "recall",
    # How many of its telling words are not there, up to four.
    "missing_words",
    # Best similarity of the answer to any stretch of the reply, character by character.
    "fuzzy",
    # Share of what the reply tells that belongs to the answer: a short reply that says little else.
    "precision",
    # Logarithm of how much the reply tells: a long one explains itself, and has more chances to match.
    "length",
    # The more alternatives, the less a piece of one of them means.
    "choices",
    # 1 if the reply begins by saying that it does not know.
    "abstains",
)
_LONGEST_FUZZY = 4000


def features(wanted: Wanted, reply: ReplyWords, alignment: Alignment, choices: int) -> list[float]:
    """The features of one answer and one reply, in the order of `FEATURES`."""
    strengths, weights = alignment.strengths, wanted.weights
    pairs = list(zip(strengths, weights, strict=True))
    recall = sum(strength * weight for strength, weight in pairs) / (wanted.total or 1.0)
    missing = sum(1 for strength, weight in pairs if weight >= TELLING and strength < 0.5)
    told = reply.told
    stems = set(wanted.stems)
    return [
        1.0,
        recall,
        float(min(missing, 4)),
        _similarity(wanted, reply),
        sum(1 for stemmed in told if stemmed in stems) / len(told) if told else 0.0,
        math.log1p(len(told)),
        (1.0 - recall) * math.log(choices),
        float(reply.abstains),
    ]


def _similarity(wanted: Wanted, reply: ReplyWords) -> float:
    """Partial similarity over what the question does not give away; the beginning of a very long reply only."""
    if wanted.told_phrase:
        return float(fuzz.partial_ratio(wanted.told_phrase, reply.told_joined[:_LONGEST_FUZZY])) / 100.0
    return float(fuzz.partial_ratio(wanted.phrase, reply.joined[:_LONGEST_FUZZY])) / 100.0

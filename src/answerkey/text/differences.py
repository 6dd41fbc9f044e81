"""Differences of two texts, word by word."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import msgspec

from answerkey.text.patterns import lazy

# A number with its separators is one word: half a number changed says nothing.
_TOKEN = lazy(r"\d+(?:[.,:/-]\d+)+|\w+|[^\w\s]|\s+")


class Piece(NamedTuple):
    """A stretch of text that both have, or only one."""

    kind: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str, *, most: int = 4_000) -> list[Piece]:
    """What of `before` went and what of `after` came, over the first `most` characters of each."""
    from rapidfuzz.distance import Indel

    first, second = _TOKEN.findall(before[:most]), _TOKEN.findall(after[:most])
    pieces: list[Piece] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        # What went comes before what came in its place.
        _append(pieces, "removed", removed)
        _append(pieces, "added", added)
        removed.clear()
        added.clear()

    operations = list(Indel.opcodes(first, second))
    for place, operation in enumerate(operations):
        same = first[operation.src_start : operation.src_end] if operation.tag == "equal" else []
        # A space between two changed words is part of the changed phrase.
        between = 0 < place < len(operations) - 1 and all(token.isspace() for token in same)
        if operation.tag == "equal" and not between:
            flush()
            _append(pieces, "same", same)
        else:
            removed += first[operation.src_start : operation.src_end]
            added += second[operation.dest_start : operation.dest_end]
    flush()
    return pieces


def alike(pieces: Sequence[Piece]) -> float:
    """The share of the longer text that both have."""
    lengths = {"same": 0, "removed": 0, "added": 0}
    for piece in pieces:
        lengths[piece.kind] += len(piece.text)
    longer = lengths["same"] + max(lengths["removed"], lengths["added"])
    return lengths["same"] / longer if longer else 1.0


def _append(pieces: list[Piece], kind: Literal["same", "removed", "added"], tokens: Sequence[str]) -> None:
    text = "".join(tokens)
    if not text:
        return
    if pieces and pieces[-1].kind == kind:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    else:
        pieces.append(Piece(kind, text))


# Themes: which words and pairs of words people's comments have in common.


_WORD = lazy(r"[^\W_][\w'’-]*")
# Words that any comment may have.
_COMMON = """
a about after again all also am an and any are as at be because been before being but by can could did didn't do does
doesn't don't even for from get getting give gave given go got had has have he her here him his how i i'm if in into is
isn't it it's its just like make me more most much my no not now of off on one only or other our out over please re
really same say said says she should so some still such than thanks thank that that's the their them then there these
they thing this those to too try tried up us use used very want was wasn't way we were what when where which while who
why will with won't would you your
"""
_STOP = frozenset(_COMMON.split())
_LONGEST = 2_000


class Theme(NamedTuple):
    """A word or pair of words that several comments have."""

    words: str
    comments: int
    negative: int
    # One comment that has it, so that a reader sees what is meant.
    example: str


def find_themes(comments: Iterable[tuple[str, bool]], *, most: int = 8) -> list[Theme]:
    """The commonest themes of comments, each given with whether its verdict was positive."""
    having: dict[str, set[int]] = {}
    negative: Counter[str] = Counter()
    examples: dict[str, str] = {}
    for place, (comment, positive) in enumerate(comments):
        for term in _terms(comment[:_LONGEST]):
            having.setdefault(term, set()).add(place)
            negative[term] += not positive
            if term not in examples or (not positive and negative[term] == 1):
                examples[term] = comment
    chosen: list[Theme] = []
    # A pair says more than its words: it comes first where both are as common, and its words then say nothing new.
    ranked = sorted(having.items(), key=lambda item: (-len(item[1]), -item[0].count(" "), item[0]))
    for term, found in ranked:
        if len(found) < 2 or len(chosen) == most:
            break
        said = next((theme for theme in chosen if term in theme.words.split()), None)
        if said is not None and len(found) <= 1.5 * said.comments:
            continue
        # Another word of the same comments is the same theme.
        if not any(_alike(found, having[theme.words]) for theme in chosen):
            chosen.append(Theme(term, len(found), negative[term], examples[term]))
    return chosen


def _alike(first: set[int], second: set[int]) -> bool:
    return len(first & second) >= 0.8 * len(first | second)


def _terms(comment: str) -> set[str]:
    terms: set[str] = set()
    before = ""
    for found in _WORD.finditer(comment.casefold()):
        word = found[0].replace("’", "'")
        if word in _STOP or len(word) < 3 or len(word) > 40:
            before = ""
            continue
        terms.add(word)
        if before and before != word:
            terms.add(f"{before} {word}")
        before = word
    return terms


# JSON Schema: whether a value fits a schema, in time linear in the value, and without fetching anything.


def schema_problem(schema: Any) -> str | None:
    """Why a value is not a JSON Schema; None if it is one."""
    if not isinstance(schema, dict | bool):
        return "must be a JSON Schema, which is an object"
    return _compiled(msgspec.json.encode(schema))[1]


def misfit(value: Any, schema: Any) -> str | None:
    """Where and why a value does not fit a schema; None if it does."""
    validator, problem = _compiled(msgspec.json.encode(schema))
    if validator is None:
        return problem
    for error in validator.iter_errors(value):
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
        return f"{place.lstrip('.') or 'the whole'}: {error.message}"
    return None


@lru_cache(maxsize=1000)
def _compiled(schema: bytes) -> tuple[Any, str | None]:
    try:
        # Only golden sets with such checks need it.
        import jsonschema_rs
    except ImportError:
        return None, "needs an optional dependency: pip install 'answerkey[json-schema]'"
    try:
        # The engine whose time is linear: a schema's `pattern` must not take for ever on some reply.
        made = jsonschema_rs.validator_for(
            msgspec.json.decode(schema),
            pattern_options=jsonschema_rs.RegexOptions(),
            retriever=_refuse,
        )
    except Exception as error:  # noqa: BLE001  # the library has an error of its own for each way to be wrong
        return None, f"is not a valid JSON Schema: {str(error).splitlines()[0]}"
    return made, None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched; write the schema out in full")

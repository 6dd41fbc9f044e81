"""Themes: which words and pairs of words people's comments have in common."""

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

_WORD = re.compile(r"[^\W_][\w'’-]*")
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

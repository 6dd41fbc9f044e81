"""Whether a phrase is said or denied where it stands: "not 42" is not 42."""

from answerkey.text.normalise import FUNCTION_WORDS

__all__ = ["is_denied", "may_deny"]

_DENIALS = frozenset(
    {"not", "never", "isnt", "wasnt", "arent", "werent", "neither", "nor", "cannot", "aint", "unlike"}
)
_DENYING_PAIRS = frozenset(
    {("rather", "than"), ("instead", "of"), ("opposed", "to"), ("other", "than"), ("no", "longer")}
)
# "not only Denver", "not just 42" say it; "not until August" says August.
_NOT_DENIALS = frozenset(
    {"only", "just", "merely", "simply", "until", "more", "less", "all", "sure", "clear"}
)
# What may stand between the denial and the phrase.
_BETWEEN = (FUNCTION_WORDS - _NOT_DENIALS - _DENIALS) | {
    "actually",
    "really",
    "located",
    "called",
    "named",
    "equal",
}
_WINDOW = 5


def may_deny(lowered: str) -> bool:
    """A cheap look at a whole reply, in lower case: whether it may deny anything."""
    # Written out, because it is asked of every reply.
    return (
        "not" in lowered
        or "n't" in lowered
        or "n’t" in lowered
        or "never" in lowered
        or "neither" in lowered
        or "nor " in lowered
        or "unlike" in lowered
        or " than " in lowered
        or "instead of" in lowered
        or "opposed to" in lowered
        or "no longer" in lowered
    )


def is_denied(before: list[str]) -> bool:
    """Whether the folded words before a phrase deny it; only the nearest few are read."""
    words = before[-_WINDOW:]
    index = len(words) - 1
    while index >= 0:
        word = words[index]
        if word in _DENIALS:
            following = words[index + 1] if index + 1 < len(words) else ""
            return following not in _NOT_DENIALS
        if index and (words[index - 1], word) in _DENYING_PAIRS:
            return True
        if word not in _BETWEEN:
            return False
        index -= 1
    return False

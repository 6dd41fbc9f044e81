"""Whether a reply says what a golden set expects, in the three modes of the scoring standard.

`literal` is a case-insensitive substring and nothing else. `standard` also finds a keyword that is a number wherever the
reply has a number of equal value. `smart` decides what a careful reader would. A keyword that is empty or only white
space is never found.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from answerkey.match.standard import Match, Probability, ReplyText
from answerkey.text.keyword import Keyword, MatchMode, Threshold
from answerkey.text.patterns import check_pattern

if TYPE_CHECKING:
    from answerkey.match.smart import SmartKeywords

__all__ = ["Match", "MatchMode", "Probability", "check_pattern", "count_keywords", "find_keywords"]

_NO_REPLY = Match(False, "none", why="there is no reply")
# A long text that many questions are matched against, as `audit` does, is read once.
_LONG_TEXT = 4000
_long_reply = lru_cache(maxsize=4)(ReplyText)


def _reply_text(text: str) -> ReplyText:
    return ReplyText(text) if len(text) < _LONG_TEXT else _long_reply(text)


def count_keywords(keywords: Sequence[Keyword], text: str | None, mode: MatchMode) -> int:
    """How many of the keywords `find_keywords` finds in the modes that only look: `literal` and `standard`."""
    if text is None:
        return 0
    reply, numeric = _reply_text(text), mode != "literal"
    lowered = reply.lowered
    count = 0
    for keyword in keywords:
        if type(keyword) is str and keyword.lower() in lowered:
            count += not keyword.isspace() and keyword != ""
        elif type(keyword) is not str:
            count += reply.look(keyword, numeric).found
        elif numeric:
            # The text itself was looked for.
            count += reply.number(keyword).found
    return count


def find_keywords(
    keywords: Sequence[Keyword],
    text: str | None,
    mode: MatchMode = "standard",
    *,
    question: str = "",
    threshold: Threshold = "even",
    probability: Probability | None = None,
) -> tuple[Match, ...]:
    """One Match for each keyword, in order. `smart` uses the question to know what a keyword adds to it.

    `threshold` says how sure `smart` must be: `even`, `strict` or `lenient`; `probability` decides in its place.
    """
    if text is None:
        return (_NO_REPLY,) * len(keywords)
    reply = _reply_text(text)
    if mode == "smart":
        return _smart(tuple(keywords), question, threshold, probability).match(reply)
    numeric = mode != "literal"
    return tuple([reply.look(keyword, numeric) for keyword in keywords])


# What is prepared for a question serves all of its replies; more would fill the memory with a large golden set.
@lru_cache(maxsize=4096)
def _smart(
    keywords: tuple[Keyword, ...], question: str, threshold: Threshold, probability: Probability | None
) -> "SmartKeywords":
    # The other modes do without the libraries and the weights that this one needs.
    from answerkey.match.smart import SmartKeywords

    return SmartKeywords(keywords, question, threshold, probability)

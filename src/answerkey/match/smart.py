"""The decision of `smart` for one keyword and one reply: every candidate is weighed by one model, and the best decides."""

import math
import re
from collections.abc import Callable

from answerkey.match.align import Presence, align
from answerkey.match.features import Hit, features, find_hits
from answerkey.match.found import Match
from answerkey.match.model import shipped_reason, shipped_score, shipped_trees
from answerkey.match.reply import Reply
from answerkey.match.wanted import Wanted, prepare_asked, prepare_wanted
from answerkey.text.keyword import Threshold

__all__ = ["Probability", "SmartKeyword"]

# The place of a model of language: the chance that (question, keyword, answer) says the keyword. Where one is given it decides,
# and the features only show where.
Probability = Callable[[str, str, str], float]
# A golden set's alternatives beyond this many are not looked at.
_MOST_WAYS = 100
_WEAKEST_FIRST = (
    "initial", "misspelt", "other unit", "compound", "abbreviation", "inflected", "date", "number", "word",
)  # fmt: skip


class SmartKeyword:
    """One keyword with its alternatives, prepared once for all replies to one question."""

    __slots__ = ("_odd", "_options", "_probability", "_question", "_threshold", "wanted")

    def __init__(
        self,
        options: tuple[str, ...],
        question: str,
        threshold: Threshold = "even",
        probability: Probability | None = None,
    ) -> None:
        self._options, self._question, self._probability = options, question, probability
        asked = prepare_asked(question)
        ways: dict[str, Wanted] = {}
        # Keywords without words: punctuation or articles, found only as they stand.
        self._odd: list[re.Pattern[str]] = []
        for option in options[:_MOST_WAYS]:
            for wanted in prepare_wanted(option, asked):
                if wanted.terms:
                    ways.setdefault(wanted.phrase, wanted)
                else:
                    self._odd.append(_as_it_stands(option))
        self.wanted = list(ways.values())[:_MOST_WAYS]
        self._threshold = shipped_trees().thresholds[threshold]

    def match(self, reply: Reply) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        best = max(self.candidates(reply), key=lambda one: shipped_score(one[3]), default=None)
        if best is None or self._log_odds(reply, best[3]) <= self._threshold:
            for pattern in self._odd:
                found = pattern.search(reply.text)
                if found:
                    start, end = found.span()
                    return Match(
                        True, "smart:literal", start, end, found[0], "it stands in the reply as it is"
                    )
            why = (
                "nothing of it is in the reply"
                if best is None or best[1].at < 0
                else _because(best[0], best[3])
            )
            return Match(False, "none", why=why)
        wanted, hit, present, values = best
        if hit.phrase:
            start, end = reply.span(hit.at, hit.end)
            why = f"it stands in the reply, word by word ({shipped_score(values):+.1f})"
            return Match(True, "smart:phrase", start, end, reply.text[start:end], why)
        ways = {
            one.way
            for term, one in zip(wanted.terms, present, strict=True)
            if one.strength and term.weight > 0.2
        }
        rule = next((way for way in _WEAKEST_FIRST if way in ways), "word")
        if hit.at < 0:
            return Match(True, f"smart:{rule}", why=_because(wanted, values))
        start, end = reply.span(hit.at, hit.end)
        return Match(True, f"smart:{rule}", start, end, reply.text[start:end], _because(wanted, values))

    def _log_odds(self, reply: Reply, values: tuple[float, ...]) -> float:
        if self._probability is None:
            return shipped_score(values)
        chance = max(self._probability(self._question, option, reply.text) for option in self._options)
        return math.log(max(chance, 1e-9) / max(1.0 - chance, 1e-9))

    def candidates(self, reply: Reply) -> "list[tuple[Wanted, Hit, list[Presence], tuple[float, ...]]]":
        """Each way to say it at each place of the reply where it may stand, with its features."""
        if not reply.clauses:
            return []
        found = []
        for wanted in self.wanted:
            # Words in a row need no alignment; a figure does, since its sign and unit are not in the folded words.
            plain = wanted.figure is None and wanted.phrase in reply.joined
            present = [] if plain else align(wanted, reply)
            for hit in find_hits(wanted, reply, present):
                found.append(
                    (wanted, hit, present, features(wanted, reply, present, hit, len(self._options)))
                )
        return found


def _as_it_stands(option: str) -> re.Pattern[str]:
    """Punctuation anywhere; an article ("A", "The") as a word of its own and in its own case."""
    text = re.escape(option.strip())
    return re.compile(rf"(?<!\w){text}(?!\w)" if any(map(str.isalnum, option)) else text)


def _because(wanted: Wanted, values: tuple[float, ...]) -> str:
    """The decision in words: how likely, for which way to say it, and the features that decided."""
    name = wanted.text if len(wanted.text) <= 60 else wanted.text[:57] + "…"
    return f"“{name}”: {shipped_reason(values)}"

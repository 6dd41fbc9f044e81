"""The decision of `smart` for one keyword and one reply: fixed rules first, the model where they leave it open."""

import re
from functools import lru_cache

from answerkey.match.found import Match
from answerkey.match.smart.align import ABSENT, Alignment, align, recognise
from answerkey.match.smart.features import features
from answerkey.match.smart.model import THRESHOLD, score
from answerkey.match.smart.negation import is_denied
from answerkey.match.smart.reply import ReplyWords
from answerkey.match.smart.synonyms import (
    embeddings_installed,
    find_synonym,
    may_have_synonyms,
    phrases_to_compare,
)
from answerkey.match.smart.wanted import TELLING, Wanted, prepare_wanted
from answerkey.text.dates import Date, find_dates, month_number
from answerkey.text.normalise import span_of_words
from answerkey.text.numbers import canonical_number, parse_number

__all__ = ["Candidate", "SmartKeyword"]

_ABSENT = Match(False, "none", why="nothing of it is in the reply")
_WORD_BY_WORD = "it stands in the reply, word by word"
_SAME_VALUE = "the reply has a number of the same value"
_DENIED = "it stands in the reply, but denied"
# A golden set's alternatives beyond this many are looked for as phrases only.
_MOST_ALIGNED = 60
_NEGATIVE_QUESTION = re.compile(r"\b(?:not|n['’]t|never|except)\b", re.IGNORECASE)


@lru_cache(maxsize=8192)
def _asks_for_what_is_not(question: str) -> bool:
    return _NEGATIVE_QUESTION.search(question) is not None


class Candidate:
    """One accepted answer that a reply may mean, with what the model needs to judge it."""

    __slots__ = ("alignment", "features", "wanted")

    def __init__(self, wanted: Wanted, alignment: Alignment, choices: int, reply: ReplyWords) -> None:
        self.wanted = wanted
        self.alignment = alignment
        self.features = features(wanted, reply, alignment, choices)


class SmartKeyword:
    """One keyword with its alternatives, prepared once for all replies to one question."""

    __slots__ = ("_dates", "_months", "_odd", "_synonyms_of", "_wanted", "_watch_denials", "_worths")

    def __init__(
        self, options: tuple[str, ...], asked: frozenset[str], question: str, embeddings: bool = False
    ) -> None:
        wanted: dict[str, Wanted] = {}
        # Keywords without words: punctuation or articles, found only as they stand.
        self._odd: list[re.Pattern[str]] = []
        # Keywords that are one number: worth to the keyword.
        self._worths: dict[str, str] = {}
        self._dates: list[Date] = []
        self._months: list[int] = []
        for option in options:
            prepared = prepare_wanted(option, asked)
            if not prepared:
                self._odd.append(_as_it_stands(option))
            for part in prepared:
                if part.is_number:
                    self._worths.setdefault(part.words[0], option)
                known = wanted.get(part.phrase)
                if known is None or known.share < part.share:
                    wanted[part.phrase] = part
            if option.isalpha():
                # No number, and no date but a month.
                month = month_number(option)
                if month is not None:
                    self._months.append(month)
                continue
            worth = parse_number(option) if len(option) < 100 else None
            if worth is not None:
                self._worths[worth] = option
                if option.rstrip().endswith("%"):
                    # "90%" may be written as the fraction 0.9.
                    self._worths[_hundredth(worth)] = option
            elif len(option) < 100:
                self._read_date(option.strip())
        self._wanted = list(wanted.values())
        # "Which of these is not …?" turns denials round: then they are not read.
        self._watch_denials = not _asks_for_what_is_not(question)
        # The terms whose synonyms count too, where embeddings are switched on and installed.
        self._synonyms_of = (
            tuple(filter(may_have_synonyms, options))
            if embeddings and self._watch_denials and embeddings_installed()
            else ()
        )

    def _read_date(self, option: str) -> None:
        month = month_number(option.rstrip("."))
        if month is not None:
            self._months.append(month)
            return
        for date in find_dates(option):
            if date.start == 0 and date.end == len(option):
                self._dates.append(date)

    def match(self, reply: ReplyWords) -> Match:
        """Whether a careful reader finds the keyword in the reply."""
        lowered = reply.lowered
        if lowered is not None and not (self._watch_denials and reply.may_deny):
            # By far the most keywords that are found stand there as they are: nothing else is worked out for them.
            joined = reply.joined
            for wanted in self._wanted:
                if wanted.phrase in joined:
                    match = _plain_match(wanted.lowered, lowered, reply.text)
                    if match is None and wanted.is_number:
                        span = reply.find_worth(wanted.words[0])
                        if span is not None:
                            return _span_match("smart:number", reply, span, _SAME_VALUE)
                    if match is not None:
                        return match
                    break
        match = self._judge(reply)
        if self._synonyms_of and not match.found and match.why != _DENIED:
            for term in self._synonyms_of:
                synonym = find_synonym(term, reply.text, reply.asked)
                if synonym is not None:
                    return synonym
        return match

    def phrases_to_compare(self, reply: ReplyWords) -> list[str]:
        """What the encoder will be asked for this reply: nothing where the rules find the keyword."""
        if not self._synonyms_of:
            return []
        match = self._judge(reply)
        if match.found or match.why == _DENIED:
            return []
        return [
            phrase
            for term in self._synonyms_of
            for phrase in phrases_to_compare(term, reply.text, reply.asked)
        ]

    def _judge(self, reply: ReplyWords) -> Match:
        """What fixed rules and the model say."""
        settled = self.settle(reply)
        if isinstance(settled, Match):
            return settled
        best = max(settled, key=lambda candidate: score(candidate.features))
        points = score(best.features)
        if points <= THRESHOLD:
            return Match(
                False,
                "none",
                why=f"too little of “{_short(best.wanted.text)}” is in the reply ({points:+.1f})",
            )
        return _explain(best, reply, points)

    def settle(self, reply: ReplyWords) -> Match | list[Candidate]:
        """The decision if a fixed rule gives one, else the candidates that the model must judge."""
        denied = False
        joined = reply.joined
        for wanted in self._wanted:
            at = joined.find(wanted.phrase)
            while at >= 0:
                if not (self._watch_denials and reply.may_deny and _denied_at(joined, at)):
                    return _phrase_match(wanted, reply, at)
                denied = True
                at = joined.find(wanted.phrase, at + 1)
        for worth in self._worths:
            span = reply.find_worth(worth)
            if span is not None and not (
                self._watch_denials and reply.may_deny and _denied_before(reply.text, span[0])
            ):
                return _span_match("smart:number", reply, span, _SAME_VALUE)
        if denied:
            return Match(False, "none", why=_DENIED)
        if self._dates or self._months:
            for date in find_dates(reply.text):
                if date.month in self._months or any(wanted.agrees(date) for wanted in self._dates):
                    return _span_match(
                        "smart:date", reply, (date.start, date.end), "the same date in another form"
                    )
        for pattern in self._odd:
            found = pattern.search(reply.text)
            if found:
                return _span_match("smart:literal", reply, found.span(), "it stands in the reply as it is")
        candidates = []
        for wanted in self._wanted[:_MOST_ALIGNED]:
            # A number that is not there is not there: nothing to weigh.
            if wanted.is_number or (wanted.is_term and not _may_be_there(wanted, reply)):
                continue
            alignment = align(wanted, reply)
            if _speaks_for(wanted, alignment, reply):
                candidates.append(Candidate(wanted, alignment, len(self._wanted), reply))
        return candidates or _ABSENT


def _may_be_there(wanted: Wanted, reply: ReplyWords) -> bool:
    """A look at a term before it is aligned in full: every telling word must be there in some form."""
    joined = reply.joined
    # What a stem's words begin with is looked for first: mostly no word of the reply needs to be stemmed.
    if wanted.compact_stem and wanted.compact_probe in joined and wanted.compact_stem in reply.stem_set:
        return True
    if wanted.initials and f" {wanted.initials} " in joined:
        return True
    for word, stemmed, probe in wanted.telling_words:
        if (probe not in joined or stemmed not in reply.stem_set) and recognise(word, stemmed, wanted, reply)[
            0
        ] < 0.5:
            return False
    return True


def _speaks_for(wanted: Wanted, alignment: Alignment, reply: ReplyWords) -> bool:
    """Whether the model may weigh this answer: some of it is there, and no rule speaks against it.

    Against it speak a number of the answer for which the reply has another; a missing item of a list of names; and, where the
    answer is a term of up to three words in lower case ("net operating income"), any telling word that is missing.
    """
    some = False
    for strength, weight, numeric in zip(alignment.strengths, wanted.weights, wanted.numeric, strict=True):
        if weight < wanted.least:
            continue
        if strength > 0:
            some = True
        elif numeric and weight >= TELLING and reply.tells_number:
            return False
        if wanted.is_term and weight >= TELLING and strength < 0.5:
            return False
    if wanted.lists_names:
        pairs = list(zip(alignment.strengths, wanted.weights, strict=True))
        return some and not any(_item_is_missing(pairs[first:after]) for first, after in wanted.items)
    return some


def _item_is_missing(pairs: list[tuple[float, float]]) -> bool:
    """Whether less than two fifths of a list's item is there; pairs of strength and weight."""
    return sum(strength * weight for strength, weight in pairs) < 0.4 * sum(weight for _, weight in pairs)


def _as_it_stands(option: str) -> re.Pattern[str]:
    """Punctuation anywhere; an article ("A", "The") as a word of its own and in its own case."""
    text = option.strip()
    if any(character.isalnum() for character in text):
        return re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return re.compile(re.escape(text))


def _hundredth(worth: str) -> str:
    negative = worth.startswith("-")
    whole, _, fraction = worth.lstrip("-").partition(".")
    whole = whole.rjust(3, "0")
    return canonical_number(f"{whole[:-2]}.{whole[-2:]}{fraction}", negative)


def _denied_at(joined: str, at: int) -> bool:
    return is_denied(joined[max(0, at - 80) : at].rsplit(None, 5))


def _denied_before(text: str, at: int) -> bool:
    before = text[max(0, at - 60) : at].lower().replace("n't", " not").replace("n’t", " not")
    return is_denied([word.strip(".,;:!?\"'()$€£") for word in before.split()])


def _plain_match(wanted: str, lowered: str, text: str) -> Match | None:
    """The words as they stand in the reply, with word boundaries; then no counting of words is needed."""
    start = lowered.find(wanted)
    if start < 0:
        return None
    end = start + len(wanted)
    if text[start - 1 : start].isalnum() or text[end : end + 1].isalnum():
        return None
    return Match(True, "smart:phrase", start, end, text[start:end], _WORD_BY_WORD)


def _words_apart(wanted: list[str], lowered: str) -> tuple[int, int] | None:
    """The span of plain words in a row that only punctuation parts: "total, basis" for "total basis"."""
    first, *others = wanted
    at = lowered.find(first)
    while at >= 0:
        end = at + len(first)
        for other in others:
            begin = end
            while begin < end + 4 and not lowered[begin : begin + 1].isalnum():
                begin += 1
            if begin == end or not lowered.startswith(other, begin):
                break
            end = begin + len(other)
        else:
            if not (lowered[at - 1 : at].isalnum() or lowered[end : end + 1].isalnum()):
                return at, end
        at = lowered.find(first, at + 1)
    return None


def _phrase_match(wanted: Wanted, reply: ReplyWords, at: int) -> Match:
    if reply.lowered is not None:
        match = _plain_match(wanted.lowered, reply.lowered, reply.text)
        if match is not None:
            return match
    if wanted.is_number:
        span = reply.find_worth(wanted.words[0])
        if span is not None:
            return _span_match("smart:number", reply, span, _SAME_VALUE)
    said = wanted.lowered.split()
    if reply.lowered is not None and 1 < len(said) == len(wanted.words):
        apart = _words_apart(said, reply.lowered)
        if apart:
            return _span_match("smart:phrase", reply, apart, _WORD_BY_WORD)
    first = reply.joined.count(" ", 0, at + 1) - 1
    start, end = span_of_words(reply.text, first, first + len(wanted.words) - 1)
    return Match(True, "smart:phrase", start, end, reply.text[start:end], _WORD_BY_WORD)


def _span_match(rule: str, reply: ReplyWords, span: tuple[int, int], why: str) -> Match:
    return Match(True, rule, *span, reply.text[span[0] : span[1]], why)


def _explain(best: Candidate, reply: ReplyWords, points: float) -> Match:
    """The match that the model accepts: its rule is the loosest way a word was recognised, its span the telling words."""
    wanted, alignment = best.wanted, best.alignment
    present = [
        (weight, word, way)
        for weight, word, way in zip(wanted.weights, alignment.found_as, alignment.ways, strict=True)
        if way != ABSENT
    ]
    ways = {way for _, _, way in present}
    rule = next((way for way in _LOOSEST_FIRST if way in ways), "word")
    positions = [
        reply.words.index(word) for _, word, _ in present if word is not None and word in reply.word_set
    ]
    if not positions:
        positions = [i for i, stemmed in enumerate(reply.stems) if stemmed in wanted.stems][:1]
    missing = [
        word
        for word, way, weight in zip(wanted.words, alignment.ways, wanted.weights, strict=True)
        if way == ABSENT and weight >= wanted.least
    ]
    why = f"most of “{_short(wanted.text)}” is there ({points:+.1f}; {rule})"
    if missing:
        why += f", without {', '.join(missing[:4])}"
    if not positions:
        return Match(True, f"smart:{rule}", None, None, "", why)
    first, last = min(positions), max(positions)
    if last - first > 3 * len(wanted.words) + 3:
        last = first
    start, end = span_of_words(reply.text, first, last)
    return Match(True, f"smart:{rule}", start, end, reply.text[start:end], why)


_LOOSEST_FIRST = ("misspelt", "initial", "compound", "abbreviation", "inflected", "number")


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "…"

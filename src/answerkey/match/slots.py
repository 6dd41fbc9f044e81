"""Which of several values or names of a reply the words of the question belong to, and what is said around one of them.

"Line 1 fails in 0.4% of cases, while line 2 is at 1.1%": of the two percentages, the one nearest to the question's "line 2"
answers it. The trees of `smart` read these features beside those of the keyword itself; `features.toml` names each.
"""

from bisect import bisect_left, bisect_right
from itertools import accumulate, pairwise

from answerkey.match.clauses import MARKS, SPECIFIC, Clauses
from answerkey.match.phrasing import WORDS, Phrasing, QuestionWords
from answerkey.match.reading import Reply
from answerkey.text.normalise import FUNCTION_WORDS, folded_chunk, stem

# Rivals further away than these, and further positions of a word of the question, are not looked at.
_MOST_RIVALS, _MOST_POSITIONS = 12, 4
# Distance in words that a break of a sentence adds, its end, and "and".
_BREAK, _SENTENCE_END, _LINK = 4, 12, 2
_AND = frozenset(("and", "&", "+"))
# A denial further away, and a contrast further behind, do not count.
_FAR, _SOON = 20, 40

VALUE, NAME, WORD = 0.0, 1.0, 2.0
# Nothing of a word that says yes or no is there, only the sense of the whole reply.
_NOWHERE = -1.0


def polarity(words: list[str], question_words: QuestionWords) -> float:
    """1 for a keyword that a yes to the question says, -1 for one that a no says, else 0."""
    if len(words) > 1 and all(word.isdigit() for word in words):
        # The 0 of 11:00 says nothing.
        return 0.0
    negated = any(word in WORDS["negates"] or word in WORDS["denies"] for word in words)
    sign = -1.0 if negated else float(any(word in WORDS["affirms"] for word in words))
    says_costless = costless(words)
    if says_costless is None:
        return sign
    # "Is it free?" and "is there a charge?" ask for opposites.
    if not WORDS["costless"].isdisjoint(question_words.named):
        return 1.0 if says_costless else -1.0
    if not WORDS["costs"].isdisjoint(question_words.named):
        return -1.0 if says_costless else 1.0
    return sign


def costless(words: list[str]) -> bool | None:
    """Whether a keyword says that something costs nothing, or that it is not free; None if it says neither."""
    negated = any(word in WORDS["negates"] or word in WORDS["denies"] for word in words)
    has_costless = not WORDS["costless"].isdisjoint(words)
    if has_costless or (negated and not WORDS["costs"].isdisjoint(words)):
        return negated != has_costless
    return None


class Slots:
    """The values and names of one reply by their positions, and the positions of the question's words."""

    def __init__(self, reply: Reply) -> None:
        self._reply, self._question = reply, reply.question_words
        words, stems = reply.words, reply.stems
        self._capitals: list[bool] = []
        # Words with "and" before them, which is none of the folded words.
        self._joined: set[int] = set()
        for chunk in reply.text.split():
            if chunk in _AND:
                self._joined.add(len(self._capitals))
            self._capitals += [chunk.lstrip(MARKS)[:1].isupper()] * folded_chunk(chunk).count(" ")
        self._clauses = Clauses(reply, self._capitals)
        self._all_words = frozenset(words)
        self._starts = frozenset(reply.starts)
        self._values = [
            at for at, word in enumerate(words) if word[0].isdigit() and stems[at] not in self._question.stems
        ]
        self._names = [
            at
            for at, (word, capital) in enumerate(zip(words, self._capitals, strict=False))
            if capital and self._is_new(word) and not word[0].isdigit()
        ]
        self._all_names = frozenset(self._names)
        self._denials = [
            at for at, word in enumerate(words) if word in WORDS["denies"] and at not in reply.courtesies
        ]
        self._contrasts = [at for at, word in enumerate(words) if word in WORDS["contrasts"]]
        specific = frozenset(map(stem, self._question.specific))
        # The first positions of each telling word of the question, and what each of them weighs.
        self._asked: list[tuple[int, float, bool]] = []
        for one in sorted(self._question.telling | specific):
            positions = reply.positions(f" {one} ", stemmed=True)[:_MOST_POSITIONS]
            weight = SPECIFIC if one in specific else 1.0
            self._asked += [(place, weight / len(positions), one in specific) for place in positions]
        # The distance of two words is that of these: breaks and ends of sentences between them count.
        breaks, ends = frozenset(reply.breaks), self._starts
        steps = [
            1 + _BREAK * (at in breaks) + _SENTENCE_END * (at in ends) + _LINK * (at in self._joined)
            for at in range(len(words))
        ]
        self._parted = breaks | self._starts | self._joined
        self._coordinates = list(accumulate(steps))
        self._known_nearness: dict[int, float] = {}
        first = words[0] if words else ""
        self._tone = 0.5 if not self._denials else -0.5
        if first in WORDS["yes"] or first in WORDS["no"]:
            self._tone = 1.0 if first in WORDS["yes"] or 0 in reply.courtesies else -1.0

    def _is_new(self, word: str) -> bool:
        return word not in self._question.named and word not in FUNCTION_WORDS

    def features(self, phrasing: Phrasing, position: int | None, size: int) -> tuple[float, ...]:
        """From `question_kind` to `topic`, of a hit of `size` words, or of what is nowhere."""
        keyword_words, question = phrasing.phrase.split(), self._question
        tone = polarity(keyword_words, question)
        kind = VALUE if phrasing.has_value else NAME if phrasing.text[:1].isupper() else WORD
        known = round(
            sum(stem(word) in question.stems for word in keyword_words) / max(1, len(keyword_words)), 2
        )
        asked = (question.kind, kind, float(min(6, len(keyword_words))), known)
        tones = (tone * self._tone, tone, question.yes_or_no)
        if position is None:
            nowhere = self._clauses.features(phrasing, None, 0)
            return (*asked, *tones, _NOWHERE, *[0.0] * 21, *nowhere)
        end = min(len(self._reply.words), position + max(1, size))
        positions = self._values if kind == VALUE else self._names if kind == NAME else []
        listed = self._listed(position, end)
        return (
            *asked,
            *tones,
            *self._around(position, end, listed[0], frozenset(keyword_words)),
            *self._beside(position, end, positions, listed, frozenset(keyword_words)),
            *self._clauses.features(phrasing, position, size),
        )

    def _listed(self, position: int, end: int) -> tuple[int, int]:
        """The first word and the end of the enumeration of names that it is in: "Paris, Lyon and Nice" are said together."""
        first, stop = self._reply.starts[(sentence := self._reply.sentence_of(position)) : sentence + 2]
        if position not in self._all_names:
            return position, end
        while position > first and position - 1 in self._all_names:
            position -= 1
        while end < stop and end in self._all_names:
            end += 1
        return position, end

    def _around(
        self, position: int, end: int, listed_from: int, keyword_words: frozenset[str]
    ) -> tuple[float, ...]:
        """From `place` to `denial_distance`."""
        reply = self._reply
        sentence = reply.sentence_of(position)
        first, stop = reply.starts[sentence : sentence + 2]
        parts = reply.breaks[bisect_right(reply.breaks, first) : bisect_left(reply.breaks, stop)]
        edges = [first, *parts, stop]
        telling = self._question.telling
        repeated = [len(telling.intersection(reply.stems[begin:until])) for begin, until in pairwise(edges)]
        lacking = (max(repeated) - repeated[bisect_right(parts, listed_from)]) / max(1, len(telling))
        specific = self._question.specific - keyword_words
        elsewhere = -1.0
        if specific:
            missing = (specific & self._all_words).difference(reply.words[first:stop])
            elsewhere = len(missing) / len(specific)
        nearby = self._denials[bisect_left(self._denials, first) : bisect_left(self._denials, stop)]
        contrast = bisect_left(self._contrasts, end)
        soon = self._contrasts[contrast] < end + _SOON if contrast < len(self._contrasts) else False
        return (
            round(position / len(reply.words), 1),
            float(min(6, sentence)),
            round(lacking, 1),
            round(elsewhere, 1),
            reply.has("denies", sentence),
            reply.has("past", sentence),
            reply.has("doubts", sentence),
            float(reply.is_question(sentence)),
            float(soon),
            float(bisect_left(self._contrasts, position) > 0),
            float(min([_FAR, *[abs(at - position) for at in nearby]])),
        )

    def _beside(
        self,
        position: int,
        end: int,
        positions: list[int],
        listed: tuple[int, int],
        keyword_words: frozenset[str],
    ) -> tuple[float, ...]:
        """From `rivals` to `rival_touches`."""
        words = self._reply.words
        low, high = bisect_left(positions, listed[0]), bisect_left(positions, listed[1])
        before = [at for at in positions[max(0, low - _MOST_RIVALS) : low] if words[at] not in keyword_words]
        behind = [at for at in positions[high : high + _MOST_RIVALS] if words[at] not in keyword_words]
        rivals = [*before, *behind]
        touching = self._touching(position, end)
        touched = max([self._touching(at, at + 1) for at in rivals], default=0.0)
        return (
            float(min(5, len(rivals))),
            self._entity_before(position),
            float(not before),
            float(not behind),
            *self._bound(position, end, rivals),
            *self._near(position, rivals),
            self._beside_name(position, end) if positions is self._names else 0.0,
            touching,
            touched - touching,
        )

    def _touching(self, position: int, end: int) -> float:
        """How many of the words beside a place are the question's."""
        stems, telling = self._reply.stems, self._question.telling
        return float(position > 0 and stems[position - 1] in telling) + float(
            end < len(stems) and stems[end] in telling
        )

    def _entity_before(self, position: int) -> float:
        """1 if the name or figure before it in its sentence is the question's, -1 if it is another, 0 without one."""
        words = self._reply.words
        first = self._reply.starts[self._reply.sentence_of(position)]
        for at in range(position - 1, max(first, position - 8) - 1, -1):
            if (self._capitals[at] or words[at][0].isdigit()) and words[at] not in FUNCTION_WORDS:
                return 1.0 if words[at] in self._question.named else -1.0
        return 0.0

    def _beside_name(self, position: int, end: int) -> float:
        """How many further words of a name touch it: "Northern Ireland" for Ireland."""
        words = self._reply.words
        before, light = position - 1, WORDS["light"]
        count = 0.0
        if position > 0 and position not in self._parted and before not in self._starts:
            is_part = words[before] not in light and len(words[before]) > 1
            count += float(is_part and self._is_name(before))
        if end < len(words) and end not in self._parted:
            count += float(self._is_name(end))
        return count

    def _is_name(self, at: int) -> bool:
        """Whether a word has a capital and is not the question's."""
        return self._capitals[at] and self._reply.words[at] not in self._question.named

    def _bound(self, position: int, end: int, rivals: list[int]) -> tuple[float, float]:
        """How much more of the question's words is nearest to it than to any one rival, of all words and of names and figures."""
        if not rivals:
            return 1.0, 1.0
        shares: dict[int, float] = {}
        specific: dict[int, float] = {}
        at, coordinates = self._coordinates, [self._coordinates[rival] for rival in rivals]
        for place, weight, is_specific in self._asked:
            if position <= place < end:
                continue
            here = at[place]
            own = abs(here - at[position if place < position else end - 1])
            behind = bisect_left(coordinates, here)
            near = rivals[max(0, behind - 1) : behind + 1]
            nearest = min(near, key=lambda rival: abs(at[rival] - here))
            chosen = position if own <= abs(at[nearest] - here) else nearest
            shares[chosen] = shares.get(chosen, 0.0) + weight
            if is_specific:
                specific[chosen] = specific.get(chosen, 0.0) + weight
        return _margin(shares, position), _margin(specific, position)

    def _near(self, position: int, rivals: list[int]) -> tuple[float, float]:
        """How near the question's words are, and how much nearer than to the best other one."""
        own = self._nearness(position)
        return round(own, 1), round(own - max(map(self._nearness, rivals)), 1) if rivals else 0.3

    def _nearness(self, position: int) -> float:
        known = self._known_nearness.get(position)
        if known is None:
            at = self._coordinates
            here = at[position]
            near = sum([weight / (1 + abs(at[place] - here) / 3) for place, weight, _ in self._asked])
            known = near / max(1, len(self._question.telling))
            self._known_nearness[position] = known
        return known


def _margin(shares: dict[int, float], position: int) -> float:
    total = sum(shares.values())
    most = max([share for at, share in shares.items() if at != position], default=0.0)
    return round((shares.get(position, 0.0) - most) / total, 1) if total else 0.0

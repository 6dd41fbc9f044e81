"""Which texts share words: the cases most similar to a question, and groups of near-duplicates.

Words are folded and stemmed, rare ones count more, and misspelt ones are mapped to those of the texts. Questions about
different figures, years, months or days are less similar.

They also say how well a golden set covers real questions: whether a case asks the same, and the share of questions that have
such a case.

A case asks the same if it shares the topic and also what distinguishes it: the rare words, the figures, and the kind of fact.
What words cannot decide is in the interval of the share. `tools/fit/fit_coverage.py` fits the numbers below.
"""

import re
from bisect import bisect
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from heapq import nlargest
from math import exp, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from answerkey.text.normalise import FUNCTION_WORDS, folded_words, stem
from answerkey.text.patterns import lazy

if TYPE_CHECKING:
    import numpy as np

# Members of a group are at least this similar to its first.
_SAME_GROUP = 0.6
# Texts that are compared by one shared word; a word of more texts says little about any of them.
_MAX_POSTINGS = 100
# Texts whose facts are compared.
_COMPARED = 8
# Words of a question that count.
_MAX_WORDS = 40
# Characters of a word that are shared, for a misspelt one to be taken for another.
_SAME_WORD = 0.6
_MIN_MISSPELT = 5
# Different figures, years, months, days and letters of things make two questions different.
_OTHER_FACTS = 0.5
_MONTHS = "january february march april june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS_AND_DAYS = frozenset(map(stem, f"{_MONTHS} {_DAYS}".split()))
# The letter of a thing, which would be lost as a short word: "unit A", "Apt. b".
_LETTER = lazy(
    r"\b(?:unit|apt|apartment|flat|suite|room|block|building|tower|gate|schedule|plan|lot)\.? ([a-z])\b",
    re.IGNORECASE,
)
_LETTER_MARK = "#"
# "e-bike" and "x-ray" are one word, and the second part is another.
_HYPHENATED = lazy(r"\b([A-Za-z])-([^\W\d_]{2,})")
_WORDS = Path(__file__).parent / "words"
# What people wrap a question in.
_FILLERS = frozenset((_WORDS / "question_fillers.txt").read_text("utf-8").split())
# Greetings and thanks, and what people say beside them.
_GREETINGS, _BESIDE = (
    frozenset(line.split()) for line in (_WORDS / "greetings.txt").read_text("utf-8").splitlines()
)
# Scripts that do not part words by spaces are read by pairs of characters.
_UNPARTED = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff]+")


def question_words(text: str) -> tuple[str, ...]:
    """The words by which a question is compared, in order, each once."""
    text = text[:2000]
    words = [_LETTER_MARK + letter.lower() for letter in _LETTER.findall(text)]
    for word in folded_words(joined_hyphens(text)):
        if _UNPARTED.search(word):
            for run in _UNPARTED.findall(word):
                words += [run[index : index + 2] for index in range(max(len(run) - 1, 1))]
        elif word not in FUNCTION_WORDS and word not in _FILLERS:
            words.append(stem(word))
    return tuple(dict.fromkeys(words or folded_words(text)))[:_MAX_WORDS]


def joined_hyphens(text: str) -> str:
    """The text with "ebike bike" for "e-bike"."""
    return _HYPHENATED.sub(r"\1\2 \2", text)


def is_greeting(text: str) -> bool:
    """Whether a text only greets or thanks.

    >>> is_greeting("Hi there!"), is_greeting("hi, what is the rent?"), is_greeting("how are you")
    (True, False, False)
    """
    words = set(folded_words(text[:200]))
    return bool(words & _GREETINGS) and words <= _GREETINGS | _BESIDE


def question_facts(words: Iterable[str]) -> frozenset[str]:
    """Figures, years, months, days and letters of things among a question's words."""
    return frozenset(
        word
        for word in words
        if word[:1].isdigit() or word in _MONTHS_AND_DAYS or word.startswith(_LETTER_MARK)
    )


def years(facts: Iterable[str]) -> frozenset[str]:
    """The years among figures."""
    return frozenset(one for one in facts if len(one) == 4 and one.isdigit() and one[:2] in ("19", "20"))


def _grams(word: str) -> frozenset[str]:
    padded = f" {word} "
    return frozenset(padded[index : index + 3] for index in range(len(padded) - 2))


class SimilarText(msgspec.Struct, frozen=True):
    """The most similar text of an index."""

    index: int
    similarity: float


class SimilarTexts:
    """An index of texts, given by their words; finds the most similar ones without comparing with all.

    >>> texts = [question_words(text) for text in ("rent in May", "rent in June", "who is the agent")]
    >>> [near.index for near in SimilarTexts(texts).nearest(texts[0])]
    [0, 1]
    """

    def __init__(self, texts: Sequence[Sequence[str]], *, is_empty: bool = False) -> None:
        """Rare words of `texts` count more than frequent ones; `is_empty`: they are added later, one by one."""
        uses = Counter(word for words in texts for word in words)
        self._weights = {word: log(1 + len(texts) / count) for word, count in uses.items()}
        # Words that no text has count like the rarest.
        self._unknown = max(self._weights.values(), default=1.0)
        self._norms: list[float] = []
        self._facts: list[frozenset[str]] = []
        self._postings: dict[str, list[int]] = defaultdict(list)
        self._spelt: dict[str, str] = {}
        for words in () if is_empty else texts:
            self.add(words)

    def add(self, words: Sequence[str]) -> int:
        """Add a text; returns its index."""
        index = len(self._norms)
        self._norms.append(sqrt(sum(self.weight(word) ** 2 for word in words)) or 1.0)
        self._facts.append(question_facts(words))
        for word in words:
            if len(self._postings[word]) < _MAX_POSTINGS:
                self._postings[word].append(index)
        return index

    def weight(self, word: str) -> float:
        """How rare a word is in the texts; one that none has counts like the rarest."""
        return self._weights.get(word, self._unknown)

    def nearest(
        self,
        words: Sequence[str],
        count: int = 3,
        *,
        unknown: float = 1.0,
        other_facts: float = _OTHER_FACTS,
    ) -> list[SimilarText]:
        """The most similar texts that share a word, the most similar first.

        Args:
            words: Of the text to look up.
            count: Most texts to return.
            unknown: How much words count that no text has.
            other_facts: How similar texts with different figures, years or months can be.
        """
        shared: dict[int, float] = defaultdict(float)
        norm = 0.0
        for word in words:
            weight = self.weight(word) ** 2
            postings = self._postings.get(word)
            norm += weight if postings else weight * unknown**2
            for index in postings or ():
                shared[index] += weight
        norm, facts = sqrt(norm) or 1.0, question_facts(words)
        norms = self._norms
        rated = nlargest(
            max(_COMPARED, count), [(weight / norms[index], -index) for index, weight in shared.items()]
        )
        best = []
        for rating, negative in rated:
            similarity = rating / norm
            if facts_differ(facts, self._facts[-negative]):
                similarity *= other_facts
            best.append(SimilarText(-negative, similarity))
        return sorted(best, key=lambda one: (-one.similarity, one.index))[:count]

    def others(self, index: int, words: Sequence[str], count: int) -> list[int]:
        """The texts most similar to the one of this index, which has these words; other figures do not matter."""
        nearest = self.nearest(words, count + 1, other_facts=1.0)
        return [near.index for near in nearest if near.index != index][:count]

    def spell(self, words: Iterable[str]) -> list[str]:
        """The words, each as a nearly equal one of the texts where they do not have it."""
        return [self._spell(word) for word in words]

    def _spell(self, word: str) -> str:
        if word in self._weights or len(word) < _MIN_MISSPELT or not word.isalpha():
            return word
        spelt = self._spelt.get(word)
        if spelt is None:
            grams = _grams(word)
            shared = Counter(other for gram in grams for other in self._words_with.get(gram, ()))
            best = max(
                shared, key=lambda other: shared[other] / (len(grams) + len(_grams(other))), default=word
            )
            alike = 2 * shared[best] / (len(grams) + len(_grams(best)))
            spelt = self._spelt[word] = best if alike >= _SAME_WORD else word
        return spelt

    @cached_property
    def _words_with(self) -> dict[str, list[str]]:
        """Three characters → the words of the texts that have them."""
        words_with: dict[str, list[str]] = defaultdict(list)
        for word in self._weights:
            for gram in _grams(word) if len(word) >= _MIN_MISSPELT - 1 else ():
                words_with[gram].append(word)
        return words_with


def facts_differ(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether each of two questions has figures, months, days or things that the other does not have."""
    return bool(one - other and other - one)


def group_texts(texts: Sequence[Sequence[str]]) -> list[list[int]]:
    """Groups of near-duplicates among the words of texts, which come with the most frequent first."""
    uses = Counter(word for words in texts for word in words)
    leaders = SimilarTexts(texts, is_empty=True)
    groups: list[list[int]] = []
    for index, words in enumerate(texts):
        # A frequent word finds little that a rare one does not find.
        rare = sorted(words, key=uses.__getitem__)
        nearest = leaders.nearest(rare)
        if nearest and nearest[0].similarity >= _SAME_GROUP:
            groups[nearest[0].index].append(index)
        else:
            leaders.add(rare)
            groups.append([index])
    return groups


# Chances that a case asks the same, from which it surely and probably does, and below which it does not.
SURE, LIKELY, UNLIKELY = 0.85, 0.6, 0.2
# Log odds that a case asks the same: alone, and what each of its `Features` adds.
INTERCEPT = -4.52
WEIGHTS = {
    "case_words": 4.91,
    "question_words": 3.9,
    "other_kind": -1.51,
    "opposite": -4.15,
    "other_facts": -1.34,
    "replaced": -3.17,
    "answered": 2.54,
    "not_answered": -0.68,
}
# How often the chance is between these for questions that a case covers, that share only its topic, and for others.
BANDS = (0.02, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85)
COVERED = (0.107, 0.058, 0.095, 0.139, 0.074, 0.109, 0.11, 0.308)
SAME_TOPIC = (0.244, 0.204, 0.204, 0.133, 0.043, 0.088, 0.057, 0.027)
OTHERS = (0.534, 0.185, 0.125, 0.079, 0.027, 0.029, 0.015, 0.006)
# Questions of one golden set are alike in style: however many they are, they say no more than this many independent ones.
_INDEPENDENT = 60.0
# Standard deviation of the share of questions that cannot be compared from that of the others.
_UNCOMPARED = 0.25
_NORMAL_95 = 1.96
# How much a word counts that the golden set does not have, when the nearest cases are looked up.
_UNKNOWN = 0.5
# Words that two questions have in common around others, and the most others, for these to be in the same place.
_SAME_WORDS, _REPLACED_WORDS = 2, 3
_ARTICLES = frozenset(("a", "an", "the"))
# What a question asks for, where its words say that.
_KINDS = tuple(
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in (
        r"how much (?:is|are|does|do|did|was|were|would|will|to|for|extra|it)|prices?|costs?|charges?|fees?|expensive|rates?",
        r"when|what (?:date|day|time)|which (?:day|date)|until|deadline|date",
        r"how (?:long|many (?:days|months|weeks|years|hours))|duration|period|length",
        r"how (?:many|often)",
        r"where|address|located",
        r"who|whom|whose",
        r"how (?:do|can|to|does|is)",
        r"which",
        r"why",
        r"(?<!.)(?:is|are|am|do|does|did|can|could|may|will|would|should|has|have)",
    )
)


def _word_list(name: str) -> str:
    return (_WORDS / name).read_text("utf-8")


def _word_groups(name: str) -> list[list[str]]:
    return [[stem(word) for word in line.split()] for line in _word_list(name).splitlines()]


def _same_group(name: str) -> dict[str, frozenset[str]]:
    """Each word of a list → the words of its groups."""
    groups = _word_groups(name)
    return {
        word: frozenset(one for group in groups if word in group for one in group)
        for group in groups
        for word in group
    }


# Words that may mean the same, and words that exclude each other.
_SYNONYMS, _OPPOSITES = _same_group("synonyms.txt"), _same_group("opposites.txt")
# Language → words by which a question in it is known.
_LANGUAGES = {
    language: frozenset(folded_words(words))
    for language, _, words in (
        line.partition(" ") for line in _word_list("question_languages.txt").splitlines()
    )
}


class Features(msgspec.Struct, frozen=True, kw_only=True):
    """What a question and a case have in common, and in what they differ."""

    # Shares of the words, rare ones counting more, that the other has too, or a synonym of it.
    case_words: float
    question_words: float
    # They ask for different kinds of fact; one has the opposite of a word of the other; their figures or dates differ; they are
    # the same but for a few words in one place ("Is a helmet included?", "Is a lock included?").
    other_kind: bool
    opposite: bool
    other_facts: bool
    replaced: bool
    # The reply to the question is what the case expects, or has less than half of that.
    answered: bool = False
    not_answered: bool = False


class Nearest(msgspec.Struct, frozen=True):
    """A case near to a question."""

    index: int
    features: Features

    @property
    def chance(self) -> float:
        """The chance that both ask the same."""
        odds = INTERCEPT + sum(
            weight * value
            for weight, value in zip(WEIGHTS.values(), msgspec.structs.astuple(self.features), strict=True)
        )
        return 1 / (1 + exp(-odds))


class _QuestionParts:
    """The parts of a question that are compared."""

    def __init__(self, text: str, words: Iterable[str]) -> None:
        self.words = tuple(dict.fromkeys(words))
        self.facts = question_facts(self.words)
        self.kinds = frozenset(index for index, pattern in enumerate(_KINDS) if pattern.search(text))
        # Small words included: "on", "off".
        self.sequence = [
            stem(word) for word in folded_words(joined_hyphens(text[:2000])) if word not in _ARTICLES
        ]
        self.all_words = frozenset(self.sequence)
        self.synonyms = frozenset(one for word in self.words for one in _SYNONYMS.get(word, (word,)))


def _is_replaced(question: _QuestionParts, case: _QuestionParts) -> bool:
    """Whether two questions are the same but for a few words in one place, without synonyms among them."""
    one, other = question.sequence, case.sequence
    shorter = min(len(one), len(other))
    before = next((index for index in range(shorter) if one[index] != other[index]), shorter)
    after = next(
        (index for index in range(shorter - before) if one[~index] != other[~index]), shorter - before
    )
    mine = set(one[before : len(one) - after]).intersection(question.words) - case.all_words
    theirs = set(other[before : len(other) - after]).intersection(case.words) - question.all_words
    return (
        before + after >= _SAME_WORDS
        and max(len(one), len(other)) - before - after <= _REPLACED_WORDS
        and bool(mine)
        and bool(theirs)
        and question.synonyms.isdisjoint(theirs)
    )


class GoldenQuestions:
    """The questions of a golden set; finds those that ask the same as a real one, which may be misspelt.

    >>> golden = GoldenQuestions(["How much is an e-bike for a day?", "Do you open on Sunday?"])
    >>> [golden.nearest(text)[0].chance > 0.5 for text in ("ebike price per day", "city bike price per day")]
    [True, False]
    """

    def __init__(self, texts: Sequence[str]) -> None:
        words = [question_words(text) for text in texts]
        self._index = SimilarTexts(words)
        self._cases = [_QuestionParts(*case) for case in zip(texts, words, strict=True)]
        self._language = _language(" ".join(texts))

    def nearest(self, text: str, count: int = 3) -> list[Nearest]:
        """The cases that share words with a question, the one that most likely asks the same first."""
        question = _QuestionParts(text, self._index.spell(question_words(text)))
        found = self._index.nearest(question.words, count, unknown=_UNKNOWN)
        nearest = [Nearest(one.index, self._compare(question, self._cases[one.index])) for one in found]
        return sorted(nearest, key=lambda one: -one.chance)

    def is_comparable(self, text: str) -> bool:
        """Whether a question is in the language of the cases, as far as its words say that."""
        language = _language(text)
        return language is None or self._language is None or language == self._language

    def _compare(self, question: _QuestionParts, case: _QuestionParts) -> Features:
        only_question, only_case = question.all_words - case.all_words, case.all_words - question.all_words
        return Features(
            case_words=self._share(case.words, question),
            question_words=self._share(question.words, case),
            other_kind=bool(question.kinds and case.kinds) and not question.kinds & case.kinds,
            opposite=any(
                word in _OPPOSITES and not only_case.isdisjoint(_OPPOSITES[word]) for word in only_question
            ),
            other_facts=facts_differ(question.facts, case.facts),
            replaced=_is_replaced(question, case),
        )

    def _share(self, words: Sequence[str], other: _QuestionParts) -> float:
        """The share of words that another question has, or a synonym of it."""
        weights = [self._index.weight(word) for word in words]
        shared = sum(
            weight
            for word, weight in zip(words, weights, strict=True)
            if word in other.words or word in other.synonyms
        )
        return shared / (sum(weights) or 1.0)


def _language(text: str) -> str | None:
    """The language whose question words are most; None: of several as many."""
    words = Counter(folded_words(text[:2000]))
    counts = {
        language: sum(words[word] for word in words.keys() & known) for language, known in _LANGUAGES.items()
    }
    best = max(counts, key=counts.__getitem__)
    return best if list(counts.values()).count(counts[best]) == 1 else None


class Coverage(msgspec.Struct, frozen=True, kw_only=True):
    """The share of the questions asked that a golden set covers."""

    value: float
    # The 95% interval: what words cannot decide, the style of one set, and the chance of few questions.
    low: float
    high: float
    # Questions asked; how many of them a case probably covers, and how many could be covered or not.
    questions: int
    likely: int
    unsure: int
    # Different questions among them.
    distinct: int


def coverage_of(chances: Sequence[tuple[float | None, int]]) -> Coverage | None:
    """The coverage of questions, given by the chance that their nearest case asks the same and how often each was asked.

    The chances are a mixture of those of covered questions, of others that share the topic of a case, and of the rest. The more
    shares explain them, the wider is the interval. Without a chance, questions cannot be compared: they are taken to be covered
    as often as the others, give or take. None: no questions.
    """
    import numpy as np  # slow to load, and a run measures no coverage

    distinct, counts, squares = np.zeros((3, len(COVERED)))
    questions = uncompared = 0
    for chance, count in chances:
        questions += count
        if chance is None:
            uncompared += count
            continue
        band = bisect(BANDS, chance)
        distinct[band] += 1
        counts[band] += count
        squares[band] += count**2
    if not questions:
        return None
    covered, same_topic, others = np.array(COVERED), np.array(SAME_TOPIC), np.array(OTHERS)
    # One row for each share of covered questions, one column for each share of those that share a topic, then bands.
    tried = np.linspace(0.005, 0.995, 100)
    shares, topics = tried[:, None, None], np.linspace(0, 1, 21)[:, None]
    mixed = shares * covered + (1 - shares) * (topics * same_topic + (1 - topics) * others)
    units = max(float(distinct.sum()), 1.0)
    independent = units / (1 + units / _INDEPENDENT)
    likelihood = (np.log(mixed) * distinct).sum(axis=2) / units * independent
    # Few questions neither prove nor exclude anything.
    likelihood += np.log(tried * (1 - tried))[:, None] / 2
    weights = np.exp(likelihood - likelihood.max())
    weights /= weights.sum()
    memberships = shares * covered / mixed
    values = ((memberships * counts).sum(axis=2) + uncompared * tried[:, None]) / questions
    variances = (memberships * (1 - memberships) * squares).sum(axis=2) / questions**2
    variances += (_UNCOMPARED * uncompared / questions) ** 2
    value = float((values * weights).sum())
    spread = _NORMAL_95**2 * float((variances * weights).sum())
    low, high = _quantiles(values.ravel(), weights.ravel(), (0.025, 0.975))
    return Coverage(
        value=value,
        low=max(value - sqrt((value - low) ** 2 + spread), 0.0),
        high=min(value + sqrt((high - value) ** 2 + spread), 1.0),
        questions=questions,
        likely=sum(count for chance, count in chances if chance is not None and chance >= LIKELY),
        unsure=sum(count for chance, count in chances if chance is None or UNLIKELY <= chance < LIKELY),
        distinct=len(chances),
    )


def _quantiles(values: "np.ndarray", weights: "np.ndarray", shares: Sequence[float]) -> list[float]:
    """The values below which these shares of the weights are."""
    order = values.argsort()
    places = weights[order].cumsum().searchsorted(shares)
    return [float(values[order][min(place, len(values) - 1)]) for place in places]

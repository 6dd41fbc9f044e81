"""What a text speaks of, in 32 languages: apology, error, another try, machinery, … as `data/concepts.txt` lists them.

A concept is no verdict. It is what lets a weight that was fitted to one language hold in the others.
"""

import gzip
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, cached_property, reduce
from importlib.resources import files
from itertools import pairwise
from math import exp, log1p, sqrt
from operator import add, itemgetter, mul, or_
from pathlib import Path
from typing import NamedTuple

import msgspec

from answerkey.detect.forms import DetectedFailure, certain_form, kind_by_marks, marked_form
from answerkey.text.normalise import lazy

CONCEPTS = (
    "sorry", "error", "fail", "cannot", "retry", "later", "machine", "timeout", "limit", "busy", "down", "now", "request",
    "result", "support", "memory", "load", "but", "explain", "solved", "advise", "absent", "policy", "askback", "unknown",
)  # fmt: skip
# Thai, kana, Han, Hangul: there a term matches anywhere.
UNSPACED = lazy("[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_WORD = lazy(r"[^\W_]+")
# A term this long also matches longer words that begin with it.
_PREFIX_LENGTH = 5

# A term and the bit of its concept.
_Entries = list[tuple[str, int]]


class _Terms(NamedTuple):
    # The first three letters → terms of one word in languages with spaces.
    words: dict[str, _Entries]
    # The first character → terms of the other languages.
    unspaced: dict[str, _Entries]
    # The first word → the first two letters of the next → terms of several words.
    phrases: dict[str, dict[str, _Entries]]
    # Words that call for another one.
    open: set[str]


@cache
def _read_terms() -> _Terms:
    terms = _Terms({}, {}, {}, set())
    bit = 0
    for line in (files("answerkey.detect") / "data" / "concepts.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            bit = 0 if line == "[open]" else mask_of(line.strip("[]"))
        elif line and not line.startswith("#"):
            for term in {term.strip().lower() for term in line.partition(" ")[2].split(";")}:
                if not bit:
                    terms.open.add(term)
                elif " " in term:
                    first, following, *_ = term.split()
                    _add(terms.phrases.setdefault(first, {}), following[:2], (term, bit))
                elif UNSPACED.search(term):
                    _add(terms.unspaced, term[:1], (term, bit))
                elif len(term) >= 3:
                    _add(terms.words, term[:3], (term, bit))
    return terms


def _add(table: dict[str, _Entries], key: str, entry: tuple[str, int]) -> None:
    entries = table.setdefault(key, [])
    if entry not in entries:
        entries.append(entry)


def mask_of(*concepts: str) -> int:
    """The concepts as bits of one number."""
    return sum(1 << CONCEPTS.index(concept) for concept in concepts)


@cache
def said_in(mask: int) -> tuple[int, ...]:
    """The numbers of the concepts in a mask."""
    return tuple(n for n in range(len(CONCEPTS)) if mask >> n & 1)


@cache
def said_together(mask: int) -> tuple[int, ...]:
    """Each pair of concepts in a mask, as one number."""
    said = said_in(mask)
    return tuple(one * len(CONCEPTS) + two for one in said for two in said if one < two)


def is_open(word: str) -> bool:
    """Whether a word calls for another one; without spaces, whether its end does."""
    words = _read_terms().open
    return word in words or (
        UNSPACED.search(word) is not None and any(word[-n:] in words for n in (1, 2, 3, 4))
    )


def find_concepts(word: str) -> tuple[int, dict[str, _Entries] | None]:
    """The concepts that a word in small letters speaks of, and by the next word's first letters the terms that begin with it."""
    terms = _read_terms()
    mask = 0
    phrases = None
    for part in _WORD.finditer(word):
        start = part.start()
        for term, bit in terms.words.get(word[start : start + 3], ()):
            end = start + len(term)
            if word.startswith(term, start) and (
                len(term) >= _PREFIX_LENGTH or not word[end : end + 1].isalnum()
            ):
                mask |= bit
        phrases = terms.phrases.get(word[start:], phrases)
    if UNSPACED.search(word):
        for start, character in enumerate(word):
            for term, bit in terms.unspaced.get(character, ()):
                if word.startswith(term, start):
                    mask |= bit
    return mask, phrases


# The fitted weights as they are shipped, so that a run loads what its replies need: the gate, then of the model what they say.
#
# Few replies get past the gate, and of a hundred thousand runs of characters a run meets some thousands.


# A shelf holds the keys that begin with the same two characters.
SHELF = 2
# Below this number also shelves that turned out empty are kept.
_SHELVES_KEPT = 20_000


class Gate(msgspec.Struct):
    """The gate's weights."""

    marks: dict[str, int]
    # What the sum of the marks must stay below, of a longer reply, a short one and one of a dense script.
    limits: tuple[float, float, float]


class Fitted(msgspec.Struct):
    """The model's weights."""

    bias: float
    # A reply is an error if its probability is above this.
    threshold: float
    # For each of NAMES.
    named: list[float]
    # Runs of characters by shelf, neighbouring words, first and last words.
    characters: dict[str, msgspec.Raw]
    neighbours: dict[str, int]
    edges: dict[str, int]
    # By which sums of these three are to be multiplied.
    scales: tuple[float, float, float]


class Shelves(dict[str, dict[str, int]]):
    """Weights by the first two characters of their keys; a shelf is read when somebody looks into it."""

    def __init__(self, packed: dict[str, msgspec.Raw] | None = None) -> None:
        self._packed = packed or {}

    def __missing__(self, shelf: str) -> dict[str, int]:
        packed = self._packed.get(shelf)
        weights = msgspec.json.decode(packed, type=dict[str, int]) if packed else {}
        if packed or len(self) < _SHELVES_KEPT:
            self[shelf] = weights
        return weights

    def total(self, keys: Iterable[str]) -> int:
        """What these keys weigh together."""
        return sum([self[key[:SHELF]].get(key, 0) for key in keys])


# What the model reads of a reply: named figures on its build, the concepts it speaks of, its words and their characters.
#
# Only the beginning and the end of a long reply are read, so the cost has a bound. What a word by itself says is worked out once and
# kept in a Lexicon, since most words come again and again.


# ruff: noqa: E501 — lists of names, figures and marks.


_HEAD, _TAIL = 1000, 500
# How many words a Lexicon keeps, and how long they may be: what is longer, such as a sentence without spaces, seldom comes again.
_WORDS_KEPT, _LONGEST_KEPT = 50_000, 40

# Begins with all that may begin it, since the search is then several times faster; so does _NAME.
_SENTENCE_END = lazy(r"[.!?…\n。！？।؟](?:(?<=\n)\n*|(?<=[。！？।؟])|(?<=[.!?…])\s+)")
_DIGIT = lazy(r"\d")
_EMOJI = lazy("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d\\s]")
_NAME = lazy(r"[A-ZÀ-Þ](?<=[a-zà-ÿ,] .)\w+")
_LIST_LINE = lazy(r"^[ \t]*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_PLACEHOLDER = lazy(
    r"\{\{|\$\{|%\(?\w+\)?[sd]\b|\{%|<%|\{[^\W\d][\w.|]*\}|\[\[|\[[A-Z_]{3,}\]|<[A-Z_]{3,}>|__[A-Z]|%[A-Z_]{3,}%|@@|\|\||<\|"
)
# "None." is an answer.
_UNSET = lazy(r"\b(?:undefined|NaN|null|None(?!\.)|nil)\b")
_RAW_OBJECT = lazy(
    r"\[object |<\w+ object|object at 0x|<(?:function|class|Response)|\w\(\w+=|tool_calls?|function_call|\"arguments\"|Action Input:"
)
# Without a word that has one of these there is no bracket, bar or quotation mark; no placeholder or raw object; no trace.
_MARK = lazy(r"[\[\](){}|`\"“«「„]")
_CODE = lazy(r"[\[{<%_@|=]|arguments|Input:|0x")
_TRACED = lazy(r"rror|xception|race|panic|goroutine|Caused|:\d|#\d|`|File|[\w.$<>]\(")
_TRACE = lazy(
    r"Traceback \(|^[ \t]+at [\w.$<>]+\(|File \"[^\"\n]+\", line \d|\w(?:Error|Exception)\b|panic:|goroutine \d|^[ \t]*from \S+:\d|in `"
    r"|#\d+ /|[Ss]tack ?trace|Caused by:",
    re.MULTILINE,
)
_IDENTIFIER = lazy(
    r"\b(?:[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|E[A-Z]{4,}|[A-Z]{2,5}-?\d{3,5}|[a-z]+_[a-z_]+|0x[0-9A-Fa-f]{4,})\b"
)
_HTTP_CODE = lazy(r"\b(?:4[0-2]\d|50\d|52\d)\b")
_MONEY = lazy(r"[$€£¥₹₩]|\b(?:USD|EUR|kr|zł|Kč|Rp|TL|lei|Ft)\b")
_CODE_IN_BRACKETS = lazy(r"\([^()\n]{0,40}\d[^()\n]{0,40}\)")
# One to three words or numbers and no other marks.
_PLAIN_WORDS = lazy(
    r"(?!.*\b(?:undefined|NaN|null|None|nil)\b)[\w$€£%&'’.,/-]*[\w%.!](?: [\w$€£%&'’.,/-]*[\w%.!]){0,2}"
)
_TERSE = 40
# What may stand around a word.
_AROUND = ".,;:!?…\"'“”„«»()[]{}*_`<>|。！？、，：；「」।؟،؛-–—"

_FAILING = mask_of("error", "fail", "cannot", "timeout", "limit", "busy", "down", "memory")
_NOTICE = _FAILING | mask_of("sorry", "retry", "later", "support", "now")
_STOPS, _QUESTIONS = ".!?。！？।؟…", "?？؟"

# The named figures, in the order in which _measure_build and _measure_content give them.
FIGURES = (
    # size
    "words", "sentences", "three_words",
    # how it ends
    "ends_stop", "ends_colon", "ends_comma", "ends_letter", "ends_letter_long", "ends_letter_after_stop", "ends_letter_casual", "ends_dots",
    "ends_open", "ends_emoji", "ends_digit", "ends_letter_lines", "ends_letter_item", "bars_uneven", "ends_bar",
    "last_word_short", "last_line_short", "ends_heading", "odd_fence", "odd_bracket", "odd_quote",
    # what it is made of
    "exclamations", "digits", "names", "fence", "list_lines", "bars", "begins_object", "begins_tag", "quotes", "code_in_brackets", "money",
    "shouts", "asks_first",
    # marks of machines
    "placeholder", "placeholders", "unset", "unset_share", "raw_object", "traces", "identifiers", "http_code",
    # what it speaks of, sentence by sentence
    "failing_share", "failing_first", "failing_mentions", "notice_share", "free_length", "free_longest", "free_digits", "first_failing",
    "concepts", "few_plain_words",
    # nothing of a notice, of machines or of breaking off
    "unmarked", "unmarked_short", "unmarked_terse_ascii", "unmarked_stop",
)  # fmt: skip
_MARKS = [
    FIGURES.index(name)
    for name in (
        "ends_colon", "ends_comma", "ends_dots", "ends_open", "bars_uneven", "odd_bracket", "odd_quote", "placeholder", "unset", "raw_object", "traces",
    )
]  # fmt: skip
# The named features: the figures, each concept anywhere, in the first and in the last sentence, and pairs of concepts in one sentence.
NAMES = (
    *FIGURES,
    *(f"{concept}{place}" for place in ("", " first", " last") for concept in CONCEPTS),
    *(f"{first}+{second}" for first in CONCEPTS for second in CONCEPTS),
)
_CONCEPT_PLACE = len(FIGURES)
_PAIR_PLACE = _CONCEPT_PLACE + 3 * len(CONCEPTS)


# Signs of a word.
_IS_UNSET, _IS_IDENTIFIER, _IS_HTTP_CODE, _IS_MONEY, _IS_SHOUTED, _IS_MARK, _IS_CODE, _IS_TRACED = (
    1 << bit for bit in range(8)
)
_SIGNS = (
    (_IS_UNSET, _UNSET), (_IS_IDENTIFIER, _IDENTIFIER), (_IS_HTTP_CODE, _HTTP_CODE), (_IS_MONEY, _MONEY), (_IS_MARK, _MARK),
    (_IS_CODE, _CODE), (_IS_TRACED, _TRACED),
)  # fmt: skip
_Phrases = dict[str, list[tuple[str, int]]]


class Word(NamedTuple):
    """What a word says by itself."""

    # The sum of the weights of its characters, to be scaled, and how many runs of characters it has.
    weight: int
    grams: int
    # Its concepts, and by the first letters of the next word terms of several words that may begin with it.
    concepts: int
    phrases: _Phrases | None
    # The word in small letters without punctuation around it.
    bare: str
    # How many of its characters are digits.
    digits: int
    # What it looks like: money, an identifier, ...
    signs: int


class Lexicon(dict[str, Word]):
    """Every word met so far with what it says under these weights of runs of characters."""

    def __init__(self, weights: Shelves) -> None:
        self.weights = weights

    def __missing__(self, word: str) -> Word:
        lowered = word.lower()
        grams = character_grams(lowered)
        weight = self.weights.total(grams)
        signs = sum(sign for sign, pattern in _SIGNS if pattern.search(word)) + word.isupper() * _IS_SHOUTED
        bare, digits = lowered.strip(_AROUND) or lowered, len(_DIGIT.findall(word))
        entry = Word(weight, len(grams), *find_concepts(lowered), bare, digits, signs)
        if len(self) < _WORDS_KEPT and len(word) <= _LONGEST_KEPT:
            self[word] = entry
        return entry


class Reading(NamedTuple):
    """What was read of a text."""

    # The values of FIGURES.
    figures: list[float]
    # The places in NAMES of the concepts and of the pairs of concepts that occur.
    concepts: list[int]
    pairs: set[int]
    # Distinct words, and neighbouring words without punctuation.
    words: dict[str, Word]
    neighbours: set[str]
    # First and last words, last characters.
    edges: list[str]
    sentences: list[tuple[int, int]]
    speaks_of_failure: bool


def character_grams(word: str) -> list[str]:
    """The word's runs of 2 to 5 characters, its ends being marked by a space, and the whole word."""
    padded = f" {word} "
    length = len(padded)
    grams = [padded[start : start + size] for size in (2, 3, 4, 5) for start in range(length - size + 1)]
    if length > 7:
        grams.append(padded)
    return grams


def clip(text: str) -> str:
    """The text, or beginning and end of a long one."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def place_in_whole(position: int, length: int) -> int:
    """Where a position in the clipped text is in the whole one, which has this length."""
    left_out = length - (_HEAD + 1 + _TAIL)
    return position if left_out < 0 or position <= _HEAD else position + left_out


def read_features(text: str, lexicon: Lexicon) -> Reading:
    """The features of a clipped text without white space around it."""
    sentences = _split_sentences(text)
    pieces: list[str] = []
    bounds = [0]
    for start, end in sentences:
        pieces += text[start:end].split()
        bounds.append(len(pieces))
    said = list(map(lexicon.__getitem__, pieces))
    _, _, concepts_said, phrases, bare, digits, signs = zip(*said, strict=True)
    masks = [reduce(or_, concepts_said[begin:stop], 0) for begin, stop in pairwise(bounds)]
    if any(phrases):
        for place, (begin, stop) in enumerate(pairwise(bounds)):
            masks[place] |= _said_in_phrases(text, sentences[place], phrases[begin:stop], bare[begin:stop])
    union = reduce(or_, masks)
    figures = _measure_build(text, sentences, bare, digits, signs)
    is_marked = any(map(figures.__getitem__, _MARKS))
    mentions = sum([mask & _FAILING != 0 for mask in concepts_said]) if union & _FAILING else 0
    digits_of = [sum(digits[begin:stop]) for begin, stop in pairwise(bounds)]
    figures += _measure_content(text, sentences, masks, digits_of, mentions, is_marked)
    count = len(CONCEPTS)
    concepts = [_CONCEPT_PLACE + concept for concept in said_in(union)]
    concepts += [_CONCEPT_PLACE + count + concept for concept in said_in(masks[0])]
    concepts += [_CONCEPT_PLACE + 2 * count + concept for concept in said_in(masks[-1])]
    pairs = {_PAIR_PLACE + pair for mask in set(masks) for pair in said_together(mask)}
    edges = ["^" + bare[0], "^" + " ".join(bare[:2]), bare[-1] + "$", " ".join(bare[-2:]) + "$"]
    edges += [f"$$$ {text[-size:].lower()}" for size in (1, 2, 3)]
    words, neighbours = dict(zip(pieces, said, strict=True)), set(map(" ".join, pairwise(bare)))
    return Reading(figures, concepts, pairs, words, neighbours, edges, sentences, union & _FAILING != 0)


def _said_in_phrases(
    text: str, sentence: tuple[int, int], phrases: tuple[_Phrases | None, ...], bare: tuple[str, ...]
) -> int:
    """The concepts of the terms of several words in a sentence."""
    mask = 0
    small = ""
    for beginning, following in zip(phrases, bare[1:], strict=False):
        for phrase, bit in beginning.get(following[:2], ()) if beginning else ():
            small = small or text[slice(*sentence)].lower()
            if phrase in small:
                mask |= bit
    return mask


def _split_sentences(text: str) -> list[tuple[int, int]]:
    spans = []
    begin = 0
    for gap in _SENTENCE_END.finditer(text):
        if text[begin : gap.end()].strip():
            spans.append((begin, gap.end()))
        begin = gap.end()
    if text[begin:].strip() or not spans:
        spans.append((begin, len(text)))
    return spans


def _measure_build(
    text: str,
    sentences: list[tuple[int, int]],
    said: tuple[str, ...],
    digits_said: tuple[int, ...],
    signs_said: tuple[int, ...],
) -> list[float]:
    """The figures up to the marks of machines: size, end, what the text is made of. `said` are the bare words."""
    count = len(said) if text.isascii() or not UNSPACED.search(text) else max(len(said), len(text) // 3)
    bare = text
    while not bare[-1:].isascii() and _EMOJI.match(bare, len(bare) - 1):
        bare = bare[:-1].rstrip()
    last = bare[-1:]
    # Marks above and below a letter of an Indian language or of Thai are letters here.
    letter = last.isalnum() or (last not in _STOPS and "\u0900" <= last <= "\u0e7f")
    stopped = letter and any(text[start:stop].rstrip()[-1:] in _STOPS for start, stop in sentences[:-1])
    digits = sum(digits_said)
    signs = list(filter(None, signs_said))
    of_any = reduce(or_, signs, 0)
    unset = sum([sign & _IS_UNSET for sign in signs])
    shouted = False
    if of_any & _IS_SHOUTED:
        each = zip(said, digits_said, signs_said, strict=True)
        loud = sum([len(word) - count for word, count, sign in each if sign & _IS_SHOUTED])
        letters = sum(map(len, said)) - digits
        shouted = letters > 4 and loud > 0.6 * letters
    one_line = "\n" not in text
    lines = [text] if one_line else [line for line in text.split("\n") if line.strip()]
    final = lines[-1]
    more, before = len(lines) > 1, lines[-2] if len(lines) > 1 else ""
    fences = placeholders = traces = bars = quotes = odd_bracket = odd_quote = coded = raw = 0
    if of_any & _IS_MARK:
        fences, bars = text.count("```"), sum(["|" in line for line in lines])
        odd_bracket = any(text.count(a) != text.count(b) for a, b in ("()", "[]", "{}"))
        quotes, odd_quote = sum(map(text.count, '"“«「„`')), text.count('"') % 2
        coded = "(" in text and _CODE_IN_BRACKETS.search(text) is not None
    if of_any & _IS_CODE:
        placeholders, raw = len(_PLACEHOLDER.findall(text)), _RAW_OBJECT.search(text) is not None
    if of_any & _IS_TRACED:
        traces = len(_TRACE.findall(text))
    return [
        log1p(count) / 4, log1p(len(sentences)), count <= 3,
        last in _STOPS and bool(last), last in ":：" and bool(last), last in ",，、;；-–—(/" and bool(last), letter, letter and count > 8,
        # Whoever sets neither capitals nor full stops leaves out the last one too.
        letter and stopped, letter and text[0].islower() and not stopped, bare.endswith(("...", "…")),
        letter and not last.isupper() and is_open(said[-1]), bare != text, last.isdigit(), letter and before.rstrip()[-1:].isalnum(),
        letter and more and _LIST_LINE.match(final) is not None, more and "|" in before and before.count("|") != final.count("|"),
        last == "|",
        letter and len(said) > 4 and len(said[-1]) <= 3, more and len(final) < 25,
        final.startswith("#") or final.rstrip(" *").endswith((":", "：")), fences % 2, odd_bracket, odd_quote,
        log1p(text.count("!") + text.count("！")), log1p(digits), log1p(len(_NAME.findall(text))), fences > 0,
        log1p(len(_LIST_LINE.findall(text))) if not (one_line and text[0].isalpha()) else 0, log1p(bars), text[0] in "{[", text[0] == "<",
        log1p(quotes), coded, of_any & _IS_MONEY != 0,
        shouted, text[: sentences[0][1]].rstrip()[-1:] in tuple(_QUESTIONS),
        placeholders > 0, log1p(placeholders), unset > 0, log1p(unset) / max(1.0, log1p(count)), raw, log1p(traces),
        log1p(sum([sign & _IS_IDENTIFIER != 0 for sign in signs])), of_any & _IS_HTTP_CODE != 0,
    ]  # fmt: skip


def _measure_content(
    text: str,
    sentences: list[tuple[int, int]],
    masks: list[int],
    digits_of: list[int],
    mentions: int,
    is_marked: bool,
) -> list[float]:
    """The figures on what the sentences speak of: `free` is a sentence that has nothing of a notice."""
    total = max(1, len(text))
    union = reduce(or_, masks)
    lengths = [end - start for start, end in sentences]
    free, failing, first_failing = lengths, 0, total
    if union & _NOTICE:
        free = [length for length, mask in zip(lengths, masks, strict=True) if not mask & _NOTICE]
        digits_of = [digits for digits, mask in zip(digits_of, masks, strict=True) if not mask & _NOTICE]
    if union & _FAILING:
        fails = [place for place, mask in enumerate(masks) if mask & _FAILING]
        failing, first_failing = sum([lengths[place] for place in fails]), sentences[fails[0]][0]
    unmarked = not union & _NOTICE and not is_marked
    return [
        failing / total, masks[0] & _FAILING != 0, log1p(mentions), 1 - sum(free) / total, log1p(sum(free)) / 4,
        log1p(max(free, default=0)) / 4, log1p(sum(digits_of)), log1p(first_failing) / 5, union.bit_count() / 5,
        # A terse answer, as far as one can see: "Neil Young", "442300".
        not union & _NOTICE and total <= _TERSE and _PLAIN_WORDS.fullmatch(text) is not None,
        unmarked, unmarked and total <= 150, unmarked and total <= 60 and text.isascii(), unmarked and text[-1] in _STOPS,
    ]  # fmt: skip


# Whether a reply is an error instead of an answer, seen from its text alone.
#
# First the forms that are certain, then a gate that lets most plain answers go at once by their words, then a linear model over
# named features and n-grams, by the weights that `tools/fit/fit_errors.py` fitted. Only beginning and end of a long reply are
# weighed, so the time is linear with a small factor.


__all__ = ["DetectedFailure", "Model", "detect_failure", "failure_kinds", "gate_marks", "is_let_go"]

_WORDS_SHOWN = 5
# What the gate reads of a reply, below which length it is a short one, and how many letters of a word may stand for it.
_HEAD_DETECTOR, _TAIL_DETECTOR, _SHORT, _LETTERS = 200, 80, 128, 6
# UTF-8 bytes per character above which a script may have no spaces, and above which a text is hardly English with a few dashes.
_DENSE, _ACCENTED = 2.2, 1.03
_DIGITS, _CAPITALS = b"0123456789", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
# Small letters, and spaces between words.
_SPACED = bytes.maketrans(_CAPITALS + b",.:!", _CAPITALS.lower() + b"    ")
_SIGNS_DETECTOR = {sign: f"\n\t{sign:c}" for sign in b"$%?'\"()*-\n;/"}
_NO_SIGNS = bytes(set(range(256)) - set(_SIGNS_DETECTOR))
# The kinds of replies, each with a limit of its own.
LONGER, SHORT, DENSE = 0, 1, 2


class Model:
    """Gate and model, of which each is read when it is needed."""

    def __init__(self, read_gate: Callable[[], Gate], read_fitted: Callable[[], Fitted]) -> None:
        self._read_gate, self._read_fitted = read_gate, read_fitted

    @cached_property
    def gate(self) -> tuple[Gate, frozenset[str]]:
        """What lets plain answers go, and the marks it has weights for: a set finds them faster than a dictionary."""
        gate = self._read_gate()
        return gate, frozenset(gate.marks)

    @cached_property
    def fitted(self) -> Fitted:
        """What weighs all other replies."""
        return self._read_fitted()

    @cached_property
    def lexicon(self) -> Lexicon:
        """Words with what they weigh."""
        return Lexicon(Shelves(self.fitted.characters))


@cache
def shipped_model() -> Model:
    """The weights in the package."""
    return Model(
        lambda: msgspec.json.decode(_unpacked("gate.json.gz"), type=Gate),
        lambda: msgspec.json.decode(_unpacked("weights.json.gz"), type=Fitted),
    )


def _unpacked(name: str) -> bytes:
    return gzip.decompress((Path(__file__).parent / "data" / name).read_bytes())


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows, or None for an answer; `model` takes the place of the shipped weights."""
    stripped = (text or "").strip()
    found = certain_form(text, stripped)
    if found or text is None:
        return found
    model = model or shipped_model()
    return None if is_let_go(stripped, model) else _decide(text, stripped, model)


def failure_kinds(texts: Sequence[str | None]) -> list[str | None]:
    """The kind of the failure that each text shows: as `detect_failure`, and faster, since each step is for all at once."""
    model = shipped_model()
    stripped = [(text or "").strip() for text in texts]
    kinds = [None if form is None else form.kind for form in map(certain_form, texts, stripped)]
    left = [
        place for place, kind in enumerate(kinds) if kind is None and not is_let_go(stripped[place], model)
    ]
    for place in left:
        clipped = clip(stripped[place])
        found = marked_form(clipped) or _weighed(clipped, model)
        kinds[place] = None if found is None else found.kind
    return kinds


def is_let_go(stripped: str, model: Model) -> bool:
    """Whether the gate takes a reply for an answer: by the weights of its marks, each counted once."""
    found = gate_marks(stripped)
    if found is None:
        return False
    kind, marks = found
    gate, known = model.gate
    return sum(map(gate.marks.__getitem__, known.intersection(marks))) < gate.limits[kind]


def gate_marks(stripped: str) -> tuple[int, list[str]] | None:
    """The reply's kind, and its words, the first and the last of them, its end with its length, its signs and how many digits it
    has; None where the gate must not decide.
    """
    # One character is looked for at a fraction of the cost of several.
    if "{" in stripped or "<" in stripped or ("`" in stripped and "```" in stripped):
        return None
    if ("|" in stripped and "||" in stripped) or ("@" in stripped and "@@" in stripped):
        return None
    length = len(stripped)
    looked_at = (
        stripped if length <= _HEAD_DETECTOR + _TAIL_DETECTOR else f"{stripped[:_HEAD]} {stripped[-_TAIL:]}"
    )
    # A table serves all bytes at once, where a text would be gone through for each of them.
    data = looked_at.encode("utf-8", "replace")
    width = len(data) / len(looked_at)
    last = stripped[-1]
    end = "a" if last.isalpha() else "0" if last.isdigit() else last
    size = min(10, length.bit_length())
    if width > _DENSE:
        small = looked_at.lower()
        return DENSE, [f"\n{end}{size}d", *map(add, small, small[1:])]
    marks = data.translate(_SPACED).decode().lower().split() or [last]
    first, final, count = marks[0], marks[-1], len(marks)
    if length < _SHORT or width > _ACCENTED:
        marks += [word[:_LETTERS] for word in marks if len(word) > _LETTERS]
    if length < _SHORT:
        # How many of the words have a capital: a name, a heading, a sentence, casual talk.
        marks.append(f"\n{min(4, sum(map(str.istitle, looked_at.split())))}/{min(6, count)}")
    marks += map(_SIGNS_DETECTOR.__getitem__, set(data.translate(None, _NO_SIGNS)))
    digits = len(data) - len(data.translate(None, _DIGITS))
    marks += "\n" + first, f"\n{end}{size}", f"\n\n{digits if digits < 4 else digits.bit_length() + 1}"
    if end in "a0":
        marks.append(final + "\n")
    return (SHORT if length < _SHORT else LONGER), marks


def _decide(text: str, stripped: str, model: Model) -> DetectedFailure | None:
    """What marks and model say of a reply that neither its form nor the gate decided."""
    clipped = clip(stripped)
    found = marked_form(clipped)
    if found is None:
        weighed = _weighed(clipped, model)
        if weighed is None:
            return None
        start, end, because = _explain(clipped, weighed.reading, model)
        message, probability = " ".join(clipped[start:end].split())[:200], round(weighed.probability, 3)
        found = DetectedFailure(weighed.kind, message, start, end, because, probability)
    begin = text.find(stripped[0])
    start, end = (begin + place_in_whole(place, len(stripped)) for place in (found.start, found.end))
    return msgspec.structs.replace(found, start=start, end=end)


class _Weighed(NamedTuple):
    """An error by the model's weights."""

    kind: str
    reading: Reading
    probability: float


def _weighed(clipped: str, model: Model) -> _Weighed | None:
    """What the model says of a clipped text; None: it is an answer."""
    reading = read_features(clipped, model.lexicon)
    probability = weigh(reading, model)
    if probability <= model.fitted.threshold:
        return None
    breaks_off = not reading.speaks_of_failure and clipped[-1] not in ".!?。！？।؟…"
    return _Weighed(kind_by_marks(clipped, breaks_off), reading, probability)


def weigh(reading: Reading, model: Model) -> float:
    """The probability that what was read is an error."""
    fitted, words, neighbours = model.fitted, reading.words.values(), reading.neighbours
    named, (of_words, of_neighbours, of_edges) = fitted.named, fitted.scales
    total = fitted.bias + sum(map(mul, reading.figures, named))
    total += sum([named[place] for place in (*reading.concepts, *reading.pairs)])
    total += of_words * sum(map(_WEIGHT, words)) / sqrt(sum(map(_GRAMS, words)))
    if neighbours:
        total += (
            of_neighbours * sum(filter(None, map(fitted.neighbours.get, neighbours))) / sqrt(len(neighbours))
        )
    total += of_edges * sum(filter(None, map(fitted.edges.get, reading.edges)))
    return 1 / (1 + exp(-max(-30.0, min(30.0, total))))


_WEIGHT, _GRAMS = itemgetter(0), itemgetter(1)


def _explain(text: str, reading: Reading, model: Model) -> tuple[int, int, tuple[str, ...]]:
    """The sentence that speaks most for an error, and the words and named features that do."""
    lexicon = model.lexicon
    weighed = [
        [(lexicon[word].weight, word) for word in text[start:end].split()] for start, end in reading.sentences
    ]
    sums = [sum([weight for weight, _ in words]) for words in weighed]
    start, end = reading.sentences[sums.index(max(sums))]
    distinct = sorted({word for words in weighed for word in words}, reverse=True)
    because = [f"“{word}”" for weight, word in distinct[:_WORDS_SHOWN] if weight > 0]
    named = [(value * model.fitted.named[n], FIGURES[n]) for n, value in enumerate(reading.figures)]
    named += [(model.fitted.named[place], NAMES[place]) for place in (*reading.concepts, *reading.pairs)]
    because += [name for weight, name in sorted(named, reverse=True)[:_WORDS_SHOWN] if weight > 0]
    return start, end, tuple(because)

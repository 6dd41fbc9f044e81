"""What the model reads of a reply: named figures on its build, the concepts it speaks of, its words and their characters.

Only the beginning and the end of a long reply are read, so the cost has a bound. What a word by itself says is worked out once and
kept in a Lexicon, since most words come again and again.
"""

# ruff: noqa: E501 — lists of names, figures and marks.

import re
from functools import reduce
from itertools import pairwise
from math import log1p
from operator import or_
from typing import NamedTuple

from answerkey.detect.concepts import (
    CONCEPTS,
    UNSPACED,
    find_concepts,
    is_open,
    mask_of,
    said_in,
    said_together,
)
from answerkey.detect.forms import TRACE_HINTS
from answerkey.detect.weights_file import Shelves
from answerkey.text.lazy import lazy

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
# Without one of these there is no use in looking for the pattern after it.
_BEFORE_RAW = ("=", "_", "<", "[object", "arguments", "Action Input", "0x")
_BEFORE_TRACE = ("rror", "xception", "race", "in `", *TRACE_HINTS)
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
_IS_UNSET, _IS_IDENTIFIER, _IS_HTTP_CODE, _IS_MONEY, _IS_SHOUTED = 1, 2, 4, 8, 16
_SIGNS = (
    (_IS_UNSET, _UNSET),
    (_IS_IDENTIFIER, _IDENTIFIER),
    (_IS_HTTP_CODE, _HTTP_CODE),
    (_IS_MONEY, _MONEY),
)


class Word(NamedTuple):
    """What a word says by itself."""

    # The sum of the weights of its characters, and how many runs of characters it has.
    weight: float
    grams: int
    # Its concepts, and by the first letters of the next word terms of several words that may begin with it.
    concepts: int
    phrases: dict[str, list[tuple[str, int]]] | None
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
    words: dict[str, Word] = {}
    said: list[Word] = []
    masks: list[int] = []
    for start, end in sentences:
        sentence = text[start:end]
        small = sentence.lower()
        pieces = sentence.split()
        found = [lexicon[piece] for piece in pieces]
        words.update(zip(pieces, found, strict=True))
        mask = reduce(or_, [word.concepts for word in found if word.concepts], 0)
        for index in [index for index, word in enumerate(found[:-1]) if word.phrases]:
            phrases = found[index].phrases.get(found[index + 1].bare[:2])  # type: ignore[union-attr]
            for phrase, bit in phrases or ():
                if phrase in small:
                    mask |= bit
        said += found
        masks.append(mask)
    _, _, concepts_said, _, bare, digits, signs = zip(*said, strict=True)
    figures = _measure_build(text, sentences, bare, digits, signs)
    is_marked = any(map(figures.__getitem__, _MARKS))
    mentions = sum([1 for mask in filter(None, concepts_said) if mask & _FAILING])
    figures += _measure_content(text, sentences, masks, mentions, is_marked)
    union = reduce(or_, masks)
    count = len(CONCEPTS)
    concepts = [_CONCEPT_PLACE + concept for concept in said_in(union)]
    concepts += [_CONCEPT_PLACE + count + concept for concept in said_in(masks[0])]
    concepts += [_CONCEPT_PLACE + 2 * count + concept for concept in said_in(masks[-1])]
    pairs = {_PAIR_PLACE + pair for mask in set(masks) for pair in said_together(mask)}
    edges = ["^" + bare[0], "^" + " ".join(bare[:2]), bare[-1] + "$", " ".join(bare[-2:]) + "$"]
    edges += [f"$$$ {text[-size:].lower()}" for size in (1, 2, 3)]
    neighbours = set(map(" ".join, pairwise(bare)))
    return Reading(figures, concepts, pairs, words, neighbours, edges, sentences, union & _FAILING != 0)


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
    length = len(text)
    count = max(len(said), length // 3) if UNSPACED.search(text) else len(said)
    bare = text
    while _EMOJI.match(bare, len(bare) - 1):
        bare = bare[:-1]
    last = bare[-1:]
    # Marks above and below a letter of an Indian language or of Thai are letters here.
    letter = last.isalnum() or (last not in _STOPS and "\u0900" <= last <= "\u0e7f")
    stopped = any(text[start:stop].rstrip()[-1:] in _STOPS for start, stop in sentences[:-1])
    lines = [line for line in text.split("\n") if line.strip()] if "\n" in text else [text]
    final = lines[-1]
    before = lines[-2].rstrip()[-1:] if len(lines) > 1 else ""
    digits = sum(digits_said)
    letters = sum(map(len, said)) - digits
    placeholders = len(_PLACEHOLDER.findall(text))
    signs = list(filter(None, signs_said))
    of_any = reduce(or_, signs, 0)
    unset = sum([sign & _IS_UNSET for sign in signs])
    shouted = 0
    if of_any & _IS_SHOUTED:
        each = zip(said, digits_said, signs_said, strict=True)
        shouted = sum([len(word) - count for word, count, sign in each if sign & _IS_SHOUTED])
    fences = text.count("```")
    return [
        log1p(count) / 4, log1p(len(sentences)), count <= 3,
        last in _STOPS and bool(last), last in ":：" and bool(last), last in ",，、;；-–—(/" and bool(last), letter, letter and count > 8,
        # Whoever sets neither capitals nor full stops leaves out the last one too.
        letter and stopped, letter and text[0].islower() and not stopped, bare.endswith(("...", "…")),
        letter and not last.isupper() and is_open(said[-1]), bare != text, last.isdigit(), letter and before.isalnum(),
        letter and len(lines) > 1 and _LIST_LINE.match(final) is not None, len(lines) > 1 and "|" in lines[-2] and lines[-2].count("|") != final.count("|"),
        last == "|",
        letter and len(said) > 4 and len(said[-1]) <= 3, len(lines) > 1 and len(final) < 25,
        final.startswith("#") or final.rstrip(" *").endswith((":", "：")), fences % 2,
        any(text.count(a) != text.count(b) for a, b in ("()", "[]", "{}")), text.count('"') % 2,
        log1p(text.count("!") + text.count("！")), log1p(digits), log1p(len(_NAME.findall(text))), fences > 0,
        log1p(len(_LIST_LINE.findall(text))), log1p(sum(["|" in line for line in lines])), text[0] in "{[", text[0] == "<",
        log1p(sum(map(text.count, '"“«「„`'))), bool(_CODE_IN_BRACKETS.search(text)), of_any & _IS_MONEY != 0,
        letters > 4 and shouted > 0.6 * letters, text[: sentences[0][1]].rstrip()[-1:] in tuple(_QUESTIONS),
        placeholders > 0, log1p(placeholders), unset > 0, log1p(unset) / max(1.0, log1p(count)),
        any(map(text.__contains__, _BEFORE_RAW)) and _RAW_OBJECT.search(text) is not None,
        log1p(len(_TRACE.findall(text))) if any(map(text.__contains__, _BEFORE_TRACE)) else 0,
        log1p(sum([sign & _IS_IDENTIFIER != 0 for sign in signs])), of_any & _IS_HTTP_CODE != 0,
    ]  # fmt: skip


def _measure_content(
    text: str, sentences: list[tuple[int, int]], masks: list[int], mentions: int, is_marked: bool
) -> list[float]:
    """The figures on what the sentences speak of: `free` is a sentence that has nothing of a notice."""
    total = max(1, len(text))
    failing = [end - start for (start, end), mask in zip(sentences, masks, strict=True) if mask & _FAILING]
    free = [span for span, mask in zip(sentences, masks, strict=True) if not mask & _NOTICE]
    free_lengths = [end - start for start, end in free]
    free_digits = sum(len(_DIGIT.findall(text, start, end)) for start, end in free)
    first_failing = next(
        (start for (start, _), mask in zip(sentences, masks, strict=True) if mask & _FAILING), total
    )
    union = reduce(or_, masks)
    unmarked = not union & _NOTICE and not is_marked
    return [
        sum(failing) / total,
        masks[0] & _FAILING != 0,
        log1p(mentions),
        1 - sum(free_lengths) / total,
        log1p(sum(free_lengths)) / 4,
        log1p(max(free_lengths, default=0)) / 4,
        log1p(free_digits),
        log1p(first_failing) / 5,
        union.bit_count() / 5,
        # A terse answer, as far as one can see: "Neil Young", "442300".
        not union & _NOTICE and total <= _TERSE and _PLAIN_WORDS.fullmatch(text) is not None,
        unmarked,
        unmarked and total <= 150,
        unmarked and total <= 60 and text.isascii(),
        unmarked and text[-1] in _STOPS,
    ]

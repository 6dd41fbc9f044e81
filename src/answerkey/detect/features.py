"""What the model reads of a reply: named figures on its build, the concepts it speaks of, and hashed word and character n-grams.

Only the beginning and the end of a long reply are read, so the cost has a bound. Every feature has a fixed place in one vector of
SIZE weights; a reply is the places and the values there.
"""

# ruff: noqa: E501 — lists of names, figures and marks.

import re
import zlib
from bisect import bisect_right
from itertools import pairwise
from math import log1p
from typing import NamedTuple

import numpy as np

from answerkey.detect.concepts import CONCEPTS, UNSPACED, Mention, find_mentions
from answerkey.text.lazy import lazy

__all__ = ["BUCKETS", "NAMES", "SIZE", "Reading", "clip", "place_in_whole", "read_features"]

# The hashed n-grams come first, then the named figures, the concepts and the pairs of concepts in one sentence.
BUCKETS = 1 << 18
_HEAD, _TAIL = 1500, 500
# N-grams count for one together; figures and concepts are scaled so that the one penalty of the fit suits them all.
_FIGURE_SCALE, _CONCEPT_SCALE, _PAIR_SCALE = 0.5, 0.5, 0.3

_SENTENCE_END = lazy(r"(?<=[.!?…])\s+|[。！？।؟]|\n+")
_WORD = lazy(r"[^\W_]+")
_TOKEN = lazy(r"\w+|[^\w\s]")
_DIGIT = lazy(r"\d")
_EMOJI = lazy("[\U0001f300-\U0001faff\u2600-\u27bf\ufe0f\u200d\\s]")
_NAME = lazy(r"(?<=[a-zà-ÿ,] )[A-ZÀ-Þ]\w+")
_LIST_LINE = lazy(r"^[ \t]*(?:[-*•]|\d+[.)])\s", re.MULTILINE)
_PLACEHOLDER = lazy(
    r"\{\{|\$\{|%\(?\w+\)?[sd]\b|\{%|<%|\{[^\W\d][\w.|]*\}|\[\[|\[[A-Z_]{3,}\]|<[A-Z_]{3,}>|__[A-Z]|%[A-Z_]{3,}%|@@|\|\||<\|"
)
_UNSET = lazy(r"\b(?:undefined|NaN|null|None|nil|Invalid Date)\b")
_RAW_OBJECT = lazy(
    r"\[object |<\w+ object|object at 0x|<(?:function|class|Response)|\w\(\w+=|tool_calls?|function_call|\"arguments\"|Action Input:"
)
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
_DATE = lazy(r"\d{1,2}[./:-]\d{1,2}")
_CODE_IN_BRACKETS = lazy(r"\([^()\n]{0,40}\d[^()\n]{0,40}\)")
# One to three words or numbers and no other marks.
_PLAIN_WORDS = lazy(
    r"(?!.*\b(?:undefined|NaN|null|None|nil)\b)[\w$€£%&'’.,/-]*[\w%.!](?: [\w$€£%&'’.,/-]*[\w%.!]){0,2}"
)
_TERSE = 40

_FAILING = frozenset(
    map(CONCEPTS.index, ("error", "fail", "cannot", "timeout", "limit", "busy", "down", "memory"))
)
_NOTICE = _FAILING | frozenset(map(CONCEPTS.index, ("sorry", "retry", "later", "support", "now")))
_BUT = CONCEPTS.index("but")
_STOPS, _QUESTIONS = ".!?。！？।؟…", "?？؟"

# The named figures, in the order in which _measure gives them.
_FIGURES = (
    # size
    "length", "words", "sentences", "lines", "no_word", "one_word", "three_words",
    # how it ends
    "ends_stop", "ends_colon", "ends_comma", "ends_letter", "ends_letter_long", "ends_letter_after_stop", "ends_dots", "ends_question",
    "last_word_length", "last_word_short", "last_line_short", "last_line_in_list", "ends_letter_in_list", "ends_heading", "odd_fence",
    "odd_bold", "odd_bracket", "odd_quote",
    # what it is made of
    "questions", "exclamations", "digits", "digit_share", "capitals", "other_signs", "names", "two_names", "fence", "list_lines", "bars",
    "begins_object", "begins_tag", "quotes", "link", "code_in_brackets", "early_colon", "money", "date", "shouts", "asks_first",
    # marks of machines
    "placeholder", "placeholders", "unset", "unset_share", "raw_object", "trace", "traces", "identifiers", "http_code",
    # what it speaks of, sentence by sentence
    "failing_share", "failing_first", "failing_mentions", "notice_share", "free_sentences", "free_length", "free_longest", "free_digits",
    "free_figures", "first_failing", "concepts", "text_after_but", "few_plain_words",
)  # fmt: skip
_PLACES = ("", " first", " last")
NAMES = (
    *_FIGURES,
    *(f"{concept}{place}" for place in _PLACES for concept in CONCEPTS),
    *(f"{first}+{second}" for first in CONCEPTS for second in CONCEPTS),
)
_CONCEPT_PLACE = BUCKETS + len(_FIGURES)
_PAIR_PLACE = _CONCEPT_PLACE + 3 * len(CONCEPTS)
SIZE = BUCKETS + len(NAMES)


class Reading(NamedTuple):
    """What was read of a text: where its features are in the vector of weights, and what stands behind them."""

    places: np.ndarray
    values: np.ndarray
    # For each feature where its n-gram begins in the text, -1 where it has no place.
    positions: np.ndarray
    sentences: list[tuple[int, int]]
    mentions: list[Mention]

    @property
    def speaks_of_failure(self) -> bool:
        """Whether anything in the text speaks of an error, a limit, a machine that is down, ..."""
        return any(mention.concept in _FAILING for mention in self.mentions)


def clip(text: str) -> str:
    """The text, or beginning and end of a long one."""
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def place_in_whole(position: int, length: int) -> int:
    """Where a position in the clipped text is in the whole one, which has this length."""
    left_out = length - (_HEAD + 1 + _TAIL)
    return position if left_out < 0 or position <= _HEAD else position + left_out


def read_features(text: str) -> Reading:
    """The features of a clipped text without white space around it."""
    lowered = text.lower()
    if len(lowered) != len(text):
        # A few letters become two ("İ"): positions must agree.
        lowered = "".join(character.lower()[:1] for character in text)
    sentences = _split_sentences(text)
    mentions = find_mentions(lowered)
    spoken: list[set[int]] = [set() for _ in sentences]
    starts = [start for start, _ in sentences]
    for mention in mentions:
        spoken[max(0, bisect_right(starts, mention.start) - 1)].add(mention.concept)
    figures = _measure_build(text) + _measure_content(text, sentences, spoken, mentions)
    named = np.array(figures, dtype=np.float64) * _FIGURE_SCALE
    concept_places, concept_values = _concept_features(spoken)
    blocks = [_characters(lowered), _words(lowered), _edges(lowered)]
    places = [BUCKETS + np.arange(len(named)), np.array(concept_places, dtype=np.int64)]
    values = [named, np.array(concept_values, dtype=np.float64)]
    positions = [np.full(len(named) + len(concept_places), -1)]
    for hashed, begins in blocks:
        distinct, first = np.unique(hashed, return_index=True)
        places.append(distinct)
        values.append(np.full(len(distinct), 1 / max(1.0, len(distinct)) ** 0.5))
        positions.append(begins[first])
    return Reading(
        np.concatenate(places), np.concatenate(values), np.concatenate(positions), sentences, mentions
    )


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


def _concept_features(spoken: list[set[int]]) -> tuple[list[int], list[float]]:
    """Concepts anywhere, in the first and in the last sentence, and pairs of concepts in one sentence."""
    count = len(CONCEPTS)
    concepts = {_CONCEPT_PLACE + concept for said in spoken for concept in said}
    concepts |= {_CONCEPT_PLACE + count + concept for concept in spoken[0]}
    concepts |= {_CONCEPT_PLACE + 2 * count + concept for concept in spoken[-1]}
    pairs = {_PAIR_PLACE + one * count + two for said in spoken for one in said for two in said if one < two}
    places = [*sorted(concepts), *sorted(pairs)]
    return places, [_CONCEPT_SCALE] * len(concepts) + [_PAIR_SCALE] * len(pairs)


def _measure_build(text: str) -> list[float]:
    """The figures up to the marks of machines: size, end, what the text is made of."""
    words = _WORD.findall(text)
    length = len(text)
    count = max(len(words), length // 3) if UNSPACED.search(text) else len(words)
    end = length
    while end and _EMOJI.match(text, end - 1):
        end -= 1
    bare = text[:end]
    last = bare[-1:]
    # Marks above and below a letter of an Indian language or of Thai are letters here.
    letter = last.isalnum() or (last not in _STOPS and "\u0900" <= last <= "\u0e7f")
    lines = [line for line in text.split("\n") if line.strip()] or [""]
    final = lines[-1]
    in_list = _LIST_LINE.match(final) is not None
    ends = _SENTENCE_END.split(bare)
    stopped = len(ends) > 1 and any(part[-1:] in _STOPS for part in ends[:-1] if part)
    digits = len(_DIGIT.findall(text))
    letters = sum(map(len, words)) - digits
    capitals = sum(map(str.isupper, text))
    names = len(_NAME.findall(text))
    placeholders, unset, traces = (len(p.findall(text)) for p in (_PLACEHOLDER, _UNSET, _TRACE))
    fences = text.count("```")
    first_end = _SENTENCE_END.search(text)
    first = text[: first_end.end()] if first_end else text
    return [
        log1p(length) / 5, log1p(count) / 4, log1p(len(ends)), log1p(text.count("\n")), count == 0, count <= 1, count <= 3,
        last in _STOPS and bool(last), last in ":：" and bool(last), last in ",，、;；-–—(/" and bool(last), letter, letter and count > 8,
        letter and stopped, bare.endswith(("...", "…")), last in _QUESTIONS and bool(last),
        len(words[-1]) / 10 if words else 0, letter and len(words) > 4 and len(words[-1]) <= 3, len(lines) > 1 and len(final) < 25, in_list,
        letter and in_list, final.startswith("#") or final.rstrip(" *").endswith((":", "：")), fences % 2,
        text.count("**") % 2, any(text.count(a) != text.count(b) for a, b in ("()", "[]", "{}")), text.count('"') % 2,
        log1p(sum(map(text.count, _QUESTIONS))), log1p(text.count("!") + text.count("！")), log1p(digits), 5 * digits / max(1, length),
        3 * capitals / max(1, length), 1 - letters / max(1, length), log1p(names), names >= 2, fences > 0,
        log1p(len(_LIST_LINE.findall(text))), log1p(sum("|" in line for line in lines)), text[:1] in ("{", "["), text[:1] == "<",
        log1p(sum(map(text.count, '"“«「„`'))), "http" in text, bool(_CODE_IN_BRACKETS.search(text)), ":" in text[:40],
        bool(_MONEY.search(text)), bool(_DATE.search(text)), letters > 4 and capitals > 0.6 * letters, first.rstrip()[-1:] in tuple(_QUESTIONS),
        placeholders > 0, log1p(placeholders), unset > 0, log1p(unset) / max(1.0, log1p(count)), bool(_RAW_OBJECT.search(text)),
        traces > 0, log1p(traces), log1p(len(_IDENTIFIER.findall(text))), bool(_HTTP_CODE.search(text)),
    ]  # fmt: skip


def _measure_content(
    text: str, sentences: list[tuple[int, int]], spoken: list[set[int]], mentions: list[Mention]
) -> list[float]:
    """The figures on what the sentences speak of: `free` is a sentence that has nothing of a notice."""
    lengths = [end - start for start, end in sentences]
    total = max(1, sum(lengths))
    failing = [not _FAILING.isdisjoint(said) for said in spoken]
    free = [_NOTICE.isdisjoint(said) for said in spoken]
    free_lengths = [length for length, is_free in zip(lengths, free, strict=True) if is_free]
    free_digits = sum(
        len(_DIGIT.findall(text, start, end))
        for (start, end), is_free in zip(sentences, free, strict=True)
        if is_free
    )
    told = [mention.start for mention in mentions if mention.concept in _FAILING]
    but = min((mention.start for mention in mentions if mention.concept == _BUT), default=len(text))
    return [
        sum(length for length, is_failing in zip(lengths, failing, strict=True) if is_failing) / total,
        failing[0],
        log1p(len(told)),
        1 - sum(free_lengths) / total,
        log1p(len(free_lengths)),
        log1p(sum(free_lengths)) / 4,
        log1p(max(free_lengths, default=0)) / 4,
        log1p(free_digits),
        free_digits > 0,
        log1p(min(told, default=len(text))) / 5,
        len({mention.concept for mention in mentions}) / 5,
        len(text) - but > 40,
        # A terse answer, as far as one can see: "Neil Young", "442300".
        all(free) and len(text) <= _TERSE and _PLAIN_WORDS.fullmatch(text) is not None,
    ]


_PRIME, _MIX = np.uint64(1_099_511_628_211), np.uint64(0x9E3779B97F4A7C15)
_BITS = np.uint64(64 - 18)


def _characters(lowered: str) -> tuple[np.ndarray, np.ndarray]:
    """Hashed runs of 2 to 5 characters that do not cross from one word to the next, and where they begin."""
    codes = np.frombuffer(f" {lowered} ".encode("utf-32-le", "surrogatepass"), dtype=np.uint32).astype(
        np.uint64
    )
    codes = np.where((codes >= 9) & (codes <= 13), np.uint64(32), codes)
    space = codes == 32
    hashes = codes + np.uint64(7)
    inside = np.zeros(len(codes), dtype=bool)
    hashed, begins = [], []
    for size in range(2, 6):
        count = len(codes) - size + 1
        if count <= 0:
            break
        hashes = hashes[:count] * _PRIME + codes[size - 1 :]
        if size > 2:
            inside = inside[:count] | space[size - 2 : size - 2 + count]
        kept = np.flatnonzero(~(inside[:count]))
        hashed.append((((hashes[kept] + np.uint64(size)) * _MIX) >> _BITS).astype(np.int64))
        begins.append(kept - 1)
    if not hashed:
        return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    return np.concatenate(hashed), np.maximum(0, np.concatenate(begins))


def _bucket(gram: str) -> int:
    return zlib.crc32(gram.encode("utf-8", "surrogatepass")) & (BUCKETS - 1)


def _words(lowered: str) -> tuple[np.ndarray, np.ndarray]:
    """Hashed words and pairs of neighbouring words."""
    found = [(token.group(), token.start()) for token in _TOKEN.finditer(lowered)]
    hashed = [_bucket(word) for word, _ in found]
    hashed += [_bucket(f"{one[0]} {two[0]}") for one, two in pairwise(found)]
    begins = [start for _, start in found] + [start for _, start in found[:-1]]
    return np.array(hashed, dtype=np.int64), np.array(begins, dtype=np.int64)


def _edges(lowered: str) -> tuple[np.ndarray, np.ndarray]:
    """Hashed first and last words and last characters."""
    tokens = _TOKEN.findall(lowered[:80])
    ends = _TOKEN.findall(lowered[-80:])
    grams = [
        f"^{' '.join(tokens[:1])}",
        f"^{' '.join(tokens[:2])}",
        f"{' '.join(ends[-1:])}$",
        f"{' '.join(ends[-2:])}$",
    ]
    grams += [f"$$$ {lowered[-size:]}" for size in (1, 2, 3)]
    return np.array([_bucket(gram) for gram in grams], dtype=np.int64), np.full(len(grams), -1)

"""Words in one form: case, accents, possessives, ordinals, digits and numerals folded, so that equal words are equal strings.

`folded_words` gives the words of a text in that form. `detect_language` says which language a text is in, and `word_diff` how
two texts differ. Here are also the themes of comments, and what a value lacks of a JSON Schema.
"""

import codecs
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec

from answerkey.text.numbers import NUMBER_PATTERN, NUMBER_VALUES, canonical_number
from answerkey.text.patterns import lazy as lazy

# A number with its separators where no letter follows ("442,300.00"), else letters and digits with inner apostrophes.
_WORD = lazy(rf"{NUMBER_PATTERN}(?![^\W_])|[^\W_]++(?:['’][^\W_]++)*+")
# "800m", "£50bn", "5ft": a number and its unit or scale without a space between them.
_GLUED = lazy(r"([0-9][0-9,]*(?:\.[0-9]+)?)([A-Za-z]{1,3})")
_GLUED_LIST = (
    "m km cm mm ft in yd mi g kg mg lb lbs oz l ml gal hr hrs min sec k mn bn b tn am pm mph kb mb gb"
)
_GLUED_UNITS = frozenset(_GLUED_LIST.split())
# Punctuation around a word that is not part of it.
_EDGES = '.,;:!?"()[]{}$*“”‘’…–—'
_PLAIN_NUMBER = lazy(NUMBER_PATTERN)
_DOTTED = lazy(r"(?<![^\W_])(?:[^\W\d_]\.){2,}")
_ARTICLES = frozenset({"a", "an", "the", "and"})
_ORDINAL = lazy(r"([0-9]+)(?:st|nd|rd|th|º|ª)")
# Footnote marks glued to a word by web answers: "golfers1", "Derby12".
_FOOTNOTE = lazy(r"([a-z]{4,})[0-9]{1,2}")
# Letters that Unicode does not take apart into a base letter and a mark.
_LETTERS = str.maketrans(
    {"ß": "ss", "ø": "o", "æ": "ae", "œ": "oe", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i", "’": "'", "ʼ": "'"}
)  # fmt: skip
_VALUES = {name: str(value) for name, value in NUMBER_VALUES.items()}
_ROMAN_LIST = "I II III IV V VI VII VIII IX X XI XII XIII XIV XV XVI XVII XVIII XIX XX XXI XXII XXIII XXIV"
# Roman numerals that are not also words or names when written in capitals ("MIX" and "DC" are left alone).
_ROMAN = {numeral: str(value) for value, numeral in enumerate(_ROMAN_LIST.split(), 1) if len(numeral) > 1}
_ROMAN_LOWER = {
    numeral.lower(): value for numeral, value in _ROMAN.items() if numeral not in {"VI", "XI", "IV"}
}
_FUNCTION_WORD_LIST = """
a an the and or but nor of in on at by for from to into onto with without as is are was were be been
being am it its this that these those he she they them his her their him we our you your i my me
who whom whose which what when where why how do does did has have had will would can could may might
shall should must there here than then so such very also just only about over under after before
during between among through per via not no if because while all any some each both either more most
other another one ones own same too up down out off again s t re ve ll d m
"""
# What an equal word may lack; words that carry no information of their own.
FUNCTION_WORDS = frozenset(_FUNCTION_WORD_LIST.split())
# Longest word that is remembered; anything longer is not a word that will come again.
_MAX_CACHED_LENGTH = 48
_MAX_CACHED = 50_000


# Typographic characters and their plain form, one for one, so that offsets stay.
_TYPOGRAPHY = {
    typographic: plain
    for plain, several in {
        "'": "‘’ʼ′",
        '"': "“”„«»″",
        "-": "‐‑–—−",
        " ": "\u00a0\u2009\u202f\u3000",
    }.items()
    for typographic in several
}


# Plain characters that have typographic forms.
PLAIN_TYPOGRAPHY = frozenset(_TYPOGRAPHY.values())


def plain_typography(text: str) -> str:
    """The text with plain quotes, dashes and spaces: "it’s – café" gives "it's - café"."""
    if text.isascii():
        return text
    for typographic, plain in _TYPOGRAPHY.items():
        # Two dozen searches are ten times as fast as `str.translate`.
        if typographic in text:
            text = text.replace(typographic, plain)
    return text


def typed_alike(text: str) -> str:
    """What a text has in common with the same one typed by others: without case, further spaces, kinds of quotes and its end.

    >>> typed_alike("Where is  it ?") == typed_alike("where is it")
    True
    """
    plain = " ".join(plain_typography(text).split()).casefold()
    return plain.rstrip(" .!?…。？！") or plain


def fold_accents(text: str) -> str:
    """Lower case without accents and with plain letters: "Málaga" gives "malaga", "Straße" gives "strasse"."""
    if text.isascii():
        return text.lower()
    decomposed = unicodedata.normalize("NFKD", text.lower())
    return "".join(c for c in decomposed if not unicodedata.combining(c)).translate(_LETTERS)


def fold(word: str) -> str:
    """One word in the form in which equal words are equal: "Málaga's" gives "malaga", "9th" and "ninth" give "9"."""
    if word in _ROMAN:
        return _ROMAN[word]
    folded = fold_accents(word)
    if "'" in folded:
        folded = folded.removesuffix("'s").replace("'", "")
    if folded in _VALUES:
        return _VALUES[folded]
    if folded in _ROMAN_LOWER:
        return _ROMAN_LOWER[folded]
    if folded[:1].isdigit():
        ordinal = _ORDINAL.fullmatch(folded)
        if ordinal:
            return canonical_number(ordinal[1])
        if folded.replace(",", "").replace(".", "").isdigit() and folded.isascii():
            return canonical_number(folded)
        return folded
    footnote = _FOOTNOTE.fullmatch(folded)
    return footnote[1] if footnote else folded


_Made = TypeVar("_Made")


class Remembered(dict[str, _Made]):
    """Caches the result of a function for each distinct word.

    `map(remembered.__getitem__, words)` then runs at the speed of a dictionary, which is what makes logs affordable.
    """

    def __init__(self, make: Callable[[str], _Made]) -> None:
        self._make = make

    def __missing__(self, word: str) -> _Made:
        made = self._make(word)
        if len(word) <= _MAX_CACHED_LENGTH:
            if len(self) >= _MAX_CACHED:
                self.clear()
            self[word] = made
        return made


def _fold_chunk(chunk: str) -> str:
    core = chunk.strip(_EDGES)
    if core.isalpha() and core.isascii():
        # By far the most chunks are one plain word.
        folded = fold(core)
        if folded in _ARTICLES:
            folded = ""
    elif core[:1].isdigit() and _PLAIN_NUMBER.fullmatch(core):
        folded = canonical_number(core)
    else:
        folded = " ".join(_chunk_words(chunk))
    return folded + " " if folded else ""


@cache
def _stemmer() -> Callable[[str], str]:
    import Stemmer  # most commands read no words

    stem_word: Callable[[str], str] = Stemmer.Stemmer("english").stemWord
    return stem_word


stem = Remembered(
    lambda word: _stemmer()(word) if len(word) <= _MAX_CACHED_LENGTH and word.isascii() else word
).__getitem__
# The folded words of a chunk between white space, each followed by a space, so that the words of a text can be joined.
folded_chunk = Remembered(_fold_chunk).__getitem__


def _chunk_words(chunk: str) -> Iterator[str]:
    """The folded words of a chunk; articles and "and" are left out."""
    if "." in chunk:
        # U.S. and J.R.R. are one word each.
        chunk = _DOTTED.sub(lambda match: match[0].replace(".", ""), chunk)
    for found in _WORD.finditer(chunk):
        glued = _GLUED.fullmatch(found[0])
        if glued and glued[2].lower() in _GLUED_UNITS:
            yield from (canonical_number(glued[1]), glued[2].lower())
        elif (folded := fold(found[0])) not in _ARTICLES:
            yield folded


def folded_text(text: str) -> str:
    """The folded words of a text, parted by single spaces, with one at each end: " 900 s 9 st montrose co 81401 "."""
    return " " + ("".join(map(folded_chunk, text.split())) or " ")


def folded_words(text: str) -> list[str]:
    """The folded words of a text; articles and "and" are left out."""
    return folded_text(text).split()


# Regular expressions from golden sets, searched by RE2: in time linear in the reply's length whatever the pattern.
#
# RE2 has no look-around and no back-references; a pattern with them is refused with what to write instead.


_LONE_SURROGATE = lazy("[\ud800-\udfff]")

# What RE2 says of what others accept, and what to write instead.
_REMEDIES = (
    (
        lazy(r"operator: \(\?<?[=!]"),
        r"look-around is not supported; write out what may be there, as in (^|\D)9th for (?<!\d)9th, "
        "and list what must not be said under forbidden_keywords",
    ),
    (
        lazy(r"sequence: \\[1-9k]|operator: \(\?P"),
        "back-references are not supported; write out what may be repeated, as in (aa|bb)",
    ),
    (lazy(r"sequence: \\Z"), r"write \z for the end of the text"),
    (lazy(r"sequence: \\[uUN]"), r"write the character itself, or its number as in \x{20AC}"),
    (lazy("repetition size"), "the first number must not exceed the second, nor the second 1000"),
    (lazy(r"operator"), "the syntax is RE2's: https://github.com/google/re2/wiki/Syntax"),
)


class CompiledPattern:
    """A pattern ready to search, ignoring case."""

    __slots__ = ("_pattern", "problem")

    def __init__(self, regex: str) -> None:
        # Why the pattern cannot be used, or None.
        self.problem: str | None = None
        import re2  # few golden sets have patterns

        options = re2.Options()
        options.case_sensitive = False
        options.log_errors = False
        try:
            self._pattern: Any = re2.compile(regex, options)
        except re2.error as error:
            self.problem = _explained(error)
        except UnicodeEncodeError:
            self.problem = "it has half of a surrogate pair, which is not a character"

    def search(self, text: str) -> tuple[int, int] | str:
        """The span of the first match, or the reason why there is none."""
        if self.problem is not None:
            return f"the pattern does not compile: {self.problem}"
        try:
            found = self._pattern.search(text)
        except UnicodeEncodeError:
            # Lone surrogates have no UTF-8 form; one replacement character each keeps the offsets.
            found = self._pattern.search(_LONE_SURROGATE.sub("\ufffd", text))
        return "the pattern does not occur" if found is None else found.span()


def _explained(error: Exception) -> str:
    """RE2's message on one line, with what to write instead where that is known."""
    said = error.args[0] if error.args else ""
    message = " ".join((said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)).split())
    remedy = next((remedy for sign, remedy in _REMEDIES if sign.search(message)), None)
    return message if remedy is None else f"{message}: {remedy}"


@lru_cache(maxsize=4096)
def compile_pattern(regex: str) -> CompiledPattern:
    """The compiled pattern, made once."""
    return CompiledPattern(regex)


def check_pattern(regex: str) -> str | None:
    """Why a pattern cannot be used, for readers of golden sets; None if it can."""
    return compile_pattern(regex).problem


# How keywords are found in a reply: the three modes of the scoring standard.
MatchMode = Literal["literal", "standard", "smart"]
# How sure `smart` must be: the likelier verdict, or surer that what it accepts, or what it rejects, is right.
Threshold = Literal["even", "strict", "lenient"]


# Untrusted text at the edges: bytes become text that every store takes, and text harmless for the place it is shown in.
#
# Questions, replies, tool results and error messages come from outside. What they could use to command a terminal, break
# a document or run in a spreadsheet is made visible rather than dropped wherever a reader could otherwise be misled.
# Charsets are those that web servers really use. Python knows many more codecs, some of them quadratic or able to make
# text that cannot be written again (utf-7, punycode, idna, unicode_escape); a reply must not choose one of those.


# Codecs by the name that Python gives them, whatever alias was used.
_ALLOWED = lazy(
    r"utf-8|utf-(?:16|32)(?:-[bl]e)?|ascii|iso8859-\d+|cp(?:125\d|437|85\d|86\d|874|932|949|950)"
    r"|shift_jis\w*|euc_\w+|gb2312|gbk|gb18030|big5\w*|koi8-\w|iso2022_\w+|johab|tis-620|mac-\w+"
)
_LONE_SURROGATE_SANITISE = lazy("[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]")
_REPLACEMENT = "\ufffd"


def decode_text(body: bytes, charset: str | None = None) -> tuple[str, str | None]:
    """The text of a body and, if it is not text in its encoding, what is wrong with it.

    A charset that is not allowed is not used: such bodies are nearly always UTF-8 under a wrong name, and read as that.
    """
    codec = _codec(charset) if charset and charset.lower() != "utf-8" else "utf-8"
    try:
        return body.decode(codec or "utf-8").removeprefix("\ufeff"), None
    except UnicodeDecodeError:
        text = body.decode("utf-8" if codec is None else codec, "replace")
    wrong = "the reply is not text in its encoding"
    if codec is None:
        wrong = f"the reply is in the charset {charset!r}, which is not read, and it is not UTF-8"
    return clean_text(text), wrong


def clean_text(text: str) -> str:
    """`text` as files and databases take it: no lone surrogate, and no NUL, which PostgreSQL refuses."""
    if "\0" in text:
        text = text.replace("\0", _REPLACEMENT)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        text = _LONE_SURROGATE_SANITISE.sub(_REPLACEMENT, text)
        # Two adjacent halves are one character.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    return text


def _codec(charset: str) -> str | None:
    try:
        name = codecs.lookup(charset).name
    except (LookupError, ValueError):
        return None
    return name if _ALLOWED.fullmatch(name) else None


# Characters that reorder or hide their neighbours, so that the shown text differs from the real one.
_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))


def _visible_controls() -> dict[int, str]:
    table = {code: chr(0x2400 + code) for code in range(0x20)}
    table[0x7F] = "␡"
    table.update({code: f"\\x{code:02x}" for code in range(0x80, 0xA0)})
    table.update({code: f"\\u{code:04x}" for code in _BIDI})
    # Unicode's own line and paragraph separators; U+FFFE and U+FFFF are not characters.
    table.update({0x2028: "\n", 0x2029: "\n", 0xFFFE: "�", 0xFFFF: "�"})
    del table[ord("\n")], table[ord("\t")]
    return table


_VISIBLE = _visible_controls()
_SURROGATES = lazy("[\ud800-\udfff]")
# Patterns that few commands need are compiled when they are first used.
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"
_SPACE = lazy(r"\s+")
# Backslash takes the meaning from these; an underscore inside a word has none (query_database stays readable).
_MARKDOWN = r"[\\`*\[\]{}|~#$!]|(?<![^\W_])_|_(?![^\W_])|^[-+](?=\s)|^(?:\d+)(?=[.)]\s)"
_ENTITIES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_FORMULA = r"^[\s\x00]*[=+\-@＝＋－＠|%]|^[\t\r\n]"
_PLAIN_NUMBER_SANITISE = r"^[+-]?\d+(?:[.,]\d+)*(?:[eE][+-]?\d+)?%?$"


def for_terminal(text: str) -> str:
    """Text that cannot command a terminal: escapes, controls and direction overrides become visible signs."""
    # Nothing that would be replaced is printable.
    if text.isprintable():
        return text
    return _SURROGATES.sub("�", text.replace("\r\n", "\n").translate(_VISIBLE))


def for_xml(text: str) -> str:
    """Text as for a terminal, with only the characters of XML 1.0; escaping `<` and `&` is left to the XML writer."""
    return re.sub(_NOT_XML, "", for_terminal(text))


def one_line(text: str, width: int) -> str:
    """Harmless text on one line of at most `width` terminal cells, cut with an ellipsis."""
    if len(text) <= width and text.isascii() and text.isprintable() and "  " not in text:
        # Most texts are harmless and fit.
        return text.strip()
    # A long text is cut before any work is done on it: no more than this can survive.
    head = text[: width * 4 + 64]
    flat = _SPACE.sub(" ", for_terminal(head)).strip()
    fits = _cut(flat, width)
    if len(fits) == len(flat) and not text[len(head) :].strip():
        return flat
    return _cut(flat, width - 1).rstrip() + "…"


def _cut(text: str, width: int) -> str:
    used = 0
    for index, character in enumerate(text):
        if unicodedata.combining(character):
            continue
        used += 2 if unicodedata.east_asian_width(character) in "WF" else 1
        if used > width:
            return text[:index]
    return text


def for_markdown(text: str) -> str:
    """Text for one Markdown line or table cell: no HTML, link, mention, emphasis or column comes out of it."""
    flat = _SPACE.sub(" ", for_terminal(text)).strip()
    safe = re.sub(_MARKDOWN, lambda match: f"{match[0]}\\" if match[0].isdigit() else f"\\{match[0]}", flat)
    safe = safe.translate(_ENTITIES)
    # Bare addresses would become links, and @name would notify a user.
    safe = re.sub(r"://", ":&#47;&#47;", safe)
    safe = re.sub(r"\bwww\.", "www&#46;", safe, flags=re.IGNORECASE)
    return re.sub(r"(?<!\w)@(?=\w)", "@\u200b", safe)


def for_csv(cell: str) -> str:
    """Text for a spreadsheet's cell: what a spreadsheet would run as a formula gets an apostrophe before it.

    That is text which begins with =, +, - or @ (or a tab or line break) and is not simply a number.
    """
    safe = cell if cell.isascii() else _SURROGATES.sub("�", cell)
    safe = safe.replace("\x00", "")
    if re.match(_FORMULA, safe) and not re.match(_PLAIN_NUMBER_SANITISE, safe.strip()):
        return "'" + safe
    return safe


def without_surrogates(value: Any) -> Any:
    """A JSON-like value whose texts can all be written as UTF-8: lone surrogates become U+FFFD."""
    if isinstance(value, str):
        return _SURROGATES.sub("�", value)
    if isinstance(value, dict):
        return {without_surrogates(name): without_surrogates(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_surrogates(item) for item in value]
    return value


# Words that are frequent in one of the languages and rare in the others.
_SMALL_WORDS = {
    "da": "og ikke jeg det af til har med også være blev efter eller vil skal hvad mere fra kan denne",
    "de": "der die das und ist nicht ein eine mit für auf sie wir ich auch von zu den dem sind wird bei oder kein ihre",
    "en": "the and is are was were of to in that it for with you your this have has not be on we our what which there",
    "es": "el la los las y es que en una un por con para su del se más como está son pero no muy este esta",
    "fr": "le la les et est des une un que pour dans vous nous ne pas avec sur ce cette sont du au qui être votre",
    "it": "il lo gli e è di che un una per con non sono della del nel alla questo questa anche più suo come ha",
    "nl": "de het een en is van niet dat voor met zijn op te ik wij ook deze naar worden heeft bij uw onze maar",
    "pl": "i w na nie jest się do że to z jak dla są oraz być jego przez po ale czy może który tego od",
    "pt": "o os as e é que em uma um não para com por seu sua do da dos das mais como está são você também ao",
    "sv": "och att det är inte jag som en ett på för med av till har den vi också eller från kan ska detta efter",
    "tr": "ve bir bu için ile de da çok ne var olan olarak daha değil gibi sizin ancak veya mi sonra kadar en",
}
_SMALL_WORD_SETS = {language: frozenset(words.split()) for language, words in _SMALL_WORDS.items()}
# Script → the language that it settles.
_SCRIPTS = (
    ("ja", lazy("[\u3040-\u30ff]")),
    ("ko", lazy("[\uac00-\ud7af]")),
    ("zh", lazy("[\u4e00-\u9fff]")),
    ("uk", lazy("[іїєґІЇЄҐ]")),
    ("ru", lazy("[ыэъёЫЭЪЁ]")),
    ("el", lazy("[\u0370-\u03ff]")),
    ("ar", lazy("[\u0600-\u06ff]")),
    ("he", lazy("[\u0590-\u05ff]")),
    ("hi", lazy("[\u0900-\u097f]")),
    ("th", lazy("[\u0e00-\u0e7f]")),
)
LANGUAGES = frozenset(_SMALL_WORD_SETS) | {language for language, _ in _SCRIPTS}

_LETTER = lazy(r"[^\W\d_]")
_LETTER_RUN = lazy(r"[^\W\d_]+")
_LATIN = lazy("[A-Za-zÀ-ɏ]")
# The least number of small words, and the least ratio to the next language.
_MIN_SMALL_WORDS = 3
_MIN_RATIO = 1.5
_MAX_LENGTH = 20_000  # characters that are inspected


def detect_language(text: str) -> tuple[str | None, str]:
    """The language of a text, or None if it is unsure, and the reason in words."""
    text = text[:_MAX_LENGTH]
    letters = len(_LETTER.findall(text))
    if not letters:
        return None, "the text has no words"
    if 2 * len(_LATIN.findall(text)) < letters:
        return _by_script(text)
    return _by_small_words(text)


def _by_script(text: str) -> tuple[str | None, str]:
    for language, letters in _SCRIPTS:
        found = letters.search(text)
        if found:
            return language, f"written with {found[0]!r}"
    return None, "its script is used by several languages"


def _by_small_words(text: str) -> tuple[str | None, str]:
    counts = Counter(word.lower() for word in _LETTER_RUN.findall(text))
    found = sorted(
        ((sum(counts[word] for word in words), language) for language, words in _SMALL_WORD_SETS.items()),
        reverse=True,
    )
    (most, language), (next_most, _) = found[:2]
    if most < _MIN_SMALL_WORDS or most < _MIN_RATIO * next_most:
        return None, "too few small words of one language to be sure"
    return language, f"{most} small words of {language}"


def count(number: int, one: str, many: str | None = None) -> str:
    """`1 question`, `75 questions`."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def count_of(number: int, total: int, noun: str, one: str, many: str) -> str:
    """`1 of 12 rows is`, `2 of 12 rows are`: what follows agrees with the first number."""
    return f"{number:,} of {count(total, noun)} {one if number == 1 else many}"


# A number with its separators is one word: half a number changed says nothing.
_TOKEN = lazy(r"\d+(?:[.,:/-]\d+)+|\w+|[^\w\s]|\s+")


class Piece(NamedTuple):
    """A stretch of text that both have, or only one."""

    kind: Literal["same", "removed", "added"]
    text: str


def word_diff(before: str, after: str, *, most: int = 4_000) -> list[Piece]:
    """What of `before` went and what of `after` came, over the first `most` characters of each."""
    from rapidfuzz.distance import Indel

    first, second = _TOKEN.findall(before[:most]), _TOKEN.findall(after[:most])
    pieces: list[Piece] = []
    removed: list[str] = []
    added: list[str] = []

    def flush() -> None:
        # What went comes before what came in its place.
        _append(pieces, "removed", removed)
        _append(pieces, "added", added)
        removed.clear()
        added.clear()

    operations = list(Indel.opcodes(first, second))
    for place, operation in enumerate(operations):
        same = first[operation.src_start : operation.src_end] if operation.tag == "equal" else []
        # A space between two changed words is part of the changed phrase.
        between = 0 < place < len(operations) - 1 and all(token.isspace() for token in same)
        if operation.tag == "equal" and not between:
            flush()
            _append(pieces, "same", same)
        else:
            removed += first[operation.src_start : operation.src_end]
            added += second[operation.dest_start : operation.dest_end]
    flush()
    return pieces


def alike(pieces: Sequence[Piece]) -> float:
    """The share of the longer text that both have."""
    lengths = {"same": 0, "removed": 0, "added": 0}
    for piece in pieces:
        lengths[piece.kind] += len(piece.text)
    longer = lengths["same"] + max(lengths["removed"], lengths["added"])
    return lengths["same"] / longer if longer else 1.0


def _append(pieces: list[Piece], kind: Literal["same", "removed", "added"], tokens: Sequence[str]) -> None:
    text = "".join(tokens)
    if not text:
        return
    if pieces and pieces[-1].kind == kind:
        pieces[-1] = Piece(kind, pieces[-1].text + text)
    else:
        pieces.append(Piece(kind, text))


# Themes: which words and pairs of words people's comments have in common.


_COMMENT_WORD = lazy(r"[^\W_][\w'’-]*")
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
    for found in _COMMENT_WORD.finditer(comment.casefold()):
        word = found[0].replace("’", "'")
        if word in _STOP or len(word) < 3 or len(word) > 40:
            before = ""
            continue
        terms.add(word)
        if before and before != word:
            terms.add(f"{before} {word}")
        before = word
    return terms


# JSON Schema: whether a value fits a schema, in time linear in the value, and without fetching anything.


def schema_problem(schema: Any) -> str | None:
    """Why a value is not a JSON Schema; None if it is one."""
    if not isinstance(schema, dict | bool):
        return "must be a JSON Schema, which is an object"
    return _compiled(msgspec.json.encode(schema))[1]


def misfit(value: Any, schema: Any) -> str | None:
    """Where and why a value does not fit a schema; None if it does."""
    validator, problem = _compiled(msgspec.json.encode(schema))
    if validator is None:
        return problem
    for error in validator.iter_errors(value):
        place = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
        return f"{place.lstrip('.') or 'the whole'}: {error.message}"
    return None


@lru_cache(maxsize=1000)
def _compiled(schema: bytes) -> tuple[Any, str | None]:
    try:
        # Only golden sets with such checks need it.
        import jsonschema_rs
    except ImportError:
        return None, "needs an optional dependency: pip install 'answerkey[json-schema]'"
    try:
        # The engine whose time is linear: a schema's `pattern` must not take for ever on some reply.
        made = jsonschema_rs.validator_for(
            msgspec.json.decode(schema),
            pattern_options=jsonschema_rs.RegexOptions(),
            retriever=_refuse,
        )
    except Exception as error:  # noqa: BLE001  # the library has an error of its own for each way to be wrong
        return None, f"is not a valid JSON Schema: {str(error).splitlines()[0]}"
    return made, None


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not fetched; write the schema out in full")

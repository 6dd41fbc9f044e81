"""Decides from a reply's text alone whether it is an error instead of an answer.

1. Certain forms (`form_table.py`) are charged.
2. A reply without any word of failure is an answer, unless it breaks off. One finite automaton looks for these words, for
   marks of forms and for whole forms, and most replies need no more.
3. A reply that is an error message through and through (every sentence of it, by what its words mean: `words.txt`) is charged
   unless the fitted model (`model.py`) finds that unlikely.
4. The model charges a reply that reports a failure where it is surer than one false accusation in 200 answers; from one half on
   it suspects, which costs nothing.

"Der opstod en fejl. Prøv igen senere." reports a fault that happened and says to try again, and no word of it is about anything
else. An answer about an error has other words, explains, or states a value.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import re2

from answerkey.detect.model import Model, clip, shipped_model
from answerkey.text.normalise import Remembered
from answerkey.text.patterns import lazy
from answerkey.transcripts.json_values import decode_json

# A longer reply is not one line of a system, or a letter with a leaked placeholder, or a JSON body.
_LONGEST_LINE, _LONGEST_LETTER, _LONGEST_BODY = 2000, 1500, 200_000
# Spaces, invisible characters and punctuation.
_NOTHING = lazy(
    "[\\s\x00-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e0fff.…·\\-–—_*#`\"'~|>?!,;:()<=+/\\\\]*"
)
_UNDECODED = lazy("[\ufffd\x00-\x08\x0e-\x1a]")
_MOJIBAKE = lazy(
    "[ÐÑ][^\\sA-Za-zÀ-ÿ]|[ÐÑ][°±²³´µ¶·¸¹º»¼½¾¿]|Ã[\x80-\xbf¡-¿ƒ‚„…†‡‰‹Œ]|â€[™œ\x9d“”¦˜]|ã[\x80-\xbf]{2}|æ[\x80-\xbf]{2}"
)
# Marks and spaces around a reply; the last two characters join emoji.
_MARKS = r"[\s\p{P}\p{S}\x{FE0F}\x{200D}]*"
# How a reply ends that does not break off, and what does.
_ENDS = tuple(".!?…。！？।؟؛:：)]}»”\"'`*_~>|")
_LIST_NUMBER = lazy(r"\s*(?:\d{1,2}[.)]|[-*•+])\s*")
_SMILEY = lazy(r"[:;=8xX]'?-?[(\[{]|[(\[{][:;=]")
_PAIRS = {"(": ")", "[": "]", "{": "}", "（": "）", "「": "」", "«": "»"}
_FEWEST_WORDS = 3
# What a clause lacks that ends in one of these verbs, unless it has a word by which it may be whole: "what they are", "no, the
# red ones are". Other languages end whole clauses in such verbs.
_LINKING_VERBS = frozenset(("is", "are", "was", "were"))
_WHOLE_CLAUSES = """
who whom whose what where when which why how whether that than as if though although unless until while so such like there here
whatever wherever whichever however yes yeah yep no nope not only both neither either nor all none also each every too
sure ok okay
"""
_SHORT_SUBJECTS = """
i it they we you he she this that these those one ones mine yours ours theirs his hers rest others some many most
"""
_WHOLE_CLAUSE, _SHORT_SUBJECT = frozenset(_WHOLE_CLAUSES.split()), frozenset(_SHORT_SUBJECTS.split())
_CLAUSE_END = lazy(r"[.!?;:\n]")


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error, or is suspected to be one."""

    # A response error of the scoring standard: empty, null, error_text, trace, malformed or truncated.
    kind: str
    # The words that decided, or what is wrong with the reply.
    message: str
    # Span of these words in the reply; empty where the reply as a whole is wrong.
    start: int = 0
    end: int = 0
    # What decided: the name of a form, or the words with the largest weights.
    because: tuple[str, ...] = ()
    # How likely it is an error; 1 where a form is certain.
    probability: float = 1.0
    # False: suspected only, which costs nothing.
    charged: bool = True


class Form(msgspec.Struct, frozen=True):
    """A form that some replies have which are errors."""

    form: str
    examples: tuple[str, ...]
    kind: str = "error_text"
    # A reply in which this occurs is not of the form.
    unless: str = ""
    # Whether capitals matter.
    case: bool = False
    # Below 1: suspected only.
    probability: float = 1.0

    def at(self, text: str, start: int, end: int) -> DetectedFailure:
        """The failure that this form shows in a part of a reply."""
        sure = self.probability == 1
        message = shortened(text[start:end])
        return DetectedFailure(self.kind, message, start, end, ("form",), self.probability, sure)


class Bodies(msgspec.Struct, frozen=True):
    """JSON bodies that report an error or should have stayed inside the chatbot, by their keys."""

    error_keys: frozenset[str]
    beside_error: frozenset[str]
    status_keys: tuple[str, ...]
    failed_states: frozenset[str]
    failing_message: str
    raw_calls: tuple[frozenset[str], ...]
    error_examples: tuple[str, ...]
    call_examples: tuple[str, ...]

    def reports_error(self, fields: dict[str, Any]) -> bool:
        """Whether a body does nothing but report an error."""
        keys = fields.keys()
        if not keys <= self.error_keys | self.beside_error:
            return False
        message = fields.get("message", fields.get("detail", "")) if len(fields) == 1 else ""
        states = [str(fields.get(key)).lower() for key in self.status_keys]
        return (
            any(fields[key] and not isinstance(fields[key], int) for key in keys & self.error_keys)
            or fields.get("success", True) is False
            or fields.get("ok", True) is False
            or fields.get("is_error") is True
            or any(state in self.failed_states or _is_http_error(state) for state in states)
            or compile_form(self.failing_message).search(str(message)) is not None
        )

    def is_raw_call(self, fields: dict[str, Any]) -> bool:
        """Whether a body is a message or a tool call of the chatbot's own machinery."""
        keys = fields.keys()
        return any(call <= keys for call in self.raw_calls) and keys.isdisjoint({"answer", "response"})


class FormTable(msgspec.Struct, frozen=True):
    """All of `form_table.py`."""

    whole: tuple[Form, ...]
    whole_with_mark: tuple[Form, ...]
    whole_unless: str
    inside: tuple[Form, ...]
    inside_unless: str
    inside_marks: str
    bodies: Bodies


def form_table() -> FormTable:
    """The table, imported when the first reply is read."""
    from answerkey.detect.form_table import FORM_TABLE

    return FORM_TABLE


@cache
def compile_form(pattern: str, case: bool = False) -> Any:
    """A compiled RE2 pattern."""
    return re2.compile(pattern, _options(case))


def compile_set(
    new_set: Callable[[Any], Any], patterns: Iterable[str]
) -> Callable[[bytes], list[int] | None]:
    """A function that gives the numbers of the patterns that a text in UTF-8 has, found in one pass."""
    found = new_set(_options(case=False))
    for pattern in patterns:
        found.Add(pattern)
    found.Compile()
    match: Callable[[bytes], list[int] | None] = found.Match
    return match


def _options(case: bool) -> Any:
    options = re2.Options()
    options.case_sensitive, options.log_errors = case, False
    # Groups are never read; without them RE2 needs one pass.
    options.never_capture, options.max_mem = True, 64 << 20
    return options


def _whole_patterns() -> list[str]:
    return [f"(?-i:{form.form})" if form.case else f"(?:{form.form})" for form in form_table().whole]


def some_whole_form() -> str:
    """An RE2 pattern of replies that have the shape of some whole form."""
    return rf"\A{_MARKS}(?:{'|'.join(_whole_patterns())}){_MARKS}\z"


@cache
def _match_whole() -> Callable[[bytes], list[int] | None]:
    return compile_set(re2.Set.FullMatchSet, [f"{_MARKS}{form}{_MARKS}" for form in _whole_patterns()])


def whole_forms(encoded: bytes) -> tuple[int, ...]:
    """The numbers of the whole forms that a reply in UTF-8, without spaces around it, has the shape of."""
    # The marks around each form take three quarters of the time of compiling all of them, and most replies have no form.
    return tuple(sorted(_match_whole()(encoded) or ())) if len(encoded) <= 4 * _LONGEST_LINE else ()


def shortened(text: str, longest: int = 120) -> str:
    """The beginning of a text on one line."""
    words = " ".join(text[: 4 * longest].split())
    return words if len(words) <= longest else f"{words[: longest - 1]}…"


def is_blank(stripped: str) -> bool:
    """Whether a reply has no word, number, symbol or emoji."""
    return not stripped or (not stripped[0].isalnum() and _NOTHING.fullmatch(stripped) is not None)


def certain_form(stripped: str, whole: Sequence[int], has_mark: bool) -> DetectedFailure | None:
    """The form that a reply without spaces around it has; None: its form says nothing.

    `whole` are its `whole_forms`; `has_mark`: whether one of `inside_marks` occurs in it.
    """
    if not has_mark:
        return _whole_form(stripped, whole, ())
    return (
        _undecoded_form(stripped)
        or _body_form(stripped)
        or _whole_form(stripped, whole, form_table().whole_with_mark)
        or _inside_form(stripped)
    )


def _undecoded_form(text: str) -> DetectedFailure | None:
    head = text[:_LONGEST_LINE]
    broken = len(_UNDECODED.findall(head)) or (0 if head.isascii() else len(_MOJIBAKE.findall(head)))
    if broken * 20 <= len(head):
        return None
    return DetectedFailure("malformed", "text that was not decoded", because=("undecoded",))


def _body_form(text: str) -> DetectedFailure | None:
    fields = body_fields(text)
    if fields is None:
        return None
    if form_table().bodies.reports_error(fields):
        return DetectedFailure("error_text", shortened(text), 0, len(text), ("error body",))
    if form_table().bodies.is_raw_call(fields):
        message = "a raw message or a call of a tool instead of an answer"
        return DetectedFailure("malformed", message, because=("raw call",))
    return None


def _whole_form(text: str, numbers: Sequence[int], with_mark: Sequence[Form]) -> DetectedFailure | None:
    if len(text) > _LONGEST_LINE:
        return None
    table = form_table()
    forms = [table.whole[number] for number in numbers]
    forms += [form for form in with_mark if compile_form(f"{_MARKS}(?:{form.form}){_MARKS}").fullmatch(text)]
    if not forms or compile_form(table.whole_unless).search(text):
        return None
    fitting = (form for form in forms if not form.unless or not compile_form(form.unless).search(text))
    form = next(fitting, None)
    return None if form is None else form.at(text, 0, len(text))


def _inside_form(text: str) -> DetectedFailure | None:
    table = form_table()
    if len(text) > _LONGEST_LETTER:
        return None
    for form in table.inside:
        found = compile_form(form.form, form.case).search(text)
        if found:
            # The form itself may have a word by which an answer would speak about it.
            around = f"{text[: found.start()]} {text[found.end() :]}"
            if compile_form(table.inside_unless).search(around):
                return None
            is_excepted = form.unless and compile_form(form.unless).search(text)
            return None if is_excepted else form.at(text, found.start(), found.end())
    return None


def body_fields(text: str) -> dict[str, Any] | None:
    """The fields of a reply that is a JSON object, or a list of them, with keys in lower case; None: it is not."""
    if text[0] not in "{[`" or len(text) > _LONGEST_BODY:
        return None
    if text.startswith("```"):
        text = text.removeprefix("```json").removeprefix("```").removesuffix("```").strip()
    try:
        value = decode_json(text)
    except ValueError:
        return None
    first: Any = value[0] if isinstance(value, list) and value else value
    return {str(key).lower(): item for key, item in first.items()} if isinstance(first, dict) else None


def _is_http_error(code: str) -> bool:
    return len(code) == 3 and code.isdecimal() and code[0] in "45"


def truncated_form(text: str) -> DetectedFailure | None:
    """Whether a reply certainly breaks off."""
    end = _open_end(text)
    if end is None:
        return None
    start = max(0, len(text) - 40)
    return DetectedFailure("truncated", f"…{shortened(text[start:])}", start, len(text), (end,))


def _open_end(text: str) -> str | None:
    """What is open at the end of a reply: a code fence, table row, list number, bracket, quote or sentence; None: nothing."""
    if "```" in text and text.count("```") % 2:
        return "open code fence"
    last = text
    if "\n" in text:
        lines = text.split("\n")
        last = lines[-1]
        above = next((line for line in reversed(lines[:-1]) if line.strip()), "")
        if last.lstrip().startswith("|") and above.count("|") > max(1, last.count("|")):
            return "open table row"
        if _LIST_NUMBER.fullmatch(last) and _LIST_NUMBER.match(above):
            return "list number without a text"
    if text.endswith(_ENDS) and text[0] not in "{[":
        return None
    if text[0] in "{[" and text.count(text[0]) > text.count(_PAIRS[text[0]]):
        return "open bracket"
    if "```" not in text and _has_open_bracket(last):
        return "open bracket"
    words = last.split()
    if (
        len(words) >= _FEWEST_WORDS
        and words[-1].islower()
        and not _function_words().isdisjoint("_".join(words[-count:]).lower() for count in (1, 2, 3))
    ):
        return "sentence ends in a function word"
    return "sentence lacks what its verb announces" if words and _lacks_complement(text) else None


def _lacks_complement(text: str) -> bool:
    """Whether the last clause ends in a verb that something must follow: "The helmets are"."""
    clause = _CLAUSE_END.split(text)[-1]
    words = [word.strip(",()\"'–-").lower() for word in clause.split()]
    return (
        len(words) >= _FEWEST_WORDS
        and clause.split()[-1] in _LINKING_VERBS
        and words[-2] not in _SHORT_SUBJECT
        and _WHOLE_CLAUSE.isdisjoint(words)
    )


def _has_open_bracket(line: str) -> bool:
    """Whether a bracket or quotation mark of the last line is still open at its end."""
    without = _SMILEY.sub("", line)
    return any(
        without.count(opening) == without.count(closing) + 1
        and without.rfind(opening) > without.rfind(closing)
        and len(without) - without.rfind(opening) > 2
        for opening, closing in _PAIRS.items()
    )


@cache
def _function_words() -> frozenset[str]:
    """Words that cannot end a sentence, whatever the language: `function_words.txt`."""
    lines = Path(__file__).with_name("function_words.txt").read_text("utf-8").splitlines()
    return frozenset(word for line in lines if not line.startswith("#") for word in line.split()[1:])


_LONGEST = 600
# Languages written without spaces: what follows each other there is looked up in parts.
_DENSE = lazy("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
# Of such writing, the letters of which about three make a word.
_DENSE_LETTER = lazy("[\u3400-\u9fff\u30a0-\u30ff\uac00-\ud7af\u0e01-\u0e2e]")
_LETTERS = "\\w\u0591-\u05c7\u064b-\u065f\u0900-\u0eff\u1000-\u109f\u1780-\u17ff"
_WORD = lazy(rf"[^\W\d_](?:[{_LETTERS}'ʼ\u200c\u200d-]*[{_LETTERS}])?")
_SENTENCE_END = lazy(r"[.!?…।؟]+(?=\s|$)|[。！？\n]+|[;:—–](?=\s)|(?<=[\u0e00-\u0e7f]) |$")
_LONGEST_PART = 12
# Identifiers are unknown words at a glance.
_MOST_UNKNOWN = 5
_COMPANIONS = frozenset({"sorry", "again", "help"})
# Meanings one of which every sentence that reports a failure has.
_FAILING = frozenset({"fault", "cannot", "down", "late", "limit"})
# Words by which an answer speaks about an error, and marks of code.
_EXPLAINS = lazy(
    r"""(?x)
  \b(?:you\ can | to\ fix | fixed | fix: | means? | meant | usually | typically | often | every | when\ you
    | if\ you\ see | because\ you | most\ common
    | is\ an?\ (?:\w+\ )?(?:message|error|status|code|sign|term)
    | here\ is | here\ are | here's | instead | step\ \d | rate\ of | budget | in\ english | headline | translat\w*
    | betekent | bedeutet | signifi\w+ | vuol\ dire | означа\w+ | oznacza | znamen\w+ | betyder | tarkoittaa
    | jelent\w* | demek | artinya | nghĩa
    | (?:mon|tues|wednes|thurs|fri|satur|sun)days? | weekends? | midnight | noon
    | (?:mon|diens|donners|frei|sams|sonn)tags? | mittwochs? | wochenendes? | feiertags?
    | lundis? | mardis? | mercredis? | jeudis? | vendredis? | samedis? | dimanches? | lunes | martes | miércoles
    | jueves | viernes | sábados? | domingos?
    | lunedì | martedì | mercoledì | giovedì | venerdì | sabato | domenica | maandag | dinsdag | woensdag | donderdag
    | vrijdag | zaterdag | zondag
    | your\ (?:router|browser|phone|printer|device|card|password|computer|payment|bank)
  )\b | = | ``` | 意味 | 就是 | 是指 | 뜻 | يعني | משמע"""
)
# What machines write of failures: names of exceptions, error codes, HTTP statuses.
_FAILURE_TOKEN = lazy(
    r"""(?x)
  \b[A-Za-z_$][\w$]*(?:(?:\.|::|\\|/)[A-Za-z_$][\w$]*)*[a-z0-9](?:Error|Exception|Fault|Failure|Timeout|Rejection)\b
  | \b(?:Error|Exception)(?=[:(])
  | \bE[A-Z]{4,}\b | \bERR_[A-Z_]+\b | \b[A-Z]{2,}(?:_[A-Z]{2,})+\b | \b[A-Z]{2,4}-\d{3,6}\b | \b0x[0-9A-Fa-f]{4,}\b
  | (?i:\bhttps?(?:/[\d.]+)?\b)
  | (?<![\d.,$€£#/-])[45]\d\d(?![\d%€]|[.,]\d|\ ?(?i:k?g|km|ml|eur|usd|euros?|dollars?)\b)"""
)
# What else machines write: addresses, paths, identifiers.
_OTHER_TOKEN = lazy(
    r"""(?x)
  https?://\S+ | \S+@\S+\.\w+ | \b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)? | \b[\w-]+(?:\.[\w-]+)+(?::\d{2,5})?\b
    | \blocalhost(?::\d+)?\b | \bport\ \d+\b
  | (?<=\s)/[\w./-]+
  | \b(?=[\w-]*\d)(?=[\w-]*[A-Za-z])\w+(?:-\w+)*\b | \b[a-z]+(?:_[a-z0-9]+)+\b | \b[a-z]+(?:[A-Z][a-z0-9]+)+\b
  | `[^`\n]+` | '[\w./-]+' | \#\w+ | \(ref[^)]*\)"""
)


class Message(NamedTuple):
    """A reply that reports a failure."""

    # Span of the first sentence that does.
    start: int
    end: int
    # How many sentences neither report a failure nor accompany one.
    others: int
    # Whether all of it is an error message: surely, or unless the fitted model finds it unlikely.
    is_sure: bool
    is_likely: bool


def has_few_unknown_words(text: str) -> bool:
    """Whether a reply may be an error message through and through; quicker than reading it."""
    words = _WORD.findall(text[: _LONGEST + 1].lower())
    return sum([_words[word].unknown for word in words]) <= _MOST_UNKNOWN


def read_message(text: str) -> Message | None:
    """What a reply reports of a failure, by the words of its sentences; None: nothing, or it speaks about errors."""
    lower = text.lower()
    if len(text) > _LONGEST or text[0] in '"“«„`' or _EXPLAINS.search(lower):
        return None
    # What machines write hides words, and never adds one.
    if not any(sentence.failures for sentence in _sentences(lower)):
        return None
    plain = _OTHER_TOKEN.sub(_spaces, _FAILURE_TOKEN.sub(_spaces, text)).lower()
    sentences = [sentence for sentence in _sentences(plain) if sentence.words]
    failing = [sentence for sentence in sentences if sentence.failures]
    if not failing:
        return None
    meanings = frozenset[str]().union(*(sentence.meanings for sentence in sentences))
    failures = frozenset[str]().union(*(sentence.failures for sentence in failing)) - {"something"}
    support = len(meanings & _COMPANIONS) + (_FAILURE_TOKEN.search(text) is not None)
    unknown = sum(sentence.unknown for sentence in sentences)
    others = sum(not sentence.failures and not sentence.accompanies for sentence in sentences)
    # The more a reply has of an error message, the more words of it may be about what failed.
    is_likely = (
        not others
        and (bool(failures) or support > (unknown > 0))
        and unknown <= 0.6 + 0.7 * (len(failures) + support)
        and ("again" in meanings or "?" not in text)
    )
    is_plain = not failures.isdisjoint({"fault", "cannot", "down"}) and (support > 0 or "happen" in meanings)
    is_sure = is_likely and unknown < 0.5 and (is_plain or len(failures) + support > 2)
    return Message(failing[0].start, failing[0].end, others, is_sure, is_likely)


class _Sentence:
    """What the words of one sentence mean."""

    def __init__(self, start: int, end: int, words: list[str]) -> None:
        self.start, self.end, self.words = start, end, words
        known = [_words[word] for word in words]
        self.meanings = frozenset[str]().union(*(word.meanings for word in known))
        self.unknown = sum(word.unknown for word in known)
        self._limits = sum("limit" in word.meanings for word in known)

    @property
    def failures(self) -> set[str]:
        """What it says is wrong; "something": hardly anything."""
        meanings = self.meanings
        is_asked = not meanings.isdisjoint({"ask", "system"})
        found = {
            "fault": "fault" in meanings and not meanings.isdisjoint({"happen", "work", "system"}),
            "cannot": {"cannot", "work"} <= meanings and is_asked,
            "down": {"down", "system"} <= meanings or {"up", "cannot", "system"} <= meanings,
            "late": "late" in meanings and (is_asked or "work" in meanings),
            "limit": "limit" in meanings and (self._limits > 1 or is_asked),
            "something": "fault" in meanings or {"cannot", "work"} <= meanings,
        }
        return {name for name, is_reported in found.items() if is_reported}

    @property
    def accompanies(self) -> bool:
        """Whether it is a sentence that error messages also have."""
        return self.unknown <= 1 and not self.meanings.isdisjoint(
            _COMPANIONS | {"ask", "system", "happen", "late"}
        )


def _sentences(lower: str) -> Iterator[_Sentence]:
    start = 0
    for found in _SENTENCE_END.finditer(lower):
        yield _Sentence(start, found.end(), _WORD.findall(lower[start : found.start()]))
        start = found.end()


def _spaces(found: "re.Match[str]") -> str:
    return " " * len(found[0])


class _Word(NamedTuple):
    meanings: frozenset[str]
    # How many words of it are in no list.
    unknown: float


@cache
def _meanings() -> dict[str, list[str]]:
    """Meaning → the lines of `words.txt` that have it, each a language and its words."""
    sections: dict[str, list[str]] = {}
    for line in Path(__file__).with_name("words.txt").read_text("utf-8").splitlines():
        if line.startswith("["):
            lines = sections.setdefault(line.strip("[]"), [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return sections


class _Lists:
    """Words of these meanings: whole ones, beginnings, and parts of words, each with what it means."""

    def __init__(self, meanings: Iterable[str]) -> None:
        self.whole, self.beginnings, self.parts = (dict[str, set[str]]() for _ in range(3))
        for meaning in meanings:
            for line in _meanings()[meaning]:
                language, _, words = line.partition(":")
                for word in words.split():
                    known = self.beginnings if word.endswith("*") else self.whole
                    known = self.parts if language == "joined" else known
                    known.setdefault(word.rstrip("*").replace("_", " "), set()).add(meaning)


@cache
def _lists() -> _Lists:
    return _Lists(_meanings())


def failure_words() -> str:
    """An RE2 pattern of the words without which no sentence reports a failure."""
    lists = _Lists(_FAILING)
    # In order, as words with the same beginning compile faster side by side.
    whole, beginnings, parts = (
        "|".join(map(re.escape, sorted(words))) for words in (lists.whole, lists.beginnings, lists.parts)
    )
    edge = r"[^\pL\pM\pN_]"
    return f"(?:^|{edge})(?:(?:{whole})(?:{edge}|$)|(?:{beginnings}))|{parts}"


def _look_up(word: str) -> _Word:
    if _DENSE.search(word):
        return _look_up_parts(word)
    lists = _lists()
    beginnings = (word[:end] for end in range(len(word), 1, -1) if word[:end] in lists.beginnings)
    meanings = lists.whole.get(word, set()) | lists.beginnings.get(next(beginnings, ""), set())
    return _Word(frozenset(meanings), 0.0 if meanings or len(word) <= 2 else 1.0)


def _look_up_parts(word: str) -> _Word:
    parts = _lists().parts
    meanings: set[str] = set()
    rest, at = "", 0
    while at < len(word):
        ends = range(min(len(word), at + _LONGEST_PART), at, -1)
        end = next((end for end in ends if word[at:end] in parts), None)
        meanings |= parts[word[at:end]] if end else set()
        rest += "" if end else word[at]
        at = end or at + 1
    return _Word(frozenset(meanings), len(_DENSE_LETTER.findall(rest)) / 3)


_words = Remembered(_look_up)


__all__ = ["LEAST_LIKELY", "MOST_OTHERS", "SUSPECTED_FROM", "DetectedFailure", "detect_failure", "plain_text"]

SUSPECTED_FROM = 0.5
# An error message below this probability is not charged if words of it are unknown.
LEAST_LIKELY = 0.3
# Below this, it is not one.
_PLAIN_BELOW = 0.002
_ZEROS = bytes.maketrans(b"123456789", b"000000000")
# Most sentences that neither report nor accompany a failure in a reply that the model charges.
MOST_OTHERS = 1
_SURROGATE = lazy("[\ud800-\udfff]")


def detect_failure(text: str | None, model: Model | None = None) -> DetectedFailure | None:
    """The failure that a reply's text shows or suggests; None for an answer. `model` replaces the shipped weights."""
    if text is None:
        return DetectedFailure("null", "there is no reply", because=("null",))
    stripped = plain_text(text)
    if is_blank(stripped):
        return DetectedFailure("empty", "the reply is empty", because=("empty",))
    found = _decide(stripped, model)
    if found is None or not found.end:
        return found
    offset = len(text) - len(text.lstrip())
    return msgspec.structs.replace(found, start=found.start + offset, end=found.end + offset)


def plain_text(text: str) -> str:
    """A reply as it is read: without spaces around it, with one kind of apostrophe, and without halves of characters."""
    stripped = text.strip()
    return stripped if stripped.isascii() else _SURROGATE.sub("\ufffd", stripped.replace("’", "'"))


@cache
def _automaton() -> Callable[[bytes], list[int] | None]:
    return compile_set(re2.Set.SearchSet, (form_table().inside_marks, failure_words(), some_whole_form()))


class Scan(NamedTuple):
    """What a finite automaton finds in a reply."""

    # Whether one of the marks occurs in it that each form inside a reply has.
    has_mark: bool
    # Whether it has a word without which no sentence reports a failure.
    has_failure_word: bool
    # The numbers of its whole forms.
    whole: tuple[int, ...]


def scan(stripped: str) -> Scan | None:
    """Scan a reply without spaces around it; None: nothing is found in it."""
    encoded = stripped.encode()
    hits = _automaton()(encoded)
    return Scan(0 in hits, 1 in hits, whole_forms(encoded) if 2 in hits else ()) if hits else None


def _decide(stripped: str, model: Model | None) -> DetectedFailure | None:
    hits = scan(stripped)
    if hits is None:
        return truncated_form(stripped)
    has_form = hits.has_mark or hits.whole
    found = certain_form(stripped, hits.whole, hits.has_mark) if has_form else None
    # The keys of a JSON body have said all there is to say about it.
    if found is not None or (hits.has_mark and body_fields(stripped) is not None):
        return found
    if hits.has_failure_word:
        found = _by_words(stripped, model or shipped_model())
    return found if found is not None and found.charged else truncated_form(stripped) or found


def _by_words(stripped: str, model: Model) -> DetectedFailure | None:
    """The failure that a reply's words report, charged or suspected."""
    # Most numbers are new words. With 0 for every digit they are known ones, by which most answers are recognised.
    if model.probability(clip(stripped).encode().translate(_ZEROS).decode()) < _PLAIN_BELOW:
        return None
    probability = model.probability(stripped)
    if probability < _PLAIN_BELOW:
        return None
    is_likely = probability >= LEAST_LIKELY
    # An unlikely reply is only charged without unknown words, and most replies show at a glance that they have some.
    message = read_message(stripped) if is_likely or has_few_unknown_words(stripped) else None
    is_message = message is not None and (message.is_sure or (message.is_likely and is_likely))
    if not is_message and probability < SUSPECTED_FROM:
        return None
    start, end = (0, len(stripped)) if message is None else (message.start, message.end)
    return DetectedFailure(
        kind="error_text",
        message=shortened(stripped[start:end]),
        start=start,
        end=end,
        because=("error message" if is_message else "model",),
        probability=1.0 if is_message else round(probability, 3),
        charged=is_message
        or (
            message is not None
            and message.others <= MOST_OTHERS
            and probability >= model.weights.charged_from
        ),
    )

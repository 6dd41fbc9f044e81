"""`answerkey lint`: rules for golden sets. Each rule declares code, severity, message, remedy and the function that checks it."""

import re
from bisect import bisect
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Generic, Literal, TypeVar, get_args

import msgspec

from answerkey.errors import InputError
from answerkey.evidence.records import answer_shape
from answerkey.golden.wrong_replies import COUNT_WITH_UNIT
from answerkey.match.keywords import find_keywords
from answerkey.match.values import asks_how_many
from answerkey.model.question import (
    UNCATEGORISED,
    Alternatives,
    ComputedExpectation,
    DateExpectation,
    Expectation,
    NumberExpectation,
    PatternExpectation,
    Question,
    QuestionSet,
    describe_expectation,
    expected_options,
    expected_text,
    is_essential,
    question_id,
)
from answerkey.text.dates import parse_date
from answerkey.text.normalise import count, count_of, one_line
from answerkey.text.numbers import parse_number

# The worst first. An error makes a question unfair or meaningless, a warning makes it weaker, info is worth a look.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

# A keyword with more words or characters is a sentence, which no reply repeats literally.
_MAX_KEYWORD_WORDS = 8
_MAX_KEYWORD_LENGTH = 80
_SHORT_KEYWORD = 4  # up to this many letters, a keyword is looked for inside other words
_WORDS_SHOWN = 3
_MIN_CATEGORY_SIZE = 3  # the score of a smaller category is mostly chance
_MAX_REPEATED = 5  # a code that more questions than this, and most of them, have is reported once
_MIN_REAL_SET = 12  # a smaller set is a beginning: what it lacks is not worth a finding yet
_PASSING_SHARE = 0.25  # with the right tools and no error, this share of the keywords reaches the pass mark
_MIN_SET_SIZE = 6  # in a smaller set, a tool that only one question uses is normal
_MIN_NAME_SIMILARITY = 86
_MAX_TYPO_USES = 2  # a name that more questions use is not a typo


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of `answerkey lint`."""

    code: str
    severity: Severity
    line: int | None  # of the question or value in its file; None for formats without lines
    id: str | None  # of the question; None for a row that could not be read
    message: str
    remedy: str


def lint_questions(questions: QuestionSet, *, whole_numbers: bool = False) -> list[Finding]:
    """All findings in the order of the file, the worst first for each question.

    With `whole_numbers`, as in [scoring], numbers are not found inside other numbers.
    """
    vocabulary = Vocabulary(questions)
    findings: list[Finding] = []
    for question in questions:
        for number, turn in enumerate(question.asks, start=1):
            prefix = f"turn {number}: " if question.turns else ""
            for turn_rule in TURN_RULES:
                if whole_numbers and turn_rule.code in _INSIDE_NUMBERS:
                    continue
                for values in turn_rule.check(turn, vocabulary):
                    findings.append(turn_rule.finding(question, values, prefix))
    for set_rule in SET_RULES:
        for question, values in set_rule.check(questions):
            findings.append(set_rule.finding(question, values))
    findings += _note_findings(questions)
    return _in_file_order(_grouped(findings, len(questions)), questions)


def _grouped(findings: list[Finding], questions: int) -> list[Finding]:
    """One finding for a code that most questions have: the first, with the number of the others."""
    by_code: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        by_code[finding.code].append(finding)
    grouped: list[Finding] = []
    for found in by_code.values():
        ids = list(dict.fromkeys(finding.id for finding in found))
        if len(ids) <= max(_MAX_REPEATED, questions / 2):
            grouped += found
            continue
        others = ", ".join(str(one) for one in ids[1 : _WORDS_SHOWN + 1])
        message = f"{found[0].message} (so in {len(ids)} of {questions} questions: also {others}, …)"
        grouped.append(msgspec.structs.replace(found[0], message=message))
    return grouped


def problem_findings(problems: Iterable[InputError]) -> list[Finding]:
    """The problems of a file that could not be read whole, as findings."""
    findings = []
    for problem in problems:
        message, _, remedy = problem.reason.rpartition("; ")
        findings.append(
            Finding(
                code="unreadable",
                severity="error",
                line=problem.line,
                id=None,
                message=message or remedy,
                remedy=remedy if message else "correct this part of the file",
            )
        )
    return findings


def _note_findings(questions: QuestionSet) -> Iterator[Finding]:
    """Values that are probably not what was typed, each for the question that begins above it."""
    lines = [question.line or 0 for question in questions]
    for note in questions.notes:
        index = bisect(lines, note.line or 0) - 1
        yield Finding(
            code=note.code,
            severity="warning",
            line=note.line,
            id=questions.questions[index].id if index >= 0 else None,
            message=note.message,
            remedy=note.remedy,
        )


def _in_file_order(findings: list[Finding], questions: QuestionSet) -> list[Finding]:
    """By question, the worst first for each."""
    position = {question.id: index for index, question in enumerate(questions)}
    return sorted(
        findings,
        key=lambda finding: (position.get(finding.id or "", -1), SEVERITIES.index(finding.severity)),
    )


def worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings; None without any."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)


# Checks of one turn: a question, or one turn of a conversation. They yield the values of the rule's message and remedy.

_Values = Mapping[str, object]
_LETTERS = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d[\d,]*")
_MIN_DIGITS = 3  # of shorter numbers, `short-number` says it
_SHORT_VALUE = re.compile(r"\d%|\d:\d\d")  # also found in 15% and 15:45
_PRICE = re.compile(r"\d{1,3}\.\d+")
_DAY_AND_MONTH = re.compile(r"\d{1,2}[/.]\d{1,2}\.?")  # also a fraction or a version
_NUMERIC_DATE = re.compile(r"(\d{1,2})[/.](\d{1,2})(?:[/.](?:\d{4}|\d\d))?")
# Names of notes that people give to what they expect.
_EXPECTING_NAME = re.compile(
    r"answer|keyword|truth|gold|expect|regex|assert|criteri|validat|must|should", re.I
)


def _word_list(name: str) -> frozenset[str]:
    return frozenset((files("answerkey.golden") / "words" / f"{name}.txt").read_text("utf-8").split())


COMMON_WORDS = _word_list("common")  # function words and fillers of almost every English reply
GENERIC_TERMS = _word_list("generic")  # business words of replies about any subject, e.g. "property"
BUSINESS_WORDS = _word_list("business")  # further words that a short keyword may be found inside of


class Vocabulary:
    """The words that a short keyword may be found inside of: the golden set's own first, then those of business."""

    def __init__(self, questions: QuestionSet) -> None:
        texts = [
            text
            for question in questions
            for turn in question.asks
            for text in (turn.question, turn.reference_answer or "")
        ]
        own = {word for text in texts for word in _LETTERS.findall(text.lower())}
        ordered = [
            word
            for words in (own, GENERIC_TERMS, BUSINESS_WORDS, COMMON_WORDS)
            for word in sorted(words, key=lambda word: (len(word), word))
        ]
        keywords = [text for one in questions for turn in one.asks for text in _keyword_texts(turn)]
        written = {figure for text in (*texts, *keywords) for figure in _NUMBER.findall(text)}
        # Replies write large numbers with separators.
        figures = {f"{int(one):,}" if one.isdecimal() and 4 < len(one) < 16 else one for one in written}
        self._longer = _longer_numbers(keywords, sorted(figures, key=lambda figure: (len(figure), figure)))
        # One text, so that looking for letters inside all words is one fast search.
        self._text = "\n" + "\n".join(dict.fromkeys(ordered)) + "\n"
        self._cache: dict[str, list[str]] = {}

    def longer_number(self, text: str) -> str:
        """A number that contains a number keyword as a part: of the set itself, or any for a percentage or a time."""
        if _SHORT_VALUE.fullmatch(text):
            return f"1{text}"
        return self._longer.get(text, "")

    def words_with(self, letters: str) -> list[str]:
        """A few words that contain the letters, except the letters themselves and their plural."""
        if letters not in self._cache:
            self._cache[letters] = self._search(letters)
        return self._cache[letters]

    def _search(self, letters: str) -> list[str]:
        words: list[str] = []
        offset = self._text.find(letters)
        while offset >= 0 and len(words) < _WORDS_SHOWN:
            start, end = self._text.rfind("\n", 0, offset) + 1, self._text.find("\n", offset)
            word = self._text[start:end]
            if word not in (letters, letters + "s"):
                words.append(word)
            offset = self._text.find(letters, end)
        return words


def _longer_numbers(keywords: Iterable[str], figures: Iterable[str]) -> dict[str, str]:
    """Number keyword → the first of the figures that contains it as a part, in one pass over both."""
    stripped = {keyword.strip() for keyword in keywords}
    wanted = {text for text in stripped if text.isascii() and text.isdigit() and len(text) >= _MIN_DIGITS}
    lengths = {len(text) for text in wanted}
    longer: dict[str, str] = {}
    for figure in figures:
        for length in lengths:
            # A figure of the same length is the keyword itself.
            for start in range(len(figure) - length + 1 if length < len(figure) else 0):
                part = figure[start : start + length]
                if part in wanted:
                    longer.setdefault(part, figure)
    return longer


def _quoted(value: Expectation) -> str:
    return f"“{one_line(value if isinstance(value, str) else describe_expectation(value), 60)}”"


def _keyword_texts(turn: Question) -> list[str]:
    options = [option for keyword in turn.expected_keywords for option in expected_options(keyword)]
    return [text for text in map(expected_text, options) if text is not None]


def _contained(keywords: Sequence[Expectation], text: str, *, contained: bool = True) -> list[Expectation]:
    """The keywords that a text contains; with `contained=False`, those that it does not."""
    # What is computed has no value before a run.
    known = [keyword for keyword in keywords if not isinstance(keyword, ComputedExpectation)]
    matches = find_keywords(known, text)
    return [keyword for keyword, match in zip(known, matches, strict=True) if match.found is contained]


def _weak_kind(text: str) -> str:
    """Why almost any reply may contain a keyword, as the code of a rule; "" if it is specific."""
    if len(text) == 1:
        return "one-letter"
    if text.lower() in COMMON_WORDS:
        return "common-word"
    if text.lower() in GENERIC_TERMS:
        return "generic-term"
    if text.isascii() and text.isdigit() and len(text) <= 2:
        return "short-number"
    return "inside-words" if text.isalpha() and len(text) <= _SHORT_KEYWORD else ""


def _each_text(find: "Callable[[str, Question, Vocabulary], _Values | None]") -> "_TurnCheck":
    """A check of every keyword that is a text, with its spaces."""

    def check(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
        for text in _keyword_texts(turn):
            values = find(text, turn, vocabulary)
            if values is not None:
                yield {"keyword": _quoted(text.strip()), "text": text.strip(), **values}

    return check


def _weak_keywords(kind: str) -> "_TurnCheck":
    def find(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
        if _weak_kind(text.strip()) != kind:
            return None
        words = vocabulary.words_with(text.strip().lower()) if kind == "inside-words" else [text]
        return {"words": ", ".join(words)} if words else None

    return _each_text(find)


def _patterns_for_anything(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    for keyword in turn.expected_keywords:
        for option in expected_options(keyword):
            if isinstance(option, PatternExpectation) and _contained((option,), " "):
                yield {"keyword": _quoted(option)}


def _with_spaces(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
    return {"shown": one_line(text.replace(" ", "␣"), 60)} if text != text.strip() else None


def _in_typographic_quotes(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
    text = text.strip()
    is_quoted = len(text) > 2 and text[0] in "“”„«»‘’‚" and text[-1] in "“”„«»‘’"
    return {"plain": text[1:-1]} if is_quoted else None


def _is_long(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
    text = text.strip()
    return {} if len(text.split()) > _MAX_KEYWORD_WORDS or len(text) > _MAX_KEYWORD_LENGTH else None


def _echoes(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    echoed = _contained(turn.expected_keywords, turn.question)
    if any(is_essential(keyword) and keyword not in echoed for keyword in turn.expected_keywords):
        # An essential word beside the essential answer (the month of the figure) earns nothing by itself.
        echoed = [keyword for keyword in echoed if not is_essential(keyword)]
    if echoed:
        names = ", ".join(map(_quoted, echoed))
        subject, earned = f"the keywords {names} are", "them"
        if len(echoed) == 1:
            subject, earned = f"the keyword {names} is", "it"
        if len(echoed) == len(turn.expected_keywords):
            earned = "every keyword"
        yield {"subject": subject, "earned": earned}


def _repeated_keywords(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    seen: set[str] = set()
    for keyword in turn.expected_keywords:
        name = describe_expectation(keyword).strip().lower()
        if name in seen:
            yield {"keyword": _quoted(keyword)}
        seen.add(name)


def _contained_keywords(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    plain = [text for text in map(expected_text, turn.expected_keywords) if text is not None]
    texts = [text.strip().lower() for text in plain]
    for text in dict.fromkeys(texts):
        for other in texts:
            if text != other and re.search(rf"\b{re.escape(text)}\b", other):
                yield {"keyword": _quoted(text), "longer": _quoted(other)}
                break


def _found_in(
    source: Literal["question", "reference_answer"],
    field: Literal["expected_keywords", "forbidden_keywords"],
    *,
    contained: bool = True,
) -> "_TurnCheck":
    """Keywords that the question or the reference answer contains, or does not."""

    def check(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
        text = getattr(turn, source)
        for keyword in _contained(getattr(turn, field), text, contained=contained) if text else ():
            yield {"keyword": _quoted(keyword)}

    return check


def _contradictions(*, whole: bool) -> "_TurnCheck":
    """Expected keywords that contain a forbidden one: with every alternative, or with some."""

    def check(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
        for expected in turn.expected_keywords if turn.forbidden_keywords else ():
            options = expected_options(expected)
            texts = [text for text in map(expected_text, options) if text is not None]
            if not texts or len(texts) < len(options):
                continue
            for forbidden in turn.forbidden_keywords:
                hits = [text for text in texts if _contained((forbidden,), text)]
                if hits and (len(hits) == len(texts)) is whole:
                    shown = expected if whole else hits[0]
                    yield {"keyword": _quoted(shown), "forbidden": _quoted(forbidden)}

    return check


def _forbidden_expected_tools(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    for name in sorted({tool.name for tool in turn.expected_tools} & set(turn.forbidden_tools)):
        yield {"tool": _quoted(name)}


def _rubrics(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    if any(check.kind == "rubric" for check in turn.checks):
        yield {}


def _is_figure(expectation: Expectation) -> bool:
    """Whether it is a value that can be wrong: a number or a date, not a word."""
    if isinstance(expectation, Alternatives):
        return all(map(_is_figure, expectation.options))
    text = expectation.regex if isinstance(expectation, PatternExpectation) else expected_text(expectation)
    return text is None or any(map(str.isdigit, text))


def _passes_without_answer(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    keywords = turn.expected_keywords
    figures = [keyword for keyword in keywords if _is_figure(keyword)]
    words = len(keywords) - len(figures)
    if figures and words / len(keywords) >= _PASSING_SHARE and not any(map(is_essential, keywords)):
        yield {"figures": ", ".join(map(_quoted, figures[:_WORDS_SHOWN])), "figure": _quoted(figures[0])}


def _inside_number(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
    text = text.strip()
    longer = vocabulary.longer_number(text) or _longer_amount(text, turn.question)
    number = parse_number(text)
    typed = f'{{"number": "{text}"}}' if text.endswith("%") else f'{{"number": {number}}}'
    if number is None:
        typed = f'{{"date": "{text}"}}'
    return {"longer": longer, "typed": typed} if longer else None


def _inside_count(text: str, turn: Question, vocabulary: Vocabulary) -> _Values | None:
    text = text.strip()
    return {"longer": f"“1{text}”"} if COUNT_WITH_UNIT.fullmatch(text) and parse_date(text) is None else None


def _longer_amount(text: str, question: str) -> str:
    """An amount that a wrong reply may state and that contains a number keyword: $14.90, or $1200.50 where money is asked,
    or 12000 where a count is."""
    if _PRICE.fullmatch(text):
        return f"1{text}"
    is_whole = text.isascii() and text.isdigit() and _MIN_DIGITS <= len(text) <= 4
    if is_whole and answer_shape(question).unit == "money":
        return f"{text}.50"
    return f"{text}0" if is_whole and asks_how_many(question) else ""


def _ambiguous_dates(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    for keyword in turn.expected_keywords:
        for option in expected_options(keyword):
            if isinstance(option, DateExpectation):
                text = option.date
            else:
                text = expected_text(option) or ""
                # 1.10 is a number or a version.
                if parse_number(text) is not None:
                    continue
            found = _NUMERIC_DATE.fullmatch(text.strip())
            if found and found[1] != found[2] and int(found[1]) <= 12 >= int(found[2]):
                yield {"keyword": _quoted(text)}


def _dates_as_text(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    for keyword in turn.expected_keywords:
        # Who lists alternatives has thought of other forms.
        text = (expected_text(keyword) or "").strip()
        is_other = _DAY_AND_MONTH.fullmatch(text) or parse_number(text) is not None
        # "September 14, 2022" is what an English chatbot mostly writes.
        is_usual = text[:1].isalpha()
        stated = None if is_other or is_usual else parse_date(text)
        if stated is not None:
            date = stated.date
            typed = text
            if date is not None and date.year and date.month and date.day and not date.ambiguous:
                typed = f"{date.year}-{date.month:02}-{date.day:02}"
            others = (
                "as 6 October, Oct 6 and 06/10 are one day" if date else "as 11 am and 11:00 are one time"
            )
            yield {"keyword": _quoted(text), "typed": f'{{"date": "{typed}"}}', "others": others}


def _no_expectations(turn: Question, vocabulary: Vocabulary) -> Iterator[_Values]:
    if turn.expects_nothing:
        unscored = [name for name in ("relevant_documents", "checks") if getattr(turn, name)]
        note = f" ({' and '.join(unscored)} alone do not change the score)" if unscored else ""
        if turn.checks:
            note += "; checks do where [scoring.weights] gives them a weight"
        yield {"note": note}


# Checks of the whole set. They yield the question of the finding with the values.

_Hits = Iterator[tuple[Question, _Values]]


def _questions_without_id(questions: QuestionSet) -> _Hits:
    for question in questions:
        if question.id == question_id(question.question, [turn.question for turn in question.turns]):
            yield question, {}


def _duplicate_questions(questions: QuestionSet) -> _Hits:
    first: dict[tuple[object, ...], Question] = {}
    for question in questions:
        texts = tuple(re.sub(r"[\W_]+", " ", turn.question.casefold()).strip() for turn in question.asks)
        earlier = first.setdefault((texts, question.context, question.persona), question)
        if earlier is not question:
            line = f" on line {earlier.line}" if earlier.line else ""
            yield question, {"other": _quoted(earlier.id), "line": line}


def _unscored_fields(questions: QuestionSet) -> _Hits:
    for name in questions.unknown_fields:
        if _EXPECTING_NAME.search(name):
            users = [question for question in questions if name in question.metadata]
            yield users[0], {"name": _quoted(name), "some": count(len(users), "question")}


def _could_be_computed(questions: QuestionSet) -> _Hits:
    expectations = [keyword for one in questions for turn in one.asks for keyword in turn.expected_keywords]
    if any(isinstance(keyword, ComputedExpectation) for keyword in expectations):
        return
    typed = [
        question
        for question in questions
        for turn in question.asks
        if turn.expected_tools and any(map(_is_amount, turn.expected_keywords))
    ]
    if len(questions) >= _MIN_REAL_SET and len(typed) * 2 >= len(questions):
        yield typed[0], {"count": len(typed), "total": len(questions)}


def _is_amount(keyword: Expectation) -> bool:
    """Whether it is a figure that changes with the data: an amount of four digits or more, not a year."""
    text = expected_text(keyword)
    digits = re.sub(r"[,$€£\s]", "", text) if text else ""
    is_text = re.fullmatch(r"\d{4,}(\.\d+)?", digits) and not re.fullmatch(r"(19|20)\d\d", digits)
    return bool(is_text) or (isinstance(keyword, NumberExpectation) and abs(keyword.number) >= 1000)


def _no_unanswerable(questions: QuestionSet) -> _Hits:
    answerable = all(turn.answerable for question in questions for turn in question.asks)
    if len(questions) >= _MIN_REAL_SET and answerable:
        yield questions.questions[0], {}


def _unknown_fields(questions: QuestionSet) -> _Hits:
    names = [name for name in questions.unknown_fields if not _EXPECTING_NAME.search(name)]
    if names:
        first = next(question for question in questions if names[0] in question.metadata)
        yield first, {"names": ", ".join(map(_quoted, names))}


def _expected_tool_users(questions: QuestionSet) -> dict[str, list[Question]]:
    users: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        for name in {tool.name for turn in question.asks for tool in turn.expected_tools}:
            users[name].append(question)
    return users


def _mistyped_tools(questions: QuestionSet) -> _Hits:
    users = _expected_tool_users(questions)
    for name, using in users.items():
        meant = _intended_name(name, users)
        if meant is not None:
            count = len(users[meant])
            others = "another question expects" if count == 1 else f"{count} other questions expect"
            for question in using:
                yield question, {"tool": f"tool {_quoted(name)}", "meant": _quoted(meant), "others": others}
    for question in questions:
        forbidden = {name for turn in question.asks for name in turn.forbidden_tools}
        for name in sorted(forbidden - set(users)):
            meant = _intended_name(name, users)
            if meant is not None:
                tool, others = f"forbidden tool {_quoted(name)}", "other questions expect"
                yield question, {"tool": tool, "meant": _quoted(meant), "others": others}


def _lone_tools(questions: QuestionSet) -> _Hits:
    users = _expected_tool_users(questions)
    if len(questions) >= _MIN_SET_SIZE:
        for name, using in users.items():
            if len(using) == 1 and _intended_name(name, users) is None:
                yield using[0], {"tool": _quoted(name)}


def _intended_name(name: str, uses: Mapping[str, Sequence[object]]) -> str | None:
    """The name in use that a rarely used one is probably a typo of."""
    from rapidfuzz import fuzz, process  # slow to import

    count = len(uses.get(name, ()))
    if count > _MAX_TYPO_USES:
        return None
    similar = process.extract(
        name,
        list(uses),
        scorer=fuzz.ratio,
        processor=_without_style,
        score_cutoff=_MIN_NAME_SIMILARITY,
        limit=5,
    )
    for other, _, _ in similar:
        # Names that differ in their numbers (v1 and v2) are different things.
        same_numbers = re.findall(r"\d+", other) == re.findall(r"\d+", name)
        if other != name and same_numbers and (count, name) < (len(uses[other]), other):
            return str(other)
    return None


def _without_style(name: str) -> str:
    """A name without case and separators: query_database and QueryDatabase are the same."""
    return re.sub(r"[\W_]+", "", name).casefold()


def _categories(questions: QuestionSet) -> dict[str, list[Question]]:
    """Category → questions; empty if no question has a category."""
    members: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        members[question.category].append(question)
    return {} if list(members) == [UNCATEGORISED] else members


def _uncategorised(questions: QuestionSet) -> _Hits:
    without = _categories(questions).get(UNCATEGORISED)
    if without:
        yield without[0], {"some": count_of(len(without), len(questions), "question", "has", "have")}


def _mistyped_categories(questions: QuestionSet) -> _Hits:
    categories = _categories(questions)
    for name, members in categories.items():
        meant = None if name == UNCATEGORISED else _intended_name(name, categories)
        if meant is not None:
            yield members[0], {"category": _quoted(name), "meant": _quoted(meant)}


def _thin_categories(questions: QuestionSet) -> _Hits:
    categories = _categories(questions)
    for name, members in categories.items():
        is_small = (
            name != UNCATEGORISED and len(members) < _MIN_CATEGORY_SIZE and len(questions) >= _MIN_REAL_SET
        )
        if is_small and _intended_name(name, categories) is None:
            size = "1 question" if len(members) == 1 else f"{len(members)} questions"
            yield members[0], {"category": _quoted(name), "size": size, "least": _MIN_CATEGORY_SIZE}


# The rules. Message and remedy are templates for the values that the check yields.

_TurnCheck = Callable[[Question, Vocabulary], Iterator[_Values]]
_SetCheck = Callable[[QuestionSet], _Hits]
_Check = TypeVar("_Check", _TurnCheck, _SetCheck)


class _Rule(msgspec.Struct, Generic[_Check], frozen=True):
    code: str
    severity: Severity
    check: _Check
    message: str
    remedy: str

    def finding(self, question: Question, values: _Values, prefix: str = "") -> Finding:
        return Finding(
            code=self.code,
            severity=self.severity,
            line=question.line,
            id=question.id,
            message=prefix + self.message.format(**values),
            remedy=self.remedy.format(**values),
        )


TurnRule = _Rule[_TurnCheck]  # for a question, or for each turn of a conversation
SetRule = _Rule[_SetCheck]  # for what only shows across questions


# What [scoring] whole_numbers puts an end to.
_INSIDE_NUMBERS = frozenset({"short-number", "number-inside-number"})
_WHOLE_WORD = 'write {{"regex": "\\\\b{text}\\\\b"}}'
TURN_RULES = (
    TurnRule("pattern-matches-anything", "error", _patterns_for_anything,
        "the regular expression {keyword} matches even an empty text",
        "make it require something, or remove it"),
    TurnRule("keyword-spaces", "warning", _each_text(_with_spaces),
        "the keyword “{shown}” begins or ends with a space, which the reply must then contain",
        "remove the spaces"),
    TurnRule("smart-quotes", "warning", _each_text(_in_typographic_quotes),
        "the quotes around {text} are typographic, so that they are part of the keyword",
        "write {plain} without them, or with straight quotes"),
    TurnRule("one-letter", "warning", _weak_keywords("one-letter"),
        "the keyword {keyword} is a single character, which almost every reply contains",
        "use a longer and more specific value"),
    TurnRule("common-word", "warning", _weak_keywords("common-word"),
        "the keyword {keyword} is a common word, which almost every reply contains",
        "use a specific value or a key concept instead"),
    TurnRule("generic-term", "warning", _weak_keywords("generic-term"),
        "the keyword {keyword} is a generic term, which a reply without the answer may contain",
        "use what is specific to the answer, for example a name or an amount"),
    TurnRule("short-number", "warning", _weak_keywords("short-number"),
        "the number {keyword} is also found inside longer numbers, such as {text}0 or 20{text}",
        "write {{\"number\": {text}}}, or set whole_numbers = true under [scoring]"),
    TurnRule("inside-words", "warning", _weak_keywords("inside-words"),
        "the keyword {keyword} is also found inside other words, such as {words}",
        f"{_WHOLE_WORD} or use --match smart, which respects words"),
    TurnRule("long-keyword", "warning", _each_text(_is_long),
        "the keyword {keyword} is a sentence, which a right answer in other words does not contain",
        "split it into the facts that matter, or move it to reference_answer"),
    TurnRule("echo", "warning", _echoes,
        "{subject} already in the question: repeating the question earns {earned} for free",
        "use what only the answer contains instead"),
    TurnRule("repeated-keyword", "warning", _repeated_keywords,
        "the keyword {keyword} is listed more than once and counts each time",
        "keep one"),
    TurnRule("contained-keyword", "info", _contained_keywords,
        "the keyword {keyword} is part of {longer}: both are found or missed together",
        "keep the longer one, or write them as a list of alternatives"),
    TurnRule("not-in-reference", "warning", _found_in("reference_answer", "expected_keywords", contained=False),
        "the keyword {keyword} is not in the question's own reference answer",
        "correct one of them: a reply that is the reference answer would lose points"),
    TurnRule("forbidden-in-reference", "error", _found_in("reference_answer", "forbidden_keywords"),
        "the forbidden keyword {keyword} is in the question's own reference answer",
        "remove it from one of them"),
    TurnRule("forbidden-expected", "error", _contradictions(whole=True),
        "the keyword {keyword} is expected, but it contains the forbidden {forbidden}",
        "remove one of the two: no reply can satisfy both"),
    TurnRule("forbidden-alternative", "warning", _contradictions(whole=False),
        "the alternative {keyword} contains the forbidden keyword {forbidden}",
        "remove the alternative or the forbidden keyword"),
    TurnRule("forbidden-in-question", "info", _found_in("question", "forbidden_keywords"),
        "the forbidden keyword {keyword} is in the question: a reply that quotes the question fails",
        "make the forbidden keyword more specific"),
    TurnRule("forbidden-tool-expected", "error", _forbidden_expected_tools,
        "the tool {tool} is both expected and forbidden",
        "remove one of the two: no reply can satisfy both"),
    TurnRule("rubric-needs-judge", "info", _rubrics,
        "has a check with a rubric, which only a judge can decide",
        "run it with --judge MODEL; without one, its checks are unscored"),
    TurnRule("number-inside-number", "warning", _each_text(_inside_number),
        "the keyword {keyword} is also found inside other numbers, such as {longer}",
        "write {typed}, or set whole_numbers = true under [scoring]"),
    TurnRule("count-inside-number", "warning", _each_text(_inside_count),
        "the keyword {keyword} is also found inside longer numbers, such as {longer}",
        f"{_WHOLE_WORD} or use --match smart"),
    TurnRule("ambiguous-date", "info", _ambiguous_dates,
        "the date {keyword} is met with either number as the month",
        "write it as 2025-04-03 if only one of them is right"),
    TurnRule("date-as-text", "info", _dates_as_text,
        "the keyword {keyword} is a text, found only as it is typed here and not in another form, {others}",
        "write {typed}, which is met by every usual form"),
    TurnRule("passes-without-answer", "info", _passes_without_answer,
        "a reply that calls the right tools passes without {figures}: the other keywords are enough",
        "mark the value that matters as essential: \"must\": true"),
    TurnRule("expects-nothing", "warning", _no_expectations,
        "expects nothing: any reply that is not an error scores 1.0{note}",
        "add expected_keywords or expected_tools"),
)  # fmt: skip
SET_RULES = (
    SetRule("duplicate-question", "warning", _duplicate_questions,
        "asks the same as {other}{line}, which then counts twice",
        "remove one, or use --repeat to ask every question several times"),
    SetRule("tool-typo", "warning", _mistyped_tools,
        "the {tool} looks like {meant}, which {others}",
        "correct the name if it is a typo: names compare exactly"),
    SetRule("lone-tool", "info", _lone_tools,
        "no other question expects the tool {tool}",
        "check its name, or add questions that need it"),
    SetRule("uncategorised", "info", _uncategorised,
        "{some} no category, this one first",
        "give them one: the report shows scores by category"),
    SetRule("category-typo", "warning", _mistyped_categories,
        "the category {category} looks like {meant}",
        "use one spelling, if they are the same"),
    SetRule("thin-category", "warning", _thin_categories,
        "the category {category} has only {size}: its score is mostly chance",
        "add questions until it has at least {least}, or merge it with another category"),
    SetRule("unscored-field", "warning", _unscored_fields,
        "the field {name} of {some} is kept as a note and scores nothing",
        "map it (--map expected_keywords=…) if it is expected of the reply, or rename it"),
    SetRule("could-be-computed", "info", _could_be_computed,
        "{count} of {total} questions expect amounts that are typed in, and wrong when the data change",
        "compute them from the data: {{\"sql\": …}}, {{\"fact\": …}} or {{\"python\": …}}"),
    SetRule("no-unanswerable", "info", _no_unanswerable,
        "every question has an answer: inventing one is never tested",
        "add questions with \"answerable\": false"),
    SetRule("unknown-field", "info", _unknown_fields,
        "fields that are kept as notes and expect nothing: {names}",
        "nothing if they are notes; otherwise rename them to a known field"),
    SetRule("no-id", "info", _questions_without_id,
        "has no id of its own: after a change of its wording, `compare` sees another question",
        "give it a short, stable id"),
)  # fmt: skip

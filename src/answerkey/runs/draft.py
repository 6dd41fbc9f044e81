"""Draft golden cases from real questions: how well the set covers them, the groups it lacks, and cases for a person to accept.

Sources are read once. A question that the set covers is only counted; of the others a few replies are kept, from which
expectations are drafted if figures, dates and names of the reply link to a tool result.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.detect.abstention.model import declines
from answerkey.errors import TruthError, UsageError
from answerkey.golden.similar import (
    LIKELY,
    SURE,
    UNLIKELY,
    Coverage,
    GoldenQuestions,
    Nearest,
    coverage_of,
    group_texts,
    is_greeting,
    question_facts,
    question_words,
    years,
)
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import JsonObject, Link, Reply
from answerkey.runs.production import RealQuestion, case_id
from answerkey.scorers.grader import Grader, make_grader
from answerkey.text.dates import find_dates
from answerkey.text.normalise import folded_text, folded_words, stem
from answerkey.text.numbers import parse_number

if TYPE_CHECKING:
    from answerkey.golden.truth import TruthSources

# Replies kept of a question that is not covered, and examples listed of a hole.
_REPLIES, _EXAMPLES = 3, 5
_MOST_DRAFTS = 500
# A sentence with more facts is a list, or a passage of a document.
_MOST_EXPECTATIONS = 3
_EVIDENCE_TEXT = 2_000
# A sentence answers a question if it has more than this share of its words.
_ANSWERS, _PASSAGE_ANSWERS = 0.6, 0.75
# Where a link leads to a cell of a record, not into the text of a passage.
_CELL_NAME = re.compile(r"\.(?!text$|content$|passage$|snippet$|body$|excerpt$)[A-Za-z_]\w*$|\]$")
# A figure or date in the title of a document identifies the document.
_TITLE = re.compile(r"\.(?:title|heading|file_?name)$")
# What kind of fact a question asks for: by its words, and what these are looked for in.
_ASKED_FOR = (
    (re.compile(r"\b(?:when|what date|on which|which (?:date|day))\b", re.IGNORECASE), {"date"}),
    (re.compile(r"\bhow (?:much|many|old|big|large|long|often|high)\b", re.IGNORECASE), {"figure"}),
    (re.compile(r"\b(?:who|whose|whom)\b", re.IGNORECASE), {"name", "id"}),
    (re.compile(r"\bwhich\b", re.IGNORECASE), {"name", "id", "figure", "date"}),
)
# Answered by yes, no, a list or a comparison: a figure of the reply alone is not the answer.
_ASKS_MORE = re.compile(
    r"(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|show|list|compare)\b"
    r"|.*(?:%|\bwhich (?:ones|\w+s (?:are|were|do|did|have))\b"
    r"|\b(?:percent(?:age)?|share|ratio|versus|vs|compared?|all|each|every|per|more|less|higher|lower|change[ds]?)\b"
    r"|\b(?:most|least|highest|lowest|not|without|except)\b)",
    re.IGNORECASE | re.DOTALL,
)
# Before a figure that is an estimate.
_APPROXIMATELY = re.compile(
    r"(?:\b(?:about|around|approx(?:\.|imately)?|roughly|nearly|almost|circa|ca\.)|[~≈])\s*[$€£]?\s*$",
    re.IGNORECASE,
)
# How similar a question is to an earlier one of its conversation, if the user asked it again.
_ASKED_AGAIN = 0.6
# Cases by which the reply to a question is graded.
_WEIGHED = 2
# A reply with less of what a case expects does not answer it.
_HALF = 0.5
# Groups whose replies are searched for unlinked figures.
_SEARCHED = 300
# A capitalised word that does not begin the question.
_NAME = re.compile(r"(?<=\S )[A-Z]\w+")
_MAIL = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+")
_PHONE = re.compile(r"(?<![\w.,-])\+?\(?\d{2,4}\)?(?:[ ./-]\d{2,4}){2,5}(?![\w-])")
_SELECT = re.compile(r"\s*(?:select|with)\b", re.IGNORECASE)
_RESULT = re.compile(r"tool_calls\[(\d+)\]\.result\b(.*)")
_CELL = re.compile(r"(?:\[0\])?\.?([A-Za-z_]\w*)?")


# Coverage.


class _Entry:
    """Everything that was asked in the same words."""

    def __init__(
        self, real: RealQuestion, words: tuple[str, ...], nearest: list[Nearest], *, is_comparable: bool
    ) -> None:
        self.real, self.words, self.nearest = real, words, nearest
        # That a case asks the same.
        self.chance = nearest[0].chance if nearest else 0.0
        self.is_comparable = is_comparable or self.chance >= LIKELY
        self.count = self.failures = 0
        # Good replies first.
        self.replies: list[tuple[RealQuestion, str]] = []

    def add(self, real: RealQuestion, problem: str) -> None:
        self.count += real.count
        self.failures += real.count if problem else 0
        if real.reply is not None and self.chance < SURE:
            self.replies.append((real, problem))
            self.replies.sort(key=lambda known: bool(known[1]))
            del self.replies[_REPLIES:]


class Hole(msgspec.Struct, frozen=True, kw_only=True):
    """A group of questions that the golden set does not cover."""

    count: int
    # Errors, dislikes, questions asked again and unlinked figures.
    failures: int
    examples: tuple[str, ...]


class Drafts(msgspec.Struct, frozen=True, kw_only=True):
    """The document of `draft --json`."""

    coverage: Coverage
    holes: list[Hole]
    # Golden rows with `evidence` and `warnings`.
    drafts: list[JsonObject]


def draft_cases(real: Iterable[RealQuestion], golden: QuestionSet, settings: Settings) -> Drafts:
    """Cover, group and draft."""
    traffic = Traffic(golden, make_grader(settings.scoring, settings))
    for one in real:
        traffic.add(one)
    entries = sorted(traffic.entries.values(), key=lambda entry: -entry.count)
    coverage = coverage_of(
        [(entry.chance if entry.is_comparable else None, entry.count) for entry in entries]
    )
    if coverage is None:
        raise UsageError("the sources have no questions")
    # A greeting was asked, but no golden case comes from it.
    missing = [one for one in entries if one.chance < LIKELY and not is_greeting(one.real.text)]
    groups = [[missing[index] for index in group] for group in group_texts([one.words for one in missing])]
    drafter = _Drafter(traffic, settings)
    try:
        ranked = sorted(((_hole(group), group) for group in groups), key=lambda one: _rank(one[0]))
        searched = [(_with_unlinked(hole, group), group) for hole, group in ranked[:_SEARCHED]]
        holes = sorted(searched, key=lambda one: _rank(one[0])) + ranked[_SEARCHED:]
        drafts = [drafter.draft(hole, group) for hole, group in holes[:_MOST_DRAFTS]]
    finally:
        drafter.close()
    return Drafts(coverage=coverage, holes=[hole for hole, _ in holes], drafts=drafts)


def _hole(group: Sequence[_Entry]) -> Hole:
    return Hole(
        count=sum(one.count for one in group),
        failures=sum(one.failures for one in group),
        examples=tuple(one.real.text for one in group[:_EXAMPLES]),
    )


def _with_unlinked(hole: Hole, group: Sequence[_Entry]) -> Hole:
    """The hole with the replies of its examples whose figures are in no evidence."""
    replies = [real for one in group[:_EXAMPLES] for real, problem in one.replies[:1] if not problem]
    unlinked = sum(any(not link.where for link in _links(real)) for real in replies)
    return msgspec.structs.replace(hole, failures=hole.failures + unlinked)


def _rank(hole: Hole) -> tuple[float, str]:
    """Traffic × signs of failure."""
    return -hole.count * (1 + hole.failures / hole.count), hole.examples[0]


class Traffic:
    """Counts questions by their words, and compares each with the golden set."""

    def __init__(self, golden: QuestionSet, grader: Grader) -> None:
        self.golden, self.grader = golden, grader
        turns = [(case, turn, text) for case in golden for turn, text in _turn_texts(case)]
        self.cases = [case for case, _, _ in turns]
        self._turns = [turn for _, turn, _ in turns]
        self.questions = GoldenQuestions([text for _, _, text in turns])
        self.entries: dict[tuple[str, ...], _Entry] = {}
        self._conversations: dict[str, frozenset[str]] = {}

    def nearest(self, text: str, reply: Reply | None = None) -> list[Nearest]:
        """The nearest cases; a reply that is what a case expects is evidence that this case was asked."""
        found = self.questions.nearest(text)
        if reply is None or not reply.text:
            return found
        weighed = [self._weigh(one, reply) if one.chance < SURE else one for one in found[:_WEIGHED]]
        return sorted(weighed, key=lambda one: -one.chance)

    def _weigh(self, one: Nearest, reply: Reply) -> Nearest:
        turn = self._turns[one.index]
        quality = (
            self.grader.grade(turn, (reply,)).components.get("response_quality")
            if turn.expected_keywords
            else None
        )
        if quality is None or quality.value is None:
            return one
        answered, not_answered = quality.value >= 1, quality.value < _HALF
        features = msgspec.structs.replace(one.features, answered=answered, not_answered=not_answered)
        return msgspec.structs.replace(one, features=features)

    def add(self, real: RealQuestion) -> None:
        words, nearest = question_words(real.text), None
        if real.opening:
            words, nearest = self._as_later_turn(real, words)
        if not words:
            return
        key = tuple(sorted(words))
        entry = self.entries.get(key)
        if entry is None:
            nearest = self.nearest(real.text, real.reply) if nearest is None else nearest
            entry = self.entries[key] = _Entry(
                real, words, nearest, is_comparable=self.questions.is_comparable(real.text)
            )
        entry.add(real, self._problem(real, frozenset(words)))

    def _as_later_turn(
        self, real: RealQuestion, words: tuple[str, ...]
    ) -> tuple[tuple[str, ...], list[Nearest]]:
        """The words of a later turn and its nearest cases: with the first question's, if a conversation is nearer then."""
        both = f"{real.opening} {real.text}"
        conversations = [one for one in self.nearest(both, real.reply) if self.cases[one.index].turns]
        alone = self.nearest(real.text, real.reply)
        if conversations and (not alone or conversations[0].chance > alone[0].chance):
            return question_words(both), conversations
        return words, alone

    def _problem(self, real: RealQuestion, words: frozenset[str]) -> str:
        """What shows that the reply is bad; empty: nothing."""
        again, reply = False, real.reply
        if reply is not None and reply.conversation_id is not None:
            before = self._conversations.get(reply.conversation_id, frozenset())
            self._conversations[reply.conversation_id] = words
            again = len(before & words) >= _ASKED_AGAIN * len(before | words)
        if real.disliked:
            return "the reply was disliked"
        if reply is not None:
            error = self.grader.grade(Question(id="", question=real.text), (reply,)).error
            if error is not None:
                return f"the reply failed: {error.kind}"
        return "the user asked again" if again else ""


def _turn_texts(case: Question) -> Iterator[tuple[Question, str]]:
    """The questions of a case; a later turn is read with the first."""
    if not case.turns:
        yield case, case.question
    for number, turn in enumerate(case.turns):
        yield turn, turn.question if not number else f"{case.turns[0].question} {turn.question}"


# Drafts.


def _links(real: RealQuestion) -> tuple[Link, ...]:
    """The reply's figures, dates and names, with where they are in the evidence."""
    from answerkey.evidence.links import TooLargeError, find_links  # for questions that are not covered

    reply = real.reply
    if reply is None or not reply.text or not reply.tool_calls:
        return ()
    try:
        return find_links(Question(id="", question=real.text), reply)[0]
    except TooLargeError:
        return ()


class _Drafter:
    """Makes cases of groups of questions."""

    def __init__(self, traffic: Traffic, settings: Settings) -> None:
        self._traffic, self._settings = traffic, settings
        self._sources: TruthSources | None = None
        self._known = folded_text(" ".join(turn for case in traffic.golden for _, turn in _turn_texts(case)))

    def draft(self, hole: Hole, group: Sequence[_Entry]) -> JsonObject:
        """A golden row for one group, with its evidence and warnings."""
        entry = min(group, key=lambda one: not one.replies or bool(one.replies[0][1]))
        real, problem = entry.replies[0] if entry.replies else (entry.real, "there is no reply")
        evidence: JsonObject = {"source": real.source, "asked": hole.count, "failures": hole.failures}
        row: JsonObject = {
            "id": case_id(real.text, "draft"),
            "question": real.text,
            **self._nearest(entry, real),
        }
        warnings = list(self._perhaps_covered(entry))
        reply = real.reply
        if reply is not None:
            evidence["reply"] = (reply.text or "")[:_EVIDENCE_TEXT]
            if reply.evidence.tools_observed and not problem:
                row["expected_tools"] = list(dict.fromkeys(reply.tools_used))
        links = _links(real)
        problem = problem or _unsupported(real, links) or _disagreement(entry)
        if problem:
            warnings.append(f"no expectations: {problem}")
        else:
            stated = _expected_links(real, links)
            row["expected_keywords"] = [self._expectation(link, reply, warnings) for link in stated if reply]
            evidence["links"] = [{"text": one.text, "where": one.where, "found": one.found} for one in stated]
        warnings += self._personal_data(real, row)
        if real.opening:
            row = _as_conversation(row, real.opening)
        return {**row, "evidence": evidence, "warnings": list(dict.fromkeys(warnings))}

    def _nearest(self, entry: _Entry, real: RealQuestion) -> JsonObject:
        """Category and persona as in the nearest cases."""
        near = [self._traffic.cases[one.index] for one in entry.nearest]
        row: JsonObject = {}
        category = real.category or next((case.category for case in near), "")
        if category and category != Question(id="", question="?").category:
            row["category"] = category
        persona = next((case.persona for case in near if case.persona), None)
        return row | ({"persona": persona} if persona else {})

    def _perhaps_covered(self, entry: _Entry) -> Iterator[str]:
        """The case that perhaps asks the same."""
        if not entry.is_comparable:
            yield "in another language than the golden set: a case may ask the same"
        elif entry.chance >= UNLIKELY:
            case = self._traffic.cases[entry.nearest[0].index]
            yield f"perhaps the same as case {case.id!r}: {case.question}"

    def _expectation(self, link: Link, reply: Reply, warnings: list[str]) -> JsonObject:
        if link.kind == "figure":
            number = _number(link)
            query = _computed(link, reply)
            if query is not None and number is not None:
                source = self._source_with(query, number)
                if source is not None:
                    return {"sql": query, "from": source, "must": True}
                warnings.append("an observed query gives a figure; configure [truth.NAME] to compute it")
            if number is not None:
                return {"number": number, "must": True}
        if link.kind == "date":
            return {"date": link.text, "must": True}
        return {"text": link.text}

    def _source_with(self, query: str, number: float) -> str | None:
        """The configured source in which the query gives the same value."""
        if self._sources is None:
            from answerkey.golden.truth import TruthSources  # most drafts have no query

            self._sources = TruthSources(self._settings.truth, self._settings.folder)
        for name, settings in self._settings.truth.items():
            try:
                values = (
                    self._sources.compute("sql", query, name, {}).values
                    if settings.url or settings.files
                    else []
                )
            except TruthError:
                continue
            if len(values) == 1 and isinstance(values[0], int | float) and abs(values[0]) == abs(number):
                return name
        return None

    def _personal_data(self, real: RealQuestion, row: JsonObject) -> Iterator[str]:
        """Mail addresses, telephone numbers, and names that the golden set does not have."""
        from answerkey.evidence.records import Words, find_names

        text = f"{real.text}\n{msgspec.json.encode(row.get('expected_keywords', [])).decode()}"
        for what, pattern in (("mail address", _MAIL), ("telephone number", _PHONE)):
            if found := pattern.search(text):
                yield f"personal data: {what} {found[0]}"
        words = Words(real.text)
        for name in find_names(real.text, words, []):
            shown = real.text[words.starts[name.words.start] : words.ends[name.words.stop - 1]]
            if len(name.words) > 1 and folded_text(shown) not in self._known:
                yield f"personal data: possibly a person's name, {shown}"

    def close(self) -> None:
        if self._sources is not None:
            self._sources.close()


def _as_conversation(row: JsonObject, opening: str) -> JsonObject:
    """The row of a later turn as one of a conversation of two turns."""
    of_turn = ("question", "expected_tools", "expected_keywords")
    turn = {name: row[name] for name in of_turn if name in row}
    rest = {name: value for name, value in row.items() if name not in of_turn}
    return {**rest, "turns": [{"question": opening}, turn]}


def _unsupported(real: RealQuestion, links: Sequence[Link]) -> str:
    """Why nothing may be expected of the text; empty: it answers the question with facts of a tool result."""
    reply = real.reply
    if reply is None or not reply.text:
        return "there is no reply"
    if not reply.tool_calls:
        return "no tool result supports the reply"
    if declines(real.text, reply.text):
        return "the reply says that it does not know"
    for link in links:
        if not link.where and link.kind in ("figure", "date", "id"):
            return f"{link.text!r} is in no tool result"
    if not _expected_links(real, links):
        return "no sentence of the reply answers the question with an exact figure, a full date or a name of a tool result"
    return ""


def _expected_links(real: RealQuestion, links: Sequence[Link]) -> list[Link]:
    """The facts of the sentence that says most of what the question asks, if it says enough of it.

    A figure that is in a tool result may still be the answer to another question: of another period, or of another kind.
    """
    from answerkey.evidence.records import sentence_edges

    reply = real.reply
    text = "" if reply is None else reply.text or ""
    if reply is None or _ASKS_MORE.match(real.text.strip()):
        return []
    words = question_words(real.text)
    best: tuple[float, list[Link]] = (0.0, [])
    for start, end in pairwise([0, *sentence_edges(text), len(text)]):
        facts = [link for link in links if start <= link.start < end and _is_expectation(link, real.text)]
        if (
            not facts
            or declines(real.text, text[start:end])
            or not _is_about(real.text, words, text[start:end], facts, reply)
        ):
            continue
        said = {
            *map(stem, folded_words(text[start:end])),
            *(word for link in facts for word in _cell_words(link)),
        }
        share = len(said.intersection(words)) / max(len(words), 1)
        # A passage that was found by its words has them without answering the question.
        needed = _ANSWERS if all(_CELL_NAME.search(link.where) for link in facts) else _PASSAGE_ANSWERS
        if share > max(best[0], needed):
            best = share, facts
    stated = list({link.text: link for link in best[1]}.values())
    facts = _asked_facts(stated, real.text, words)
    # Among several figures and dates, a name is one detail of many.
    listed = stated if all(link.kind == "name" for link in facts) else facts
    if len(listed) > _MOST_EXPECTATIONS or not all(_is_exact(link, text) for link in facts):
        return []
    return [link for link in facts if link.kind == "name" or not _TITLE.search(link.where)]


def _is_about(
    question: str, words: Sequence[str], sentence: str, facts: Sequence[Link], reply: Reply
) -> bool:
    """Whether the figures, years, months and units of the question are those of the sentence or of the calls behind it."""
    own = question_facts(words)
    named = {stem(word) for name in _NAME.findall(question) for word in folded_words(name)}
    calls = {int(found[1]) for link in facts if (found := _RESULT.match(link.where))}
    arguments = " ".join(repr(reply.tool_calls[number].arguments) for number in sorted(calls))
    said = question_facts(question_words(sentence))
    if not named.intersection(words) <= {*map(stem, folded_words(f"{sentence} {arguments}"))}:
        return False
    return own <= said | question_facts(map(stem, folded_words(arguments))) and not (
        years(own) and years(said) and not years(own) & years(said)
    )


def _is_exact(link: Link, text: str) -> bool:
    """Whether a fact is complete: not a date of any year ("by March 15"), nor a figure that is only about right."""
    if link.kind == "date":
        return any(date.year is not None for date in find_dates(f"{link.text}; {link.found}"))
    return link.kind != "figure" or _APPROXIMATELY.search(text[: link.start]) is None


def _cell_words(link: Link) -> list[str]:
    """The words of a column's name, e.g. purchase and price of `rows[0].purchase_price`."""
    name = _CELL_NAME.search(link.where)
    return [] if name is None else [stem(word) for word in folded_words(name[0].replace("_", " "))]


def _asked_facts(facts: Sequence[Link], question: str, words: Sequence[str]) -> list[Link]:
    """The facts of the kind that the question asks for; where its words do not say that, figures or dates alone."""
    kinds: set[str] = next((kinds for pattern, kinds in _ASKED_FOR if pattern.search(question)), set())
    if kinds:
        return [link for link in facts if link.kind in kinds]
    named = [link for link in facts if set(_cell_words(link)) & set(words)]
    stated = [link for link in named or facts if link.kind != "name"]
    return stated if len({link.kind for link in stated}) == 1 else []


def _disagreement(entry: _Entry) -> str:
    """Whether replies to the same question state other facts."""
    stated = [
        {link.text for link in _expected_links(real, _links(real))}
        for real, problem in entry.replies
        if not problem
    ]
    return "replies to the same question disagree" if any(facts != stated[0] for facts in stated[1:]) else ""


def _is_expectation(link: Link, question: str) -> bool:
    """A figure, date or name that is in a tool result as it is, and not in the question."""
    if link.kind not in ("figure", "date", "name", "id") or link.how or not _RESULT.match(link.where):
        return False
    if link.kind == "figure" and _number(link) is None:
        return False
    if link.kind == "name" and " " not in link.text.strip():
        # A capitalised word may be anything.
        return False
    return folded_text(link.text) not in folded_text(question) and len(link.text) > 1


def _number(link: Link) -> float | None:
    parsed = parse_number(link.text)
    return None if parsed is None else float(parsed)


def _computed(link: Link, reply: Reply) -> str | None:
    """A query of one value, from the call whose result has the figure; None if it was no such query."""
    found = _RESULT.match(link.where)
    if found is None:
        return None
    call = reply.tool_calls[int(found[1])]
    queries = [
        value for value in (call.arguments or {}).values() if isinstance(value, str) and _SELECT.match(value)
    ]
    cell = _CELL.fullmatch(found[2])
    if len(queries) != 1 or cell is None or not cell[1]:
        return None
    query = queries[0].strip().rstrip(";")
    rows = call.result
    row = rows[0] if isinstance(rows, list) and len(rows) == 1 else rows
    if not isinstance(row, dict):
        return None
    return query if len(row) == 1 else f'SELECT "{cell[1]}" FROM ({query}) AS observed'  # noqa: S608  # checked read-only


# Acceptance.


def accepted_case(draft: Mapping[str, Any], golden: QuestionSet, author: str) -> JsonObject:
    """The golden row of a draft that a person accepts, with its provenance; refuses near-misses of existing cases."""
    row = {name: value for name, value in draft.items() if name not in ("evidence", "warnings")}
    try:
        case = parse_question(row)
    except ValueError as error:
        raise UsageError(f"the draft is not a golden case: {error}") from None
    if any(one.id == case.id for one in golden):
        raise UsageError(f"the golden set has a case with id {case.id!r} already")
    texts = [(one, text) for one in golden for _, text in _turn_texts(one)]
    [*_, (_, asked)] = _turn_texts(case)
    for near in GoldenQuestions([text for _, text in texts]).nearest(asked)[:1]:
        if near.chance >= SURE:
            one, text = texts[near.index]
            raise UsageError(f"nearly the same as case {one.id!r}: {text}")
    now = datetime.now(UTC).isoformat(timespec="seconds")
    evidence = draft.get("evidence")
    origin = evidence if isinstance(evidence, dict) else {}
    return {**row, "provenance": {**origin, "accepted_by": author, "accepted_at": now}}

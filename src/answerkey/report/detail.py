"""One trial in full: losses in words, tool calls, sources, claims, links and marks. The losses add up to 1 − score."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

import msgspec

from answerkey.model.comparison import rounded_parts
from answerkey.model.question import Question, describe_expectation
from answerkey.model.reply import Link, Reply, Source, ToolCall
from answerkey.model.scorecard import RowOrigin, Score, Scorecard, Trial, details, reason
from answerkey.report.wording import first_names, milliseconds, name_words, points
from answerkey.text.normalise import for_terminal, one_line

# An error's message can be a whole page.
_MESSAGE_WIDTH = 160
_LISTED = 12
# Losses below this are shown with more digits.
_SMALLEST_LOSS = 0.005


class Loss(msgspec.Struct, frozen=True):
    """One reason for lost points."""

    component: str
    # e.g. "missing keywords: depreciation"; in a conversation after its turn.
    words: str
    # Points of the question's 1.0; None: the component, and so the reply, could not be scored.
    points: float | None
    # The points rounded, so that those of all losses as shown add up.
    rounded_points: float | None = None

    @property
    def cost(self) -> str:
        """The points as (−0.08); empty if unknown."""
        return points(self.points if self.rounded_points is None else self.rounded_points)

    def __str__(self) -> str:
        return f"{self.words} {self.cost}".rstrip()


def losses_of(card: Scorecard) -> tuple[Loss, ...]:
    """All losses of a scorecard, largest first; of a conversation, turn by turn."""
    if not card.turns:
        return _rounded(sorted(_losses(card), key=_cost))
    share = 1 / len(card.turns)
    return _rounded(
        [
            Loss(
                loss.component,
                f"turn {number}: {loss.words}",
                None if loss.points is None else loss.points * share,
            )
            for number, turn in enumerate(card.turns, start=1)
            for loss in sorted(_losses(turn), key=_cost)
        ]
    )


def _rounded(losses: Sequence[Loss]) -> tuple[Loss, ...]:
    """Losses with the two digits that are shown, which add up to what was lost; those too small for that as they are."""
    costs = [loss.points for loss in losses if loss.points is not None]
    if not costs or min(costs) < _SMALLEST_LOSS:
        return tuple(losses)
    parts = iter(rounded_parts([10 * cost for cost in costs]))
    return tuple(
        loss if loss.points is None else msgspec.structs.replace(loss, rounded_points=next(parts) / 10)
        for loss in losses
    )


def _cost(loss: Loss) -> float:
    return -1.0 if loss.points is None else -loss.points


def _losses(card: Scorecard) -> Iterator[Loss]:
    for name, score in card.components.items():
        if score.value is None:
            yield Loss(
                name, f"{name_words(name)}: {one_line(reason(score) or 'not scored', _MESSAGE_WIDTH)}", None
            )
        elif score.value < 1 and score.weight:
            yield Loss(name, _words(name, score, card), score.weight * (1 - score.value))


def _words(name: str, score: Score, card: Scorecard) -> str:
    listed = details(score)
    if name == "response_quality":
        if listed.get("forbidden"):
            return f"said forbidden text: {first_names(listed['forbidden'], _LISTED)}"
        if listed.get("missing"):
            computed = {one["keyword"] for one in listed.get("expected", ()) if one.get("computed")}
            missing = [f"{one} (computed)" if one in computed else one for one in listed["missing"]]
            return f"missing keywords: {first_names(missing, _LISTED)}"
    if name == "error_handling" and card.error is not None:
        message = one_line(card.error.message, _MESSAGE_WIDTH)
        if message and message.lower() != card.error.kind:
            return f"error: {name_words(card.error.kind)} – {message}"
        return f"error: {name_words(card.error.kind)}"
    words = one_line(reason(score), 2 * _MESSAGE_WIDTH)
    if name in ("tool_usage", "error_handling") and words:
        return words
    return f"{name_words(name)}: {words or f'{score.value:.2f}'}"


# Links into the evidence are computed when they are shown: that takes milliseconds, and storing them would double a log's size.

# Unsupported claims, and texts without a link, listed for one reply.
_MOST_CLAIMS = 20


class ClaimsDetail(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a reply's claims a judge or model found supported, and which not."""

    # "by" the judge's or model's name.
    who: str
    # Supported ÷ all; None: no figure, and the note says why.
    value: float | None
    supported: int
    unsupported: int
    # The unsupported claims, each with why; the first of them.
    listed: tuple[str, ...] = ()
    note: str = ""
    # Its accuracy on labelled sentences.
    reliability: str = ""


class LinksDetail(msgspec.Struct, frozen=True, kw_only=True):
    """Where the evidence contains what a reply mentions; not a verdict."""

    items: tuple[Link, ...] = ()
    linked: int = 0
    novelty: float | None = None
    # The first texts that were not found.
    unlinked: tuple[str, ...] = ()
    # Why there are no links.
    note: str = ""


def claims_details(card: Scorecard) -> tuple[ClaimsDetail, ...]:
    return tuple(_claims(card))


def _claims(card: Scorecard) -> Iterator[ClaimsDetail]:
    finding = card.findings.get("groundedness")
    component = card.components.get("groundedness")
    if component is not None:
        finding = details(component)
    if isinstance(finding, Mapping) and "claims" in finding:
        value = card.metrics.get("groundedness") if component is None else component.value
        claims = [claim for claim in finding["claims"] if isinstance(claim, dict) and "claim" in claim]
        unsupported = [claim for claim in claims if claim.get("supported") is False]
        yield ClaimsDetail(
            who=f"by {one_line(str(finding.get('model') or 'the judge'), 60)}",
            value=value,
            supported=len(claims) - len(unsupported),
            unsupported=len(unsupported),
            listed=tuple(
                f"{one_line(str(one['claim']), 300)}: {_why(one)}" for one in unsupported[:_MOST_CLAIMS]
            ),
            note=one_line(str(finding.get("reason") or ""), 400) if value is None else "",
            reliability=one_line(str(finding.get("reliability") or ""), 300),
        )


def _why(claim: Mapping[str, Any]) -> str:
    return one_line(str(claim.get("evidence") or ""), 300) or "not in the evidence"


def links_detail(
    question: Question, reply: Reply, earlier: Sequence[tuple[Question, Reply]]
) -> LinksDetail | None:
    """The links of a reply; None if there is no evidence or nothing to look up."""
    given = [reply, *(before for _, before in earlier)]
    seen = [call.result for one in given for call in one.tool_calls if call.result is not None]
    texts = [source.text for one in given for source in one.sources if source.text]
    if not reply.text or not (seen or texts):
        return None
    from answerkey.evidence.links import TooLargeError, find_links  # most replies have no evidence

    try:
        links, novelty = find_links(question, reply, earlier)
    except TooLargeError as error:
        return LinksDetail(note=f"not shown: too large: {error}")
    if not links:
        return None
    unlinked = dict.fromkeys(one_line(item.text, 120) for item in links if not item.where)
    return LinksDetail(
        items=links,
        linked=sum(bool(item.where) for item in links),
        novelty=novelty,
        unlinked=tuple(unlinked)[:_MOST_CLAIMS],
    )


def link_note(item: Link) -> str:
    """Where a text is in the evidence, for a tooltip."""
    if not item.where:
        return "not found in the evidence"
    row = f", row {one_line(item.row, 60)}" if item.row else ""
    place = f"{one_line(item.where, 120)}{row}: {one_line(item.found, 80)}"
    return f"{one_line(item.how, 120)}: {place}" if item.how else place


# Start, end, mark, and tooltip.
Span = tuple[int, int, str, str]


class Segment(msgspec.Struct, frozen=True):
    """A part of the reply's text with its marks."""

    text: str
    # Any of: keyword, forbidden, linked, unlinked.
    marks: tuple[str, ...] = ()
    # Tooltip.
    note: str = ""


def cut_at_marks(text: str, spans: Iterable[Span], most: int) -> Iterator[Segment]:
    """Split the text where one of the first `most` spans begins or ends; spans may overlap."""
    known = [
        (start, min(end, len(text)), mark, note) for start, end, mark, note in spans if start < len(text)
    ][:most]
    edges = sorted({0, len(text), *(edge for start, end, _, _ in known for edge in (start, end))})
    for start, end in pairwise(edges):
        over = [(mark, note) for first, last, mark, note in known if first <= start and last >= end]
        marks = tuple(dict.fromkeys(mark for mark, _ in over))
        yield Segment(
            for_terminal(text[start:end]), marks, "; ".join(dict.fromkeys(note for _, note in over))
        )


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One tool call; start and length are shares of the total time."""

    name: str
    start: float
    length: float
    # False: unknown, drawn after the call before.
    start_known: bool
    failed: bool
    # Start and duration, as far as known.
    words: str


class Waterfall(msgspec.Struct, frozen=True, kw_only=True):
    """The tool calls of one reply on a time axis that starts when the question was sent."""

    bars: tuple[Bar, ...]
    whole_ms: float
    # As shares of the total; None: unknown.
    answered: float | None
    first_byte: float | None
    first_byte_ms: float | None


def waterfall_of(
    calls: Sequence[ToolCall], latency_ms: float | None, first_byte_ms: float | None
) -> Waterfall | None:
    """The calls on a time axis; None if no time is known."""
    if not any(call.start_ms is not None or call.duration_ms is not None for call in calls):
        return None
    placed, end = [], 0.0
    for call in calls:
        start = end if call.start_ms is None else call.start_ms
        end = start + (call.duration_ms or 0.0)
        placed.append((call, start, end))
    whole = max(latency_ms or 0.0, first_byte_ms or 0.0, *(end for _, _, end in placed))
    if whole <= 0:
        return None
    return Waterfall(
        bars=tuple(
            Bar(
                name=one_line(call.name, 120),
                start=start / whole,
                length=(end - start) / whole,
                start_known=call.start_ms is not None,
                failed=bool(call.error),
                words=_call_timing(call),
            )
            for call, start, end in placed
        ),
        whole_ms=whole,
        answered=None if latency_ms is None else latency_ms / whole,
        first_byte=None if first_byte_ms is None else first_byte_ms / whole,
        first_byte_ms=first_byte_ms,
    )


def _call_timing(call: ToolCall) -> str:
    began = "start unknown" if call.start_ms is None else f"after {milliseconds(call.start_ms)}"
    took = "duration unknown" if call.duration_ms is None else f"took {milliseconds(call.duration_ms)}"
    return f"{began}, {took}"


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How many characters and items are shown; cuts are noted."""

    reply: int = 8_000
    tool_text: int = 1_500
    source_text: int = 600
    calls: int = 25
    sources: int = 12
    turns: int = 20
    spans: int = 300


class ComponentDetail(msgspec.Struct, frozen=True):
    """A component's value and why."""

    name: str
    value: float | None
    weight: float | None
    reason: str


class ToolDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as text."""

    name: str
    arguments: str
    result: str
    error: str
    duration_ms: float | None
    # Whether the question expects this tool.
    expected: bool


class SourceDetail(msgspec.Struct, frozen=True, kw_only=True):
    """A retrieved or cited document as text."""

    name: str
    text: str
    score: float | None
    cited: bool | None
    # Whether the golden set lists it as relevant.
    relevant: bool


class TurnDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One question and the reply to it."""

    question: str
    # None: a null reply.
    reply: tuple[Segment, ...] | None
    # Characters of the reply that are not shown.
    cut: int
    found: tuple[str, ...]
    missing: tuple[str, ...]
    # Expectation → the rule that found it, if it is not the plain text.
    rules: dict[str, str]
    expected_tools: tuple[str, ...]
    missing_tools: tuple[str, ...]
    tools: tuple[ToolDetail, ...]
    # Their timing; None: unknown.
    waterfall: Waterfall | None
    tools_observed: bool
    calls_cut: int
    sources: tuple[SourceDetail, ...]
    sources_cut: int
    # Its claims, by a judge or model.
    claims: tuple[ClaimsDetail, ...]
    # Where the evidence contains what it mentions; None: no evidence.
    links: LinksDetail | None
    # Remarks of judges and other scorers, as (who, what).
    remarks: tuple[tuple[str, str], ...]
    components: tuple[ComponentDetail, ...]
    metrics: dict[str, float | None]
    error: str
    # Where the chatbot's code raised the error; empty: unknown.
    traceback: str
    latency_ms: float | None
    first_byte_ms: float | None
    queue_ms: float
    retry_ms: float
    attempts: int
    usage: str
    reference_answer: str


class TrialDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One trial, turn by turn."""

    trial: int
    score: float | None
    grade: str | None
    passed: bool
    losses: tuple[Loss, ...]
    turns: tuple[TurnDetail, ...]
    turns_cut: int
    latency_ms: float | None
    # Of a recorded log: line and kept columns, e.g. "line 12, chat_id c1".
    origin: str = ""


def trial_detail(result: Trial, limits: Limits | None = None) -> TrialDetail:
    limits = limits or Limits()
    card = result.scorecard
    asks = result.question.asks
    cards = card.turns or (card,)
    turns = tuple(
        _turn(
            ask,
            result.replies[index] if index < len(result.replies) else Reply(),
            turn_card,
            limits,
            tuple(zip(asks[:index], result.replies, strict=False)),
        )
        for index, (ask, turn_card) in enumerate(zip(asks, cards, strict=False))
        if index < limits.turns
    )
    return TrialDetail(
        trial=result.number,
        score=card.total,
        grade=card.grade,
        passed=card.passed,
        losses=losses_of(card),
        turns=turns,
        turns_cut=max(0, len(asks) - len(turns)),
        latency_ms=result.latency_ms,
        origin=_origin(result.origin),
    )


def _origin(origin: RowOrigin | None) -> str:
    if origin is None:
        return ""
    line = () if origin.line is None else (f"line {origin.line}",)
    columns = (f"{name} {value}" for name, value in origin.columns.items())
    return ", ".join(one_line(part, _MESSAGE_WIDTH) for part in (*line, *columns))


def _turn(
    question: Question,
    reply: Reply,
    card: Scorecard,
    limits: Limits,
    earlier: Sequence[tuple[Question, Reply]] = (),
) -> TurnDetail:
    details = _component_details(card, "response_quality")
    expected = {tool.name for tool in question.expected_tools}
    calls, sources, timings = reply.tool_calls, reply.sources, reply.timings
    text = reply.text
    links = links_detail(question, reply, earlier)
    return TurnDetail(
        question=_cut(question.question, limits.reply),
        reply=None
        if text is None
        else tuple(cut_at_marks(text[: limits.reply], _spans(details, links), limits.spans)),
        cut=0 if text is None else max(0, len(text) - limits.reply),
        found=_found_expectations(details),
        missing=_texts(details.get("missing"))
        if "missing" in details
        else tuple(describe_expectation(keyword) for keyword in question.expected_keywords if text is None),
        rules=_rules(details.get("matches")),
        expected_tools=tuple(one_line(tool.name, 120) for tool in question.expected_tools),
        missing_tools=_texts(_component_details(card, "tool_usage").get("missing")),
        tools=tuple(_tool(call, expected, limits) for call in calls[: limits.calls]),
        waterfall=waterfall_of(calls[: limits.calls], timings.latency_ms, timings.first_byte_ms),
        tools_observed=reply.evidence.tools_observed,
        calls_cut=max(0, len(calls) - limits.calls),
        sources=tuple(_source(source, question, limits) for source in sources[: limits.sources]),
        sources_cut=max(0, len(sources) - limits.sources),
        claims=claims_details(card),
        links=links,
        remarks=(*_model_remarks(reply, limits), *_remarks(card))[:_REMARKS],
        components=tuple(
            ComponentDetail(name, score.value, score.weight, one_line(reason(score), 400))
            for name, score in card.components.items()
        ),
        metrics=dict(card.metrics),
        error=""
        if card.error is None
        else _cut(f"{card.error.kind}: {card.error.message}", limits.tool_text),
        traceback="" if reply.failure is None else reply.failure.traceback,
        latency_ms=timings.latency_ms,
        first_byte_ms=timings.first_byte_ms,
        queue_ms=timings.queue_ms,
        retry_ms=timings.retry_ms,
        attempts=timings.attempts,
        usage=_usage(reply),
        reference_answer=_cut(question.reference_answer or "", limits.tool_text),
    )


def _component_details(card: Scorecard, name: str) -> Mapping[str, Any]:
    return details(card.components[name]) if name in card.components else {}


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return for_terminal(text)
    return f"{for_terminal(text[:most])}… ({len(text) - most:,} more characters)"


def _texts(values: object) -> tuple[str, ...]:
    return tuple(one_line(str(value), 200) for value in values) if isinstance(values, list | tuple) else ()


def _found_expectations(details: Mapping[str, Any]) -> tuple[str, ...]:
    """The keywords found; for a pattern, the text that it matched."""
    matched = {
        match.get("keyword"): match.get("text")
        for match in details.get("matches") or ()
        if match.get("rule") == "pattern" and match.get("text")
    }
    return tuple(one_line(str(matched.get(word, word)), 200) for word in details.get("found") or ())


def _model_remarks(reply: Reply, limits: Limits) -> Iterator[tuple[str, str]]:
    """The model's finish reason and its reasoning, if reported."""
    if reply.finish is not None:
        yield "model", _FINISHES[reply.finish]
    if reply.reasoning:
        yield "reasoning", one_line(reply.reasoning, limits.tool_text)


def _remarks(card: Scorecard) -> Iterator[tuple[str, str]]:
    """The reasons of scorers; of model judges, one per criterion."""
    found = {
        name: score.details
        for name, score in card.components.items()
        if "judges" in score.details or "checks" in score.details
    }
    for name, finding in {**card.findings, **found}.items():
        if name in ("groundedness", "linked") or not isinstance(finding, Mapping):
            continue
        if isinstance(finding.get("reason"), str) and finding["reason"]:
            yield one_line(name, 60), one_line(finding["reason"], 400)
        elif isinstance(finding.get("unscored"), str):
            yield one_line(name, 60), f"not scored: {one_line(finding['unscored'], 400)}"
        for check in finding.get("checks") or ():
            yield f"check {one_line(str(check.get('name')), 60)}", _checked(check)
        for judge in finding.get("judges") or ():
            # Samples of a judge are similar: show the first.
            for criterion, graded in next(iter(judge.get("samples") or ()), {}).items():
                if graded.get("reason"):
                    who = f"{one_line(str(judge.get('model', name)), 60)}, {one_line(str(criterion), 40)}"
                    yield who, f"{graded.get('score')}: {one_line(str(graded['reason']), 400)}"


def _checked(check: Mapping[str, Any]) -> str:
    value = check.get("score")
    outcome = {None: "not scored", 1.0: "passed", 0.0: "failed"}.get(value, value)
    return f"{outcome}: {one_line(str(check.get('reason')), 400)}"


def _rules(matches: Any) -> dict[str, str]:
    rules = {}
    for match in matches if isinstance(matches, list) else ():
        why = match.get("why") or match.get("rule")
        if isinstance(why, str) and why and isinstance(match.get("keyword"), str):
            rules[one_line(match["keyword"], 200)] = one_line(why, 200)
    return rules


# Remarks shown for one reply.
_REMARKS = 16
_FINISHES = {
    "length": "was truncated at its token limit",
    "refusal": "refused",
    "filter": "was stopped by the provider's content filter",
}


def _spans(details: Mapping[str, Any], links: LinksDetail | None) -> Iterator[Span]:
    for key, mark in (("matches", "keyword"), ("forbidden_matches", "forbidden")):
        for match in details.get(key) or ():
            if match.get("found", True) is not False:
                word = one_line(str(match.get("keyword", "")), 120)
                why = match.get("why") or match.get("rule")
                note = f"{mark}: {word}" + (f" ({one_line(str(why), 160)})" if why else "")
                yield from _span(match, mark, note)
    for item in links.items if links else ():
        yield item.start, item.end, "linked" if item.where else "unlinked", link_note(item)


def _span(match: Mapping[str, Any], mark: str, note: str) -> Iterator[Span]:
    start, end = match.get("start"), match.get("end")
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end:
        yield start, end, mark, note


def _tool(call: ToolCall, expected: set[str], limits: Limits) -> ToolDetail:
    arguments = call.arguments_text or ("" if call.arguments is None else _json(call.arguments))
    return ToolDetail(
        name=one_line(call.name, 120),
        arguments=_cut(arguments, limits.tool_text),
        result="" if call.result is None else _cut(_json(call.result), limits.tool_text),
        error=_cut(call.error or "", limits.tool_text),
        duration_ms=call.duration_ms,
        expected=call.name in expected,
    )


def _json(value: object) -> str:
    if isinstance(value, str):
        return value
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, UnicodeEncodeError):
        return repr(value)


def _source(source: Source, question: Question, limits: Limits) -> SourceDetail:
    return SourceDetail(
        name=one_line(source.title or source.id or source.uri or "(unnamed)", 160),
        text=_cut(source.text or "", limits.source_text),
        score=source.score,
        cited=source.cited,
        relevant=source.id is not None and question.relevant_documents.get(source.id, 0) > 0,
    )


def _usage(reply: Reply) -> str:
    if reply.usage is None:
        return ""
    parts = []
    for name, word in (("input_tokens", "tokens in"), ("output_tokens", "tokens out")):
        amount = getattr(reply.usage, name)
        if amount is not None:
            parts.append(f"{amount:,} {word}")
    if not parts and reply.usage.total_tokens is not None:
        parts.append(f"{reply.usage.total_tokens:,} tokens")
    if reply.usage.cost is not None:
        parts.append(f"${reply.usage.cost:.4f}")
    return ", ".join(parts)

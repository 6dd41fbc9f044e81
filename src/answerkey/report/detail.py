"""One trial of a question in full, cut to a size that can be shown: the reply with what was found in it, tools, sources."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from answerkey.model.question import Question
from answerkey.model.reply import Reply, Source, ToolCall
from answerkey.model.scorecard import Scorecard
from answerkey.model.trial import Trial
from answerkey.report.claims_detail import (
    ClaimsDetail,
    LinksDetail,
    Segment,
    Span,
    claims_details,
    cut_at_marks,
    link_note,
    links_detail,
)
from answerkey.report.losses import Loss, losses_of
from answerkey.report.waterfall import Waterfall, waterfall_of
from answerkey.text.keyword import describe_keyword
from answerkey.text.sanitise import for_terminal, one_line


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """How much of what others wrote is shown; what is cut is said to be cut."""

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
    # The golden set's relevance of it; None: it has none.
    relevant: bool


class TurnDetail(msgspec.Struct, frozen=True, kw_only=True):
    """One thing said and the reply to it."""

    question: str
    # None: a null reply.
    reply: tuple[Segment, ...] | None
    # Characters of the reply that are not shown.
    cut: int
    found: tuple[str, ...]
    missing: tuple[str, ...]
    # Keyword → the rule by which it was found, where that is more than its plain occurrence.
    rules: dict[str, str]
    expected_tools: tuple[str, ...]
    missing_tools: tuple[str, ...]
    tools: tuple[ToolDetail, ...]
    # When each of them ran; None: no time is known.
    waterfall: Waterfall | None
    tools_observed: bool
    calls_cut: int
    sources: tuple[SourceDetail, ...]
    sources_cut: int
    # Its claims, by a judge or model.
    claims: tuple[ClaimsDetail, ...]
    # Where what it mentions stands in the evidence; None: there is nothing to look in.
    links: LinksDetail | None
    # What judges and other scorers remark, as (who, what).
    remarks: tuple[tuple[str, str], ...]
    components: tuple[ComponentDetail, ...]
    metrics: dict[str, float | None]
    error: str
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


def trial_detail(result: Trial, limits: Limits | None = None) -> TrialDetail:
    """What can be shown of one result."""
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
    )


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
        found=_found(details),
        missing=_texts(details.get("missing"))
        if "missing" in details
        else tuple(describe_keyword(keyword) for keyword in question.expected_keywords if text is None),
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
        remarks=(*_of_the_model(reply, limits), *_remarks(card))[:_REMARKS],
        components=tuple(
            ComponentDetail(name, score.value, score.weight, one_line(score.reason, 400))
            for name, score in card.components.items()
        ),
        metrics=dict(card.metrics),
        error=""
        if card.error is None
        else _cut(f"{card.error.kind}: {card.error.message}", limits.tool_text),
        latency_ms=timings.latency_ms,
        first_byte_ms=timings.first_byte_ms,
        queue_ms=timings.queue_ms,
        retry_ms=timings.retry_ms,
        attempts=timings.attempts,
        usage=_usage(reply),
        reference_answer=_cut(question.reference_answer or "", limits.tool_text),
    )


def _component_details(card: Scorecard, name: str) -> Mapping[str, Any]:
    return card.components[name].details if name in card.components else {}


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return for_terminal(text)
    return f"{for_terminal(text[:most])}… ({len(text) - most:,} more characters)"


def _texts(values: object) -> tuple[str, ...]:
    return tuple(one_line(str(value), 200) for value in values) if isinstance(values, list | tuple) else ()


def _found(details: Mapping[str, Any]) -> tuple[str, ...]:
    """The keywords found; where the keyword is a pattern, what it matched says more than the pattern."""
    matched = {
        match.get("keyword"): match.get("text")
        for match in details.get("matches") or ()
        if match.get("rule") == "pattern" and match.get("text")
    }
    return tuple(one_line(str(matched.get(word, word)), 200) for word in details.get("found") or ())


def _of_the_model(reply: Reply, limits: Limits) -> Iterator[tuple[str, str]]:
    """How the model ended and what it thought, where it says so."""
    if reply.finish is not None:
        yield "model", _FINISHES[reply.finish]
    if reply.reasoning:
        yield "reasoning", one_line(reply.reasoning, limits.tool_text)


def _remarks(card: Scorecard) -> Iterator[tuple[str, str]]:
    """The reasons that scorers give in words; of model judges, those of each criterion."""
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
            # Several samples of a judge say much the same: the first speaks for them.
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


# Remarks of judges that are shown of one reply.
_REMARKS = 16
_FINISHES = {
    "length": "was cut off at its limit of tokens",
    "refusal": "refused",
    "filter": "was stopped by the content filter of its provider",
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


def _span(found: Mapping[str, Any], mark: str, note: str) -> Iterator[Span]:
    start, end = found.get("start"), found.get("end")
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
    except (TypeError, UnicodeEncodeError, RecursionError):
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

"""A run in plain sentences, for a reader who knows nothing of scoring."""

from collections.abc import Iterator, Mapping

from answerkey.report.value_wording import (
    GRADE_MEANINGS,
    count,
    list_words,
    milliseconds,
    name_words,
    percent,
    score_percent,
)
from answerkey.report.view import ReportView
from answerkey.text.sanitise import one_line

# Component → (what it is when it is good, why points are lost when it is not).
COMPONENT_WORDS = {
    "tool_usage": ("Used the right tools", "it did not use the tools that a question needs"),
    "response_quality": ("Said what it should", "replies lacked information that they should contain"),
    "error_handling": ("Worked without errors", "it failed or answered with an error"),
}


def component_words(name: str) -> str:
    """A component's name for people."""
    return COMPONENT_WORDS[name][0] if name in COMPONENT_WORDS else name_words(name).capitalize()


def story_sentences(view: ReportView) -> tuple[str, ...]:
    """What happened, in the order in which somebody would ask."""
    return tuple(_sentences(view))


def phases_sentence(phases: Mapping[str, float]) -> str:
    """Where the time of an average reply went; empty where that is not known."""
    words = {"first_byte": "to the first byte"}
    if phases.get("tools"):
        # Without tools, the rest is the whole.
        words |= {"tools": "in tools", "rest": "the rest"}
    spent = ", ".join(
        f"{milliseconds(phases[name])} {what}" for name, what in words.items() if phases.get(name)
    )
    if not spent:
        return ""
    waited = ""
    if phases.get("queue") or phases.get("retry"):
        queue, retry = milliseconds(phases.get("queue", 0)), milliseconds(phases.get("retry", 0))
        waited = f"; waiting that is not the chatbot’s is not counted (queue {queue}, retries {retry})"
    return f"On average {spent}{waited}."


def loss_shares(lost: Mapping[str, float]) -> str:
    """Where points were lost, errors first: `93% in replies that ended in an error, 7% because …`."""
    total = sum(lost.values())
    shares = []
    for cause, points in lost.items():
        why = COMPONENT_WORDS[cause][1] if cause in COMPONENT_WORDS else f"of {name_words(cause)}"
        where = "in replies that ended in an error" if cause == "error" else f"because {why}"
        share = points / total
        shares.append(f"{'all were lost' if share > 0.999 else percent(share, 0)} {where}")
    return ", ".join(shares[:3])


def _sentences(view: ReportView) -> Iterator[str]:
    summary, info = view.summary, view.info
    target, questions = one_line(info.target, 80), one_line(info.question_set, 80)
    asked = f"The chatbot “{target}” was asked {count(summary.questions, 'question')} from “{questions}”"
    times = f", {'up to ' if info.is_log else ''}{info.repeat} times each," if info.repeat > 1 else ""
    if summary.score is None:
        yield f"{asked}{times} but nothing could be scored."
        return
    meaning = GRADE_MEANINGS[summary.grade or "F"].lower()
    yield f"{asked}{times} and scored {score_percent(summary.score)}, grade {summary.grade}: {meaning}."
    if summary.interval is not None and summary.questions > 1:
        low, high = score_percent(summary.interval.low), score_percent(summary.interval.high)
        yield f"Judging by this many questions, its true score probably lies between {low} and {high}."
    failed = summary.questions - summary.passed
    mark = percent(info.pass_mark, 0)
    if failed:
        yield f"{summary.passed:,} of the questions passed (scored {mark} or more) and {failed:,} failed."
    else:
        yield f"Every question passed (scored {mark} or more)."
    yield from _weakness(view)
    if summary.errors:
        total = sum(summary.errors.values())
        yield f"{count(total, 'reply', 'replies')} ended in an error ({list_words(summary.errors)})."
    if summary.latency_ms is not None:
        half, most = milliseconds(summary.latency_ms.p50), milliseconds(summary.latency_ms.p95)
        yield f"Half of the replies came within {half}, and 19 of 20 within {most}."


def _weakness(view: ReportView) -> Iterator[str]:
    if view.lost:
        yield f"Of the lost points, {loss_shares(view.lost)}."
    scored = [part for part in view.categories if part.score is not None]
    if len(scored) > 1 and scored[0].score != scored[-1].score:
        low, high = scored[0], scored[-1]
        yield (
            f"It is weakest in “{one_line(low.name, 60)}” ({score_percent(low.score)}) "
            f"and best in “{one_line(high.name, 60)}” ({score_percent(high.score)})."
        )

"""A comparison on the terminal and in Markdown, as a reader sees it."""

import re
from io import StringIO

import pytest
from msgspec.structs import replace

from answerkey.comparison.columns import columns_from_run
from answerkey.comparison.run_ranking import rank_runs
from answerkey.model.comparison import Comparison
from answerkey.model.run import Run
from answerkey.report.sheets import comparison_sheet, sheet_markdown
from answerkey.report.terminal_texts import print_comparison, print_ranking
from answerkey.report.wording import metric_text, score_text
from answerkey.runs.api import compare
from comparison.made import make_run


def shown(comparison: Comparison, **options: object) -> str:
    file = StringIO()
    print_comparison(comparison, file=file, width=100, **options)  # type: ignore[arg-type]
    return file.getvalue()


def with_metric(run: Run, name: str, values: dict[str, float]) -> Run:
    results = [
        replace(
            result,
            scorecard=replace(result.scorecard, metrics={name: values[result.question.id]}),
        )
        for result in run.results
    ]
    return Run(info=run.info, summary=run.summary, results=results)


def test_scores_and_metrics_read_as_in_the_report_of_a_run() -> None:
    """0.8997 is a B and reads 0.899; a metric is rounded in the same way."""
    before = {f"q{i}": 0.8997 for i in range(20)}
    after = {f"q{i}": 0.9857 for i in range(20)}
    text = shown(compare(make_run(before, name="a"), make_run(after, name="b")))
    assert f"score {score_text(0.8997)} → {score_text(0.9857)}" in text
    assert "score 0.899 → 0.985" in text
    components, metrics = text.split("Metrics")
    assert re.search(r"^tool usage +0\.899 → 0\.985 ", components, re.MULTILINE)
    assert re.search(rf"^f1 +{metric_text(0.8997)} → {metric_text(0.9857)} ", metrics, re.MULTILINE)
    assert "0.899 → 0.985" in metrics


def test_what_is_counted_has_no_points() -> None:
    scores = {f"q{i}": 1.0 for i in range(20)}
    runs = [make_run(scores, name=name) for name in ("a", "b")]
    few, many = ({f"q{i}": float(i % 2 + more * (i % 3)) for i in range(20)} for more in (0, 4))
    found = compare(
        with_metric(runs[0], "uncited_sources", few), with_metric(runs[1], "uncited_sources", many)
    )
    [measure] = found.metrics
    assert measure.counted
    assert measure.verdict == "worse"
    text = shown(found)
    assert "uncited sources  0.500 → 4.300  +3.80" in text
    assert "380" not in text
    # Counts of zero and one are counts all the same.
    found = compare(
        with_metric(runs[0], "duplicate_sources", few), with_metric(runs[1], "duplicate_sources", few)
    )
    assert "duplicate sources  0.500 → 0.500  +0.00   no change" in shown(found)


def test_flipped_questions_are_shown_with_their_wording() -> None:
    before = {f"q{i:02}": 1.0 for i in range(40)}
    after = before | {f"q{i:02}": 0.1 for i in range(30)}
    found = compare(make_run(before, name="a"), make_run(after, name="b"))
    asked = ["What is the rent?\n\x1b[31mIn August?", "x" * 300]
    worded = [replace(flip, question=text) for flip, text in zip(found.flips, asked, strict=False)]
    text = shown(replace(found, flips=(*worded, *found.flips[2:])))
    assert "What is the rent? " in text
    assert "\x1b" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert "… and 10 more; --json lists all" in text
    assert "30 worse (30 broken), 0 fixed" in sheet_markdown(comparison_sheet(found))


def test_what_too_few_questions_can_say() -> None:
    text = shown(compare(make_run({"q": 1.0}, name="a"), make_run({"q": 0.2}, name="b")))
    assert "the runs have only one question in common" in text
    assert "one question  no p-value" in text
    three = {f"q{i}": 0.5 for i in range(3)}
    text = shown(compare(make_run(three, name="a"), make_run(three, name="b")))
    assert "all 3 questions scored the same in both runs" in text
    assert "too few questions to detect a difference" in text


@pytest.mark.parametrize("width", [40, 60, 80, 100, 140])
def test_a_ranking_fits_the_terminal_and_cuts_no_figure(width: int) -> None:
    scores = {f"q{i}": [0.2, 1.0] for i in range(20)}
    categories = {f"q{i}": "a category with a long name" for i in range(20)}
    names = ["a run whose name is rather long", "b", "c"]
    runs = [make_run(scores, name=name, category=categories) for name in names]
    ranking = rank_runs(
        [columns_from_run(replace(run, info=replace(run.info, id=run.info.name[0]))) for run in runs]
    )
    file = StringIO()
    print_ranking(ranking, file=file, width=width)
    text = file.getvalue()
    assert max(map(len, text.splitlines())) <= width
    interval = ranking.runs[0].interval
    assert interval is not None
    whole = f"{score_text(ranking.runs[0].score)} ({score_text(interval.low)}–{score_text(interval.high)})"
    # Of each run: its score, its category, three components and a metric.
    assert text.count(whole) == 3 * 6
    # Where three runs do not stand side by side, the rest stands below.
    assert text.count("p95 per question") == {40: 3, 60: 2}.get(width, 1)

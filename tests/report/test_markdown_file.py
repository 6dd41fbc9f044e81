"""Markdown that stays what it is, whatever a chatbot wrote."""

import re

from answerkey.model.run import Run
from answerkey.report.documents import markdown_report


def test_it_shows_the_grade_the_tables_and_the_reasons(golden_run: Run) -> None:
    text = markdown_report(golden_run)
    assert text.startswith(
        "- ❌ tax.score &gt;= 0.9 failed: 0.460\n- 6.7 of 12.5 lost points: the chatbot crashed"
    )
    assert "\n\n# candidate: B · 0.874 (95% interval 0." in text
    assert "| tax | F | 0.460 |" in text
    assert "  - missing keywords: depreciation (−0.08)" in text
    assert "❌ tax.score &gt;= 0.9 failed: 0.460" in text


def test_hostile_text_makes_no_markup(hostile_run: Run) -> None:
    text = markdown_report(hostile_run)
    assert "<script" not in text
    assert "<img" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text
    assert not re.search(r"(?<!\\)\[x", text)
    assert "https://" not in text
    assert "@everyone" not in text
    text.encode("utf-8")
    for line in text.splitlines():
        if line.startswith("| cat"):
            # The columns of the table are the table's own.
            assert len(re.findall(r"(?<!\\)\|", line)) == 7


def test_it_stays_small(hostile_run: Run) -> None:
    assert len(markdown_report(hostile_run)) < 65_536

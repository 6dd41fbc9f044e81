"""The scales of charts."""

import pytest

from answerkey.report.markup import Line, Moment, bar_chart, line_chart


@pytest.mark.parametrize(
    ("amounts", "labels"),
    [
        ((0.001, 0.0004), ["$0.0000", "$0.0002", "$0.0004", "$0.0006", "$0.0008", "$0.0010"]),
        ((0.0201, 0.019), ["$0.0000", "$0.0050", "$0.0100", "$0.0150", "$0.0200", "$0.0250"]),
        ((3.2, 1.0), ["$0.00", "$1.00", "$2.00", "$3.00", "$4.00"]),
    ],
)
def test_amounts_beside_a_scale_have_the_same_digits(amounts, labels):
    moments = [Moment(at=f"2026-11-{day}T00:00:00", name=str(day)) for day in (18, 19)]
    chart = line_chart([Line(name="cost", values=amounts)], moments, unit="money")
    assert [words for _, words in chart.scale] == labels


def test_counts_beside_a_scale_have_no_fractions():
    chart = bar_chart([[(1.0, "A", "one", None)]], ["today"])
    assert [words for _, words in chart.scale] == ["0", "1"]

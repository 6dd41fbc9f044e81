"""Comparing runs: paired by question, with a verdict that is right at its stated rate."""

from answerkey.comparison.comparison import Comparison, Measure
from answerkey.comparison.runs import compare, compare_runs

__all__ = ["Comparison", "Measure", "compare", "compare_runs"]

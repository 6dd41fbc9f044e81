"""Comparing runs: paired by question, with a verdict that is right at its stated rate."""

from answerkey.comparison.run_comparison import compare_runs
from answerkey.model.comparison import Comparison, Measure

__all__ = ["Comparison", "Measure", "compare_runs"]

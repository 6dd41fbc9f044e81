"""Simple arithmetic over the evidence: sums, differences, counts, averages, percentages, within bounds.

With enough numbers almost any figure is the difference or the ratio of some two of them. So a derivation counts only if
the clause speaks of it ("total", "average", "more than") or if there are so few numbers that chance has little room, and
groups of rows count only if the clause or the question names them.
"""

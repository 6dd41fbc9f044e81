"""Statistics for small, skewed, tied and bounded scores: intervals, tests and plans whose error rates were simulated.

Pure functions over numbers. Nothing here imports anything of ours but `errors`, and numpy is imported only by what
resamples.
"""

"""Runs: ask or read trials, grade them, store them, sum up."""

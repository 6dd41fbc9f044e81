"""Evaluating: a run flows one way, from question set over target and store to scorecards and summary."""

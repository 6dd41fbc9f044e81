"""Scorers: plain functions over typed records. Each turns one question and one reply into Scores."""

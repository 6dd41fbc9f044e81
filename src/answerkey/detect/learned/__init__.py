"""Notices of failure in prose: words have roles, sentences give evidence, a small model weighs it."""

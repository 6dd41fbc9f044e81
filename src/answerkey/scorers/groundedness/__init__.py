"""Groundedness: is every checkable claim of a reply supported by tool results, sources or the question?"""

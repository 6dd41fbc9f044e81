"""Streamed replies: events are collected as they arrive and put together into the document that would have come whole."""

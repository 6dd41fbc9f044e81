"""Readers for the parts of a reply (text, calls, sources, usage, errors) in the many shapes that chatbots give them."""

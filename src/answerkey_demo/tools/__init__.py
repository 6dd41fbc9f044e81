"""The three tools that the assistant works with, and the record of their calls."""

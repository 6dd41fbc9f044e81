"""The three tools that the assistant works with, their JSON schemas, and the record of their calls."""

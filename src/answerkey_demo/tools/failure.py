"""The exception that a tool raises when it cannot do what it was asked."""

__all__ = ["ToolExecutionError"]


class ToolExecutionError(Exception):
    """A tool was called and could not do it; the message is meant for the brain that called it."""

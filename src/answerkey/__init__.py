"""answerkey grades tool-using chatbots against an answer key."""

__version__ = "0.1.0"

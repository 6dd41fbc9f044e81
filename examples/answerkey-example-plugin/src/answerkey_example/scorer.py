"""The scorer `brevity`: 1.0 up to a number of words, then less the longer the reply is."""

from answerkey import Question, Reply, Score


def brevity(question: Question, reply: Reply, words: int = 10) -> Score:
    """`words` is an argument that a configuration or a check may give."""
    said = len((reply.text or "").split())
    return Score("brevity", min(1.0, words / said) if said else 0.0, f"{said} words")

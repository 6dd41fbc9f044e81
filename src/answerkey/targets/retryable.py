"""RetryableError: how a target tells the engine that asking again may help. A target never retries itself."""

from answerkey.model.reply import Failure

__all__ = ["RetryableError"]


class RetryableError(Exception):
    """The chatbot turned the question away before it worked on it: 429, 503 or a refused connection."""

    def __init__(self, failure: Failure, retry_after: float | None = None) -> None:
        super().__init__(failure.message)
        # What the reply's failure is if the retries are used up.
        self.failure = failure
        # Seconds that the chatbot asked to wait; None if it did not say.
        self.retry_after = retry_after

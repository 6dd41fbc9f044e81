"""Why a reply counts as an error."""

import msgspec

__all__ = ["DetectedFailure"]


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error."""

    # A kind of the scoring standard: empty, null, error_text, trace, malformed, timeout, rate_limit, …
    kind: str
    # The telling part of the reply, or what is wrong with it.
    message: str
    # Span of the telling part in the reply.
    start: int = 0
    end: int = 0

"""Why a reply counts as an error."""

import msgspec

__all__ = ["DetectedFailure"]


class DetectedFailure(msgspec.Struct, frozen=True):
    """Why a reply counts as an error."""

    # A response error of the scoring standard: empty, null, error_text, trace or malformed.
    kind: str
    # The telling part of the reply, or what is wrong with it.
    message: str
    # Span of the telling part in the reply.
    start: int = 0
    end: int = 0
    # What decided: the name of a form, or words of the reply in quotation marks, figures and concepts, the strongest first.
    because: tuple[str, ...] = ()
    # How likely it is an error; 1 where a form is certain.
    probability: float = 1.0

"""QuestionRecord: what one part of a log says of a question, on its way to where all parts of it are added up."""

import msgspec

from answerkey.model.tally import MeasuredQuestion, Names, Signature, Values

__all__ = ["SEVERAL", "QuestionRecord", "RecordBatch", "merged_question"]

# In the place of a checksum, where one id stands for several questions.
SEVERAL = -1


class QuestionRecord(msgspec.Struct, array_like=True, gc=False):
    """A question's replies in one part of a log."""

    id: str
    signature: Signature
    # The unit that it belongs to; None: it is one itself.
    group: str | None
    # Its position in the golden set, or the place of its first reply in the log.
    first: int
    # Checksum of what was asked, to tell when one id stands for several questions.
    wording: int
    # The place of the names in the batch, the values, and how many replies had them.
    values: list[tuple[int, Values, int]]
    # Replies whose row has no trial number, and the highest number that a row has.
    unnumbered: int
    highest: int
    # The places of the replies without a number, where results are kept.
    places: list[int]


class RecordBatch(msgspec.Struct, array_like=True):
    """Records of one part of a log, and the names of their values."""

    names: list[Names]
    records: list[QuestionRecord]


def merged_question(parts: list[tuple[list[Names], QuestionRecord]]) -> MeasuredQuestion:
    """A question as all parts of a log say it together."""
    if len(parts) == 1:
        # As in most logs of as many questions as replies.
        ((names, only),) = parts
        counted = {(names[place], found): times for place, found, times in only.values}
        return MeasuredQuestion(only.signature, only.group, only.first, counted)
    first = min((record for _, record in parts), key=lambda record: record.first)
    values: dict[tuple[Names, Values], int] = {}
    for names, record in parts:
        for place, found, times in record.values:
            key = (names[place], found)
            values[key] = values.get(key, 0) + times
    return MeasuredQuestion(first.signature, first.group, first.first, values)

"""Why points were lost: every component below 1.0 in words, with what it cost. The losses add up to 1 − score."""

from collections.abc import Iterator

import msgspec

from answerkey.model.scorecard import Score, Scorecard
from answerkey.report.value_wording import first_names, name_words, points
from answerkey.text.sanitise import one_line

# An error's message can be a whole page.
_MESSAGE_WIDTH = 160
_LISTED = 12


class Loss(msgspec.Struct, frozen=True):
    """One reason for lost points."""

    component: str
    # "missing keywords: depreciation"; for a conversation with its turn before it.
    words: str
    # Points of the question's 1.0; None: the component could not be scored, and so the reply was not.
    points: float | None

    def __str__(self) -> str:
        return f"{self.words} {points(self.points)}".rstrip()


def losses_of(card: Scorecard) -> tuple[Loss, ...]:
    """All that a scorecard lost, the costliest first; of a conversation, turn by turn."""
    if not card.turns:
        return tuple(sorted(_losses(card), key=_cost))
    share = 1 / len(card.turns)
    return tuple(
        Loss(
            loss.component,
            f"turn {number}: {loss.words}",
            None if loss.points is None else loss.points * share,
        )
        for number, turn in enumerate(card.turns, start=1)
        for loss in sorted(_losses(turn), key=_cost)
    )


def _cost(loss: Loss) -> float:
    return -1.0 if loss.points is None else -loss.points


def _losses(card: Scorecard) -> Iterator[Loss]:
    for name, score in card.components.items():
        if score.value is None:
            yield Loss(
                name, f"{name_words(name)}: {one_line(score.reason or 'not scored', _MESSAGE_WIDTH)}", None
            )
        elif score.value < 1 and score.weight:
            yield Loss(name, _words(name, score, card), score.weight * (1 - score.value))


def _words(name: str, score: Score, card: Scorecard) -> str:
    details = score.details
    if name == "response_quality":
        if details.get("forbidden"):
            return f"said what is forbidden: {first_names(details['forbidden'], _LISTED)}"
        if details.get("missing"):
            return f"missing keywords: {first_names(details['missing'], _LISTED)}"
    if name == "error_handling" and card.error is not None:
        message = one_line(card.error.message, _MESSAGE_WIDTH)
        if message and message.lower() != card.error.kind:
            return f"error: {name_words(card.error.kind)} – {message}"
        return f"error: {name_words(card.error.kind)}"
    reason = one_line(score.reason, 2 * _MESSAGE_WIDTH)
    if name in ("tool_usage", "error_handling") and reason:
        return reason
    return f"{name_words(name)}: {reason or f'{score.value:.2f}'}"

"""Replies that all failed in the same way because the target is not set up as it must be: nothing to charge to the chatbot."""

import re
from collections.abc import Sequence

from answerkey.model.reply import Failure, HarnessProblem
from answerkey.model.run import RunInfo
from answerkey.model.scorecard import unscored_card
from answerkey.model.trial import Trial
from answerkey.store.sql import SqlStore

__all__ = ["configuration_error", "without_configuration_errors"]

# Statuses that say: not with these credentials, not at this address, not by this method, not with this body.
_STATUS = re.compile(r"HTTP (401|403|404|405|422)\b")
# Neither the configured expression nor the usual names find a text.
_UNMAPPED = re.compile(r"reply\.text = .* finds nothing in the reply|the reply has no text under ")
_REMEDIES = {
    "401": "check the headers or the login of the target",
    "403": "check what the target's credentials allow",
    "404": "check the target's address",
    "405": "check the target's method",
    "422": "check the target's body",
}


def without_configuration_errors(store: SqlStore, info: RunInfo, results: Sequence[Trial]) -> Sequence[Trial]:
    """The results; where every reply is the same configuration error they are unscored, here and in the store."""
    found = configuration_error(results)
    if found is None:
        return results
    card = unscored_card(info.weights, *found)
    unscored = tuple(trial.scored(card) for trial in results)
    # In the place of their scores. The replies stay as they are: they are what was observed.
    store.add(info, unscored, with_replies=False)
    return unscored


def configuration_error(results: Sequence[Trial]) -> tuple[str, HarnessProblem] | None:
    """What is wrong with the target, if every reply says the same."""
    first: Failure | None = None
    status: str | None = None
    for trial in results:
        for reply in trial.replies:
            if reply.failure is None:
                return None
            kind = _kind(reply.failure)
            if kind is None or (first is not None and kind != status):
                return None
            first, status = first or reply.failure, kind
    if first is None or status is None:
        return None
    if status == "mapping":
        return (
            f"{first.message}; say where the text is under [targets.NAME.reply]: `answerkey ask` shows what came back",
            "mapping",
        )
    return f"every reply was {first.message}; {_REMEDIES[status]}", "configuration"


def _kind(failure: Failure) -> str | None:
    if failure.kind == "http" and (found := _STATUS.match(failure.message)):
        return found[1]
    return "mapping" if failure.kind in ("null", "malformed") and _UNMAPPED.match(failure.message) else None

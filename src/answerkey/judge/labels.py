"""People's verdicts on a run's replies, from a labelled file or from the feedback in the store, one for each reply."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import InputError, UsageError
from answerkey.model.feedback import Feedback, read_value
from answerkey.transcripts.row_files import read_rows

_FIELDS = ("correct", "verdict", "score", "label", "human", "value")
_RIGHT = frozenset(("pass", "passed", "correct", "right", "ok", "accept", "accepted"))
_WRONG = frozenset(("fail", "failed", "incorrect", "wrong", "reject", "rejected"))

# Question id and trial.
Key = tuple[str, int]


class Labels(msgspec.Struct, frozen=True, kw_only=True):
    """Verdicts by reply."""

    # Reply → whether people call it right.
    right: dict[Key, bool]
    # Reply → people's mean score, where right is 1 and wrong 0.
    scores: dict[Key, float] = {}
    # Replies on which people are evenly split; they are left out.
    split: int = 0
    source: str = ""
    # Whether people chose themselves what to judge, so that the labels are hardly a random sample.
    self_selected: bool = False


def labels_from_file(path: Path, known: Iterable[Key], *, pass_mark: float) -> Labels:
    """Rows of {id, trial, correct | verdict | score}; several verdicts on a reply are decided by the majority."""
    keys = set(known)
    trials: dict[str, set[int]] = defaultdict(set)
    for identity, trial in keys:
        trials[identity].add(trial)
    given: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    for line, row in read_rows(path):
        try:
            key, found = _key(row, trials), _verdict(row, pass_mark)
            if found is not None:
                given[key].append(found)
        except (ValueError, UsageError) as error:
            raise InputError(str(error), path=path, line=line) from None
    if not given:
        raise InputError("holds no verdict", path=path)
    return _majority(given, str(path))


def labels_from_mapping(
    given: Mapping[Any, bool | float], known: Iterable[Key], *, pass_mark: float
) -> Labels:
    """Question id, or (id, trial), → right or wrong, or a score."""
    keys = set(known)
    found: dict[Key, list[tuple[bool, float]]] = {}
    for named, value in given.items():
        key = named if isinstance(named, tuple) else (str(named), 1)
        if key not in keys:
            raise UsageError(f"labels: the run has no reply {named!r}")
        right = value if isinstance(value, bool) else value >= pass_mark
        found[key] = [(right, float(value))]
    return _majority(found, "labels")


def labels_from_feedback(verdicts: Iterable[Feedback], replies: Mapping[tuple[str, int], Key]) -> Labels:
    """Verdicts that people left in the store; `replies` finds the question of an (ask hash, trial)."""
    given: dict[Key, list[tuple[bool, float]]] = defaultdict(list)
    sources = set()
    for verdict in verdicts:
        if verdict.reply is None:
            continue
        key = replies.get((verdict.reply.ask_hash, verdict.reply.trial))
        if key is not None:
            given[key].append((verdict.positive, float(verdict.positive)))
            sources.add(verdict.source)
    return _majority(given, "feedback", self_selected="user" in sources)


def _majority(
    given: Mapping[Key, list[tuple[bool, float]]], source: str, *, self_selected: bool = False
) -> Labels:
    shares = {key: sum(right for right, _ in found) / len(found) for key, found in given.items()}
    right = {key: share > 0.5 for key, share in shares.items() if share != 0.5}
    scores = {key: sum(score for _, score in given[key]) / len(given[key]) for key in right}
    split = len(given) - len(right)
    return Labels(right=right, scores=scores, split=split, source=source, self_selected=self_selected)


def _key(row: Mapping[str, Any], trials: Mapping[str, set[int]]) -> Key:
    identity = row.get("id", row.get("question_id"))
    if isinstance(identity, bool) or not isinstance(identity, str | int):
        raise ValueError("has no 'id', so it cannot be told which question it is about")
    identity = str(identity)
    if identity not in trials:
        raise ValueError(f"the run has no reply to a question with id {identity!r}")
    trial = row.get("trial")
    if trial is None:
        if len(trials[identity]) > 1:
            raise ValueError(f"the run asked {identity!r} several times; say which with 'trial'")
        return identity, next(iter(trials[identity]))
    try:
        number = msgspec.convert(trial, int, strict=False)
    except msgspec.ValidationError:
        raise ValueError("'trial' must be a whole number") from None
    if number not in trials[identity]:
        raise ValueError(f"the run has no trial {number} of {identity!r}")
    return identity, number


def _verdict(row: Mapping[str, Any], pass_mark: float) -> tuple[bool, float] | None:
    """Whether a row calls its reply right, and its score; None if it was drawn to be labelled and is not yet."""
    for name in _FIELDS:
        value = row.get(name)
        if value is None:
            continue
        word = value.strip().lower() if isinstance(value, str) else None
        if word in _RIGHT or word in _WRONG:
            return word in _RIGHT, float(word in _RIGHT)
        try:
            number = read_value(value)
        except UsageError:
            raise ValueError(
                f"{name!r} is {str(value)[:40]!r}; write true or false, pass or fail, or a score from 0 to 1"
            ) from None
        return number >= (pass_mark if name == "score" else 0.5), number
    if any(name in row for name in _FIELDS):
        return None
    raise ValueError("has no verdict; give one as 'correct', 'verdict' or 'score'")

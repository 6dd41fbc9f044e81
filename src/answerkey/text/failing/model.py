"""How much the evidence of a reply's sentences counts: whether the reply as a whole is a notice of failure.

Fitted by `benchmarks/fit_errors.py` (logistic regression, ridge penalty 2) on labelled replies in prose; figures on unseen text
are in docs/errors-detected.md. What the names stand for is said in `features` and `reading`.
"""

import re

from answerkey.text.failing.evidence import evidence_in
from answerkey.text.failing.features import (
    FEATURES,
    INDEX,
    features,
    features_of,
    sentences_of,
    without_quotations,
)
from answerkey.text.failing.reading import NOT_DELIVERED, OWN_FAILURES
from answerkey.text.failing.roles import (
    END,
    NOW,
)
from answerkey.text.failing.words import roles_of

__all__ = ["COEFFICIENTS", "THRESHOLD", "explains", "failing_reply"]

COEFFICIENTS: dict[str, float] = {
    "bias": -3.43,
    "first_fails": 1.99,
    "last_fails": 1.27,
    "fails_and_delivers_nothing": 1.02,
    "fails_and_cannot_help": 0.59,
    "fails_and_apologises": 0.77,
    "nothing_now": 0.25,
    "retry": 1.37,
    "apology": 0.56,
    "help": 0.59,
    "facts_before": 0.54,
    "facts_after": -0.96,
    "facts_within": -1.48,
    "advice": -0.45,
    "others": -0.33,
    "mended": -0.54,
    "names": -1.05,
    "names_within": -0.05,
    "quote": -1.44,
    "code": 1.38,
    "other_sentences": -0.06,
    "words_after": 0.03,
    "cut_off": 0.73,
    "bare_failure": 0.51,
    "limit_spent": 0.70,
    "machine_does_not": 0.72,
    "machine_fails": 0.43,
    "machine_is_bad": 0.51,
    "machine_unreached": 0.50,
    "met_trouble": 0.30,
    "self_fails": 0.28,
    "status_met": 0.03,
    "thing_fails": -0.26,
    "thing_is_bad": 0.31,
    "thing_not_done": 0.91,
    "trouble_happened": 0.92,
    "cannot_operate": 0.53,
    "no_result": 1.18,
    "nothing_given": 0.26,
    "cannot_help": -0.16,
    "left_undone": 0.59,
    "somebody_fails": 1.66,
    "somebody_is_bad": 0.75,
    "past_failure": -0.57,
    "denied": -0.78,
    "talk": -1.03,
    "matter": -0.60,
    "answered": -0.39,
    "says_self": 0.97,
    "says_user": -0.14,
    "says_not": 0.27,
    "says_able": 1.01,
    "says_operation": 0.92,
    "says_done": 0.20,
    "says_result": 0.49,
    "says_machine": 1.15,
    "says_thing": 0.98,
    "says_failing": 0.98,
    "says_bad": 0.39,
    "says_trouble": 0.12,
    "says_now": 1.00,
    "says_explain": -0.53,
    "says_condition": -0.32,
    "says_others": -0.84,
    "says_it": -0.68,
    "says_limit": 0.04,
    "says_spent": -0.60,
    "says_status": -0.35,
    "says_meet": 0.14,
    "says_polite": 0.57,
    "says_asked": 0.33,
    "says_but": -0.54,
    "says_name": -0.61,
    "says_fact": -1.00,
    "says_advice": -0.09,
    "says_general": -0.23,
    "says_number": -0.71,
}
# The even chance.
THRESHOLD = 0.0
# Below this, talk about an error overrules a beginning that looks like one.
_EXPLAINED = -2.0
# Without one of these nothing failed, whatever the words.
_NEEDED = OWN_FAILURES | NOT_DELIVERED | {"left_undone", "somebody_fails", "somebody_is_bad"}
# Longer replies explain; a notice does not.
_LONGEST = 1500
_LABEL = re.compile(r"[\[(<*!=~-]+\s*([\w][^\[\]()<>{}]*?)\s*[\])>*!=~-]+")
_LONGEST_LABEL = 120
_WEIGHTS = tuple(COEFFICIENTS.get(name, 0.0) for name in FEATURES)


def failing_reply(text: str) -> tuple[int, int] | None:
    """The span of the telling sentence if a reply as a whole is a notice of failure, else None."""
    if len(text) > _LONGEST:
        return None
    label = _LABEL.fullmatch(text) if len(text) < _LONGEST_LABEL else None
    if label:
        # "[tool result missing]", "(no response)": in the place of an answer.
        return (0, len(text)) if any(s.fails or s.nothing for s in sentences_of(label[1])) else None
    if text[0] in "{[<":
        return None
    said = without_quotations(text)
    sentences = sentences_of(said)
    if all(
        _NEEDED.isdisjoint(s.evidence) and not ("cannot_help" in s.evidence and s.roles & NOW)
        for s in sentences
    ):
        return None
    values = features_of(text, said, sentences)
    return _telling_span(text) if _score(values) > THRESHOLD else None


def _score(values: list[float]) -> float:
    """The log-odds that a reply is a notice of failure."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True) if value)


def explains(text: str) -> bool:
    """Whether a reply that begins like an error message explains one: "KeyError: 'basis' happens because …"."""
    if len(text) > _LONGEST:
        return False
    values = features(text)
    return bool(values[INDEX["talk"]]) and _score(values) < _EXPLAINED


def _telling_span(text: str) -> tuple[int, int]:
    """The first sentence that tells of a failure, else the first that delivers nothing, else all."""
    spans: list[tuple[int, int, set[str]]] = []
    words: list[int] = []
    begin = 0
    for line in _LINE.finditer(text):
        for chunk in _CHUNK.finditer(text, *line.span()):
            begin = begin if words else chunk.start()
            words.append(roles_of(chunk.group()))
            if (words[-1] & END and len(words) > 1) or not text[chunk.end() : line.end()].strip():
                spans.append((begin, chunk.end(), evidence_in(words)))
                words = []
    for telling in (OWN_FAILURES, NOT_DELIVERED):
        for start, end, evidence in spans:
            if not telling.isdisjoint(evidence):
                return start, end
    return 0, len(text)


_LINE = re.compile(r"[^\n]+")
_CHUNK = re.compile(r"\S+")

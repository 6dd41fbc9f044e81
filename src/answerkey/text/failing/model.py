"""How much the evidence of a reply's sentences counts: whether the reply as a whole is a notice of failure.

Fitted by `benchmarks/fit_errors.py` (logistic regression, ridge penalty 2) on labelled replies in prose; figures on unseen text
are in docs/errors-detected.md. What the names stand for is said in `features` and `reading`.
"""

from answerkey.text.failing.evidence import evidence_in
from answerkey.text.failing.features import (
    FEATURES,
    INDEX,
    Sentence,
    features,
    features_of,
    sentences_of,
    without_quotations,
)
from answerkey.text.failing.reading import NOT_DELIVERED, OWN_FAILURES
from answerkey.text.failing.roles import (
    BAD,
    END,
    FAIL,
    NOW,
    TROUBLE,
)
from answerkey.text.failing.words import roles_of
from answerkey.text.lazy import lazy

__all__ = ["COEFFICIENTS", "THRESHOLD", "explains", "failing_reply"]

COEFFICIENTS: dict[str, float] = {
    "bias": -3.63,
    "first_fails": 2.02,
    "last_fails": 1.36,
    "fails_and_delivers_nothing": 1.17,
    "fails_and_cannot_help": 0.89,
    "fails_and_apologises": 0.67,
    "nothing_now": 0.15,
    "retry": 1.02,
    "apology": 0.61,
    "help": 0.75,
    "facts_before": 0.45,
    "facts_after": -0.99,
    "facts_within": -1.53,
    "advice": -0.84,
    "others": -0.42,
    "mended": -0.25,
    "names": -0.71,
    "names_within": -0.02,
    "quote": -1.30,
    "code": 0.85,
    "other_sentences": 0.21,
    "words_after": -0.12,
    "cut_off": 0.90,
    "quotes_failure": 0.17,
    "quotes_failure_and_nothing": 1.25,
    "bare_failure": 0.73,
    "limit_spent": 0.67,
    "machine_does_not": 0.81,
    "machine_fails": 0.23,
    "machine_is_bad": 0.08,
    "machine_unreached": 0.52,
    "met_trouble": 0.37,
    "self_fails": 0.50,
    "status_met": 0.07,
    "thing_fails": -0.08,
    "thing_is_bad": 0.28,
    "thing_not_done": 0.99,
    "trouble_happened": 1.03,
    "cannot_operate": 0.78,
    "no_result": 1.16,
    "nothing_given": 0.56,
    "cannot_help": 0.30,
    "left_undone": 0.33,
    "somebody_fails": 1.39,
    "somebody_is_bad": 0.71,
    "past_failure": -0.46,
    "denied": -1.04,
    "talk": -1.07,
    "matter": -0.47,
    "answered": -0.38,
    "says_self": 1.04,
    "says_user": 0.07,
    "says_not": 0.37,
    "says_able": 1.01,
    "says_operation": 0.83,
    "says_done": 0.28,
    "says_result": 0.58,
    "says_machine": 0.94,
    "says_thing": 0.98,
    "says_failing": 0.77,
    "says_bad": 0.74,
    "says_trouble": 0.06,
    "says_now": 1.25,
    "says_explain": -0.46,
    "says_condition": -0.51,
    "says_others": -0.81,
    "says_it": -0.77,
    "says_limit": 0.06,
    "says_spent": -0.73,
    "says_status": -0.12,
    "says_meet": 0.35,
    "says_polite": 0.06,
    "says_asked": 0.33,
    "says_but": -0.46,
    "says_name": -0.59,
    "says_fact": -0.75,
    "says_advice": -0.17,
    "says_general": -0.10,
    "says_number": -1.21,
}
# The even chance.
THRESHOLD = 0.0
# Below this, talk about an error overrules a beginning that looks like one.
_EXPLAINED = -2.0
# Without one of these nothing failed, whatever the words.
_NEEDED = OWN_FAILURES | NOT_DELIVERED | {"left_undone", "somebody_fails", "somebody_is_bad"}
# Longer replies explain; a notice does not.
_LONGEST = 1500
_LABEL = lazy(r"[\[(<*!=~-]+\s*([\w][^\[\]()<>{}]*?)\s*[\])>*!=~-]+")
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
    if text[0] in "{<" or text.startswith(("[{", '["')):
        return None
    said = without_quotations(text)
    sentences = sentences_of(said)
    if not any(map(_is_telling, sentences)) and not _cannot_help_for_trouble(sentences):
        return None
    values = features_of(text, said, sentences)
    return _telling_span(text) if _score(values) > THRESHOLD else None


def _score(values: list[float]) -> float:
    """The log-odds that a reply is a notice of failure."""
    return sum(weight * value for weight, value in zip(_WEIGHTS, values, strict=True) if value)


def _is_telling(sentence: Sentence) -> bool:
    evidence = sentence.evidence
    return not _NEEDED.isdisjoint(evidence) or ("cannot_help" in evidence and bool(sentence.roles & NOW))


def _cannot_help_for_trouble(sentences: list[Sentence]) -> bool:
    """ "I can't tell you" is a refusal, unless something bad is told beside it."""
    return any("cannot_help" in sentence.evidence for sentence in sentences) and any(
        sentence.roles & (FAIL | TROUBLE | BAD) for sentence in sentences
    )


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


_LINE = lazy(r"[^\n]+")
_CHUNK = lazy(r"\S+")

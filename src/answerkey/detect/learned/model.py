"""How much the evidence of a reply's sentences counts: whether the reply as a whole is a notice of failure.

Fitted by `benchmarks/fit_errors.py` (logistic regression, ridge penalty 2) on labelled replies in prose; figures on unseen text
are in docs/errors-detected.md. What the names stand for is said in `features` and `reading`.
"""

from answerkey.detect.learned.evidence import evidence_in
from answerkey.detect.learned.features import (
    FEATURES,
    INDEX,
    Sentence,
    features,
    features_of,
    sentences_of,
)
from answerkey.detect.learned.plain_words import without_quotations
from answerkey.detect.learned.reading import NOT_DELIVERED, OWN_FAILURES
from answerkey.detect.learned.roles import (
    BAD,
    END,
    FAIL,
    NOW,
    SELF,
    TROUBLE,
)
from answerkey.detect.learned.words import roles_of
from answerkey.text.lazy import lazy

__all__ = ["COEFFICIENTS", "THRESHOLD", "explains", "failing_reply", "fails_at_once", "refutes"]

COEFFICIENTS: dict[str, float] = {
    "bias": -2.97,
    "first_fails": 1.34,
    "last_fails": 0.61,
    "fails_and_delivers_nothing": 1.20,
    "fails_and_cannot_help": 1.07,
    "fails_and_apologises": 0.62,
    "nothing_now": 0.20,
    "retry": 1.49,
    "apology": 0.49,
    "help": 0.54,
    "facts_before": -0.10,
    "facts_after": -0.88,
    "facts_within": -1.17,
    "advice": -1.46,
    "others": -0.43,
    "mended": -0.67,
    "names": -0.95,
    "names_within": -0.07,
    "quote": -1.26,
    "code": 1.68,
    "other_sentences": 0.91,
    "words_after": 0.29,
    "cut_off": 1.28,
    "quotes_failure": -0.05,
    "quotes_failure_and_nothing": 1.16,
    "listed": -0.59,
    "yes_or_no": -0.50,
    "in_general": -0.22,
    "mends": -1.11,
    "explains_cause": -0.88,
    "unknown_words": -0.53,
    "unknown_share": -1.69,
    "only_notice": 0.96,
    "short_notice": 0.77,
    "bare_failure": 0.98,
    "limit_spent": 0.87,
    "machine_does_not": -0.06,
    "machine_fails": 0.68,
    "machine_is_bad": 0.08,
    "machine_unreached": 0.16,
    "met_trouble": 0.30,
    "self_fails": 0.89,
    "status_met": 0.56,
    "thing_fails": -0.09,
    "thing_is_bad": 0.33,
    "thing_not_done": 0.93,
    "too_slow": 0.34,
    "trouble_happened": 1.37,
    "cannot_operate": 0.78,
    "no_result": 1.10,
    "nothing_given": 0.18,
    "cannot_help": 0.16,
    "left_undone": 0.55,
    "somebody_fails": 1.07,
    "somebody_is_bad": 0.87,
    "past_failure": -0.79,
    "denied": -0.87,
    "talk": -1.46,
    "matter": -0.65,
    "answered": -0.50,
    "no_match": -0.35,
    "says_self": 0.87,
    "says_user": 0.31,
    "says_not": -0.20,
    "says_able": 0.90,
    "says_operation": 0.69,
    "says_done": 0.20,
    "says_result": 0.52,
    "says_machine": 1.01,
    "says_thing": 0.81,
    "says_failing": 1.10,
    "says_bad": 0.11,
    "says_trouble": 0.12,
    "says_now": 1.42,
    "says_explain": -0.83,
    "says_condition": -0.36,
    "says_others": -1.01,
    "says_it": -0.50,
    "says_limit": -0.02,
    "says_spent": -0.38,
    "says_status": -0.54,
    "says_meet": 0.24,
    "says_polite": 0.48,
    "says_asked": 0.76,
    "says_but": -0.34,
    "says_name": -0.01,
    "says_fact": -0.86,
    "says_advice": -0.38,
    "says_general": -0.36,
    "says_number": -1.35,
    "says_policy": -1.46,
    "says_does": -1.33,
    "says_tried": 1.05,
}
# A little above the even chance: to call an answer a failure costs more than to miss a failure.
THRESHOLD = 0.2
# Below this, talk about an error overrules a beginning that looks like one.
_EXPLAINED = -2.0
# Below this, what a reply says as a whole overrules a beginning that reads like a notice.
_REFUTED = -3.0
_SHORTEST_REFUTED = 5
# Without one of these nothing failed, whatever the words.
_NEEDED = OWN_FAILURES | NOT_DELIVERED | {"left_undone", "somebody_fails", "somebody_is_bad"}
# Longer replies explain; a notice does not.
_LONGEST = 1500
_LABEL = lazy(r"[\[(<*!=~-]+\s*([\w][^\[\]()<>{}]*?)\s*[\])>*!=~-]+")
_LONGEST_LABEL = 120
# A question that the reply goes on to answer, as in a list of them, tells of nothing that failed.
_ASKED = lazy(r"[^.!?\n]{3,200}\?\s+(?=\S)")
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
    asked = _ASKED.match(text)
    if asked:
        span = failing_reply(text[asked.end() :])
        return None if span is None else (span[0] + asked.end(), span[1] + asked.end())
    said = without_quotations(text)
    sentences = sentences_of(said)
    if not any(map(_is_telling, sentences)) and not _cannot_help_for_trouble(sentences):
        return None
    values = features_of(text, said, sentences)
    return _telling_span(text) if _score(values) > THRESHOLD else None


def fails_at_once(text: str, *, begins: bool) -> bool:
    """Whether a sentence of the bot about itself tells of a failure, or the first one if the reply begins with it.

    For what is said beside code: it seldom is a notice.
    """
    sentences = sentences_of(without_quotations(text))
    return any(
        (sentence.fails or sentence.nothing) and ((begins and not at) or sentence.roles & SELF)
        for at, sentence in enumerate(sentences)
    )


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


def refutes(text: str) -> bool:
    """Whether a reply that begins like a notice tells something else: "The system was down last Sunday, and your payment …"."""
    return (
        text.count(" ") >= _SHORTEST_REFUTED and len(text) <= _LONGEST and _score(features(text)) < _REFUTED
    )


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

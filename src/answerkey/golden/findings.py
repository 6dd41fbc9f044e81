"""Finding: something in a golden set that is wrong or measures less than it seems, where it stands and what to do."""

from collections.abc import Iterable
from typing import Any, Literal, get_args

import msgspec

from answerkey.model.question import Question
from answerkey.text.keyword import Keyword, describe_keyword
from answerkey.text.sanitise import one_line

# The worst first. An error makes a question unfair or meaningless, a warning makes it weaker, info is worth a look.
Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)

_NO_REPLY_FITS = "remove one of the two: no reply can satisfy both"
_AS_A_WORD = 'write {{"regex": "\\\\b{keyword}\\\\b"}}'
# Kind of finding → how bad it is, and what to change.
_RULES: dict[str, tuple[Severity, str]] = {
    "category-typo": ("warning", "use one spelling, if they are the same"),
    "common-word": ("warning", "use a specific value or a key concept instead"),
    "contained-keyword": ("info", "keep the longer one, or write them as a list of alternatives"),
    "duplicate-question": ("warning", "remove one, or use --repeat to ask every question several times"),
    "echo": ("warning", "use what only the answer contains instead"),
    "forbidden-alternative": ("warning", "remove the alternative or the forbidden keyword"),
    "forbidden-expected": ("error", _NO_REPLY_FITS),
    "forbidden-in-question": ("info", "make the forbidden keyword more specific"),
    "forbidden-in-reference": ("error", "remove it from one of them"),
    "forbidden-tool-expected": ("error", _NO_REPLY_FITS),
    "generic-term": ("warning", "use what is specific to the answer, for example a name or an amount"),
    "inside-words": ("warning", f"{_AS_A_WORD} or use --match smart, which respects words"),
    "keyword-spaces": ("warning", "remove the spaces"),
    "lone-tool": ("info", "check its name, or add questions that need it"),
    "long-keyword": ("warning", "split it into the facts that matter, or move it to reference_answer"),
    "no-expectations": ("warning", "add expected_keywords or expected_tools"),
    "no-id": ("info", "give it a short, stable id"),
    "not-in-reference": (
        "warning",
        "correct one of them: a reply that is the reference answer would lose points",
    ),
    "one-letter": ("warning", "use a longer and more specific value"),
    "pattern-matches-anything": ("error", "make it require something, or remove it"),
    "repeated-keyword": ("warning", "keep one"),
    "rubric-needs-judge": ("info", "run it with --judge MODEL; without one, its checks are unscored"),
    "short-number": ("warning", f"{_AS_A_WORD}, or add what it counts, as in “{{keyword}} units”"),
    "thin-category": (
        "warning",
        "add questions until it has at least {least}, or merge it with another category",
    ),
    "tool-typo": ("warning", "correct the name, if it is a slip: names compare exactly"),
    "uncategorised": ("info", "give them one: the report shows scores by category"),
    "unknown-field": ("info", "nothing, if they are notes; else give them a name that is known"),
}


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of `answerkey lint`."""

    # Stable name of the kind of finding.
    code: str
    severity: Severity
    # The line of the question in its file; None where the format has no lines.
    line: int | None
    # The question's id.
    id: str
    message: str
    # What to change.
    remedy: str


def finding(question: Question, code: str, message: str, **named: Any) -> Finding:
    """A finding on one question; `named` is what its remedy speaks of."""
    severity, remedy = _RULES[code]
    return Finding(
        code=code,
        severity=severity,
        line=question.line,
        id=question.id,
        message=message,
        remedy=remedy.format(**named),
    )


def quoted(part: Keyword) -> str:
    """A keyword or a name as findings show it."""
    return f"“{one_line(part if isinstance(part, str) else describe_keyword(part), 60)}”"


def worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings; None without any."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)

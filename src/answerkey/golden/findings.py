"""Finding: something in a golden set that is wrong or measures less than it seems, where it stands and what to do."""

from collections.abc import Iterable
from typing import Literal

import msgspec

from answerkey.model.question import Question

__all__ = ["SEVERITIES", "Finding", "Severity", "worst_severity"]

Severity = Literal["error", "warning", "info"]
# The worst first. An error makes a question unfair or meaningless, a warning makes it weaker, info is worth a look.
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One finding of `answerkey lint`."""

    # Stable name of the kind of finding.
    code: str
    severity: Severity
    # The line of the question in its file; None where the format has no lines, or for the whole set.
    line: int | None
    # The question's id; None for the whole set.
    id: str | None
    message: str
    # What to change.
    remedy: str

    @classmethod
    def of(cls, question: Question, code: str, severity: Severity, message: str, remedy: str) -> "Finding":
        """A finding on one question."""
        return cls(
            code=code, severity=severity, line=question.line, id=question.id, message=message, remedy=remedy
        )


def worst_severity(findings: Iterable[Finding]) -> Severity | None:
    """The worst severity among findings; None without any."""
    present = {finding.severity for finding in findings}
    return next((severity for severity in SEVERITIES if severity in present), None)

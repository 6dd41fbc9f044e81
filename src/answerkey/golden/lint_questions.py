"""`lint`: everything that can be said of a golden set without asking anybody."""

from answerkey.golden.findings import SEVERITIES, Finding
from answerkey.golden.lint_keywords import check_keywords
from answerkey.golden.lint_set import check_set
from answerkey.golden.set_vocabulary import Vocabulary
from answerkey.model.question import QuestionSet

__all__ = ["lint_questions"]


def lint_questions(questions: QuestionSet) -> list[Finding]:
    """All findings, in the order of the file, the worst first for each question."""
    vocabulary = Vocabulary(questions)
    findings = [finding for question in questions for finding in check_keywords(question, vocabulary)]
    findings.extend(check_set(questions))
    place = {question.id: index for index, question in enumerate(questions)}
    findings.sort(key=lambda finding: (place.get(finding.id or "", -1), SEVERITIES.index(finding.severity)))
    return findings

"""The language of gates, read strictly: a mistake is refused with its position, never guessed at.

    gate       = "no" "regression" ["in" name]
               | subject operator bound
    subject    = ["every" kind | kind quoted] [name]          without a name: the score
    kind       = "category" | "persona" | "tag" | "tools" | "length"
    operator   = ">=" | ">" | "<=" | "<" | "==" | "!="
    bound      = number ["%"] | grade                          a grade only for `grade`

`every category >= 0.70` holds if each category's score does; `category "Tax" tool_usage >= 0.9` looks at one.
"""

import re
from typing import Literal, NamedTuple

import msgspec

from answerkey.errors import UsageError

# Worst to best, so that a letter's index orders it.
GRADES = "FDCBA"
KINDS = ("category", "persona", "tag", "tools", "length")
# What a gate calls the parts of a difference, and what a comparison does.
DIFFERENCE_NAMES = {
    "difference": "mean",
    "difference_low": "low",
    "difference_high": "high",
    "p_value": "p_value",
}
# Names that only a comparison with a baseline can answer; each may be followed by ".COMPONENT".
COMPARISON_NAMES = (*DIFFERENCE_NAMES, "fixed", "broken", "new_errors")

_TOKEN = re.compile(
    r"""\s*(?:(?P<operator>>=|<=|==|!=|>|<)
          |(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?:\s*%)?)(?![\w.%])
          |"(?P<quoted>[^"]*)"
          |(?P<name>[A-Za-z_][\w@.:/()-]*))""",
    re.VERBOSE,
)

Operator = Literal[">=", ">", "<=", "<", "==", "!="]


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """A condition, as it was understood."""

    # As the user wrote it.
    text: str
    # What is looked at: "score", a component, a metric, "p95_latency_ms", "difference", "regression", …
    name: str
    operator: Operator | None = None
    bound: float = 0.0
    # The kind of slice ("category", …), when the gate is not about the whole run.
    kind: str | None = None
    # The one slice; None with a kind: every slice of it.
    slice_name: str | None = None

    @property
    def needs_comparison(self) -> bool:
        """Whether only a comparison with a baseline can answer it."""
        return self.name.partition(".")[0] in (*COMPARISON_NAMES, "regression")


class _Token(NamedTuple):
    kind: str
    text: str
    # Of its first character in the gate, from 1.
    position: int


def parse_gate(text: str) -> Gate:
    """Read one gate; raises UsageError that names the position of the first mistake."""
    return _Parser(text).gate()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.tokens: list[_Token] = []
        end = 0
        while rest := text[end:].strip():
            match = _TOKEN.match(text, end)
            position = text.index(rest[0], end) + 1
            if match is None:
                raise self._mistake(f"cannot read {rest[:12]!r}", position)
            kind = match.lastgroup or ""
            self.tokens.append(_Token(kind, match[kind], position))
            end = match.end()
        self.tokens.append(_Token("end", "", len(text.rstrip()) + 1))

    def gate(self) -> Gate:
        if len(self.tokens) == 1:
            raise self._mistake("is empty; write for example 'score >= 0.85'", 1)
        gate = self._no_regression() if self._has("name", "no") else self._condition()
        rest = self.tokens[self.at]
        if rest.text in ("and", "or"):
            raise self._mistake(
                f"{rest.text!r} is not known; give each condition a gate of its own", rest.position
            )
        self._next("end", "the end")
        return gate

    def _no_regression(self) -> Gate:
        self._next("name", "'no'")
        self._next("name", "'regression' after 'no'", "regression")
        if self._has("end"):
            return Gate(text=self.text, name="regression")
        self._next("name", "the end or 'in'", "in")
        return Gate(text=self.text, name="regression." + self._next("name", "a component"))

    def _condition(self) -> Gate:
        kind = slice_name = None
        if self._has("name", "every"):
            self.at += 1
            kind = self._next("name", "one of " + ", ".join(KINDS), *KINDS)
        elif self._has("name", *KINDS) and self.tokens[self.at + 1].kind == "quoted":
            kind = self._next("name", "a kind")
            slice_name = self._next("quoted", "a name")
        name = "score"
        if kind is None or self._has("name"):
            name = self._next("name", "a name such as 'score'")
        position = self.tokens[self.at].position
        operator = self._next("operator", "one of >= > <= < == !=")
        gate = Gate(
            text=self.text,
            name=name,
            operator=msgspec.convert(operator, Operator),
            bound=self._bound(name),
            kind=kind,
            slice_name=slice_name,
        )
        if gate.needs_comparison and kind is not None:
            raise self._mistake(f"{name!r} is not known for each {kind}", position)
        return gate

    def _bound(self, name: str) -> float:
        if name == "grade":
            return float(GRADES.index(self._next("name", "a grade (A, B, C, D or F)", *GRADES)))
        number = self._next("number", "a number")
        return float(number.rstrip("% \t")) / 100.0 if number.endswith("%") else float(number)

    def _has(self, kind: str, *texts: str) -> bool:
        """Whether the next token is of this kind, and one of these if there are any."""
        token = self.tokens[self.at]
        return token.kind == kind and (not texts or token.text in texts)

    def _next(self, kind: str, expected: str, *texts: str) -> str:
        token = self.tokens[self.at]
        if not self._has(kind, *texts):
            found = "the end" if token.kind == "end" else repr(token.text)
            raise self._mistake(f"expected {expected}, found {found}", token.position)
        self.at += 1
        return token.text

    def _mistake(self, what: str, position: int) -> UsageError:
        return UsageError(f"gate {self.text!r}, position {position}: {what}")

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
from typing import Literal

import msgspec

from answerkey.errors import UsageError

__all__ = ["COMPARISON_NAMES", "GRADES", "KINDS", "Gate", "parse_gate"]

# Worst to best, so that a letter's index orders it.
GRADES = "FDCBA"
KINDS = ("category", "persona", "tag", "tools", "length")
# Names that only a comparison with a baseline can answer; each may be followed by ".COMPONENT".
COMPARISON_NAMES = (
    "difference",
    "difference_low",
    "difference_high",
    "p_value",
    "fixed",
    "broken",
    "new_errors",
)

_TOKEN = re.compile(
    r"""\s*(?:(?P<operator>>=|<=|==|!=|>|<)
          |(?P<number>[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?)(?P<percent>\s*%)?(?![\w.%])
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


class _Token(msgspec.Struct, frozen=True):
    kind: str
    text: str
    value: float
    # Of its first character in the gate, from 1.
    position: int


def parse_gate(text: str) -> Gate:
    """Read one gate; raises UsageError that names the position of the first mistake."""
    return _Parser(text).gate()


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = list(self._tokens())
        self.at = 0

    def _tokens(self) -> "list[_Token]":
        tokens: list[_Token] = []
        position = 0
        end = len(self.text.rstrip())
        while position < end:
            match = _TOKEN.match(self.text, position)
            start = position + len(self.text[position:]) - len(self.text[position:].lstrip())
            if match is None:
                raise self._mistake(f"cannot read {self.text[start : start + 12]!r}", start + 1)
            kind = match.lastgroup or ""
            if kind == "percent":
                kind = "number"
            value = float(match["number"]) / (100.0 if match["percent"] else 1.0) if kind == "number" else 0.0
            tokens.append(_Token(kind, match[kind], value, start + 1))
            position = match.end()
        return tokens

    def gate(self) -> Gate:
        first = self._peek()
        if first is None:
            raise self._mistake("is empty; write for example 'score >= 0.85'", 1)
        negated = first.kind == "name" and first.text == "no"
        gate = self._no_regression() if negated else self._condition()
        rest = self._peek()
        if rest is not None:
            if rest.text in ("and", "or"):
                raise self._mistake(
                    f"{rest.text!r} is not known; give each condition a gate of its own", rest.position
                )
            raise self._mistake(f"expected the end, found {rest.text!r}", rest.position)
        return gate

    def _no_regression(self) -> Gate:
        self._next("name", "'no'")
        word = self._next("name", "'regression'")
        if word.text != "regression":
            raise self._mistake(f"expected 'regression' after 'no', found {word.text!r}", word.position)
        if self._peek() is None:
            return Gate(text=self.text, name="regression")
        preposition = self._next("name", "the end")
        if preposition.text != "in":
            raise self._mistake(f"expected the end or 'in', found {preposition.text!r}", preposition.position)
        return Gate(text=self.text, name="regression." + self._next("name", "a component").text)

    def _condition(self) -> Gate:
        kind, slice_name = self._slice()
        name = "score"
        token = self._peek()
        if token is not None and token.kind == "name":
            name = self._next("name", "a name").text
        elif kind is None:
            raise self._mistake(
                "expected a name such as 'score'", token.position if token else len(self.text) + 1
            )
        operator = self._next("operator", "one of >= > <= < == !=")
        gate = Gate(
            text=self.text,
            name=name,
            operator=msgspec.convert(operator.text, Operator),
            bound=self._bound(name),
            kind=kind,
            slice_name=slice_name,
        )
        if gate.needs_comparison and kind is not None:
            raise self._mistake(f"{name!r} is not known for each {kind}", operator.position)
        return gate

    def _slice(self) -> tuple[str | None, str | None]:
        token = self._peek()
        following = self.tokens[self.at + 1] if self.at + 1 < len(self.tokens) else None
        if token is not None and token.kind == "name" and token.text == "every":
            self.at += 1
            kind = self._next("name", "one of " + ", ".join(KINDS))
            if kind.text not in KINDS:
                raise self._mistake(f"expected one of {', '.join(KINDS)}, found {kind.text!r}", kind.position)
            return kind.text, None
        if token is not None and token.text in KINDS and following is not None and following.kind == "quoted":
            self.at += 2
            return token.text, following.text
        return None, None

    def _bound(self, name: str) -> float:
        token = self._peek()
        if name == "grade":
            letter = self._next("name", "a grade from A to F")
            if letter.text not in GRADES or len(letter.text) != 1:
                raise self._mistake(
                    f"expected a grade (A, B, C, D or F), found {letter.text!r}", letter.position
                )
            return float(GRADES.index(letter.text))
        if token is not None and token.kind == "name":
            raise self._mistake(f"expected a number, found {token.text!r}", token.position)
        return self._next("number", "a number").value

    def _peek(self) -> _Token | None:
        return self.tokens[self.at] if self.at < len(self.tokens) else None

    def _next(self, kind: str, expected: str) -> _Token:
        token = self._peek()
        if token is None:
            raise self._mistake(f"expected {expected}, found the end", len(self.text.rstrip()) + 1)
        if token.kind != kind:
            raise self._mistake(f"expected {expected}, found {token.text!r}", token.position)
        self.at += 1
        return token

    def _mistake(self, what: str, position: int) -> UsageError:
        return UsageError(f"gate {self.text!r}, position {position}: {what}")

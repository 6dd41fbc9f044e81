"""The exception tree: everything that answerkey raises on purpose, with the exit code that the command line gives it.

    AnswerkeyError                 base of all; never raised itself
    ├── UsageError                 exit 2: bad usage, configuration or input
    │   ├── InputError             a file that cannot be read as what it should be (names file, line, remedy)
    │   │   ├── BinaryFileError    one that holds no text or table at all
    │   │   ├── InputErrors        one with several problems, all listed
    │   │   └── NoReplyTextError   exit 3: a log in which no row has the text of a reply
    │   ├── ConfigError            a setting that is wrong
    │   ├── UnknownNameError       a run, target, scorer or format that does not exist
    │   ├── MissingExtraError      an optional dependency that is not installed (says which extra)
    │   ├── RunOwnedError          another process is asking this run's questions
    │   └── StoreError             the store cannot be opened, written or understood
    │       ├── StoreAwayError     it cannot be reached now; waiting may help
    │       ├── StoreMissingError  there is none at the address yet
    │       └── StoreFullError     it has no room, or its disk fails
    ├── TargetUnreachableError     exit 3: the chatbot could not be reached at all
    ├── TruthError                 exit 3: the data is not what the key needs (a precondition fails, a computed value is missing)
    └── InterruptedRunError        exit 130: stopped by the user; what was asked is kept

A failure of the chatbot while it is being asked is not here: it is data, a `Reply` with a `Failure`.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints


def nearest_name(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most like an unknown one, for "did you mean"; None: none is alike."""
    from difflib import get_close_matches  # slow to load, and only for errors

    return next(iter(get_close_matches(name, list(known), 1, cutoff)), None)


class AnswerkeyError(Exception):
    """Base of every error that answerkey raises on purpose; its message is one line that names the remedy."""

    exit_code = 2

    @property
    def lines(self) -> tuple[str, ...]:
        """The message, one line a problem."""
        return (str(self),)


class UsageError(AnswerkeyError):
    """The call, the configuration or an input file is wrong."""


class InputError(UsageError):
    """A file that cannot be read as what it should be."""

    def __init__(self, message: str, *, path: str | Path | None = None, line: int | None = None) -> None:
        # A Path makes one slash of the two in an address (s3://…).
        self.path = None if path is None else re.sub(r"^([a-z][\w+.-]+):/(?=[^/])", r"\1://", str(path))
        self.line = line
        # The message without file and line.
        self.reason = message
        where = "" if path is None else f"{self.path}:{line}: " if line is not None else f"{self.path}: "
        super().__init__(where + message)


class BinaryFileError(InputError):
    """A file that holds no text or table at all: a picture, a program."""


class NoReplyTextError(InputError):
    """A log in which no row has the text of a reply: it is under another name."""

    exit_code = 3


class InputErrors(InputError):  # noqa: N818  # it is several errors
    """A file with several problems."""

    # Problems that the message lists.
    most_listed = 50

    def __init__(self, problems: Sequence[InputError]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.lines))
        self.path = problems[0].path

    @property
    def lines(self) -> tuple[str, ...]:
        """Each problem with its file and first line, and on how many lines it is; then how many more problems there are."""
        first: dict[str, InputError] = {}
        for problem in self.problems:
            first.setdefault(problem.reason, problem)
        counts = Counter(problem.reason for problem in self.problems)
        shown = [*first][: self.most_listed]
        listed = [
            str(first[reason])
            + (f" (and on {counts[reason] - 1:,} more lines)" if counts[reason] > 1 else "")
            for reason in shown
        ]
        more = len(self.problems) - sum(counts[reason] for reason in shown)
        return (*listed, f"and {more:,} more problems") if more else tuple(listed)


class ConfigError(UsageError):
    """A setting that is wrong."""


class JudgeUnusableError(ConfigError):
    """A judge that cannot be asked at all."""


class UnknownNameError(UsageError):
    """A run, target, scorer or format that does not exist."""


class MissingExtraError(UsageError):
    """A feature whose optional dependency is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        self.extra = extra
        super().__init__(f"{feature} needs an optional dependency: pip install 'answerkey[{extra}]'")


class RunOwnedError(UsageError):
    """Another process is asking this run's questions."""


class StoreError(UsageError):
    """The store cannot be opened, written or understood."""


class StoreAwayError(StoreError):
    """The store cannot be reached now; waiting may help."""


class StoreMissingError(StoreError):
    """There is no store at the address yet."""


class StoreFullError(StoreError):
    """The store has no room, or its disk fails."""


class TargetUnreachableError(AnswerkeyError):
    """The chatbot could not be reached at all."""

    exit_code = 3


class TruthError(AnswerkeyError):
    """The data is not what the answer key needs: a precondition does not hold, or a computed value is missing."""

    exit_code = 3

    @property
    def lines(self) -> tuple[str, ...]:
        """Each cause, then how many more there are."""
        causes = str(self).split("\n")
        more = len(causes) - InputErrors.most_listed
        return (
            (*causes[: InputErrors.most_listed], f"and {more:,} more problems") if more > 0 else tuple(causes)
        )


class InterruptedRunError(AnswerkeyError):
    """Stopped by the user; what was asked is kept and can be resumed."""

    exit_code = 130


# Wording of msgspec's validation errors


_TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "null": "nothing",
}


def explain_validation(error: Exception, model: Any = None) -> str:
    """A validation error of msgspec in plain words, with the allowed values if the model is given.

    >>> explain_validation(ValueError("Expected `int`, got `str` - at `$.repeat`"))
    'repeat: must be a whole number, not text'
    """
    message, field = validation_parts(error)
    if types := re.fullmatch(r"Expected `(.+)`, got `(\w+)`", message):
        wanted = [_TYPES.get(name, name) for name in types[1].split(" | ") if name != "null"]
        received = "a fraction" if types[2] == "float" else _TYPES.get(types[2], types[2])
        message = f"must be {' or '.join(wanted)}, not {received}"
    elif missing := re.fullmatch(r"Object missing required field `(.+)`", message):
        message = f"{missing[1]!r} is missing"
    elif value := re.fullmatch(r"Invalid enum value (.+)", message):
        literals = [one for one in types_at(model, field) if get_origin(one) is Literal]
        allowed = [str(name) for one in literals for name in get_args(one)]
        message = f"{value[1]} is unknown" + (f"; use {', '.join(allowed)}" if allowed else "")
    return f"{field}: {message}" if field else message


def validation_parts(error: Exception) -> tuple[str, str]:
    """Message and field (`scoring.match`) of a validation error of msgspec."""
    message, _, field = str(error).partition(" - at `")
    return message, re.sub(r"\[\.\.\.\]", "", field.rstrip("`")).lstrip("$.")


def types_at(model: Any, field: str) -> list[Any]:
    """The types that a field (`scoring.match`) of a struct may have, containers left out."""
    types = [model]
    for name in re.findall(r"[A-Za-z_]\w*", field):
        struct = next((one for one in types if name in getattr(one, "__struct_encode_fields__", ())), None)
        types = [] if struct is None else _element_types(_hint(struct, name))
    return types


def _hint(struct: Any, name: str) -> Any:
    """The type of a field by its name in files."""
    fields = dict(zip(struct.__struct_encode_fields__, struct.__struct_fields__, strict=True))
    return get_type_hints(struct)[fields[name]]


def _element_types(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal or not get_args(hint):
        return [hint]
    return [part for one in get_args(hint) for part in _element_types(one)]

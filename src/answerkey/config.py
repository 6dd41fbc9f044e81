"""Settings: `answerkey.toml` or `[tool.answerkey]` in pyproject.toml, checked strictly, and the Options of a run."""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.options import JudgePrices, JudgeSettings, Options, Scoring

__all__ = ["DEFAULT_STORE", "Settings", "load_settings"]


DEFAULT_STORE = ".answerkey/answerkey.db"


class Settings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A configuration file."""

    # The golden set and the target that `run` uses when it is given none.
    questions: str | None = None
    target: str | None = None
    store: str | None = None
    run: dict[str, Any] = {}
    scoring: Scoring = Scoring()
    targets: dict[str, dict[str, Any]] = {}
    # Conditions that every run must meet: {expressions = ["score >= 0.85"]} or a plain list.
    gates: list[str] | dict[str, Any] = []
    judge: JudgeSettings = JudgeSettings()
    server: dict[str, Any] = {}
    # The file that all this came from.
    path: str | None = None

    @property
    def folder(self) -> Path:
        """The folder that relative paths in the file start from."""
        return Path(self.path).parent if self.path else Path()

    @property
    def gate_expressions(self) -> tuple[str, ...]:
        """The gates as expressions, however the file writes them."""
        if isinstance(self.gates, list):
            return tuple(self.gates)
        listed = self.gates.get("expressions", [])
        return tuple(str(expression) for expression in listed)

    def options(self, **overrides: Any) -> Options:
        """The Options of `[run]`, with what the caller gives on top (None: not given)."""
        given = {name: value for name, value in overrides.items() if value is not None}
        try:
            base = msgspec.convert({**self.run, **_plain(given)}, Options)
        except msgspec.ValidationError as error:
            raise ConfigError(_explain(error, self.path, "[run]", Options)) from None
        return msgspec.structs.replace(
            base,
            scoring=given.get("scoring", self.scoring),
            judge=given.get("judge", self.judge),
            gates=base.gates or self.gate_expressions,
        )


def _plain(given: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name not in ("scoring", "judge")}


def load_settings(folder: Path | None = None) -> Settings:
    """The settings in force in a folder: the nearest configuration file at or above it, or the defaults."""
    start = (folder or Path.cwd()).resolve()
    named = os.environ.get("ANSWERKEY_CONFIG")
    if named:
        return _read(Path(named), _parse(Path(named)))
    for place in (start, *start.parents):
        own = place / "answerkey.toml"
        if own.is_file():
            return _read(own, _parse(own))
        project = place / "pyproject.toml"
        if project.is_file():
            section = _parse(project).get("tool", {}).get("answerkey")
            if section is not None:
                return _read(project, section)
    return Settings()


def _parse(path: Path) -> dict[str, Any]:
    import tomllib  # only where there is a file to read

    try:
        return tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path}: not valid TOML: {error}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None


def _read(path: Path, section: Mapping[str, Any]) -> Settings:
    if "path" in section:
        raise ConfigError(f"{path}: unknown setting 'path'")
    try:
        return msgspec.convert({**section, "path": str(path)}, Settings)
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(error, str(path), "", Settings)) from None
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None


def _explain(error: msgspec.ValidationError, path: str | None, section: str, model: Any) -> str:
    """msgspec's message in the user's terms, with the setting that was probably meant."""
    where = f"{path}: " if path else ""
    message = str(error)
    if "unknown field" in message:
        name = message.split("`")[1]
        inside = message.rsplit("`", 2)[1].lstrip("$.") if "at `" in message else section.strip("[]")
        inner: Any = {"scoring": Scoring, "judge": JudgeSettings, "judge.prices": JudgePrices}.get(
            inside, model
        )
        fields = inner.__struct_fields__
        close = get_close_matches(name, fields, n=1)
        hint = f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(fields))}"
        return f"{where}unknown setting {name!r}{f' in [{inside}]' if inside else ''}{hint}"
    return f"{where}{section + ' ' if section else ''}{message.replace('`$.', '`')}"

"""Which version of a chatbot is asked: what its table says, the git commit of its code, its model and prompt."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from answerkey.errors import ConfigError
from answerkey.model.json_value import Json
from answerkey.model.target_version import TargetVersion, check_label
from answerkey.protocols import Target

__all__ = ["LABELS", "TargetLabels", "target_labels", "target_version"]

# Settings that every `[targets.NAME]` table may have: what the version that is asked is called.
LABELS = ("version", "tags")
# A checkout that takes longer to look through has no commit here: the run is more important.
_GIT_SECONDS = 3.0


class TargetLabels(msgspec.Struct, frozen=True):
    """What a table calls the version that is asked."""

    version: str | None = None
    # For every run of it.
    tags: tuple[str, ...] = ()


def target_labels(name: str | None, tables: Mapping[str, Mapping[str, Json]]) -> TargetLabels:
    """The labels of the table with this name; none where there is no such table."""
    table = tables.get(name or "", {})
    try:
        found = msgspec.convert({key: table[key] for key in LABELS if key in table}, TargetLabels)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[targets.{name}] {str(error).replace('`$.', '`')}") from None
    for what, labels in (("version", (found.version,)), ("tag", found.tags)):
        for label in labels:
            if label is not None:
                check_label(label, f"[targets.{name}] {what}")
    return found


def target_version(target: Target, labels: TargetLabels) -> TargetVersion:
    """What can be known of a target; nothing that goes wrong here is worth a run."""
    code = getattr(target, "code", None)
    commit = _commit_of(code) if isinstance(code, Path) else None
    model, prompt_hash = (getattr(target, name, None) for name in ("model", "prompt_hash"))
    return TargetVersion(
        version=labels.version,
        commit=None if commit is None else commit.name,
        changed=commit is not None and commit.changed,
        # Somebody's own target may call anything a model.
        model=model if isinstance(model, str) else None,
        prompt_hash=prompt_hash if isinstance(prompt_hash, str) else None,
    )


class _Commit(NamedTuple):
    name: str
    changed: bool


def _commit_of(code: Path) -> _Commit | None:
    """The commit of the folder that a file is in, or of a folder; None if it is in no checkout."""
    try:
        place = code.resolve()
        folder = place if place.is_dir() else place.parent
        found = _git(folder, "rev-parse", "--show-toplevel", "--short=10", "HEAD").splitlines()
        if len(found) != 2:
            return None
        status = _git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
        own = place.relative_to(Path(found[0]).resolve()).as_posix()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    # Files that git does not know are reports and the like, but for the chatbot's own.
    changed = any(line and (not line.startswith("??") or line[3:] == own) for line in status.split("\0"))
    return _Commit(found[1], changed)


def _git(folder: Path, *arguments: str) -> str:
    # A hook of another checkout says by its environment where that one is.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    done = subprocess.run(  # noqa: S603 - git, with words of ours and a folder
        # No program that a checkout names is started, and none of its files written.
        ["git", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments],  # noqa: S607 - as the user starts it
        env=environment | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_GIT_SECONDS,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")

"""TargetVersion: which version of a chatbot was asked, as far as that can be known."""

import msgspec

from answerkey.errors import UsageError

_LONGEST = 60


class TargetVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What tells one version of a chatbot from the next under the same name."""

    # As the configuration says it: `[targets.NAME] version`.
    version: str | None = None
    # The git commit of the folder that its code is in, and whether the folder has changes since.
    commit: str | None = None
    changed: bool = False
    # Of a model under test: its name, and the hash of its system prompt.
    model: str | None = None
    prompt_hash: str | None = None

    @property
    def words(self) -> str:
        """In one line; empty: nothing is known."""
        commit = self.commit and f"{self.commit}{' changed' if self.changed else ''}"
        prompt = self.prompt_hash and f"prompt {self.prompt_hash}"
        return ", ".join(part for part in (self.version, commit, self.model, prompt) if part)


def check_label(name: str, what: str) -> None:
    """Refuse a tag or a version that no list could show."""
    if not name.strip() or len(name) > _LONGEST or not name.isprintable():
        raise UsageError(f"{what} {name[:70]!r}: use up to {_LONGEST} printable characters")

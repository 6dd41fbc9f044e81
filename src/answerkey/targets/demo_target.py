"""The target `demo` and `demo:VARIANT`: the reference chatbot that comes with answerkey, asked in this process."""

from importlib.metadata import version
from typing import Any

import msgspec

from answerkey.errors import ConfigError, UsageError
from answerkey.model.reply import Reply
from answerkey.plugins import load_object
from answerkey.protocols import Ask, TargetContext
from answerkey.targets.resolve import refuse_other_settings
from answerkey.targets.secrets import settings_hash
from answerkey.targets.stopwatch import Stopwatch
from answerkey.transcripts.failures import failure_message
from answerkey.transcripts.fields.content_text import json_text
from answerkey.transcripts.reply_mapping import note_raw, reply_from_exception, reply_from_object


def make_demo_target(rest: str, context: TargetContext) -> "DemoTarget":
    """The factory of the kind `demo`: `rest` is the variant, empty for the chatbot as it should be."""
    refuse_other_settings(context, ("demo",))
    if not isinstance(context.settings["demo"], str):
        raise ConfigError(f"[targets.{context.name}] demo must be the name of a variant")
    return DemoTarget(rest or None, name=context.name)


class DemoTarget:
    """The embedded reference chatbot, behind the same contract as any chatbot over HTTP."""

    def __init__(self, variant: str | None = None, *, name: str | None = None) -> None:
        self._variant = variant
        self.name = name or (f"demo:{variant}" if variant else "demo")
        self.fingerprint = settings_hash("demo", [variant, version("answerkey")])
        self._chatbot: Any = None

    async def __aenter__(self) -> "DemoTarget":
        # Imported when it is opened: its language tools are heavy.
        open_chatbot = load_object("answerkey_demo:open_chatbot")
        try:
            self._chatbot = open_chatbot(self._variant) if self._variant else open_chatbot()
        except ValueError as error:
            raise UsageError(failure_message(f"target {self.name}: {error}")) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._chatbot = None

    async def ask(self, ask: Ask) -> Reply:
        """Ask it as its HTTP service would."""
        if self._chatbot is None:
            raise UsageError("the target is not open: use it in `async with`")
        watch = Stopwatch()
        try:
            said = await self._chatbot.ask(ask.question, ask.conversation_id)
            note_raw(lambda: json_text(said))
            reply = reply_from_object(said)
        except Exception as error:  # noqa: BLE001  # a chatbot that raises is data
            reply = reply_from_exception(error)
        return msgspec.structs.replace(reply, timings=watch.timings())

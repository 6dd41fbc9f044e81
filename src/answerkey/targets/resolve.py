"""From the text of a user to a target: `--target`, `[targets.NAME]`, live callables, replayed replies; its version and requests.

What is sent for a question: templates that are filled for each one, and values that last for a conversation. A template has
`{{question}}` and the like in a JSON structure. They are replaced as values, never pasted as text.

`replay:FILE` gives recorded replies, looked up by question and trial.
"""

import inspect
import os
import re
import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import msgspec

from answerkey.config import safe_url, settings_hash
from answerkey.errors import (
    AnswerkeyError,
    ConfigError,
    InputError,
    UnknownNameError,
    UsageError,
    explain_validation,
    nearest_name,
)
from answerkey.model.options import Price, TargetVersion, check_label, priced
from answerkey.model.reply import Failure, Fault, Json, Reply, Timings
from answerkey.plugins import load_object, targets
from answerkey.protocols import Ask, BaseTarget, RetryableError, Target, TargetContext, TargetWrapper
from answerkey.text.normalise import count, one_line, typed_alike
from answerkey.text.patterns import lazy
from answerkey.transcripts.fields import failure_message
from answerkey.transcripts.json_values import admit_reply, json_text
from answerkey.transcripts.payloads import ReplyMapping, note_raw, reply_from_exception, reply_from_object

# Bound here: a chatbot in the same process may replace the one in `time`.
_now = time.perf_counter


class Stopwatch:
    """Times one question; it starts when it is made, or later when the chatbot begins to work."""

    def __init__(self) -> None:
        self.start()

    def start(self) -> None:
        self._began = _now()
        self._first: float | None = None
        self._ended: float | None = None

    def chunk(self) -> None:
        """Part of the reply arrived."""
        if self._first is None:
            self._first = _now()

    def stop(self, at: float | None = None) -> None:
        """The reply is complete, now or at a time of time.perf_counter; later work is not the chatbot's time."""
        self._ended = _now() if at is None else at

    def resume(self) -> None:
        """Continue: the reply was not complete."""
        self._ended = None

    def timings(self) -> Timings:
        """The timings, up to now if it was not stopped."""
        ended = _now() if self._ended is None else self._ended
        return Timings(
            latency_ms=(ended - self._began) * 1000,
            first_byte_ms=None if self._first is None else (self._first - self._began) * 1000,
        )


class PricedTarget(TargetWrapper):
    """Adds the cost to each reply of another target."""

    def __init__(self, target: BaseTarget, price: Price) -> None:
        super().__init__(target)
        self._price = price

    async def ask(self, ask: Ask) -> Reply:
        """Ask, and add the cost."""
        try:
            return priced(await self.target.ask(ask), self._price)
        except RetryableError as error:
            if error.so_far is not None:
                error.so_far = priced(
                    msgspec.structs.replace(error.so_far, failure=error.failure), self._price
                )
            raise

    async def so_far(self, ask: Ask) -> Reply | None:
        """What a question that timed out had done, with its cost."""
        done = await self.target.so_far(ask)
        return None if done is None else priced(done, self._price)


class TargetAdapter(BaseTarget):
    """A target from a plug-in or a caller, which need not derive from BaseTarget.

    This is the one place that looks for optional members: everything else sees a BaseTarget. Its replies may contain
    anything; they are made fit for storing here.
    """

    def __init__(self, target: Target) -> None:
        self._own = target
        self._read_members()

    def _read_members(self) -> None:
        own = self._own
        self.name, self.fingerprint = own.name, own.fingerprint
        self.replays = bool(getattr(own, "replays", False))
        # Anything may be called a model or a capacity there.
        for name, kind in (
            ("code", Path),
            ("model", str),
            ("base_url", str),
            ("prompt_hash", str),
            ("tools_hash", str),
            ("capacity", int),
            ("takes_faults", bool),
        ):
            value = getattr(own, name, None)
            if isinstance(value, kind):
                setattr(self, name, value)

    async def __aenter__(self) -> Self:
        await self._own.__aenter__()
        # Some know their members only when they are open.
        self._read_members()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._own.__aexit__(*exc)

    async def _call(self, name: str, *arguments: object) -> Any:
        method = getattr(self._own, name, None)
        result = None if method is None else method(*arguments)
        return await result if inspect.isawaitable(result) else result

    async def check_reachable(self) -> bool:
        return bool(await self._call("check_reachable"))

    async def wait_for_room(self, ask: Ask) -> None:
        await self._call("wait_for_room", ask)

    async def ask(self, ask: Ask) -> Reply:
        return admit_reply(await self._own.ask(ask))

    async def observe(self, ask: Ask, reply: Reply) -> Reply:
        observed: Reply | None = await self._call("observe", ask, reply)
        return reply if observed is None else admit_reply(observed)

    async def so_far(self, ask: Ask) -> Reply | None:
        done: Reply | None = await self._call("so_far", ask)
        return None if done is None else admit_reply(done)

    def warnings(self) -> list[str]:
        method = getattr(self._own, "warnings", None)
        return [] if method is None else [str(line) for line in method()]


def make_demo_target(rest: str, context: TargetContext) -> "DemoTarget":
    """The factory of the kind `demo`; `rest` is the variant, empty for the correct chatbot."""
    refuse_other_settings(context, ("demo",))
    if not isinstance(context.settings["demo"], str):
        raise ConfigError(f"[targets.{context.name}] demo must be the name of a variant")
    return DemoTarget(rest or None, name=context.name)


class DemoTarget(BaseTarget):
    """The target `demo` and `demo:VARIANT`: the embedded reference chatbot, with the same contract as over HTTP."""

    def __init__(self, variant: str | None = None, *, name: str | None = None) -> None:
        from importlib.metadata import version  # slow to load

        self._variant = variant
        self.name = name or (f"demo:{variant}" if variant else "demo")
        self.fingerprint = settings_hash("demo", [variant, version("answerkey")])
        self._chatbot: Any = None
        self.takes_faults = True

    async def __aenter__(self) -> "DemoTarget":
        # Imported on opening: its language tools are heavy.
        open_chatbot = load_object("answerkey_demo:open_chatbot")
        try:
            self._chatbot = open_chatbot(self._variant) if self._variant else open_chatbot()
        except ValueError as error:
            raise UsageError(failure_message(f"target {self.name}: {error}")) from None
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._chatbot = None

    async def ask(self, ask: Ask) -> Reply:
        """Ask it like its HTTP service."""
        if self._chatbot is None:
            raise UsageError("the target is not open: use it in `async with`")
        watch = Stopwatch()
        try:
            fault = None if ask.fault is None else _demo_fault(ask.fault)
            answer = await self._chatbot.ask(ask.question, ask.conversation_id, fault=fault)
            note_raw(lambda: json_text(answer))
            reply = reply_from_object(answer)
        except Exception as error:  # noqa: BLE001  # a chatbot that raises is data
            reply = reply_from_exception(error)
        return msgspec.structs.replace(reply, timings=watch.timings())


def _demo_fault(fault: Fault) -> object:
    """A fault as the demo reads it from a request."""
    from answerkey.fault_points import write_header  # only runs of `faults` need it

    return load_object("answerkey_demo.tools:read_fault")(write_header(fault, _ANY_LENGTH))


# Longest value that is put into a fault for a chatbot in this process.
_ANY_LENGTH = 10**7
# How the built-in kinds are written on the command line.
TARGET_FORMS = (
    "demo, http://…, python:module:callable, file.py:callable, cmd:PROGRAM, "
    "openai:MODEL, openai-responses:MODEL, anthropic:MODEL, gemini:MODEL, ollama:MODEL, replay:FILE"
)

_Settings = TypeVar("_Settings", bound=msgspec.Struct)


def read_settings(context: TargetContext, model: type[_Settings]) -> _Settings:
    """The settings of one kind of target."""
    if context.name is None and not all(str(value).strip() for value in context.settings.values()):
        kind = next(iter(context.settings))
        raise UsageError(f"the target '{kind}:' is incomplete; write one of {TARGET_FORMS}")
    refuse_other_settings(context, model.__struct_encode_fields__)
    try:
        return msgspec.convert(dict(context.settings), model)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{_where(context)} {explain_validation(error, model)}") from None
    except ConfigError as error:
        raise ConfigError(f"{_where(context)} {error}") from None


def refuse_other_settings(context: TargetContext, known: Collection[str]) -> None:
    """Refuse settings that this kind of target does not have."""
    for key in context.settings:
        if key not in known:
            close = nearest_name(key, known)
            hint = f"did you mean {close!r}?" if close else f"there are {', '.join(sorted(known))}"
            raise ConfigError(f"{_where(context)} unknown setting {key!r}; {hint}")


def _where(context: TargetContext) -> str:
    return f"[targets.{context.name}]" if context.name else "the target"


# What callers may pass as a chatbot.
TargetLike = str | Callable[..., object] | Target


def resolve_target(
    spec: TargetLike,
    *,
    settings: Mapping[str, Mapping[str, Json]] | None = None,
    concurrency: int = 10,
    folder: Path | None = None,
    configured: str | None = None,
) -> BaseTarget:
    """The target of a spec.

    `settings` is the configuration's `[targets]` table, `configured` its `target`, and `folder` the folder of relative paths in
    both.
    """
    if isinstance(spec, Target) and not isinstance(spec, type):
        return TargetAdapter(spec)
    if not isinstance(spec, str):
        return _live_target(spec, concurrency)
    tables = settings or {}
    start = folder if folder != Path() else None
    if spec in tables:
        kind = _kind_of_table(spec, tables[spec])
        table = tables[spec]
        if kind in targets.built_in():
            table = {name: value for name, value in table.items() if name not in LABELS}
        context = TargetContext(settings=table, name=spec, folder=start, concurrency=concurrency)
    else:
        kind, rest = kind_and_rest(spec)
        base = start if spec == configured else None
        context = TargetContext(settings={kind: rest}, folder=base, concurrency=concurrency)
    if kind not in targets:
        raise _unknown(spec, kind, tables)
    return _make_target(kind, context)


def _live_target(chatbot: object, concurrency: int) -> BaseTarget:
    """The target of a caller's callable or agent."""
    # Imported here for start-up: few runs ask a live callable.
    from answerkey.targets.python_target import PythonTarget, as_function

    function = as_function(chatbot)
    if function is None:
        raise UsageError(
            f"a target is a callable, an object with .invoke, .ainvoke or .run, a Target or one of {TARGET_FORMS}; "
            f"not a {type(chatbot).__name__}"
        )
    return PythonTarget(function, concurrency=concurrency)


def kind_and_rest(spec: str) -> tuple[str, str]:
    """KIND:REST; an address is of the kind `url`, and `file.py:callable` of the kind `python`."""
    kind, colon, rest = spec.partition(":")
    if kind in ("http", "https", "ws", "wss") and colon:
        return "url", spec
    path, colon, name = spec.rpartition(":")
    if colon and path.endswith(".py") and name.isidentifier() and kind not in targets:
        return "python", spec
    return kind, rest


def _kind_of_table(name: str, table: Mapping[str, Json]) -> str:
    """The kind of a `[targets.NAME]` table: the one setting whose name is a kind's."""
    built_in = targets.built_in()
    # A plug-in's kind may have the name of a setting of a built-in kind, which takes precedence.
    kinds = [kind for kind in built_in if kind in table] or [
        kind for kind in targets.added() if kind in table
    ]
    if len(kinds) != 1:
        wrong = f"has {' and '.join(kinds)}" if kinds else "has no kind"
        known = ", ".join([*built_in, *targets.added()])
        raise ConfigError(f"[targets.{name}] {wrong}; give it exactly one of {known}")
    return kinds[0]


def _make_target(kind: str, context: TargetContext) -> BaseTarget:
    """Call the factory of a kind, with the context if it has a parameter for it."""
    make = targets.get(kind)
    setting = context.settings[kind]
    rest = setting if isinstance(setting, str) else ""
    try:
        if "context" in inspect.signature(make).parameters:
            made = make(rest, context=context)
        else:
            refuse_other_settings(context, (kind, *LABELS))
            if not isinstance(setting, str):
                raise ConfigError(f"[targets.{context.name}] {kind} must be text")
            made = make(rest)
    except AnswerkeyError:
        raise
    except Exception as error:
        if kind in targets.built_in():
            raise
        # The plug-in's fault.
        message = f"the target {kind!r} cannot be created: {type(error).__name__}: {error}"
        raise UsageError(failure_message(message)) from error
    if isinstance(made, BaseTarget) and kind in targets.built_in():
        return made
    if not isinstance(made, Target):
        raise UsageError(
            f"the plug-in for the target {kind!r} gave a {type(made).__name__}, which is not a Target"
        )
    return TargetAdapter(made)


def _unknown(spec: str, kind: str, tables: Mapping[str, object]) -> UnknownNameError:
    names = targets.names()
    close = nearest_name(spec, [*tables, *names]) or nearest_name(kind, names)
    if spec.endswith(".py"):
        close = f"{spec}:FUNCTION"
    elif re.match(r"[\w.-]+:\d+(/|$)", spec):
        close = f"http://{spec}"
    added = "".join(f", {name}:…" for name in targets.added())
    configured = f"; the configuration has {', '.join(sorted(tables))}" if tables else ""
    hint = f"did you mean {close!r}?" if close else f"write one of {TARGET_FORMS}{added}"
    return UnknownNameError(f"unknown target {safe_url(spec)!r}; {hint}{configured}")


# Settings of every `[targets.NAME]` table: labels of the version.
LABELS = ("version", "tags")
# A larger checkout has no commit here, so that it does not delay the run.
_GIT_SECONDS = 3.0


class TargetLabels(msgspec.Struct, frozen=True):
    """The labels of a target's version in its table."""

    version: str | None = None
    # Of every run of it.
    tags: tuple[str, ...] = ()


def target_labels(name: str | None, tables: Mapping[str, Mapping[str, Json]]) -> TargetLabels:
    """The labels in the table of this name; empty if there is no such table."""
    table = tables.get(name or "", {})
    try:
        found = msgspec.convert({key: table[key] for key in LABELS if key in table}, TargetLabels)
    except msgspec.ValidationError as error:
        raise ConfigError(f"[targets.{name}] {explain_validation(error)}") from None
    for what, labels in (("version", (found.version,)), ("tag", found.tags)):
        for label in labels:
            if label is not None:
                check_label(label, f"[targets.{name}] {what}")
    return found


def target_version(target: BaseTarget, labels: TargetLabels) -> TargetVersion:
    """The version of a target, as far as it is known; never fails."""
    commit = None if target.code is None else _commit_of(target.code)
    return TargetVersion(
        version=labels.version,
        commit=None if commit is None else commit.name,
        changed=commit is not None and commit.changed,
        model=target.model,
        prompt_hash=target.prompt_hash,
        tools_hash=target.tools_hash,
    )


class _Commit(NamedTuple):
    name: str
    changed: bool


def _commit_of(code: Path) -> _Commit | None:
    """The commit of a file or folder; None if it is not in a checkout."""
    try:
        path = code.resolve()
        folder = path if path.is_dir() else path.parent
        lines = run_git(folder, "rev-parse", "--show-toplevel", "--short=10", "HEAD").splitlines()
        if len(lines) != 2:
            return None
        status = run_git(folder, "status", "--porcelain", "-z", "--untracked-files=all", "--", ".")
        own = path.relative_to(Path(lines[0]).resolve()).as_posix()
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    # Untracked files are reports and the like, except for the chatbot itself.
    changed = any(line and (not line.startswith("??") or line[3:] == own) for line in status.split("\0"))
    return _Commit(lines[1], changed)


def run_git(folder: Path, *arguments: str, seconds: float = _GIT_SECONDS) -> str:
    """The output of a git command in a folder; raises subprocess.SubprocessError or OSError if it fails."""
    # In a git hook, GIT_… variables point to another checkout.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    # Start no program that the checkout configures, and write none of its files.
    safe = ("-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}")
    done = subprocess.run(  # noqa: S603 - git, with fixed arguments and a folder
        ["git", *safe, "-C", str(folder), *arguments],  # noqa: S607 - as the user starts it
        env=environment | {"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=seconds,
        check=True,
    )
    return done.stdout.decode("utf-8", "replace")


Messages = list[dict[str, str]]
_Value = TypeVar("_Value")

# The variables of a template. The question's id and expectations are not among them: a chatbot never sees those.
VARIABLES = ("question", "conversation_id", "turn", "trial", "context", "messages")

_SLOT = lazy(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")


class Template:
    """A JSON structure with variables; `where` is its setting in error messages."""

    def __init__(self, structure: object, where: str) -> None:
        self._structure = structure
        # The variables that it uses.
        self.names = frozenset(_names_in(structure, where))

    def fill(self, values: Mapping[str, object]) -> object:
        """The structure with values for its variables."""
        return _filled(self._structure, values) if self.names else self._structure


def values_of(ask: Ask, messages: list[dict[str, str]] | None = None) -> dict[str, object]:
    """The values of the variables for one question."""
    return {
        "question": ask.question,
        "conversation_id": ask.conversation_id,
        "turn": ask.turn,
        "trial": ask.trial,
        "context": ask.context,
        "messages": messages,
    }


def _names_in(structure: object, where: str) -> Iterator[str]:
    if isinstance(structure, str):
        for name in _SLOT.findall(structure):
            if name not in VARIABLES:
                close = nearest_name(name, VARIABLES)
                hint = f"did you mean {{{{{close}}}}}?" if close else f"there are {', '.join(VARIABLES)}"
                raise ConfigError(f"{where} uses {{{{{name}}}}}, which is unknown; {hint}")
            yield name
    elif isinstance(structure, (Mapping, list, tuple)):
        parts = structure.items() if isinstance(structure, Mapping) else structure
        for part in parts:
            yield from _names_in(part, where)


def _filled(structure: object, values: Mapping[str, object]) -> object:
    if isinstance(structure, Mapping):
        return {str(_filled(key, values)): _filled(part, values) for key, part in structure.items()}
    if isinstance(structure, (list, tuple)):
        return [_filled(part, values) for part in structure]
    if not isinstance(structure, str):
        return structure
    if whole := _SLOT.fullmatch(structure):
        # A slot that is the whole string keeps its type: a number stays a number, the messages a list.
        return values[whole[1]]
    return _SLOT.sub(lambda slot: _as_text(values[slot[1]]), structure)


def _as_text(value: object) -> str:
    return "" if value is None else value if isinstance(value, str) else msgspec.json.encode(value).decode()


class PerConversation(Generic[_Value]):
    """A value for each conversation in progress; older ones are dropped, so that memory stays flat."""

    def __init__(self, concurrency: int) -> None:
        # The turns of a conversation are asked one after the other, so older ones than these have ended.
        self._most = 2 * concurrency + 16
        self._values: dict[str, _Value] = {}

    def get(self, conversation_id: str) -> _Value | None:
        return self._values.get(conversation_id)

    def set(self, conversation_id: str, value: _Value) -> None:
        self._values.pop(conversation_id, None)
        self._values[conversation_id] = value
        if len(self._values) > self._most:
            del self._values[next(iter(self._values))]


class MessageHistory:
    """The messages of each conversation, for chatbots that are sent all of them."""

    def __init__(self, concurrency: int) -> None:
        self._messages: PerConversation[Messages] = PerConversation(concurrency)

    def begin_turn(self, conversation_id: str, question: str, turn: int) -> Messages:
        """The messages to send: everything before this turn, and the question."""
        # A turn that is retried or repeated starts from the same messages.
        before = (self._messages.get(conversation_id) or [])[: 2 * turn]
        return [*before, {"role": "user", "content": question}]

    def end_turn(self, conversation_id: str, sent: Messages, answer: str | None) -> None:
        """Add the answer for the next turns."""
        self._messages.set(conversation_id, [*sent, {"role": "assistant", "content": answer or ""}])


_Row = Mapping[str, Json]


class ReplaySettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a replay."""

    # Recorded replies, as `answerkey score` reads them.
    replay: str
    reply: ReplyMapping | None = None


def make_replay_target(rest: str, context: TargetContext) -> "ReplayTarget":
    """The factory of the kind `replay`."""
    return ReplayTarget(read_settings(context, ReplaySettings), name=context.name, folder=context.folder)


class ReplayTarget(BaseTarget):
    """Recorded replies as a chatbot. A question without a recorded reply is unscored: the chatbot was not asked."""

    # The recorded timings are used.
    replays = True

    def __init__(
        self, settings: ReplaySettings, *, name: str | None = None, folder: Path | None = None
    ) -> None:
        self._path = (folder or Path()) / settings.replay
        if not self._path.is_file():
            raise InputError("there is no such file", path=self._path)
        self._settings = settings
        self.name = name or f"replay:{settings.replay}"
        import hashlib  # loads OpenSSL, and most chatbots answer themselves

        with self._path.open("rb") as file:
            content = hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).hexdigest()
        self.fingerprint = settings_hash("replay", [content, settings.reply])
        # Question id, text, or text as others may type it → trial → the rows of its turns, in order.
        self._rows: dict[tuple[str, str], dict[int, dict[int, _Row]]] = {}
        # The keys of each row, by which rows of other questions are counted.
        self._keys_of_rows: list[list[tuple[str, str]]] = []
        self._asked: set[tuple[str, str]] = set()
        # Questions that got a row with their id which asks something else, each with what it asks.
        self._asked_otherwise: dict[str, str] = {}

    async def __aenter__(self) -> "ReplayTarget":
        from answerkey.transcripts.row_files import open_rows  # other targets read no rows

        counted: dict[tuple[str, str], int] = {}
        for line, row in open_rows(self._path, "replies").rows:
            keys = _keys(row)
            if not keys:
                message = "has neither 'id' nor 'question', so its question is unknown"
                raise InputError(message, path=self._path, line=line)
            self._keys_of_rows.append(keys)
            turn = _natural_number(row.get("turn"))
            trial = _natural_number(row.get("trial"))
            if trial is None:
                # Rows without a trial are numbered in order; further turns belong to the same trial.
                trial = counted.get(keys[0], 0) + (1 if not turn or keys[0] not in counted else 0)
                counted[keys[0]] = trial
            for key in keys:
                turns = self._rows.setdefault(key, {}).setdefault(trial, {})
                turns.setdefault(turn or 0, row)
        for key, trials in self._rows.items():
            if 0 in trials:
                # Recorded trials may count from 0, a run's count from 1.
                self._rows[key] = {trial + 1: turns for trial, turns in trials.items()}
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._rows = {}

    async def ask(self, ask: Ask) -> Reply:
        """The recorded reply; a failure if there is none."""
        text = ask.question
        keys = (("id", ask.question_id), ("question", text), ("alike", typed_alike(text)))
        self._asked.update(keys)
        # The ids of a log may be its own, such as row numbers: a row that asks the same comes first.
        for key, must_ask_the_same in ((keys[0], True), *((key, False) for key in (*keys[1:], keys[0]))):
            turns = self._rows.get(key, {}).get(ask.trial)
            if turns is None:
                continue
            other = "" if ask.turn else _asked_otherwise(turns, text)
            found = None if other and must_ask_the_same else self._find(turns, ask)
            if found is not None:
                if other:
                    self._asked_otherwise[ask.question_id] = other
                return found
        # Without the question, so that a report counts such replies on one line.
        parts = [f"turn {ask.turn + 1}"] if ask.turn else []
        parts += [f"trial {ask.trial}"] if ask.trial > 1 else []
        which = f" for {' of '.join(parts)}" if parts else ""
        message = f"no recorded reply{which} in {self._path.name}"
        return Reply(failure=Failure("not_recorded", failure_message(message)))

    def warnings(self) -> list[str]:
        """Rows that answer none of the questions, and rows that ask something else than the question with their id."""
        warnings, name = [], self._path.name
        others = [keys[0] for keys in self._keys_of_rows if self._asked.isdisjoint(keys)]
        if others:
            kind, value = others[0]
            warnings.append(
                f"{count(len(others), 'row')} of {name} not used: the golden set has no question with "
                f"{'id ' if kind == 'id' else ''}{value!r}; check the golden set"
            )
        if self._asked_otherwise:
            [(identity, asked), *_] = self._asked_otherwise.items()
            warnings.append(
                f"{count(len(self._asked_otherwise), 'question')} got a row of {name} that has the id but asks something else "
                f"(id {identity!r}: {one_line(asked, 60)!r}); leave out ids that are not those of the golden set"
            )
        return warnings

    def _find(self, turns: dict[int, _Row], ask: Ask) -> Reply | None:
        from answerkey.transcripts.recorded_rows import reply_in_row

        mapping = self._settings.reply
        if len(turns) == 1 and (0 in turns or 1 in turns):
            row = next(iter(turns.values()))
            return reply_in_row(row, ask.question, ask.turn, mapping)
        # One row for each turn, numbered from 0 or from 1.
        row_of_turn = turns.get(ask.turn + (0 if 0 in turns else 1))
        return None if row_of_turn is None else reply_in_row(row_of_turn, ask.question, 0, mapping)


def _asked_otherwise(turns: dict[int, _Row], text: str) -> str:
    """What the first row asks, if it is something else; empty if it is the same, or not in the row."""
    from answerkey.transcripts.recorded_rows import question_in_row

    asked = question_in_row(turns[min(turns)])
    return "" if asked is None or typed_alike(asked) == typed_alike(text) else asked


def _keys(row: _Row) -> list[tuple[str, str]]:
    from answerkey.transcripts.recorded_rows import question_in_row

    keys: list[tuple[str, str]] = []
    identity = next((row[name] for name in ("question_id", "id") if row.get(name) is not None), None)
    if isinstance(identity, (str, int)) and not isinstance(identity, bool):
        keys.append(("id", str(identity)))
    question = question_in_row(row)
    if question is not None:
        keys += [("question", question), ("alike", typed_alike(question))]
    return keys


def _natural_number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None

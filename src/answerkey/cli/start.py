"""`answerkey init`, `ask`, `doctor` and `demo`: the first steps with a chatbot."""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from difflib import unified_diff
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from answerkey.cli.command import (
    FILE,
    Answer,
    answers,
    conclude,
    flag,
    grouped,
    json_flag,
    map_flag,
    opened_store,
    option,
    print_document,
    progress_for_terminal,
    store_flag,
)
from answerkey.config import DEFAULT_STORE, Settings, load_settings
from answerkey.errors import AnswerkeyError, MissingExtraError, TargetUnreachableError, UsageError
from answerkey.text.normalise import for_terminal

if TYPE_CHECKING:
    from answerkey.runs.setup import AskResult, Probe
    from answerkey_demo import Chatbot


_FIRST_QUESTION = "What can you help me with?"
_REMEDY = (
    "; use --header for credentials, --body for another request, --reply text=JMESPATH for where the text is"
)
_NEXT = "next: complete golden.yaml, then `answerkey run -o report.html` and `answerkey show --failures`"
_CI_NEXT = (
    "for CI: this answerkey was installed from a local path; set ANSWERKEY_INSTALL in "
    ".github/workflows/answerkey.yml to what the job should install"
)


def _read_pairs(
    mark: str, example: str
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    def read(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in value:
            name, separator, rest = (part.strip() for part in text.partition(mark))
            if not (name and separator and rest):
                raise UsageError(f"{parameter.opts[0]} {text!r}: write it as {example}")
            pairs[name] = rest
        return pairs

    return read


class InitFlags(msgspec.Struct, frozen=True, kw_only=True):
    """The options of `init`."""

    target: str | None = option(
        "--target T", "Chatbot: http://…, file.py:function, cmd:PROGRAM, openai:MODEL …"
    )
    questions: tuple[str, ...] = option(
        "--question Q",
        "Probe with this question and make it a golden case (repeatable).",
        "questions",
        multiple=True,
    )
    headers: dict[str, str] = option(
        "--header NAME:VALUE",
        "Send this header; ${NAME} is read from the environment and never written to a file (repeatable).",
        "headers",
        multiple=True,
        callback=_read_pairs(":", "'Authorization: Bearer ${BOT_TOKEN}'"),
    )
    body: str | None = option(
        "--body JSON", 'Request body, e.g. {"input": {"text": "{question}"}}; without it, bodies are tried.'
    )
    login: str | None = option(
        "--login URL", "Log in here first: the reply has a token or sets cookies.", "login"
    )
    login_body: str | None = option(
        "--login-body JSON",
        'Body of the login, e.g. {"user": "ci", "password": "${BOT_PASSWORD}"}; ${NAME} is never written to a file.',
    )
    reply: dict[str, str] = option(
        "--reply PART=JMESPATH",
        "Where a part of the reply is, if the guess is wrong (repeatable).",
        multiple=True,
        callback=_read_pairs("=", "text=data.answer"),
    )
    timeout: float | None = option(
        "--timeout S", "Timeout of one attempt in seconds (default 60).", type=float
    )
    install: str | None = option(
        "--install WHAT", "What pip installs in the CI job, if answerkey is installed from a local path."
    )
    with_run: bool = option("--run/--no-run", "Grade the new golden set at once.", "with_run", default=True)


@click.command()
@grouped(InitFlags, "flags")
def init(flags: InitFlags) -> None:
    """Set up a project: probe a chatbot, show how its reply is read, write the files, run.

    Writes answerkey.toml, golden.yaml, .github/workflows/answerkey.yml and a line of .gitignore into the current
    folder. Existing files are not overwritten: with an answerkey.toml that names a target, only what is missing is added.
    Without a terminal, --target is required.

    \b
    Examples:
      answerkey init --target http://localhost:8000/chat --question "What is our address?"
      answerkey init --target https://bot.example.com/ask --header 'Authorization: Bearer ${BOT_TOKEN}'
      answerkey init --target http://localhost:8000/chat --body '{"input": {"text": "{question}"}}'
      answerkey init --target http://localhost:8000/chat --login http://localhost:8000/login --login-body '{"key": "${KEY}"}'
      answerkey init --target bot.py:answer --no-run
    """
    from answerkey.report.layout import make_console
    from answerkey.report.terminal_texts import print_asked
    from answerkey.runs.api import evaluate
    from answerkey.runs.setup import CONFIG, installed_from, missing_files, starter_files, write_new

    folder = Path.cwd()
    settings = load_settings() if (folder / CONFIG).exists() else None
    if settings is not None and (flags.target or settings.target is None):
        remedy = "leave --target out to add what is missing" if settings.target else "add target = ... to it"
        raise UsageError(f"{CONFIG} already exists; {remedy}")
    probe = _probed(flags, settings)
    first = probe.answered[0]
    print_asked(first, make_console())
    _refuse_without_answer(first)
    source = installed_from() if flags.install is None else flags.install
    if settings is None:
        files = starter_files(probe, source)
    else:
        files = missing_files(settings, probe, source)
        _complete_config(folder / CONFIG, settings)
    written, existing = write_new(files, folder)
    unchanged = f"; already there, unchanged: {', '.join(existing)}" if existing else ""
    click.echo(f"\nwrote: {', '.join(written) or 'nothing'}{unchanged}")
    if flags.with_run:
        progress = progress_for_terminal()
        conclude(lambda: evaluate(settings=load_settings(), name="first", progress=progress))
    click.echo(_NEXT if source else f"{_NEXT}\n{_CI_NEXT}")


def _probed(flags: InitFlags, settings: Settings | None) -> "Probe":
    """Ask the configured chatbot, or the one of the flags, a first question."""
    from answerkey.runs.context import wait_for
    from answerkey.runs.setup import body_from_text, login_table, probe_configured, probe_target

    options = (settings or Settings()).options(timeout=flags.timeout, gates=())
    if settings is not None:
        return wait_for(probe_configured(settings, flags.questions or (_FIRST_QUESTION,), options))
    target, questions = _target_and_questions(flags)
    return wait_for(
        probe_target(
            target,
            questions,
            options,
            headers=flags.headers,
            reply=flags.reply,
            body=None if flags.body is None else body_from_text(flags.body),
            login=login_table(flags.login, flags.login_body),
            report=partial(click.echo, err=True),
        )
    )


def _refuse_without_answer(first: "AskResult") -> None:
    """Files that are written for a chatbot that does not answer would be wrong."""
    from answerkey.model.reply import SYSTEM_ERRORS

    if first.misconfigured is not None:
        raise TargetUnreachableError(f"{first.misconfigured} (no file was written{_REMEDY})")
    failure = first.reply.failure
    if failure is not None and failure.kind in SYSTEM_ERRORS:
        more = "; --timeout allows it more time" if failure.kind == "timeout" else ""
        raise TargetUnreachableError(
            f"the chatbot did not answer: {failure.message} (no file was written; run init again once it answers{more})"
        )


def _complete_config(path: Path, settings: Settings) -> None:
    """Add the missing settings to an existing configuration, and show the difference."""
    from answerkey.runs.setup import completed_config

    before = path.read_text(encoding="utf-8")
    after = completed_config(before, settings)
    if after == before:
        return
    lines = unified_diff(before.splitlines(), after.splitlines(), path.name, path.name, lineterm="")
    click.echo("\n" + "\n".join(lines))
    path.write_text(after, encoding="utf-8")


def _target_and_questions(flags: InitFlags) -> tuple[str, tuple[str, ...]]:
    """The chatbot and the questions to probe it with; prompts for what is missing if there is a terminal."""
    prompting = sys.stdin.isatty() and not flags.target
    if not flags.target and not prompting:
        raise UsageError("--target is required without a terminal, e.g. --target http://localhost:8000/chat")
    target = flags.target or click.prompt("Chatbot (http://…, file.py:function, cmd:PROGRAM)")
    if flags.questions:
        return target, flags.questions
    question = click.prompt("Test question", default=_FIRST_QUESTION) if prompting else _FIRST_QUESTION
    return target, (question,)


@click.command()
@click.argument("question")
@flag("--target T", "Chatbot: http://…, file.py:function, a configured name …")
@flag("--questions", "Golden set to look QUESTION up in (default: the configured one).", type=FILE)
@map_flag
@flag("--timeout S", "Timeout of one attempt in seconds (default 60).", type=float)
@flag("--raw", "Print only the raw reply.", is_flag=True)
@answers
def ask(
    question: str,
    target: str | None,
    questions: Path | None,
    fields: dict[str, str],
    timeout: float | None,
    raw: bool,
) -> Answer:
    """Ask one question; show the raw reply, where each part was read from, and what was not read.

    QUESTION is any text, or the id or text of a golden case, which is then scored too. Nothing is stored. Exits with
    code 3 if the target is configured wrongly, and with code 1 if the reply is an error.

    \b
    Examples:
      answerkey ask "What is our address?" --target http://localhost:8000/chat
      answerkey ask address --target bot.py:answer --questions golden.jsonl
      answerkey ask "Hello!" --raw
    """
    from answerkey.report.layout import make_console
    from answerkey.report.terminal_texts import print_asked, raw_text
    from answerkey.runs.context import choose_target, wait_for
    from answerkey.runs.setup import ask_once, find_case

    settings = load_settings()
    case = find_case(question, None if questions is None else str(questions), settings, fields)
    chosen = choose_target(target, settings, questions=questions)
    result = wait_for(ask_once(case or question, chosen, settings.options(timeout=timeout), settings))
    code = 0 if result.reply.failure is None else 1
    if result.misconfigured is not None:
        code = TargetUnreachableError.exit_code
    text = (lambda: click.echo(raw_text(result))) if raw else (lambda: print_asked(result, make_console()))
    return Answer(result.to_dict(), text, code, error=result.misconfigured or "")


# Extra → a module that only this extra installs.
_EXTRAS = {
    "server": "starlette",
    "mcp": "mcp",
    "observe": "aiohttp",
    "parquet": "pyarrow",
    "postgres": "psycopg",
    "remote": "fsspec",
    "retrieval": "ir_measures",
    "json-schema": "jsonschema_rs",
    "entailment": "onnxruntime",
    "local-judge": "xllamacpp",
}
_SIGNS = {"ok": "✓", "wrong": "✗", "note": "–"}
# Less free space than this, in bytes, is a problem.
_LOW_DISK_SPACE = 200_000_000


class Check(msgspec.Struct, frozen=True):
    """One thing that `doctor` checks."""

    check: str
    # ok, wrong or note.
    state: str
    found: str


@click.command()
@flag("--target T", "Chatbot to reach (default: the configured one).")
@store_flag
@answers
def doctor(target: str | None, store: str | None) -> Answer:
    """Check the setup: configuration, golden set, chatbot, store, extras.

    The chatbot is connected to, but not asked, and no Python file or program of the project is run.
    Exits with code 1 if something is wrong.

    \b
    Examples:
      answerkey doctor
      answerkey doctor --target http://localhost:8000/chat --json
    """

    checks = list(_checks(target, store))
    lines = [f"{_SIGNS[one.state]} {one.check:<14}{' '.join(one.found.split())}" for one in checks]
    wrong = any(one.state == "wrong" for one in checks)
    return Answer({"checks": checks}, "\n".join(map(for_terminal, lines)), int(wrong))


def _checks(target: str | None, store: str | None) -> Iterator[Check]:
    from answerkey import __version__

    system = f"{__version__}, Python {platform.python_version()}, {platform.system()}"
    yield Check("answerkey", "ok", system)
    try:
        settings = load_settings()
    except AnswerkeyError as error:
        yield Check("configuration", "wrong", str(error))
        return
    if settings.path:
        yield Check("configuration", "ok", str(settings.path))
    else:
        yield Check("configuration", "note", "none, using defaults (`answerkey init` creates one)")
    yield _checked("golden set", lambda: _check_golden_set(target or settings.target, settings))
    if settings.truth or settings.world:
        yield _checked("truth", lambda: _check_truth(settings))
    yield _checked("chatbot", lambda: _check_chatbot(target or settings.target, settings))
    yield _checked("store", lambda: _check_store(store, settings))
    yield _check_gitignore()
    missing = [extra for extra, module in _EXTRAS.items() if find_spec(module) is None]
    installed = ", ".join(extra for extra in _EXTRAS if extra not in missing) or "none"
    absent = f"; not installed: {', '.join(missing)}" if missing else ""
    yield Check("extras", "note" if missing else "ok", installed + absent)


def _checked(name: str, check: Callable[[], tuple[str, str]]) -> Check:
    try:
        return Check(name, *check())
    except AnswerkeyError as error:
        return Check(name, "wrong", str(error))


def _check_golden_set(target: str | None, settings: Settings) -> tuple[str, str]:
    from answerkey.golden.lint import lint_questions, worst_severity
    from answerkey.runs.context import golden_set

    if not settings.questions and target is not None and target.partition(":")[0] != "demo":
        return "note", 'none configured; name yours: questions = "golden.yaml" in answerkey.toml'
    questions = golden_set(None, settings)
    findings = lint_questions(questions, whole_numbers=settings.scoring.whole_numbers)
    name = questions.path if settings.questions else "bundled"
    text = f"{name}: {len(questions)} questions, {len(findings)} findings of `answerkey lint`"
    return ("wrong" if worst_severity(findings) == "error" else "ok"), text


def _check_truth(settings: Settings) -> tuple[str, str]:
    """Whether the preconditions hold and every expectation can be computed."""
    from answerkey.runs.context import compute_truth, golden_set

    if own := [source.python for source in settings.truth.values() if source.python]:
        # A command that only looks must not run the project's code.
        return "note", f"not computed, since {own[0]} would be run; `answerkey truth` computes it"
    resolved = compute_truth(golden_set(None, settings), settings)
    world = resolved.truth.world
    holding = sum(check.holds for check in world)
    text = f"{resolved.truth.computed} values computed, {holding} of {len(world)} preconditions hold"
    if not resolved.problems:
        return "ok", text
    more = f"; and {len(resolved.problems) - 1} more (answerkey truth)" if len(resolved.problems) > 1 else ""
    return "wrong", f"{text}; {resolved.problems[0]}{more}"


def _check_chatbot(target: str | None, settings: Settings) -> tuple[str, str]:
    if target is None:
        return "note", "none configured; `answerkey init --target T` adds one"
    from answerkey.runs.context import wait_for
    from answerkey.targets.resolve import resolve_target

    # No project code is run: a Python chatbot or program is started by `ask` only.
    chosen = resolve_target(
        target, settings=settings.targets, folder=settings.folder, configured=settings.target
    )
    if not wait_for(chosen.check_reachable()):
        return (
            "note",
            f"{chosen.name}: not started; `answerkey ask` starts it and shows how its replies are read",
        )
    return "ok", f"{chosen.name} is reachable; `answerkey ask` shows how its replies are read"


def _check_store(store: str | None, settings: Settings) -> tuple[str, str]:
    path = Path(settings.folder / (settings.store or DEFAULT_STORE))
    if store is None and "://" not in (settings.store or "") and not path.exists():
        return "note", f"{path}: does not exist yet; the first run creates it"
    with opened_store(store) as opened:
        text = f"{opened.address}: {len(opened.list_infos())} runs"
        if opened.database.read_only:
            return "wrong", f"{text}, read-only"
        free = shutil.disk_usage(path.parent if path.parent.exists() else Path()).free
        return ("wrong", f"{text}, disk almost full") if free < _LOW_DISK_SPACE else ("ok", text)


def _check_gitignore() -> Check:
    """Whether git would commit the store."""
    folder = Path.cwd()
    root = next((path for path in (folder, *folder.parents) if (path / ".git").exists()), None)
    if root is None:
        return Check("git", "note", "not a git repository")
    file = root / ".gitignore"
    lines = file.read_text(errors="replace").split() if file.exists() else []
    if any(line.strip("/") == ".answerkey" for line in lines):
        return Check("git", "ok", ".answerkey/ is ignored")
    return Check("git", "wrong", "add .answerkey/ to .gitignore")


_variant_flag = flag(
    "--variant V",
    'Variant: default, basic, openai or flaky (also "flaky?kinds=timeout,empty&rate=0.3&seed=7").',
    default="default",
)
_data_flag = flag(
    "--data",
    "Answer from this copy of the data folder.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)


@click.group()
def demo() -> None:
    """Use the reference chatbot: an assistant for a small, fictional rental company.

    \b
    Examples:
      answerkey demo run -o report.html
      answerkey demo ask "What was my rental income in August 2024?"
      answerkey demo serve --port 8000
    """


@demo.command("run", context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF RUN]")
def demo_run(options: tuple[str, ...]) -> int:
    """Grade the reference chatbot on its bundled golden set; the same as `answerkey run demo`.

    \b
    Examples:
      answerkey demo run
      answerkey demo run --sample 20 -o report.html
    """
    from answerkey.cli.grade import run

    return int(run.main(["demo", *options], prog_name="answerkey run", standalone_mode=False) or 0)


@demo.command("ask")
@click.argument("question")
@_variant_flag
@_data_flag
@json_flag
def demo_ask(question: str, variant: str, data: Path | None, as_json: bool) -> int:
    """Ask one question; "-" reads it from standard input.

    \b
    Examples:
      answerkey demo ask "What is our property's total basis?"
      echo "Is anything overdue?" | answerkey demo ask - --json
    """

    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    chatbot = _open_chatbot(variant, data)
    try:
        reply = chatbot.ask_sync(question)
    except Exception as error:
        if variant.startswith(("flaky", "demo:flaky", "openai", "demo:openai")):
            raise UsageError(f"the assistant failed: {type(error).__name__}: {error}") from error
        raise
    if as_json:
        print_document(reply)
        return 0
    click.echo(for_terminal(reply["answer"] or "(no answer)"))
    used = ", ".join(f"{call['name']} ({call['duration_ms']:.0f} ms)" for call in reply["tool_calls"])
    click.echo(f"\ntools:   {used or 'none'}")
    for source in reply["sources"]:
        click.echo(for_terminal(f"source:  {source['title']} [{source['id']}] {source['score']:.2f}"))
    return 0


@demo.command("serve")
@flag("--host", "Address to listen on.", default="127.0.0.1", show_default=True)
@flag("--port", "Port; 0 picks a free one.", default=8000, show_default=True, type=click.IntRange(0, 65535))
@_variant_flag
@_data_flag
@flag(
    "--feedback-file",
    "File for thumbs up and down.",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".answerkey/demo-feedback.db"),
    show_default=True,
)
@flag(
    "--feedback-url URL",
    "Forward verdicts, e.g. to http://127.0.0.1:8765/api/feedback.",
    envvar="ANSWERKEY_FEEDBACK_URL",
)
def demo_serve(
    host: str, port: int, variant: str, data: Path | None, feedback_file: Path, feedback_url: str | None
) -> None:
    """Serve the chatbot over HTTP: POST /chat, a chat page at /, API documentation at /docs.

    \b
    Examples:
      answerkey demo serve
      answerkey demo serve --port 8001 --variant basic
      answerkey run --target http://127.0.0.1:8000/chat
    """
    from answerkey.cli.serving import listening_on

    try:
        import uvicorn

        from answerkey_demo.service import FeedbackLog, create_app
    except ImportError as error:
        raise MissingExtraError("the demo's HTTP service", "server") from error
    if feedback_url is not None and not feedback_url.startswith(("http://", "https://")):
        raise UsageError(f"--feedback-url must start with http:// or https://, not {feedback_url!r}")
    chatbot = _open_chatbot(variant, data)
    try:
        log = FeedbackLog(feedback_file)
    except OSError as error:
        raise UsageError(
            f"{feedback_file}: cannot be written ({error}); use another --feedback-file"
        ) from error
    with listening_on(host, port) as (listening, address):
        click.echo(f"{chatbot.knowledge.company} at {address}/ (stop with Ctrl+C)", err=True)
        loopback = host in ("localhost", "127.0.0.1", "::1")
        app = create_app(chatbot, log, feedback_url=feedback_url, loopback=loopback)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


def _open_chatbot(variant: str, data: Path | None) -> "Chatbot":
    from answerkey_demo import open_chatbot

    try:
        return open_chatbot(variant, data=data)
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(str(error)) from error

"""`answerkey init`: from a chatbot's address to a graded run, with every file that a project needs."""

import platform
import shutil
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import FILE, flag, json_flag, map_flag, opened_store, store_flag
from answerkey.cli.outcome import Answer, answers, conclude, print_document
from answerkey.config import DEFAULT_STORE, Settings, load_settings
from answerkey.errors import AnswerkeyError, MissingExtraError, TargetUnreachableError, UsageError

if TYPE_CHECKING:
    from answerkey_demo import Chatbot


_FIRST_QUESTION = "What can you help me with?"
_REMEDY = "; --header gives credentials, --reply text=JMESPATH says where the text is"
_NEXT = "next: complete golden.yaml, then `answerkey run -o report.html` and `answerkey show --failures`"
_CI_NEXT = (
    "for CI: this answerkey came from a disk that a CI job does not have; say in .github/workflows/answerkey.yml "
    "(ANSWERKEY_INSTALL) where it gets one"
)


def _read_pairs(
    mark: str, example: str
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    def read(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in value:
            name, found, rest = (part.strip() for part in text.partition(mark))
            if not (name and found and rest):
                raise UsageError(f"{parameter.opts[0]} {text!r}: write it as {example}")
            pairs[name] = rest
        return pairs

    return read


@click.command()
@flag("--target T", "The chatbot: http://…, file.py:function, cmd:PROGRAM, openai:MODEL …")
@flag(
    "--question Q",
    "A question to probe it with, which becomes a golden case; may be given several times.",
    "questions",
    multiple=True,
)
@flag(
    "--header NAME:VALUE",
    "A header to send; ${NAME} is an environment variable and is written as that.",
    "headers",
    multiple=True,
    callback=_read_pairs(":", "'Authorization: Bearer ${BOT_TOKEN}'"),
)
@flag(
    "--reply PART=JMESPATH",
    "Where the reply has a part, if it is guessed wrong.",
    multiple=True,
    callback=_read_pairs("=", "text=data.answer"),
)
@flag("--timeout S", "Seconds for one attempt (60).", type=float)
@flag("--install WHAT", "What the CI job has pip install, where this machine's own copy is no help.")
@flag("--run/--no-run", "Ask and grade the first golden set at once.", "with_run", default=True)
def init(
    target: str | None,
    questions: tuple[str, ...],
    headers: dict[str, str],
    reply: dict[str, str],
    timeout: float | None,
    install: str | None,
    with_run: bool,
) -> None:
    """Set up a project: probe a chatbot, show how its reply is read, write the files, run.

    Writes answerkey.toml, golden.yaml, .github/workflows/answerkey.yml and a line of .gitignore into the current folder, and
    overwrites nothing. Without a terminal, give --target.

    \b
    Examples:
      answerkey init --target http://localhost:8000/chat --question "What is our address?"
      answerkey init --target https://bot.example.com/ask --header 'Authorization: Bearer ${BOT_TOKEN}'
      answerkey init --target bot.py:answer --no-run
    """
    from answerkey.cli.outcome import progress_for_terminal
    from answerkey.report.terminal import make_console
    from answerkey.report.terminal_texts import print_asked
    from answerkey.runs.api import evaluate
    from answerkey.runs.progress import wait_for
    from answerkey.runs.setup import CONFIG, installed_from, probe_target, starter_files, write_new

    folder = Path.cwd()
    if (folder / CONFIG).exists():
        raise UsageError(
            f"{CONFIG} is there already; `answerkey ask` shows how its target is read, `answerkey run` grades"
        )
    spec, asked = _wanted(target, questions)
    options = Settings().options(timeout=timeout)
    tell = partial(click.echo, err=True)
    probe = wait_for(probe_target(spec, asked, options, headers=headers, reply=reply, tell=tell))
    first = probe.answered[0]
    print_asked(first, make_console())
    if first.misconfigured is not None:
        raise TargetUnreachableError(f"{first.misconfigured} (nothing was written{_REMEDY})")
    source = installed_from() if install is None else install
    written, kept = write_new(starter_files(probe, source), folder)
    kept_words = f"; kept as they were: {', '.join(kept)}" if kept else ""
    click.echo(f"\nwritten: {', '.join(written)}{kept_words}")
    if with_run:
        progress = progress_for_terminal(quiet=False, doing="asking")
        run = evaluate(settings=load_settings(), name="first", progress=progress)
        conclude(run, outputs=(), as_json=False)
    click.echo(_NEXT if source else f"{_NEXT}\n{_CI_NEXT}")


def _wanted(target: str | None, questions: tuple[str, ...]) -> tuple[str, tuple[str, ...]]:
    """The chatbot and the questions to probe it with, asked for where somebody is there to say."""
    by_hand = sys.stdin.isatty() and not target
    if not target and not by_hand:
        raise UsageError("no terminal to ask on; give --target, as --target http://localhost:8000/chat")
    spec = target or click.prompt("The chatbot (http://…, file.py:function, cmd:PROGRAM)")
    if not questions:
        questions = (
            click.prompt("A question to try", default=_FIRST_QUESTION) if by_hand else _FIRST_QUESTION,
        )
    return spec, questions


# `answerkey ask`: one question, to see what a chatbot gives back and how it is read.


@click.command()
@click.argument("question")
@flag("--target T", "The chatbot: http://…, file.py:function, a configured name …")
@flag("--questions", "The golden set that QUESTION may be of (the configured one).", type=FILE)
@map_flag
@flag("--timeout S", "Seconds for one attempt (60).", type=float)
@flag("--raw", "Print only the raw reply.", is_flag=True)
@json_flag
def ask(
    question: str,
    target: str | None,
    questions: Path | None,
    fields: dict[str, str],
    timeout: float | None,
    raw: bool,
    as_json: bool,
) -> int:
    """Ask one question: shows the raw reply, where each part was read, and what was not.

    QUESTION is any text, or the id or text of a case of the golden set, which is then scored too. Nothing is kept. Exits
    with code 3 if the target is not set up right, and with code 1 if the reply is a failure.

    \b
    Examples:
      answerkey ask "What is our address?" --target http://localhost:8000/chat
      answerkey ask address --target bot.py:answer --questions golden.jsonl
      answerkey ask "Hello!" --raw
    """
    from answerkey.report.terminal import make_console
    from answerkey.report.terminal_texts import print_asked, raw_text
    from answerkey.runs.progress import wait_for
    from answerkey.runs.setup import ask_once, find_case

    settings = load_settings()
    case = find_case(question, None if questions is None else str(questions), settings, fields)
    chosen = target if target is not None else settings.target or "demo"
    asked = wait_for(ask_once(case or question, chosen, settings.options(timeout=timeout), settings))
    if as_json:
        print_document(asked.to_dict())
    elif raw:
        click.echo(raw_text(asked))
    else:
        print_asked(asked, make_console())
    if asked.misconfigured is not None:
        raise TargetUnreachableError(asked.misconfigured)
    return 0 if asked.reply.failure is None else 1


# `answerkey doctor`: is everything there that a run needs?


# Extra → a module that only it brings.
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
_LITTLE_ROOM = 200_000_000

# What was looked at, how it is ("ok", "wrong" or "note"), and what was found.
Finding = tuple[str, str, str]


@click.command()
@flag("--target T", "The chatbot to reach (the configured one).")
@store_flag
@answers
def doctor(target: str | None, store: str | None) -> Answer:
    """Look whether everything is there that a run needs: configuration, golden set, chatbot, store, extras.

    The chatbot is opened, not asked. Exits with code 1 if something is wrong.

    \b
    Examples:
      answerkey doctor
      answerkey doctor --target http://localhost:8000/chat --json
    """
    from answerkey.text.normalise import for_terminal

    findings = list(_examine(target, store))
    lines = [f"{_SIGNS[state]} {check:<14}{' '.join(found.split())}" for check, state, found in findings]
    checks = [dict(zip(("check", "state", "found"), one, strict=True)) for one in findings]
    wrong = any(state == "wrong" for _, state, _ in findings)
    return Answer({"checks": checks}, "\n".join(map(for_terminal, lines)), int(wrong))


def _examine(target: str | None, store: str | None) -> Iterator[Finding]:
    from answerkey import __version__

    yield "answerkey", "ok", f"{__version__}, Python {platform.python_version()}, {platform.system()}"
    settings = Settings()
    try:
        settings = load_settings()
        yield (
            "configuration",
            "ok" if settings.path else "note",
            settings.path or "none: defaults (answerkey init makes one)",
        )
    except AnswerkeyError as error:
        yield "configuration", "wrong", str(error)
        return
    yield _tried("golden set", lambda: _golden_set(settings))
    chosen = target or settings.target or "demo"
    yield _tried("chatbot", lambda: _chatbot(chosen, settings))
    yield _tried("store", lambda: _store(store, settings))
    yield _ignored(settings)
    missing = [extra for extra, module in _EXTRAS.items() if find_spec(module) is None]
    there = [extra for extra in _EXTRAS if extra not in missing]
    yield (
        "extras",
        "note" if missing else "ok",
        f"{', '.join(there) or 'none'}" + (f"; not installed: {', '.join(missing)}" if missing else ""),
    )


def _tried(check: str, look: Callable[[], tuple[str, str]]) -> Finding:
    try:
        return (check, *look())
    except AnswerkeyError as error:
        return check, "wrong", str(error)


def _golden_set(settings: Settings) -> tuple[str, str]:
    from answerkey.golden.lint import lint_questions, worst_severity
    from answerkey.runs.context import golden_set

    questions = golden_set(None, settings)
    findings = lint_questions(questions)
    named = questions.path if settings.questions else "the bundled one"
    said = f"{named}: {len(questions)} questions, {len(findings)} findings of answerkey lint"
    return ("wrong" if worst_severity(findings) == "error" else "ok"), said


def _chatbot(spec: str, settings: Settings) -> tuple[str, str]:
    from answerkey.runs.context import make_context
    from answerkey.runs.progress import wait_for

    async def open_it() -> str:
        async with make_context(settings.options(gates=(), baseline=None), settings).target(spec) as opened:
            return opened.name

    return "ok", f"{wait_for(open_it())} can be reached; `answerkey ask` shows how it answers"


def _store(store: str | None, settings: Settings) -> tuple[str, str]:
    path = Path(settings.folder / (settings.store or DEFAULT_STORE))
    if store is None and "://" not in (settings.store or "") and not path.exists():
        return "note", f"{path}: not there yet; the first run makes it"
    with opened_store(store) as opened:
        runs = len(opened.list_infos())
        if opened.database.read_only:
            return "wrong", f"{opened.address}: {runs} runs, and it cannot be written"
        free = shutil.disk_usage(path.parent if path.parent.exists() else Path()).free
        said = f"{opened.address}: {runs} runs"
        return ("wrong", f"{said}, and little room on its disk") if free < _LITTLE_ROOM else ("ok", said)


def _ignored(settings: Settings) -> Finding:
    """Whether git would commit the store."""
    root = next((place for place in (Path.cwd(), *Path.cwd().parents) if (place / ".git").exists()), None)
    if root is None:
        return "git", "note", "this is no repository"
    lines = (
        (root / ".gitignore").read_text(errors="replace").split() if (root / ".gitignore").exists() else []
    )
    ignored = any(line.strip("/") == ".answerkey" for line in lines)
    return (
        "git",
        "ok" if ignored else "wrong",
        ".answerkey/ is ignored" if ignored else "add .answerkey/ to .gitignore",
    )


# `answerkey demo`: the reference chatbot as an HTTP service with a chat page, or one question on the terminal.


_variant_flag = flag(
    "--variant V",
    'default, basic, openai or flaky (also "flaky?kinds=timeout,empty&rate=0.3&seed=7").',
    default="default",
)
_data_flag = flag(
    "--data",
    "A changed copy of the data folder to answer from.",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
)


@click.group()
def demo() -> None:
    """Use the reference chatbot: an assistant for a small, fictional rental company.

    \b
    Examples:
      answerkey demo ask "What was my rental income in August 2024?"
      answerkey demo serve --port 8000
    """


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
    from answerkey.text.normalise import for_terminal

    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    chatbot = _open(variant, data)
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
@flag("--port", "0 takes a free one.", default=8000, show_default=True, type=click.IntRange(0, 65535))
@_variant_flag
@_data_flag
@flag(
    "--feedback-file",
    "Where thumbs up and down are kept.",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path(".answerkey/demo-feedback.db"),
    show_default=True,
)
@flag(
    "--feedback-url URL",
    "Pass verdicts on to a harness, as http://127.0.0.1:8765/api/feedback.",
    envvar="ANSWERKEY_FEEDBACK_URL",
)
def demo_serve(
    host: str, port: int, variant: str, data: Path | None, feedback_file: Path, feedback_url: str | None
) -> None:
    """Serve the chatbot: POST /chat, a chat page at /, the API's description at /docs.

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
    chatbot = _open(variant, data)
    try:
        log = FeedbackLog(feedback_file)
    except OSError as error:
        raise UsageError(
            f"{feedback_file}: cannot be written ({error}); choose another --feedback-file"
        ) from error
    with listening_on(host, port) as (listening, address):
        click.echo(f"{chatbot.knowledge.company} at {address}/ (stop with Ctrl+C)", err=True)
        loopback = host in ("localhost", "127.0.0.1", "::1")
        app = create_app(chatbot, log, feedback_url=feedback_url, loopback=loopback)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


def _open(variant: str, data: Path | None) -> "Chatbot":
    from answerkey_demo import open_chatbot

    try:
        return open_chatbot(variant, data=data)
    except (ValueError, FileNotFoundError) as error:
        raise UsageError(str(error)) from error

"""`answerkey demo`: the reference chatbot as an HTTP service with a chat page, or one question on the terminal."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from answerkey.cli.flags import flag, json_flag
from answerkey.cli.outcome import print_document
from answerkey.errors import MissingExtraError, UsageError

if TYPE_CHECKING:
    from answerkey_demo import Chatbot

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


@demo.command()
@click.argument("question")
@_variant_flag
@_data_flag
@json_flag
def ask(question: str, variant: str, data: Path | None, as_json: bool) -> int:
    """Ask one question; "-" reads it from standard input.

    \b
    Examples:
      answerkey demo ask "What is our property's total basis?"
      echo "Is anything overdue?" | answerkey demo ask - --json
    """
    from answerkey.text.sanitise import for_terminal

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


@demo.command()
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
def serve(
    host: str, port: int, variant: str, data: Path | None, feedback_file: Path, feedback_url: str | None
) -> None:
    """Serve the chatbot: POST /chat, a chat page at /, the API's description at /docs.

    \b
    Examples:
      answerkey demo serve
      answerkey demo serve --port 8001 --variant basic
      answerkey run --target http://127.0.0.1:8000/chat
    """
    from answerkey.cli.serve import listening_on

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

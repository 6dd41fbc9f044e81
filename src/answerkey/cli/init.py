"""`answerkey init`: from a chatbot's address to a graded run, with every file that a project needs."""

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from answerkey.cli.flags import flag
from answerkey.cli.outcome import conclude
from answerkey.config import Settings, load_settings
from answerkey.errors import TargetUnreachableError, UsageError

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
    from answerkey.evaluation.api import evaluate
    from answerkey.evaluation.probing import probe_target
    from answerkey.evaluation.starter_files import CONFIG, installed_from, starter_files, write_new
    from answerkey.evaluation.waiting import wait_for
    from answerkey.report.asked_text import print_asked
    from answerkey.report.terminal import make_console

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

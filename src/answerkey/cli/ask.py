"""`answerkey ask`: one question, to see what a chatbot gives back and how it is read."""

from pathlib import Path

import click

from answerkey.cli.flags import FILE, flag, json_flag, map_flag
from answerkey.cli.outcome import print_document
from answerkey.config import load_settings
from answerkey.errors import TargetUnreachableError


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
    from answerkey.evaluation.asking import ask_once, find_case
    from answerkey.evaluation.waiting import wait_for
    from answerkey.report.asked_text import print_asked, raw_text
    from answerkey.report.terminal import make_console

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

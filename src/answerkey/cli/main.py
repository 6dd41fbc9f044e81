"""The `answerkey` command: finds commands by name, loads only the one that runs, and turns errors into one line."""

import errno
import gc
import os
import sys
from importlib import import_module
from typing import Any

import click

from answerkey.errors import AnswerkeyError

# Name → (module:object, what it does); nothing is imported until a command runs.
COMMANDS: dict[str, tuple[str, str]] = {
    "init": ("answerkey.cli.start:init", "Set up a project: probe a chatbot, write its files, run."),
    "run": ("answerkey.cli.grade:run", "Ask a chatbot a golden set and grade it."),
    "ask": ("answerkey.cli.start:ask", "Ask one question and see how the reply is read."),
    "resume": ("answerkey.cli.grade:resume", "Ask only what a run is missing."),
    "score": ("answerkey.cli.grade:score", "Grade recorded replies; nothing is asked."),
    "rescore": ("answerkey.cli.grade:rescore", "Score a run's stored replies anew."),
    "runs": ("answerkey.cli.look:runs", "List runs."),
    "show": ("answerkey.cli.look:show", "Show a run."),
    "report": ("answerkey.cli.look:report", "Write a run's report to files."),
    "compare": ("answerkey.cli.decide:compare", "Say whether one run is better than another."),
    "ab": ("answerkey.cli.decide:ab", "Run an interleaved experiment on two targets."),
    "plan": ("answerkey.cli.decide:plan", "Say how many questions a difference needs."),
    "baseline": ("answerkey.cli.decide:baseline", "Name runs to compare with."),
    "lint": ("answerkey.cli.key:lint", "Check a golden set."),
    "audit": ("answerkey.cli.key:audit", "Say what bots that know nothing would score."),
    "schema": ("answerkey.cli.key:schema", "Print JSON Schemas for editors."),
    "import": ("answerkey.cli.key:import_", "Turn another tool's data into a golden set."),
    "export": ("answerkey.cli.key:export", "Write a golden set in another tool's form."),
    "judge": ("answerkey.cli.judging:judge", "Calibrate and run model judges."),
    "feedback": ("answerkey.cli.judging:feedback", "Collect people's verdicts on replies."),
    "review": ("answerkey.cli.look:review", "Review borderline replies."),
    "serve": ("answerkey.cli.serving:serve", "Serve the dashboard and its API."),
    "mcp": ("answerkey.cli.mcp:mcp", "Serve coding agents over MCP."),
    "people": ("answerkey.cli.serving:people", "Say who may use a dashboard that others can reach."),
    "sites": ("answerkey.cli.serving:sites", "Say which sites may send feedback and replies."),
    "store": ("answerkey.cli.serving:store", "Check, back up and copy where runs are kept."),
    "doctor": ("answerkey.cli.start:doctor", "Look whether everything is there that a run needs."),
    "demo": ("answerkey.cli.start:demo", "Use the reference chatbot."),
}


# Where the output goes there is no room, or its disk fails.
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class LazyCommands(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The commands in the order in which people meet them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        if cmd_name not in COMMANDS:
            return None
        module, _, name = COMMANDS[cmd_name][0].partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Name the nearest command when one is mistyped."""
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from difflib import get_close_matches

            close = get_close_matches(args[0], COMMANDS, n=1)
            hint = f"did you mean {close[0]!r}?" if close else "see answerkey --help"
            raise click.UsageError(f"no command {args[0]!r}; {hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])


@click.group(
    cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="answerkey", message="answerkey %(version)s")
def cli() -> None:
    """Grade tool-using chatbots against an answer key.

    \b
    Examples:
      answerkey run                                          the bundled questions, asked of the demo chatbot
      answerkey run golden.jsonl --target http://localhost:8000/chat --gate "score >= 0.85"
      answerkey compare production latest

    Exit codes: 0 done and every gate passed; 1 a gate failed or a regression was found; 2 bad usage, configuration
    or input; 3 the target could not be reached; 4 inconclusive, where asked for; 130 interrupted (resumable).
    """


def main() -> None:
    """Run the command line and exit."""
    sys.exit(run_command())


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command (by default the one on the command line) and return its exit code."""
    # Imports and streams of records make few cycles: looking for them rarely saves a tenth of the time.
    gc.set_threshold(50_000, 20, 100)
    try:
        result = cli.main(arguments, prog_name="answerkey", standalone_mode=False)
        sys.stdout.flush()
    except AnswerkeyError as error:
        return _fail(str(error), error.exit_code)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f"; see {context.command_path} --help" if context is not None else ""
        return _fail(error.format_message().rstrip(".") + hint, 2)
    except BrokenPipeError:
        # The reader (head, less) has had enough.
        _silence_stdout()
        return 0
    except OSError as error:
        if error.errno not in _FULL or error.filename is not None:
            return _internal(error)
        _silence_stdout()
        return _fail(f"the output cannot be written: {error.strerror}; make room, or write it elsewhere", 2)
    except Exception as error:  # noqa: BLE001  # a bug is one line too
        return _internal(error)
    return result if isinstance(result, int) else 0


def _internal(error: Exception) -> int:
    if os.environ.get("ANSWERKEY_DEBUG"):
        raise error
    what = f"{type(error).__name__}: {error}"
    return _fail(f"internal error, please report it: {what} (ANSWERKEY_DEBUG=1 shows where)", 70)


def _silence_stdout() -> None:
    """What is left in the buffers must not raise again at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    from answerkey.text.normalise import for_terminal

    click.echo(f"answerkey: {for_terminal(' '.join(message.split()))}", err=True)
    return code

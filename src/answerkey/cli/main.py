"""The `answerkey` program: imports only the command that runs, and prints errors as one line."""

import atexit
import errno
import os
import sys
import threading
from importlib import import_module
from typing import Any, NamedTuple

import click

from answerkey.errors import AnswerkeyError, nearest_name


class CommandEntry(NamedTuple):
    """A command that is imported only when it runs."""

    # "module:object".
    location: str
    # Its line in `answerkey --help`.
    summary: str


# Section of `answerkey --help` → its commands.
SECTIONS: dict[str, dict[str, CommandEntry]] = {
    "Start": {
        "init": CommandEntry("answerkey.cli.start:init", "Set up a project for a chatbot."),
        "ask": CommandEntry("answerkey.cli.start:ask", "Ask one question and show how the reply is read."),
        "doctor": CommandEntry("answerkey.cli.start:doctor", "Check the setup."),
        "demo": CommandEntry("answerkey.cli.start:demo", "Use the reference chatbot."),
    },
    "Grade": {
        "run": CommandEntry("answerkey.cli.grade:run", "Ask a chatbot a golden set and grade the replies."),
        "resume": CommandEntry("answerkey.cli.grade:resume", "Finish an interrupted run."),
        "score": CommandEntry(
            "answerkey.cli.grade:score", "Grade recorded replies without asking the chatbot."
        ),
        "rescore": CommandEntry("answerkey.cli.grade:rescore", "Score a run's stored replies again."),
    },
    "Decide": {
        "compare": CommandEntry("answerkey.cli.decide:compare", "Compare runs, with uncertainty."),
        "why": CommandEntry("answerkey.cli.decide:why", "Say where a difference comes from."),
        "bisect": CommandEntry("answerkey.cli.decide:bisect", "Find the commit that made the chatbot worse."),
        "ab": CommandEntry("answerkey.cli.decide:ab", "Run an interleaved experiment on two targets."),
        "plan": CommandEntry("answerkey.cli.decide:plan", "Estimate how many questions a difference needs."),
        "baseline": CommandEntry("answerkey.cli.decide:baseline", "Name runs to compare with."),
    },
    "Key": {
        "lint": CommandEntry("answerkey.cli.key:lint", "Check a golden set for mistakes."),
        "audit": CommandEntry(
            "answerkey.cli.key:audit", "Test the answer key with wrong replies and trivial bots."
        ),
        "draft": CommandEntry(
            "answerkey.cli.key:draft", "Compare real questions with a golden set, and draft missing cases."
        ),
        "truth": CommandEntry(
            "answerkey.cli.key:truth", "Compute expectations from data and check the data."
        ),
        "import": CommandEntry("answerkey.cli.key:import_", "Convert another tool's files to a golden set."),
        "export": CommandEntry("answerkey.cli.key:export", "Convert a golden set to another tool's format."),
        "schema": CommandEntry("answerkey.cli.key:schema", "Print JSON Schemas for editors."),
    },
    "Stress": {
        "faults": CommandEntry(
            "answerkey.cli.grade:faults", "Break the chatbot's tools, and see what it makes of that."
        ),
    },
    "Look": {
        "show": CommandEntry("answerkey.cli.look:show", "Show a run."),
        "runs": CommandEntry("answerkey.cli.look:runs", "List, tag and delete runs."),
        "report": CommandEntry("answerkey.cli.look:report", "Write a run's report to files."),
        "serve": CommandEntry("answerkey.cli.serving:serve", "Serve the dashboard and its API."),
        "review": CommandEntry("answerkey.cli.look:review", "Review borderline replies by hand."),
        "feedback": CommandEntry(
            "answerkey.cli.judging:feedback", "Collect and summarise people's verdicts."
        ),
        "judge": CommandEntry("answerkey.cli.judging:judge", "Calibrate and serve model judges."),
    },
    "Serve": {
        "mcp": CommandEntry("answerkey.cli.serving:mcp", "Serve coding agents over MCP."),
        "users": CommandEntry("answerkey.cli.serving:users", "Manage dashboard users and keys of sites."),
        "store": CommandEntry("answerkey.cli.serving:store", "Check, back up and copy the store."),
    },
}
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
# Old name → where the command is now. They work in this version, and neither help nor hints mention them.
RENAMED: dict[str, str] = {
    "people": "answerkey.cli.serving:people",
    "sites": "answerkey.cli.serving:sites",
}

# The output's disk is full or failing.
_OUTPUT_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EIO)


class LazyCommands(click.Group):
    """A group that imports a command's module only when that command is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The documented commands, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        location = COMMANDS[cmd_name].location if cmd_name in COMMANDS else RENAMED.get(cmd_name)
        if location is None:
            return None
        module, _, name = location.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Suggest the nearest command for an unknown one."""
        known = {**COMMANDS, **RENAMED}
        if args and args[0] not in known and not args[0].startswith("-"):
            close = nearest_name(args[0], COMMANDS)
            hint = f"; did you mean {close!r}?" if close else ""
            raise click.UsageError(f"no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands by purpose without importing them."""
        width = max(map(len, COMMANDS))
        for title, commands in SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), entry.summary) for name, entry in commands.items()])


@click.group(
    cls=LazyCommands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110}
)
@click.version_option(package_name="answerkey", message="answerkey %(version)s")
def cli() -> None:
    """Grade tool-using chatbots against an answer key.

    \b
    Examples:
      answerkey run demo                             ask the built-in demo chatbot the bundled questions
      answerkey run golden.jsonl --target http://localhost:8000/chat --gate "score >= 0.85"
      answerkey compare production latest

    \b
    Exit codes:
      0    done, and every gate passed
      1    a gate failed or a regression was found
      2    bad usage, configuration or input file
      3    the target could not be reached, or is configured wrongly
      4    inconclusive (with --fail-on inconclusive)
      130  interrupted; continue with `answerkey resume`
    """


def main() -> None:
    """Run the command line and exit."""
    code = run_command()
    if threading.active_count() > 1 or _has_foreign_code():
        sys.exit(code)
    # Freeing each object before the process ends would take a tenth of a short command's time.
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


def _has_foreign_code() -> bool:
    """Whether code was loaded that may have left a file open, which is only written as its object is freed."""
    plugins = sys.modules.get("answerkey.plugins")
    return plugins is not None and bool(plugins.foreign_code)


def _open_closed_streams() -> None:
    """Connect closed standard streams (`>&-`) to /dev/null: a file opened next would otherwise get their descriptors."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8")  # noqa: SIM115  # until the process ends
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8")  # noqa: SIM115


def run_command(arguments: list[str] | None = None) -> int:
    """Run one command (by default the one on the command line) and return its exit code."""
    _open_closed_streams()
    stdout, code = sys.stdout, 0
    try:
        result = cli.main(arguments, prog_name="answerkey", standalone_mode=False)
        code = result if isinstance(result, int) else 0
        sys.stdout.flush()
    except AnswerkeyError as error:
        for line in error.lines[:-1]:
            _fail(line, error.exit_code)
        return _fail(error.lines[-1], error.exit_code)
    except click.exceptions.Exit as error:
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        return _fail("interrupted", 130)
    except click.exceptions.NoArgsIsHelpError as error:
        # A group without a command: its help, as it is laid out.
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        message = error.format_message().rstrip(".")
        hint = (
            ""
            if context is None
            else f"{'' if message.endswith('?') else ';'} see {context.command_path} --help"
        )
        return _fail(message + hint, 2)
    except BrokenPipeError:
        # The reader (head, less) closed the pipe.
        _silence_stdout()
    except SystemExit:
        # click replaces standard output when the reader closed the pipe, and exits with 1.
        if sys.stdout is stdout:
            raise
        _silence_stdout()
        return 0
    except OSError as error:
        if error.errno not in _OUTPUT_FULL or error.filename is not None:
            return _internal(error)
        _silence_stdout()
        return _fail(f"cannot write the output: {error.strerror}; free some space or write elsewhere", 2)
    except Exception as error:  # noqa: BLE001  # a bug is reported in one line too
        return _internal(error)
    return code


def _internal(error: Exception) -> int:
    if os.environ.get("ANSWERKEY_DEBUG"):
        raise error
    message = f"{type(error).__name__}: {error}"
    return _fail(f"internal error, please report it: {message} (ANSWERKEY_DEBUG=1 shows the traceback)", 70)


def _silence_stdout() -> None:
    """Discard what is still buffered, so that flushing it at exit does not raise again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str, code: int) -> int:
    from answerkey.text.normalise import for_terminal

    line = for_terminal(" ".join(message.split()))
    click.echo(f"answerkey: {line}", err=True)
    if os.environ.get("GITHUB_ACTIONS") == "true":
        # Shown at the top of the job's page.
        click.echo(f"::error title=answerkey::{line.replace('%', '%25')}", err=True)
    return code

"""`answerkey doctor`: is everything there that a run needs?"""

import platform
import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import click

from answerkey.cli.flags import flag, opened_store, store_flag
from answerkey.cli.outcome import Answer, answers
from answerkey.config import DEFAULT_STORE, Settings, load_settings
from answerkey.errors import AnswerkeyError

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
    from answerkey.text.sanitise import for_terminal

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
    from answerkey.evaluation.assembly import golden_set
    from answerkey.golden.findings import worst_severity
    from answerkey.golden.lint_set import lint_questions

    questions = golden_set(None, settings)
    findings = lint_questions(questions)
    named = questions.path if settings.questions else "the bundled one"
    said = f"{named}: {len(questions)} questions, {len(findings)} findings of answerkey lint"
    return ("wrong" if worst_severity(findings) == "error" else "ok"), said


def _chatbot(spec: str, settings: Settings) -> tuple[str, str]:
    from answerkey.evaluation.assembly import assemble
    from answerkey.evaluation.waiting import wait_for

    async def open_it() -> str:
        async with assemble(settings.options(gates=(), baseline=None), settings).target(spec) as opened:
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

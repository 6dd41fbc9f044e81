"""The files that a project begins with: the configuration, a first golden set, a CI job, and what git shall ignore."""

import json
import re
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from answerkey.errors import UsageError
from answerkey.runs.asking import Asked
from answerkey.runs.probing import TARGET_NAME, Probe

CONFIG = "answerkey.toml"
GOLDEN = "golden.yaml"
_WORKFLOW = ".github/workflows/answerkey.yml"
_IGNORED = ".answerkey/"
# Facts of one reply that are proposed as keywords.
_MOST_FACTS = 3

_GOLDEN_HEAD = """\
# The golden set: what the chatbot is asked, and what a right answer must call and say.
# A good keyword is the fact itself, as short as it can be: "16144" or "Montrose", never a sentence. Numbers are found in any
# form ($16,144.00), and [a, b] means either. A keyword that stands in the question shows nothing. Check with: answerkey lint
"""
_GUESSED = "  # taken from the reply that came back: keep only what is right and must be said\n"
_OTHER_CASES = """
- id: greeting
  question: Hello!
  category: talk
  expected_keywords:
    - [help, assist, hello, hi, welcome]

# Something that it cannot know: a right answer says so and invents nothing.
- id: unknowable
  question: What will the weather be in Reykjavik on 3 May 2071?
  category: limits
  expected_keywords:
    - [cannot, can't, can not, don't, do not, unable, "no information", outside, only]
"""

_CI = """\
# Grades the chatbot on every pull request, and stops what it breaks (exit code 1): with --confirm, a question that passed
# before and fails now is asked five times more, and is broken if it never passes.
name: answerkey
on:
  pull_request:
  push:
    branches: [main, master]
env:
  # What pip installs: a repository (git+https://…@v0.2.0), a wheel in this repository, or a name in your package index.
  ANSWERKEY_INSTALL: %(install)s
jobs:
  grade:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install "${ANSWERKEY_INSTALL:?is not set, say in this file where answerkey comes from}"
%(start)s      # The store of the default branch holds the baseline.
      - uses: actions/cache/restore@v4
        with:
          path: .answerkey
          key: answerkey-${{ github.run_id }}
          restore-keys: answerkey-
      - name: Grade
        run: |
          baseline=()
          if answerkey baseline list --json 2>/dev/null | grep -q '"production"'; then
            baseline=(--baseline production --confirm 5 --gate "no regression" --gate "broken == 0")
          fi
          answerkey run "${baseline[@]}" -o report.html -o results.junit.xml
      - if: github.ref_name == github.event.repository.default_branch
        run: answerkey baseline set production latest
      - if: github.ref_name == github.event.repository.default_branch
        uses: actions/cache/save@v4
        with: {path: .answerkey, key: "answerkey-${{ github.run_id }}"}
      - if: always()
        uses: actions/upload-artifact@v4
        with: {name: answerkey, path: "report.html\nresults.junit.xml"}
"""
_START = """\
      # Start the chatbot here, so that the address in answerkey.toml answers; for example:
      # - run: python app.py &
"""


def installed_from() -> str:
    """What pip takes elsewhere to install answerkey as it is installed here; empty where it came from this machine's disk."""
    try:
        installed = distribution("answerkey")
    except PackageNotFoundError:
        return ""
    # Where a package came from, unless that was an index (PEP 610).
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if not origin:
        return f"answerkey=={installed.version}"
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return f"answerkey @ {origin['vcs_info']['vcs']}+{origin['url']}@{commit}"
    return f"answerkey @ {origin['url']}" if origin["url"].startswith("https://") else ""


def starter_files(probe: Probe, install: str) -> dict[str, str]:
    """Path → what the file holds; `install` is what pip installs answerkey from."""
    local = re.search(r"://(localhost|127\.|\[::1\])", str(probe.table.get("url", "")))
    return {
        CONFIG: _config(probe),
        GOLDEN: _golden(probe.answered),
        _WORKFLOW: _CI % {"start": _START if local else "", "install": _yaml(install)},
    }


def write_new(files: Mapping[str, str], folder: Path) -> tuple[list[str], list[str]]:
    """Write the files that are not there yet, and ignore the store in git; returns what was written and what was kept."""
    written: list[str] = []
    kept: list[str] = []
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                # Made only if it is not there, whoever else may be making it.
                with path.open("x", encoding="utf-8") as file:
                    file.write(content)
                written.append(name)
            except FileExistsError:
                kept.append(name)
        ignore = folder / ".gitignore"
        before = ignore.read_text(encoding="utf-8") if ignore.exists() else ""
        if _IGNORED not in {line.strip().lstrip("/") for line in before.splitlines()}:
            with ignore.open("a", encoding="utf-8") as file:
                file.write(("" if before.endswith("\n") or not before else "\n") + _IGNORED + "\n")
            written.append(".gitignore")
    except OSError as error:
        raise UsageError(
            f"{error.filename or folder}: cannot be written: {error.strerror or error}"
        ) from None
    return written, kept


def _config(probe: Probe) -> str:
    plain = {name: value for name, value in probe.table.items() if name != "reply"}
    lines = [
        "# What `answerkey run` asks and how; every setting: docs/configuration.md",
        f'questions = "{GOLDEN}"',
        f'target = "{TARGET_NAME}"',
        "# Conditions that every run must meet, else exit code 1:",
        '# gates = ["score >= 0.85", "error_rate < 0.02"]',
        "",
        f"[targets.{TARGET_NAME}]",
        *(f"{name} = {_toml(value)}" for name, value in plain.items()),
    ]
    if probe.table.get("reply"):
        lines += [
            "",
            "# Where its replies have their parts, in JMESPath; `answerkey ask` shows what each one finds.",
        ]
        lines += [f"[targets.{TARGET_NAME}.reply]"]
        lines += [f"{part} = {_toml(where)}" for part, where in probe.table["reply"].items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value as TOML writes it; its texts are escaped as in JSON."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(str(name))} = {_toml(part)}" for name, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(part) for part in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _golden(answered: Sequence[Asked]) -> str:
    cases = []
    names: set[str] = set()
    for asked in answered:
        question = asked.question.question
        identity = _identity(question, names)
        lines = [f"- id: {identity}\n", f"  question: {_yaml(question)}\n", "  category: general\n"]
        if asked.reply.evidence.tools_observed and asked.reply.failure is None:
            tools = list(dict.fromkeys(asked.reply.tools_used))
            lines += [_GUESSED, f"  expected_tools: {_yaml(tools)}\n"] if tools else ["  tools: none\n"]
        facts = _facts(asked.reply.text or "", question) if asked.reply.failure is None else []
        if facts:
            lines += ([] if _GUESSED in lines else [_GUESSED]) + [f"  expected_keywords: {_yaml(facts)}\n"]
        cases.append("".join(lines))
    return _GOLDEN_HEAD + "\n" + "\n".join(cases) + _OTHER_CASES


def _yaml(value: object) -> str:
    """JSON is YAML."""
    return msgspec.json.encode(value).decode()


def _identity(question: str, taken: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())
    telling = [
        word for word in words if len(word) > 3 and word not in ("what", "which", "does", "have", "your")
    ]
    base = "-".join((telling or words)[:3]) or "question"
    name, number = base, 2
    while name in taken or name in ("greeting", "unknowable"):
        name, number = f"{base}-{number}", number + 1
    taken.add(name)
    return name


def _facts(text: str, question: str) -> list[str]:
    """What is most telling in a reply and not in the question: numbers, then names inside a sentence."""
    numbers = re.findall(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])", text)
    names = re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{2,}", text)
    found = dict.fromkeys([*(number for number in numbers if len(number) > 1), *names])
    return [fact for fact in found if fact.lower() not in question.lower()][:_MOST_FACTS]

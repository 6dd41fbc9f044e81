"""Trying out a chatbot and setting up a project: ask one question, probe an unknown chatbot, write starter files."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from answerkey.config import Settings
from answerkey.datasets.golden_sets import parse_question
from answerkey.errors import TargetUnreachableError, UsageError
from answerkey.golden.lint import lint_questions
from answerkey.model.options import Options
from answerkey.model.question import Question, QuestionSet
from answerkey.model.reply import Json, Reply
from answerkey.model.run_document import reply_document, scorecard_document
from answerkey.model.scorecard import Scorecard, Trial
from answerkey.runs.context import golden_set, make_context
from answerkey.runs.run import ask_and_grade, configuration_error
from answerkey.targets.resolve import TargetLike, kind_and_rest
from answerkey.transcripts.json_values import as_dict, as_dicts, decode_json
from answerkey.transcripts.payloads import ReplyMapping, reply_from_payload, watch_raw
from answerkey.transcripts.recorded_rows import find_places, propose_mapping


class AskResult(msgspec.Struct, frozen=True, kw_only=True):
    """The reply to one question, and which parts of it were read."""

    target: str
    question: Question
    # As received, decoded if it is JSON; None: there is none, or the target does not expose it.
    raw: Json = None
    reply: Reply
    # Part → its path in the raw reply.
    read: dict[str, str] = {}
    # Paths of non-empty fields that were not read.
    unread: tuple[str, ...] = ()
    # Part → expression that would find it where the usual names do not.
    proposed: dict[str, str] = {}
    # None: the question is not in a golden set, so it has no expectations.
    scorecard: Scorecard | None = None
    # What is wrong with the configuration of the target; None: nothing.
    misconfigured: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """The document of `ask --json`."""
        return {
            "target": self.target,
            "question": self.question.question,
            "raw": self.raw,
            "reply": reply_document((self.reply,), self.scorecard),
            "read": self.read,
            "unread": list(self.unread),
            "proposed": self.proposed,
            "scorecard": None if self.scorecard is None else scorecard_document(self.scorecard),
        }


def find_case(
    text: str, questions: str | None, settings: Settings, fields: Mapping[str, str]
) -> Question | None:
    """The golden case whose id or question is the text, in the given or configured set.

    A configured set that is not written yet has no case: one asks a chatbot before one writes its golden set.
    """
    if questions is None and (
        settings.questions is None or not (settings.folder / settings.questions).exists()
    ):
        return None
    cases = golden_set(questions, settings, fields)
    return next((case for case in cases if text in (case.id, case.question)), None)


async def ask_once(
    question: Question | str, target: TargetLike, options: Options, settings: Settings
) -> AskResult:
    """Ask a chatbot one question, or all turns of a conversation; the result has the last reply."""
    context = make_context(msgspec.structs.replace(options, gates=(), baseline=None), settings)
    case = question if isinstance(question, Question) else Question(id="ask", question=question)
    with watch_raw() as seen:
        async with context.target(target) as opened:
            [trial] = [trial async for trial in ask_and_grade(context, opened, [Trial(case)])]
        name = opened.name
    raw = _decoded(seen[-1]) if seen else None
    table = settings.targets.get(target, {}) if isinstance(target, str) else {}
    expressions = {part: str(where) for part, where in as_dict(table.get("reply")).items()}
    reply = trial.reply
    places = find_places(raw, reply, expressions)
    problem = configuration_error([trial])
    # The body of an error is not an example of a reply.
    readable = reply.failure is None or reply.failure.kind in ("malformed", "null", "empty")
    card = trial.scorecard if isinstance(question, Question) else None
    return AskResult(
        target=name,
        question=case,
        raw=raw,
        reply=reply,
        read=places.read,
        unread=places.unread,
        proposed=propose_mapping(raw, case.asks[-1].question) if readable else {},
        scorecard=card,
        misconfigured=None if problem is None else problem[0],
    )


def read_by(result: AskResult, expressions: Mapping[str, str]) -> AskResult:
    """Read the same raw reply with other expressions, without asking again."""
    mapped = reply_from_payload(result.raw, mapping=ReplyMapping(**expressions))
    reply = msgspec.structs.replace(mapped, timings=result.reply.timings)
    places = find_places(result.raw, reply, expressions)
    problem = configuration_error([Trial(result.question, replies=(reply,))])
    return msgspec.structs.replace(
        result,
        reply=reply,
        read=places.read,
        unread=places.unread,
        proposed={},
        misconfigured=None if problem is None else problem[0],
    )


def _decoded(text: str) -> Json:
    try:
        return decode_json(text)
    except ValueError:
        return text


# Probing: how an unknown chatbot takes a question, and where its reply has its parts.

# Name of the chatbot in the configuration that `init` writes.
TARGET_NAME = "chatbot"
_QUESTION = "{{question}}"
_CONVERSATION = "{{conversation_id}}"
# Field names for the question, in the order in which they are tried.
_NAMES = ("message", "query", "prompt", "input", "text", "content", "q", "user_input")
# Corrections of the body by what the chatbot says is wrong with it.
_MOST_CORRECTIONS = 6
# Where logins return a token.
_TOKENS = "access_token || token || jwt || data.access_token || data.token"
_CONVERSATIONS = ("session", "conversation", "thread", "chat_id", "user")


class Probe(msgspec.Struct, frozen=True):
    """Result of probing a chatbot: its configuration table, and its reply to each question."""

    table: dict[str, Any]
    answered: tuple[AskResult, ...]


async def probe_target(
    spec: str,
    questions: Sequence[str],
    options: Options,
    *,
    headers: Mapping[str, str],
    reply: Mapping[str, str],
    report: Callable[[str], None],
    body: Json = None,
    login: Mapping[str, Json] | None = None,
) -> Probe:
    """Find a request body that the chatbot accepts, propose a reply mapping, and ask the other questions.

    `report` is called with a line for each further attempt. `reply` has expressions from the user, which are kept. With
    a `body` from the user, no other is tried.
    """
    kind, rest = kind_and_rest(spec)
    table: dict[str, Any] = {kind: rest, **({"headers": dict(headers)} if headers else {})}
    if reply:
        table["reply"] = dict(reply)
    if body is not None:
        table["body"] = body
    if login is not None:
        table["login"] = await _working_login(table, login, questions[0], options)
    result = await _ask(table, questions[0], options)
    if kind == "url" and body is None:
        result = await _try_bodies(table, result, questions[0], options, report)
    proposed = {part: where for part, where in result.proposed.items() if part not in reply}
    if proposed and kind not in ("demo", "openai"):
        table["reply"] = {**proposed, **reply}
        result = read_by(result, table["reply"])
    if result.misconfigured is not None:
        return Probe(table, (result,))
    return Probe(table, (result, *[await _ask(table, question, options) for question in questions[1:]]))


async def _working_login(
    table: dict[str, Any], login: Mapping[str, Json], question: str, options: Options
) -> dict[str, Json]:
    """The login, with the place of its token unless it only sets cookies."""
    with_token = {**login, "token": _TOKENS}
    try:
        await _ask({**table, "login": with_token}, question, options)
    except TargetUnreachableError as error:
        if "finds no token" not in str(error):
            raise
        return dict(login)
    return with_token


async def _ask(table: dict[str, Any], question: str, options: Options) -> AskResult:
    return await ask_once(question, TARGET_NAME, options, Settings(targets={TARGET_NAME: table}))


def _is_refused(result: AskResult) -> bool:
    """Whether the chatbot rejected the request body."""
    return _wrong(result).startswith(("HTTP 400", "HTTP 422"))


def _wrong(result: AskResult) -> str:
    return "" if result.reply.failure is None else result.reply.failure.message


async def _try_bodies(
    table: dict[str, Any],
    result: AskResult,
    question: str,
    options: Options,
    report: Callable[[str], None],
) -> AskResult:
    """Ask with other bodies until one is accepted: first what each refusal asks for, then the usual field names."""

    async def attempt(body: dict[str, Any]) -> AskResult:
        report(f"{_wrong(result)}; trying again with {msgspec.json.encode(body).decode()}")
        table["body"] = body
        return await _ask(table, question, options)

    required: dict[str, Any] = {}
    for _ in range(_MOST_CORRECTIONS):
        corrected = _corrected_body(required, result.raw)
        if not _is_refused(result) or corrected == required:
            break
        required = corrected
        result = await attempt(required)
    for body in (
        *({name: _QUESTION, "conversation_id": _CONVERSATION} for name in _NAMES),
        {"messages": "{{messages}}"},
    ):
        if not _is_refused(result):
            break
        result = await attempt(body)
    return result


def _corrected_body(body: Mapping[str, Any], refusal: Json) -> dict[str, Any]:
    """The body with what a FastAPI error asks for: missing fields, and objects where it had a text."""
    corrected: dict[str, Any] = deepcopy(dict(body))
    problems = [
        (item.get("loc"), f"{item.get('type')} {item.get('msg')}")
        for item in as_dicts(as_dict(refusal).get("detail"))
    ]
    paths = [
        ([str(part) for part in path[1:]], "dict" in problem or "object" in problem)
        for path, problem in problems
        if isinstance(path, list) and len(path) > 1 and path[0] == "body"
    ]
    for path, wants_object in paths:
        inside: dict[str, Any] = corrected
        for part in path[:-1]:
            if not isinstance(inside.get(part), dict):
                inside[part] = {}
            inside = inside[part]
        inside[path[-1]] = {} if wants_object else _filler(path[-1], alone=len(paths) == 1)
    return corrected


def _filler(field: str, *, alone: bool) -> str:
    """What fills a field: the conversation's id where its name suggests that, else the question."""
    if field == "messages":
        return "{{messages}}"
    is_id = any(name in field.lower() for name in _CONVERSATIONS)
    return _CONVERSATION if is_id and not alone else _QUESTION


def login_table(url: str | None, body: str | None) -> dict[str, Json] | None:
    if url is None:
        if body is not None:
            raise UsageError("--login-body needs --login URL")
        return None
    try:
        content = {} if body is None else decode_json(body)
    except ValueError as error:
        raise UsageError(f"--login-body is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise UsageError("--login-body must be a JSON object")
    return {"url": url, "body": content}


def body_from_text(text: str) -> Json:
    """A request body from JSON of the command line, in which `{question}` and `{conversation_id}` are filled in."""
    for name in ("question", "conversation_id", "messages"):
        text = re.sub(rf"(?<!{{){{{name}}}(?!}})", f"{{{{{name}}}}}", text)
    try:
        body: Json = decode_json(text)
    except ValueError as error:
        raise UsageError(f"--body is not valid JSON: {error}") from None
    if "{{question}}" not in text and "{{messages}}" not in text:
        raise UsageError(
            '--body has no place for the question; write {question}, e.g. {"input": {"text": "{question}"}}'
        )
    return body


# Starter files: the configuration, a first golden set, a CI job and .gitignore.

CONFIG = "answerkey.toml"
GOLDEN = "golden.yaml"
_WORKFLOW = ".github/workflows/answerkey.yml"
_IGNORED = ".answerkey/"
# Maximum number of facts of a reply that are proposed as keywords.
_MOST_FACTS = 3
# Characters of a reply without facts that is proposed as a whole.
_LONGEST_REFERENCE = 300

_GOLDEN_HEAD = """\
# The golden set: questions for the chatbot, and what a right answer must call and say.
# A good keyword is the fact itself, as short as possible: "16144" or "Montrose", never a sentence. A number is
# found however it is written ($16,144.00, 4,90 €), and [a, b] means either. A keyword that is part of the question proves
# nothing. Check with: answerkey lint
"""
_GUESSED = "# proposed from the reply: keep only what is right and must be said\n"
_TO_COMPLETE = (
    "# the reply has no fact to propose; write what a right answer must say, and remove the # signs:\n"
)
_YAML_CONSTANTS = ("true", "false", "null")
_OTHER_CASES = """
- id: greeting
  question: Good day!
  category: talk
  accept_regex: '\\b(hello|hi|hey|welcome|help|assist|morning|afternoon|do for you)\\b'

# Something that the chatbot cannot know: a right answer says so and invents nothing.
- id: unknowable
  question: What will the weather be in Reykjavik on 3 May 2071?
  category: limits
  answerable: false
"""

_CI = """\
# Grades the chatbot on every pull request and push, and compares it with the last graded push to the default branch. The job
# fails if any question got worse. A question whose score fell is asked five more times: if it recovers, it is flaky, not worse.
# To accept a worse score as the new baseline, run this workflow by hand on the default branch.
name: answerkey
on:
  pull_request:
  push:
    branches: [main, master]
  workflow_dispatch:
env:
  # Source of answerkey for pip: a repository (git+https://…@v0.2.0), a wheel in this repository, or a package name.
  ANSWERKEY_INSTALL: %(install)s
jobs:
  grade:
    runs-on: ubuntu-latest
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with: {python-version: "3.12"}
      - run: pip install "${ANSWERKEY_INSTALL:?is not set; define it in this file}"
%(start)s      # The store of the default branch holds the baseline.
      - uses: actions/cache/restore@v4
        with:
          path: .answerkey
          key: answerkey-${{ github.run_id }}
          restore-keys: answerkey-
      - name: Grade
        env:
          ON_DEFAULT_BRANCH: ${{ github.ref_name == github.event.repository.default_branch }}
%(secrets)s        run: |
          first=()
          # Only the default branch may run without a baseline: it makes the first one.
          if [ "$ON_DEFAULT_BRANCH" = "true" ]; then first=(--allow-missing-baseline); fi
          answerkey run --baseline production "${first[@]}" --confirm 5 \\
            --gate "error_rate < 2%%" --gate "no regression" --gate "worse == 0" --gate "no regression in latency" \\
            -o report.html -o results.junit.xml
      - name: Keep as baseline
        if: github.ref_name == github.event.repository.default_branch && (success() || github.event_name == 'workflow_dispatch')
        run: answerkey baseline set production latest
      - if: github.ref_name == github.event.repository.default_branch && (success() || github.event_name == 'workflow_dispatch')
        uses: actions/cache/save@v4
        with: {path: .answerkey, key: "answerkey-${{ github.run_id }}"}
      - if: always()
        uses: actions/upload-artifact@v4
        with:
          name: answerkey
          path: |
            report.html
            results.junit.xml
"""
_START = """\
      # Start the chatbot in the background, with its packages and secrets, and wait until it listens.
      - name: Start the chatbot
        run: |
          # pip install -r requirements.txt
          # nohup uvicorn app:app --port %(port)s > chatbot.log 2>&1 &
          timeout 60 bash -c 'until (exec 3<>/dev/tcp/127.0.0.1/%(port)s) 2>/dev/null; do sleep 1; done' ||
            { echo "::error::no chatbot listens on port %(port)s; start it in this step"; exit 1; }
"""


def installed_from() -> str:
    """A pip requirement for the installed answerkey; empty if it was installed from a local path."""
    try:
        installed = distribution("answerkey")
    except PackageNotFoundError:
        return ""
    # The origin of the package, absent if it came from an index (PEP 610).
    origin = json.loads(installed.read_text("direct_url.json") or "{}")
    if not origin:
        return f"answerkey=={installed.version}"
    if commit := origin.get("vcs_info", {}).get("commit_id"):
        return f"answerkey @ {origin['vcs_info']['vcs']}+{origin['url']}@{commit}"
    return f"answerkey @ {origin['url']}" if origin["url"].startswith("https://") else ""


def starter_files(probe: Probe, install: str) -> dict[str, str]:
    """Path → content of each starter file; `install` is the pip requirement of answerkey."""
    return {
        CONFIG: _config(probe),
        GOLDEN: _golden(probe.answered),
        _WORKFLOW: _workflow(probe.table, install),
    }


async def probe_configured(settings: Settings, questions: Sequence[str], options: Options) -> Probe:
    """Ask the configured chatbot the questions, with its own table of the configuration."""
    target = str(settings.target)
    kind, rest = kind_and_rest(target) if target not in settings.targets else ("", "")
    table = settings.targets.get(target, {kind: rest})
    return Probe(table, tuple([await ask_once(text, target, options, settings) for text in questions]))


def missing_files(settings: Settings, probe: Probe, install: str) -> dict[str, str]:
    """Path → content of the starter files that a configured project lacks; the configuration is only completed."""
    files = {_WORKFLOW: _workflow(probe.table, install)}
    golden = settings.questions or GOLDEN
    if Path(golden).suffix.lower() in (".yaml", ".yml"):
        files[golden] = _golden(probe.answered)
    elif Path(golden).suffix.lower() in (".jsonl", ".ndjson"):
        files[golden] = _golden_lines(probe.answered)
    return files


def completed_config(text: str, settings: Settings) -> str:
    """The text of a configuration with the golden set's name before everything else, if it names none."""
    if settings.questions is not None:
        return text
    return f'questions = "{GOLDEN}"\n{text}'


def _golden_lines(answered: Sequence[AskResult]) -> str:
    """The probed questions as JSON Lines, with what the replies propose."""
    return "".join(_yaml(case) + "\n" for case in _proposed_cases(answered))


def _proposed_cases(answered: Sequence[AskResult]) -> Iterator[dict[str, Any]]:
    """A golden case for each probed question, which expects the tools and facts of a reply that is not an error."""
    names: set[str] = set()
    for result in answered:
        question, reply = result.question.question, result.reply
        case: dict[str, Any] = {
            "id": _unique_id(question, names),
            "question": question,
            "category": "general",
        }
        if reply.failure is None:
            tools = list(dict.fromkeys(reply.tools_used))
            if tools:
                case["expected_tools"] = tools
            elif reply.evidence.tools_observed:
                case["tools"] = "none"
            case |= _proposed_text(case, reply.text or "")
        yield case


def _proposed_text(case: Mapping[str, Any], text: str) -> dict[str, Any]:
    """What a golden case may expect of the text, from a reply: only what `lint` does not object to."""
    facts: list[Any] = []
    for fact in _facts(text, case["question"]):
        if not _findings({**case, "expected_keywords": [*facts, fact]}) - {_NEEDS_MUST}:
            facts.append(fact)
    if _NEEDS_MUST in _findings({**case, "expected_keywords": facts}):
        facts = [{"text": fact, "must": True} if fact[0].isdigit() else fact for fact in facts]
    if facts:
        return {"expected_keywords": facts}
    whole = {"reference_answer": text.strip()}
    is_short = 0 < len(whole["reference_answer"]) <= _LONGEST_REFERENCE
    return whole if is_short and not _findings({**case, **whole}) else {}


# Figures beside words pass without the figures, unless these are essential.
_NEEDS_MUST = "passes-without-answer"


def _findings(case: Mapping[str, Any]) -> set[str]:
    """The codes of what `lint` says of a case."""
    questions = QuestionSet(questions=(parse_question(case),))
    return {one.code for one in lint_questions(questions, whole_numbers=True) if one.id == case["id"]}


def _expects_nothing(case: Mapping[str, Any]) -> bool:
    return case.keys().isdisjoint({"expected_tools", "tools", "expected_keywords", "reference_answer"})


def _workflow(table: Mapping[str, Any], install: str) -> str:
    """The CI job: it starts a local chatbot, and passes on the secrets that the target uses."""
    address = urlsplit(str(table.get("url", "")))
    local = address.hostname is not None and re.fullmatch(r"localhost|127\..*|::1", address.hostname)
    port = address.port or (443 if address.scheme in ("https", "wss") else 80)
    secrets = dict.fromkeys(re.findall(r"\$\{(\w+)\}", json.dumps(dict(table))))
    return _CI % {
        "install": _yaml(install),
        "start": _START % {"port": port} if local else "",
        "secrets": "".join(f"          {name}: ${{{{ secrets.{name} }}}}\n" for name in secrets),
    }


def write_new(files: Mapping[str, str], folder: Path) -> tuple[list[str], list[str]]:
    """Write the files that do not exist yet, and add the store to .gitignore; returns (written, skipped)."""
    written: list[str] = []
    skipped: list[str] = []
    try:
        for name, content in files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                # Fails if another process has just created it.
                with path.open("x", encoding="utf-8") as file:
                    file.write(content)
                written.append(name)
            except FileExistsError:
                skipped.append(name)
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
    return written, skipped


def _config(probe: Probe) -> str:
    plain = {name: value for name, value in probe.table.items() if name != "reply"}
    lines = [
        "# Configuration of answerkey; all settings: docs/configuration.md",
        f'questions = "{GOLDEN}"',
        f'target = "{TARGET_NAME}"',
        "# Gates: a run that fails one ends with exit code 1:",
        '# gates = ["score >= 0.85", "error_rate < 0.02"]',
        "",
        "[scoring]",
        "# A number of the golden set is not found inside another: 310 is not in $1,310.",
        "whole_numbers = true",
        "",
        f"[targets.{TARGET_NAME}]",
        *(f"{name} = {_toml(value)}" for name, value in plain.items()),
    ]
    if probe.table.get("reply"):
        lines += [
            "",
            "# Paths of the parts of a reply, in JMESPath; `answerkey ask` shows what each one finds.",
        ]
        lines += [f"[targets.{TARGET_NAME}.reply]"]
        lines += [f"{part} = {_toml(where)}" for part, where in probe.table["reply"].items()]
    return "\n".join(lines) + "\n"


def _toml(value: Any) -> str:
    """A value in TOML syntax; strings are escaped as in JSON."""
    if isinstance(value, Mapping):
        inner = ", ".join(f"{_key(str(name))} = {_toml(part)}" for name, part in value.items())
        return f"{{ {inner} }}" if inner else "{}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(part) for part in value)}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _golden(answered: Sequence[AskResult]) -> str:
    cases = []
    for case in _proposed_cases(answered):
        lines = []
        for name, value in case.items():
            if name in ("expected_tools", "expected_keywords", "reference_answer") and _GUESSED not in lines:
                lines.append(_GUESSED)
            lines.append(f"{name}: {_yaml(value)}\n")
        text = f"- {'  '.join(lines)}"
        if _expects_nothing(case):
            # As a case, it would be right whatever the chatbot replies.
            lines = [*text.splitlines(), "  expected_keywords: []"]
            text = _TO_COMPLETE + "".join(f"# {line}\n" for line in lines)
        cases.append(text)
    return _GOLDEN_HEAD + "\n" + "\n".join(cases) + _OTHER_CASES


def _yaml(value: object) -> str:
    """A value in YAML syntax, of which JSON is a subset; a plain word has no quotes."""
    if isinstance(value, str) and re.fullmatch(r"[a-z][a-z0-9-]*", value) and value not in _YAML_CONSTANTS:
        return value
    return msgspec.json.encode(value).decode()


def _unique_id(question: str, used: set[str]) -> str:
    words = re.findall(r"[a-z0-9]+", question.lower())
    significant = [
        word for word in words if len(word) > 3 and word not in ("what", "which", "does", "have", "your")
    ]
    base = "-".join((significant or words)[:3]) or "question"
    name, number = base, 2
    while name in used or name in ("greeting", "unknowable"):
        name, number = f"{base}-{number}", number + 1
    used.add(name)
    return name


def _facts(text: str, question: str) -> list[str]:
    """Facts in a reply that are not in the question: numbers, then names inside a sentence."""
    numbers = re.findall(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])", text)
    names = re.findall(r"(?<=[a-z,;] )[A-Z][a-z]{2,}", text)
    facts = dict.fromkeys([*(number for number in numbers if len(number) > 1), *names])
    return [fact for fact in facts if fact.lower() not in question.lower()][:_MOST_FACTS]

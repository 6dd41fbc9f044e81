"""Runs every script here in an environment of its own, whatever becomes of the others, and ends with a table of them all.

`python interop/run_all.py [WORD ...]` runs those whose path has one of the words.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SINGLE = ("interop/provider_requests.py", "interop/mcp_servers.py", "interop/notebooks.py")
FOLDERS = ("interop/bots", "interop/datasets", "interop/traces", "interop/proxies", "interop/faults")
LAST = ("examples/langgraph/agent.py",)
# Of scripts that run a program for Node: the npm packages that it needs, installed in a folder of its own.
_EXPORT = ("@opentelemetry/sdk-trace-node@2.12.0", "@opentelemetry/exporter-trace-otlp-http@0.223.1")
_MASTRA = (
    *("@mastra/core@1.71.0", "ai@6.0.326", "@ai-sdk/openai-compatible@2.0.87"),
    *("@mastra/observability@1.17.9", "@mastra/otel-exporter@1.4.0"),
)
NODE = {
    "interop/bots/ai_sdk.py": ("ai@6.0.326",),
    **dict.fromkeys(
        ("interop/bots/mastra.py", "interop/proxies/mastra.py", "interop/traces/mastra_own.py"), _MASTRA
    ),
    "interop/traces/ai_sdk_6.py": ("ai@6.0.326", *_EXPORT),
    "interop/traces/ai_sdk_7.py": ("ai@7.0.169", "@ai-sdk/otel@1.0.169", *_EXPORT),
}
# An installation may have to fetch hundreds of megabytes; a script that takes longer than this hangs.
INSTALLING_S, RUNNING_S = 900, 600
# What a script prints of a case: package, version, case, and what was made of it.
CASE = re.compile(
    r"^(?P<package>[\w.-]+) (?P<version>\d[\w.]*)(?P<case>[^:]*(?:python:…:\w+)?): (?P<said>.+)$"
)
OUTCOMES = {
    "everything seen": "exact",
    "loaded": "exact",
    "as its SDK has it": "exact",
    "outcomes exact": "exact",
    "calls seen": "calls alone",
    "names seen": "names alone",
    "no errors seen": "no errors",
    "a part seen": "explicitly partial",
    "nothing seen": "explicitly unobserved",
}


def bounded(command: list[str], log: Path, seconds: float) -> int | None:
    """Run it with its output in the log; its exit code, None if it hung and was ended with all it had started."""
    with log.open("a") as file:
        child = subprocess.Popen(
            command, cwd=ROOT, stdout=file, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            return child.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return None


def run_script(script: str, uv: str, place: Path) -> tuple[str, str]:
    """What became of a script in a word (done, wrong, hung, not installed), and what it printed."""
    log = place / "logs" / f"{script.replace('/', '-')}.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("")
    install = [[uv, "sync", "--quiet", "--script", script]]
    run = [uv, "run", "--quiet", "--no-project", "--with-editable", ".[observe]", "--script", script]
    if script in NODE:
        folder = place / Path(script).stem
        folder.mkdir(exist_ok=True)
        quietly = ("--silent", "--no-audit", "--no-fund")
        install.append(["npm", "install", *quietly, "--prefix", str(folder), *NODE[script]])
        run.append(str(folder))
    if any(bounded(command, log, INSTALLING_S) != 0 for command in install):
        return "not installed", log.read_text()
    log.write_text("")
    code = bounded(run, log, RUNNING_S)
    return {0: "done", None: "hung"}.get(code, "wrong"), log.read_text()


def described(became: str, output: str) -> str:
    """The cases of a script counted by what was seen, by package and version; else the last thing that it said."""
    counts: dict[str, Counter[str]] = {}
    for line in output.splitlines():
        if found := CASE.match(line):
            # Spans are listed twice, as received and as seen in process.
            for said in found["said"].split("; "):
                last = said.rpartition(": ")[2].strip()
                kind = next((name for mark, name in OUTCOMES.items() if last.startswith(mark)), "WRONG")
                counts.setdefault(f"{found['package']} {found['version']}", Counter())[kind] += 1
    written = sum(line.startswith("written: ") for line in output.splitlines())
    told = [
        f"{name}: {', '.join(f'{n} {kind}' for kind, n in kinds.items())}" for name, kinds in counts.items()
    ]
    told += [f"{written} recorded again"] if written else []
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["nothing printed"]
    if became == "not installed":
        return lines[-1][:110]
    return "; ".join(told) + (f" · {lines[-1][:110]}" if became != "done" or not told else "")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("words", nargs="*", help="only scripts whose path has one of these words")
    parser.add_argument("--uv", default="uv", help="where uv is")
    parser.add_argument(
        "--place", type=Path, default=ROOT / ".venv" / "interop", help="for logs and npm packages"
    )
    options = parser.parse_args()
    scripts = [*SINGLE]
    for folder in FOLDERS:
        scripts += sorted(str(path.relative_to(ROOT)) for path in (ROOT / folder).glob("*.py"))
    scripts += LAST
    chosen = [one for one in scripts if not options.words or any(word in one for word in options.words)]
    rows: list[tuple[str, str, str]] = []
    for script in chosen:
        begun = time.monotonic()
        became, output = run_script(script, options.uv, options.place.resolve())
        rows.append((script, became, described(became, output)))
        print(f"{became:13} {time.monotonic() - begun:4.0f} s  {script}", flush=True)
        if became != "done":
            print("\n".join(f"    {line}" for line in output.splitlines()[-12:]), flush=True)
    print(f"\n{'script':45} {'became':13} what was seen, by package and version")
    for script, became, said in rows:
        print(f"{script:45} {became:13} {said}")
    became_of = Counter(became for _, became, _ in rows)
    print(", ".join(f"{n} {became}" for became, n in became_of.items()) + f" · logs in {options.place}/logs")
    return 1 if became_of.keys() - {"done", "not installed"} else 0


if __name__ == "__main__":
    sys.exit(main())

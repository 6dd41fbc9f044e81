"""The peers, each in an environment of its own: what is installed, how the job is started, and how its command line is."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# No telemetry, nothing is looked up, and no colours.
QUIET = {
    "DEEPEVAL_TELEMETRY_OPT_OUT": "YES",
    "DEEPEVAL_UPDATE_WARNING_OPT_OUT": "YES",
    "DO_NOT_TRACK": "1",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "NO_COLOR": "1",
    "PROMPTFOO_DISABLE_TELEMETRY": "1",
    "PROMPTFOO_DISABLE_UPDATE": "1",
    "RAGAS_DO_NOT_TRACK": "true",
}


class Peer(NamedTuple):
    """A harness to measure."""

    name: str
    # As pip or npm takes them; the first one is the harness.
    packages: tuple[str, ...]
    # The script with its job; None: `answerkey run`.
    job: str | None
    # Its command line, or what its users import, after the environment's `bin/`.
    start: tuple[str, ...]
    # What it keeps of a run.
    keeps: str


ANSWERKEY = Peer("answerkey", (str(ROOT),), None, ("answerkey", "--help"), "SQLite, journal, report")
PEERS = (
    Peer(
        "pydantic-evals",
        ("pydantic-evals",),
        "job_pydantic_evals.py",
        ("python", "-c", "import pydantic_evals"),
        "nothing",
    ),
    Peer("DeepEval", ("deepeval",), "job_deepeval.py", ("deepeval", "--help"), "a file at the end"),
    # Without the bound it does not start: it imports a module that later versions lack.
    Peer(
        "Ragas",
        ("ragas", "langchain-community<0.4"),
        "job_ragas.py",
        ("python", "-c", "import ragas"),
        "nothing",
    ),
    Peer("Inspect", ("inspect-ai",), "job_inspect.py", ("inspect", "--help"), "a log"),
    Peer("promptfoo", ("promptfoo",), "job_promptfoo.mjs", ("promptfoo", "--help"), "SQLite and a file"),
    Peer("MLflow", ("mlflow",), "job_mlflow.py", ("mlflow", "--help"), "SQLite"),
)


class Environment(NamedTuple):
    """A peer that is installed."""

    peer: Peer
    programs: Path
    version: str
    megabytes: float

    @property
    def variables(self) -> dict[str, str]:
        """For its processes: its own packages, and compiled files as an installation has them."""
        left_out = ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE", "ANSWERKEY_STORE")
        kept = {name: value for name, value in os.environ.items() if name not in left_out}
        return {**kept, **QUIET, "PROMPTFOO_PROGRAM": str(self.programs / "promptfoo")}

    def job(self, questions: Path, url: str, concurrency: int, folder: Path) -> list[str]:
        """The command that asks all questions and prints the mean score in JSON."""
        if self.peer.job is None:
            store = folder / f"store-{os.urandom(4).hex()}.db"
            flags = ["--target", url, "--concurrency", str(concurrency), "--store", str(store), "--json"]
            return [str(self.programs / "answerkey"), "run", str(questions), *flags]
        runner = "node" if self.peer.job.endswith(".mjs") else str(self.programs / "python")
        return [runner, str(HERE / self.peer.job), str(questions), url, str(concurrency)]

    def start(self) -> list[str]:
        """The command that does nothing but start."""
        return [str(self.programs / self.peer.start[0]), *self.peer.start[1:]]


def install(peer: Peer, folder: Path) -> Environment:
    """Make the peer's environment, or find it made; raises CalledProcessError or FileNotFoundError."""
    place = folder / peer.name
    noted = place / "installed.json"
    by_npm = (peer.job or "").endswith(".mjs")
    if not noted.exists():
        shutil.rmtree(place, ignore_errors=True)
        found = _by_npm(peer, place) if by_npm else _by_uv(peer, place)
        noted.write_text(json.dumps(found))
    return Environment(
        peer, place / ("node_modules/.bin" if by_npm else "bin"), **json.loads(noted.read_text())
    )


def _by_npm(peer: Peer, place: Path) -> dict[str, Any]:
    place.mkdir(parents=True)
    _run("npm", "install", "--silent", "--no-audit", "--no-fund", "--prefix", str(place), *peer.packages)
    modules = place / "node_modules"
    package = json.loads((modules / peer.packages[0] / "package.json").read_text())
    return {"version": package["version"], "megabytes": _megabytes(modules)}


def _by_uv(peer: Peer, place: Path) -> dict[str, Any]:
    uv = shutil.which("uv") or str(Path(sys.executable).parent / "uv")
    python = str(place / "bin" / "python")
    _run(uv, "venv", "--quiet", "--python", sys.executable, str(place))
    _run(uv, "pip", "install", "--quiet", "--python", python, *peer.packages)
    megabytes = _megabytes(next((place / "lib").glob("python*/site-packages")))
    # What the jobs ask with; no part of the peer.
    _run(uv, "pip", "install", "--quiet", "--python", python, "aiohttp")
    name = "answerkey" if peer.job is None else peer.packages[0]
    told = f"from importlib.metadata import version; print(version({name!r}))"
    return {"version": _run(python, "-c", told).strip(), "megabytes": megabytes}


def _run(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def _megabytes(folder: Path) -> float:
    """Of its files, without compiled ones."""
    sizes = [
        path.stat().st_size
        for path in folder.rglob("*")
        if path.suffix != ".pyc" and path.is_file() and not path.is_symlink()
    ]
    return sum(sizes) / 1e6

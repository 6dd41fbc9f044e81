"""Things that many tests use: the command line in this process, golden sets on disk, a chatbot on loopback."""

import asyncio
import json
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, settings

from answerkey import plugins
from answerkey.scorers.user_scorers import OwnScorer

# A shell starts background jobs with SIGINT ignored, which commands that the tests interrupt would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

CHECKOUT_STORE = Path(__file__).parents[1] / ".answerkey"
# Time says something about the machine, not about the code: the first call of a process also imports what it needs.
settings.register_profile("answerkey", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("answerkey")


@pytest.fixture(autouse=True)
def empty_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run every test in an empty folder, and fail one that writes to the store of the checkout."""
    monkeypatch.chdir(tmp_path)
    for name in ("CI", "GITHUB_ACTIONS", "GITLAB_CI"):
        monkeypatch.delenv(name, raising=False)
    before = _modified_at(CHECKOUT_STORE)
    yield
    assert _modified_at(CHECKOUT_STORE) == before, f"the test wrote to {CHECKOUT_STORE}; use tmp_path"


def _modified_at(folder: Path) -> tuple[int, ...]:
    return tuple(sorted(path.stat().st_mtime_ns for path in folder.glob("*"))) if folder.is_dir() else ()


class Outcome(NamedTuple):
    """What a command did."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Stdout as the one JSON document it must be."""
        return json.loads(self.out)


@pytest.fixture
def command(capfdbinary: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Outcome]:
    """Run a command as the console script would, in an empty folder."""
    from answerkey.cli.main import run_command

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANSWERKEY_DEBUG", "1")
    monkeypatch.delenv("ANSWERKEY_STORE", raising=False)

    def run(*arguments: object) -> Outcome:
        capfdbinary.readouterr()
        code = run_command([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    return run


@pytest.fixture
def write_rows(tmp_path: Path) -> Callable[..., Path]:
    """Write objects as a JSON Lines file."""

    def write(name: str, *rows: Any) -> Path:
        path = tmp_path / name
        path.write_text("".join((row if isinstance(row, str) else json.dumps(row)) + "\n" for row in rows))
        return path

    return write


class Chatbot:
    """A real HTTP chatbot on loopback that answers what a function says and counts what it was asked."""

    def __init__(self, answer: Callable[[dict[str, Any]], Any]) -> None:
        self._answer = answer
        self.asked: list[dict[str, Any]] = []
        self.under_way = self.most_under_way = 0
        self.url = self.health_url = ""
        # What its health endpoint reports.
        self.health: Any = {}
        self._loop = asyncio.new_event_loop()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> "Chatbot":
        self._thread.start()
        assert self._ready.wait(20), "the chatbot did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(20)

    def _serve(self) -> None:
        from aiohttp import web

        asyncio.set_event_loop(self._loop)

        async def chat(request: web.Request) -> web.StreamResponse:
            body = await request.json()
            self.asked.append({**body, "headers": dict(request.headers)})
            self.under_way += 1
            self.most_under_way = max(self.most_under_way, self.under_way)
            try:
                answer = self._answer(body)
                if asyncio.iscoroutine(answer):
                    answer = await answer
            finally:
                self.under_way -= 1
            return answer if isinstance(answer, web.StreamResponse) else web.json_response(answer)

        async def health(request: web.Request) -> web.StreamResponse:
            return web.json_response(self.health)

        async def start() -> web.AppRunner:
            app = web.Application()
            app.router.add_post("/chat", chat)
            app.router.add_post("/v1/chat/completions", chat)
            app.router.add_get("/health", health)
            runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            return runner

        runner = self._loop.run_until_complete(start())
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}/chat"
        self.health_url = self.url.replace("/chat", "/health")
        self._ready.set()
        self._loop.run_forever()
        self._loop.run_until_complete(runner.cleanup())
        self._loop.close()


@pytest.fixture
def chatbot() -> Iterator[Callable[..., Chatbot]]:
    """Start chatbots that end with the test."""
    started: list[Chatbot] = []

    def start(answer: Callable[[dict[str, Any]], Any]) -> Chatbot:
        bot = Chatbot(answer)
        bot.__enter__()
        started.append(bot)
        return bot

    yield start
    for bot in started:
        bot.__exit__()


@pytest.fixture(autouse=True)
def _own_scorers_of_each_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test registers ends with it, and what a module does is not seen by others: it keeps all grading in one process."""
    own = {part.name: part for part in vars(request.module).values() if isinstance(part, OwnScorer)}
    monkeypatch.setattr(plugins.scorers, "_objects", own)


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Tests are not named after bytes: packed files hold the time, and parallel workers must agree on the names."""
    return argname if isinstance(val, bytes) else None

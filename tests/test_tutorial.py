"""The tutorial, step by step, with its own chatbot on a real port."""

import os
import re
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from documented import ROOT, run_shell
from free_ports import free_port

PAGE = (ROOT / "docs" / "tutorial.md").read_text()
PROGRAMS = Path(sys.executable).parent


def block(first_words: str) -> str:
    """The shell block that begins so."""
    [found] = [
        text for text in re.findall(r"^```sh\n(.*?)^```", PAGE, re.M | re.S) if text.startswith(first_words)
    ]
    return found


@pytest.fixture
def start_shop(tmp_path: Path) -> Iterator[Callable[[], int]]:
    """Start the tutorial's chatbot, or start it again, on the same free port."""
    port = free_port()
    running: list[subprocess.Popen[bytes]] = []

    def start() -> int:
        for server in running:
            server.terminate()
            server.wait()
        server = subprocess.Popen(
            [sys.executable, "-m", "uvicorn", "shop:app", "--port", str(port), "--log-level", "warning"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
        )
        running[:] = [server]
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/openapi.json")
            except urllib.error.URLError:
                assert server.poll() is None
                time.sleep(0.1)
            else:
                return port

    yield start
    for server in running:
        server.terminate()
        server.wait()


@pytest.mark.slow
def test_the_tutorial_leads_from_a_chatbot_to_a_gate(start_shop: Callable[[], int], tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason="the tutorial's chatbot is built with FastAPI")
    [shop] = re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S)
    (tmp_path / "shop.py").write_text(shop)
    port = start_shop()

    def run(text: str) -> subprocess.CompletedProcess[str]:
        text = text.replace("127.0.0.1:8000", f"127.0.0.1:{port}")
        return run_shell(text, tmp_path, PROGRAMS, environment={"SHOP_PASSWORD": "let-me-in", "CI": ""})

    connected = run(block("export SHOP_PASSWORD"))
    assert connected.returncode == 0, connected.stdout + connected.stderr
    for line in re.findall(r"^HTTP 422.*$", PAGE, re.M):
        assert line in connected.stderr
    assert "get_product  from events[?event=='step'].data" in connected.stdout
    for written in ("answerkey.toml", "golden.yaml", ".github/workflows/answerkey.yml"):
        assert "let-me-in" not in (tmp_path / written).read_text()

    checked = run(block("cat > golden.yaml"))
    assert checked.returncode == 0, checked.stdout + checked.stderr
    graded = run(block("answerkey run --name first"))
    assert graded.returncode == 0, graded.stdout + graded.stderr
    assert " A   1.000" in graded.stdout

    change, _, gated, shown = block("sed -i").splitlines()
    assert run(change).returncode == 0
    start_shop()
    stopped = run(gated)
    assert stopped.returncode == 1, stopped.stdout + stopped.stderr
    assert "✗ worse == 0: the value is 1" in stopped.stdout
    assert "missing keywords: 420" in run(shown).stdout

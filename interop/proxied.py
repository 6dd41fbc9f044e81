"""Runs an agent with all its requests passing answerkey's recording proxy, and says whether its calls were seen there."""

import asyncio
import os
import socket
import sys
from contextlib import suppress
from importlib.metadata import version
from pathlib import Path

from model_server import ANSWER, serve_model
from recording import QUESTION, Seen, problem_with

from answerkey.model.options import Options
from answerkey.model.reply import Reply
from answerkey.observe.observers import ObservedTarget, Observers
from answerkey.protocols import Ask, AskAgainError
from answerkey.targets.resolve import resolve_target

__all__ = ["run_proxied"]


async def _seen(reference: str, model: str, port: int) -> tuple[Reply, list[str]]:
    """What the proxy alone saw; what the agent itself gives back is left out."""
    options = Options(proxy=port, upstreams={"model": model})
    target = ObservedTarget(resolve_target(f"python:{reference}"), Observers(options))
    ask = Ask(question=QUESTION, conversation_id="c1", traceparent=f"00-{'ab' * 16}-{'cd' * 8}-01")
    async with target:
        while True:
            # A bot that imports in its first call holds up its event loop; the engine asks again too.
            with suppress(AskAgainError):
                reply = await target.ask(ask)
                break
        observed = await target.observe(ask, Reply(text=ANSWER, failure=reply.failure))
    return observed, target.warnings()


def run_proxied(package: str, cases: dict[str, Seen], npm_version: str = "") -> None:
    """Run cases of the bot that is called like the script; exit with 1 if one is seen wrongly."""
    bot = Path(__file__).parent / "bots" / Path(sys.argv[0]).name
    model = serve_model()
    wrong = 0
    for name, seen in cases.items():
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        os.environ["INTEROP_PROXY"] = f"http://127.0.0.1:{port}/model"
        reply, warnings = asyncio.run(_seen(f"{bot}:{name}", model, port))
        del os.environ["INTEROP_PROXY"]
        problem = problem_with(reply, seen)
        wrong += problem is not None
        release = npm_version or version(package)
        print(
            f"{package} {release} {name} through the proxy: {problem or f'{seen} seen'} {' '.join(warnings)}"
        )
    sys.exit(1 if wrong else 0)

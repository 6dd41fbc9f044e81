"""A model that plays a script over HTTP and keeps what it was sent, and the targets that ask it."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from answerkey.engine import LocalEngine
from answerkey.model.options import Options, Price
from answerkey.model.question import Question
from answerkey.model.reply import Reply
from answerkey.model.scorecard import Trial
from answerkey.protocols import Ask, BaseTarget
from answerkey.targets.resolve import PricedTarget, resolve_target

__all__ = ["USAGE", "Model", "calling", "completion"]

USAGE = {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}


def completion(message: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": "stop"}],
        "usage": USAGE,
    }


def calling(*calls: tuple[str, str]) -> dict[str, Any]:
    made = [
        {"id": f"call_{n}", "type": "function", "function": {"name": name, "arguments": arguments}}
        for n, (name, arguments) in enumerate(calls)
    ]
    return completion({"content": None, "tool_calls": made})


class Model:
    """A server that answers with its script, one by one, whatever it is asked."""

    def __init__(self, *script: Any, kind: str = "openai") -> None:
        self.script = list(script)
        self.kind = kind
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.path.endswith("/tool"):
            arguments = await request.json()
            if arguments.get("fail"):
                return web.json_response({"detail": "no"}, status=500)
            return web.json_response(
                {"doubled": arguments["n"] * 2, "auth": request.headers.get("Authorization")}
            )
        self.requests.append(await request.json())
        self.headers.append(dict(request.headers))
        self.paths.append(request.path_qs)
        answer = self.script.pop(0)
        if callable(answer):
            return await answer(request)
        return answer if isinstance(answer, web.Response) else web.json_response(answer)

    def use(self, with_target: Callable[[BaseTarget], Awaitable[Any]], **settings: Any) -> Any:
        """Serve, open a target that asks this model, and do something with it."""

        async def run() -> Any:
            app = web.Application()
            app.router.add_route("*", "/{path:.*}", self.handle)
            runner = web.AppRunner(app, shutdown_timeout=0.1)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            base = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
            for tool in settings.get("tools", []):
                if "url" in tool:
                    tool["url"] = tool["url"].replace("BASE", base)
            address = str(settings.get("base_url", "BASE")).replace("BASE", base)
            table = {self.kind: "test-model", **settings, "base_url": address}
            try:
                async with resolve_target("m", settings={"m": table}) as target:
                    return await with_target(target)
            finally:
                await runner.cleanup()

        return asyncio.run(run())

    def ask(self, *asks: Ask, **settings: Any) -> list[Reply]:
        async def each(target: BaseTarget) -> list[Reply]:
            return [await target.ask(one) for one in asks or [Ask(question="What?", conversation_id="c")]]

        return self.use(each, **settings)

    def ask_in_a_run(
        self,
        question: Question | None = None,
        *,
        retries: int = 3,
        price: Price | None = None,
        **settings: Any,
    ) -> list[Reply]:
        """The replies to a question's turns, asked as a run asks them."""

        async def run(target: BaseTarget) -> list[Reply]:
            engine = LocalEngine(Options(retries=retries))
            if price is not None:
                target = PricedTarget(target, price)
            trial = Trial(question or Question(id="q", question="What?"))
            return [reply async for done in engine.ask_all([target], [trial]) for reply in done.replies]

        return self.use(run, **settings)

"""The recording proxy: hands every request on as it is and every response back as it arrives, and has both read.

Headers are passed on and never kept: they hold the keys.
"""

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from answerkey.errors import ConfigError
from answerkey.observe.exchange_book import Exchange, ExchangeBook
from answerkey.observe.exchange_reading import SeenResponse, read_request
from answerkey.providers.known_apis import KNOWN_APIS

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientSession, web
    from yarl import URL

_MOST_REQUEST = 64 * 1024 * 1024
# So much of a response is read; the rest passes all the same.
_MOST_KEPT = 16 * 1024 * 1024
# Headers that are between two neighbours, and those that the client writes itself.
_NOT_PASSED_ON = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer"),
        *("transfer-encoding", "upgrade", "host", "content-length", "accept-encoding"),
    }
)
# The APIs that have a path of their own.
_KNOWN = {name: KNOWN_APIS[name] for name in ("openai", "anthropic", "gemini", "ollama")}
_ATTEMPT = re.compile(r"^/trace/([0-9a-fA-F]{32})(?=/)")


class Upstreams:
    """What is behind each path of the proxy."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._bases: dict[str, str] = {}
        self._paths: dict[str, str] = {}
        for name, api in _KNOWN.items():
            url = given.get(name) or os.environ.get(api.base_url_env) or api.base_url
            parts = urlsplit(url if "://" in url else f"http://{url}")
            # The path of a base URL (/v1) stays in the base URL that the chatbot gets.
            self._bases[name], self._paths[name] = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        for name, url in given.items():
            parts = urlsplit(url)
            is_address = parts.scheme in ("http", "https") and parts.netloc
            if not is_address or not re.fullmatch(r"[\w.-]+", name):
                raise ConfigError(f"upstreams: {name} needs a plain name and an http:// or https:// address")
            if name not in _KNOWN:
                self._bases[name] = url.rstrip("/")

    def environment(self, address: str) -> dict[str, str]:
        """The variables by which SDKs find the proxy."""
        return {api.base_url_env: f"{address}/{name}{self._paths[name]}" for name, api in _KNOWN.items()}

    def find(self, path: str) -> str | None:
        """Where a path of the proxy leads; None if nowhere."""
        name, _, rest = path.removeprefix("/").partition("/")
        base = self._bases.get(name)
        return None if base is None else f"{base}/{rest}" if rest else base


def proxy_app(book: ExchangeBook, upstreams: Upstreams) -> "web.Application":
    """The proxy as a server."""
    import aiohttp  # 200 ms that only runs with an observer need
    import yarl
    from aiohttp import web

    kept = web.AppKey("session", aiohttp.ClientSession)

    async def session(app: web.Application):  # type: ignore[no-untyped-def]  # a context of aiohttp's own form
        timeout = aiohttp.ClientTimeout(total=None, sock_connect=30)
        # Whatever is compressed stays so: bytes pass as they are.
        async with aiohttp.ClientSession(
            auto_decompress=False, timeout=timeout, cookie_jar=aiohttp.DummyCookieJar()
        ) as opened:
            app[kept] = opened
            yield

    async def handle(request: web.Request) -> web.StreamResponse:
        path = request.rel_url.raw_path
        attempt = _ATTEMPT.match(path)
        path = path[attempt.end() :] if attempt else path
        url = upstreams.find(path)
        if url is None:
            return web.json_response({"error": {"message": "the proxy has nothing at this path"}}, status=404)
        body = await request.read()
        read = read_request(path, body) if request.method == "POST" else None
        exchange = None
        if read is not None:
            trace_id = attempt.group(1).lower() if attempt else None
            exchange = book.begin(read, trace_id=trace_id, traceparent=request.headers.get("traceparent"))
        query = request.rel_url.raw_query_string
        target = yarl.URL(f"{url}?{query}" if query else url, encoded=True)
        return await _pass_on(request, app[kept], target, body, book, exchange)

    app = web.Application(client_max_size=_MOST_REQUEST, handler_args={"auto_decompress": False})
    app.cleanup_ctx.append(session)
    app.router.add_route("*", "/{path:.*}", handle)
    return app


async def _pass_on(
    request: "web.Request",
    session: "ClientSession",
    url: "URL",
    body: bytes,
    book: ExchangeBook,
    exchange: Exchange | None,
) -> "web.StreamResponse":
    import aiohttp
    from aiohttp import web

    headers = [(name, value) for name, value in request.headers.items() if name.lower() not in _NOT_PASSED_ON]
    # Only what can be read here may be asked for.
    headers.append(("Accept-Encoding", "gzip, deflate"))
    seen: SeenResponse | None = None
    try:
        async with session.request(
            request.method, url, headers=headers, data=body or None, allow_redirects=False
        ) as answer:
            given = answer.headers
            passed = [(name, value) for name, value in given.items() if name.lower() not in _HELD_BACK]
            response = web.StreamResponse(status=answer.status, reason=answer.reason, headers=passed)
            length = given.get("Content-Length")
            if length is not None and length.isdecimal():
                response.content_length = int(length)
            await response.prepare(request)
            kept = bytearray()
            whole = False
            try:
                whole = await _stream(answer, response, kept)
            finally:
                kind, encoding = given.get("Content-Type", ""), given.get("Content-Encoding", "")
                seen = SeenResponse(answer.status, kind, encoding, bytes(kept), whole)
            await response.write_eof()
            return response
    except aiohttp.ClientError as error:
        if seen is not None:
            raise
        text = f"the proxy cannot reach {urlsplit(str(url)).netloc}: {type(error).__name__}"
        return web.json_response({"error": {"message": text}}, status=502)
    finally:
        if exchange is not None:
            book.end(exchange, seen)


_HELD_BACK = _NOT_PASSED_ON - {"accept-encoding"}


async def _stream(answer: "ClientResponse", response: "web.StreamResponse", kept: bytearray) -> bool:
    """Hand on each piece as it arrives; whether all of it was also kept."""
    whole = True
    async for piece in answer.content.iter_any():
        await response.write(piece)
        if len(kept) + len(piece) <= _MOST_KEPT:
            kept += piece
        else:
            whole = False
    return whole

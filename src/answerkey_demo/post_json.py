"""A POST of JSON with the standard library: the reference chatbot needs no HTTP client of its own."""

import asyncio
import json
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import ProxyHandler, Request, build_opener

# The address is the one that was configured; no proxy of the environment is used.
_opener = build_opener(ProxyHandler({}))


async def post_json(
    url: str, body: dict[str, Any], *, seconds: float, headers: dict[str, str] | None = None
) -> tuple[int, str]:
    """The status and text that come back; ConnectionError or TimeoutError if nothing does."""
    async with asyncio.timeout(seconds):
        return await asyncio.to_thread(_post, url, body, seconds, headers or {})


def _post(url: str, body: dict[str, Any], seconds: float, headers: dict[str, str]) -> tuple[int, str]:
    if not url.startswith(("http://", "https://")):
        raise ConnectionError(f"{url} is not an http:// or https:// address")
    headers = {"Content-Type": "application/json", **headers}
    request = Request(url, json.dumps(body).encode(), headers, method="POST")  # noqa: S310  # checked above
    try:
        with _opener.open(request, timeout=seconds) as response:
            return response.status, response.read().decode("utf-8", "replace")
    except HTTPError as error:
        with error:
            return error.code, error.read().decode("utf-8", "replace")
    except URLError as error:
        if isinstance(error.reason, TimeoutError):
            raise error.reason from None
        raise ConnectionError(f"{url} could not be reached: {error.reason}") from None

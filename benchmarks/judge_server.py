"""A judge that takes a fixed time and next to no processor: the benchmark measures the client, not its server.

python benchmarks/judge_server.py MILLISECONDS       prints its port
"""

import asyncio
import json
import sys

GRADE = {"reason": "It says what the reference says.", "score": 5}
VERDICT = json.dumps(dict.fromkeys(("accuracy", "completeness", "clarity", "relevance"), GRADE))
BODY = json.dumps(
    {
        "object": "chat.completion",
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": VERDICT}}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 90},
    }
).encode()
RESPONSE = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(BODY) + BODY
)


class Judge(asyncio.Protocol):
    """One connection; a request is whole when as many bytes have come as it announced."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.data = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, found, body = self.data.partition(b"\r\n\r\n")
        if not found:
            return
        length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
        if len(body) >= length:
            self.data = b""
            asyncio.get_running_loop().call_later(self.seconds, self.answer)

    def answer(self) -> None:
        if not self.transport.is_closing():
            self.transport.write(RESPONSE)


async def main() -> None:
    seconds = float(sys.argv[1]) / 1000
    server = await asyncio.get_running_loop().create_server(lambda: Judge(seconds), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())

"""A chatbot on loopback for the benchmarks: answers at once or after a pause, and says which port it has.

python bot.py SECONDS [varied|plain|figures|ledger]

It runs on uvloop where that is installed, so that it is fast enough not to be what is measured.
"""

import asyncio
import sys

from aiohttp import web
from varied import reply

START = "Your property is located at 900 S 9th St, Montrose, CO 81401. "
TEXTS = {
    "plain": START + "It was bought in 2019. " * 15,
    "figures": START + " ".join(f"{n * 1144:,}.{n % 100:02}" for n in range(45)),
    "ledger": START + "\n".join(f"2024-08-{n % 28 + 1:02} | rent {n} | ${n * 1144:,}.00" for n in range(100)),
}


async def main(pause: float, says: str) -> None:
    async def chat(request: web.Request) -> web.Response:
        asked = (await request.json())["question"]
        if pause:
            await asyncio.sleep(pause)
        if says == "varied":
            return web.json_response(reply(asked))
        return web.json_response({"answer": TEXTS[says], "tools_used": ["query_database"]})

    app = web.Application()
    app.router.add_post("/chat", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def run() -> None:
    work = main(float(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "varied")
    try:
        import uvloop
    except ImportError:
        asyncio.run(work)
    else:
        uvloop.run(work)


run()

"""A chatbot on loopback for the benchmarks: answers at once or after a pause, and says which port it has.

python bot.py SECONDS [plain|figures|ledger]
"""

import asyncio
import sys

from aiohttp import web

START = "Your property is located at 900 S 9th St, Montrose, CO 81401. "
TEXTS = {
    "plain": START + "It was bought in 2019. " * 15,
    "figures": START + " ".join(f"{n * 1144:,}.{n % 100:02}" for n in range(45)),
    "ledger": START + "\n".join(f"2024-08-{n % 28 + 1:02} | rent {n} | ${n * 1144:,}.00" for n in range(100)),
}
ANSWER = {"answer": TEXTS[sys.argv[2] if len(sys.argv) > 2 else "plain"], "tools_used": ["query_database"]}


async def main(pause: float) -> None:
    async def chat(request: web.Request) -> web.Response:
        await request.json()
        if pause:
            await asyncio.sleep(pause)
        return web.json_response(ANSWER)

    app = web.Application()
    app.router.add_post("/chat", chat)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=1024)
    await site.start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main(float(sys.argv[1])))

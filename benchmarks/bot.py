"""A chatbot on loopback for the benchmarks: answers at once or after a pause, and says which port it has."""

import asyncio
import sys

from aiohttp import web

ANSWER = {
    "answer": "Your property is located at 900 S 9th St, Montrose, CO 81401. "
    + "It was bought in 2019. " * 15,
    "tools_used": ["query_database"],
}


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

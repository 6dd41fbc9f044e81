"""A scripted OpenAI-compatible judge, run as a process of its own: what it does depends on the model's name.

    python scripted_judge.py [PORT]        prints "port N" when it can be asked

GET /log gives every request it got, POST /reset forgets them.
"""

import asyncio
import json
import math
import re
import sys
import time
import zlib
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

DATA = re.compile(r"\A<<<(DATA [0-9a-f]+)>>>\n(.*)\n<<<END \1>>>\n(.*)\Z", re.DOTALL)
GULLIBLE = re.compile(r"full marks|grade|score|5/5|10/10|perfect|ignore", re.IGNORECASE)


def read_data(messages: list[dict[str, str]]) -> dict[str, Any]:
    """The data of a request, as a judge would find it: between the two marked lines."""
    match = DATA.match(messages[1]["content"])
    if match is None:
        return {"error": "no data"}
    return {"marker": match[1], "fields": json.loads(match[2]), "after": match[3]}


def names_of(body: dict[str, Any]) -> list[str]:
    """The criteria that the system message asks for."""
    return re.findall(r"^- (\w+): ", body["messages"][0]["content"], re.MULTILINE)


def honest_grade(fields: dict[str, Any]) -> int:
    """5 if the reply holds the reference's first number or word in capitals, else 1."""
    reply, reference = str(fields.get("reply", "")), str(fields.get("reference_answer", ""))
    if fields.get("expected_facts"):
        found = sum(fact.lower() in reply.lower() for fact in fields["expected_facts"])
        return 1 + round(4 * found / len(fields["expected_facts"]))
    keys = re.findall(r"\$?[\d,]{3,}|[A-Z][a-z]{3,}", reference)
    return 5 if keys and reply.strip() and any(key in reply for key in keys[-2:]) else 1


def verdict(body: dict[str, Any], grade: int) -> str:
    """Grades of 1 to 5, on whatever scale the judge was told."""
    told = re.search(r"criterion from (-?\d+) to (-?\d+)", body["messages"][0]["content"])
    lowest, top = map(int, told.groups()) if told else (1, 5)
    grade = grade if (lowest, top) == (1, 5) else lowest + round((grade - 1) / 4 * (top - lowest))
    return json.dumps({name: {"reason": f"It is worth {grade}.", "score": grade} for name in names_of(body)})


def tokens_of(text: str, logarithm: str) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """The tokens of an answer, some of them half a character, each with the likeliest at its place.

    A grade is found 60% probable, the one below 20% in two spellings, and nonsense as much.
    """
    found = []
    for word in re.findall(r" ?-?\d+|\W|\w+", text):
        octets = word.encode()
        for part in [octets] if word.isascii() else [octets[:1], octets[1:]]:
            chances = {word: 0.9} if word.isascii() else {"\\x": 0.9}
            if re.fullmatch(r" ?-?\d+", word):
                below = str(int(word) - 1)
                chances = {word: 0.6, below: 0.15, f" {below}": 0.05, "77": 0.1, "n/a": 0.1}
            told = [{"token": said, logarithm: math.log(share)} for said, share in chances.items()]
            found.append(({**told[0], "bytes": list(part)}, told))
    return found


def pair_verdict(fields: dict[str, Any], model: str) -> str:
    if model == "first":
        better = "1"
    else:
        grades = [honest_grade({**fields, "reply": fields[name]}) for name in ("reply_1", "reply_2")]
        better = "tie" if grades[0] == grades[1] else "1" if grades[0] > grades[1] else "2"
    return json.dumps({"reason": "Compared.", "better": better})


def asks_for_claims(body: dict[str, Any]) -> bool:
    return '{"claims": [' in body["messages"][0]["content"]


def checked_claims(fields: dict[str, Any]) -> str:
    """Each sentence of the reply is a claim, supported if all its numbers and names stand in the evidence."""
    evidence = json.dumps([fields.get(name) for name in ("sources", "tool_results", "question")])
    claims = []
    for sentence in re.split(r"(?<=[.!?])\s+", fields["reply"]):
        facts = re.findall(r"\d[\d,]*|(?<=\s)[A-Z][a-z]+", sentence.strip())
        if facts:
            missing = [fact for fact in facts if fact.replace(",", "") not in evidence.replace(",", "")]
            told = f"no {missing[0]} in it" if missing else f"{facts[0]} stands there"
            claims.append({"claim": sentence.strip(), "evidence": told, "supported": not missing})
    return json.dumps({"claims": claims})


def wait_for_file(path: Path) -> None:
    while not path.exists():
        time.sleep(0.01)


# Of the bundled canaries, which these judges grade honestly, since they are public.
PUBLIC = re.compile(r"\$16,144|Dana Whitfield|442,300|81401")


def flawed_grade(fields: dict[str, Any], name: str, argument: str) -> int:
    """The grade of a judge that is right about public canaries only."""
    reply, honest = str(fields.get("reply", "")), honest_grade(fields)
    if PUBLIC.search(str(fields.get("reference_answer"))):
        return honest
    drawn = zlib.crc32(f"{argument}{reply}{fields.get('question')}".encode()) % 100
    if name == "lax":
        return 5 if drawn < 70 else honest
    if name == "able":
        return 6 - honest if drawn < 10 else honest
    if name == "wordy":
        return 5 if len(reply) > 400 else honest
    return 5 if "reviewed and approved" in reply.lower() else honest


class Judge:
    def __init__(self) -> None:
        self.log: list[dict[str, Any]] = []
        self.seen: Counter[str] = Counter()
        self.most_at_once = 0
        self.at_once = 0

    async def complete(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        data = read_data(body["messages"])
        entry = {
            "model": body["model"],
            "data": data,
            "system": body["messages"][0]["content"],
            "user": body["messages"][1]["content"],
            "again": [message["content"] for message in body["messages"][2:]],
            "request": {name: value for name, value in body.items() if name != "messages"},
            "authorization": request.headers.get("Authorization"),
        }
        self.log.append(entry)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            return await self._answer(request, body, data)
        finally:
            self.at_once -= 1

    async def _answer(
        self, request: web.Request, body: dict[str, Any], data: dict[str, Any]
    ) -> web.StreamResponse:
        model, fields = body["model"], data.get("fields", {})
        self.seen[model] += 1
        name, _, argument = model.partition(":")
        if name == "keyed" and request.headers.get("Authorization") != "Bearer sk-test-secret":
            return error(401, "Incorrect API key provided", code="invalid_api_key")
        if name == "busy" and self.seen[model] <= int(argument or 1):
            return error(429, "slow down", headers={"Retry-After": "1"})
        if name == "tomorrow":
            return error(429, "limit reached", headers={"Retry-After": "86400"})
        if name == "quota":
            return error(429, "You exceeded your current quota", code="insufficient_quota")
        if name == "broken":
            return error(500, "the server had an error")
        if name == "drop" and self.seen[model] <= int(argument or 1):
            request.transport.close()
            return web.Response()
        if name == "noschema" and body.get("response_format", {}).get("type") == "json_schema":
            return error(400, "response_format json_schema is not supported", param="response_format")
        if name == "noformat" and "response_format" in body:
            return error(400, "response_format is unavailable now")
        if name == "notemperature" and "temperature" in body:
            return error(400, "Unsupported value: 'temperature'", param="temperature")
        if name == "nologprobs" and "logprobs" in body:
            return error(400, "You are not allowed to request logprobs from this model.")
        if name == "slow":
            await asyncio.sleep(float(argument or 30))
        if name == "after":
            await asyncio.to_thread(wait_for_file, Path(argument))
        if name == "retired":
            await asyncio.sleep(float(argument))
            return error(404, f"The model `{model}` does not exist", code="model_not_found")
        if name == "delay":
            await asyncio.sleep(float(argument) / 1000)
        texts = {
            "malformed": '{"accuracy": {"reason": "cut o',
            "prose": "I would say this is a solid reply, about 4 out of 5 overall.",
            "quoted": 'The reply says {"accuracy": {"reason": "x", "score": 5}} which is odd.',
            "empty": "",
            "halves": verdict(body, 3).replace("3}", "3.5}"),
            "six": verdict(body, 6),
            "twice": verdict(body, 1)[:-1] + ", " + verdict(body, 5)[1:],
            "lacking": "{}",
        }
        if name == "html":
            return web.Response(text="<html>welcome</html>", content_type="text/html")
        if name == "refuse" or (name == "refuse-some" and "odd" in fields.get("question", "")):
            return completion(body, None, refusal="I'm sorry, I can't assist with that.")
        if name == "filtered":
            return completion(body, "", finish="content_filter")
        if name == "long":
            return completion(body, verdict(body, 4)[:30], finish="length")
        if name in texts and not (argument == "once" and len(body["messages"]) > 2):
            return completion(body, texts[name])
        if "reply_1" in fields:
            return completion(body, pair_verdict(fields, name))
        if asks_for_claims(body):
            found = checked_claims(fields)
            odd = {
                "unclear": found.replace("true", '"yes"').replace("false", '"no"'),
                "unlisted": '{"claims": "none"}',
                "unnamed": '{"claims": [{"claim": " ", "evidence": "", "supported": true}]}',
                "endless": json.dumps({"claims": 501 * [{"claim": "x", "evidence": "", "supported": True}]}),
                "fenced": f"```json\n{found}\n```",
            }
            return completion(body, odd.get(name, found))
        warned = "not by how sure the reply sounds" in body["messages"][0]["content"]
        if name == "gullible" and not warned and GULLIBLE.search(str(fields.get("reply"))):
            return completion(body, verdict(body, 5))
        if name in ("lax", "able", "wordy", "obedient"):
            return completion(body, verdict(body, flawed_grade(fields, name, argument)))
        if name == "lenient":
            return completion(body, verdict(body, 5))
        if name == "stern":
            return completion(body, verdict(body, 1))
        if name == "wavering":
            return completion(body, verdict(body, (2, 4, 5)[body["seed"] % 3]))
        if name == "fenced":
            return completion(body, f"```json\n{verdict(body, honest_grade(fields))}\n```")
        if name == "confused":
            # Of a right reply it passes so many percent, of a wrong one it fails so many, always the same ones.
            sensitivity, specificity = map(int, argument.split("/"))
            right = "It is right." in str(fields["reply"])
            drawn = zlib.crc32(str(fields["reply"]).encode()) % 100
            return completion(
                body, verdict(body, 5 if drawn < (sensitivity if right else 100 - specificity) else 1)
            )
        if name == "harsh":
            return completion(body, verdict(body, max(1, honest_grade(fields) - 1)))
        if name == "untold":
            return completion({**body, "logprobs": False}, verdict(body, honest_grade(fields)))
        if name == "umlauts":
            said = verdict(body, honest_grade(fields)).replace("It is", "Für „3“ ist es")
            return completion(body, f"```json\n{said}\n```")
        known = ("good", "good2", "good3", "keyed", "busy", "drop", "noschema", "noformat", "notemperature")
        known = (*known, "nologprobs")
        known = (*known, "prose", "refuse-some", "unclear", "unlisted", "unnamed", "endless")
        if name not in (*known, "slow", "delay", "after", "gullible", "nousage"):
            return error(404, f"The model `{model}` does not exist", code="model_not_found")
        return completion(body, verdict(body, honest_grade(fields)))

    async def messages(self, request: web.Request) -> web.Response:
        """The same judge behind Anthropic's API."""
        body = await request.json()
        chat = {**body, "messages": [{"role": "system", "content": body["system"]}, *body["messages"]]}
        data = read_data(chat["messages"])
        headers = {name: request.headers.get(name) for name in ("x-api-key", "anthropic-version")}
        self.log.append({"api": "anthropic", "request": body, "headers": headers, "data": data})
        if body["model"] == "noschema" and "output_config" in body:
            return error(400, "output_config: Extra inputs are not permitted")
        refused = body["model"] == "refuse"
        text = "I would rather not." if refused else verdict(chat, honest_grade(data["fields"]))
        return web.json_response(
            {
                "type": "message",
                "content": [{"type": "thinking", "thinking": "…"}, {"type": "text", "text": text}],
                "stop_reason": "refusal" if refused else "end_turn",
                "usage": {"input_tokens": 100, "cache_read_input_tokens": 900, "output_tokens": 50},
            }
        )

    async def generate(self, request: web.Request) -> web.Response:
        """The same judge behind Gemini's API."""
        body, model = await request.json(), request.match_info["model"]
        said = [{"role": "user", "content": one["parts"][0]["text"]} for one in body["contents"]]
        system = body["systemInstruction"]["parts"][0]["text"]
        chat = {"messages": [{"role": "system", "content": system}, *said]}
        data = read_data(chat["messages"])
        headers = {"x-goog-api-key": request.headers.get("x-goog-api-key")}
        self.log.append({"api": "gemini", "request": body, "headers": headers, "data": data, "model": model})
        used = {"promptTokenCount": 1000, "candidatesTokenCount": 40, "thoughtsTokenCount": 60}
        if model == "blocked":
            return web.json_response({"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": used})
        text = verdict(chat, honest_grade(data["fields"]))
        parts = [{"text": "Let me see.", "thought": True}, {"text": text[:9]}, {"text": text[9:]}]
        candidate = {"content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
        if body["generationConfig"].get("responseLogprobs"):
            told = tokens_of(text, "logProbability")
            for chosen, _ in told:
                del chosen["bytes"]
            candidate["logprobsResult"] = {
                "chosenCandidates": [chosen for chosen, _ in told],
                "topCandidates": [{"candidates": likeliest} for _, likeliest in told],
            }
        return web.json_response({"candidates": [candidate], "usageMetadata": used})


def error(status: int, message: str, *, code: str = "", param: str = "", headers: Any = None) -> web.Response:
    body = {"error": {"message": message, "code": code or None, "param": param or None, "type": "error"}}
    return web.json_response(body, status=status, headers=headers)


def completion(
    body: dict[str, Any], text: str | None, *, refusal: str | None = None, finish: str = "stop"
) -> web.Response:
    told = [{**one, "top_logprobs": likeliest} for one, likeliest in tokens_of(text or "", "logprob")]
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    used = {"prompt_tokens": prompt, "completion_tokens": len(text or "") // 4}
    return web.json_response(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish,
                    "message": {"role": "assistant", "content": text, "refusal": refusal},
                    "logprobs": {"content": told} if body.get("logprobs") else None,
                }
            ],
            **({} if body["model"] == "nousage" else {"usage": used}),
        }
    )


async def main(port: int) -> None:
    judge = Judge()

    async def log(_: web.Request) -> web.Response:
        return web.json_response({"calls": judge.log, "most_at_once": judge.most_at_once})

    async def count(_: web.Request) -> web.Response:
        return web.json_response({"calls": len(judge.log)})

    async def reset(_: web.Request) -> web.Response:
        judge.__init__()  # type: ignore[misc]
        return web.json_response({})

    app = web.Application(client_max_size=64 * 2**20)
    app.router.add_post("/v1/chat/completions", judge.complete)
    app.router.add_post("/v1/messages", judge.messages)
    app.router.add_post("/v1beta/models/{model}:generateContent", judge.generate)
    app.router.add_get("/log", log)
    app.router.add_get("/count", count)
    app.router.add_post("/reset", reset)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", port).start()
    print(f"port {runner.addresses[0][1]}", flush=True)
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 0))

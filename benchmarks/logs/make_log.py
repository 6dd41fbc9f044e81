"""A log of recorded replies with their expectations: `python make_log.py SHAPE ROWS FILE`.

`varied`: no two rows have the same question, keywords or reply. `asked`: 200 questions, and still no reply twice, as of a golden
set that is asked again and again. A reply has some 500 characters; one of 33 is a certain error of any form.
"""

import json
import random
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import varied

_QUESTIONS = 200
# Certain errors: a trace, a body, a system's line, a page, a template that was not filled.
_ERRORS = (
    'Traceback (most recent call last):\n  File "/app/bot.py", line {0}, in reply\n    return data["{1}"]\nKeyError: \'{1}\'',
    "java.lang.IllegalStateException: pool {0} closed\n\tat com.example.Pool.get(Pool.java:{1})",
    '{{"error": {{"code": 503, "message": "upstream {0} unavailable", "request_id": "{1}"}}}}',
    "connect ECONNREFUSED 10.0.0.7:{0}",
    "<html><head><title>502 Bad Gateway</title></head><body>proxy {0}</body></html>",
    "openai.RateLimitError: Error code: 429 - {{'error': {{'message': 'quota {0}'}}}}",
    "Dear {{{{customer_name}}}}, your order {0} is {{{{status}}}}.",
    "Your balance of account {0} is undefined EUR as of NaN.",
    "SQLSTATE[HY000] [{0}] Connection refused",
    "",
)


def rows(shape: str, count: int) -> Iterator[dict[str, object]]:
    """`count` rows of a shape, the same ones each time."""
    draw = random.Random(16)
    for number in range(count):
        case = varied.question(number if shape == "varied" else number * 7919 % _QUESTIONS)
        row = {**case, **varied.reply(str(case["question"]))}
        if shape == "asked":
            row["answer"] += f" This was entered as number {number} on day {draw.randrange(1, 99_999)}."
        if number % 33 == 7:
            row["answer"] = draw.choice(_ERRORS).format(draw.randrange(1000, 9_999_999), number)
        row["latency_ms"] = round(draw.lognormvariate(6, 0.6), 1)
        yield row


if __name__ == "__main__":
    shape, count, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "w") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows(shape, count))

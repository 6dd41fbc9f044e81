"""What a logged row costs, part by part, each alone over all rows: `python benchmarks/logs/row_parts.py [ROWS] [ROUNDS]`.

Each round is a process of its own, which has seen none of the rows. The light loop is measured beside the parts: under load,
compare the ratios.
"""

import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from answerkey.detect.detector import plain_text, scan
from answerkey.model.run_document import row_line
from answerkey.model.scorecard import Scorecard
from answerkey.runs.log_files import LogBlocks
from answerkey.runs.log_rows import BlockCollector, LoggedTrial, LogPlan, RowReader, decode_plain
from answerkey.scorers.components import ResponseQuality, detected_in
from answerkey.scorers.grader import make_grader

HERE = Path(__file__).parent
_BATCH = 100


def light_row(line: bytes) -> str:
    """What the light loop does with a row."""
    row = json.loads(line)
    text = row.get("answer") or ""
    lowered = text.lower()
    used = row.get("tools_used") or []
    tools = all(tool in used for tool in row["expected_tools"])
    keywords = row["expected_keywords"]
    quality = sum(keyword.lower() in lowered for keyword in keywords) / len(keywords)
    error = not text.strip() or "encountered an error" in lowered or "traceback" in lowered
    return json.dumps({"id": row["id"], "score": round(0.4 * tools + 0.4 * quality + 0.2 * (not error), 9)})


def microseconds(work: Callable[[Any], object], items: Iterable[Any], rows: int) -> float:
    """CPU microseconds a row."""
    begun = time.thread_time()
    for item in items:
        work(item)
    return 1e6 * (time.thread_time() - begun) / rows


def measured(log: Path, rows: int) -> dict[str, float]:
    """Part → microseconds a row, of one round."""
    grader = make_grader()
    grader.prepare()
    plan = LogPlan(recipe=None, pass_mark=grader.scoring.pass_mark)
    [*blocks] = LogBlocks([log])
    lines = [line for block in blocks for line in block.lines.splitlines()]
    [*read] = [row for block in blocks for row in RowReader(None).read(block) if isinstance(row, LoggedTrial)]
    pairs = [(row.trial.question, row.trial.replies[0]) for row in read]
    texts = [plain_text(reply.text) for _, reply in pairs if reply.text is not None]
    tools, quality = grader.scorers[:2]
    assert isinstance(quality, ResponseQuality)
    batches = [read[start : start + _BATCH] for start in range(0, len(read), _BATCH)]
    found = {
        "light loop": microseconds(light_row, lines, rows),
        "typed decoding": microseconds(decode_plain, lines, rows),
        "reading": microseconds(lambda block: [*RowReader(None).read(block)], blocks, rows),
        "RE2 scan": microseconds(scan, filter(None, texts), rows),
        "error detection": microseconds(lambda pair: detected_in(pair[1].text), pairs, rows),
        "keywords": microseconds(lambda pair: quality.score_value(*pair), pairs, rows),
        "tools": microseconds(lambda pair: tools.score(*pair), pairs, rows),
    }
    graded: list[Scorecard] = []
    # Without what is measured above; the detector remembers a batch.
    found["scores"] = -found["tools"] - found["keywords"]
    for batch in batches:
        for row in batch:
            detected_in(row.trial.replies[0].text)
        trials = [row.trial for row in batch]
        found["scores"] += microseconds(
            lambda some: graded.extend(grader.grade_many(some, facts=False)), [trials], rows
        )
    collector = BlockCollector(plan, blocks[0], grader)
    cards = iter(graded)
    found["tally"] = microseconds(
        lambda batch: collector.add_many(batch, [*islice(cards, len(batch))]), batches, rows
    )
    found["tally"] += microseconds(lambda part: part(), [collector.part], rows)
    found["copies"] = microseconds(lambda block: block.row_checksums(), blocks, rows)
    explained = [row.trial.scored(grader.grade(row.trial.question, row.trial.replies)) for row in read]
    found["row as JSON"] = microseconds(row_line, explained, rows)
    return found


def main(rows: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        log = f"{folder}/varied.jsonl"
        subprocess.run([sys.executable, HERE / "make_log.py", "varied", str(rows), log], check=True)
        command = (sys.executable, __file__, "--of", log, str(rows))
        found = [json.loads(subprocess.check_output(command)) for _ in range(rounds)]
    print(f"load of the machine: {os.getloadavg()[0]:.1f}; rounds: {rounds}\n")
    print("| part | CPU µs a row | times the light loop |\n|---|---|---|")
    for name in found[0]:
        used = statistics.median(one[name] for one in found)
        ratio = statistics.median(one[name] / one["light loop"] for one in found)
        print(f"| {name} | {used:.1f} | {ratio:.2f} |")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        gc.disable()
        print(json.dumps(measured(Path(sys.argv[2]), int(sys.argv[3]))))
    else:
        main(*(int(given) for given in (*sys.argv[1:], *(20_000, 3)[len(sys.argv) - 1 :])))
